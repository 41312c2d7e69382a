#include "lang/flow/testing/race_judge.h"

#include <array>
#include <set>

#include "base/text.h"

namespace vortex::lang::flow::testing {
namespace {

/// One access of an element that happened.
struct Touch {
  StepId step = kNoStep;
  int64_t block = 0, thread = 0;
  uint32_t epoch = 0, warpEpoch = 0, gridEpoch = 0;
  bool writes = false, isAtomic = false, isOfBlocks = false;  ///< …; an atomic operation of the block's scope
};

using StepPair = std::pair<StepId, StepId>;

/// The accesses of one launch that nothing orders.
class Meetings {
public:
  Meetings(Graph& graph, const Launch& launch)
      : graph_(graph), blockId_(graph.values.position(PositionKind::BlockId)), machine_(graph, launch) {
    __int128 sum = 0;
    for (const auto& [scalar, number] : launch.scalars)
      sum += number;
    for (size_t i = 0; i < graph.function->params.size(); ++i)
      fill(graph.params[i], graph.function->params[i]->name, sum);
  }

  Outcome run() {
    machine_.watch([&](StepId step, const std::vector<ThreadMachine::Thread*>& together) {
      for (ThreadMachine::Thread* thread : together)
        visit(*thread, step);
    });
    return machine_.run();
  }
  std::set<StepPair> found;

private:
  void fill(LocalId tensor, const std::string& name, __int128 sum) {
    if (!graph_[tensor].type->isTensor() && !stripRef(graph_[tensor].type)->isTensor())
      return;
    const bool areCounters = name == "c", areNumbers = name == "d";
    for (int64_t i = 0; i < (areCounters ? 6 : 1000); ++i)
      machine_.setElement(tensor, {i},
                          areNumbers     ? (i + sum) % 3
                          : !areCounters ? 0
                          : i == 2       ? (__int128(1) << 32) - 40
                                         : i);
  }

  void visit(ThreadMachine::Thread& thread, StepId id) {
    const Step& step = graph_[id];
    const auto block = static_cast<int64_t>(*machine_.value(thread, blockId_));
    auto& [epoch, warpEpoch, gridEpoch] = epochs_[{block, thread.linear}];
    epoch += step.kind == StepKind::Barrier;
    warpEpoch += step.kind == StepKind::WarpBarrier;
    gridEpoch += isGridBarrier(step);
    for (const Access& access : graph_.accessesOf(step)) {
      const Place& place = graph_[access.place];
      if (place.storage != Storage::Shared && place.storage != Storage::Global)
        continue;
      const auto extents = machine_.extents(place.path.empty() ? place.type : graph_[place.root].type);
      std::vector<int64_t> key{static_cast<int64_t>(indexOf(place.root)),
                               place.storage == Storage::Shared ? block : -1};
      bool isInside = extents.has_value();
      for (size_t dim = 0; isInside && dim < place.dims.size(); ++dim) {
        const Number at = machine_.value(thread, place.dims[dim].begin);
        if (!at)
          return;
        isInside = *at < (*extents)[dim];
        key.push_back(static_cast<int64_t>(*at));
      }
      if (isInside)
        add(key, {id, block, thread.linear, epoch, warpEpoch, gridEpoch, access.mode != AccessMode::Read,
                  step.kind == StepKind::Atomic, step.kind == StepKind::Atomic && isOfBlockScope(step)});
    }
  }

  void add(const std::vector<int64_t>& key, const Touch& now) {
    std::vector<Touch>& touches = touches_[key];
    for (const Touch& other : touches)
      if ((now.writes || other.writes) && !areAtomic(now, other) && areUnordered(now, other))
        found.insert(std::minmax(now.step, other.step));
    touches.push_back(now);
  }

  static bool areAtomic(const Touch& a, const Touch& b) {
    return a.isAtomic && b.isAtomic && (a.block == b.block || !(a.isOfBlocks || b.isOfBlocks));
  }
  static bool areUnordered(const Touch& a, const Touch& b) {
    if (a.block != b.block)
      return a.gridEpoch == b.gridEpoch;
    const bool isOneWarp = a.thread / 32 == b.thread / 32;
    return a.thread != b.thread && a.epoch == b.epoch && (!isOneWarp || a.warpEpoch == b.warpEpoch);
  }

  Graph& graph_;
  ValueId blockId_;
  ThreadMachine machine_;
  std::map<std::pair<int64_t, int64_t>, std::array<uint32_t, 3>> epochs_;
  std::map<std::vector<int64_t>, std::vector<Touch>> touches_;
};

Launch launchOf(const Graph& graph, const LaunchShapes& shapes, const RaceLaunch& given) {
  Launch launch;
  launch.givesTickets = true;
  for (size_t axis = 0; axis < 3; ++axis)
    launch.block[axis] = *shapes.blocks.front()[axis];
  launch.grid[0] = shapes.grid[0] ? *shapes.grid[0] : (given.extent + 63) / 64;
  for (uint32_t dim = 0; dim < graph.function->dims.size(); ++dim)
    launch.dims[dim] = given.extent;
  for (const Variable* param : graph.function->params)
    for (const auto& [name, number] : given.scalars)
      if (param->name == name)
        launch.scalars[param] = number;
  return launch;
}

/// The launch that a witness names; arguments that it says nothing of may be any.
Launch namedLaunch(const Graph& graph, const SampleLaunch& named) {
  Launch launch;
  launch.givesTickets = true;
  launch.maxSteps = 200'000;
  launch.grid = named.grid;
  launch.block = named.block;
  for (uint32_t dim = 0; dim < named.dims.size(); ++dim)
    if (named.dims[dim])
      launch.dims[dim] = *named.dims[dim];
  for (const auto& [scalar, number] : named.scalars)
    launch.scalars[scalar] = number;
  for (const Variable* param : graph.function->params)
    if (param->type->kind == TypeKind::Scalar)
      launch.scalars.try_emplace(param, 2);
  return launch;
}

std::string told(const StepPair& steps) {
  return base::concat("steps ", indexOf(steps.first), " and ", indexOf(steps.second));
}

/// Each witness, and each example of what stays unknown, meets in its launch.
std::string replayWitnesses(Graph& graph, const RaceReport& report) {
  std::map<std::string, std::optional<std::set<StepPair>>> seen;  // by the launch
  for (const auto& [steps, verdict] : report.pairs) {
    if (!verdict.meeting)
      continue;
    auto [found, isNew] = seen.try_emplace(verdict.meeting->sizes);
    if (isNew) {
      Meetings meetings(graph, namedLaunch(graph, verdict.meeting->launch));
      const Outcome outcome = meetings.run();
      if (outcome != Outcome::Done && outcome != Outcome::TooLong)
        return "a witness does not run: " + verdict.meeting->sizes;
      if (outcome == Outcome::Done)
        found->second = std::move(meetings.found);
    }
    if (found->second && !found->second->contains(steps))
      return told(steps) + " do not meet where a witness says so: " + verdict.meeting->sizes;
  }
  return "";
}

std::string compared(const RaceReport& report, const std::set<StepPair>& meet) {
  for (const auto& [steps, verdict] : report.pairs)
    if (verdict.decider != Decider::None && verdict.decider != Decider::Witness && meet.contains(steps))
      return told(steps) + base::concat(" meet: ", name(verdict.decider));
  for (const StepPair& steps : meet)
    if (!report.pairs.contains(steps))
      return told(steps) + " meet and were not asked for";
  return "";
}

}  // namespace

std::string judgeRaces(Graph& graph, const LaunchShapes& shapes, const std::vector<RaceLaunch>& launches,
                       RaceTally& tally) {
  const Structure structure(graph);
  const RaceReport report = findRaces(graph, structure, shapes);
  for (const auto& [steps, verdict] : report.pairs) {
    ++tally.pairs;
    tally.undecided += verdict.decider == Decider::None;
    tally.witnesses += verdict.decider == Decider::Witness;
    tally.tickets += verdict.decider == Decider::Tickets;
  }
  if (std::string wrong = replayWitnesses(graph, report); !wrong.empty())
    return wrong;
  for (const RaceLaunch& launch : launches) {
    std::string text = base::concat("N = ", launch.extent);
    for (const auto& [name, number] : launch.scalars)
      text += base::concat(", ", name, " = ", number);
    Meetings meetings(graph, launchOf(graph, shapes, launch));
    if (meetings.run() != Outcome::Done)
      return "does not run: " + text;
    if (const std::string wrong = compared(report, meetings.found); !wrong.empty())
      return wrong + " (" + text + ")";
  }
  return "";
}

}  // namespace vortex::lang::flow::testing
