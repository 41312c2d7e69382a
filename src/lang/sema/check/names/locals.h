// Variables of a body and the scopes of their names.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Variable* newVariable(BodyState& body, std::string_view name, Type type, SourceRange range, bool isVar);
void declareLocal(BodyState& body, Variable* variable);
/// A variable that the user cannot name, holding `value`; adds the Let to `out`.
Expr* temporary(BodyState& body, Expr* value, std::vector<Expr*>& out);
const BodyState::Local* findLocal(const BodyState& body, std::string_view name);

/// Scope of local names; restores on destruction.
class LocalScope {
public:
  explicit LocalScope(BodyState& body) : body_(body), count_(body.locals.size()), items_(body.items) {}
  ~LocalScope() {
    body_.locals.resize(count_);
    body_.items = items_;
  }
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

private:
  BodyState& body_;
  size_t count_;
  ItemScope* items_;
};

}  // namespace vortex::lang
