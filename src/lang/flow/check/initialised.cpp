// May a tensor be read before it is written? Forward, for each tensor (of an array of tensors: each) whether it may be unwritten and whether it
// may be written.
//
// * Threads that part: where they meet again, behind a branch that they take differently or a loop that they leave in different iterations, a shared
//   tensor is written if something in between writes it. Which thread wrote which element is a question of races.
// * Conditions: a tensor that is unwritten only where a condition held remembers it (`Content::under`), so `if c { t[i] = x } … if c { t[i] }` is no
//   way to an unwritten read. Bool variables are followed through joins.
// * Loops: a loop over a range is entered with what held before it (`State::entering`) kept apart at its header, so that "it did not run at all" is
//   one condition, and no way at all where the range is not empty. Extents are taken to be at least 1.
// * Tensors that copies are staged into are left to the rules of staging (E0475, W0451).
// * Slots whose number is not a constant: a write counts for all, a read for the best of them.
#include "lang/flow/check/initialised.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "lang/flow/check/contents.h"
#include "lang/flow/check/surroundings.h"
#include "lang/flow/solve/solve.h"

namespace vortex::lang::flow {
namespace {

bool isWrite(const Access& access) { return access.mode != AccessMode::Read; }
bool isRead(const Access& access) { return access.mode != AccessMode::Write; }

//===-- the problem -------------------------------------------------------------------------------------------------===//

class Writing {
public:
  struct State {
    std::optional<Contents> entering;  ///< at the header of a loop over a range: no iteration has been
    std::optional<Contents> now;
    bool operator==(const State&) const = default;
  };
  static constexpr Direction kDirection = Direction::Forward;

  Writing(Graph& graph, const Structure& structure, const Uniformity& uniformity, const Tensors& tensors)
      : graph_(graph), tensors_(tensors), ranges_(graph.loops.size()), partings_(graph.blocks.size()) {
    Values values(graph.values, surroundingsOf(graph, structure, graph.values));
    for (uint32_t i = 0; i < graph.loops.size(); ++i)
      findRange(LoopId{i}, values);
    for (uint32_t i = 0; i < graph.blocks.size(); ++i)
      if (const Step& branch = graph.terminator(BlockId{i}); branch.kind == StepKind::Branch)
        if (uniformity.ofValue(branch.value) != Level::Block)
          findParting(BlockId{i}, structure);
  }

  State start() const { return {std::nullopt, Contents(tensors_.count())}; }

  void step(StepId, const Step& step, State& state) const {
    for (auto* contents : {&state.entering, &state.now})
      if (*contents)
        apply(step, **contents);
  }

  bool edge(BlockId from, uint32_t successor, State& state) const {
    const BlockId to = graph_[from].successors[successor];
    if (isBackEdge(from, to) && firstOf != kNoLoop && graph_.isInside(firstOf, graph_[to].loop))
      return false;
    decide(from, successor, state);
    merge(state.now, state.entering);
    state.entering.reset();
    if (!state.now)
      return false;
    meet(from, to, *state.now);
    passPhis(from, to, *state.now);
    const LoopId loop = graph_[to].loop;
    if (loop != kNoLoop && graph_[loop].header == to && ranges_[indexOf(loop)].runs != kNoValue &&
        !graph_.isInside(from, loop))
      std::swap(state.entering, state.now);
    return true;
  }

  void join(State& into, const State& other, bool) const {
    merge(into.entering, other.entering);
    merge(into.now, other.now);
  }

  LoopId firstOf = kNoLoop;  ///< only the first iteration of this loop and of those around it

private:
  /// A loop over a range.
  struct Range {
    ValueId runs = kNoValue;  ///< it has an iteration
    bool alwaysRuns = false;
  };
  /// From a branch that threads take differently to where they meet.
  struct Parting {
    std::set<BlockId> blocks;    ///< the branch and what lies between
    std::set<uint32_t> written;  ///< shared ones, in between
  };

  /// Extents are at least 1.
  std::vector<Condition> sizes() const {
    std::vector<Condition> out;
    const ValueId zero = graph_.values.constant(kUsize, 0);
    for (uint32_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.values[ValueId{i}].kind == NodeKind::Extent)
        out.push_back({graph_.values.op(Op::Lt, kBool, zero, ValueId{i}), true});
    return out;
  }

  void findRange(LoopId id, Values& known) {
    const Loop& loop = graph_[id];
    if (!loop.counter || graph_.terminator(loop.header).kind != StepKind::Branch)
      return;
    const Counter& counter = *loop.counter;
    NodeTable& values = graph_.values;
    Range& range = ranges_[indexOf(id)];
    ValueId low = values.constant(kUsize, 0), high = counter.trips;
    if (counter.kind == Counter::Kind::Range && values.isConstant(counter.step)) {
      const bool isUp = values[counter.step].constant() > 0;
      low = isUp ? counter.begin : counter.end;
      high = isUp ? counter.end : counter.begin;
    }
    range.runs = values.op(Op::Lt, kBool, low, high);
    const PointId point = known.assume(PointId{indexOf(graph_[loop.before].end) - 1}, sizes());
    range.alwaysRuns = known.less(low, high, point) == Truth::Yes;
  }

  void findParting(BlockId branch, const Structure& structure) {
    const BlockId join = structure.postDominator(branch);
    if (join == kNoBlock)
      return;
    Parting parting;
    std::vector<BlockId> pending{branch};
    parting.blocks.insert(branch);
    while (!pending.empty()) {
      const BlockId at = pending.back();
      pending.pop_back();
      if (at != branch)
        addWritten(at, parting.written);
      for (BlockId to : graph_[at].successors)
        if (to != join && parting.blocks.insert(to).second)
          pending.push_back(to);
    }
    partings_[indexOf(join)].push_back(std::move(parting));
  }

  void addWritten(BlockId block, std::set<uint32_t>& out) const {
    for (uint32_t i = indexOf(graph_[block].begin); i < indexOf(graph_[block].end); ++i)
      for (const Access& access : graph_.accessesOf(graph_[StepId{i}]))
        if (isWrite(access))
          for (const Part& part : tensors_.touched(access.place))
            if (part.isShared)
              out.insert(part.units.begin(), part.units.end());
  }

  void apply(const Step& step, Contents& contents) const {
    if (step.kind == StepKind::Empty) {
      const auto [first, end] = tensors_.of(graph_[step.place].root);
      for (uint32_t unit = first; unit < end; ++unit)
        contents[unit] = {.isUnwritten = true};
    }
    for (const Access& access : graph_.accessesOf(step))
      if (isWrite(access))
        for (const Part& part : tensors_.touched(access.place))
          for (uint32_t unit : part.units)
            contents[unit].write();
  }

  bool isBackEdge(BlockId from, BlockId to) const {
    const LoopId loop = graph_[to].loop;
    return loop != kNoLoop && graph_[loop].header == to && graph_.isInside(from, loop);
  }

  //===-- edges -----------------------------------------------------------------------------------------------------===//

  /// What the branch says of the ways on which a tensor is unwritten.
  void decide(BlockId from, uint32_t successor, State& state) const {
    const Step& branch = graph_.terminator(from);
    if (branch.kind != StepKind::Branch)
      return;
    const bool holds = successor == 0;
    if (state.entering) {
      const Range& range = ranges_[indexOf(graph_[from].loop)];
      if (range.alwaysRuns && !holds)
        state.entering.reset();
      else
        learn(range.runs, holds, *state.entering);
    }
    if (state.now)
      learn(branch.value, holds, *state.now);
  }

  void learn(ValueId value, bool holds, Contents& contents) const {
    for (Content& content : contents)
      content.require(graph_.values.resolved(value), holds);
  }

  /// Where threads meet that parted, what some of them wrote is written.
  void meet(BlockId from, BlockId to, Contents& contents) const {
    for (const Parting& parting : partings_[indexOf(to)])
      if (parting.blocks.contains(from))
        for (uint32_t unit : parting.written)
          contents[unit].write();
  }

  /// Bools that take their values on this edge; what a new iteration computes anew is forgotten.
  void passPhis(BlockId from, BlockId to, Contents& contents) const {
    const Block& block = graph_[to];
    const auto operand = static_cast<size_t>(std::find(block.predecessors.begin(), block.predecessors.end(), from) -
                                             block.predecessors.begin());
    const bool isAgain = isBackEdge(from, to);
    for (Content& content : contents) {
      if (!content.isUnwritten)
        continue;
      std::vector<Guard> taken;
      for (ValueId phi : block.phis) {
        if (graph_.values.resolved(phi) != phi || !(graph_.values.type(phi) == kBool))
          continue;
        const ValueId value = graph_.values.resolved(graph_.values.phiOperands(phi)[operand]);
        if (graph_.values.isConstant(value))
          taken.push_back({phi, graph_.values[value].constant() != 0});
        else if (const auto holds = content.known(value))
          taken.push_back({phi, *holds});
      }
      std::erase_if(content.under, [&](const Guard& guard) {
        return (isAgain && graph_.changesIn(guard.value, block.loop)) ||
               std::find(block.phis.begin(), block.phis.end(), guard.value) != block.phis.end();
      });
      for (const Guard& guard : taken)
        content.remember(guard);
    }
  }

  Graph& graph_;
  const Tensors& tensors_;
  std::vector<Range> ranges_;                   ///< by loop
  std::vector<std::vector<Parting>> partings_;  ///< by the block where they end
};

//===-- reports -----------------------------------------------------------------------------------------------------===//

class Reports {
public:
  Reports(const Graph& graph, const Structure& structure, const Tensors& tensors, diag::DiagnosticSink& sink)
      : graph_(graph), structure_(structure), tensors_(tensors), sink_(sink) {}

  /// What reads of the step find, always or in first iterations.
  void collect(StepId step, const Writing::State& state, bool isFirst) {
    for (const Access& access : graph_.accessesOf(graph_[step])) {
      if (!isRead(access))
        continue;
      for (const auto* contents : {&state.entering, &state.now})
        if (*contents)
          note(step, access, **contents, isFirst);
    }
  }

  /// Innermost loops of reads of which only the first iteration may find nothing written.
  std::set<LoopId> openLoops() const {
    std::set<LoopId> loops;
    for (const auto& [key, finding] : findings_)
      if (const LoopId loop = loopOf(key.first); loop != kNoLoop && finding.isUnwritten && finding.isWritten)
        loops.insert(loop);
    return loops;
  }
  LoopId loopOf(StepId step) const { return graph_[graph_.blockOf(step)].loop; }

  void report() {
    for (const bool isCertain : {true, false})
      for (const auto& [key, finding] : findings_)
        if (finding.isUnwritten && isCertain == this->isCertain(key.first, finding) && isNew(key.second, finding))
          report(finding, isCertain);
  }

private:
  struct Finding {
    const Variable* tensor = nullptr;
    PlaceId place = kNoPlace;
    const Expr* origin = nullptr;
    bool isUnwritten = false, isWritten = false;  ///< on some way
    bool isFirst = false;                         ///< in first iterations nothing wrote it
    bool isWhole = true;                          ///< nor any other field of the tensor
  };
  static constexpr uint32_t kWhole = UINT32_MAX;

  void note(StepId step, const Access& access, const Contents& contents, bool isFirst) {
    const Variable* tensor = graph_[graph_[access.place].root].variable;
    if (!tensor)
      return;
    const auto [first, end] = tensors_.of(graph_[access.place].root);
    const bool isWhole = !tensors_.hasFields(graph_[access.place].root) ||
                         std::none_of(contents.begin() + first, contents.begin() + end,
                                      [](const Content& content) { return content.isWritten; });
    const Expr* origin = access.origin ? access.origin : graph_[step].origin;
    for (const Part& part : tensors_.touched(access.place)) {
      bool isWritten = false, isUnwritten = true;
      for (uint32_t unit : part.units) {
        isWritten |= contents[unit].isWritten;
        isUnwritten &= contents[unit].isUnwritten;
      }
      const std::pair key(step, part.units.front());
      if (isFirst) {
        if (const auto found = findings_.find(key); found != findings_.end())
          found->second.isFirst |= isUnwritten && !isWritten;
      } else if (isUnwritten || isWritten) {
        Finding& finding = findings_.try_emplace(key, Finding{tensor, access.place, origin}).first->second;
        finding.isUnwritten |= isUnwritten;
        finding.isWritten |= isWritten;
        finding.isWhole &= isWhole;
      }
    }
  }

  bool isCertain(StepId step, const Finding& finding) const {
    return !finding.isWritten || (finding.isFirst && isAlwaysReached(step));
  }

  /// One finding for a tensor of which nothing is written, else one for a field and for a read.
  bool isNew(uint32_t unit, const Finding& finding) {
    const uint32_t field = finding.isWhole ? kWhole : tensors_.fieldOf(graph_[finding.place].root, unit);
    return !reported_.contains({finding.tensor, kWhole}) && reported_.insert({finding.tensor, field}).second &&
           reads_.insert({finding.tensor, finding.origin}).second;
  }

  /// Nothing but loops decides whether the first iteration gets there.
  bool isAlwaysReached(StepId step) const {
    BlockId at = graph_.blockOf(step);
    for (LoopId loop = graph_[at].loop; loop != kNoLoop; loop = graph_[loop].parent) {
      const BlockId header = graph_[loop].header;
      if (at != header) {
        const bool isTested = graph_.terminator(header).kind == StepKind::Branch && graph_[loop].origin &&
                              graph_[loop].origin->kind != ExprKind::Loop;
        if (!structure_.postDominates(at, isTested ? graph_[header].successors[0] : header))
          return false;
      }
      at = header;
    }
    return structure_.postDominates(at, BlockId{0});
  }

  void report(const Finding& finding, bool isCertain) {
    const Variable& tensor = *finding.tensor;
    const std::string name = finding.isWhole ? "`" + tensor.name + "`" : graph_.describe(finding.place);
    const source::SourceRange at = finding.origin->range;
    auto builder = isCertain ? sink_.error("E0525", at, name + " is read here, but nothing has written it yet")
                             : sink_.warning("W0525", at, name + " may be read here before it is written");
    builder.primary("read here");
    builder.label(tensor.range, "declared here without a value");
    const bool isShared = tensor.type->isTensor() && tensor.type->space == Space::Shared && !tensor.type->isValue;
    if (!isCertain)
      builder.help("write it on every way to here, or lift the check with `@unchecked(init)`");
    else
      builder.help(isShared ? "write it, then wait with `sync_block()`, before it is read"
                            : "give it a value where it is declared: `= zeros()`");
  }

  const Graph& graph_;
  const Structure& structure_;
  const Tensors& tensors_;
  diag::DiagnosticSink& sink_;
  std::map<std::pair<StepId, uint32_t>, Finding> findings_;  ///< by the first entry that is read, too
  std::set<std::pair<const Variable*, uint32_t>> reported_;
  std::set<std::pair<const Variable*, const Expr*>> reads_;
};

}  // namespace

void checkInitialised(Graph& graph, const Structure& structure, const Uniformity& uniformity,
                      diag::DiagnosticSink& sink) {
  const auto& kernel = graph.function->kernel;
  const Tensors tensors(graph);
  if (tensors.count() == 0 || (kernel && kernel->uncheckedInit))
    return;
  const Contexts contexts = Contexts::peel(graph);
  Writing writing(graph, structure, uniformity, tensors);
  Reports reports(graph, structure, tensors, sink);
  solve(graph, writing, contexts).forEach([&](StepId step, const Writing::State& state, Context) {
    reports.collect(step, state, false);
  });
  for (LoopId loop : reports.openLoops()) {
    writing.firstOf = loop;
    solve(graph, writing, contexts).forEach([&](StepId step, const Writing::State& state, Context) {
      if (reports.loopOf(step) == loop)
        reports.collect(step, state, true);
    });
  }
  reports.report();
}

}  // namespace vortex::lang::flow
