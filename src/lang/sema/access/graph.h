// Index arithmetic as a graph, evaluated for the lanes of a warp. Sums and products are exact for any unknowns; division, remainder, bits and
// comparisons are exact where the unknowns do not reach the result, and otherwise ask for a case distinction on one of them: over all its
// values when they are few, else over its residues.
//
// A node stands for a machine integer of w bits and is known modulo 2^w only: `0 - 1` of a u32 evaluates to -1. Sums, products, bits and
// narrower types need no more. What depends on the number itself (order, quotients, wider types) takes its operands through `Fit`, which
// gives the number within the type, or `Undecided` where unknowns may or may not wrap.
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
  Fit,     // the number within the type of `value` (Machine::code)
  Index,   // likewise; what may wrap stays as it is: right modulo 2^w, and the access happens inside its tensor only
  Within,  // a place along a dimension of `value` elements: uniform ones are no more than some number in 0 … value - 1
};

struct Node {
  Op op = Op::Constant;
  std::array<NodeId, 3> args{};
  Wide value = 0;               ///< Constant; Symbol: its id; Within: the extent; Fit: the type
  const Expr* cause = nullptr;  ///< Unknown
  auto key() const { return std::tuple(op, args, value, cause); }
};

/// An integer type.
struct Machine {
  unsigned width = 64;
  bool isSigned = false;
  Wide lowest() const { return isSigned ? -(Wide(1) << (width - 1)) : 0; }
  Wide highest() const { return (Wide(1) << (isSigned ? width - 1 : width)) - 1; }
  Wide wrapped(Wide number) const { return floorModulo(number - lowest(), Wide(1) << width) + lowest(); }
  Wide code() const { return width * 2 + isSigned; }
  static Machine of(Wide code) { return {static_cast<unsigned>(code / 2), code % 2 != 0}; }
};

class Graph {
public:
  NodeId constant(Wide value) { return intern({Op::Constant, {}, value, nullptr}); }
  NodeId lane() { return intern({Op::Lane, {}, 0, nullptr}); }
  /// Differs between lanes in a way that is not known.
  NodeId unknown(const Expr* cause) { return intern({Op::Unknown, {}, 0, cause}); }
  NodeId symbol(Symbol symbol);
  NodeId make(Op op, NodeId a, NodeId b = 0, NodeId c = 0, Wide value = 0);
  /// The number of a within its type.
  NodeId fit(NodeId a, Machine type, Op op = Op::Fit);
  const Node& node(NodeId id) const { return nodes_[id]; }
  std::optional<Wide> asConstant(NodeId id) const;
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
  Wide modulus = 0;  ///< residues that suffice; 0: only the value helps
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
    std::optional<Wide> lowest, highest;
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
    Wide factor, rest;
    SymbolId symbol;  ///< unused when the factor is 0
  };
  std::optional<LaneValue> compute(const Node& node, NodeId id);
  std::optional<LaneValue> divide(const Node& node, NodeId id);
  std::optional<LaneValue> bits(const Node& node, NodeId id);
  std::optional<LaneValue> remainderOf(const LaneValue& value, Wide modulus, NodeId id);
  std::optional<LaneValue> fit(const Node& node, NodeId id);
  std::optional<LaneValue> extremum(const Node& node, NodeId id);
  bool isUniformCondition(NodeId id);
  std::optional<LaneValue> select(const Node& node, NodeId id);
  LaneValue resolve(SymbolId symbol) const;
  LaneValue opaque(NodeId id, std::optional<Wide> lowest, std::optional<Wide> highest);
  std::optional<LaneValue> give(const LaneValue& culprit, Wide modulus, const Expr* cause = nullptr);
  static std::optional<Undecided> split(const Evaluation& from, const Undecided& on, const Visit& visit,
                                        unsigned& budget);
  static std::optional<Undecided> visitCase(Evaluation& evaluation, const Visit& visit, unsigned& budget);

  std::map<SymbolId, Residue> cases_;
  std::map<NodeId, LaneValue> values_;
};

}  // namespace vortex::lang::access
