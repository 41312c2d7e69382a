// Stand-ins for the parameters of generic definitions.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void addBuiltinBounds(BodyState& body, BoundParam& param, syn::List<syn::Type*> bounds, ItemScope* scope);
void addTraitBounds(BodyState& body, Type type, syn::List<syn::Type*> bounds, ItemScope* scope);
Type standIn(BodyState& body, const BoundParam& param);
GenericEnv standIns(BodyState& body, const syn::Generics& params, GenericEnv outer, ItemScope* scope,
                    const syn::FunctionItem* function, syn::List<syn::WherePredicate> more = {});
Type standInSelf(BodyState& body, const TraitRef& trait);

}  // namespace vortex::lang
