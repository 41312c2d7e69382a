#include "lang/sema/kernel/default_block.h"

#include <bit>
#include <optional>

namespace vortex::lang {

std::array<int64_t, 3> defaultBlock(const KernelSpec& kernel, const std::vector<DimExpr>& domain) {
  if (kernel.tile && kernel.returnsElements)
    return {kernel.tile->elements(), 1, 1};
  std::array<int64_t, 3> block = {256, 1, 1};
  if (domain.size() == 2)
    block = {32, 8, 1};
  if (domain.size() == 3)
    block = {32, 4, 2};
  if (domain.size() < 2)
    return block;
  std::optional<int64_t> row = domain[0].asConstant();
  if (row && *row > 0 && *row < block[0]) {
    auto shorter = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(*row)));
    block[1] *= block[0] / shorter;
    block[0] = shorter;
  }
  return block;
}

}  // namespace vortex::lang
