// Items by name, and what is said about a name that means nothing.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool checkPublic(BodyState& body, const Symbol& symbol, const syn::Name& name);
void unknownInModule(BodyState& body, const Symbol& module, const syn::Name& name);
/// The module, type or item a path of names leads to; null if the first name is a value or unknown (nothing reported).
const Symbol* findSymbol(BodyState& body, const syn::Expr* expr);
void unknownName(BodyState& body, const syn::Name& name);

}  // namespace vortex::lang
