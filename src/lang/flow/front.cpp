#include "lang/flow/front.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>

#include "base/text.h"
#include "lang/flow/annotate.h"
#include "lang/flow/check/accesses.h"
#include "lang/flow/check/barriers.h"
#include "lang/flow/check/bounds.h"
#include "lang/flow/check/counting.h"
#include "lang/flow/check/endless.h"
#include "lang/flow/check/grid.h"
#include "lang/flow/check/grid_barriers.h"
#include "lang/flow/check/initialised.h"
#include "lang/flow/check/one_thread.h"
#include "lang/flow/check/ownership.h"
#include "lang/flow/check/shared_bytes.h"
#include "lang/flow/check/staging.h"
#include "lang/flow/check/surplus.h"
#include "lang/flow/check/surplus_loops.h"
#include "lang/flow/check/waiting.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/flow/race/claims.h"
#include "lang/kernel/distribute.h"
#include "lang/sema/byte_sizes.h"
#include "lang/sema/kernel/inline_calls.h"

namespace vortex::lang::flow {
namespace {

/// A kernel with what several checks ask for.
struct CheckedKernel {
  CheckedKernel(Function& kernel, const Program& program, bool hasOwnGrid, const OutsideSizes& outside)
      : kernel(kernel), hasOwnGrid(hasOwnGrid), shapes(launchShapes(kernel, program, outside)),
        graph(lowerKernel(kernel)), structure(graph), uniformity(graph, structure, shapes.writtenBlocks()),
        shared(planShared(graph)) {
    if (kernel.kernel->gridKind != GridKind::WholeTensor)
      kernel.kernel->checkedBlocks = shapes.blocks;
  }

  Function& kernel;
  bool hasOwnGrid;  ///< which no launch can replace
  bool hasErrors = false;
  LaunchShapes shapes;
  Graph graph;
  Structure structure;
  Uniformity uniformity;
  SharedPlan shared;
};

void setUnchecked(Expr& expr) {
  if (expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice)
    expr.guard = Guard::Unchecked;
  for (Expr* arg : expr.args)
    if (arg)
      setUnchecked(*arg);
}

/// How long each check of a kernel took, one after the other.
class Timed {
public:
  Timed(const Function& kernel, std::string_view check, std::vector<CheckTime>* times) : times_(times) {
    if (times_)
      times_->push_back({kernel.uniqueName, check, 0, {}});
  }
  ~Timed() {
    if (times_)
      times_->back().milliseconds =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  void count(const RaceReport& report) {
    for (const auto& [decider, number] : report.counts)
      if (times_)
        times_->back().counts += base::concat(times_->back().counts.empty() ? "" : ", ", name(decider), " ", number);
  }

private:
  std::vector<CheckTime>* times_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What code generation needs, and what stands in the way of it.
void prepare(CheckedKernel& checked, const Roots& roots, const std::set<const Variable*>& blockTiles,
             diag::DiagnosticSink& sink) {
  Function& kernel = checked.kernel;
  const ExprLevels levels(checked.graph, checked.structure, checked.uniformity, roots);
  Findings findings{levels, {}, {}, {}, {}, {}};
  if (kernel.kernel->uncheckedBounds)
    setUnchecked(*kernel.body);
  findings.guards = proveBounds(checked.graph, checked.structure, checked.hasOwnGrid);
  findings.reaches = loopReaches(checked.graph, checked.structure);
  if (kernel.kernel->gridKind == GridKind::WholeTensor)
    findings.independentLoops = checkLoops(kernel, checked.graph, checked.structure, sink);
  const auto waits = [&] {
    diag::DiagnosticSink found;
    if (!kernel.kernel->cooperative)
      checkWaiting(checked.graph, checked.structure, found);
    return found.hasErrors();
  };
  checkBarriers(kernel, levels, checked.shapes.writtenBlocks(), waits, sink);
  findings.staging = checkStaging(checked.graph, checked.structure, sink);
  findings.reuse = checked.shared.barriers;
  annotate(kernel, findings, roots);
  checkBlockTiles(kernel, roots, blockTiles, sink);
}

void markRaceFree(Expr& expr, const std::set<const Expr*>& proven) {
  expr.isRaceFree = proven.contains(&expr);
  for (Expr* arg : expr.args)
    if (arg)
      markRaceFree(*arg, proven);
  for (const SliceDim& slice : expr.slices)
    for (Expr* part : {slice.begin, slice.end})
      if (part)
        markRaceFree(*part, proven);
}

/// Of a kernel without errors.
void checkRaces(CheckedKernel& checked, const CheckOptions& checks, diag::DiagnosticSink& sink) {
  if (checks.races == RacePolicy::Allow)
    return;
  if (checked.kernel.kernel->gridKind == GridKind::WholeTensor)
    return checkClaims(checked.graph, checked.structure, checks.races, sink);
  Timed timed(checked.kernel, "races", checks.times);
  const RaceReport report = findRaces(checked.graph, checked.structure, checked.shapes);
  timed.count(report);
  checked.kernel.kernel->limits = launchLimits(checked.graph, report);
  const std::set<const Expr*> proven = raceFreeAccesses(checked.graph, report);
  markRaceFree(*checked.kernel.body, proven);
  reportRaces(checked.graph, report, checks.races, sink);
}

void checkGraph(CheckedKernel& checked, const CheckOptions& checks, diag::DiagnosticSink& sink) {
  const uint32_t errorsBefore = sink.errorCount();
  {
    const Timed timed(checked.kernel, "initialised", checks.times);
    checkInitialised(checked.graph, checked.structure, checked.uniformity, sink);
  }
  {
    const Timed timed(checked.kernel, "surplus", checks.times);
    checkSurplus(checked.graph, checked.structure, sink);
  }
  {
    const Timed timed(checked.kernel, "waiting", checks.times);
    if (!checked.kernel.kernel->cooperative)
      checkWaiting(checked.graph, checked.structure, sink);
    checkGridBarriers(checked.graph, checked.structure, sink);
  }
  if (sink.errorCount() == errorsBefore)
    checkRaces(checked, checks, sink);
}

/// References to a kernel's checks stay valid.
using CheckedKernels = std::deque<CheckedKernel>;

CheckedKernel& makeGraph(CheckedKernels& kernels, Program& program, Function& kernel, LaunchGrids grids,
                         const OutsideSizes& outside, const CheckOptions& checks, diag::DiagnosticSink& sink) {
  std::optional<Timed> timed(std::in_place, kernel, "graph", checks.times);
  const std::set<const Expr*> own = inferGrid(kernel, lowerKernel(kernel), grids, sink);  // of a kernel without a grid
  const Roots roots(kernel);
  const std::set<const Variable*> blockTiles = distributeLocals(program, kernel, roots);
  const auto make = [&]() -> CheckedKernel& {
    return kernels.emplace_back(kernel, program, kernel.kernel->tile && grids != LaunchGrids::Always, outside);
  };
  std::set<const Expr*> tested;
  const auto isChanged = [&](const CheckedKernel& written) {
    return keepSurplusOut(program, kernel, own, written.graph, written.structure, written.uniformity, tested, sink);
  };
  while (isChanged(make()))
    kernels.pop_back();
  CheckedKernel& checked = kernels.back();
  timed.reset();
  timed.emplace(kernel, "bounds, barriers, staging", checks.times);
  prepare(checked, roots, blockTiles, sink);
  return checked;
}

void reportGrid(const Function& kernel, const Expr& given, diag::DiagnosticSink& sink) {
  sink.error("E0462", given.range, "the compiler chooses the grid of `" + kernel.name + "`")
      .primary("another grid")
      .label(kernel.nameRange, "it names no block or thread")
      .help("launch it without `grid = …`, or say by `block.id` or `thread.global_id` what each of the threads does");
}

/// Whether an error so far is in the kernel's own code.
bool isFaulty(const Function& kernel, const diag::DiagnosticSink& sink) {
  return std::ranges::any_of(sink.all(), [&](const diag::Diagnostic& found) {
    if (found.severity != diag::Severity::Error)
      return false;
    const source::SourceRange at = found.position(), body = kernel.body->range;
    return at.file == body.file && at.begin >= body.begin && at.begin < body.end;
  });
}

CheckedKernels prepareKernels(Program& program, LaunchGrids launchGrids, const std::optional<OutsideLaunch>& launch,
                              const CheckOptions& checks, diag::DiagnosticSink& sink) {
  const OutsideSizes outside{launchGrids == LaunchGrids::Always, launch ? launch->block : std::nullopt};
  const std::map<const Function*, const Expr*> withGrid = checkLaunches(program, sink);
  CheckedKernels kernels;
  for (Function* kernel : program.kernels) {
    if (!kernel->kernel || !kernel->body || (launch && launch->kernel != kernel->uniqueName) ||
        !inlineCalls(program, *kernel, sink))
      continue;
    const bool wasFaulty = isFaulty(*kernel, sink);
    const uint32_t errorsBefore = sink.errorCount();
    sink.setNote(kernel->chosenArguments);
    const LaunchGrids grids = withGrid.contains(kernel) ? LaunchGrids::Always : launchGrids;
    CheckedKernel& checked = makeGraph(kernels, program, *kernel, grids, outside, checks, sink);
    if (const auto given = withGrid.find(kernel);
        given != withGrid.end() && kernel->kernel->gridKind == GridKind::WholeTensor)
      reportGrid(*kernel, *given->second, sink);
    if (sink.errorCount() == errorsBefore) {
      const Timed timed(*kernel, "accesses", checks.times);
      checkAccesses(*kernel, checked.graph, checked.structure, checked.uniformity, checked.shapes, sink);
    }
    checked.hasErrors = wasFaulty || sink.errorCount() != errorsBefore;
  }
  sink.setNote("");
  return kernels;
}

void checkGraphs(CheckedKernels& kernels, const CheckOptions& checks, diag::DiagnosticSink& sink) {
  for (CheckedKernel& checked : kernels)
    if (!checked.hasErrors) {
      sink.setNote(checked.kernel.chosenArguments);
      checkGraph(checked, checks, sink);
    }
  sink.setNote("");
}

}  // namespace

void checkKernels(Program& program, diag::DiagnosticSink& sink, LaunchGrids launchGrids, const CheckOptions& checks) {
  CheckedKernels kernels = prepareKernels(program, launchGrids, std::nullopt, checks, sink);
  checkGraphs(kernels, checks, sink);
}

std::unique_ptr<Program> analyze(source::FileId root, source::SourceManager& sources, diag::DiagnosticSink& sink,
                                 const AnalyzeOptions& options, const CheckOptions& checks) {
  AnalyzeOptions typing = options;
  typing.checkDefinition = checkDefinitionOwnership;
  auto program = lang::analyze(root, sources, sink, typing);
  if (sink.hasErrors())
    return program;
  checkOwnership(*program, sink);
  checkEndless(*program, sink);
  CheckedKernels kernels = prepareKernels(*program, options.launchGrids, options.launch, checks, sink);
  if (!sink.hasErrors())
    checkByteSizes(*program, sink);
  if (!sink.hasErrors() && options.sharedBytes != 0)
    for (const CheckedKernel& checked : kernels)
      checkSharedBytes(checked.kernel, checked.shared, options.sharedBytes, options.target, options.isSharedAdvice,
                       sink);
  checkGraphs(kernels, checks, sink);
  return program;
}

}  // namespace vortex::lang::flow
