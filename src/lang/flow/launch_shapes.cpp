#include "lang/flow/launch_shapes.h"

#include <algorithm>

#include "lang/flow/race/launches.h"
#include "lang/sema/children.h"
#include "lang/sema/kernel/default_block.h"
#include "lang/sema/kernel/specialised_dims.h"

namespace vortex::lang::flow {
namespace {

std::optional<int64_t> constantSize(const Expr& expr) {
  const auto size = evaluateSize(expr, {});
  return size && *size > 0 && *size <= INT32_MAX ? size : std::nullopt;
}

BlockShape shapeOf(const std::vector<Expr*>& sizes) {
  BlockShape shape = {1, 1, 1};
  for (size_t axis = 0; axis < sizes.size() && axis < 3; ++axis)
    shape[axis] = constantSize(*sizes[axis]);
  return shape;
}

void collectLaunches(const Expr& expr, const Function& kernel, std::vector<const Expr*>& launches) {
  if (expr.kind == ExprKind::Launch && expr.function == &kernel)
    launches.push_back(&expr);
  forEachChild(expr, [&](const Expr& child) { collectLaunches(child, kernel, launches); });
}

bool hasOwnGrid(const Expr* launch) { return launch->launch.grid.empty(); }

void collectAsked(const Expr& expr, LaunchShapes& shapes) {
  if (expr.kind == ExprKind::Builtin) {
    const auto axis = expr.ints.empty() ? 0 : static_cast<size_t>(expr.ints.front());
    if (expr.builtin == Builtin::BlockId || expr.builtin == Builtin::ThreadGlobalId)
      shapes.asksBlocks[axis] = true;
    else if (expr.builtin == Builtin::GridDim)
      shapes.asksGrid[axis] = true;
  }
  forEachChild(expr, [&](const Expr& child) { collectAsked(child, shapes); });
}

/// The threads of a block; nothing where they are not constant.
std::optional<__int128> threadCount(const std::vector<Expr*>& block) {
  __int128 count = 1;
  for (const auto& axis : shapeOf(block)) {
    if (!axis)
      return std::nullopt;
    count *= *axis;
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

void checkLaunchesIn(const Expr& expr, std::map<const Function*, const Expr*>& withGrid, diag::DiagnosticSink& sink) {
  if (expr.kind == ExprKind::Launch && expr.function && !expr.launch.grid.empty()) {
    withGrid.try_emplace(expr.function, expr.launch.grid[0]);
    if (expr.function->kernel && expr.function->kernel->tile)
      sink.error("E0462", expr.launch.grid[0]->range, "`" + expr.function->name + "` has its grid from `@tile`")
          .primary("a second grid")
          .label(expr.function->kernel->tile->range, "the tiles of the output give the grid")
          .help("launch it without `grid = …`");
  }
  if (expr.kind == ExprKind::Launch && expr.function && !expr.launch.block.empty())
    checkFragments(expr, sink);
  forEachChild(expr, [&](const Expr& child) { checkLaunchesIn(child, withGrid, sink); });
}

}  // namespace

std::map<const Function*, const Expr*> checkLaunches(const Program& program, diag::DiagnosticSink& sink) {
  std::map<const Function*, const Expr*> withGrid;
  for (const auto& function : program.functions)
    if (!function->isKernel && function->body)
      checkLaunchesIn(*function->body, withGrid, sink);
  return withGrid;
}

/// The kernel's own blocks along an axis, where they are constant.
static std::optional<int64_t> ownBlocks(const Function& kernel, const LaunchShapes& shapes, uint32_t axis) {
  const KernelSpec& spec = *kernel.kernel;
  if (spec.gridKind == GridKind::Domain) {
    const auto extent = axis < spec.domain.size() ? spec.domain[axis].asConstant() : 1;
    const bool isOne = extent == 1;  // blocks have at least one thread
    const bool isKnown = extent && *extent > 0 && shapes.blocks.size() == 1 && shapes.blocks[0][axis];
    return isOne     ? std::optional<int64_t>(1)
           : isKnown ? std::optional(applyToExtents(DimAtom::Kind::CeilDiv, *extent, *shapes.blocks[0][axis]))
                     : std::nullopt;
  }
  if (!spec.grid.empty())
    return axis < spec.grid.size() ? constantSize(*spec.grid[axis]) : 1;
  return shapes.asksBlocks[axis] ? std::nullopt : std::optional<int64_t>(1);
}

/// Of the kernel's default block. Where a row of the domain is as long as a tensor in shared or local memory, the code is made for its length, and takes
/// a block for that.
static BlockShape usualBlock(const Function& kernel) {
  const std::vector<DimExpr>& domain = kernel.kernel->domain;
  const std::array<int64_t, 3> usual = defaultBlock(*kernel.kernel, domain);
  BlockShape shape = {usual[0], usual[1], usual[2]};
  if (domain.size() > 1 && !domain[0].asConstant() && !specialisedDims(kernel).empty())
    shape[0] = shape[1] = std::nullopt;
  return shape;
}

LaunchShapes launchShapes(const Function& kernel, const Program& program, const OutsideSizes& outside) {
  const KernelSpec& spec = *kernel.kernel;
  LaunchShapes shapes;
  std::vector<const Expr*> launches;
  for (const auto& function : program.functions)
    if (!function->isKernel && function->body)
      collectLaunches(*function->body, kernel, launches);
  collectAsked(*kernel.body, shapes);
  for (const Expr* launch : launches) {
    const BlockShape shape = shapeOf(launch->launch.block);
    if (!launch->launch.block.empty() &&
        std::find(shapes.blocks.begin(), shapes.blocks.end(), shape) == shapes.blocks.end())
      shapes.blocks.push_back(shape);
  }
  const bool isOwnForAll = std::all_of(launches.begin(), launches.end(), hasOwnGrid);
  shapes.usesOwnGrid = isOwnForAll && !outside.haveGrid;
  shapes.isGridGiven = !shapes.usesOwnGrid || (spec.gridKind == GridKind::Explicit && spec.grid.empty());
  if (outside.block) {
    const auto& [x, y, z] = *outside.block;
    shapes.blocks = {{x, y, z}};
  } else if (!spec.block.empty()) {
    shapes.usesOwnBlock = shapes.blocks.empty();
    shapes.blocks.insert(shapes.blocks.begin(), shapeOf(spec.block));
  } else if (shapes.blocks.empty() || spec.gridKind == GridKind::Domain) {
    shapes.hasUsualBlock = true;
    shapes.blocks.insert(shapes.blocks.begin(), usualBlock(kernel));
  }
  // Others than the program may launch a kernel that has a grid without one.
  const bool isLaunchedByItself = launches.empty() || spec.gridKind == GridKind::Domain || !spec.grid.empty() ||
                                  std::any_of(launches.begin(), launches.end(), hasOwnGrid);
  for (uint32_t axis = 0; axis < 3; ++axis) {
    std::vector<std::optional<int64_t>> sizes;
    if (isLaunchedByItself)
      sizes.push_back(ownBlocks(kernel, shapes, axis));
    for (const Expr* launch : launches)
      if (!hasOwnGrid(launch))
        sizes.push_back(axis < launch->launch.grid.size() ? constantSize(*launch->launch.grid[axis]) : 1);
    if (std::equal(sizes.begin() + 1, sizes.end(), sizes.begin()))
      shapes.grid[axis] = sizes.front();
  }
  return shapes;
}

}  // namespace vortex::lang::flow
