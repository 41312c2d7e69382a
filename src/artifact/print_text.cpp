#include "artifact/print_text.h"

#include "base/number_text.h"

#include <bit>

namespace vortex::artifact {

static std::string valueText(char kind, uint64_t bits) {
  switch (kind) {
  case 'f': return base::floatText(static_cast<float>(std::bit_cast<double>(bits)));
  case 'd': return base::floatText(std::bit_cast<double>(bits));
  case 'b': return bits ? "true" : "false";
  case 'u': return std::to_string(bits);
  default: return std::to_string(static_cast<int64_t>(bits));
  }
}

std::string_view printKinds(const Fault& format) {
  constexpr std::string_view mark = "print:";
  const std::string_view id = format.id;
  return id.starts_with(mark) ? id.substr(mark.size()) : std::string_view();
}

std::string printText(std::string_view format, std::string_view kinds, std::span<const uint64_t> values) {
  std::string text;
  for (size_t next = 0;; ++next) {
    const size_t hole = format.find("{}");
    text += format.substr(0, hole);
    if (hole == std::string_view::npos)
      return text;
    text += next < values.size() ? valueText(next < kinds.size() ? kinds[next] : 'i', values[next]) : "{}";
    format.remove_prefix(hole + 2);
  }
}

}  // namespace vortex::artifact
