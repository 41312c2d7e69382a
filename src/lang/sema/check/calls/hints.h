// What parameters say of arguments before these are checked: literals and closures take their types from it.
#pragma once

#include "lang/sema/check/calls/calls.h"

namespace vortex::lang {

/// The parameter's type as far as it is known, with extents of their own; null if generics are missing.
Type hintFor(BodyState& body, const syn::Type* written, const GenericEnv& env, const FunctionCall& target);
/// Of a list that is written its length, and those of the lists in it; all else is an error type.
Type outline(BodyState& body, const syn::Expr* value);

}  // namespace vortex::lang
