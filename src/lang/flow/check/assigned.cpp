// Definite assignment: where variables declared without a value may still have none. Forward, union at joins. Each such declaration
// has two bits: it may be empty here, and it may have been given a value.
#include <deque>
#include <set>

#include "base/text.h"
#include "lang/flow/check/written.h"
#include "lang/flow/solve/bits.h"
#include "lang/flow/solve/solve.h"

namespace vortex::lang::flow {
namespace {

constexpr uint32_t kNotDeferred = UINT32_MAX;

/// Variables that are declared without a value.
struct Deferred {
  explicit Deferred(const Graph& graph) : graph(graph), number(graph.locals.size(), kNotDeferred) {
    for (uint32_t i = 0; i < graph.stepCount(); ++i)
      if (const Step& step = graph[StepId{i}]; step.kind == StepKind::Empty)
        if (uint32_t& of = number[indexOf(graph[step.place].root)]; of == kNotDeferred)
          of = count++;
  }

  uint32_t of(const Step& step) const {
    return step.place == kNoPlace ? kNotDeferred : number[indexOf(graph[step.place].root)];
  }
  bool fills(const Step& step) const { return step.kind == StepKind::Store && graph[step.place].path.empty(); }

  const Graph& graph;
  std::vector<uint32_t> number;  ///< by local
  uint32_t count = 0;
};

struct AssignDomain {
  struct State {
    Bits empty, given;
    bool operator==(const State&) const = default;
  };
  static constexpr Direction kDirection = Direction::Forward;

  State start() const { return {Bits(all->count), Bits(all->count)}; }
  bool edge(BlockId, uint32_t, State&) const { return true; }
  void join(State& into, const State& other, bool) const {
    into.empty.add(other.empty);
    into.given.add(other.given);
  }
  void step(StepId, const Step& step, State& state) const {
    const uint32_t number = all->of(step);
    if (number == kNotDeferred)
      return;
    if (step.kind == StepKind::Empty) {
      state.empty.set(number);
      state.given.reset(number);
    } else if (all->fills(step)) {
      state.empty.reset(number);
      state.given.set(number);
    }
  }

  const Deferred* all;
};

class Assigned {
public:
  Assigned(const Graph& graph, const Deferred& all, diag::DiagnosticSink& sink)
      : graph_(graph), sink_(sink), all_(all), solution_(solve(graph, AssignDomain{&all_}, Contexts::plain(graph))) {}

  void run() {
    solution_.forEach([&](StepId id, const AssignDomain::State& state, Context) {
      const Step& step = graph_[id];
      const uint32_t number = all_.of(step);
      if (number == kNotDeferred || !touchesPlace(graph_, step))
        return;
      const Variable& variable = *graph_[graph_[step.place].root].variable;
      if (!all_.fills(step) && state.empty.test(number))
        reportEmpty(id, variable, number, state.given.test(number));
      else if (all_.fills(step) && !variable.isVar && state.given.test(number))
        reportSecond(step, variable);
    });
  }

private:
  void reportEmpty(StepId id, const Variable& variable, uint32_t number, bool onSomePaths) {
    if (!reported_.insert(&variable).second)
      return;
    const Step& step = graph_[id];
    const std::string name = "`" + variable.name + "`";
    const bool isPart = step.kind == StepKind::Store || step.kind == StepKind::Mutate;
    auto builder = sink_.error("E0526", rangeOf(step),
                               onSomePaths ? name + " may have no value here" : name + " has no value here");
    builder.primary(isPart                          ? "changed here before the whole has a value"
                    : step.kind == StepKind::Borrow ? "borrowed here"
                                                    : "used here");
    builder.label(variable.range, "declared here without a value");
    if (const Choice* choice = onSomePaths ? choiceWithout(graph_.blockOf(id), number) : nullptr)
      builder.label(choice->by->range, std::string(choice->label));
    if (onSomePaths)
      builder.help("assign " + name + " on every path, or give it a value where it is declared");
    else
      builder.help("give it a value first: `" + variable.name + " = …`");
  }

  AssignDomain::State atExit(BlockId block) const {
    AssignDomain::State state = *solution_.at(block, Context{0});
    for (uint32_t i = indexOf(graph_[block].begin); i < indexOf(graph_[block].end); ++i)
      AssignDomain{&all_}.step(StepId{i}, graph_[StepId{i}], state);
    return state;
  }

  /// The last choice on a way to the block that leaves the variable empty.
  const Choice* choiceWithout(BlockId block, uint32_t number) const {
    std::vector<bool> seen(graph_.blocks.size());
    std::deque<BlockId> work{block};
    seen[indexOf(block)] = true;
    while (!work.empty()) {
      const BlockId at = work.front();
      work.pop_front();
      if (const Choice* choice = choiceAt(at, number))
        return choice;
      for (BlockId from : graph_[at].predecessors) {
        if (seen[indexOf(from)] || !atExit(from).empty.test(number))
          continue;
        seen[indexOf(from)] = true;
        work.push_back(from);
      }
    }
    return nullptr;
  }

  /// What leads to the block, if the variable has no value there because of it.
  const Choice* choiceAt(BlockId block, uint32_t number) const {
    const auto found = graph_.choices.find(indexOf(block));
    const AssignDomain::State& entry = *solution_.at(block, Context{0});
    if (found == graph_.choices.end() || !entry.empty.test(number))
      return nullptr;
    const BlockId before = found->second.loopEntry;
    const bool isLoops = before != kNoBlock && !atExit(before).given.test(number);
    return isLoops || !entry.given.test(number) ? &found->second : nullptr;
  }

  void reportSecond(const Step& step, const Variable& variable) {
    if (!reported_.insert(&variable).second)
      return;
    const Step* first = nullptr;
    for (uint32_t i = 0; i < graph_.stepCount() && !first; ++i)
      if (const Step& other = graph_[StepId{i}];
          &other != &step && all_.fills(other) && graph_[other.place].root == graph_[step.place].root)
        first = &other;
    const bool isAgain = !first || rangeOf(*first).begin > rangeOf(step).begin;
    auto builder = sink_.error("E0315", rangeOf(step),
                               base::concat("`", variable.name, "` cannot be assigned twice: it is not a `var`"));
    builder.primary(isAgain ? "assigned again in the next iteration" : "assigned again");
    if (!isAgain)
      builder.label(rangeOf(*first), "it may have its value from here");
    builder.label(variable.range, "declared here");
    builder.help(base::concat("declare it with `var ", variable.name, "`"));
  }

  const Graph& graph_;
  diag::DiagnosticSink& sink_;
  const Deferred& all_;
  Solution<AssignDomain> solution_;
  std::set<const Variable*> reported_;
};

}  // namespace

void checkAssigned(const Graph& graph, diag::DiagnosticSink& sink) {
  if (const Deferred all(graph); all.count > 0)
    Assigned(graph, all, sink).run();
}

}  // namespace vortex::lang::flow
