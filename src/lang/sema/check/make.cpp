#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"

namespace vortex::lang {

namespace {

std::string shortened(const GenericEnv& generics) {
  constexpr size_t kMax = 120;
  const std::string whole = lang::text(generics);
  return whole.size() <= kMax ? whole : whole.substr(0, kMax) + "…";
}

}  // namespace

std::string argumentsOf(const Instance& instance) {
  if (instance.generics.empty() || instance.isDefinition)
    return "";
  return (instance.isRepresentative ? "checked with " : "in the instance ") + shortened(instance.generics);
}

diag::DiagnosticBuilder error(BodyState& body, std::string_view id, SourceRange range, std::string message) {
  auto builder = body.session.sink().error(id, range, std::move(message));
  if (std::string note = body.instance ? argumentsOf(*body.instance) : ""; !note.empty())
    builder.note(std::move(note));
  return builder;
}

Expr* make(BodyState& body, ExprKind kind, Type type, SourceRange range) {
  Expr* out = body.session.program.newExpr(kind, type, range);
  out->mayWrap = body.uncheckedOverflow;
  return out;
}
Expr* make(BodyState& body, ExprKind kind, Type type, SourceRange range, std::vector<Expr*> args) {
  Expr* expr = make(body, kind, type, range);
  expr->args = std::move(args);
  return expr;
}
Expr* makeBuiltin(BodyState& body, Builtin builtin, Type type, SourceRange range, std::vector<Expr*> args,
                  std::vector<int64_t> ints) {
  Expr* expr = make(body, ExprKind::Builtin, type, range, std::move(args));
  expr->builtin = builtin;
  expr->ints = std::move(ints);
  return expr;
}
Expr* makeInt(BodyState& body, __int128 value, Type type, SourceRange range) {
  Expr* expr = make(body, ExprKind::Int, type, range);
  expr->intValue = value;
  return expr;
}
Expr* makeVar(BodyState& body, Variable* variable, SourceRange range) {
  Expr* expr = make(body, ExprKind::Var, variable->type, range);
  expr->variable = variable;
  return expr;
}
Expr* makeDim(BodyState& body, const DimExpr& dim, SourceRange range) {
  if (auto value = dim.asConstant())
    return makeInt(body, *value, usize(body), range);
  Expr* expr = make(body, ExprKind::DimValue, usize(body), range);
  expr->dim = dim;
  return expr;
}

Expr* errorExpr(BodyState& body, SourceRange range) { return make(body, ExprKind::Unit, body.types.error(), range); }
Expr* unitExpr(BodyState& body, SourceRange range) { return make(body, ExprKind::Unit, body.types.unit(), range); }

std::string text(const BodyState& body, Type type) { return text(type, body.function->dimNames()); }
std::string text(const BodyState& body, const DimExpr& dim) { return dim.text(body.function->dimNames()); }
Type usize(const BodyState& body) { return body.types.scalar(Scalar::Usize); }
bool inKernel(const BodyState& body) { return body.instance && body.instance->inKernel; }

bool notYet(BodyState& body, SourceRange range, std::string_view what) {
  error(body, "E0409", range, std::string(what) + " is not supported yet");
  return false;
}

}  // namespace vortex::lang
