#include "target/gpu/testing/matrices.h"

#include "interpreter/number.h"
#include "layout/fragments.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vortex::target::gpu::testing {

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

/// A register's element as a number; integers are signed.
static double decoded(mlir::Type type, uint64_t bits) {
  interpreter::Element element = *interpreter::elementOf(type);
  return element.isFloat() ? interpreter::decode(element.format, bits)
                           : double(interpreter::signExtend(bits, element.width));
}

static uint64_t encoded(mlir::Type type, double value) {
  interpreter::Element element = *interpreter::elementOf(type);
  return element.isFloat() ? interpreter::encode(element.format, value) : uint64_t(uint32_t(int64_t(value)));
}

WarpRegisters multiplyMatrices(ir::vxt::MmaOp op, const WarpRegisters& a, const WarpRegisters& b,
                               const WarpRegisters& c) {
  mlir::Type type = op.getA().getType().getElementType(), accType = op.getC().getType().getElementType();
  unsigned bits = type.getIntOrFloatBitWidth(), layoutBits = std::min(bits, 32u);  // f64 is dealt like f32
  auto depth = static_cast<size_t>(op.getShape()[2]);
  if (op.getShape()[0] != 16 || op.getShape()[1] != 8 || depth != (bits == 64 ? 8 : 256 / bits))
    return {};
  layout::Layout layoutA = layout::mmaA(layoutBits), layoutB = layout::mmaB(layoutBits), layoutC = layout::mmaC();
  std::vector<double> left(16 * depth), right(depth * 8);
  for (layout::Bits lane = 0; lane < 32; ++lane) {
    for (layout::Bits reg = 0; reg < a[lane].size(); ++reg)
      left[layoutA.applyFlat({.reg = reg, .lane = lane})] = decoded(type, a[lane][reg]);
    for (layout::Bits reg = 0; reg < b[lane].size(); ++reg)
      right[layoutB.applyFlat({.reg = reg, .lane = lane})] = decoded(type, b[lane][reg]);
  }
  WarpRegisters result = c;
  for (layout::Bits lane = 0; lane < 32; ++lane)
    for (layout::Bits reg = 0; reg < 4; ++reg) {
      auto place = layoutC.apply({.reg = reg, .lane = lane});
      double sum = decoded(accType, c[lane][reg]);
      for (size_t k = 0; k < depth; ++k)
        sum += left[place[0] * depth + k] * right[k * 8 + place[1]];
      result[lane][reg] = encoded(accType, sum);
    }
  return result;
}

WarpRegisters multiplyFragments(ir::vxt::FragmentMultiplyOp op, const WarpRegisters& a, const WarpRegisters& b,
                                const WarpRegisters& c) {
  mlir::Type type = op.getA().getType().getElementType(), accType = op.getC().getType().getElementType();
  WarpRegisters result = c;
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t j = 0; j < 2; ++j) {
      const size_t row = lane / 4, column = lane % 4 * 2 + j;
      double sum = decoded(accType, c[lane][j]);
      for (size_t k = 0; k < 8; ++k)
        sum += decoded(type, a[row * 4 + k / 2][k % 2]) * decoded(type, b[k * 4 + column / 2][column % 2]);
      result[lane][j] = encoded(accType, sum);
    }
  return result;
}

uint64_t roundedElement(mlir::Type from, mlir::Type to, uint64_t bits) { return encoded(to, decoded(from, bits)); }

}  // namespace vortex::target::gpu::testing
