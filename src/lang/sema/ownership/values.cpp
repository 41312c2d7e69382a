// Definite assignment: where variables declared without a value may still have none. Forward, union at joins. Each such declaration
// has two bits: it may be empty here, and it may have been given a value.
#include "base/text.h"
#include "lang/sema/ownership/analysis.h"
#include "lang/sema/ownership/bits.h"

#include <deque>
#include <set>

namespace vortex::lang::ownership {
namespace {

class Values {
public:
  Values(const Graph& graph, diag::DiagnosticSink& sink) : graph_(graph), sink_(sink) {
    for (const BasicBlock& block : graph.blocks)
      for (const Statement& statement : block.statements)
        if (statement.op == Op::Empty)
          deferred_.try_emplace(statement.place.root, static_cast<uint32_t>(deferred_.size()));
  }

  void run() {
    if (deferred_.empty())
      return;
    const size_t count = deferred_.size();
    entry_.assign(graph_.blocks.size(), State{Bits(count), Bits(count), false});
    entry_[0].isReached = true;
    std::deque<uint32_t> work{0};
    while (!work.empty()) {
      const uint32_t block = work.front();
      work.pop_front();
      const State out = atExit(block);
      for (uint32_t next : graph_.blocks[block].successors) {
        State& state = entry_[next];
        const bool moreEmpty = state.empty.add(out.empty), moreGiven = state.given.add(out.given);
        if (!state.isReached || moreEmpty || moreGiven)
          work.push_back(next);
        state.isReached = true;
      }
    }
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (!entry_[block].isReached)
        continue;
      State state = entry_[block];
      for (const Statement& statement : graph_.blocks[block].statements) {
        check(statement, state, block);
        step(statement, state);
      }
    }
  }

private:
  struct State {
    Bits empty, given;
    bool isReached = false;
  };

  static bool fills(const Statement& statement) { return statement.op == Op::Assign && statement.place.path.empty(); }

  std::optional<uint32_t> indexOf(const Statement& statement) const {
    auto found = deferred_.find(statement.place.root);
    return found == deferred_.end() ? std::nullopt : std::optional(found->second);
  }

  void step(const Statement& statement, State& state) const {
    const auto index = indexOf(statement);
    if (!index)
      return;
    if (statement.op == Op::Empty) {
      state.empty.set(*index);
      state.given.reset(*index);
    } else if (fills(statement)) {
      state.empty.reset(*index);
      state.given.set(*index);
    }
  }

  State atExit(uint32_t block) const {
    State state = entry_[block];
    for (const Statement& statement : graph_.blocks[block].statements)
      step(statement, state);
    return state;
  }

  void check(const Statement& statement, const State& state, uint32_t block) {
    const auto index = indexOf(statement);
    if (!index || statement.op == Op::Declare || statement.op == Op::Empty || statement.op == Op::Dead)
      return;
    const Variable& variable = *graph_.locals[statement.place.root].variable;
    if (fills(statement)) {
      if (!variable.isVar && state.given.test(*index))
        reportSecond(statement, variable);
      return;
    }
    if (state.empty.test(*index))
      reportEmpty(statement, variable, *index, state.given.test(*index), block);
  }

  void reportEmpty(const Statement& statement, const Variable& variable, uint32_t index, bool onSomePaths,
                   uint32_t block) {
    if (!reported_.insert(&variable).second)
      return;
    const std::string name = "`" + variable.name + "`";
    const bool isPart = statement.op == Op::Assign || statement.op == Op::Mutate;
    auto builder = sink_.error("E0526", statement.range,
                               onSomePaths ? name + " may have no value here" : name + " has no value here");
    builder.primary(isPart                       ? "changed here before the whole has a value"
                    : statement.op == Op::Borrow ? "borrowed here"
                                                 : "used here");
    builder.label(variable.range, "declared here without a value");
    if (const BasicBlock* choice = onSomePaths ? choiceWithout(block, index) : nullptr)
      builder.label(choice->choice, std::string(choice->choiceLabel));
    if (onSomePaths)
      builder.help("assign " + name + " on every path, or give it a value where it is declared");
    else
      builder.help("give it a value first: `" + variable.name + " = …`");
  }

  /// The last choice on a way here that leaves the variable empty.
  const BasicBlock* choiceWithout(uint32_t block, uint32_t index) const {
    std::vector<std::vector<uint32_t>> predecessors(graph_.blocks.size());
    for (uint32_t from = 0; from < graph_.blocks.size(); ++from)
      for (uint32_t to : graph_.blocks[from].successors)
        if (entry_[from].isReached)
          predecessors[to].push_back(from);
    std::vector<bool> seen(graph_.blocks.size());
    std::deque<uint32_t> work{block};
    seen[block] = true;
    while (!work.empty()) {
      const uint32_t at = work.front();
      work.pop_front();
      for (uint32_t from : predecessors[at]) {
        if (seen[from])
          continue;
        seen[from] = true;
        const State out = atExit(from);
        if (!out.empty.test(index))
          continue;
        const BasicBlock& block = graph_.blocks[from];
        const bool isLoops = block.loopEntry && !atExit(*block.loopEntry).given.test(index);
        if (!block.choiceLabel.empty() && (isLoops || !out.given.test(index)))
          return &block;
        work.push_back(from);
      }
    }
    return nullptr;
  }

  void reportSecond(const Statement& statement, const Variable& variable) {
    if (!reported_.insert(&variable).second)
      return;
    const Statement* first = nullptr;
    for (const BasicBlock& block : graph_.blocks)
      for (const Statement& other : block.statements)
        if (fills(other) && other.place.root == statement.place.root && &other != &statement && !first)
          first = &other;
    const bool isAgain = !first || first->range.begin > statement.range.begin;
    auto builder = sink_.error("E0315", statement.range,
                               base::concat("`", variable.name, "` cannot be assigned twice: it is not a `var`"));
    builder.primary(isAgain ? "assigned again in the next iteration" : "assigned again");
    if (!isAgain)
      builder.label(first->range, "it may have its value from here");
    builder.label(variable.range, "declared here");
    builder.help(base::concat("declare it with `var ", variable.name, "`"));
  }

  const Graph& graph_;
  diag::DiagnosticSink& sink_;
  std::map<LocalId, uint32_t> deferred_;
  std::vector<State> entry_;
  std::set<const Variable*> reported_;
};

}  // namespace

void checkValues(const Graph& graph, diag::DiagnosticSink& sink) { Values(graph, sink).run(); }

}  // namespace vortex::lang::ownership
