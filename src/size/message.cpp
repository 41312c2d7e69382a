#include "size/message.h"

namespace vortex::size {

static void replaceAll(std::string& text, const std::string& place, const std::string& value) {
  for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + value.size()))
    text.replace(at, place.size(), value);
}

std::string fillMessage(std::string message, std::span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string number = std::to_string(i);
    replaceAll(message, "{" + number + "}", std::to_string(values[i]));
    replaceAll(message, "{" + number + "u}", std::to_string(static_cast<uint64_t>(values[i])));
  }
  return message;
}

}  // namespace vortex::size
