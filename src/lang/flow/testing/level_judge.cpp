#include "lang/flow/testing/level_judge.h"

#include "base/text.h"

namespace vortex::lang::flow::testing {

std::string excessOfLevels(const Graph& graph, const Uniformity& levels, ThreadMachine& machine, StepId id,
                           const std::vector<ThreadMachine::Thread*>& together) {
  const auto warpOf = [](const ThreadMachine::Thread* thread) { return thread->linear / 32; };
  const Level here = levels.ofBlock(graph.blockOf(id));
  std::map<int64_t, size_t> threadsOfWarp;
  for (const ThreadMachine::Thread* thread : together)
    ++threadsOfWarp[warpOf(thread)];
  if (here == Level::Block && together.size() != machine.threadCount())
    return base::concat("step ", indexOf(id), " is not reached by all threads");
  for (const auto& [warp, threads] : threadsOfWarp)
    if (here == Level::Warp && threads != std::min<size_t>(32, machine.threadCount() - static_cast<size_t>(warp) * 32))
      return base::concat("step ", indexOf(id), " is not reached by all lanes of warp ", warp);
  const Step& step = graph[id];
  std::vector<ValueId> values(graph.uses(step).begin(), graph.uses(step).end());
  if (step.kind == StepKind::Branch)
    values.push_back(step.value);
  for (ValueId value : values) {
    const Level level = levels.ofValue(value);
    std::map<int64_t, Number> numbers;
    for (ThreadMachine::Thread* thread : together) {
      const Number number = machine.value(*thread, value);
      if (level == Level::Lane || !number)
        continue;
      Number& known = numbers[level == Level::Block ? 0 : warpOf(thread)];
      if (known && *known != *number)
        return base::concat("step ", indexOf(id), ": value ", indexOf(value), " differs");
      known = number;
    }
  }
  return "";
}

}  // namespace vortex::lang::flow::testing
