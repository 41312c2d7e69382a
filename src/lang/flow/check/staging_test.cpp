// Copies into shared memory against the thread machine, where they are in flight as long as the annotations let them be.
#include "base/sanitized.h"
#include "lang/flow/check/staging.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <set>

#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/random_copies.h"
#include "lang/flow/testing/thread_machine.h"

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;
using testing::ThreadMachine;

/// One launch of a kernel with copies.
class Copies {
public:
  Copies(const Graph& graph, const Function& kernel, int64_t extent, int64_t limit)
      : graph_(graph), machine_(graph, launch(kernel, extent, limit)) {
    machine_.watch(
        [&](StepId step, const std::vector<ThreadMachine::Thread*>& together) { watch(step, *together[0]); });
    outcome = machine_.run();
  }

  testing::Outcome outcome = testing::Outcome::Done;
  bool isWrong = false;  ///< what a diagnostic must have told
  std::string broken;    ///< what no diagnostic can excuse: a missing wait or barrier

private:
  using Slot = std::pair<LocalId, int64_t>;

  static testing::Launch launch(const Function& kernel, int64_t extent, int64_t limit) {
    testing::Launch out;
    out.block = {4, 1, 1};
    out.dims[0] = extent;
    out.scalars[kernel.params[2]] = limit;
    return out;
  }

  Slot slotOf(const Place& place, ThreadMachine::Thread& thread) {
    for (const Projection& each : place.path)
      if (each.kind == ProjectionKind::Slot)
        if (const auto index = machine_.value(thread, each.index))
          return {place.root, static_cast<int64_t>(*index)};
    return {place.root, 0};
  }

  bool isInFlight(const Slot& slot) const {
    for (const auto& group : groups_)
      if (group.contains(slot))
        return true;
    return false;
  }

  void close() {
    groups_.push_front(std::move(current_));
    current_.clear();
  }

  void watch(StepId id, ThreadMachine::Thread& thread) {
    const Step& step = graph_[id];
    if (step.kind == StepKind::Jump) {
      const LoopId loop = graph_[graph_[graph_.blockOf(id)].successors[0]].loop;
      if (loop != kNoLoop && graph_[loop].before == graph_.blockOf(id) && !graph_[loop].origin->ints.empty())
        close();
      return;
    }
    if (step.kind == StepKind::Barrier)
      return synchronize(step);
    if (step.kind == StepKind::Stage)
      return stage(step, slotOf(graph_[step.place], thread));
    for (const Access& access : graph_.accessesOf(step))
      touch(access, thread);
  }

  void synchronize(const Step& step) {
    close();
    const auto& ints = step.origin->ints;
    while (!ints.empty() && groups_.size() > static_cast<size_t>(ints[1]))
      groups_.pop_back();
    if (ints.empty())
      groups_.clear();
    touched_.clear();
    pending_.clear();
  }

  void stage(const Step& step, const Slot& slot) {
    isWrong = isWrong || pending_.contains(slot);
    if (isInFlight(slot) && !pending_.contains(slot))
      broken = "a copy into what a copy fills";
    if (!step.origin->ints.empty())
      touched_.clear();
    if (touched_.contains(slot))
      broken = "a copy into what threads may use";
    touched_.erase(slot);
    written_.insert(slot);
    current_.insert(slot);
    pending_.insert(slot);
  }

  void touch(const Access& access, ThreadMachine::Thread& thread) {
    const Place& place = graph_[access.place];
    if (place.storage == Storage::Global && access.mode != AccessMode::Read && place.root == graph_.params[0])
      for (const auto& group : groups_)
        if (std::any_of(group.begin(), group.end(), [&](const Slot& slot) { return !pending_.contains(slot); }))
          broken = "a store to what a copy reads";
    if (place.storage != Storage::Shared)
      return;
    const Slot slot = slotOf(place, thread);
    isWrong = isWrong || pending_.contains(slot) || (access.mode == AccessMode::Read && !written_.contains(slot));
    if (isInFlight(slot) && !pending_.contains(slot))
      broken = "a touch of what a copy fills";
    touched_.insert(slot);
    if (access.mode != AccessMode::Read)
      written_.insert(slot);
  }

  const Graph& graph_;
  ThreadMachine machine_;
  std::set<Slot> written_, touched_, current_;
  std::set<Slot> pending_;  ///< since the last `sync_block()`
  std::deque<std::set<Slot>> groups_;
};

uint64_t setting(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

TEST(Staging, RandomCopiesAreDoneWhereTheyMustBe) {
  const uint64_t count = setting("VORTEX_RANDOM_KERNELS", base::sampled(400)),
                 first = setting("VORTEX_FIRST_KERNEL", 1);
  size_t accepted = 0, refused = 0, warned = 0, needless = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string text = testing::randomCopies(seed);
    if (text.find("async_stage") == std::string::npos)
      continue;
    Analyzed made(text);
    const std::string ids = made.ids();
    const bool isError = ids.find("E047") != std::string::npos, isWarned = ids.find("W0451") != std::string::npos;
    if (ids.find("E0525") != std::string::npos || ids.find("W0525") != std::string::npos)
      continue;  // nothing is staged
    ASSERT_TRUE(made.program && !made.program->kernels.empty()) << text << made.messages();
    const Function& kernel = *made.program->kernels.front();
    const Graph graph = lowerKernel(kernel);
    bool isWrong = false;
    for (int64_t extent = 0; extent <= 40; extent += 4)
      for (int64_t limit : {0, 1, 2, 3, 100}) {
        const Copies run(graph, kernel, extent, limit);
        ASSERT_EQ(run.outcome, testing::Outcome::Done) << text;
        isWrong = isWrong || run.isWrong;
        ASSERT_TRUE(isError || run.broken.empty())
            << "seed " << seed << ", " << extent << " elements, lim " << limit << ": " << run.broken << "\n"
            << text << dump(graph, made.sources);
        ASSERT_TRUE(isError || isWarned || !run.isWrong)
            << "seed " << seed << ", " << extent << " elements, lim " << limit << ": undiagnosed\n"
            << text << dump(graph, made.sources);
      }
    needless += isError && !isWrong;
    accepted += ids.empty();
    refused += isError;
    warned += isWarned && !isError && !isWrong;
  }
  if (base::kIsSanitized)
    return;  // too few for shares
  EXPECT_GT(accepted * 4, count) << "most are right";
  EXPECT_GT(refused * 20, count);
  EXPECT_LT(needless * 50, count) << "errors where nothing is wrong";
  EXPECT_LT(warned * 10, count) << "warnings of what cannot happen";
}

}  // namespace
}  // namespace vortex::lang::flow
