#include "lang/flow/front.h"

#include <algorithm>

#include "lang/flow/check/initialised.h"
#include "lang/flow/check/waiting.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/sema/children.h"
#include "lang/sema/kernel/grid.h"

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

void collectLaunches(const Expr& expr, const Function& kernel, LaunchShapes& shapes, uint32_t& rank) {
  if (expr.kind == ExprKind::Launch && expr.function == &kernel) {
    if (!expr.launch.block.empty()) {
      const BlockShape shape = shapeOf(expr.launch.block);
      if (std::find(shapes.blocks.begin(), shapes.blocks.end(), shape) == shapes.blocks.end())
        shapes.blocks.push_back(shape);
    }
    rank = std::max(rank, static_cast<uint32_t>(expr.launch.grid.size()));
  }
  forEachChild(expr, [&](const Expr& child) { collectLaunches(child, kernel, shapes, rank); });
}

void namedAxes(const Expr& expr, uint32_t& rank) {
  if (expr.kind == ExprKind::Builtin && !expr.ints.empty() &&
      (expr.builtin == Builtin::BlockId || expr.builtin == Builtin::ThreadGlobalId))
    rank = std::max(rank, static_cast<uint32_t>(expr.ints.front()) + 1);
  forEachChild(expr, [&](const Expr& child) { namedAxes(child, rank); });
}

void checkKernel(const Function& kernel, const Program& program, const CheckOptions& checks,
                 diag::DiagnosticSink& sink) {
  const uint32_t errorsBefore = sink.errorCount();
  Graph graph = lowerKernel(kernel);
  const Structure structure(graph);
  checkInitialised(graph, structure, Uniformity(graph, structure, BlockShape()), sink);
  checkWaiting(graph, structure, sink);
  const bool isScheduled = kernel.kernel->gridKind == GridKind::WholeTensor;
  if (isScheduled || checks.races == RacePolicy::Allow || sink.errorCount() != errorsBefore)
    return;
  reportRaces(graph, findRaces(graph, structure, launchShapes(kernel, program)), checks.races, sink);
}

}  // namespace

LaunchShapes launchShapes(const Function& kernel, const Program& program) {
  const KernelSpec& spec = *kernel.kernel;
  LaunchShapes shapes;
  uint32_t rank = 0;
  for (const auto& function : program.functions)
    if (!function->isKernel && function->body)
      collectLaunches(*function->body, kernel, shapes, rank);
  shapes.usesOwnGrid = rank == 0;
  rank = std::max(rank, 1u);
  if (spec.gridKind == GridKind::Domain)
    rank = static_cast<uint32_t>(spec.domain.size());
  else if (!spec.grid.empty())
    rank = std::max(rank, static_cast<uint32_t>(spec.grid.size()));
  else
    namedAxes(*kernel.body, rank);
  for (uint32_t axis = rank; axis < 3; ++axis)
    shapes.grid[axis] = 1;
  for (uint32_t axis = 0; shapes.usesOwnGrid && axis < spec.grid.size() && axis < 3; ++axis)
    shapes.grid[axis] = constantSize(*spec.grid[axis]);
  if (!spec.block.empty()) {
    shapes.blocks.insert(shapes.blocks.begin(), shapeOf(spec.block));
  } else if (shapes.blocks.empty() || spec.gridKind == GridKind::Domain) {
    const std::array<int64_t, 3> usual = defaultBlock(spec.domain);
    shapes.blocks.insert(shapes.blocks.begin(), {usual[0], usual[1], usual[2]});
  }
  return shapes;
}

std::unique_ptr<Program> analyze(source::FileId root, source::SourceManager& sources, diag::DiagnosticSink& sink,
                                 const AnalyzeOptions& options, const CheckOptions& checks) {
  auto program = lang::analyze(root, sources, sink, options);
  if (sink.hasErrors())
    return program;
  for (const Function* kernel : program->kernels)
    if (kernel->kernel && kernel->body)
      checkKernel(*kernel, *program, checks, sink);
  return program;
}

}  // namespace vortex::lang::flow
