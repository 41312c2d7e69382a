// Diagnostics and typed expressions of a body.
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// "in the instance B = 128", or "checked with …"; empty: of no generic function.
std::string argumentsOf(const Instance& instance);
/// Names the instance in a note when the function is generic.
diag::DiagnosticBuilder error(BodyState& body, std::string_view id, SourceRange range, std::string message);
bool notYet(BodyState& body, SourceRange range, std::string_view what);

Expr* make(BodyState& body, ExprKind kind, Type type, SourceRange range);
Expr* make(BodyState& body, ExprKind kind, Type type, SourceRange range, std::vector<Expr*> args);
Expr* makeBuiltin(BodyState& body, Builtin builtin, Type type, SourceRange range, std::vector<Expr*> args,
                  std::vector<int64_t> ints = {});
Expr* makeInt(BodyState& body, __int128 value, Type type, SourceRange range);
Expr* makeVar(BodyState& body, Variable* variable, SourceRange range);
Expr* makeDim(BodyState& body, const DimExpr& dim, SourceRange range);
Expr* errorExpr(BodyState& body, SourceRange range);
Expr* unitExpr(BodyState& body, SourceRange range);

std::string text(const BodyState& body, Type type);
std::string text(const BodyState& body, const DimExpr& dim);
Type usize(const BodyState& body);
bool inKernel(const BodyState& body);
inline bool isError(Type type) { return type->kind == TypeKind::Error; }
inline bool isError(const Expr* expr) { return isError(expr->type); }

}  // namespace vortex::lang
