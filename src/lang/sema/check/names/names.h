// Built-in names and small questions about syntax.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/sema/types.h"
#include "lang/syntax/ast.h"

namespace vortex::lang {

namespace syn = vortex::lang::syntax;

std::optional<Scalar> scalarNamed(std::string_view text);
const std::vector<std::string>& builtinTypeNames();
bool isPositionBase(std::string_view name);  ///< `thread`, `block`, `warp`, …: positions are their members
/// Does the tensor type name its memory space (or is it an alias, which may)?
bool writesSpace(const syn::Type* type);
/// Does a value of the type bring extents of its own: a tensor in it?
bool bringsExtents(Type type);

}  // namespace vortex::lang
