#include "api/runtime_access.h"
#include "base/text.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vortex {

using artifact::ScalarType;
using base::concat;

namespace {

bool isSigned(ScalarType type) { return type >= ScalarType::I8 && type <= ScalarType::I64; }

/// The value in `bits` (signed or not) as an integer type's slot, if it fits.
std::optional<uint64_t> integerBits(ScalarType type, uint64_t bits, bool negative) {
  const uint32_t width = 8 * byteSize(type);
  if (type == ScalarType::Bool)
    return bits <= 1 && !negative ? std::optional(bits) : std::nullopt;
  if (isSigned(type)) {
    const auto value = static_cast<int64_t>(bits);
    const int64_t limit = INT64_MAX >> (64 - width);
    const bool fits = negative ? value >= -limit - 1 : bits <= static_cast<uint64_t>(limit);
    return fits ? std::optional(bits) : std::nullopt;
  }
  const uint64_t limit = UINT64_MAX >> (64 - width);
  return !negative && bits <= limit ? std::optional(bits) : std::nullopt;
}

/// Whether the bits are those of a number of the type, with what Argument wants above them.
bool areBitsOf(ScalarType type, uint64_t bits) {
  if (type == ScalarType::Bool)
    return bits <= 1;
  const uint32_t width = 8 * byteSize(type);
  const uint64_t above = width == 64 ? 0 : bits >> width;
  return above == 0 || (isSigned(type) && static_cast<int64_t>(bits) < 0 && integerBits(type, bits, true));
}

/// The integer as a number that rounds to every type of fewer than 52 digits as the integer does: where digits are lost, the last one kept is 1.
double roundedToOdd(uint64_t magnitude) {
  const int lost = std::max(static_cast<int>(std::bit_width(magnitude)) - 53, 0);
  uint64_t kept = magnitude >> lost;
  if (kept << lost != magnitude)
    kept |= 1;
  return std::ldexp(static_cast<double>(kept), lost);
}

/// The value rounded to a float type, if that leaves it finite.
std::optional<uint64_t> roundedBits(ScalarType type, double value) {
  const uint64_t bits = floatBits(type, value);
  return std::isfinite(value) && !std::isfinite(floatValue(type, bits)) ? std::nullopt : std::optional(bits);
}

}  // namespace

Argument::Argument(double value) : kind_(Kind::Float), bits_(std::bit_cast<uint64_t>(value)) {}

Result<hal::Argument> RuntimeAccess::toHal(const Argument& argument, const artifact::Param& param) {
  using Kind = Argument::Kind;
  const auto refused = [&](const auto&... why) {
    return Error{concat("argument '", param.name, "' is a ", param.isTensor ? "tensor of " : "scalar ",
                        name(param.type), why...)};
  };
  if (argument.kind_ == Kind::Tensor) {
    Result<hal::Tensor> tensor = toHal(*argument.tensor_);
    if (!tensor)
      return refused(", given ", tensor.error().message);
    return hal::Argument(*std::move(tensor));
  }
  if (argument.kind_ == Kind::Bits) {
    if (!isKnown(argument.type_))
      return refused(", given a scalar of an unknown type: ", static_cast<unsigned>(argument.type_));
    if (!areBitsOf(toArtifact(argument.type_), argument.bits_))
      return refused(", given bits that no ", vortex::name(argument.type_), " has: ", argument.bits_);
  }
  if (argument.kind_ == Kind::Bits ||
      param.isTensor)  // a number for a tensor: the launch reports it with the parameter's type
    return hal::Argument(hal::Scalar{argument.kind_ == Kind::Bits    ? toArtifact(argument.type_)
                                     : argument.kind_ == Kind::Float ? ScalarType::F64
                                     : argument.kind_ == Kind::Bool  ? ScalarType::Bool
                                                                     : ScalarType::I64,
                                     argument.bits_});
  const bool negative = argument.kind_ == Kind::Signed && static_cast<int64_t>(argument.bits_) < 0;
  const bool isBool = argument.kind_ == Kind::Bool;
  std::optional<uint64_t> bits;
  if (argument.kind_ == Kind::Float) {
    if (isFloat(param.type))
      bits = roundedBits(param.type, std::bit_cast<double>(argument.bits_));
  } else if (isBool == (param.type == ScalarType::Bool)) {
    const uint64_t magnitude = negative ? -argument.bits_ : argument.bits_;
    const double value = param.type == ScalarType::F64 ? static_cast<double>(magnitude) : roundedToOdd(magnitude);
    bits = isFloat(param.type) ? roundedBits(param.type, negative ? -value : value)
                               : integerBits(param.type, argument.bits_, negative);
  }
  if (bits)
    return hal::Argument(hal::Scalar{param.type, *bits});
  const std::string given = argument.kind_ == Kind::Float
                                ? concat("the floating-point number ", std::bit_cast<double>(argument.bits_))
                            : isBool   ? concat("the bool ", argument.bits_ ? "true" : "false")
                            : negative ? concat("the integer ", static_cast<int64_t>(argument.bits_))
                                       : concat("the integer ", argument.bits_);
  return refused(", which cannot hold ", given);
}

}  // namespace vortex
