// Associated types.
#pragma once

#include "lang/sema/check/body_state.h"
#include "lang/sema/check/types/resolve_type.h"

namespace vortex::lang {

struct AssociatedCandidate {
  TraitRef trait;  ///< no item: an impl of the type's own
  const syn::TypeAliasItem* declared = nullptr;
  Type type = nullptr;
};

bool declaresType(BodyState& body, const TraitRef& trait, std::string_view name);
/// `T.Item`; an error type after an error (reported).
const TraitRef* ownTrait(BodyState& body);
Type associatedType(BodyState& body, Type self, const syn::Name& name, SourceRange use);
std::vector<AssociatedCandidate> associatedCandidates(BodyState& body, Type self, std::string_view name);
Type aliasedType(BodyState& body, const syn::TypeAliasItem* alias, ItemScope* scope, const GenericEnv& env, Type self,
                 const syn::ImplItem* impl = nullptr);
/// What an associated type is that the trait reference says to be another; null if all are as it says.
Type fixedMismatch(BodyState& body, Type self, const TraitRef& trait);
Type pathType(BodyState& body, const syn::NamedType* type, DimPolicy policy, bool& isPath);
void checkAssociatedTypes(BodyState& body, const ImplBlock& impl, const TraitRef& trait, Type self);
void checkAssociatedBounds(BodyState& body, const TraitRef& trait, const syn::TypeAliasItem* declared, Type type,
                           Type self, SourceRange use);
inline bool hasFixed(BodyState& body, Type self, const TraitRef& trait) { return !fixedMismatch(body, self, trait); }

}  // namespace vortex::lang
