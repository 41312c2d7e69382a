#include "passes/build/build_phases.h"

#include "passes/build/phase_builder.h"
#include "passes/build/stream_bounds.h"
#include "passes/build/stream_parts.h"
#include "passes/phase_marks.h"

namespace vortex::passes {
namespace {

using namespace mlir;
using Work = PhasePlan::Work;

class PlanBuilder {
public:
  PlanBuilder(const KernelPlan& plan, ir::EntryOp entry, ir::LaunchBuilder& launch,
              llvm::function_ref<std::string(StringRef)> nextName)
      : plan_(plan), kernel_(plan.kernel), launch_(launch), nextName_(nextName) {
    ArrayRef<Type> inputs = entry.getFunctionType().getInputs();
    types_.assign(inputs.begin(), inputs.end());
  }

  void build(ArrayRef<StepPlan> steps) {
    for (const StepPlan& each : steps)
      std::visit([this](const auto& step) { build(step); }, each.step);
  }

private:
  void build(const StepPlan::Let& let) { launch_.let(kernel_.getLoc(), let.argument, let.value); }

  void build(const StepPlan::Choice& choice) {
    SmallVector<ir::LaunchBuilder::Way> ways;
    for (const StepPlan::Way& way : choice.ways)
      ways.push_back({.name = way.name,
                      .needs = way.needs,
                      .when = way.when,
                      .emit = [this, &way] { build(way.steps); },
                      .cost = way.cost});
    if (choice.isLeast)
      launch_.chooseLeast(kernel_.getLoc(), ways);
    else
      launch_.choose(kernel_.getLoc(), ways);
  }

  void build(const PhasePlan& phase) {
    ir::KernelOp kernel = createKernel(phase);
    switch (phase.work) {
    case Work::Stream:
    case Work::StreamPieces:
    case Work::CombineStream: buildStream(phase, kernel); break;
    default: buildWork(phase, kernel);
    }
    if (phase.isAnyhow)
      kernel->setAttr(kAnyPlacement, UnitAttr::get(context()));
    if (phase.elements)
      kernel->setAttr(kBlockElements, IntegerAttr::get(IndexType::get(context()), *phase.elements));
    if (phase.tiles)
      kernel->setAttr(kTiles, phase.tiles);
  }

  /// An empty phase of the launch.
  ir::KernelOp createKernel(const PhasePlan& phase) {
    OpBuilder builder(kernel_);
    OperationState state(kernel_.getLoc(), ir::KernelOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(nextName_(phase.name)));
    state.addAttribute("function_type", TypeAttr::get(FunctionType::get(context(), types_, {})));
    Attribute one = ir::sizeConstant(context(), 1);
    state.addAttribute("grid", builder.getArrayAttr({phase.blocks, one, one}));
    state.addAttribute("block", builder.getArrayAttr({one, one, one}));
    Block* body = new Block();
    for (Type type : types_)
      body->addArgument(type, kernel_.getLoc());
    state.addRegion()->push_back(body);
    auto kernel = cast<ir::KernelOp>(builder.create(state));
    launch_.phase(kernel);
    return kernel;
  }

  void buildWork(const PhasePlan& phase, ir::KernelOp kernel) {
    PhaseBuilder builder(kernel_, kernel, plan_.axes, plan_.clusters, plan_.temporaries);
    builder.partials = plan_.partials;
    builder.arguments = &plan_.arguments;
    for (const AlignedCopy& copy : phase.copies)
      builder.copies[copy.tile] = copy.copy;
    if (phase.work == Work::Combine)
      builder.partials[phase.subject->getResult(0)] = phase.source;
    if (phase.work == Work::LookBack)
      builder.takeNumber(cast<ir::ScanOp>(phase.subject), phase.target);
    if (!phase.axes.empty())
      builder.split(phase.axes, phase.pieces, phase.group);
    buildSubject(phase, builder);
    for (Operation* root : phase.roots)
      builder.emitRoot(root);
    builder.finish();
    if (phase.work == Work::Compute)
      boundStreams(kernel, false);
    setUnit(kernel, phase.unit);
  }

  /// What a phase does before its roots.
  void buildSubject(const PhasePlan& phase, PhaseBuilder& builder) {
    auto number = [&]() -> Value {
      if (phase.numbered)
        return builder.number(*phase.numbered);
      return builder.builder.create<ir::BlockIdOp>(phase.subject->getLoc(), builder.builder.getIndexType(),
                                                   ir::Axis::X);
    };
    switch (phase.work) {
    case Work::Copy: builder.emitCopy(phase.subject->getResult(0), phase.copy); break;
    case Work::PartialReduce: builder.emitPartial(cast<ir::ReduceOp>(phase.subject), number(), phase.target); break;
    case Work::PartialProduct:
      builder.emitPartialProduct(cast<ir::DotOp>(phase.subject), number(), phase.target);
      break;
    case Work::Combine:
      builder.get(phase.subject->getResult(0));
      builder.storeTemporaries(phase.subject);
      break;
    case Work::ScanTotals: builder.emitScanPartial(cast<ir::ScanOp>(phase.subject), number(), phase.target); break;
    case Work::ScanCarries: builder.emitScanCarries(cast<ir::ScanOp>(phase.subject), phase.source, phase.target); break;
    case Work::ScanPieces:
      builder.emitScanPiece(cast<ir::ScanOp>(phase.subject), number(), phase.source);
      builder.storeTemporaries(phase.subject);
      break;
    case Work::Clear: builder.emitClear(phase.extent, *ir::constantSize(phase.pieces[0]), phase.target); break;
    case Work::LookBack:
      builder.emitLookBackPiece(cast<ir::ScanOp>(phase.subject), phase.target);
      builder.storeTemporaries(phase.subject);
      break;
    case Work::Compute:
    case Work::Stream:
    case Work::StreamPieces:
    case Work::CombineStream: break;
    }
  }

  void buildStream(const PhasePlan& phase, ir::KernelOp kernel) {
    const BulkStreams& streams = *plan_.streams;
    const Temporaries none;
    PhaseBuilder builder(streams.kernel(), kernel, streams.axes(), streams.clusters(), none);
    const bool isOfPieces = phase.work == Work::StreamPieces;
    scf::ForOp whole = streams.stream().loop;
    Value number = builder.split(phase.axes, phase.pieces, 1, isOfPieces);
    if (phase.work == Work::CombineStream)
      builder.combineParts(streams.stream(), *phase.parts);
    if (isOfPieces) {
      builder.emitRoot(whole);
      builder.storeParts(whole, *phase.parts, number);
    } else {
      for (Operation* root : phase.roots)
        builder.emitRoot(root);
    }
    builder.finish();
    if (!phase.way)
      return;
    setUnit(kernel, phase.unit);
    scf::ForOp loop = *kernel.getBody().front().getOps<scf::ForOp>().begin();
    setChunkSize(loop, phase.way->step);
    if (!isOfPieces)
      return boundStreams(kernel, true);
    loop->setAttr(kRowsAttr, IntegerAttr::get(IndexType::get(context()), phase.parts->rows));
    Value extent = loop.getUpperBound();
    boundStreams(kernel, true);
    OpBuilder before(loop);
    Value piece = emitSize(before, loop.getLoc(), phase.parts->piece, kernel.getBody().getArguments());
    boundToPiece(loop, extent, piece, number);
  }

  /// Leaves the target's word on the products of a phase.
  void setUnit(ir::KernelOp kernel, StringRef unit) {
    if (!unit.empty())
      kernel.walk([&](ir::DotOp dot) { dot->setAttr(kUnit, StringAttr::get(context(), unit)); });
  }

  MLIRContext* context() { return kernel_.getContext(); }

  const KernelPlan& plan_;
  ir::KernelOp kernel_;
  ir::LaunchBuilder& launch_;
  llvm::function_ref<std::string(StringRef)> nextName_;
  SmallVector<Type> types_;
};

}  // namespace

void buildPhases(const KernelPlan& plan, ir::EntryOp entry, ir::LaunchBuilder& launch,
                 llvm::function_ref<std::string(StringRef)> nextName) {
  PlanBuilder(plan, entry, launch, nextName).build(plan.steps);
}

}  // namespace vortex::passes
