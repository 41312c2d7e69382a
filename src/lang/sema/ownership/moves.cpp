// Reaching moves: which moves may have emptied a place since it was last given a value. Forward, union at joins.
#include "base/text.h"
#include "lang/sema/ownership/analysis.h"
#include "lang/sema/ownership/bits.h"

#include <deque>
#include <set>

namespace vortex::lang::ownership {
namespace {

enum class Relation : uint8_t { Apart, Same, Inside, Around };

/// Where `a` lies seen from `b`.
Relation relate(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i] != b[i])
      return Relation::Apart;
  return a.size() == b.size() ? Relation::Same : a.size() > b.size() ? Relation::Inside : Relation::Around;
}

class Moves {
public:
  Moves(const Graph& graph, diag::DiagnosticSink& sink) : graph_(graph), sink_(sink) {
    for (const Move& move : graph.moves)
      fields_.push_back(move.place.fields());
    for (uint32_t i = 0; i < graph.moves.size(); ++i)
      movesOf_[graph.moves[i].place.root].push_back(i);
  }

  void run() {
    if (graph_.moves.empty())
      return;
    struct State {
      Bits moved, kept;
      bool isReached = false;
    };
    const size_t count = graph_.moves.size();
    std::vector<State> states(graph_.blocks.size(), State{Bits(count), Bits(count), false});
    states[0].isReached = true;
    std::deque<uint32_t> work{0};
    while (!work.empty()) {
      const uint32_t block = work.front();
      work.pop_front();
      Bits moved = states[block].moved, kept = states[block].kept;
      for (const Statement& statement : graph_.blocks[block].statements)
        step(statement, moved, kept);
      for (uint32_t next : graph_.blocks[block].successors) {
        State& state = states[next];
        const bool moreMoved = state.moved.add(moved), moreKept = state.kept.add(kept);
        if (!state.isReached || moreMoved || moreKept)
          work.push_back(next);
        state.isReached = true;
      }
    }
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (!states[block].isReached)
        continue;
      Bits moved = states[block].moved, kept = states[block].kept;
      for (const Statement& statement : graph_.blocks[block].statements) {
        check(statement, moved, kept);
        step(statement, moved, kept);
      }
    }
  }

private:
  const std::vector<uint32_t>* movesOf(LocalId root) const {
    auto found = movesOf_.find(root);
    return found == movesOf_.end() ? nullptr : &found->second;
  }

  /// `kept` says of a move's place that on some path here it still has its value.
  void step(const Statement& statement, Bits& moved, Bits& kept) const {
    const auto* known = statement.place.root == kNoLocal ? nullptr : movesOf(statement.place.root);
    if (!known)
      return;
    if (statement.op == Op::Move) {
      moved.set(statement.index);
      for (uint32_t other : *known)
        if (relate(fields_[other], fields_[statement.index]) != Relation::Apart)
          kept.reset(other);
      return;
    }
    const bool fills = statement.op == Op::Declare || (statement.op == Op::Assign && statement.place.isMovePath());
    if (!fills)
      return;
    const std::vector<uint32_t> path = statement.place.fields();
    for (uint32_t other : *known) {
      const Relation at = relate(fields_[other], path);
      if (at == Relation::Same || at == Relation::Inside) {
        moved.reset(other);
        kept.set(other);
      }
    }
  }

  void check(const Statement& statement, const Bits& moved, const Bits& kept) {
    if (statement.op == Op::Declare || statement.op == Op::Empty || statement.op == Op::Dead ||
        statement.place.root == kNoLocal)
      return;
    const auto* known = movesOf(statement.place.root);
    const Loan* loan = statement.op == Op::Borrow ? &graph_.loans[statement.index] : nullptr;
    if (!known || (loan && (loan->param || loan->wasReserved)))
      return;
    const std::vector<uint32_t> path = statement.place.fields();
    const bool fills = statement.op == Op::Assign && statement.place.isMovePath();
    for (uint32_t index : *known) {
      if (!moved.test(index))
        continue;
      const Relation at = relate(fields_[index], path);
      const bool usesIt = fills ? at == Relation::Around : at != Relation::Apart;
      // A whole that lost a part may still be used for its other parts.
      const bool isOtherPart = at == Relation::Inside && path.size() < statement.place.path.size();
      if (usesIt && !isOtherPart) {
        report(statement, index, kept.test(index));
        return;
      }
    }
  }

  void report(const Statement& statement, uint32_t index, bool onSomePaths) {
    const Move& move = graph_.moves[index];
    if (!reported_.insert({move.range.begin, fields_[index].size()}).second)
      return;  // one report per move
    const Local& root = graph_.locals[move.place.root];
    const std::string what = graph_.describe(move.place);
    const bool isLoop = statement.op == Op::Move && statement.index == index;
    auto builder = sink_.error("E0512", statement.range,
                               isLoop        ? base::concat(what, " is moved in every iteration of this loop")
                               : onSomePaths ? base::concat(what, " may have been moved and cannot be used here")
                                             : base::concat(what, verb(move)));
    if (isLoop) {
      builder.primary("moved here, and again in the next iteration");
      builder.label(root.range, "declared outside the loop");
    } else {
      builder.primary(usage(statement));
      builder.label(move.range, "moved here");
    }
    help(builder, move, root);
  }

  static std::string verb(const Move& move) {
    return move.reason == MoveReason::ToDevice ? " was moved to the device and is no longer available"
                                               : " was moved and is no longer available";
  }

  static std::string usage(const Statement& statement) {
    switch (statement.op) {
    case Op::Move: return "moved again after the move";
    case Op::Borrow: return "borrowed after the move";
    case Op::Assign: return "a part is assigned after the move";
    case Op::Mutate: return "changed after the move";
    default: return "used after the move";
    }
  }

  void help(diag::DiagnosticBuilder& builder, const Move& move, const Local&) const {
    const SourceRange before{move.range.file, move.range.begin, move.range.begin};
    const SourceRange after{move.range.file, move.range.end, move.range.end};
    const Type type = move.callee || move.reason != MoveReason::Launch ? typeOf(move.place) : nullptr;
    const bool copies = type && (type->kind == TypeKind::Vec || type->isTensor()) && !graph_.inKernel;
    if (const std::string bound = copyBound(typeOf(move.place)); !bound.empty()) {
      builder.help(base::concat("borrow it with `&`, or let values of this type be copied: `", bound, "`"));
    } else if (move.reason == MoveReason::Launch && type && type->isTensor()) {
      builder.fix(before, "&", "lend it to the kernel");
    } else if (copies) {
      builder.fix(after, ".copy()", "move a copy");
    } else if (move.reason == MoveReason::Argument) {
      builder.help("let the function take a reference, or move a copy");
    } else {
      builder.help("borrow it with `&` where it is moved, or give it a new value before it is used again");
    }
  }

  Type typeOf(const Place& place) const {
    Type type = graph_.locals[place.root].type;
    for (uint32_t field : place.fields())
      type = type && field < type->elems.size() ? type->elems[field] : nullptr;
    return type;
  }

  const Graph& graph_;
  diag::DiagnosticSink& sink_;
  std::vector<std::vector<uint32_t>> fields_;
  std::map<LocalId, std::vector<uint32_t>> movesOf_;
  std::set<std::pair<uint32_t, size_t>> reported_;
};

}  // namespace

void checkMoves(const Graph& graph, diag::DiagnosticSink& sink) { Moves(graph, sink).run(); }

}  // namespace vortex::lang::ownership
