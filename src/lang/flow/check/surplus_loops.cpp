#include "lang/flow/check/surplus_loops.h"

#include <algorithm>
#include <map>

#include "lang/flow/check/surplus_thread.h"
#include "lang/flow/check/waiting.h"
#include "lang/sema/kernel/inline_calls.h"

namespace vortex::lang::flow {
namespace {

class SurplusLoops {
public:
  SurplusLoops(Program& program, Function& kernel, const std::set<const Expr*>& own, const Graph& graph,
               const Structure& structure, const Uniformity& uniformity, std::set<const Expr*>& tested,
               diag::DiagnosticSink& sink)
      : program_(program), kernel_(kernel), graph_(graph), structure_(structure), uniformity_(uniformity), sink_(sink),
        thread_(graph, own), tested_(tested) {}

  bool run() {
    collectKept(*kernel_.body, nullptr);
    for (uint32_t i = 0; i < graph_.loops.size(); ++i)
      if (const LoopId loop{i}; !tested_.contains(graph_[loop].origin) && isLeftByThreads(loop)) {
        if (mayNeverEndForSurplus(graph_, structure_, loop) || goesRoundForever(loop))
          add(graph_[loop]);
        else if (mayGoRoundByOwnZeros(loop))
          addTest(graph_[loop]);
      }
    if (!loops_.empty())
      rewrite(*kernel_.body);
    return !loops_.empty();
  }

private:
  /// Not by all threads of the block together, which some thread of an element is among.
  bool isLeftByThreads(LoopId loop) const {
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
      if (const BlockId block{i}; graph_.isInside(block, loop) && levelOf(block) != Level::Block)
        for (BlockId to : graph_[block].successors)
          if (!graph_.isInside(to, loop))
            return true;
    return false;
  }

  /// Of what decides how control goes on there.
  Level levelOf(BlockId block) const {
    const Level level = uniformity_.ofBlock(block);
    return graph_[block].successors.size() > 1 ? std::max(level, uniformity_.ofBranch(block)) : level;
  }

  bool hasWarpWork(const Loop& loop) const {
    for (uint32_t i = indexOf(graph_[loop.header].begin); i < indexOf(graph_[loop.last].end); ++i)
      if (const StepKind kind = graph_[StepId{i}].kind; kind == StepKind::Warp || kind == StepKind::WarpBarrier)
        return true;
    return false;
  }

  /// With 0 for the thread's own elements: once begun it is not left.
  bool goesRoundForever(LoopId id) const {
    const Loop& loop = graph_[id];
    return isRepeated(loop) && !loop.exits.empty() &&
           std::none_of(loop.exits.begin(), loop.exits.end(), [&](BlockId to) {
             for (size_t i = 0; i < graph_[to].predecessors.size(); ++i)
               if (graph_.isInside(graph_[to].predecessors[i], id) && thread_.comesFrom(to, i))
                 return true;
             return false;
           });
  }

  /// Whether it ends is a matter of the thread's own elements, for which nobody has thought of 0, and the threads do nothing together in it.
  bool mayGoRoundByOwnZeros(LoopId id) const {
    const Loop& loop = graph_[id];
    return !loop.counter && isRepeated(loop) && canStandUnderTest(loop) && !hasSharedWork(loop) && isLeftByOwnData(id);
  }

  bool isRepeated(const Loop& loop) const {
    const auto& before = graph_[loop.header].predecessors;
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i] != loop.before && thread_.comesFrom(loop.header, i))
        return true;
    return false;
  }

  bool hasSharedWork(const Loop& loop) const {
    for (uint32_t i = indexOf(graph_[loop.header].begin); i < indexOf(graph_[loop.last].end); ++i) {
      const Step& step = graph_[StepId{i}];
      if (step.kind == StepKind::Barrier)
        return true;
      for (const Access& access : graph_.accessesOf(step))
        if (access.mode != AccessMode::Read && graph_[access.place].storage == Storage::Shared)
          return true;
    }
    return false;
  }

  /// The block and the branches of the loop that decide whether it is reached.
  void addWithControls(BlockId block, LoopId loop, std::set<BlockId>& out) const {
    if (!graph_.isInside(block, loop) || !out.insert(block).second)
      return;
    if (graph_[block].successors.size() < 2)  // every way out may lead through it, which controls nothing
      for (BlockId from : graph_[block].predecessors)
        addWithControls(from, loop, out);
    for (const ControlEdge& edge : structure_.controls(block))
      addWithControls(edge.branch, loop, out);
  }

  /// What a variable of the thread that has a place was given, in whichever part.
  void addStored(const Step& load, std::vector<ValueId>& out) const {
    if (load.kind != StepKind::Load || load.place == kNoPlace || graph_[load.place].isUnknown() ||
        (graph_[load.place].storage != Storage::Variable && graph_[load.place].storage != Storage::Local))
      return;
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      if (const Step& store = graph_[StepId{i}]; store.kind == StepKind::Store && store.place != kNoPlace &&
                                                 graph_[store.place].root == graph_[load.place].root) {
        const auto uses = graph_.uses(store);
        out.insert(out.end(), uses.begin(), uses.end());
      }
  }

  bool isLeftByOwnData(LoopId id) const {
    std::set<ValueId> seen;
    std::vector<ValueId> pending;
    const auto addBranch = [&](BlockId block) {
      if (graph_[block].successors.size() > 1)
        pending.push_back(graph_.terminator(block).value);
    };
    std::set<BlockId> leaving;
    for (BlockId to : graph_[id].exits)
      for (BlockId from : graph_[to].predecessors)
        if (graph_.isInside(from, id))
          addWithControls(from, id, leaving);
    std::ranges::for_each(leaving, addBranch);
    while (!pending.empty()) {
      const ValueId value = graph_.values.resolved(pending.back());
      pending.pop_back();
      if (!seen.insert(value).second)
        continue;
      const StepId step = graph_.definition(value);
      if (thread_.ownLoad(step))
        return true;
      for (ValueId operand : graph_.values.operands(value))
        pending.push_back(operand);
      if (graph_.values[value].kind == NodeKind::Phi) {
        const BlockId join = graph_.values.phiBlock(value);
        for (ValueId operand : graph_.values.phiOperands(value))
          pending.push_back(operand);
        for (BlockId from : graph_[join].predecessors)
          addBranch(from);
      } else if (step != kNoStep) {
        const std::vector<ValueId> inputs = graph_.inputsOf(step);
        pending.insert(pending.end(), inputs.begin(), inputs.end());
        addStored(graph_[step], pending);
      }
    }
    return false;
  }

  static bool isKeptCall(const Expr& expr) {
    return expr.kind == ExprKind::Inline && expr.function && expr.function->staysFunction;
  }

  void collectKept(const Expr& expr, const Expr* call) {
    if (call)
      kept_[&expr] = call;
    for (const Expr* arg : expr.args)
      if (arg)
        collectKept(*arg, call || !isKeptCall(expr) || arg != expr.args.back() ? call : &expr);
  }

  /// All calls of a function that stays one have one body, so that the test stands around the call.
  void addTest(const Loop& loop) {
    const auto kept = kept_.find(loop.origin);
    loops_.push_back(kept == kept_.end() ? loop.origin : kept->second);
  }

  /// A loop that has a value gives zeros where it is not entered.
  bool canStandUnderTest(const Loop& loop) const {
    const Type type = loop.origin->type;
    return !hasWarpWork(loop) && (kept_.contains(loop.origin) || (isPlainValue(type) && type->kind != TypeKind::Never));
  }

  void add(const Loop& loop) {
    if (canStandUnderTest(loop)) {
      addTest(loop);
      return;
    }
    tested_.insert(loop.origin);
    const source::SourceRange at = loop.origin->range;
    sink_.error("E0455", {at.file, at.begin, at.begin}, "surplus threads never leave this loop")
        .primary("threads of the last block beyond the elements store nothing; their elements and the numbers that "
                 "they draw are 0")
        .help("write the grid, `@launch(grid = …, block = …)`, and test the bound around the loop");
  }

  Expr* made(ExprKind kind, Type type, const Expr& at, std::vector<Expr*> args = {}) {
    Expr* out = program_.newExpr(kind, type, at.range);
    out->args = std::move(args);
    return out;
  }

  Expr* binary(BinaryOp op, const Expr& at, Expr* a, Expr* b) {
    Expr* out = made(ExprKind::Binary, program_.types.boolean(), at, {a, b});
    out->binaryOp = op;
    return out;
  }

  /// The thread has an element.
  Expr* isInside(const Expr& at) {
    const Type usize = program_.types.scalar(Scalar::Usize);
    Expr* all = nullptr;
    for (size_t axis = 0; axis < kernel_.kernel->domain.size(); ++axis) {
      Expr* id = made(ExprKind::Builtin, usize, at);
      id->builtin = Builtin::ThreadGlobalId;
      id->ints = {static_cast<int64_t>(axis)};
      Expr* extent = made(ExprKind::DimValue, usize, at);
      extent->dim = kernel_.kernel->domain[axis];
      Expr* below = binary(BinaryOp::Lt, at, id, extent);
      all = all ? binary(BinaryOp::And, at, all, below) : below;
    }
    return all;
  }

  Expr* zeros(Type type, const Expr& at) {
    switch (type->kind) {
    case TypeKind::Unit: return made(ExprKind::Unit, type, at);
    case TypeKind::Array: {
      Expr* count = made(ExprKind::Int, program_.types.scalar(Scalar::Usize), at);
      count->intValue = type->count;
      return made(ExprKind::RepeatArray, type, at, {zeros(type->elem, at), count});
    }
    case TypeKind::Tuple:
    case TypeKind::Struct: {
      std::vector<Expr*> parts;
      for (Type part : type->elems)
        parts.push_back(zeros(part, at));
      return made(type->kind == TypeKind::Tuple ? ExprKind::MakeTuple : ExprKind::MakeStruct, type, at, parts);
    }
    case TypeKind::Scalar: return made(isFloat(type->scalar) ? ExprKind::Float : ExprKind::Int, type, at);
    default: return made(ExprKind::Int, type, at);  // of an enum
    }
  }

  void setTested(const Expr& expr) {
    tested_.insert(&expr);
    for (const Expr* arg : expr.args)
      if (arg)
        setTested(*arg);
  }

  void rewrite(Expr& expr) {
    for (Expr* arg : expr.args)
      if (arg)
        rewrite(*arg);
    if (std::find(loops_.begin(), loops_.end(), &expr) == loops_.end())
      return;
    Expr* tested = made(expr.kind, expr.type, expr);
    *tested = expr;
    setTested(*tested);
    Expr* choice = made(ExprKind::If, expr.type, expr);
    choice->args = {isInside(expr), made(ExprKind::Block, expr.type, expr, {tested})};
    if (expr.type->kind != TypeKind::Unit)
      choice->args.push_back(made(ExprKind::Block, expr.type, expr, {zeros(expr.type, expr)}));
    if (isKeptCall(expr)) {  // all threads compute what they give it
      std::vector<Expr*> all(expr.args.begin(), expr.args.end() - 1);
      all.push_back(choice);
      tested->args = {expr.args.back()};
      choice = made(ExprKind::Block, expr.type, expr, std::move(all));
    }
    expr = Expr(*choice);
  }

  Program& program_;
  Function& kernel_;
  const Graph& graph_;
  const Structure& structure_;
  const Uniformity& uniformity_;
  diag::DiagnosticSink& sink_;
  const SurplusThread thread_;
  std::set<const Expr*>& tested_;
  std::vector<const Expr*> loops_;
  std::map<const Expr*, const Expr*> kept_;  ///< in the body of a function that stays one: its outermost call
};

}  // namespace

bool keepSurplusOut(Program& program, Function& kernel, const std::set<const Expr*>& own, const Graph& graph,
                    const Structure& structure, const Uniformity& uniformity, std::set<const Expr*>& tested,
                    diag::DiagnosticSink& sink) {
  return kernel.kernel->gridKind == GridKind::Domain && !kernel.kernel->tile && !graph.loops.empty() &&
         SurplusLoops(program, kernel, own, graph, structure, uniformity, tested, sink).run();
}

}  // namespace vortex::lang::flow
