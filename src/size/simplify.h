// Rules that make expressions smaller. None changes a value for any arguments that a launch can have.
#pragma once

#include "size/expr.h"

namespace vortex::size {

/// The simpler expression that an operator on these operands is equal to; nothing if no rule knows one.
Expr simplify(Arena& arena, Op op, Expr a, Expr b, Expr c);

/// Of an operator's value, from those of its operands.
Range rangeOf(Op op, const std::array<const Node*, 3>& operands);
uint32_t zerosOf(Op op, const std::array<const Node*, 3>& operands);

}  // namespace vortex::size
