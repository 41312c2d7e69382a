#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/make.h"

namespace vortex::lang {

Variable* newVariable(BodyState& body, std::string_view name, Type type, SourceRange range, bool isVar) {
  auto variable = std::make_unique<Variable>();
  variable->name = std::string(name);
  variable->type = type;
  variable->range = range;
  variable->isVar = isVar || type->isTensor();
  variable->index = static_cast<uint32_t>(body.function->variables.size());
  body.function->variables.push_back(std::move(variable));
  return body.function->variables.back().get();
}

void declareLocal(BodyState& body, Variable* variable) {
  body.locals.push_back({variable->name, variable, std::nullopt, variable->range});
}

Expr* temporary(BodyState& body, Expr* value, std::vector<Expr*>& out) {
  Variable* variable = newVariable(body, "", value->type, value->range, false);
  Expr* let = make(body, ExprKind::Let, body.types.unit(), value->range, {value});
  let->variable = variable;
  out.push_back(let);
  return makeVar(body, variable, value->range);
}

const BodyState::Local* findLocal(const BodyState& body, std::string_view name) {
  for (size_t i = body.locals.size(); i-- > 0;)
    if (body.locals[i].name == name)
      return &body.locals[i];
  return nullptr;
}

}  // namespace vortex::lang
