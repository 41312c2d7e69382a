#include "base/number_text.h"

#include <charconv>
#include <cmath>

namespace vortex::base {

template <typename T> static std::string shortest(T value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

std::string floatText(double value) { return shortest(value); }
std::string floatText(float value) { return shortest(value); }

}  // namespace vortex::base
