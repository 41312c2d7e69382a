// Index arithmetic as a graph, evaluated for the lanes of a warp. Sums and products are exact for any unknowns; division, remainder, bits and
// comparisons are exact where the unknowns do not reach the result, and otherwise ask for a case distinction on one of them: over all its
// values when they are few, else over its residues.
//
// Integers are taken not to overflow, and differences of unsigned numbers not to fall below zero: an index where one does lies outside its tensor.
#pragma once

#include "lang/sema/access/lane_value.h"

#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace vortex::lang {
struct Expr;
}

namespace vortex::lang::access {

using NodeId = uint32_t;

enum class Op : uint8_t {
  Constant,
  Symbol,
  Lane,
  Unknown,
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  And,
  Or,
  Xor,
  Shl,
  Shr,
  Min,
  Max,
  Lt,
  Le,
  Eq,  // 0 or 1
  Both,
  Either,
  Not,
  Select,  // condition, then, else
  Within,  // a place along a dimension of `value` elements: uniform ones are no more than some number in 0 … value - 1
};

struct Node {
  Op op = Op::Constant;
  std::array<NodeId, 3> args{};
  int64_t value = 0;            ///< Constant; Symbol: its id; Within: the extent
  const Expr* cause = nullptr;  ///< Unknown
  auto key() const { return std::tuple(op, args, value, cause); }
};

class Graph {
public:
  NodeId constant(int64_t value) { return intern({Op::Constant, {}, value, nullptr}); }
  NodeId lane() { return intern({Op::Lane, {}, 0, nullptr}); }
  /// Differs between lanes in a way that is not known.
  NodeId unknown(const Expr* cause) { return intern({Op::Unknown, {}, 0, cause}); }
  NodeId symbol(Symbol symbol);
  NodeId make(Op op, NodeId a, NodeId b = 0, NodeId c = 0, int64_t value = 0);
  const Node& node(NodeId id) const { return nodes_[id]; }
  std::optional<int64_t> asConstant(NodeId id) const;
  /// Depends on something that differs between lanes in an unknown way.
  bool hasUnknown(NodeId id) const;

  std::vector<Symbol> symbols;

private:
  friend class Evaluation;
  NodeId intern(Node node);

  std::vector<Node> nodes_;
  std::map<decltype(std::declval<Node>().key()), NodeId> known_;
  std::map<NodeId, SymbolId> opaque_;  ///< stands for a uniform node that is not linear
};

/// Why there is no answer: a distinction on `symbol` may give one, else `cause` (if known) is what cannot be seen through.
struct Undecided {
  std::optional<SymbolId> symbol;
  int64_t modulus = 0;  ///< residues that suffice; 0: only the value helps
  const Expr* cause = nullptr;
};

enum class Truth : uint8_t { No, Yes, Unknown };

class Evaluation {
public:
  explicit Evaluation(Graph& graph) : graph(graph) {}

  /// Nothing: see `undecided`.
  std::optional<LaneValue> value(NodeId id);
  std::array<Truth, kLanes> truth(NodeId id);
  struct Range {
    std::optional<int64_t> lowest, highest;
  };
  Range range(const LaneValue& value) const;
  Range rangeOfLane(const LaneValue& value, unsigned lane) const;
  /// A uniform value stands for more than it really can be.
  bool isApproximate = false;
  Undecided undecided;

  /// "`stride` = 16" for every symbol of the source whose value this case fixes.
  std::string describeCase() const;
  /// Calls `visit` for cases that cover everything; where it returns something with a symbol, the case is split and visited again. Returns
  /// what could not be decided, after at most `budget` visits.
  using Visit = std::function<std::optional<Undecided>(Evaluation&)>;
  static std::optional<Undecided> forEachCase(Graph& graph, const Visit& visit, unsigned budget = 2048);

  Graph& graph;

private:
  struct Residue {
    int64_t factor, rest;
    SymbolId symbol;  ///< unused when the factor is 0
  };
  std::optional<LaneValue> compute(const Node& node, NodeId id);
  std::optional<LaneValue> divide(const Node& node, NodeId id);
  std::optional<LaneValue> bits(const Node& node, NodeId id);
  std::optional<LaneValue> remainderOf(const LaneValue& value, int64_t modulus, NodeId id);
  std::optional<LaneValue> extremum(const Node& node, NodeId id);
  bool isUniformCondition(NodeId id);
  std::optional<LaneValue> select(const Node& node, NodeId id);
  LaneValue resolve(SymbolId symbol) const;
  LaneValue opaque(NodeId id, std::optional<int64_t> lowest, std::optional<int64_t> highest);
  std::optional<LaneValue> give(const LaneValue& culprit, int64_t modulus, const Expr* cause = nullptr);
  static std::optional<Undecided> split(const Evaluation& from, const Undecided& on, const Visit& visit,
                                        unsigned& budget);
  static std::optional<Undecided> visitCase(Evaluation& evaluation, const Visit& visit, unsigned& budget);

  std::map<SymbolId, Residue> cases_;
  std::map<NodeId, LaneValue> values_;
};

}  // namespace vortex::lang::access
