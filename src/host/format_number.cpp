#include "host/format_number.h"

#include "base/number_text.h"

namespace vortex::host {

std::string formatNumber(Scalar type, const Value& value) {
  if (type == Scalar::Bool)
    return value.asInt() ? "true" : "false";
  if (!lang::isFloat(type))
    return lang::isUnsigned(type) ? std::to_string(static_cast<uint64_t>(value.asInt()))
                                  : std::to_string(value.asInt());
  // Formats narrower than f32 are exact in f32, whose shortest text identifies them.
  return type == Scalar::F64 ? base::floatText(value.asFloat()) : base::floatText(static_cast<float>(value.asFloat()));
}

}  // namespace vortex::host
