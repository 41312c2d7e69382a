// Items by name, and what is said about a name that means nothing.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool checkPublic(BodyState& body, const Symbol& symbol, const syn::Name& name);
void unknownInModule(BodyState& body, const Symbol& module, const syn::Name& name);
/// The module, type or item a path of names leads to; null if the first name is a value or unknown (nothing reported).
const Symbol* findSymbol(BodyState& body, const syn::Expr* expr);
/// One error for all uses in a function. `assigned`: where it stands for the name of a variable, perhaps without its `let`; `member`: what is
/// read from it.
void unknownName(BodyState& body, const syn::Name& name, const syn::AssignExpr* assigned = nullptr,
                 std::string_view member = {});
/// Whether `message` was said of this function already, or that a type in it is wrong which may declare the name.
bool isSaid(const BodyState& body, const syn::Name& name, const std::string& message);
/// Whether it names a local, an item, a generic parameter or something built in.
bool isKnownName(const BodyState& body, std::string_view name);

}  // namespace vortex::lang
