#include "lang/flow/race/cells.h"

#include <algorithm>
#include <set>

namespace vortex::lang::flow {

/// Barriers are passed together, so each of them stands between the same accesses of all threads.
bool Cells::isSteady(StepId load) const {
  const auto [known, isNew] = steady_.try_emplace(load, false);
  if (!isNew || graph_[load].kind != StepKind::Load)
    return known->second;
  const Place& read = graph_[graph_.accessesOf(graph_[load]).front().place];
  if (read.isUnknown() || read.root == kNoLocal || read.storage != Storage::Shared)
    return false;
  std::set<StepId> writes;
  for (const Access& access : graph_.accesses)
    if (mayWrite(access, read.root))
      writes.insert(access.step);
  known->second = std::none_of(writes.begin(), writes.end(), [&](StepId each) {
    return graph_[each].kind == StepKind::Stage;  // copies write until a barrier that completes them
  });
  for (const auto& [start, block, steps] : intervals_) {
    bool isRead = false, isWritten = false;
    for (const auto& [step, reach] : steps) {
      isRead = isRead || step == load;
      isWritten = isWritten || writes.contains(step);
    }
    known->second = known->second && !(isRead && isWritten);
  }
  return known->second;
}

bool Cells::mayWrite(const Access& access, LocalId root) const {
  const std::span<const LocalId> roots = graph_[access.place].roots();
  return access.mode != AccessMode::Read &&
         (roots.empty() || std::find(roots.begin(), roots.end(), root) != roots.end());
}

std::vector<Cells::Source> Cells::sourcesOf(StepId load) const {
  if (!isSteady(load))
    return {};
  const Place& cell = graph_[graph_.accessesOf(graph_[load]).front().place];
  const std::vector<ValueId> subscripts = cell.subscripts();
  if (!std::all_of(subscripts.begin(), subscripts.end(), [&](ValueId each) { return graph_.values.isConstant(each); }))
    return {};
  std::vector<Source> out;
  for (const Access& access : graph_.accesses) {
    if (!mayWrite(access, cell.root))
      continue;
    const BlockId choice = choiceOf(access.step);
    if (!(graph_[access.place] == cell) || choice == kNoBlock)
      return {};
    // All threads come to the choice together and to the load behind it, and none of them to the load without a barrier between.
    const StepId last{indexOf(graph_[choice].end) - 1};
    const AccessInterval behind =
        intervalBehind(graph_, structure_, last, BarrierKind::OfBlocks, [](LoopId) { return false; });
    const bool isBefore =
        uniformity_.ofBlock(choice) == Level::Block && structure_.dominates(choice, graph_.blockOf(load)) &&
        std::none_of(behind.steps.begin(), behind.steps.end(), [&](const auto& each) { return each.first == load; });
    out.push_back({access.step, isBefore});
  }
  const bool isWritten = std::any_of(out.begin(), out.end(), [](const Source& each) { return each.isBefore; });
  return isWritten ? out : std::vector<Source>();
}

/// The branch one of whose sides begins with the store's block, which one thread takes; kNoBlock: there is none.
BlockId Cells::choiceOf(StepId store) const {
  const BlockId block = graph_.blockOf(store);
  if (graph_[store].kind != StepKind::Store || graph_[block].predecessors.size() != 1)
    return kNoBlock;
  const BlockId choice = graph_[block].predecessors.front();
  const Step& branch = graph_.terminator(choice);
  const bool isTaken = branch.kind == StepKind::Branch && graph_[choice].successors[0] == block &&
                       graph_[choice].successors[1] != block && isOneThread(branch.value);
  return isTaken ? choice : kNoBlock;
}

/// `thread.local_id == 0`, and the like of a block in which there is such a thread.
bool Cells::isOneThread(ValueId condition) const {
  NodeTable& nodes = graph_.values;
  const Node node = nodes[condition];
  for (size_t i = 0; node.kind == NodeKind::Op && node.op == Op::Eq && i < 2; ++i) {
    ValueId at = nodes.operand(condition, i);
    const ValueId number = nodes.operand(condition, 1 - i);
    while (nodes[at].kind == NodeKind::Convert && nodes.type(at).width >= 32)
      at = nodes.operand(at, 0);
    if (at != nodes.position(PositionKind::ThreadLocalId) || !nodes.isConstant(number))
      continue;
    int64_t threads = 1;
    for (const auto& each : shape_)
      threads *= each.value_or(1);  // at least
    if (nodes[number].constant() >= 0 && nodes[number].constant() < threads)
      return true;
  }
  return false;
}

}  // namespace vortex::lang::flow
