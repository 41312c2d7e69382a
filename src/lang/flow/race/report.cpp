#include <set>

#include "base/text.h"
#include "lang/flow/check/written.h"
#include "lang/flow/race/races.h"
#include "lang/sema/children.h"
#include "lang/sema/expr_parts.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {
namespace {

using source::SourceRange;

SourceRange rangeOf(const Graph& graph, StepId step) { return flow::rangeOf(graph[step]); }

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
  if (meeting.isOfCopy)
    return text + base::concat("block ", thread(meeting.firstBlock), " writes ", meeting.element,
                               " while a copy of its own may still read it");
  return text + base::concat("threads ", thread(meeting.firstThread), " and ", thread(meeting.secondThread),
                             " of block ", thread(meeting.firstBlock), " touch ", meeting.element);
}

/// The tensor that both steps touch and one of them writes: a step may touch others besides.
std::string storageName(const Graph& graph, StepId first, StepId second) {
  for (const Access& a : graph.accessesOf(graph[first]))
    for (const Access& b : graph.accessesOf(graph[second])) {
      if (a.mode == AccessMode::Read && b.mode == AccessMode::Read)
        continue;
      const std::span<const LocalId> others = graph[b.place].roots();
      for (LocalId root : graph[a.place].roots())
        if (std::find(others.begin(), others.end(), root) == others.end())
          continue;
        else if (isSharedStorage(graph[root].storage))
          return graph[root].variable ? "`" + graph[root].variable->name + "`" : "the result";
        else if (isSharedStorage(graph[a.place].storage))  // of a struct
          return graph.describe(a.place);
    }
  return "memory";
}

/// What a number is computed from, where that is a variable that was computed itself: of `i + half` what `i` is.
const Expr* firstComputed(const Expr* value, const Roots& roots) {
  const Expr* found = value;
  forEachChild(*value, [&](const Expr& child) {
    const Expr* from = definingValue(&child, roots);
    if (found == value && from != &child && from->kind == ExprKind::Binary)
      found = firstComputed(from, roots);
  });
  return found;
}

/// A subscript that no proof tells apart, where it is computed.
const Expr* undecidedSubscript(const Graph& graph, const Roots& roots, StepId step) {
  const Expr* named = nullptr;
  for (const Access& access : graph.accessesOf(graph[step])) {
    if (access.mode == AccessMode::Read || !access.origin || access.origin->kind != ExprKind::Element)
      continue;
    for (const Expr* index : asElement(*access.origin).indices) {
      const Expr* value = definingValue(index, roots);
      if (value->kind == ExprKind::Binary || value->kind == ExprKind::If)
        return firstComputed(value, roots);
      named = !named && value->kind != ExprKind::Int ? value : named;
    }
  }
  return named;
}

bool writes(const Graph& graph, StepId step) {
  for (const Access& access : graph.accessesOf(graph[step]))
    if (access.mode != AccessMode::Read)
      return true;
  return false;
}

/// Places that one finding names besides its first two.
constexpr size_t kMostFurther = 6;

/// Pairs of accesses with one cause.
struct Finding {
  std::pair<StepId, StepId> steps;  ///< the first of them
  const RaceVerdict* verdict = nullptr;
  std::vector<StepId> further;  ///< of the others, each place once
};

void labelFurther(const Graph& graph, const Finding& finding, diag::DiagnosticBuilder& builder) {
  const bool isRace = finding.verdict->decider == Decider::Witness;
  for (size_t i = 0; i < std::min(finding.further.size(), kMostFurther); ++i) {
    const bool isWrite = writes(graph, finding.further[i]);
    builder.label(rangeOf(graph, finding.further[i]), isRace    ? isWrite ? "also written here" : "also read here"
                                                      : isWrite ? "and so may this write"
                                                                : "and so may this read");
  }
  if (finding.further.size() > kMostFurther)
    builder.note(base::concat("and ", finding.further.size() - kMostFurther, " more accesses"));
}

/// Of `c[i] += v`.
void suggestAtomic(const Graph& graph, StepId writer, diag::DiagnosticBuilder& builder) {
  const Expr* statement = graph[writer].origin;
  if (!statement || statement->kind != ExprKind::Assign || !statement->hasOp)
    return;
  const Type type = asAssign(*statement).place.type;
  if (statement->binaryOp == BinaryOp::Add && type->kind == TypeKind::Scalar && bitWidth(type->scalar) >= 32)
    builder.help("`atomic_add(&mut …, …)` adds for every thread, also where several meet");
}

void reportMeeting(const Graph& graph, const Finding& finding, bool isError, diag::DiagnosticSink& sink) {
  const auto [first, second] = finding.steps;
  const Meeting& meeting = *finding.verdict->meeting;
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
    builder.label(b, meeting.isOfCopy ? "the copy starts here" : otherWrites ? "and written here" : "and read here");
  }
  labelFurther(graph, finding, builder);
  const bool isOfGrid = meeting.acrossBlocks || finding.verdict->isOpenAcrossBlocks;
  if (isOfGrid && graph[first].kind == StepKind::Atomic && graph[second].kind == StepKind::Atomic)
    builder.help("atomic operations of scope `.block` are atomic for the threads of one block only: write `.device`");
  else if (isOfGrid && graph.function->kernel->cooperative)
    builder.help("separate the accesses by `sync_grid()`, let each thread write elements of its own, or use an atomic");
  else if (meeting.isOfCopy)
    builder.help("write `sync_block()` between the two, which completes the copy");
  else if (meeting.acrossBlocks)
    builder.help("blocks run in any order: let each write elements of its own, use an atomic, or launch twice");
  else if (isOfGrid)
    builder.help("threads of other blocks may meet here too, which `sync_block()` does not order: write where no other "
                 "thread reads, use an atomic, or launch twice");
  else
    builder.help(base::concat(a == b ? "" : "separate the accesses by `sync_block()`, ",
                              "let each thread write elements of its own, or use an atomic"));
  suggestAtomic(graph, writer, builder);
}

void reportUnknown(const Graph& graph, const Finding& finding, bool isError, diag::DiagnosticSink& sink) {
  const auto [first, second] = finding.steps;
  const Expr* cause = finding.verdict->cause;
  const StepId writer = writes(graph, first) ? first : second, other = writer == first ? second : first;
  const std::string message = "threads may race on " + storageName(graph, first, second);
  const SourceRange a = rangeOf(graph, writer), b = rangeOf(graph, other);
  auto builder = isError ? sink.error("W0631", a, message) : sink.warning("W0631", a, message);
  builder.primary(a == b ? "may be one element for several threads" : "this write");
  if (!(a == b))
    builder.label(b, "may meet this access");
  labelFurther(graph, finding, builder);
  if (cause && !(cause->range == a) && !(cause->range == b))
    builder.label(cause->range, "depends on this value");
  if (const Expr* subscript = cause ? nullptr : undecidedSubscript(graph, Roots(*graph.function), writer))
    builder.label(subscript->range, "no proof tells this apart for two threads");
  if (finding.verdict->meeting)
    builder.note(describe(*finding.verdict->meeting) + "; an `assert` in the kernel would exclude such arguments");
  if (cause && cause->kind == ExprKind::Builtin && cause->builtin == Builtin::AtomicAdd)
    builder.help(
        "tickets differ for all threads if amounts are positive, nothing else writes the counter and it cannot come "
        "round: count in a `u64`, in loops of constant length, or as long as what is drawn is below a bound");
  suggestAtomic(graph, writer, builder);
  builder.help("`@unchecked(races)` on the statement says that they never meet; `--check` finds races while running");
}

void collect(const Expr& expr, bool isQuiet, std::set<const Expr*>& quiet) {
  isQuiet = isQuiet || expr.uncheckedRaces;
  if (isQuiet)
    quiet.insert(&expr);
  forEachChild(expr, [&](const Expr& child) { collect(child, isQuiet, quiet); });
}

}  // namespace

std::set<const Expr*> quietParts(const Graph& graph) {
  std::set<const Expr*> quiet;
  collect(*graph.function->body, graph.function->kernel->uncheckedRaces, quiet);
  return quiet;
}

std::vector<LaunchLimit> launchLimits(const Graph& graph, const RaceReport& report) {
  std::optional<int64_t> tickets;
  uint32_t limits = 0;
  bool isProven = false, areBlocksApart = false;
  const std::set<const Expr*> quiet = quietParts(graph);
  for (const auto& [steps, verdict] : report.pairs) {
    if (quiet.contains(graph[steps.first].origin) || quiet.contains(graph[steps.second].origin))
      continue;
    if (verdict.decider != Decider::None) {
      limits |= verdict.limits;
      isProven = true;
      areBlocksApart |= verdict.areBlocksApart;
    }
    const auto most = report.mostThreads.find(verdict.counter);
    if (verdict.decider != Decider::None && most != report.mostThreads.end())
      tickets = std::min(tickets.value_or(most->second), most->second);
  }
  std::vector<LaunchLimit> out;
  if (tickets) {
    LaunchLimit limit;
    limit.ofThreads = limit.ofTickets = true;
    limit.most = *tickets;
    out.push_back(std::move(limit));
  }
  for (size_t i = 0; i < report.limits.size(); ++i)
    if (limits >> i & 1)
      out.push_back(report.limits[i]);
  for (const auto& [limit, isAcrossBlocks] : report.gridLimits)
    if (isAcrossBlocks ? areBlocksApart : isProven)
      out.push_back(limit);
  return out;
}

std::set<const Expr*> raceFreeAccesses(const Graph& graph, const RaceReport& report) {
  if (report.isCut)
    return {};
  std::set<StepId> open;
  for (const auto& [steps, verdict] : report.pairs)
    if (verdict.decider == Decider::None || verdict.decider == Decider::Witness ||
        report.mostThreads.contains(verdict.counter) || verdict.limits != 0) {
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

namespace {

/// What two accesses have in common with others that race for the same reason: the value that stands in the way of a proof, or the tensor.
struct Cause {
  Decider decider = Decider::None;
  bool acrossBlocks = false;
  const Expr* value = nullptr;
  std::string storage;
  auto operator<=>(const Cause&) const = default;
};

/// Pairs with one cause become one finding, if they have a place in common or a value that is named.
class Findings {
public:
  explicit Findings(const Graph& graph) : graph_(graph) {}

  void add(std::pair<StepId, StepId> steps, const RaceVerdict& verdict) {
    const bool isRace = verdict.decider == Decider::Witness;
    Cause cause{verdict.decider, isRace && verdict.meeting->acrossBlocks, verdict.cause, {}};
    if (!verdict.cause)
      cause.storage = storageName(graph_, steps.first, steps.second);
    std::vector<Key> keys{keyOf(cause, steps.first), keyOf(cause, steps.second)};
    if (const Expr* subscript =
            isRace || verdict.cause ? nullptr : undecidedAt(writes(graph_, steps.first) ? steps.first : steps.second))
      keys.push_back({{verdict.decider, false, subscript, cause.storage}, {}});
    std::optional<size_t> group;
    for (const Key& key : keys)
      if (const auto found = groupOf_.find(key); found != groupOf_.end())
        group = group ? joined(*group, found->second) : found->second;
    if (!group) {
      group = groups_.size();
      groups_.push_back({steps, &verdict, {}});
    }
    for (StepId step : {steps.first, steps.second})
      groups_[*group].places.try_emplace(placeOf(step), step);
    for (const Key& key : keys)
      groupOf_.insert_or_assign(key, *group);
  }

  std::vector<Finding> all() const {
    std::vector<Finding> out;
    for (const Group& group : groups_) {
      if (group.places.empty())
        continue;
      Finding& finding = out.emplace_back(Finding{group.steps, group.verdict, {}});
      for (const auto& [place, step] : group.places)
        if (place != placeOf(group.steps.first) && place != placeOf(group.steps.second))
          finding.further.push_back(step);
    }
    return out;
  }

private:
  using Place = std::pair<uint32_t, uint32_t>;  ///< in the source
  struct Group {
    std::pair<StepId, StepId> steps;  ///< the first
    const RaceVerdict* verdict = nullptr;
    std::map<Place, StepId> places;
  };
  using Key = std::pair<Cause, Place>;

  Place placeOf(StepId step) const {
    const SourceRange range = rangeOf(graph_, step);
    return {range.begin, range.end};
  }
  Key keyOf(const Cause& cause, StepId step) const { return {cause, cause.value ? Place{} : placeOf(step)}; }

  /// Two groups that turn out to be one.
  size_t joined(size_t a, size_t b) {
    const size_t kept = std::min(a, b), gone = std::max(a, b);
    if (kept == gone)
      return kept;
    groups_[kept].places.merge(groups_[gone].places);
    groups_[gone].places.clear();
    for (auto& [key, group] : groupOf_)
      if (group == gone)
        group = kept;
    return kept;
  }

  const Expr* undecidedAt(StepId step) {
    const auto [known, isNew] = undecided_.try_emplace(step, nullptr);
    if (isNew)
      known->second = undecidedSubscript(graph_, roots_, step);
    return known->second;
  }

  const Graph& graph_;
  const Roots roots_{*graph_.function};
  std::vector<Group> groups_;  ///< in the order in which they were found
  std::map<Key, size_t> groupOf_;
  std::map<StepId, const Expr*> undecided_;
};

}  // namespace

void reportRaces(const Graph& graph, const RaceReport& report, RacePolicy policy, diag::DiagnosticSink& sink) {
  const std::set<const Expr*> quiet = quietParts(graph);
  Findings findings(graph);
  for (const auto& [steps, verdict] : report.pairs)
    if ((verdict.decider == Decider::None || verdict.decider == Decider::Witness) &&
        !quiet.contains(graph[steps.first].origin) && !quiet.contains(graph[steps.second].origin))
      findings.add(steps, verdict);
  for (const Finding& finding : findings.all())
    if (finding.verdict->decider == Decider::Witness)
      reportMeeting(graph, finding, policy != RacePolicy::Warn, sink);
    else
      reportUnknown(graph, finding, policy == RacePolicy::Deny, sink);
}

}  // namespace vortex::lang::flow
