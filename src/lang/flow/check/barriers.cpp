#include "lang/flow/check/barriers.h"

#include <algorithm>

#include "base/text.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

using Control = ExprLevels::Control;

class Barriers {
public:
  Barriers(const Function& kernel, const ExprLevels& levels, std::span<const BlockShape> shapes,
           const std::function<bool()>& waits, diag::DiagnosticSink& sink)
      : kernel_(kernel), levels_(levels), shapes_(shapes), waits_(waits), sink_(sink) {}

  void check(const Expr& expr) {
    if (expr.kind == ExprKind::Assign) {
      check(asAssign(expr).value);
      check(asAssign(expr).place);
    } else {
      noteUnused(expr);
      calls_ += expr.kind == ExprKind::Inline;
      forEachChild(expr, [&](const Expr& child) { check(child); });
      calls_ -= expr.kind == ExprKind::Inline;
    }
    checkOne(expr, levels_.controlOf(expr));
  }

private:
  /// Statements whose values nothing takes.
  void noteUnused(const Expr& block) {
    if (block.kind != ExprKind::Block)
      return;
    for (const Expr* each : block.args)
      if (each != block.args.back() || block.type->kind == TypeKind::Unit)
        unused_.insert(each);
  }

  void checkOne(const Expr& expr, Control control) {
    if (expr.kind == ExprKind::Builtin)
      checkBuiltin(expr, control);
    if (expr.kind == ExprKind::Return && calls_ == 0 && jumpValueOf(expr)) {
      checkResult(*jumpValueOf(expr), kernel_.resultType);
      checkReturn(expr, control);
    }
    if (!reportedTile_ && isTileWork(expr))
      checkTileWork(expr, control);
    const bool isShared = expr.kind == ExprKind::Let && expr.variable->type->isTensor() &&
                          expr.variable->type->space == Space::Shared && !asLet(expr).value;
    if (!reportedShared_ && isShared && control.level != Level::Block) {
      reportedShared_ = true;
      reportDivergence("E0452", expr, control,
                       "shared memory belongs to the whole block, but only some threads get here",
                       "declared under control that differs between threads");
    }
  }

  void checkBuiltin(const Expr& expr, Control control) {
    const bool isReduction = isBlockReduction(expr.builtin), isOfGrid = expr.builtin == Builtin::SyncGrid;
    if ((expr.builtin == Builtin::SyncBlock || isOfGrid || isReduction) && control.level != Level::Block)
      reportDivergence("E0450", expr, control,
                       base::concat("`", spelling(expr.builtin), isReduction ? "" : "()",
                                    "` is not reached by every thread of the block"),
                       "some threads of the block do not get here");
    if (isOfGrid && !kernel_.kernel->cooperative)
      sink_.error("E0477", expr.range, "`sync_grid()` waits for blocks that may not have started")
          .primary("the blocks of this launch run in any order, some after others have ended")
          .label(kernel_.nameRange, "this kernel's launch is not cooperative")
          .help("say `@launch(cooperative)` on the kernel: all its blocks then run at the same time");
    if (isWarpOperation(expr.builtin) && control.level == Level::Lane)
      reportDivergence("E0451", expr, control,
                       "`" + std::string(spelling(expr.builtin)) + "` is not reached by every lane of the warp",
                       "some lanes of the warp do not get here");
    if (!isAtomic(expr.builtin) || control.level != Level::Block)
      return;
    Level operands = Level::Block;
    for (const Expr* arg : expr.args)
      operands = std::max(operands, levels_.of(*arg));
    // Where the result is used, each thread draws a number of its own.
    if (operands == Level::Block && (expr.type->kind == TypeKind::Unit || unused_.contains(&expr)) && !waits_())
      sink_.error("E0453", expr.range, "every thread of the block would do this atomic operation on the same element")
          .primary("neither the operands nor the control around it depend on the thread, and its result is not used")
          .help("write `if thread.local_id == 0 { … }` to do it once per block");
  }

  void checkTileWork(const Expr& expr, Control control) {
    if (control.level != Level::Block) {
      reportedTile_ = true;
      return reportDivergence("E0467", expr, control, "the whole block works on a tile, but only some threads get here",
                              "a tile operation under control that differs between threads");
    }
    const Expr* origin = levels_.of(expr) == Level::Block ? nullptr : levels_.originOf(expr);
    if (!origin)
      return;
    reportedTile_ = true;
    sink_.error("E0467", expr.range, "the whole block works on a tile, but this one differs between threads")
        .primary("a tile operation")
        .label(origin->range, "because of this per-thread value")
        .help("read the elements one by one: `t[thread.local_id]`");
  }

  bool hasSeveralWarps() const {
    return std::any_of(shapes_.begin(), shapes_.end(), [](const BlockShape& block) {
      int64_t threads = 1;
      for (const auto& axis : block)
        threads = std::min<int64_t>(threads * axis.value_or(1), kLanes + 1);
      return threads > kLanes;
    });
  }

  /// What belongs to the whole block is returned by the whole block.
  void checkReturn(const Expr& expr, Control control) {
    const bool isTogether = control.level == Level::Block || (control.level == Level::Warp && !hasSeveralWarps());
    if (reportedReturn_ || isTogether || !isOfBlock(*jumpValueOf(expr), kernel_.resultType))
      return;
    reportedReturn_ = reportedTile_ = true;  // what follows is done by the others only
    reportDivergence("E0469", expr, control, "only some threads of the block return this result",
                     "each block gives one value");
  }

  /// A scalar result, or a tensor that no thread has an element of. Results that are written in place are returned as they are.
  static bool isOfBlock(const Expr& value, Type result) {
    if (value.kind == ExprKind::MakeTuple && result->kind == TypeKind::Tuple) {
      for (size_t i = 0; i < value.args.size() && i < result->elems.size(); ++i)
        if (isOfBlock(*value.args[i], result->elems[i]))
          return true;
      return false;
    }
    if (result->kind == TypeKind::Scalar)
      return true;
    return result->isTensor() && stripRef(value.type)->isTensor() &&
           !(value.kind == ExprKind::Var && value.variable->isResultStorage);
  }

  /// A scalar result is one value of each block.
  void checkResult(const Expr& value, Type result) {
    if (value.kind == ExprKind::MakeTuple && result->kind == TypeKind::Tuple)
      for (size_t i = 0; i < value.args.size() && i < result->elems.size(); ++i)
        checkResult(*value.args[i], result->elems[i]);
    const Level level = levels_.of(value);
    const Expr* origin = levels_.originOf(value);
    const bool isRow = origin && origin->builtin != Builtin::WarpId && levels_.of(*origin) == Level::Warp;
    const bool differs = level == Level::Lane || (level == Level::Warp && isRow && hasSeveralWarps());
    if (result->kind != TypeKind::Scalar || !differs)
      return;  // the warps of a block of 32 threads agree
    // The blocks' values are no result either, whatever the threads do.
    if (std::any_of(sink_.all().begin(), sink_.all().end(), [&](const diag::Diagnostic& each) {
          return each.id == "E0459" && each.position() == kernel_.resultRange;
        }))
      return;
    auto diagnostic = sink_.error("E0469", value.range,
                                  "the value returned for a scalar result differs between the threads of a block");
    diagnostic.primary("each block gives one value");
    diagnostic.label(kernel_.resultRange, "the result is one scalar");
    if (origin && origin->range != value.range)
      diagnostic.label(origin->range, "because of this per-thread value");
    diagnostic.help("combine the values of the threads first, with `block.sum`, say; or return a tensor");
  }

  void reportDivergence(std::string_view id, const Expr& at, Control control, std::string message, std::string label) {
    auto diagnostic = sink_.error(id, at.range, std::move(message));
    diagnostic.primary(std::move(label));
    if (control.cause) {
      diagnostic.label(control.cause->range, "this differs between threads");
      if (const Expr* origin = levels_.originOf(*control.cause); origin && origin->range != control.cause->range)
        diagnostic.label(origin->range, "because of this per-thread value");
    }
    if (id == "E0450")
      diagnostic.help(isBlockReduction(at.builtin)
                          ? "let all threads take part, those that have nothing to add with a neutral value: "
                            "`select(condition, value, 0)`"
                          : base::concat("move `", spelling(at.builtin),
                                         "()` out of the conditional code so that all "
                                         "threads reach it, and keep only the work inside"));
  }

  const Function& kernel_;
  const ExprLevels& levels_;
  std::span<const BlockShape> shapes_;
  const std::function<bool()>& waits_;
  diag::DiagnosticSink& sink_;
  std::set<const Expr*> unused_;
  unsigned calls_ = 0;  ///< inlined ones around
  bool reportedShared_ = false;
  bool reportedTile_ = false;
  bool reportedReturn_ = false;
};

}  // namespace

void checkBarriers(const Function& kernel, const ExprLevels& levels, std::span<const BlockShape> shapes,
                   const std::function<bool()>& waits, diag::DiagnosticSink& sink) {
  Barriers(kernel, levels, shapes, waits, sink).check(*kernel.body);
}

}  // namespace vortex::lang::flow
