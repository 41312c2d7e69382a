#include <set>

#include "base/text.h"
#include "lang/flow/race/races.h"

namespace vortex::lang::flow {
namespace {

using source::SourceRange;

SourceRange rangeOf(const Graph& graph, StepId step) {
  const Expr* origin = graph[step].origin;
  return origin ? origin->range : SourceRange{};
}

std::string thread(const std::array<int64_t, 3>& axes) {
  if (axes[1] == 0 && axes[2] == 0)
    return std::to_string(axes[0]);
  return base::concat("(", axes[0], ", ", axes[1], ", ", axes[2], ")");
}

/// "threads 3 and 7 of block 0 touch `t[4]`".
std::string describe(const Meeting& meeting) {
  std::string text = meeting.sizes.empty() ? "" : meeting.sizes + ", ";
  if (meeting.acrossBlocks)
    return text + base::concat("thread ", thread(meeting.firstThread), " of block ", thread(meeting.firstBlock),
                               " and thread ", thread(meeting.secondThread), " of block ", thread(meeting.secondBlock),
                               " touch ", meeting.element);
  return text + base::concat("threads ", thread(meeting.firstThread), " and ", thread(meeting.secondThread),
                             " of block ", thread(meeting.firstBlock), " touch ", meeting.element);
}

/// The tensor that both steps touch and one of them writes: a step may touch others besides.
std::string storageName(const Graph& graph, StepId first, StepId second) {
  for (const Access& a : graph.accessesOf(graph[first]))
    for (const Access& b : graph.accessesOf(graph[second])) {
      const LocalId root = graph[a.place].root;
      const bool isWritten = a.mode != AccessMode::Read || b.mode != AccessMode::Read;
      if (root == graph[b.place].root && isWritten && isSharedStorage(graph[root].storage))
        return graph[root].variable ? "`" + graph[root].variable->name + "`" : "the result";
    }
  return "memory";
}

bool writes(const Graph& graph, StepId step) {
  for (const Access& access : graph.accessesOf(graph[step]))
    if (access.mode != AccessMode::Read)
      return true;
  return false;
}

void reportMeeting(const Graph& graph, StepId first, StepId second, const Meeting& meeting, bool isError,
                   diag::DiagnosticSink& sink) {
  const StepId writer = meeting.firstWrites ? first : second, other = meeting.firstWrites ? second : first;
  const bool otherWrites = meeting.firstWrites ? meeting.secondWrites : meeting.firstWrites;
  const std::string message = "race on " + storageName(graph, first, second) + ": " + describe(meeting);
  const SourceRange at = rangeOf(graph, writer);
  auto builder = isError ? sink.error("E0630", at, message) : sink.warning("E0630", at, message);
  const SourceRange a = rangeOf(graph, writer), b = rangeOf(graph, other);
  if (a == b) {
    builder.primary("several threads write here");
  } else {
    builder.primary("written here");
    builder.label(b, otherWrites ? "and written here" : "and read here");
  }
  if (meeting.acrossBlocks && graph[first].kind == StepKind::Atomic && graph[second].kind == StepKind::Atomic)
    builder.help("atomic operations of scope `.block` are atomic for the threads of one block only: write `.device`");
  else if (meeting.acrossBlocks)
    builder.help("blocks run in any order: let each write elements of its own, use an atomic, or launch twice");
  else
    builder.help(
        "separate the accesses by `sync_block()`, let each thread write elements of its own, or use an atomic");
}

void reportUnknown(const Graph& graph, StepId first, StepId second, const RaceVerdict& verdict, bool isError,
                   diag::DiagnosticSink& sink) {
  const StepId writer = writes(graph, first) ? first : second, other = writer == first ? second : first;
  const std::string message = "threads may race on " + storageName(graph, first, second);
  const SourceRange a = rangeOf(graph, writer), b = rangeOf(graph, other);
  auto builder = isError ? sink.error("W0631", a, message) : sink.warning("W0631", a, message);
  builder.primary(a == b ? "may be one element for several threads" : "this write");
  if (!(a == b))
    builder.label(b, "may meet this access");
  if (verdict.cause && !(verdict.cause->range == a) && !(verdict.cause->range == b))
    builder.label(verdict.cause->range, "depends on this value");
  if (verdict.cause && verdict.cause->kind == ExprKind::Builtin && verdict.cause->builtin == Builtin::AtomicAdd)
    builder.help("tickets differ for all threads if the amounts are positive and the counter cannot come round: count "
                 "in a `u64`, or in loops of constant length");
  builder.help("`@unchecked(races)` on the statement says that they never meet; `--check` finds races while running");
}

void collect(const Expr& expr, bool isQuiet, std::set<const Expr*>& quiet) {
  isQuiet = isQuiet || expr.uncheckedRaces;
  if (isQuiet)
    quiet.insert(&expr);
  for (const Expr* arg : expr.args)
    if (arg)
      collect(*arg, isQuiet, quiet);
}

std::set<const Expr*> quietParts(const Graph& graph) {
  std::set<const Expr*> quiet;
  collect(*graph.function->body, graph.function->kernel->uncheckedRaces, quiet);
  return quiet;
}

}  // namespace

std::optional<int64_t> threadLimit(const Graph& graph, const RaceReport& report) {
  std::optional<int64_t> limit;
  const std::set<const Expr*> quiet = quietParts(graph);
  for (const auto& [steps, verdict] : report.pairs) {
    const auto most = report.mostThreads.find(verdict.counter);
    if (verdict.decider != Decider::Tickets || most == report.mostThreads.end() ||
        quiet.contains(graph[steps.first].origin) || quiet.contains(graph[steps.second].origin))
      continue;
    limit = std::min(limit.value_or(most->second), most->second);
  }
  return limit;
}

std::set<const Expr*> raceFreeAccesses(const Graph& graph, const RaceReport& report) {
  if (report.isCut)
    return {};
  std::set<StepId> open;
  for (const auto& [steps, verdict] : report.pairs)
    if (verdict.decider == Decider::None || verdict.decider == Decider::Witness ||
        report.mostThreads.contains(verdict.counter)) {
      open.insert(steps.first);
      open.insert(steps.second);
    }
  std::set<const Expr*> proven, others;
  for (const Access& access : graph.accesses) {
    if (!access.origin)
      continue;
    const StepKind kind = graph[access.step].kind;
    const bool isElement = kind == StepKind::Load || kind == StepKind::Store;
    (isElement && !open.contains(access.step) ? proven : others).insert(access.origin);
  }
  for (const Expr* expr : others)
    proven.erase(expr);
  return proven;
}

void reportRaces(const Graph& graph, const RaceReport& report, RacePolicy policy, diag::DiagnosticSink& sink) {
  const std::set<const Expr*> quiet = quietParts(graph);
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  std::set<Key> reported;
  std::set<uint32_t> reportedOpen;  // of too many pairs: places that have a warning
  for (const auto& [steps, verdict] : report.pairs) {
    if (verdict.decider != Decider::None && verdict.decider != Decider::Witness)
      continue;
    const auto& [first, second] = steps;
    if (quiet.contains(graph[first].origin) || quiet.contains(graph[second].origin))
      continue;
    const SourceRange a = rangeOf(graph, first), b = rangeOf(graph, second);
    if (report.isCut && verdict.decider == Decider::None && !reportedOpen.insert(b.begin).second)
      continue;
    if (!reported.insert(Key{a.begin, a.end, b.begin, b.end}).second)
      continue;
    if (verdict.decider == Decider::Witness)
      reportMeeting(graph, first, second, *verdict.meeting, policy != RacePolicy::Warn, sink);
    else
      reportUnknown(graph, first, second, verdict, policy == RacePolicy::Deny, sink);
  }
}

}  // namespace vortex::lang::flow
