#include "artifact/print_text.h"

#include "base/number_text.h"

#include <algorithm>
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

constexpr std::string_view kPrintMark = "print:", kFaultMark = "assert:";

std::string_view printKinds(const Fault& format) {
  const std::string_view id = format.id;
  for (const std::string_view mark : {kPrintMark, kFaultMark})
    if (id.starts_with(mark))
      return id.substr(mark.size());
  return {};
}

bool isOfFault(const Fault& format) { return format.id.starts_with(kFaultMark); }

std::string faultText(const Kernel& kernel, const Fault& fault, std::span<const uint64_t> values) {
  for (const Fault& format : kernel.faults)
    if (isOfFault(format) && format.message == fault.message && format.file == fault.file &&
        format.line == fault.line && format.column == fault.column)
      return printText(fault.message, printKinds(format),
                       values.first(std::min(values.size(), printKinds(format).size())));
  return fault.message;
}

std::string printText(std::string_view format, std::string_view kinds, std::span<const uint64_t> values) {
  if (kinds.empty())
    return std::string(format);
  std::string text;
  size_t next = 0;
  while (!format.empty()) {
    const std::string_view pair = format.substr(0, 2);
    if (pair == "{}") {
      text += next < values.size() ? valueText(next < kinds.size() ? kinds[next] : 'i', values[next]) : "{}";
      ++next;
    } else {
      text += format.front();
    }
    format.remove_prefix(pair == "{}" || pair == "{{" || pair == "}}" ? 2 : 1);
  }
  return text;
}

}  // namespace vortex::artifact
