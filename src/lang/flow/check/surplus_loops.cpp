#include "lang/flow/check/surplus_loops.h"

#include <algorithm>

#include "lang/flow/check/waiting.h"

namespace vortex::lang::flow {
namespace {

class SurplusLoops {
public:
  SurplusLoops(Program& program, Function& kernel, const Graph& graph, const Structure& structure,
               const Uniformity& uniformity, diag::DiagnosticSink& sink)
      : program_(program), kernel_(kernel), graph_(graph), structure_(structure), uniformity_(uniformity), sink_(sink) {
  }

  bool run() {
    for (uint32_t i = 0; i < graph_.loops.size(); ++i)
      if (const LoopId loop{i}; isLeftByThreads(loop) && mayNeverEndForSurplus(graph_, structure_, loop))
        add(graph_[loop]);
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

  void add(const Loop& loop) {
    const Type type = loop.origin->type;
    if (!hasWarpWork(loop) && (type->kind == TypeKind::Unit || type->kind == TypeKind::Scalar)) {
      loops_.push_back(loop.origin);
      return;
    }
    const source::SourceRange at = loop.origin->range;
    sink_.error("E0455", {at.file, at.begin, at.begin}, "surplus threads never leave this loop")
        .primary("threads of the last block beyond the elements store nothing, and the numbers that they draw are 0")
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

  void rewrite(Expr& expr) {
    for (Expr* arg : expr.args)
      if (arg)
        rewrite(*arg);
    if (std::find(loops_.begin(), loops_.end(), &expr) == loops_.end())
      return;
    const bool hasValue = expr.type->kind == TypeKind::Scalar;
    Expr* loop = made(expr.kind, expr.type, expr);
    *loop = expr;
    Expr choice;
    choice.kind = ExprKind::If;
    choice.type = expr.type;
    choice.range = expr.range;
    choice.args = {isInside(expr), made(ExprKind::Block, expr.type, expr, {loop})};
    if (hasValue) {
      Expr* zero = made(isFloat(expr.type->scalar) ? ExprKind::Float : ExprKind::Int, expr.type, expr);
      choice.args.push_back(made(ExprKind::Block, expr.type, expr, {zero}));
    }
    expr = std::move(choice);
  }

  Program& program_;
  Function& kernel_;
  const Graph& graph_;
  const Structure& structure_;
  const Uniformity& uniformity_;
  diag::DiagnosticSink& sink_;
  std::vector<const Expr*> loops_;
};

}  // namespace

bool keepSurplusOut(Program& program, Function& kernel, const Graph& graph, const Structure& structure,
                    const Uniformity& uniformity, diag::DiagnosticSink& sink) {
  return kernel.kernel->gridKind == GridKind::Domain && !kernel.kernel->tile &&
         SurplusLoops(program, kernel, graph, structure, uniformity, sink).run();
}

}  // namespace vortex::lang::flow
