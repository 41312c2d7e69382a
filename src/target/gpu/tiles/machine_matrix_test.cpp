#include "target/gpu/tiles/machine_matrix_test.h"

#include "interpreter/number.h"
#include "layout/fragments.h"

#include <bit>
#include <cstring>

namespace vortex::target::gpu::tiles::testing {

WarpRegisters loadMatrices(const std::vector<const char*>& rows, unsigned count, bool transposed) {
  layout::Layout dealt = layout::ldmatrix(static_cast<unsigned>(std::countr_zero(count)), transposed);
  WarpRegisters result(32, std::vector<uint64_t>(count));
  for (layout::Bits lane = 0; lane < 32; ++lane)
    for (layout::Bits reg = 0; reg < 2 * count; ++reg) {
      auto element = dealt.apply({.reg = reg, .lane = lane});
      uint16_t half;
      std::memcpy(&half, rows[element[0] * 8 + element[1]] + 2 * element[2], 2);
      result[lane][reg / 2] |= uint64_t(half) << (reg % 2 * 16);
    }
  return result;
}

WarpRegisters multiplyMatrices(ir::vxt::MmaOp op, const WarpRegisters& a, const WarpRegisters& b,
                               const WarpRegisters& c) {
  auto type = llvm::dyn_cast<mlir::FloatType>(op.getA().getType().getElementType());
  if (!type || !op.getC().getType().getElementType().isF32() || op.getShape()[0] != 16 || op.getShape()[1] != 8)
    return {};
  auto depth = static_cast<size_t>(op.getShape()[2]);
  interpreter::Format format = interpreter::elementOf(type)->format;
  layout::Layout layoutA = layout::mmaA(type.getWidth()), layoutB = layout::mmaB(type.getWidth()),
                 layoutC = layout::mmaC();
  std::vector<double> left(16 * depth), right(depth * 8);
  for (layout::Bits lane = 0; lane < 32; ++lane) {
    for (layout::Bits reg = 0; reg < a[lane].size(); ++reg)
      left[layoutA.applyFlat({.reg = reg, .lane = lane})] = interpreter::decode(format, a[lane][reg]);
    for (layout::Bits reg = 0; reg < b[lane].size(); ++reg)
      right[layoutB.applyFlat({.reg = reg, .lane = lane})] = interpreter::decode(format, b[lane][reg]);
  }
  WarpRegisters result = c;
  for (layout::Bits lane = 0; lane < 32; ++lane)
    for (layout::Bits reg = 0; reg < 4; ++reg) {
      auto place = layoutC.apply({.reg = reg, .lane = lane});
      double sum = std::bit_cast<float>(static_cast<uint32_t>(c[lane][reg]));
      for (size_t k = 0; k < depth; ++k)
        sum += left[place[0] * depth + k] * right[k * 8 + place[1]];
      result[lane][reg] = std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
  return result;
}

}  // namespace vortex::target::gpu::tiles::testing
