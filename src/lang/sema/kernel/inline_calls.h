#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/program.h"

#include <map>

namespace vortex::lang {

/// Copies trees of one function into another, with fresh variables and dimension variables replaced.
struct CloneMap {
  Program& program;
  Function& into;
  std::map<const Variable*, Variable*> variables;
  /// By DimVarId of the source function.
  std::vector<std::optional<DimExpr>> dims;
};

/// Scalars, and what is made of them alone.
bool isPlainValue(Type type);

Variable* cloneVariable(const Variable& variable, CloneMap& map);
Expr* cloneExpr(const Expr& expr, CloneMap& map);

/// Replaces every Call in the kernel's body by Inline, transitively. Recursion, launches and host-only functions are reported.
/// False if anything was.
bool inlineCalls(Program& program, Function& kernel, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
