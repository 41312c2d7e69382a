// A store is told from the element that its thread stands for, or follows the thread's place in the block. Of the first kind a surplus thread has none
// to do. Of the second, `y[block.id.x * 32 + thread.local_id] = tile[…]`, it may be the only one that has an element's value. What decides is what
// subscripts, value and conditions are computed from: `thread.global_id` along the axis, or another position of the thread.
#include "lang/flow/check/surplus.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "lang/flow/check/surroundings.h"
#include "lang/flow/race/launches.h"
#include "lang/sema/kernel/default_block.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {
namespace {

class Surplus {
public:
  Surplus(Graph& graph, const Structure& structure, diag::DiagnosticSink& sink)
      : graph_(graph), structure_(structure), nodes_(graph.values), spec_(*graph.function->kernel), sink_(sink),
        values_(graph.values, surroundingsOf(graph, structure, graph.values),
                launchFacts(*graph.function, {.block = {}, .grid = {}, .usesOwnBlock = true, .usesOwnGrid = true},
                            graph.values)) {}

  void run() {
    for (uint32_t axis = 0; axis < std::min<size_t>(spec_.domain.size(), kAxes); ++axis)
      if (mayHaveSurplus(spec_, axis))
        axes_.push_back(axis);
    if (axes_.empty())
      return;
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      if (const Step& step = graph_[StepId{i}]; step.kind == StepKind::Store || step.kind == StepKind::Atomic)
        visit(StepId{i});
  }

private:
  struct Positions {
    bool isOfElement = false;  ///< of the element that the grid has a thread for
    bool isOfBlock = false;    ///< of the thread in its block
    bool isOfWarp = false;     ///< a value that the lanes of the warp made together
  };

  void visit(StepId step) {
    for (const Access& access : graph_.accessesOf(graph_[step])) {
      const Storage storage = graph_[access.place].storage;
      if (access.mode == AccessMode::Read || !access.origin ||
          (storage != Storage::Global && storage != Storage::Result) || reported_.contains(access.origin))
        continue;
      const auto lost =
          std::find_if(axes_.begin(), axes_.end(), [&](uint32_t axis) { return mayBeLost(step, access, axis); });
      if (lost != axes_.end())
        report(*access.origin, *lost);
    }
  }

  bool mayBeLost(StepId step, const Access& access, uint32_t axis) {
    const Positions found = positionsOf(step, access, axis);
    return !found.isOfElement && found.isOfBlock && !isOfOthersOnly(step, access, axis, found.isOfWarp);
  }

  /// What subscripts, value and conditions are computed from.
  Positions positionsOf(StepId step, const Access& access, uint32_t axis) const {
    std::vector<ValueId> pending;
    addPlace(access.place, pending);
    addStep(step, pending);
    for (const Condition& condition : conditionsAt(graph_, structure_, step))
      pending.push_back(condition.value);
    Positions found;
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId value = nodes_.resolved(pending.back());
      pending.pop_back();
      if (value == kNoValue || !seen.insert(value).second)
        continue;
      if (nodes_[value].kind == NodeKind::Position)
        note(nodes_[value], axis, found);
      else if (const Level level = levelOf(value); level == Level::Warp)
        found.isOfWarp = true;
      else if (level == Level::Lane)
        addOperands(value, pending);
    }
    return found;
  }

  static void note(const Node& position, uint32_t axis, Positions& found) {
    switch (position.position()) {
    case PositionKind::ThreadGlobalId: found.isOfElement |= position.axis() == axis; return;
    case PositionKind::ThreadId: found.isOfBlock |= position.axis() == axis; return;
    case PositionKind::ThreadLocalId:
    case PositionKind::WarpId:
    case PositionKind::LaneId: found.isOfBlock = true; return;
    case PositionKind::BlockId:
    case PositionKind::BlockDim:
    case PositionKind::GridDim: return;
    }
  }

  /// Of what threads exchanged: one value of the block or the warp is no thread's own. Warps of more axes than one have no first element.
  Level levelOf(ValueId value) const {
    const StepId id = graph_.definition(value);
    if (id == kNoStep || graph_[id].kind != StepKind::Warp)
      return Level::Lane;
    const Step& step = graph_[id];
    if (isBlockReduction(step.origin->builtin))
      return Level::Block;
    const Builtin builtin = step.origin->builtin;
    const bool isShuffle = builtin >= Builtin::ShuffleXor && builtin <= Builtin::ShuffleIndex;
    const bool isOne = !isShuffle || (builtin == Builtin::ShuffleIndex && nodes_.isConstant(graph_.uses(step).back()));
    return isOne && spec_.domain.size() == 1 ? Level::Warp : Level::Lane;
  }

  void addPlace(PlaceId place, std::vector<ValueId>& out) const {
    const auto subscripts = place == kNoPlace ? std::vector<ValueId>() : graph_[place].subscripts();
    out.insert(out.end(), subscripts.begin(), subscripts.end());
  }

  void addStep(StepId step, std::vector<ValueId>& out) const {
    const auto uses = graph_.uses(graph_[step]);
    out.insert(out.end(), uses.begin(), uses.end());
  }

  void addOperands(ValueId value, std::vector<ValueId>& out) const {
    const Node& node = nodes_[value];
    const Operands operands = nodes_.operands(value);
    out.insert(out.end(), operands.begin(), operands.end());
    if (node.kind == NodeKind::Phi) {
      out.insert(out.end(), nodes_.phiOperands(value).begin(), nodes_.phiOperands(value).end());
      for (BlockId from : graph_[nodes_.phiBlock(value)].predecessors)  // which of them it is
        for (const Condition& condition : conditionsAt(graph_, structure_, StepId{indexOf(graph_[from].end) - 1}))
          out.push_back(condition.value);
    }
    if (const StepId step = graph_.definition(value); step != kNoStep) {
      addStep(step, out);
      addPlace(graph_[step].place, out);
    }
  }

  /// No surplus thread gets to the store, or its element lies outside of the tensor.
  bool isOfOthersOnly(StepId step, const Access& access, uint32_t axis, bool isOfWarp) {
    const ValueId extent = dimensionValue(spec_.domain[axis], *graph_.function, nodes_);
    if (extent == kNoValue)
      return false;
    const ValueId base = nodes_.op(Op::Mul, kUsize, nodes_.position(PositionKind::BlockId, axis),
                                   nodes_.position(PositionKind::BlockDim, axis)),
                  id = nodes_.position(PositionKind::ThreadGlobalId, axis);
    const ValueId ofWarp = nodes_.op(Op::Sub, kUsize, id, nodes_.position(PositionKind::LaneId));
    const Condition hasElements{nodes_.op(Op::Lt, kBool, isOfWarp ? ofWarp : base, extent), true},
        isSurplus{nodes_.op(Op::Lt, kBool, id, extent), false};
    const PointId at = values_.assume(pointOf(step), {hasElements});
    if (values_.less(id, extent, at) == Truth::Yes)
      return true;
    const PointId outside = values_.assume(pointOf(step), {hasElements, isSurplus});
    return std::any_of(graph_.subscripts.begin(), graph_.subscripts.end(), [&](const Subscript& subscript) {
      return subscript.origin == access.origin &&
             std::any_of(subscript.parts.begin(), subscript.parts.end(), [&](const Subscript::Part& part) {
               return values_.isNotLess(part.begin, part.extent, outside);
             });
    });
  }

  void report(const Expr& access, uint32_t axis) {
    reported_.insert(&access);
    const std::vector<std::string> names = graph_.function->dimNames();
    const std::string extent = spec_.domain[axis].text(names);
    sink_.warning("W0452", access.range, "surplus threads do not store this")
        .primary(base::concat("threads of the last block beyond `", extent,
                              "` may have a value for an element of the tensor, which is dropped"))
        .help(base::concat("let all threads store: write the grid, `@launch(grid = [ceil_div(", extent,
                           ", …)], block = …)`, and test the bound where elements are read"));
  }

  const Graph& graph_;
  const Structure& structure_;
  NodeTable& nodes_;
  const KernelSpec& spec_;
  diag::DiagnosticSink& sink_;
  Values values_;
  std::vector<uint32_t> axes_;  ///< along which the last block may have more threads than elements
  std::set<const Expr*> reported_;
};

}  // namespace

bool mayHaveSurplus(const KernelSpec& spec, uint32_t axis) {
  const auto extent = spec.domain[axis].asConstant();
  std::optional<int64_t> block = defaultBlock(spec, spec.domain)[axis];
  if (!spec.block.empty())
    block = axis < spec.block.size() ? evaluateSize(*spec.block[axis], {}) : 1;
  return block != 1 && !(extent && block && *block > 0 && *extent % *block == 0);
}

void checkSurplus(Graph& graph, const Structure& structure, diag::DiagnosticSink& sink) {
  if (graph.function->kernel->gridKind == GridKind::Domain && !graph.function->kernel->tile)
    Surplus(graph, structure, sink).run();
}

}  // namespace vortex::lang::flow
