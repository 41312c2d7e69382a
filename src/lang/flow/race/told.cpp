// Which accesses a walk can say anything of: those before every branch on what memory holds, of elements that do not follow from it.
#include <algorithm>

#include "lang/flow/race/evaluator.h"
#include "lang/flow/race/walk.h"

namespace vortex::lang::flow {
namespace {

/// The least set of values that may be known and of blocks that may be reached, in rounds.
class Teller {
public:
  Teller(const Graph& graph, const SampleLaunch& launch)
      : graph_(graph), isKnown_(graph.values.size()), isReached_(graph.blocks.size()) {
    for (const Argument& argument : graph.arguments)
      isGiven_.push_back(std::any_of(launch.scalars.begin(), launch.scalars.end(),
                                     [&](const auto& each) { return each.first == argument.variable; }));
    for (uint32_t s = 0; s < graph.stepCount(); ++s)
      if (const Step& step = graph[StepId{s}]; step.kind == StepKind::Item)
        items_.emplace_back(graph.values.resolved(step.value), graph.uses(step).front());
  }

  std::vector<bool> run() {
    isReached_[0] = true;
    do {
      isNew_ = false;
      for (uint32_t v = 0; v < isKnown_.size(); ++v)
        if (!isKnown_[v] && graph_.values.resolved(ValueId{v}) == ValueId{v} && mayBeKnown(ValueId{v}))
          isKnown_[v] = isNew_ = true;
      for (const auto& [item, at] : items_)
        if (isKnown(at) && !isKnown_[indexOf(item)])
          isKnown_[indexOf(item)] = isNew_ = true;
      told_.assign(graph_.stepCount(), false);
      for (uint32_t b = 0; b < isReached_.size(); ++b)
        if (isReached_[b])
          pass(BlockId{b});
    } while (isNew_);
    return std::move(told_);
  }

private:
  bool isKnown(ValueId value) const { return isKnown_[indexOf(graph_.values.resolved(value))]; }

  bool mayBeKnown(ValueId value) const {
    const NodeTable& nodes = graph_.values;
    const Node& node = nodes[value];
    switch (node.kind) {
    case NodeKind::Constant:
    case NodeKind::Extent:
    case NodeKind::Position: return true;
    case NodeKind::Argument: return node.number() < isGiven_.size() && isGiven_[node.number()];
    case NodeKind::Convert:
    case NodeKind::Op: return mayFollow(node, [&](size_t i) { return isKnown(nodes.operand(value, i)); });
    case NodeKind::Phi:
      return std::any_of(nodes.phiOperands(value).begin(), nodes.phiOperands(value).end(),
                         [&](ValueId each) { return isKnown(each); });
    case NodeKind::Load:
    case NodeKind::Ticket:
    case NodeKind::Unknown: return false;
    }
    VORTEX_UNREACHABLE();
  }

  void pass(BlockId id) {
    const Block& block = graph_[id];
    for (uint32_t s = indexOf(block.begin); s < indexOf(block.end); ++s) {
      const Step& step = graph_[StepId{s}];
      const auto accesses = graph_.accessesOf(step);
      told_[s] = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) { return isTold(access); });
      if ((step.kind == StepKind::Assert && !isKnown(graph_.uses(step).front())) ||
          (step.kind == StepKind::Branch && !isKnown(step.value)))
        return;
    }
    for (BlockId next : block.successors)
      if (!isReached_[indexOf(next)])
        isReached_[indexOf(next)] = isNew_ = true;
  }

  bool isTold(const Access& access) const {
    const std::vector<ValueId> subscripts = graph_[access.place].subscripts();
    return std::all_of(subscripts.begin(), subscripts.end(), [&](ValueId each) { return isKnown(each); });
  }

  const Graph& graph_;
  std::vector<bool> isKnown_, isReached_, isGiven_, told_;
  std::vector<std::pair<ValueId, ValueId>> items_;
  bool isNew_ = false;
};

}  // namespace

std::vector<bool> toldSteps(const Graph& graph, const SampleLaunch& launch) { return Teller(graph, launch).run(); }

}  // namespace vortex::lang::flow
