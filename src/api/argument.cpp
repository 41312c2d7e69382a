#include "api/runtime_access.h"
#include "base/text.h"

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

/// The value rounded to a float type, if that leaves it finite.
std::optional<uint64_t> roundedBits(ScalarType type, double value) {
  const uint64_t bits = floatBits(type, value);
  return std::isfinite(value) && !std::isfinite(floatValue(type, bits)) ? std::nullopt : std::optional(bits);
}

}  // namespace

Argument::Argument(double value) : kind_(Kind::Float), bits_(std::bit_cast<uint64_t>(value)) {}

Result<hal::Argument> RuntimeAccess::toHal(const Argument& argument, const artifact::Param& param) {
  using Kind = Argument::Kind;
  if (argument.kind_ == Kind::Tensor)
    return hal::Argument(toHal(*argument.tensor_));
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
    const double value =
        negative ? static_cast<double>(static_cast<int64_t>(argument.bits_)) : static_cast<double>(argument.bits_);
    bits = isFloat(param.type) ? roundedBits(param.type, value) : integerBits(param.type, argument.bits_, negative);
  }
  if (bits)
    return hal::Argument(hal::Scalar{param.type, *bits});
  const std::string given = argument.kind_ == Kind::Float
                                ? concat("the floating-point number ", std::bit_cast<double>(argument.bits_))
                            : isBool   ? concat("the bool ", argument.bits_ ? "true" : "false")
                            : negative ? concat("the integer ", static_cast<int64_t>(argument.bits_))
                                       : concat("the integer ", argument.bits_);
  return Error{concat("argument '", param.name, "' is a scalar ", name(param.type), ", which cannot hold ", given)};
}

}  // namespace vortex
