// Attributes of functions, statements and structs.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void functionAttributes(BodyState& body, const syn::FunctionItem* item);
void statementAttributes(BodyState& body, const syn::Stmt* stmt);
void structAttributes(BodyState& body, const syn::Item* item);

}  // namespace vortex::lang
