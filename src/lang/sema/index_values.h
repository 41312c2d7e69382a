// Integers of a checked function's tree as values of lang/flow/value, with the conditions that hold at each access. For the checks that still walk
// trees; a graph answers the same questions by itself.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "lang/flow/value/value.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

class IndexValues {
public:
  /// `isFixed`: nothing gives the variable another value while it is in scope. Others are a new unknown wherever they are read.
  IndexValues(const Function& function, std::function<bool(const Variable&)> isFixed);
  /// Of a kernel whose calls are inlined.
  IndexValues(const Function& kernel, const Roots& roots);
  IndexValues(const IndexValues&) = delete;

  flow::Values& values() { return *values_; }
  flow::ValueId of(const Expr& expr);
  flow::ValueId of(const DimExpr& dim);
  /// Of a fixed integer variable.
  flow::ValueId of(const Variable& variable);
  /// The index as a usize: what an access computes with.
  flow::ValueId index(const Expr& expr) { return nodes_.convert(flow::kUsize, of(expr)); }
  /// Never wraps, whatever the loops around it count.
  bool isExact(const Expr& expr) { return values_->form(of(expr), flow::kNoPoint).isExact; }
  flow::ValueId index(const Variable& variable) { return nodes_.convert(flow::kUsize, of(variable)); }
  flow::ValueId constant(__int128 number) { return nodes_.constant(flow::kUsize, number); }
  flow::ValueId op(flow::Op op, flow::ValueId a, flow::ValueId b) { return nodes_.op(op, nodes_.type(a), a, b); }
  flow::ValueId atMost(flow::ValueId a, flow::ValueId b) { return nodes_.op(flow::Op::Le, flow::kBool, a, b); }
  /// Where an Element or Slice of the body stands: enclosing `if`s and `&&`s, and branches that left before.
  flow::PointId pointOf(const Expr& access) const;
  /// What the `let` of the variable gives it; null if it has none.
  const Expr* initialiserOf(const Variable& variable) const;

private:
  void walk(const Expr& expr);
  void walkIf(const Expr& expr);
  void walkFor(const Expr& loop);
  void countIterations(const Expr& loop);
  void walkUnder(const Expr& condition, bool holds, const Expr& body);
  void learnFromLeaving(const Expr& statement);
  void learnLaunch(const Function& function);
  void learnShape(Type type);
  flow::ValueId ofBuiltin(const Expr& expr);
  flow::ValueId ofBinary(const Expr& expr);
  flow::ValueId ofInline(const Expr& expr);
  flow::ValueId ofAtom(const DimAtom& atom);
  flow::ValueId unknown(const Expr& expr);
  std::vector<flow::Condition> conditionsAt(flow::PointId point) const;

  std::function<bool(const Variable&)> isFixed_;
  flow::NodeTable nodes_;
  std::unique_ptr<flow::Values> values_;
  flow::LaunchFacts launch_;
  std::map<const Variable*, const Expr*> initialisers_;
  std::map<const Variable*, flow::ValueId> variables_;
  std::map<flow::ValueId, flow::LoopCounter> counters_;
  std::vector<flow::Condition> facts_;                ///< while walking
  std::vector<std::vector<flow::Condition>> points_;  ///< by PointId
  std::map<const Expr*, flow::PointId> pointOf_;
};

}  // namespace vortex::lang
