// Which borrows each local may hold at each point (forward, union at joins), and the accesses that conflict with those that are held
// by something used later.
#include "base/text.h"
#include "lang/sema/ownership/analysis.h"
#include "lang/sema/ownership/indices.h"
#include "lang/sema/ownership/liveness.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

namespace vortex::lang::ownership {
namespace {

using LoanSet = std::vector<uint32_t>;  // sorted
/// Locals without loans are absent.
using State = std::map<LocalId, LoanSet>;

bool addAll(LoanSet& to, const LoanSet& from) {
  LoanSet joined;
  std::set_union(to.begin(), to.end(), from.begin(), from.end(), std::back_inserter(joined));
  const bool changed = joined.size() != to.size();
  to = std::move(joined);
  return changed;
}

bool addAll(State& to, const State& from) {
  bool changed = false;
  for (const auto& [local, loans] : from)
    changed = addAll(to[local], loans) || changed;
  return changed;
}

enum class Access : uint8_t { Read, Share, Lend, Write, Move, Die };

class Borrows {
public:
  Borrows(const Graph& graph, diag::DiagnosticSink& sink) : graph_(graph), sink_(sink), live_(graph) {}

  Summary run() {
    Summary summary(graph_.function->params.size(), false);
    if (graph_.loans.empty())
      return summary;
    std::vector<State> states(graph_.blocks.size());
    std::vector<bool> reached(graph_.blocks.size());
    reached[0] = true;
    std::deque<uint32_t> work{0};
    while (!work.empty()) {
      const uint32_t block = work.front();
      work.pop_front();
      State state = states[block];
      for (const Statement& statement : graph_.blocks[block].statements)
        step(statement, state);
      for (uint32_t next : graph_.blocks[block].successors) {
        State entering = state;
        std::erase_if(entering, [&](const auto& held) { return !live_.atEntry(next).test(held.first); });
        if (addAll(states[next], entering) || !reached[next])
          work.push_back(next);
        reached[next] = true;
      }
    }
    for (block_ = 0; block_ < graph_.blocks.size(); ++block_) {
      if (!reached[block_])
        continue;
      State state = states[block_];
      const std::vector<Bits> after = live_.afterEach(block_);
      const std::vector<Statement>& statements = graph_.blocks[block_].statements;
      for (at_ = 0; at_ < statements.size(); ++at_) {
        check(statements[at_], state, after[at_]);
        if (statements[at_].op == Op::Return)
          summarise(statements[at_], state, summary);
        step(statements[at_], state);
        std::erase_if(state, [&](const auto& held) { return !after[at_].test(held.first); });
      }
    }
    return summary;
  }

private:
  void step(const Statement& statement, State& state) const {
    switch (statement.op) {
    case Op::Borrow: {
      LoanSet loans{statement.index};
      const bool isParam = graph_.loans[statement.index].param.has_value();
      if (!isParam && (statement.place.hasDeref() || graph_.locals[statement.place.root].carries))
        if (auto found = state.find(statement.place.root); found != state.end())
          addAll(loans, found->second);
      state[statement.local] = std::move(loans);
      return;
    }
    case Op::Flow: {
      LoanSet loans;
      if (auto found = state.find(statement.local); statement.isWeak && found != state.end())
        loans = found->second;
      for (LocalId source : statement.sources)
        if (auto found = state.find(source); found != state.end())
          addAll(loans, found->second);
      state[statement.local] = std::move(loans);
      return;
    }
    case Op::Dead: state.erase(statement.place.root); return;
    default: return;
    }
  }

  void check(const Statement& statement, const State& state, const Bits& after) {
    switch (statement.op) {
    case Op::Read: return access(statement, Access::Read, state, after);
    case Op::Move: return access(statement, Access::Move, state, after);
    case Op::Assign:
    case Op::Mutate: return access(statement, Access::Write, state, after);
    case Op::Dead: return access(statement, Access::Die, state, after);
    case Op::Borrow: {
      const Loan& loan = graph_.loans[statement.index];
      if (!loan.param)
        access(statement, loan.kind == LoanKind::Mutable ? Access::Lend : Access::Share, state, after);
      return;
    }
    case Op::Return: return checkReturn(statement, state);
    default: return;
    }
  }

  void access(const Statement& statement, Access how, const State& state, const Bits& after) {
    statementIsAssign_ = statement.op == Op::Assign;
    for (const auto& [holder, loans] : state) {
      if (!after.test(holder) || (how == Access::Lend && statement.local == holder))
        continue;
      for (uint32_t index : loans) {
        const Loan& loan = graph_.loans[index];
        if (loan.param || (loan.kind == LoanKind::Shared && (how == Access::Read || how == Access::Share)))
          continue;
        if (!conflicts(statement.place, loan, how, holder))
          continue;
        report(statement, how, loan, holder);
        return;
      }
    }
  }

  bool conflicts(const Place& place, const Loan& loan, Access how, LocalId holder) {
    const Place& lent = loan.place;
    if (place.root != lent.root)
      return false;
    const size_t common = std::min(place.path.size(), lent.path.size());
    for (size_t i = 0; i < common; ++i) {
      const Projection &a = place.path[i], &b = lent.path[i];
      if (a.kind != b.kind)
        return true;
      if (a.kind == Projection::Kind::Field && a.field != b.field)
        return false;
      if (a.kind == Projection::Kind::Index && isComparable(*b.expr, holder) && !indices().mayOverlap(*a.expr, *b.expr))
        return false;
    }
    // Replacing or dropping a reference leaves what it refers to alone.
    const bool isShallow = how == Access::Die || (how == Access::Write && statementIsAssign_);
    if (isShallow)
      for (size_t i = common; i < lent.path.size(); ++i)
        if (lent.path[i].kind == Projection::Kind::Deref)
          return false;
    return true;
  }

  /// The variables in the borrowed place's indices still have the values they had when it was borrowed: what holds the borrow does
  /// not outlive an iteration of a loop that gives them new ones.
  bool isComparable(const Expr& lent, LocalId holder) {
    std::set<const Variable*> variables;
    indices().variablesOf(lent, variables);
    for (const Variable* variable : variables) {
      auto found = loopOf_.find(variable);
      if (found == loopOf_.end()) {
        uint32_t loop = 0;
        for (const Local& local : graph_.locals)
          if (local.variable == variable)
            loop = local.loop;
        found = loopOf_.emplace(variable, loop).first;
      }
      if (!graph_.isInside(graph_.locals[holder].loop, found->second))
        return false;
    }
    return true;
  }

  Indices& indices() {
    if (!indices_)
      indices_ = std::make_unique<Indices>(*graph_.function);
    return *indices_;
  }

  void checkReturn(const Statement& statement, const State& state) {
    for (LocalId source : statement.sources) {
      auto found = state.find(source);
      for (uint32_t index : found == state.end() ? LoanSet{} : found->second) {
        const Loan& loan = graph_.loans[index];
        if (loan.param || loan.place.hasDeref())
          continue;
        const Local& owner = graph_.locals[loan.place.root];
        if (!ended_.insert(loan.range.begin).second)
          continue;
        const bool isNamed = owner.variable && !owner.variable->name.empty();
        auto builder = sink_.error("E0520", loan.range,
                                   base::concat("the result refers to ", graph_.describe(Place{loan.place.root, {}}),
                                                ", which ends with this function"));
        builder.primary(loan.isView ? "this view is returned" : "this borrow is returned");
        builder.label(owner.range, !isNamed                                    ? "made here"
                                   : owner.variable && owner.variable->isParam ? "taken by value here"
                                                                               : "declared here");
        builder.help("return the value itself instead of a reference to it");
      }
    }
  }

  void summarise(const Statement& statement, const State& state, Summary& summary) const {
    for (LocalId source : statement.sources)
      if (auto found = state.find(source); found != state.end())
        for (uint32_t index : found->second)
          if (graph_.loans[index].param)
            summary[*graph_.loans[index].param] = true;
  }

  void report(const Statement& statement, Access how, const Loan& loan, LocalId holder);
  void labelLoan(diag::DiagnosticBuilder& builder, const Loan& loan) const;
  void reportDeath(const Statement& statement, const Loan& loan, SourceRange use);
  void reportLaunch(const Statement& statement, Access how, const Loan& loan);

  const Graph& graph_;
  diag::DiagnosticSink& sink_;
  Liveness live_;
  std::unique_ptr<Indices> indices_;  ///< made when two places of one root are indexed
  std::map<const Variable*, uint32_t> loopOf_;
  std::set<std::pair<uint32_t, uint32_t>> reported_;  ///< borrow and access
  std::set<uint32_t> ended_;                          ///< borrows reported to outlive their owner
  uint32_t block_ = 0;
  size_t at_ = 0;
  bool statementIsAssign_ = false;
};

void Borrows::labelLoan(diag::DiagnosticBuilder& builder, const Loan& loan) const {
  builder.label(loan.range,
                loan.isLoop ? "the loop walks over it here"
                : loan.isCapture
                    ? (loan.kind == LoanKind::Mutable ? "a closure changes it here" : "a closure uses it here")
                : loan.isView ? (loan.kind == LoanKind::Mutable ? "viewed here, to be written" : "viewed here")
                : loan.kind == LoanKind::Mutable || loan.isReserved ? "mutably borrowed here"
                                                                    : "borrowed here");
}

void Borrows::reportDeath(const Statement& statement, const Loan& loan, SourceRange use) {
  const Local& owner = graph_.locals[loan.place.root];
  if (!owner.variable || !ended_.insert(loan.range.begin).second)
    return;
  auto builder =
      sink_.error("E0519", loan.range,
                  base::concat(graph_.describe(Place{loan.place.root, {}}), " does not live as long as this ",
                               loan.isView ? "view" : "borrow", " of it"));
  builder.primary(loan.isView ? "viewed here" : "borrowed here");
  builder.label(statement.range, base::concat("`", owner.variable->name, "` ends here"));
  if (use.isValid() && !(use == statement.range) && !(use == loan.range))
    builder.label(use, "still used here");
  builder.help(base::concat("declare `", owner.variable->name, "` outside this block"));
}

/// What lets the launch compile: the text is that of an argument.
static std::string helpForLaunch(const Graph& graph, Access how, const Loan& read) {
  const std::string what = graph.describe(read.place);
  if (how == Access::Move)
    return base::concat("lend it to both: `&", std::string_view(what).substr(1));
  const bool isCopied = read.lent && (read.lent->isTensor() || read.lent->kind == TypeKind::Vec);
  if (read.kind == LoanKind::Mutable || read.isReserved || !isCopied)
    return "write to a tensor of its own";
  if (read.place.hasIndex())
    return "give the kernel a copy of the slice that it reads, `.copy()` behind it, or write to a tensor of its own";
  return base::concat("give the kernel a copy of what it reads: `&", std::string_view(what).substr(1, what.size() - 2),
                      ".copy()`, or write to a tensor of its own");
}

/// Of two arguments the later one is the culprit, whichever of them the conflict was found at.
void Borrows::reportLaunch(const Statement& statement, Access how, const Loan& loan) {
  const bool sameStart = statement.place.path.size() == loan.place.path.size();
  const std::string what = graph_.describe(Place{loan.place.root, {}});
  const Loan* here = statement.op == Op::Borrow ? &graph_.loans[statement.index] : nullptr;
  const bool isLater = !here || loan.range.begin < here->range.begin;
  auto builder = sink_.error(
      "E0522", isLater ? statement.range : loan.range,
      base::concat(sameStart && !statement.place.hasIndex() ? "two arguments of this launch name "
                                                            : "two arguments of this launch may overlap in ",
                   what, how == Access::Move ? ", and one takes it" : ", and one of them is written"));
  const auto wordFor = [](const Loan& of) {
    return of.kind == LoanKind::Mutable || of.isReserved ? "mutably borrowed here" : "borrowed here";
  };
  builder.primary(!here ? "moved here" : wordFor(isLater ? *here : loan));
  builder.label(isLater ? loan.range : here->range, wordFor(isLater ? loan : *here));
  const bool readsHere = here && here->kind == LoanKind::Shared;
  builder.help(helpForLaunch(graph_, how, readsHere ? *here : loan));
}

void Borrows::report(const Statement& statement, Access how, const Loan& loan, LocalId holder) {
  const SourceRange use = live_.nextUse(block_, at_, holder);
  if (how == Access::Die)
    return reportDeath(statement, loan, use);
  const Expr* launch = statement.op == Op::Move     ? statement.launch
                       : statement.op == Op::Borrow ? graph_.loans[statement.index].launch
                                                    : nullptr;
  const std::string what = graph_.describe(statement.place.root == loan.place.root && statement.place.path.empty()
                                               ? Place{loan.place.root, {}}
                                               : statement.place);
  const char* id = how == Access::Move    ? "E0515"
                   : how == Access::Write ? "E0517"
                   : how == Access::Read  ? "E0518"
                                          : "E0516";
  if (!reported_.insert({loan.range.begin, statement.range.begin}).second)
    return;
  if (launch && launch == loan.launch)
    return reportLaunch(statement, how, loan);
  const bool isMutable = loan.kind == LoanKind::Mutable;
  std::string message = how == Access::Move    ? base::concat(what, " cannot be moved while it is borrowed")
                        : how == Access::Write ? base::concat(what, " cannot be changed while it is borrowed")
                        : how == Access::Read  ? base::concat(what, " cannot be used while it is mutably borrowed")
                        : isMutable ? base::concat(what, " cannot be borrowed again while it is mutably borrowed")
                                    : base::concat(what, " cannot be borrowed mutably while it is borrowed");
  auto builder = sink_.error(id, statement.range, std::move(message));
  builder.primary(how == Access::Move    ? "moved here"
                  : how == Access::Write ? "changed here"
                  : how == Access::Read  ? "used here"
                  : how == Access::Lend  ? "mutably borrowed here"
                                         : "borrowed here");
  labelLoan(builder, loan);
  const bool repeats = use == statement.range || use == loan.range;
  if (use.isValid() && !repeats && !loan.isLoop)
    builder.label(use, "the borrow is used again here");
  if (loan.isLoop)
    builder.help("walk over the indices, or over a copy: `.copy()`");
  else if (use.isValid() && !repeats)
    builder.help("do this after the last use of the borrow, or end the borrow earlier");
}

}  // namespace

Summary checkBorrows(const Graph& graph, diag::DiagnosticSink& sink) { return Borrows(graph, sink).run(); }

}  // namespace vortex::lang::ownership
