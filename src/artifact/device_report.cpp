#include "artifact/device_report.h"

#include "artifact/print_text.h"
#include "base/text.h"

#include <algorithm>

namespace vortex::artifact {

bool mayPrint(const Kernel& kernel) {
  return std::ranges::any_of(kernel.faults, [](const Fault& fault) { return fault.id.starts_with("print"); });
}

Fault reportedFault(const Kernel& kernel, const DeviceReport& report) {
  if (report.fault > kernel.faults.size())
    return {"", base::concat("the code reported fault ", report.fault, ", but it has ", kernel.faults.size()), "", 0,
            0};
  Fault fault = kernel.faults[report.fault - 1];
  fault.message = faultText(kernel, fault, report.values);
  return fault;
}

void forEachPrint(const Kernel& kernel, std::span<const uint64_t> area, uint64_t reserved,
                  const std::function<void(const Fault& format, std::span<const uint64_t> values)>& print) {
  const uint64_t end = std::min<uint64_t>(reserved, area.size());
  uint64_t at = 0;
  while (at < end) {
    const uint64_t index = area[at] & UINT32_MAX, count = area[at] >> 32;
    if (index == 0 || index > kernel.faults.size() || count >= end - at)
      break;
    print(kernel.faults[index - 1], area.subspan(at + 1, count));
    at += 1 + count;
  }
  if (at < reserved)
    print({"print:",
           base::concat("(", (reserved - at) * sizeof(uint64_t), " bytes of prints are lost: one launch holds ",
                        area.size() * sizeof(uint64_t), ")"),
           "", 0, 0},
          {});
}

}  // namespace vortex::artifact
