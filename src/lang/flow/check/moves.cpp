// Reaching moves: which moves may have emptied a place since it was last given a value. Forward, union at joins.
#include <set>

#include "base/text.h"
#include "lang/flow/check/written.h"
#include "lang/flow/graph/owned_types.h"
#include "lang/flow/graph/views.h"
#include "lang/flow/solve/bits.h"
#include "lang/flow/solve/solve.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

constexpr const char* kCopyPart = "bind the whole by one name, and move a copy of this part from it";

/// What a pattern takes out of a value stands in the pattern, apart from the value: nothing can be written behind it.
bool isPatternPart(const Expr& expr) {
  if (expr.kind != ExprKind::Field)
    return false;
  const source::SourceRange part = expr.range, whole = asField(expr).base.range;
  return whole.begin < part.begin || whole.end > part.end;
}

enum class Relation : uint8_t { Apart, Same, Inside, Around };

/// Where `a` lies seen from `b`.
Relation relate(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i] != b[i])
      return Relation::Apart;
  return a.size() == b.size() ? Relation::Same : a.size() > b.size() ? Relation::Inside : Relation::Around;
}

/// The moves of a function, by what they empty.
struct Moved {
  explicit Moved(const Graph& graph) : graph(graph), byLocal(graph.locals.size()) {
    for (uint32_t i = 0; i < graph.moves.size(); ++i) {
      fields.push_back(graph[graph.moves[i].place].fields());
      byLocal[indexOf(graph[graph.moves[i].place].root)].push_back(i);
    }
  }

  const Graph& graph;
  std::vector<std::vector<uint32_t>> fields;   ///< by move: the part
  std::vector<std::vector<uint32_t>> byLocal;  ///< moves of it or a part
};

struct MoveDomain {
  struct State {
    Bits moved;
    Bits kept;  ///< on some path here the move's place still has its value
    bool operator==(const State&) const = default;
  };
  static constexpr Direction kDirection = Direction::Forward;

  State start() const { return {Bits(all->fields.size()), Bits(all->fields.size())}; }
  bool edge(BlockId, uint32_t, State&) const { return true; }
  void join(State& into, const State& other, bool) const {
    into.moved.add(other.moved);
    into.kept.add(other.kept);
  }

  void step(StepId, const Step& step, State& state) const {
    const bool fills = step.kind == StepKind::Declare || step.kind == StepKind::Store;
    if (step.kind != StepKind::Move && !fills)
      return;
    const Place& place = all->graph[step.place];
    const std::vector<uint32_t>& known = all->byLocal[indexOf(place.root)];
    if (known.empty() || !place.isMovePath())
      return;
    const std::vector<uint32_t> path = place.fields();
    if (!fills)
      state.moved.set(step.index);
    for (uint32_t other : known) {
      const Relation at = relate(all->fields[other], path);
      if (!fills && at != Relation::Apart)
        state.kept.reset(other);
      if (!fills || (at != Relation::Same && at != Relation::Inside))
        continue;
      state.moved.reset(other);
      state.kept.set(other);
    }
  }

  const Moved* all;
};

class Moves {
public:
  Moves(const Graph& graph, diag::DiagnosticSink& sink) : graph_(graph), sink_(sink), all_(graph) {}

  void run() {
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      if (graph_[StepId{i}].kind == StepKind::MoveOut)
        reportMoveOut(graph_[StepId{i}]);
    if (!mayUseMoved())
      return;
    solve(graph_, MoveDomain{&all_}, Contexts::plain(graph_))
        .forEach([&](StepId step, const MoveDomain::State& state, Context) { check(graph_[step], state); });
  }

private:
  /// Would the step use what the move has emptied, if it came behind it?
  bool usesMoved(const Step& step, uint32_t move) const {
    if (!touchesPlace(graph_, step) || (step.kind == StepKind::Borrow && graph_.loans[step.index].wasReserved))
      return false;
    const Place& place = graph_[step.place];
    if (place.root != graph_[graph_.moves[move].place].root)
      return false;
    const std::vector<uint32_t> path = place.fields();
    const Relation at = relate(all_.fields[move], path);
    // A whole that lost a part may still be used for its other parts.
    const bool isOtherPart = at == Relation::Inside && path.size() < place.path.size();
    return !isOtherPart && (fillsPlace(graph_, step) ? at == Relation::Around : at != Relation::Apart);
  }

  /// Steps stand in the order of the program but for loops: what is moved last, as most is, asks for no dataflow problem.
  bool mayUseMoved() const {
    constexpr size_t kMostMoves = 16;
    if (graph_.moves.empty() || graph_.moves.size() > kMostMoves)
      return !graph_.moves.empty();
    for (uint32_t i = 0; i < graph_.stepCount(); ++i) {
      const Step& move = graph_[StepId{i}];
      if (move.kind != StepKind::Move)
        continue;
      if (graph_[graph_.blockOf(StepId{i})].loop != graph_[graph_[move.place].root].loop)
        return true;
      for (uint32_t later = i + 1; later < graph_.stepCount(); ++later)
        if (usesMoved(graph_[StepId{later}], move.index))
          return true;
    }
    return false;
  }

  void check(const Step& step, const MoveDomain::State& state) {
    if (step.place == kNoPlace)
      return;
    for (uint32_t index : all_.byLocal[indexOf(graph_[step.place].root)])
      if (state.moved.test(index) && usesMoved(step, index))
        return report(step, index, state.kept.test(index));
  }

  void report(const Step& step, uint32_t index, bool onSomePaths) {
    const Move& move = graph_.moves[index];
    if (!reported_.insert({move.origin->range.begin, all_.fields[index].size()}).second)
      return;  // one report per move
    const std::string what = graph_.describe(move.place);
    const bool isLoop = step.kind == StepKind::Move && step.index == index;
    auto builder = sink_.error("E0512", rangeOf(step),
                               isLoop        ? base::concat(what, " is moved in every iteration of this loop")
                               : onSomePaths ? base::concat(what, " may have been moved and cannot be used here")
                                             : base::concat(what, verb(move)));
    if (isLoop) {
      builder.primary("moved here, and again in the next iteration");
      builder.label(graph_[graph_[move.place].root].range, "declared outside the loop");
    } else {
      builder.primary(usage(step));
      builder.label(move.origin->range, "moved here");
    }
    if (!helpExchange(builder, move, step))
      help(builder, move);
  }

  /// `let t = p`, `p = q`, `q = t` exchanges no references: the second writes what p refers to.
  bool helpExchange(diag::DiagnosticBuilder& builder, const Move& move, const Step& use) const {
    const Place& moved = graph_[move.place];
    const Variable* variable = graph_[moved.root].variable;
    if (!variable || !moved.path.empty() || variable->type->kind != TypeKind::Ref)
      return false;
    for (uint32_t i = 0; i < graph_.stepCount(); ++i) {
      const Step& step = graph_[StepId{i}];
      if ((step.kind != StepKind::Store && step.kind != StepKind::Mutate) || !step.origin ||
          step.origin->kind != ExprKind::Assign)
        continue;
      const Expr& assigned = asAssign(*step.origin).place;
      if (assigned.kind != ExprKind::Deref || operandOf(assigned).kind != ExprKind::Var ||
          operandOf(assigned).variable != variable)
        continue;
      if (!(rangeOf(step) == rangeOf(use)))
        builder.label(step.origin->range, base::concat("this writes what `", variable->name, "` refers to"));
      builder.help(
          "a reference always refers to the same: to exchange two buffers, keep them in one tensor or array and "
          "exchange their indices");
      return true;
    }
    return false;
  }

  static std::string verb(const Move& move) {
    return move.reason == MoveReason::ToDevice ? " was moved to the device and is no longer available"
                                               : " was moved and is no longer available";
  }

  static std::string usage(const Step& step) {
    switch (step.kind) {
    case StepKind::Move: return "moved again after the move";
    case StepKind::Borrow: return "borrowed after the move";
    case StepKind::Store: return "a part is assigned after the move";
    case StepKind::Mutate: return "changed after the move";
    default: return "used after the move";
    }
  }

  void help(diag::DiagnosticBuilder& builder, const Move& move) const {
    const source::SourceRange range = move.origin->range;
    const source::SourceRange before{range.file, range.begin, range.begin}, after{range.file, range.end, range.end};
    const Type type = graph_[move.place].type;
    const bool isKnown = move.callee || move.reason != MoveReason::Launch;
    const bool copies = isKnown && (type->kind == TypeKind::Vec || type->isTensor()) && !graph_.function->inKernel;
    if (const std::string bound = copyBound(type); !bound.empty()) {
      builder.help(base::concat("borrow it with `&`, or let values of this type be copied: `", bound, "`"));
    } else if (move.reason == MoveReason::Launch && isKnown && type->isTensor()) {
      builder.fix(before, "&", "lend it to the kernel");
    } else if (copies && isPatternPart(*move.origin)) {
      builder.help(kCopyPart);
    } else if (copies) {
      builder.fix(after, ".copy()", "move a copy");
    } else if (move.reason == MoveReason::Argument) {
      builder.help("let the function take a reference, or move a copy");
    } else {
      builder.help("borrow it with `&` where it is moved, or give it a new value before it is used again");
    }
  }

  void reportMoveOut(const Step& step);

  const Graph& graph_;
  diag::DiagnosticSink& sink_;
  Moved all_;
  std::set<std::pair<uint32_t, size_t>> reported_;
};

void Moves::reportMoveOut(const Step& step) {
  const Expr& expr = *step.origin;
  const Place& from = graph_[step.place];
  const Local& root = graph_[from.root];
  const bool isCaptured = from.isMovePath();
  const std::string what = graph_.describe(step.place);
  std::string message, label;
  if (isCaptured) {
    message = base::concat(what, " cannot be moved out of a closure: closures capture by reference");
    label = "declared outside the closure";
  } else if (isStorageSlice(expr)) {
    message = "a slice is a borrowed view and cannot be moved";
    label = "the owner";
  } else if (root.isElement) {
    message = base::concat(what, " cannot be moved: it is an element of the list that the loop walks over");
    label = "borrowed from the list here";
  } else if (root.isView) {
    message = base::concat(what, " cannot be moved: it is a view of another tensor or list");
    label = "the view is made here";
  } else if (from.hasDeref()) {
    message = base::concat(what, " cannot be moved: it is borrowed");
    label = "the reference";
  } else {
    message = base::concat(what, " cannot be moved out of a list");
    label = "the list owns its elements";
  }
  auto builder = sink_.error("E0514", expr.range, std::move(message));
  builder.primary("moved here");
  if (root.variable)
    builder.label(root.range, std::move(label));
  const bool copies = expr.type->kind == TypeKind::Vec || expr.type->isTensor();
  if (copies && !graph_.function->inKernel && isPatternPart(expr)) {
    builder.help(kCopyPart);
  } else if (copies && !graph_.function->inKernel) {
    builder.fix(source::SourceRange{expr.range.file, expr.range.end, expr.range.end}, ".copy()", "move a copy");
  } else if (const std::string bound = copyBound(expr.type); !bound.empty()) {
    builder.help(base::concat("borrow it with `&`, or let values of this type be copied: `", bound, "`"));
  } else if (isCaptured) {
    builder.help("pass it to the closure as an argument");
  } else {
    builder.help("borrow it with `&`, or take what it belongs to by value");
  }
}

}  // namespace

void checkMoves(const Graph& graph, diag::DiagnosticSink& sink) { Moves(graph, sink).run(); }

}  // namespace vortex::lang::flow
