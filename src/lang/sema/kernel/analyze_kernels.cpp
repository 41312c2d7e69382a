#include "lang/sema/analyze.h"
#include "lang/sema/kernel/bounds.h"
#include "lang/sema/kernel/distribute.h"
#include "lang/sema/kernel/grid.h"
#include "lang/sema/kernel/initialisation.h"
#include "lang/sema/kernel/inline_calls.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/kernel/staging.h"
#include "lang/sema/kernel/uniformity.h"

#include <set>

namespace vortex::lang {
namespace {

void collectLaunched(const Expr& expr, std::set<const Function*>& withGrid, diag::DiagnosticSink& sink) {
  if (expr.kind == ExprKind::Launch && expr.function && !expr.launch.grid.empty()) {
    withGrid.insert(expr.function);
    if (expr.function->kernel && expr.function->kernel->tile)
      sink.error("E0462", expr.launch.grid[0]->range, "`" + expr.function->name + "` has its grid from `@tile`")
          .primary("a second grid")
          .label(expr.function->kernel->tile->range, "the tiles of the output give the grid")
          .help("launch it without `grid = …`");
  }
  for (const Expr* arg : expr.args)
    if (arg)
      collectLaunched(*arg, withGrid, sink);
}

void setUnchecked(Expr& expr) {
  if (expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice)
    expr.guard = Guard::Unchecked;
  for (Expr* arg : expr.args)
    if (arg)
      setUnchecked(*arg);
}

}  // namespace

void analyzeKernels(Program& program, diag::DiagnosticSink& sink) {
  std::set<const Function*> withGrid;
  for (const auto& function : program.functions)
    if (!function->isKernel && function->body)
      collectLaunched(*function->body, withGrid, sink);

  for (Function* kernel : program.kernels) {
    if (!kernel->kernel || !kernel->body || !inlineCalls(program, *kernel, sink))
      continue;
    Roots roots(*kernel);
    inferGrid(*kernel, roots, withGrid.contains(kernel), sink);
    const std::set<const Variable*> blockTiles = distributeLocals(program, *kernel, roots);
    inferUniformity(*kernel, roots, sink);
    checkBlockTiles(*kernel, roots, blockTiles, sink);
    checkStaging(*kernel, roots, sink);
    checkInitialisation(*kernel, roots, sink);
    if (kernel->kernel->uncheckedBounds)
      setUnchecked(*kernel->body);
    proveBounds(*kernel, roots);
  }
}

}  // namespace vortex::lang
