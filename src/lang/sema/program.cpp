#include "lang/sema/program.h"

#include <algorithm>

namespace vortex::lang {

std::string_view spelling(Builtin builtin) {
  constexpr std::string_view kSpellings[] = {
#define VORTEX_BUILTIN_SPELLING(name, spelling, ...) spelling,
      VORTEX_BUILTINS(VORTEX_BUILTIN_SPELLING)
#undef VORTEX_BUILTIN_SPELLING
  };
  return kSpellings[static_cast<size_t>(builtin)];
}

void addCheck(Function& function, LaunchCheck check) {
  if (std::ranges::find(function.checks, check) == function.checks.end())
    function.checks.push_back(std::move(check));
}

std::vector<std::string> Function::dimNames() const {
  std::vector<std::string> names;
  for (const DimBinding& dim : dims)
    names.push_back(dim.name);
  return names;
}

Expr* Program::newExpr(ExprKind kind, Type type, source::SourceRange range) {
  Expr& expr = exprs.emplace_back();
  expr.kind = kind;
  expr.type = type;
  expr.range = range;
  return &expr;
}

}  // namespace vortex::lang
