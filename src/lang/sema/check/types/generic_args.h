// Generic arguments, and the types that names with arguments stand for.
#pragma once

#include "lang/sema/check/types/resolve_type.h"

namespace vortex::lang {

struct StructInstance;

Type typeNamed(BodyState& body,
               const syn::Expr* expr);  ///< the type an expression such as `Color`, `T`, `mod.S::<f32>` names, or null
Type aliasType(BodyState& body, const syn::TypeAliasItem* item, ItemScope* scope, syn::List<syn::GenericArg> args,
               SourceRange range, DimPolicy policy);
/// Fields of the instance typed in this function's dimension variables.
Type structType(BodyState& body, const StructInstance* instance, DimPolicy policy);
bool bindExplicitGenerics(BodyState& body, GenericEnv& env, size_t first, syn::List<syn::GenericArg> args,
                          SourceRange range, DimPolicy policy = DimPolicy::Known);
GenericEnv genericEnv(const syn::Generics& params, GenericEnv outer = {});
std::optional<GenericValue> genericArg(BodyState& body, const syn::GenericArg& arg, const syn::GenericParam& param,
                                       DimPolicy policy = DimPolicy::Known);

}  // namespace vortex::lang
