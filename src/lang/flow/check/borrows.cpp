// Which borrows each local may hold at each point (forward, union at joins), and the accesses that conflict with those that are held
// by something used later.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "lang/flow/check/apart.h"
#include "lang/flow/check/liveness.h"
#include "lang/flow/check/written.h"
#include "lang/flow/graph/owned_types.h"
#include "lang/flow/solve/solve.h"

namespace vortex::lang::flow {
namespace {

/// Which loans each local holds: pairs, sorted. One flat list, as it is copied along every edge.
class Held {
public:
  struct Pair {
    LocalId holder = kNoLocal;
    uint32_t loan = 0;
    auto operator<=>(const Pair&) const = default;
  };

  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }
  bool empty() const { return pairs_.empty(); }
  bool operator==(const Held&) const = default;

  std::span<const Pair> of(LocalId holder) const {
    const auto first = std::lower_bound(begin(), end(), Pair{holder, 0});
    auto last = first;
    while (last != end() && last->holder == holder)
      ++last;
    return {first, last};
  }
  void add(Pair pair) {
    const auto at = std::lower_bound(begin(), end(), pair);
    if (at == end() || *at != pair)
      pairs_.insert(at, pair);
  }
  void add(const Held& other) {
    std::vector<Pair> joined;
    std::set_union(begin(), end(), other.begin(), other.end(), std::back_inserter(joined));
    pairs_ = std::move(joined);
  }
  /// `to` holds also what `from` holds.
  void spread(LocalId from, LocalId to) {
    const auto known = of(from);
    const std::vector<Pair> added(known.begin(), known.end());
    for (const Pair& each : added)
      add({to, each.loan});
  }
  void drop(LocalId holder) {
    std::erase_if(pairs_, [&](const Pair& each) { return each.holder == holder; });
  }
  void keepOnly(const Bits& holders) {
    std::erase_if(pairs_, [&](const Pair& each) { return !holders.test(indexOf(each.holder)); });
  }

private:
  std::vector<Pair> pairs_;
};

struct LoanDomain {
  using State = Held;
  static constexpr Direction kDirection = Direction::Forward;

  State start() const { return {}; }
  bool edge(BlockId from, uint32_t successor, State& state) const {
    state.keepOnly(live->atEntry((*graph)[from].successors[successor]));
    return true;
  }
  void join(State& into, const State& other, bool) const { into.add(other); }
  void step(StepId, const Step& step, State& state) const {
    switch (step.kind) {
    case StepKind::Borrow: {
      const Loan& loan = graph->loans[step.index];
      const Place& place = (*graph)[step.place];
      if (place.root != loan.holder)
        state.drop(loan.holder);
      if (!loan.param && (place.hasDeref() || (*graph)[place.root].holdsBorrows))
        state.spread(place.root, loan.holder);
      state.add({loan.holder, step.index});
      return;
    }
    case StepKind::Flow:
    case StepKind::FlowMore: {
      const LocalId to = (*graph)[step.place].root, from{step.index};
      if (step.kind == StepKind::Flow && from != to)
        state.drop(to);
      state.spread(from, to);
      return;
    }
    case StepKind::End: state.drop((*graph)[step.place].root); return;
    default: return;
    }
  }

  const Graph* graph;
  const Liveness* live;
};

enum class Act : uint8_t { Read, Share, Lend, Write, Move, Die };

/// Nothing: the step touches no storage.
std::optional<Act> actOf(const Graph& graph, const Step& step) {
  switch (step.kind) {
  case StepKind::Use:
  case StepKind::Copy:
  case StepKind::MoveOut: return Act::Read;
  case StepKind::Move: return Act::Move;
  case StepKind::Store:
  case StepKind::Mutate: return Act::Write;
  case StepKind::End: return Act::Die;
  case StepKind::Borrow: {
    const Loan& loan = graph.loans[step.index];
    return loan.param ? std::nullopt : std::optional(loan.kind == LoanKind::Mutable ? Act::Lend : Act::Share);
  }
  default: return std::nullopt;
  }
}

bool isSubscript(const Projection& projection) {
  return projection.kind != ProjectionKind::Field && projection.kind != ProjectionKind::Deref;
}

class Borrows {
public:
  Borrows(Graph& graph, diag::DiagnosticSink& sink) : graph_(graph), sink_(sink), live_(graph), apart_(graph) {}

  Summary run() {
    Summary summary(graph_.function->params.size(), false);
    if (!live_.crossesBlocks()) {
      for (uint32_t block = 0; block < graph_.blocks.size(); ++block)
        checkFrom(BlockId{block}, {}, summary);
      return summary;
    }
    const auto solution = solve(graph_, LoanDomain{&graph_, &live_}, Contexts::plain(graph_));
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block)
      if (const Held* held = solution.at(BlockId{block}, Context{0}))
        checkFrom(BlockId{block}, *held, summary);
    return summary;
  }

private:
  bool lends(BlockId block) const {
    for (uint32_t i = indexOf(graph_[block].begin); i < indexOf(graph_[block].end); ++i)
      if (graph_[StepId{i}].kind == StepKind::Borrow)
        return true;
    return false;
  }

  void checkFrom(BlockId block, Held held, Summary& summary) {
    if (held.empty() && !lends(block))
      return;
    const std::vector<Bits> after = live_.afterEach(block);
    const uint32_t begin = indexOf(graph_[block].begin), end = indexOf(graph_[block].end);
    for (uint32_t i = begin; i < end; ++i) {
      const Step& step = graph_[StepId{i}];
      if (const auto act = actOf(graph_, step))
        access(StepId{i}, *act, held, after[i - begin]);
      if (step.kind == StepKind::Result)
        returned(step, held, summary);
      LoanDomain{&graph_, &live_}.step(StepId{i}, step, held);
      held.keepOnly(after[i - begin]);
    }
  }

  void access(StepId id, Act act, const Held& held, const Bits& after) {
    const Step& step = graph_[id];
    for (const auto [holder, index] : held) {
      const Loan& loan = graph_.loans[index];
      if (!after.test(indexOf(holder)) || (act == Act::Lend && graph_.loans[step.index].holder == holder) ||
          loan.param || (loan.kind == LoanKind::Shared && (act == Act::Read || act == Act::Share)))
        continue;
      if (conflicts(id, loan, act, holder))
        return report(id, act, loan, holder);
    }
  }

  bool conflicts(StepId id, const Loan& loan, Act act, LocalId holder) {
    const Place &place = graph_[graph_[id].place], &lent = graph_[loan.place];
    if (place.root != lent.root)
      return false;
    const size_t common = std::min(place.path.size(), lent.path.size());
    Type type = graph_[place.root].type;
    for (size_t i = 0; i < common; ++i) {
      const Projection &a = place.path[i], &b = lent.path[i];
      const Type of = stripRef(type);
      const bool areSubscripts = isSubscript(a) && isSubscript(b);
      if (a.kind != b.kind && !areSubscripts)
        return true;
      if (a.kind == ProjectionKind::Field && a.field != b.field)
        return false;
      const bool isCut = of->kind == TypeKind::Array && graph_.function->inKernel;
      if (areSubscripts && apart_.isFixed(b, holder) && !apart_.mayOverlap(a, id, b, isCut ? of->count : 0))
        return false;
      if (a.kind == ProjectionKind::Field)
        type = a.field < of->elems.size() ? of->elems[a.field] : of;
      else
        type = a.kind == ProjectionKind::Slot && of->elem ? of->elem : of;
    }
    // Replacing or dropping a reference leaves what it refers to alone.
    const bool isShallow = act == Act::Die || graph_[id].kind == StepKind::Store;
    return !isShallow || std::none_of(lent.path.begin() + static_cast<ptrdiff_t>(common), lent.path.end(),
                                      [](const auto& each) { return each.kind == ProjectionKind::Deref; });
  }

  void returned(const Step& step, const Held& held, Summary& summary) {
    for (const auto [holder, index] : held.of(graph_[step.place].root)) {
      const Loan& loan = graph_.loans[index];
      if (loan.param)
        summary[*loan.param] = true;
      else if (!graph_[loan.place].hasDeref() && ended_.insert(loan.range.begin).second)
        reportReturn(loan);
    }
  }

  /// "`p`", whatever part of it a place is.
  std::string describeRoot(PlaceId place) const { return graph_.describe(graph_[place].root); }

  void report(StepId id, Act act, const Loan& loan, LocalId holder);
  void reportConflict(const Step& step, Act act, const Loan& loan, source::SourceRange use);
  void labelLoan(diag::DiagnosticBuilder& builder, const Loan& loan) const;
  void reportReturn(const Loan& loan);
  void reportDeath(const Step& step, const Loan& loan, source::SourceRange use);
  void reportLaunch(const Step& step, Act act, const Loan& loan);
  std::string helpForLaunch(Act act, const Loan& read) const;

  Graph& graph_;
  diag::DiagnosticSink& sink_;
  Liveness live_;
  Apart apart_;
  std::set<std::pair<uint32_t, uint32_t>> reported_;  ///< borrow and access
  std::set<uint32_t> ended_;                          ///< borrows reported to outlive their owner
};

//===-- messages --------------------------------------------------------------------------------------------------===//

void Borrows::reportReturn(const Loan& loan) {
  const Local& owner = graph_[graph_[loan.place].root];
  const bool isNamed = owner.variable && !owner.variable->name.empty();
  auto builder =
      sink_.error("E0520", loan.range,
                  base::concat("the result refers to ", describeRoot(loan.place), ", which ends with this function"));
  builder.primary(loan.isView ? "this view is returned" : "this borrow is returned");
  builder.label(owner.range, !isNamed                  ? "made here"
                             : owner.variable->isParam ? "taken by value here"
                                                       : "declared here");
  builder.help("return the value itself instead of a reference to it");
}

void Borrows::labelLoan(diag::DiagnosticBuilder& builder, const Loan& loan) const {
  const bool isMutable = loan.kind == LoanKind::Mutable;
  builder.label(loan.range, loan.isLoop      ? "the loop walks over it here"
                            : loan.isCapture ? (isMutable ? "a closure changes it here" : "a closure uses it here")
                            : loan.isView    ? (isMutable ? "viewed here, to be written" : "viewed here")
                            : isMutable || loan.isReserved ? "mutably borrowed here"
                                                           : "borrowed here");
}

void Borrows::reportDeath(const Step& step, const Loan& loan, source::SourceRange use) {
  const Local& owner = graph_[graph_[loan.place].root];
  if (!owner.variable || !ended_.insert(loan.range.begin).second)
    return;
  auto builder = sink_.error("E0519", loan.range,
                             base::concat(describeRoot(loan.place), " does not live as long as this ",
                                          loan.isView ? "view" : "borrow", " of it"));
  builder.primary(loan.isView ? "viewed here" : "borrowed here");
  builder.label(rangeOf(step), base::concat("`", owner.variable->name, "` ends here"));
  if (use.isValid() && !(use == rangeOf(step)) && !(use == loan.range))
    builder.label(use, "still used here");
  builder.help(base::concat("declare `", owner.variable->name, "` outside this block"));
}

/// What lets the launch compile: the text is that of an argument.
std::string Borrows::helpForLaunch(Act act, const Loan& read) const {
  const std::string what = graph_.describe(read.place);
  if (act == Act::Move)
    return base::concat("lend it to both: `&", std::string_view(what).substr(1));
  const bool isCopied = read.lent && (read.lent->isTensor() || read.lent->kind == TypeKind::Vec);
  if (read.kind == LoanKind::Mutable || read.isReserved || !isCopied)
    return "write to a tensor of its own";
  if (graph_[read.place].isIndexed())
    return "give the kernel a copy of the slice that it reads, `.copy()` behind it, or write to a tensor of its own";
  return base::concat("give the kernel a copy of what it reads: `&", std::string_view(what).substr(1, what.size() - 2),
                      ".copy()`, or write to a tensor of its own");
}

/// Of two arguments the later one is the culprit, whichever of them the conflict was found at.
void Borrows::reportLaunch(const Step& step, Act act, const Loan& loan) {
  const Place& place = graph_[step.place];
  const bool sameStart = place.path.size() == graph_[loan.place].path.size();
  const Loan* here = step.kind == StepKind::Borrow ? &graph_.loans[step.index] : nullptr;
  const bool isLater = !here || loan.range.begin < here->range.begin;
  auto builder = sink_.error(
      "E0522", isLater ? rangeOf(step) : loan.range,
      base::concat(sameStart && !place.isIndexed() ? "two arguments of this launch name "
                                                   : "two arguments of this launch may overlap in ",
                   describeRoot(loan.place), act == Act::Move ? ", and one takes it" : ", and one of them is written"));
  const auto wordFor = [](const Loan& of) {
    return of.kind == LoanKind::Mutable || of.isReserved ? "mutably borrowed here" : "borrowed here";
  };
  builder.primary(!here ? "moved here" : wordFor(isLater ? *here : loan));
  builder.label(isLater ? loan.range : here->range, wordFor(isLater ? loan : *here));
  const bool readsHere = here && here->kind == LoanKind::Shared;
  builder.help(helpForLaunch(act, readsHere ? *here : loan));
}

void Borrows::report(StepId id, Act act, const Loan& loan, LocalId holder) {
  const Step& step = graph_[id];
  const source::SourceRange use = live_.nextUse(id, holder);
  if (act == Act::Die)
    return reportDeath(step, loan, use);
  if (!reported_.insert({loan.range.begin, rangeOf(step).begin}).second)
    return;
  const Expr* launch = step.kind == StepKind::Move     ? graph_.moves[step.index].launch
                       : step.kind == StepKind::Borrow ? graph_.loans[step.index].launch()
                                                       : nullptr;
  if (launch && launch == loan.launch())
    return reportLaunch(step, act, loan);
  reportConflict(step, act, loan, use);
}

void Borrows::reportConflict(const Step& step, Act act, const Loan& loan, source::SourceRange use) {
  struct Words {
    const char* id;
    std::string_view message, label;
  };
  const bool isMutable = loan.kind == LoanKind::Mutable;
  const Words words = act == Act::Move    ? Words{"E0515", " cannot be moved while it is borrowed", "moved here"}
                      : act == Act::Write ? Words{"E0517", " cannot be changed while it is borrowed", "changed here"}
                      : act == Act::Read  ? Words{"E0518", " cannot be used while it is mutably borrowed", "used here"}
                      : isMutable
                          ? Words{"E0516", " cannot be borrowed again while it is mutably borrowed", "borrowed here"}
                          : Words{"E0516", " cannot be borrowed mutably while it is borrowed", "borrowed here"};
  const source::SourceRange range = rangeOf(step);
  auto builder = sink_.error(words.id, range, base::concat(graph_.describe(step.place), words.message));
  builder.primary(act == Act::Lend ? "mutably borrowed here" : std::string(words.label));
  labelLoan(builder, loan);
  const bool repeats = use == range || use == loan.range;
  if (use.isValid() && !repeats && !loan.isLoop)
    builder.label(use, "the borrow is used again here");
  if (loan.isLoop)
    builder.help("walk over the indices, or over a copy: `.copy()`");
  else if (use.isValid() && !repeats)
    builder.help("do this after the last use of the borrow, or end the borrow earlier");
}

}  // namespace

Summary checkBorrows(Graph& graph, diag::DiagnosticSink& sink) {
  const bool returnsBorrows = graph.function->resultType && mayHoldBorrows(graph.function->resultType);
  const bool lends = std::any_of(graph.loans.begin(), graph.loans.end(), [](const Loan& loan) { return !loan.param; });
  if (!lends && !returnsBorrows)
    return Summary(graph.function->params.size(), false);
  return Borrows(graph, sink).run();
}

}  // namespace vortex::lang::flow
