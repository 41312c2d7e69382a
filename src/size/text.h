// Expressions as text: infix for IR, C for headers.
#pragma once

#include "base/result.h"
#include "size/evaluate.h"

#include <string>
#include <string_view>

namespace vortex::size {

/// "ceildiv(dim(0,0), 128) * (dim(1,1) + 1)". Operators by falling precedence: `!`; `*`; `+ -`; `< ==`; `&`; `|`; the others are functions
/// floordiv, ceildiv, mod, min, max, pow2, select. Arguments: dim(a,d), stride(a,d), address(a), scalar(a), launch_grid(axis),
/// device(workers),
/// device(clusters4): of 4 blocks.
std::string print(Expr expr);
/// Errors quote the text and say what was expected where.
Result<Expr> parse(Arena& arena, std::string_view text);

/// One row as a C expression of type int64_t, fully parenthesised. `operands`: C expressions of that type, without side effects, of the row's
/// operands; an argument's first one is its value.
std::string toC(const Row& row, const std::array<std::string, 3>& operands);

}  // namespace vortex::size
