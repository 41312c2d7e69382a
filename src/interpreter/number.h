// Scalars as 64-bit cells: integers zero-extended from their width, floats as their bit pattern.
#pragma once

#include "ir/vx.h"

#include <bit>
#include <cstdint>
#include <optional>

namespace vortex::interpreter {

enum class Format : uint8_t { Int, F64, F32, F16, BF16, E4M3, E5M2 };

/// The type of one element.
struct Element {
  Format format = Format::Int;
  uint8_t width = 64;  ///< bits; index has 64, bool 1
  bool isFloat() const { return format != Format::Int; }
  uint64_t mask() const { return width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1; }
  unsigned bytes() const { return (width + 7u) / 8u; }
};

/// The element type of a scalar or tile; nothing for a type the interpreter does not know.
std::optional<Element> elementOf(mlir::Type type);

inline int64_t signExtend(uint64_t bits, unsigned width) { return int64_t(bits << (64 - width)) >> (64 - width); }

/// Exact: every format is a subset of double.
double decode(Format format, uint64_t bits);
/// Rounds to nearest, ties to even; overflow gives infinity, NaN in E4M3, which has none.
uint64_t encode(Format format, double value);
/// Rounds once from all 64 bits.
uint64_t encodeInteger(Format format, uint64_t value, bool isSigned);
/// Toward zero, saturating, NaN to 0.
uint64_t toInteger(double value, unsigned width, bool isUnsigned);

/// a * b + c with one rounding.
uint64_t fusedMultiplyAdd(Element element, uint64_t a, uint64_t b, uint64_t c);

/// One step of a reduction, scan or warp reduction: float max/min propagate NaN. `atomic`: they follow maxNum/minNum.
uint64_t combine(ir::Combine kind, Element element, uint64_t a, uint64_t b, bool atomic = false);
/// The neutral element's bits.
uint64_t neutral(ir::Combine kind, mlir::Type elementType);

/// The bits of an IntegerAttr, FloatAttr or BoolAttr.
uint64_t attributeBits(mlir::Attribute attribute);

/// x / 0 = x % 0 = 0, MIN / -1 wraps, shift counts modulo the width. Operands and result are cells.
uint64_t totalInteger(ir::IntKind kind, unsigned width, uint64_t a, uint64_t b);

}  // namespace vortex::interpreter
