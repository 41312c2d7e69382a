#include "lang/sema/analyze.h"
#include "lang/sema/kernel/bounds.h"
#include "lang/sema/kernel/distribute.h"
#include "lang/sema/kernel/grid.h"
#include "lang/sema/kernel/initialisation.h"
#include "lang/sema/kernel/inline_calls.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/kernel/staging.h"
#include "lang/sema/kernel/uniformity.h"

#include <optional>
#include <set>

namespace vortex::lang {
namespace {

/// The product of constant sizes; nothing where one is not constant.
std::optional<__int128> threadCount(const std::vector<Expr*>& block) {
  __int128 count = 1;
  for (const Expr* size : block) {
    while (size->kind == ExprKind::Cast)
      size = size->args[0];
    if (size->kind != ExprKind::Int)
      return std::nullopt;
    count *= size->intValue;
  }
  return count;
}

/// An accumulator written as the part of one thread fixes the number of threads.
void checkFragments(const Expr& launch, diag::DiagnosticSink& sink) {
  const Function& kernel = *launch.function;
  for (const auto& variable : kernel.variables) {
    if (variable->fragment.empty() || !kernel.kernel ||
        threadCount(launch.launch.block) == threadCount(kernel.kernel->block))
      continue;
    sink.error("E0465", launch.launch.block[0]->range,
               "the number of threads of `" + kernel.name + "` follows from its accumulator `" + variable->name + "`")
        .primary("another number of threads")
        .label(variable->range, "written as the part of one thread")
        .help("launch it without `block = …`, or declare the accumulator with the product's shape");
    return;
  }
}

void collectLaunched(const Expr& expr, std::set<const Function*>& withGrid, diag::DiagnosticSink& sink) {
  if (expr.kind == ExprKind::Launch && expr.function && !expr.launch.grid.empty()) {
    withGrid.insert(expr.function);
    if (expr.function->kernel && expr.function->kernel->tile)
      sink.error("E0462", expr.launch.grid[0]->range, "`" + expr.function->name + "` has its grid from `@tile`")
          .primary("a second grid")
          .label(expr.function->kernel->tile->range, "the tiles of the output give the grid")
          .help("launch it without `grid = …`");
  }
  if (expr.kind == ExprKind::Launch && expr.function && !expr.launch.block.empty())
    checkFragments(expr, sink);
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
