#pragma once

#include "base/text.h"

namespace vortex::base {

/// counted(1, "argument") is "1 argument", of 2 "2 arguments".
template <typename Number> std::string counted(Number number, std::string_view what) {
  return concat(number, " ", what, number == 1 ? "" : "s");
}

}  // namespace vortex::base
