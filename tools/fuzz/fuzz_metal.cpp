// Any bytes through the pre-lexer of Metal source, as a file and as the attribute of a parameter: no crash, no hang, as many lines as before,
// and every place of the new text stands for one of the old, in order.
#include "base/check.h"
#include "msl/front/prelexer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

static void prelexAndCheck(const std::string& source, const std::vector<vortex::msl::front::Range>& widened) {
  const vortex::msl::front::Rewritten made = vortex::msl::front::prelex(source, widened);
  const std::string& text = made.text();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  VORTEX_CHECK(lines == std::count(source.begin(), source.end(), '\n'), "%zd lines", static_cast<ssize_t>(lines));
  uint32_t last = 0;
  for (uint32_t at = 0; at <= text.size(); ++at) {
    const uint32_t from = made.sourceOffset(at);
    VORTEX_CHECK(last <= from && from <= source.size(), "%u stands for %u after %u of %zu", at, from, last,
                 source.size());
    last = from;
  }
  for (uint32_t line = 0; line <= static_cast<uint32_t>(lines) + 2; ++line)
    VORTEX_CHECK(made.offsetOf(line, 0) <= text.size() && made.offsetOf(line, 9) <= text.size(), "line %u", line);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string source(reinterpret_cast<const char*>(bytes), size);
  prelexAndCheck(source, {});
  // Operands of casts: one, and one in it.
  const auto end = static_cast<uint32_t>(size), first = size > 0 ? bytes[0] % (end + 1) : 0;
  prelexAndCheck(source, {{first, end}, {first, first + (end - first) / 2}});
  prelexAndCheck(
      "kernel void k(device float* a [[" + source + "]], uint i [[thread_position_in_grid]]) { a[i] = 1.0h; }\n", {});
  return 0;
}
