// Branches, loops and closures.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkIf(BodyState& body, const syn::IfExpr* expr, Type expected);
bool checkBranchCount(BodyState& body, size_t count, SourceRange range);
Expr* checkWhile(BodyState& body, const syn::WhileExpr* expr);
Expr* checkLoop(BodyState& body, const syn::LoopExpr* expr, Type expected);
Expr* checkFor(BodyState& body, const syn::ForExpr* expr);
Expr* checkBreak(BodyState& body, const syn::BreakExpr* expr);
Expr* checkContinue(BodyState& body, const syn::ContinueExpr* expr);
Expr* checkClosure(BodyState& body, const syn::ClosureExpr* expr, Type expected);
Expr* condition(BodyState& body, const syn::Expr* expr);

}  // namespace vortex::lang
