// What parameters say of arguments before these are checked: literals and closures take their types from it.
#pragma once

#include "lang/sema/check/calls/calls.h"

namespace vortex::lang {

/// The parameter's type as far as it is known, with extents of their own; null if generics are missing.
Type hintFor(BodyState& body, const syn::Type* written, const GenericEnv& env, const FunctionCall& target);
/// Binds what a parameter calls the length of a list that is written, and of the lists in it.
void inferLengths(BodyState& body, const syn::Type* written, const syn::Expr* value, GenericEnv& env, ItemScope* scope);

}  // namespace vortex::lang
