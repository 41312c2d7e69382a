// Unary and binary operators.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void hostTensorArithmetic(BodyState& body, SourceRange range);
Expr* checkUnary(BodyState& body, const syn::UnaryExpr* expr, Type expected);
Expr* checkBinary(BodyState& body, const syn::BinaryExpr* expr, Type expected);
Expr* binary(BodyState& body, BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange);
void badOperands(BodyState& body, BinaryOp op, const Expr* lhs, const Expr* rhs, SourceRange opRange);
std::string_view operatorText(BinaryOp op);
/// Of scalars: `@` has none.
BinaryOp scalarOperator(syn::BinaryOp op);

}  // namespace vortex::lang
