// One call of a built-in function being checked.
#pragma once

#include "lang/sema/builtin/table.h"
#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Arguments are placed by the row's parameter list; a receiver stands at position 0.
struct BuiltinCall {
  BodyState& body;
  const BuiltinRow& row;
  const syn::CallExpr* call = nullptr;
  SourceRange nameRange;
  Expr* receiver = nullptr;
  syn::List<syn::GenericArg> generics;
  Type expected = nullptr;
  std::vector<const syn::Expr*> placed;

  bool has(size_t i) const { return (i == 0 && receiver) || (i < placed.size() && placed[i]); }
  SourceRange range() const { return call->range; }
  /// The argument, checked and dereferenced.
  Expr* arg(size_t i, Type hint = nullptr);
  /// The argument as written: references stay.
  Expr* rawArg(size_t i, Type hint = nullptr);
  bool isUntyped(size_t i) const;
  Expr* failed();
  /// "`exp` needs …": E0303 on the argument.
  Expr* wrongArg(const Expr* arg, std::string_view needs);
};

Expr* callBuiltin(BodyState& body, const BuiltinRow& row, const syn::CallExpr* call, const syn::Name& name,
                  Expr* receiver, syn::List<syn::GenericArg> generics, Type expected);

}  // namespace vortex::lang
