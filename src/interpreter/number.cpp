#include "interpreter/number.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>

namespace vortex::interpreter {

using ir::Combine;
using ir::IntKind;

std::optional<Element> elementOf(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  if (type.isIndex())
    return Element{Format::Int, 64};
  if (auto integer = llvm::dyn_cast<mlir::IntegerType>(type)) {
    if (integer.getWidth() == 0 || integer.getWidth() > 64)
      return {};
    return Element{Format::Int, uint8_t(integer.getWidth())};
  }
  if (type.isF64())
    return Element{Format::F64, 64};
  if (type.isF32())
    return Element{Format::F32, 32};
  if (type.isF16())
    return Element{Format::F16, 16};
  if (type.isBF16())
    return Element{Format::BF16, 16};
  if (type.isFloat8E4M3FN())
    return Element{Format::E4M3, 8};
  if (type.isFloat8E5M2())
    return Element{Format::E5M2, 8};
  return {};
}

namespace {

struct Layout {
  int exponentBits, mantissaBits;
  bool finiteOnly;  ///< no infinities; only the all-ones pattern is NaN
};

constexpr Layout layoutOf(Format format) {
  switch (format) {
  case Format::F16: return {5, 10, false};
  case Format::BF16: return {8, 7, false};
  case Format::E4M3: return {4, 3, true};
  case Format::E5M2: return {5, 2, false};
  default: VORTEX_UNREACHABLE("not a narrow format");
  }
}

/// 2^exponent, for the exponents of narrow formats.
double powerOfTwo(int exponent) { return std::bit_cast<double>(uint64_t(exponent + 1023) << 52); }

double decodeNarrow(Layout layout, uint64_t bits) {
  int bias = (1 << (layout.exponentBits - 1)) - 1;
  uint64_t mantissa = bits & ((1u << layout.mantissaBits) - 1);
  int exponent = int(bits >> layout.mantissaBits) & ((1 << layout.exponentBits) - 1);
  bool negative = bits >> (layout.exponentBits + layout.mantissaBits) & 1;
  bool allOnes = exponent == (1 << layout.exponentBits) - 1;
  double magnitude = 0;
  if (allOnes && layout.finiteOnly && mantissa == (1u << layout.mantissaBits) - 1)
    magnitude = std::nan("");
  else if (allOnes && !layout.finiteOnly)
    magnitude = mantissa ? std::nan("") : INFINITY;
  else if (exponent == 0)
    magnitude = double(mantissa) * powerOfTwo(1 - bias - layout.mantissaBits);
  else
    magnitude = double(mantissa | (1u << layout.mantissaBits)) * powerOfTwo(exponent - bias - layout.mantissaBits);
  return negative ? -magnitude : magnitude;
}

uint64_t encodeNarrow(Layout layout, double value) {
  int bias = (1 << (layout.exponentBits - 1)) - 1;
  uint64_t sign = uint64_t(std::signbit(value)) << (layout.exponentBits + layout.mantissaBits);
  uint64_t infinity = uint64_t((1 << layout.exponentBits) - 1) << layout.mantissaBits;
  uint64_t allOnes = infinity | ((1u << layout.mantissaBits) - 1);
  uint64_t nan = layout.finiteOnly ? allOnes : infinity | (1u << (layout.mantissaBits - 1));
  if (std::isnan(value))
    return sign | nan;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | (layout.finiteOnly ? nan : infinity);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  // Exact scaling, then one rounding (the default mode: nearest even). A carry out of the mantissa moves into the exponent.
  double rounded = std::nearbyint(std::ldexp(magnitude, layout.mantissaBits - exponent));
  if (magnitude == 0 || exponent > bias + 1)
    return sign | (magnitude == 0 ? 0 : layout.finiteOnly ? nan : infinity);
  uint64_t bits = (uint64_t(exponent + bias - 1) << layout.mantissaBits) + uint64_t(rounded);
  if (layout.finiteOnly)
    return sign | (bits >= allOnes ? nan : bits);
  return sign | (bits >= infinity ? infinity : bits);
}

}  // namespace

double decode(Format format, uint64_t bits) {
  switch (format) {
  case Format::F64: return std::bit_cast<double>(bits);
  case Format::F32: return std::bit_cast<float>(uint32_t(bits));
  default: return decodeNarrow(layoutOf(format), bits);
  }
}

uint64_t encode(Format format, double value) {
  switch (format) {
  case Format::F64: return std::bit_cast<uint64_t>(value);
  case Format::F32: return std::bit_cast<uint32_t>(float(value));
  default: return encodeNarrow(layoutOf(format), value);
  }
}

uint64_t encodeInteger(Format format, uint64_t value, bool isSigned) {
  bool negative = isSigned && int64_t(value) < 0;
  uint64_t magnitude = negative ? 0 - value : value;
  if (format == Format::F64) {
    double converted = double(magnitude);
    return encode(format, negative ? -converted : converted);
  }
  // Beyond 53 bits, fold what double cannot hold into a sticky bit (round to odd): the rounding to fewer than 52 bits is then right.
  constexpr uint64_t low = 0x7ff;
  if (magnitude >> 53)
    magnitude = (magnitude & ~low) | ((magnitude & low) ? low + 1 : 0);
  return encode(format, negative ? -double(magnitude) : double(magnitude));
}

uint64_t toInteger(double value, unsigned width, bool isUnsigned) {
  if (std::isnan(value))
    return 0;
  uint64_t mask = Element{Format::Int, uint8_t(width)}.mask();
  double limit = std::ldexp(1.0, int(isUnsigned ? width : width - 1));
  value = std::trunc(value);
  if (isUnsigned)
    return value <= 0 ? 0 : value >= limit ? mask : uint64_t(value);
  if (value >= limit)
    return mask >> 1;
  if (value < -limit)
    return uint64_t(1) << (width - 1);
  return uint64_t(int64_t(value)) & mask;
}

static llvm::APFloat narrowValue(Format format, uint64_t bits) {
  const llvm::fltSemantics* semantics = format == Format::F16    ? &llvm::APFloat::IEEEhalf()
                                        : format == Format::BF16 ? &llvm::APFloat::BFloat()
                                        : format == Format::E4M3 ? &llvm::APFloat::Float8E4M3FN()
                                                                 : &llvm::APFloat::Float8E5M2();
  return llvm::APFloat(*semantics, llvm::APInt(llvm::APFloat::semanticsSizeInBits(*semantics), bits));
}

uint64_t fusedMultiplyAdd(Element element, uint64_t a, uint64_t b, uint64_t c) {
  switch (element.format) {
  case Format::Int: return (a * b + c) & element.mask();
  case Format::F64:
    return std::bit_cast<uint64_t>(
        std::fma(std::bit_cast<double>(a), std::bit_cast<double>(b), std::bit_cast<double>(c)));
  case Format::F32: {
    auto value = [](uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); };
    return std::bit_cast<uint32_t>(std::fma(value(a), value(b), value(c)));
  }
  default: {
    llvm::APFloat result = narrowValue(element.format, a);
    result.fusedMultiplyAdd(narrowValue(element.format, b), narrowValue(element.format, c),
                            llvm::APFloat::rmNearestTiesToEven);
    return result.bitcastToAPInt().getZExtValue();
  }
  }
}

static double combineFloat(Combine kind, double a, double b, bool atomic) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (kind) {
  case Combine::AddF: return a + b;
  case Combine::MulF: return a * b;
  case Combine::MaxF:
    if (unordered)
      return atomic ? std::fmax(a, b) : std::nan("");
    return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  case Combine::MinF:
    if (unordered)
      return atomic ? std::fmin(a, b) : std::nan("");
    return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  default: VORTEX_UNREACHABLE("float combination");
  }
}

uint64_t combine(Combine kind, Element element, uint64_t a, uint64_t b, bool atomic) {
  if (kind == Combine::Exchange)
    return b;
  if (element.isFloat())
    return encode(element.format, combineFloat(kind, decode(element.format, a), decode(element.format, b), atomic));
  int64_t sa = signExtend(a, element.width), sb = signExtend(b, element.width);
  switch (kind) {
  case Combine::AddI: return (a + b) & element.mask();
  case Combine::MulI: return (a * b) & element.mask();
  case Combine::MaxS: return sa > sb ? a : b;
  case Combine::MinS: return sa < sb ? a : b;
  case Combine::MaxU: return std::max(a, b);
  case Combine::MinU: return std::min(a, b);
  case Combine::And: return a & b;
  case Combine::Or: return a | b;
  case Combine::Xor: return a ^ b;
  default: VORTEX_UNREACHABLE("integer combination");
  }
}

uint64_t attributeBits(mlir::Attribute attribute) {
  if (auto value = llvm::dyn_cast<mlir::FloatAttr>(attribute))
    return value.getValue().bitcastToAPInt().getZExtValue();
  return llvm::cast<mlir::IntegerAttr>(attribute).getValue().getZExtValue();
}

uint64_t neutral(Combine kind, mlir::Type elementType) { return attributeBits(ir::neutralElement(kind, elementType)); }

uint64_t totalInteger(IntKind kind, unsigned width, uint64_t a, uint64_t b) {
  uint64_t mask = Element{Format::Int, uint8_t(width)}.mask();
  int64_t sa = signExtend(a, width), sb = signExtend(b, width);
  switch (kind) {
  case IntKind::DivS: return b == 0 ? 0 : (sb == -1 ? 0 - a : uint64_t(sa / sb)) & mask;
  case IntKind::DivU: return b == 0 ? 0 : a / b;
  case IntKind::RemS: return b == 0 || sb == -1 ? 0 : uint64_t(sa % sb) & mask;
  case IntKind::RemU: return b == 0 ? 0 : a % b;
  case IntKind::Shl: return (a << (b % width)) & mask;
  case IntKind::ShrS: return uint64_t(sa >> (b % width)) & mask;
  case IntKind::ShrU: return a >> (b % width);
  case IntKind::CeilDivU: return b == 0 ? 0 : a / b + (a % b != 0);
  }
  VORTEX_UNREACHABLE("integer kind");
}

}  // namespace vortex::interpreter
