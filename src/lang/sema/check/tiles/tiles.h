// `@tile` loops: offsets of tiles and what they return.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void tileAttribute(BodyState& body, const syn::Attribute& attribute);
std::vector<Expr*> tileOffsets(BodyState& body);
Expr* returnedTile(BodyState& body, Expr* value, Type result, SourceRange because);

}  // namespace vortex::lang
