#include "lang/sema/check/checker.h"

namespace vortex::lang {

Checker::Checker(Session& session, Instance* instance, Function* function, ItemScope* scope)
    : session(session), types(session.types), instance(instance), function(function), items(scope) {
  if (instance) {
    generics = instance->generics;
    selfType = instance->selfType;
    boundLists.push_back(&instance->item->generics);
    if (instance->impl)
      boundLists.push_back(&instance->impl->generics);
  }
}

namespace {

std::string shortened(const GenericEnv& generics) {
  constexpr size_t kMax = 120;
  const std::string whole = lang::text(generics);
  return whole.size() <= kMax ? whole : whole.substr(0, kMax) + "…";
}

}  // namespace

diag::DiagnosticBuilder Checker::error(std::string_view id, SourceRange range, std::string message) {
  auto builder = session.sink().error(id, range, std::move(message));
  if (instance && !instance->generics.empty() && !instance->isDefinition)
    builder.note((instance->isRepresentative ? "checked with " : "in the instance ") + shortened(instance->generics));
  return builder;
}

Expr* Checker::make(ExprKind kind, Type type, SourceRange range, std::vector<Expr*> args) {
  Expr* expr = make(kind, type, range);
  expr->args = std::move(args);
  return expr;
}
Expr* Checker::makeBuiltin(Builtin builtin, Type type, SourceRange range, std::vector<Expr*> args,
                           std::vector<int64_t> ints) {
  Expr* expr = make(ExprKind::Builtin, type, range, std::move(args));
  expr->builtin = builtin;
  expr->ints = std::move(ints);
  return expr;
}
Expr* Checker::makeInt(__int128 value, Type type, SourceRange range) {
  Expr* expr = make(ExprKind::Int, type, range);
  expr->intValue = value;
  return expr;
}
Expr* Checker::makeVar(Variable* variable, SourceRange range) {
  Expr* expr = make(ExprKind::Var, variable->type, range);
  expr->variable = variable;
  return expr;
}
Expr* Checker::makeDim(const DimExpr& dim, SourceRange range) {
  if (auto value = dim.asConstant())
    return makeInt(*value, usize(), range);
  Expr* expr = make(ExprKind::DimValue, usize(), range);
  expr->dim = dim;
  return expr;
}

bool Checker::notYet(SourceRange range, std::string_view what) {
  error("E0409", range, std::string(what) + " is not supported yet");
  return false;
}

Variable* Checker::newVariable(std::string_view name, Type type, SourceRange range, bool isVar) {
  auto variable = std::make_unique<Variable>();
  variable->name = std::string(name);
  variable->type = type;
  variable->range = range;
  variable->isVar = isVar || type->isTensor();
  variable->index = static_cast<uint32_t>(function->variables.size());
  function->variables.push_back(std::move(variable));
  return function->variables.back().get();
}

void Checker::declareLocal(Variable* variable) {
  locals.push_back({variable->name, variable, std::nullopt, variable->range});
}

Expr* Checker::temporary(Expr* value, std::vector<Expr*>& out) {
  Variable* variable = newVariable("", value->type, value->range, false);
  Expr* let = make(ExprKind::Let, types.unit(), value->range, {value});
  let->variable = variable;
  out.push_back(let);
  return makeVar(variable, value->range);
}

const Checker::Local* Checker::findLocal(std::string_view name) const {
  for (size_t i = locals.size(); i-- > 0;)
    if (locals[i].name == name)
      return &locals[i];
  return nullptr;
}

}  // namespace vortex::lang
