#include "lang/flow/check/counting.h"

#include <algorithm>

#include "lang/flow/check/surroundings.h"

namespace vortex::lang::flow {
namespace {

constexpr __int128 kMostOfMachine = INT64_MAX;

class Counting {
public:
  Counting(const Graph& graph, Values& values, const Loop& loop)
      : graph_(graph), nodes_(graph.values), values_(values), counter_(*loop.counter), before_(loop.before) {}

  lang::Reach reach() {
    const MachineType type = nodes_.type(counter_.begin);
    if (type.width < 64)
      return lang::Reach::Near;
    return type.isSigned ? ofSigned() : ofUnsigned();
  }

private:
  /// The machine compares the bounds as they are: only steps can wrap, and the number of iterations.
  lang::Reach ofSigned() {
    const PointId point = pointOf(graph_[before_].begin);
    const Polynomial begin = values_.integer(counter_.begin, point), end = values_.integer(counter_.end, point);
    const auto upwards = Polynomial::sum(end, begin, -1), downwards = Polynomial::sum(begin, end, -1);
    const Interval step = values_.range(counter_.step, point);
    const bool isUnit = step.low == 1 && step.high == 1;
    const bool isNear = step.low > 0    ? isUnit || (isAtMost(upwards, point) && staysNear(counter_.end, before_))
                        : step.high < 0 ? isAtMost(downwards, point)
                                        : isAtMost(upwards, point) && isAtMost(downwards, point);
    return isNear ? lang::Reach::Near : lang::Reach::Far;
  }

  lang::Reach ofUnsigned() {
    if (!staysNear(counter_.end, before_))
      return lang::Reach::Far;
    return isNear(counter_.begin, before_) ? lang::Reach::Near : lang::Reach::NearEnd;
  }

  /// The counter behind the last iteration too.
  bool staysNear(ValueId end, BlockId block) {
    return isNearPlus(end, block, [&](PointId point) {
      return Polynomial::sum(values_.integer(counter_.step, point), Polynomial::constant(-1));
    });
  }

  bool isNear(ValueId value, BlockId block) {
    return isNearPlus(value, block, [](PointId) { return std::optional(Polynomial()); });
  }

  /// What ways into the block bring along is asked where they come from: `let a = if n > 16 { n - 16 } else { 0 }`.
  template <typename More> bool isNearPlus(ValueId value, BlockId block, const More& more) {
    const PointId point = pointOf(graph_[block].begin);
    const auto extra = more(point);
    if (extra && isAtMost(Polynomial::sum(values_.integer(value, point), *extra), point))
      return true;
    const ValueId phi = nodes_.resolved(value);
    if (nodes_[phi].kind != NodeKind::Phi)
      return false;
    const BlockId joins = nodes_.phiBlock(phi);
    const std::vector<BlockId>& from = graph_[joins].predecessors;
    const std::vector<ValueId> operands(nodes_.phiOperands(phi).begin(), nodes_.phiOperands(phi).end());
    if (operands.size() != from.size() || std::any_of(from.begin(), from.end(), [&](BlockId b) { return b >= joins; }))
      return false;
    for (size_t i = 0; i < operands.size(); ++i)
      if (!isNearPlus(operands[i], from[i], more))
        return false;
    return true;
  }

  bool isAtMost(const std::optional<Polynomial>& value, PointId point) {
    const auto room = value ? Polynomial::sum(Polynomial::constant(kMostOfMachine), *value, -1) : std::nullopt;
    return room && values_.isAtLeastZero(*room, point);
  }

  const Graph& graph_;
  const NodeTable& nodes_;
  Values& values_;
  const Counter& counter_;
  BlockId before_;
};

}  // namespace

std::map<const Expr*, lang::Reach> loopReaches(Graph& graph, const Structure& structure) {
  Values values(graph.values, surroundingsOf(graph, structure, graph.values),
                launchFacts(*graph.function, {}, graph.values));
  std::map<const Expr*, lang::Reach> reaches;
  for (const Loop& loop : graph.loops) {
    if (!loop.counter || loop.counter->kind != Counter::Kind::Range)
      continue;
    const lang::Reach reach = Counting(graph, values, loop).reach();
    const auto [found, isNew] = reaches.try_emplace(loop.origin, reach);
    found->second = std::min(found->second, reach);  // of what is evaluated in several places
  }
  return reaches;
}

}  // namespace vortex::lang::flow
