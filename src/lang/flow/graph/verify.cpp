#include "lang/flow/graph/verify.h"

#include <algorithm>

#include "base/text.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {
namespace {

class Verifier {
public:
  explicit Verifier(const Graph& graph) : graph_(graph), structure_(graph) {}

  std::string run() {
    blocks();
    loops();
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      step(StepId{i});
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
      phis(BlockId{i});
    return std::move(out_);
  }

private:
  template <typename... Parts> void fail(const Parts&... parts) {
    if (out_.size() < 4000)
      out_ += base::concat(parts..., "\n");
  }
  static std::string name(BlockId block) { return "b" + std::to_string(indexOf(block)); }
  static std::string name(ValueId value) { return "v" + std::to_string(indexOf(value)); }
  static std::string name(StepId step) { return "step " + std::to_string(indexOf(step)); }

  void blocks() {
    uint32_t next = 0;
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i) {
      const Block& block = graph_.blocks[i];
      const BlockId id{i};
      if (indexOf(block.begin) != next || indexOf(block.end) <= next || indexOf(block.end) > graph_.stepCount())
        return fail(name(id), " does not follow the block before");
      next = indexOf(block.end);
      const StepKind last = graph_.terminator(id).kind;
      const size_t wanted = last == StepKind::Jump ? 1 : last == StepKind::Branch ? 2 : 0;
      if ((wanted == 0 && last != StepKind::Return) || block.successors.size() != wanted)
        fail(name(id), " has ", std::to_string(block.successors.size()), " successors");
      for (BlockId to : block.successors)
        if (to == kNoBlock || std::count(graph_[to].predecessors.begin(), graph_[to].predecessors.end(), id) !=
                                  std::count(block.successors.begin(), block.successors.end(), to))
          return fail("the edge from ", name(id), " is not known to its target");
      if (i > 0 && structure_.dominator(id) == kNoBlock)
        fail(name(id), " is not reached");
    }
  }

  void loops() {
    for (uint32_t i = 0; i < graph_.loops.size(); ++i) {
      const Loop& loop = graph_.loops[i];
      const LoopId id{i};
      for (BlockId latch : loop.latches)
        if (!graph_.isInside(latch, id) || !structure_.dominates(loop.header, latch))
          fail("loop ", std::to_string(i), " is entered elsewhere than at its header");
      for (BlockId exit : loop.exits) {
        if (graph_.isInside(exit, id))
          fail(name(exit), " is an exit inside its loop");
        for (BlockId before : graph_[exit].predecessors)
          if (!graph_.isInside(before, id))
            fail(name(exit), " is an exit that is reached from outside the loop");
      }
    }
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
      for (BlockId to : graph_.blocks[i].successors) {
        const LoopId from = graph_.blocks[i].loop, into = graph_[to].loop;
        const bool isEntry = into != kNoLoop && graph_[into].header == to;
        const bool isExit = from != kNoLoop && std::count(graph_[from].exits.begin(), graph_[from].exits.end(), to) > 0;
        if (from != into && !isEntry && !isExit)
          fail("the edge from ", name(BlockId{i}), " to ", name(to), " leaves more than one loop");
      }
  }

  void step(StepId id) {
    const Step& step = graph_[id];
    for (ValueId use : graph_.uses(step))
      reaches(use, id);
    const bool isResult = step.value != kNoValue && graph_.definition(step.value) == id;
    if (step.value != kNoValue && !isResult)
      reaches(step.value, id);
    if (step.place != kNoPlace)
      placeReaches(step.place, id);
    for (const Access& access : graph_.accessesOf(step)) {
      if (access.step != id)
        fail(name(id), " has an access of another step");
      placeReaches(access.place, id);
    }
    if (step.kind == StepKind::Branch && graph_.values.type(step.value) != kBool)
      fail(name(id), " branches on what is no bool");
  }

  void placeReaches(PlaceId id, StepId at) {
    for (ValueId each : graph_[id].subscripts())
      reaches(each, at);
  }

  void phis(BlockId id) {
    const Block& block = graph_[id];
    for (ValueId phi : block.phis) {
      const auto operands = graph_.values.phiOperands(phi);
      if (operands.size() != block.predecessors.size()) {
        fail(name(phi), " in ", name(id), " has ", std::to_string(operands.size()), " operands for ",
             std::to_string(block.predecessors.size()), " predecessors");
        continue;
      }
      for (size_t i = 0; i < operands.size(); ++i) {
        const BlockId from = block.predecessors[i];
        reachesBlock(operands[i], from, indexOf(graph_[from].end));
      }
    }
  }

  void reaches(ValueId value, StepId at) { reachesBlock(value, graph_.blockOf(at), indexOf(at)); }

  /// What the value is computed from is defined before step `limit` of the block, in this loop or one around it.
  void reachesBlock(ValueId value, BlockId at, uint32_t limit) {
    ++visit_;
    seen_.resize(graph_.values.size());
    std::vector<ValueId> pending{value};
    while (!pending.empty()) {
      const ValueId each = graph_.values.resolved(pending.back());
      pending.pop_back();
      if (seen_[indexOf(each)] == visit_)
        continue;
      seen_[indexOf(each)] = visit_;
      const Node& node = graph_.values[each];
      BlockId defined = kNoBlock;
      if (node.kind == NodeKind::Phi) {
        defined = graph_.values.phiBlock(each);
      } else if (const StepId step = graph_.definition(each); step != kNoStep) {
        defined = graph_.blockOf(step);
        if (defined == at && indexOf(step) >= limit)
          fail(name(each), " is used by ", name(StepId{limit}), " before it is defined");
      } else {
        const Operands operands = graph_.values.operands(each);
        pending.insert(pending.end(), operands.begin(), operands.end());
      }
      if (defined == kNoBlock)
        continue;
      if (!structure_.dominates(defined, at))
        fail(name(each), " of ", name(defined), " does not dominate its use in ", name(at));
      if (const LoopId loop = graph_[defined].loop; loop != kNoLoop && !graph_.isInside(at, loop))
        fail(name(each), " is used behind its loop, in ", name(at));
    }
  }

  const Graph& graph_;
  Structure structure_;
  std::string out_;
  std::vector<uint32_t> seen_;
  uint32_t visit_ = 0;
};

}  // namespace

std::string verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace vortex::lang::flow
