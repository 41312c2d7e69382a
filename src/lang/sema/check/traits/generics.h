// Generic arguments from the types of values.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Learns generic values from an argument's type.
void infer(BodyState& body, const syn::Type* pattern, Type type, GenericEnv& env, ItemScope* scope);
/// What arguments of its launches tell of a kernel's generic parameters.
std::vector<GenericArgument> genericArguments(BodyState& body, const syn::FunctionItem& kernel, const GenericEnv& env,
                                              ItemScope* scope);
GenericEnv representative(BodyState& body, const syn::Generics& generics, GenericEnv outer, ItemScope* scope);

}  // namespace vortex::lang
