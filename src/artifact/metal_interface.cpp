#include "artifact/metal_interface.h"

#include "base/text.h"

#include <charconv>

namespace vortex::artifact {

static constexpr std::string_view kMemory = "device uchar* ";

std::string metalTensorName(uint32_t firstSlot) { return base::concat("t", firstSlot); }

std::vector<uint32_t> metalTensors(const Kernel& kernel, const std::string& symbol) {
  const std::string_view text(reinterpret_cast<const char*>(kernel.code.data()), kernel.code.size());
  std::vector<uint32_t> slots;
  const size_t begin = text.find(base::concat("kernel void ", symbol, "("));
  if (begin == std::string_view::npos)
    return slots;
  const std::string_view head = text.substr(begin, text.find('{', begin) - begin);
  for (size_t at = head.find(kMemory); at != std::string_view::npos; at = head.find(kMemory, at + 1)) {
    const std::string_view name = head.substr(at + kMemory.size());
    uint32_t slot = 0;
    if (name.starts_with('t') && std::from_chars(name.data() + 1, name.data() + name.size(), slot).ec == std::errc())
      slots.push_back(slot);
  }
  return slots;
}

}  // namespace vortex::artifact
