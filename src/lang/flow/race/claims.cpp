#include "lang/flow/race/claims.h"

#include <algorithm>

#include "base/text.h"
#include "lang/flow/check/independent.h"
#include "lang/flow/check/written.h"
#include "lang/flow/race/races.h"

namespace vortex::lang::flow {
namespace {

/// Of all launches of one loop.
constexpr uint64_t kStepsPerLoop = 1u << 18;
constexpr size_t kLaunchesPerLoop = 24;

bool isClaimed(const Graph& graph, LoopId loop) {
  return graph[loop].origin && graph[loop].origin->isClaimedParallel && graph[loop].counter;
}

/// The meeting of the first two steps, in the order of the source.
const Meeting* firstOf(const Meetings& meetings, const Graph& graph, const std::set<const Expr*>& quiet) {
  for (const auto& [steps, meeting] : meetings)
    if (!quiet.contains(graph[steps.first].origin) && !quiet.contains(graph[steps.second].origin))
      return &meeting;
  return nullptr;
}

void report(const Graph& graph, LoopId loop, const Meeting& meeting, RacePolicy policy, diag::DiagnosticSink& sink) {
  const StepId writer = meeting.firstWrites ? meeting.first : meeting.second,
               other = meeting.firstWrites ? meeting.second : meeting.first;
  const bool otherWrites = meeting.firstWrites ? meeting.secondWrites : meeting.firstWrites;
  const auto [low, high] = std::minmax(meeting.firstThread[0], meeting.secondThread[0]);
  const std::string message =
      base::concat("iterations of a `@parallel` loop meet: ", meeting.sizes, meeting.sizes.empty() ? "" : ", ",
                   "those of ", low, " and ", high, " touch ", meeting.element);
  const source::SourceRange a = rangeOf(graph[writer]), b = rangeOf(graph[other]);
  auto builder = policy == RacePolicy::Warn ? sink.warning("E0627", a, message) : sink.error("E0627", a, message);
  builder.primary(a == b ? "several iterations write here" : "written here");
  if (!(a == b))
    builder.label(b, otherWrites ? "and written here" : "and read here");
  builder.label(graph[loop].origin->variable->range, "said not to meet");
  builder.help("let each iteration work on elements of its own, or leave `@parallel` away");
}

}  // namespace

void checkClaims(Graph& graph, const Structure& structure, RacePolicy policy, diag::DiagnosticSink& sink) {
  bool isAny = false;
  for (uint32_t i = 0; i < graph.loops.size(); ++i)
    isAny |= isClaimed(graph, LoopId{i});
  if (!isAny)
    return;
  const std::vector<LoopVerdict> verdicts = loopVerdicts(graph, structure);
  const std::vector<SampleLaunch> launches = sampleLaunches(*graph.function, {}, {}, kLaunchesPerLoop);
  const std::set<const Expr*> quiet = quietParts(graph);
  for (uint32_t i = 0; i < graph.loops.size(); ++i) {
    if (!isClaimed(graph, LoopId{i}) || verdicts[i].kind != LoopVerdict::Kind::Unproven)
      continue;
    uint64_t budget = kStepsPerLoop;
    Meetings meetings;
    const Meeting* found = nullptr;
    for (size_t k = 0; k < launches.size() && budget > 0 && !found; ++k) {
      walkIterations(graph, launches[k], LoopId{i}, budget, meetings);
      found = firstOf(meetings, graph, quiet);
    }
    if (found)
      report(graph, LoopId{i}, *found, policy, sink);
  }
}

}  // namespace vortex::lang::flow
