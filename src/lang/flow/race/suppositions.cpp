#include "lang/flow/race/suppositions.h"

#include <algorithm>

#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostSuppositions = 10;
/// Of numbers of 64 bits that are supposed to be small: quotients of them times blocks and threads are far from the end.
constexpr __int128 kMostOfSmall = __int128(1) << 31;
/// Of products of 64 bits: far from their end, and more than any memory has.
constexpr __int128 kMostOfWide = __int128(1) << 62;

/// The largest number of the narrowest integers that subscripts are computed in; those of 8 and 16 bits are no sizes.
__int128 mostOf(Pair& pair) {
  const NodeTable& nodes = pair.nodes();
  std::vector<ValueId> pending;
  for (const Pair::Coordinate& coordinate : pair.coordinates())
    pending.insert(pending.end(), {coordinate.first, coordinate.second});
  __int128 most = kMostOfWide;
  walkOperands(nodes, std::move(pending), [&](ValueId, const Node& node) {
    if (node.kind != NodeKind::Constant && node.type.width >= 32)
      most = std::min(most, node.type.highest());
    return false;
  });
  return most;
}

class Finder {
public:
  Finder(Pair& pair, bool areSmall)
      : pair_(pair), graph_(pair.view().graph), nodes_(pair.nodes()), most_(mostOf(pair)), areSmall_(areSmall) {}

  std::vector<Supposition> run() {
    for (const Pair::Coordinate& coordinate : pair_.coordinates())
      for (ValueId side : {coordinate.first, coordinate.second})
        pair_.leavesOf(side, leaves_);
    if (std::any_of(leaves_.begin(), leaves_.end(), [&](ValueId leaf) { return isOfMemory(leaf); }))
      return {};
    for (const Condition& condition : pair_.conditions())
      pair_.leavesOf(condition.value, leaves_);
    std::vector<ValueId> extents, scalars;
    for (ValueId leaf : leaves_)
      if (nodes_[leaf].kind == NodeKind::Extent)
        extents.push_back(leaf);
      else if (graph_.parameterOf(leaf))
        scalars.push_back(leaf);
    if (most_ < kMostElements) {
      addThreads();
      for (ValueId extent : extents)
        addProduct({extent}, mostOfOne());
      for (const LaunchFacts::Product& product : pair_.view().launch.products)
        if (std::any_of(product.factors.begin(), product.factors.end(), [&](ValueId factor) {
              return std::find(extents.begin(), extents.end(), factor) != extents.end();
            }))
          addProduct(product.factors);
    }
    for (ValueId extent : extents)  // `i * (i + 1) / 2`
      addProduct({extent, extent});
    for (size_t i = 0; i < scalars.size(); ++i) {
      if (const MachineType type = nodes_.type(scalars[i]); type.width >= 32 && shiftsByValues())
        addProduct({scalars[i]}, most_ < kMostElements ? 30 : 62);
      if (areSmall_ || ((nodes_.type(scalars[i]) == kUsize || most_ < kMostElements) && adds()))
        addProduct({scalars[i]}, areSmall_ && most_ >= kMostElements ? kMostOfSmall : mostOfOne());
      for (ValueId extent : extents)
        addProduct({extent, scalars[i]});
      for (size_t j = i; j < scalars.size(); ++j)
        addProduct({scalars[i], scalars[j]});
    }
    if (scalars.size() > 2)  // `(y * W + k) * P + p`
      addProduct(scalars);
    return std::move(found_);
  }

private:
  /// A subscript is a remainder: of a sum that must not wrap.
  bool goesRound() const {
    const auto& coordinates = pair_.coordinates();
    return std::any_of(coordinates.begin(), coordinates.end(), [&](const Pair::Coordinate& each) {
      ValueId value = each.first;
      while (nodes_[value].kind == NodeKind::Convert)
        value = nodes_.operand(value, 0);
      return nodes_[value].kind == NodeKind::Op && nodes_[value].op == Op::Rem;
    });
  }

  /// `1 << stage`: what is shifted out of its type is no power of two, and numbers beyond those of bits mean others.
  bool shiftsByValues() const {
    bool found = false;
    for (const Pair::Coordinate& coordinate : pair_.coordinates())
      walkOperands(nodes_, {coordinate.first, coordinate.second}, [&](ValueId value, const Node& node) {
        found |= node.kind == NodeKind::Op && (node.op == Op::Shl || node.op == Op::Shr) &&
                 !nodes_.isConstant(nodes_.operand(value, 1));
        return false;
      });
    return found;
  }

  /// A number and a step, or one and another.
  bool adds() const { return pair_.hasOpenCounters() || goesRound(); }

  /// Of narrow integers two must have room in a sum, or four where they are to be small. Counters of subscripts end with what there is.
  __int128 mostOfOne() const {
    if (most_ >= kMostElements)
      return pair_.hasOpenCounters() ? kMostElements : most_;
    return areSmall_ ? most_ / 4 : adds() ? most_ / 2 : most_;
  }

  bool isOfMemory(ValueId leaf) const {
    const auto origin = pair_.leaves().find(indexOf(leaf));
    const ValueId value = origin == pair_.leaves().end() ? leaf : origin->second;
    if (value == kNoValue)
      return false;
    const NodeKind kind = nodes_[value].kind;
    return kind == NodeKind::Load || kind == NodeKind::Ticket ||
           (kind == NodeKind::Unknown && (graph_.definition(value) != kNoStep || nodes_.cause(value)));
  }

  /// In no axis: all of them together are more.
  void addThreads() {
    Supposition made;
    made.limit.ofThreads = true;
    const __int128 most = areSmall_ ? most_ / 4 : pair_.hasOpenCounters() ? most_ / 2 : most_;
    made.limit.most = static_cast<int64_t>(most);
    for (uint32_t axis = 0; axis < kAxes; ++axis) {
      const ValueId threads = nodes_.op(Op::Mul, kUsize, nodes_.position(PositionKind::GridDim, axis),
                                        nodes_.position(PositionKind::BlockDim, axis));
      made.conditions.push_back({nodes_.op(Op::Le, kBool, threads, nodes_.constant(kUsize, most)), true});
    }
    add(std::move(made));
  }

  void addProduct(std::vector<ValueId> factors) { addProduct(std::move(factors), most_); }

  void addProduct(std::vector<ValueId> factors, __int128 most) {
    const auto limit = limitOf(graph_, factors, most);
    if (!limit)
      return;
    Supposition made;
    made.limit = *limit;
    if (factors.size() == 1) {
      const MachineType type = nodes_.type(factors[0]);  // a number below 0 is not refused
      if (!type.contains(most))
        return;
      made.conditions.push_back({nodes_.op(Op::Le, kBool, factors[0], nodes_.constant(type, most)), true});
    } else {
      std::sort(factors.begin(), factors.end());
      made.product = LaunchFacts::Product{std::move(factors), most};
    }
    add(std::move(made));
  }

  void add(Supposition made) {
    if (found_.size() < kMostSuppositions || (made.product && made.product->factors.size() > 2))
      found_.push_back(std::move(made));
  }

  Pair& pair_;
  const Graph& graph_;
  NodeTable& nodes_;
  __int128 most_;
  bool areSmall_;
  std::vector<ValueId> leaves_;
  std::vector<Supposition> found_;
};

}  // namespace

std::optional<LaunchLimit> limitOf(const Graph& graph, std::span<const ValueId> factors, __int128 most) {
  LaunchLimit limit;
  limit.most = static_cast<int64_t>(most);
  const auto& dims = graph.function->dims;
  for (ValueId factor : factors)
    if (const Node& node = graph.values[factor]; node.kind == NodeKind::Extent && node.number() < dims.size() &&
                                                 dims[node.number()].param && !dims[node.number()].isScalarValue)
      limit.dims.push_back(node.number());
    else if (const auto param = graph.parameterOf(factor))
      limit.scalars.push_back(*param);
    else
      return std::nullopt;
  return limit;
}

std::vector<Supposition> suppositionsOf(Pair& pair, bool areSmall) { return Finder(pair, areSmall).run(); }

}  // namespace vortex::lang::flow
