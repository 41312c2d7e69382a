#include "host/format_number.h"

#include <charconv>
#include <cmath>

namespace vortex::host {

std::string formatNumber(Scalar type, const Value& value) {
  if (type == Scalar::Bool)
    return value.asInt() ? "true" : "false";
  if (!lang::isFloat(type))
    return lang::isUnsigned(type) ? std::to_string(static_cast<uint64_t>(value.asInt()))
                                  : std::to_string(value.asInt());
  double number = value.asFloat();
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  char buffer[40];
  // Formats narrower than f32 are exact in f32, whose shortest text identifies them.
  auto end = type == Scalar::F64 ? std::to_chars(buffer, buffer + sizeof buffer, number).ptr
                                 : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(number)).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos)
    text += ".0";
  return text;
}

}  // namespace vortex::host
