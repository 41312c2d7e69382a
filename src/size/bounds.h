// What an expression is at least and at most while some of its scalars vary, as expressions without them.
#pragma once

#include "size/expr.h"

#include <functional>

namespace vortex::size {

struct Bounds {
  Expr low, high;  ///< ends included
};

/// Of a scalar argument that varies, over scalars that were known before it; nothing: it stays.
using BoundsOfScalar = std::function<std::optional<Bounds>(uint32_t argument)>;

/// Nothing: no rule bounds it (a quotient by what may be negative). Holds where no step wraps. What depends on nothing that varies is its own bound.
std::optional<Bounds> boundsOf(Expr expr, const BoundsOfScalar& scalar);

}  // namespace vortex::size
