#include "artifact/artifact.h"

namespace vortex::artifact {

EntrySource::~EntrySource() = default;

const std::string& symbolOf(const Phase& phase, uint32_t version) {
  return version < phase.versions.size() ? phase.versions[version].symbol : phase.symbol;
}

const Param* findArgument(const Kernel& kernel, uint32_t number) {
  for (const auto* list : {&kernel.params, &kernel.results, &kernel.lets, &kernel.temporaries}) {
    if (number < list->size())
      return &(*list)[number];
    number -= static_cast<uint32_t>(list->size());
  }
  return nullptr;
}

uint32_t slotOf(const Kernel& kernel, const size::Row& row) {
  const Param& param = *findArgument(kernel, row.operands[0]);
  switch (row.op) {
  case size::Op::Dim: return param.firstSlot + 1 + row.operands[1];
  case size::Op::Stride: return param.firstSlot + 1 + param.rank + row.operands[1];
  default: return param.firstSlot;
  }
}

size::Program sizeProgram(const Kernel& kernel) {
  return {kernel.sizes, [&](const size::Row& row) { return slotOf(kernel, row); }};
}

}  // namespace vortex::artifact
