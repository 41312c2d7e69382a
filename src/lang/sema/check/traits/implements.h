// Traits by name, and which type has which.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

std::optional<TraitRef> traitNamed(BodyState& body, const syn::Type* bound, ItemScope* scope, bool report);
std::optional<TraitRef> findTrait(BodyState& body, const syn::Type* bound, ItemScope* scope, bool report);
bool resolveTraitArgs(BodyState& body, TraitRef& trait, const syn::NamedType* named);
void withSupertraits(BodyState& body, const TraitRef& trait, TraitSet& builtins, std::vector<TraitRef>& traits,
                     Type self);
void addBuiltins(BodyState& body, const TraitRef& trait, TraitSet& builtins, std::vector<const syn::TraitItem*>& seen);
bool hasTrait(BodyState& body, const GenericValue& value, const TraitRef& trait);
std::vector<TraitRef> listedTraits(BodyState& body, Type type, const syn::TraitItem* trait);
bool isCopy(Type type);

}  // namespace vortex::lang
