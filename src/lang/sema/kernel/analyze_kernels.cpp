#include "lang/sema/access/check_accesses.h"
#include "lang/sema/analyze.h"
#include "lang/sema/kernel/bounds.h"
#include "lang/sema/kernel/distribute.h"
#include "lang/sema/kernel/grid.h"
#include "lang/sema/kernel/inline_calls.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/kernel/staging.h"
#include "lang/sema/kernel/uniformity.h"

#include <algorithm>
#include <map>
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
    const auto dim = size->kind == ExprKind::DimValue ? size->dim.asConstant() : std::nullopt;
    if (size->kind != ExprKind::Int && !dim)
      return std::nullopt;
    count *= dim ? static_cast<__int128>(*dim) : size->intValue;
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

/// Blocks that a kernel may be launched with: its own first, and those of launches in the program; an axis that is not constant is unknown.
using BlockShapes = std::map<const Function*, std::vector<access::BlockShape>>;

access::BlockShape blockShape(const std::vector<Expr*>& sizes) {
  access::BlockShape shape = {1, 1, 1};
  for (size_t axis = 0; axis < sizes.size() && axis < 3; ++axis) {
    auto count = threadCount({sizes[axis]});
    shape[axis] =
        count && *count > 0 && *count <= INT32_MAX ? std::optional(static_cast<int64_t>(*count)) : std::nullopt;
  }
  return shape;
}

void collectBlocks(const Expr& expr, BlockShapes& shapes) {
  if (expr.kind == ExprKind::Launch && expr.function && !expr.launch.block.empty()) {
    auto& known = shapes[expr.function];
    access::BlockShape shape = blockShape(expr.launch.block);
    if (std::find(known.begin(), known.end(), shape) == known.end())
      known.push_back(shape);
  }
  for (const Expr* arg : expr.args)
    if (arg)
      collectBlocks(*arg, shapes);
}

void checkKernelAccesses(Function& kernel, const Roots& roots, std::vector<access::BlockShape> shapes,
                         diag::DiagnosticSink& sink) {
  const KernelSpec& spec = *kernel.kernel;
  if (spec.gridKind == GridKind::WholeTensor) {
    if (spec.verifyBanks.isValid())
      sink.error("E0622", spec.verifyBanks, "there is nothing to verify: the compiler schedules this kernel")
          .primary("no thread of this kernel accesses elements of shared memory");
    return;
  }
  if (spec.block.empty() && (shapes.empty() || spec.gridKind == GridKind::Domain)) {
    std::array<int64_t, 3> usual = defaultBlock(spec.domain);
    shapes.insert(shapes.begin(), {usual[0], usual[1], usual[2]});
  }
  access::checkAccesses(kernel, roots, shapes, sink);
}

void setUnchecked(Expr& expr) {
  if (expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice)
    expr.guard = Guard::Unchecked;
  for (Expr* arg : expr.args)
    if (arg)
      setUnchecked(*arg);
}

}  // namespace

void analyzeKernels(Program& program, diag::DiagnosticSink& sink, LaunchGrids launchGrids) {
  std::set<const Function*> withGrid;
  for (const auto& function : program.functions)
    if (!function->isKernel && function->body)
      collectLaunched(*function->body, withGrid, sink);
  BlockShapes blocks;
  for (const auto& function : program.functions)
    if (!function->isKernel && function->body)
      collectBlocks(*function->body, blocks);

  for (Function* kernel : program.kernels) {
    if (!kernel->kernel || !kernel->body || !inlineCalls(program, *kernel, sink))
      continue;
    const uint32_t errorsBefore = sink.errorCount();
    Roots roots(*kernel);
    const bool isGiven = launchGrids == LaunchGrids::Always || withGrid.contains(kernel);
    inferGrid(*kernel, roots, isGiven ? LaunchGrids::Always : launchGrids, sink);
    const std::set<const Variable*> blockTiles = distributeLocals(program, *kernel, roots);
    if (!kernel->kernel->block.empty())
      blocks[kernel].insert(blocks[kernel].begin(), blockShape(kernel->kernel->block));
    inferUniformity(*kernel, roots, blocks[kernel], sink);
    checkBlockTiles(*kernel, roots, blockTiles, sink);
    checkStaging(*kernel, roots, sink);
    if (kernel->kernel->uncheckedBounds)
      setUnchecked(*kernel->body);
    proveBounds(*kernel, roots);
    if (sink.errorCount() == errorsBefore)
      checkKernelAccesses(*kernel, roots, blocks[kernel], sink);
  }
}

}  // namespace vortex::lang
