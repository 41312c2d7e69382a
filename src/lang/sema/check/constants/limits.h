// What the types of numbers hold: `i32.MAX`, `f16.EPSILON`.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// The largest finite number of a float type.
double largest(Scalar scalar);
/// `MIN` (the most negative one), `MAX`, `BITS` of numbers, `EPSILON` of floats (from 1 to the next one); null: no such constant. A type parameter has
/// them by its bounds, with stand-ins for values.
Expr* numberLimit(BodyState& body, Type type, std::string_view name, SourceRange range);

}  // namespace vortex::lang
