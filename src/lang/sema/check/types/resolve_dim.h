// From written extents to extents.
#pragma once

#include "lang/sema/check/body_state.h"
#include "lang/sema/check/types/resolve_type.h"

namespace vortex::lang {

std::vector<DimExpr> resolveShape(BodyState& body, const syn::GenericArg& arg, DimPolicy policy, bool& ok);
std::optional<DimExpr> dimNamed(BodyState& body, const syn::Name& name, DimPolicy policy);

}  // namespace vortex::lang
