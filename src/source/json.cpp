#include "source/json.h"

#include "source/utf8.h"

#include <cstdio>

namespace vortex::source {

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = utf8SequenceLength(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

}  // namespace vortex::source
