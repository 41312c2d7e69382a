// What operations on the language's integers are as sizes.
#pragma once

#include "size/expr.h"

namespace vortex::size {

/// A value modulo 2^bits, as a number of the type; of 64 bits it stays.
Expr wrapped(Expr value, unsigned bits, bool isSigned);

}  // namespace vortex::size
