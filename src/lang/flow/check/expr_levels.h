// Who agrees on the expressions and variables of a kernel as they are written: what code generation goes by, which has one storage for each variable.
// Control comes from the graph; here it is only followed whose value becomes whose.
#pragma once

#include <map>
#include <set>

#include "lang/flow/check/uniform.h"
#include "lang/sema/children.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {

/// Work of the whole block on tensors, rather than naming or subscripting them.
bool isTileWork(const Expr& expr);

class ExprLevels {
public:
  /// Who gets somewhere, and the condition that decides it; null where nothing does.
  struct Control {
    Level level = Level::Block;
    const Expr* cause = nullptr;
  };

  /// Raises the levels of branches to those of their conditions as written.
  ExprLevels(const Graph& graph, const Structure& structure, Uniformity& uniformity, const Roots& roots);

  Level of(const Expr& expr) const;
  Level of(const Variable* variable) const;
  Control controlOf(const Expr& expr) const;
  /// The thread-dependent leaf that makes the expression vary, through the assignments of variables; null if it does not.
  const Expr* originOf(const Expr& expr) const {
    std::set<const Variable*> seen;
    return originOf(expr, seen);
  }
  /// The variable whose value a place is part of, through fields, array elements and references; null for tensors in memory.
  const Variable* valueRoot(const Expr& place) const;

private:
  using Raised = std::map<const void*, Control>;
  void raise(Raised& map, const void* key, Control control);
  void assign(const Variable* variable, Level level, Control control, const Expr& cause);
  void raiseBranches();
  Level visit(const Expr& expr);
  Level visitKind(const Expr& expr);
  Level visitChildren(const Expr& expr);
  Level visitLoad(const Expr& expr);
  Level visitPlace(const Expr& place);
  Level visitAssign(const Expr& expr);
  Level visitIf(const Expr& expr);
  Level visitLoop(const Expr& expr);
  Level visitBuiltin(const Expr& expr);
  Level visitInline(const Expr& expr);
  Level withGraph(const Expr& expr, Level level) const;
  void store(const Expr& expr, Level level);
  Control controlAt(const Expr& expr, BlockId block) const;
  const Expr* originOf(const Expr& expr, std::set<const Variable*>& seen) const;

  const Graph& graph_;
  const Structure& structure_;
  Uniformity& uniformity_;
  const Roots& roots_;
  Raised variables_, handed_;  ///< handed over to a loop or call
  std::map<const Expr*, Level> levels_;
  std::map<const Expr*, BlockId> blocks_;
  std::map<const Expr*, const Expr*> wholeConditions_;  ///< of the parts of `a && b`
  mutable std::map<uint32_t, BlockId> causes_;          ///< by block; of one round
  std::vector<const Expr*> loops_, calls_;
  BlockId at_{0};
  bool changed_ = false;
};

}  // namespace vortex::lang::flow
