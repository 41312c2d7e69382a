// What bounds demand of arguments and grant to generic definitions.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// E0307 at `use` for each bound that the arguments do not satisfy; `self` is what `Self` means there.
bool checkBounds(BodyState& body, const syn::Generics& generics, const GenericEnv& env, SourceRange use,
                 ItemScope* scope = nullptr, Type self = nullptr);
void assume(BodyState& body, const syn::Generics& generics);
/// In an instance: this trait with the arguments that the bounds of its parameters and their supertraits give it for the type.
std::vector<TraitRef> writtenTraits(BodyState& body, Type type, const syn::TraitItem* trait);
bool assumes(BodyState& body, Type type, const TraitRef& trait);
bool checkBoundsQuietly(BodyState& body, const syn::Generics& generics, const GenericEnv& env, ItemScope* scope);
std::optional<TraitRef> boundTrait(BodyState& body, const syn::Type* bound, const GenericEnv& env, ItemScope* scope,
                                   Type self, Type of, bool report);
std::string describeBound(const BodyState& body, const syn::Type* bound, const TraitRef& trait);
/// The generic parameter that a value or element of the type stands for; null if none.
const BoundParam* paramOf(Type type);
const BoundParam* paramOf(const GenericValue& value);
std::string boundWith(const BoundParam& param, std::string_view bound);
/// In a generic definition: do the bounds of the type's parameter allow the operation? True for every other type; reports E0350.
bool grants(BodyState& body, Type type, std::initializer_list<BuiltinTrait> anyOf, SourceRange use,
            std::string_view operation);
/// The same for the memory space of a tensor.
bool spaceGrants(BodyState& body, Type type, BuiltinTrait trait, SourceRange use, std::string_view operation);
void missingBound(BodyState& body, const BoundParam& param, std::string_view bound, SourceRange use,
                  std::string_view operation);

}  // namespace vortex::lang
