// What integer expressions of a kernel are worth for the lanes of a warp, as nodes of a graph.
#pragma once

#include "lang/sema/access/trace.h"

namespace vortex::lang::access {

/// A window on memory: element (i, j, …) lies at base + i · strides[0] + j · strides[1] + …, in elements from the start of the storage.
struct View {
  const Variable* root = nullptr;
  Type storage = nullptr;
  NodeId base = 0;
  std::vector<NodeId> strides;
  std::vector<DimExpr> extents;
  Type elem = nullptr;     ///< what is seen of an element of the storage,
  uint32_t firstLeaf = 0;  ///< from this one of its scalars on
};

class Values {
public:
  Values(const Function& kernel, const Roots& roots, const BlockShape& block, Trace& trace);

  const Roots& roots() const { return roots_; }
  NodeId of(const Expr& expr);
  /// The number within its type, see `Fit`; what an access is at, see `Index`.
  NodeId exact(const Expr& expr);
  NodeId index(const Expr& expr);
  NodeId binary(BinaryOp op, const Expr& left, const Expr& right, const Expr& cause);
  NodeId ofVariable(const Variable& variable);
  std::optional<View> viewOf(const Expr& place);

  /// `let variable = value`.
  void bind(const Variable& variable, const Expr& value);
  void set(const Variable& variable, NodeId value) { state_[&variable] = value; }
  bool knows(const Variable& variable) const { return state_.contains(&variable); }

  //===-- control flow ----------------------------------------------------------------------------------------===//
  using State = std::map<const Variable*, NodeId>;
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }
  /// The current state holds where the condition is false, `then` where it is true.
  void join(NodeId condition, const State& then);

  /// How a variable changes from iteration to iteration of a loop: by a multiple of `step` that all lanes agree on.
  struct Growth {
    bool isKnown = true;
    int64_t step = 0;  ///< 0: not at all
  };
  using Growths = std::map<const Variable*, Growth>;
  /// The state at the start of any iteration (or after the loop); returns what the variables are then.
  State start(const State& before, const Growths& growths);
  /// Learns from a body that began with `started`. True if the growth was not yet general enough.
  bool refine(const Variable& variable, NodeId started, Growth& growth);
  /// Binds the loop's variables; the counter of iterations, if the loop walks over a range or list of numbers.
  std::optional<SymbolId> enterLoop(const Expr& loop, const Expr& range);

private:
  NodeId ceilDiv(NodeId a, NodeId b);
  NodeId ofBuiltin(const Expr& expr);
  NodeId ofDim(const DimExpr& dim);
  NodeId ofAtom(const DimAtom& atom);
  NodeId binary(BinaryOp op, NodeId a, NodeId b, const Expr& cause);
  NodeId uniform(Type type, std::string name);
  NodeId position(Builtin builtin, size_t axis, const Expr& expr);
  NodeId threadAxis(size_t axis, const Expr& expr);
  NodeId named(const std::string& name, Symbol symbol);

  const Function& kernel_;
  const Roots& roots_;
  BlockShape block_;
  Graph& graph_;
  NodeId linear_ = 0, warp_ = 0;
  State state_;
  std::map<const Variable*, View> views_;
  std::map<std::string, NodeId> named_;
};

}  // namespace vortex::lang::access
