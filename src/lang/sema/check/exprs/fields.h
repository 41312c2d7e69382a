// Operators of types with `PrimeField`.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool isField(BodyState& body, Type type);
Expr* fieldCall(BodyState& body, Type field, std::string_view function, std::vector<Expr*> args, SourceRange range);
Expr* fieldBinary(BodyState& body, BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange);
Expr* repeatedPlace(BodyState& body, Expr* place, std::vector<Expr*>& before);
Expr* fieldAssign(BodyState& body, const syn::AssignExpr* expr, BinaryOp op, Expr* target, Expr* value);

}  // namespace vortex::lang
