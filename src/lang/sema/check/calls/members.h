// Functions and constants of types.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// A function or constant of a type: in an impl of its own, of a trait, or the trait's default.
struct Member {
  const syn::Item* item = nullptr;
  ItemScope* scope = nullptr;
  GenericEnv env;
  std::optional<TraitRef> trait;        ///< none: a member of the type's own
  const syn::ImplItem* impl = nullptr;  ///< none: the trait's default, or what a bound promises
  bool isWritten = false;  ///< in an instance: of the trait that the bounds name, with the arguments that they give it
};

Expr* associatedConst(BodyState& body, Type type, const syn::Name& name, SourceRange range);
Expr* callOfTrait(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, const Symbol& symbol,
                  Type expected);
/// All that the name may mean; those of one trait with several arguments are told apart by how they are called.
std::vector<Member> findMembers(BodyState& body, Type type, std::string_view name, syn::ItemKind kind);
std::vector<Member> traitMembers(BodyState& body, Type type, const TraitRef& trait, std::string_view name,
                                 syn::ItemKind kind);
void reportAmbiguous(BodyState& body, Type type, const std::vector<Member>& found, std::string_view name,
                     syn::ItemKind kind, SourceRange use);
/// Of the functions or constants that impls and traits give to the type.
std::vector<std::string> memberNames(BodyState& body, Type type, syn::ItemKind kind);
void unknownMember(BodyState& body, Type type, const syn::Name& name, std::string_view what);

}  // namespace vortex::lang
