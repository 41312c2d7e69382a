#include "target/gpu/phases.h"

#include "base/check.h"
#include "base/text.h"
#include "ir/location.h"
#include "ir/root_view.h"
#include "ir/size_attr.h"
#include "passes/phase_marks.h"
#include "target/gpu/version_phase.h"
#include "target/gpu/versions.h"
#include "target/interface/describe.h"

#include "artifact/device_report.h"

#include <mlir/IR/Verifier.h>

namespace vortex::target::gpu {

/// Arguments that a phase of tiles reads or writes in rows. Those of which it takes single elements only (tables of pages, lengths) may lie anyhow.
static std::set<unsigned> argumentsOfTiles(ir::KernelOp phase) {
  std::set<unsigned> found;
  bool hasTiles = false;
  phase.walk([&](mlir::Operation* op) {
    hasTiles |= mlir::isa<ir::TileLoadOp, ir::TileStoreOp>(op);
    if (!mlir::isa<ir::TileLoadOp, ir::TileStoreOp, ir::StageCopyOp>(op))
      return;
    for (mlir::Value operand : op->getOperands())
      if (mlir::isa<ir::ViewType>(operand.getType()))
        if (auto root = mlir::dyn_cast<mlir::BlockArgument>(ir::rootView(operand));
            root && root.getOwner() == &phase.getBody().front())
          found.insert(root.getArgNumber());
  });
  if (!hasTiles)
    found.clear();
  return found;
}

static size::Expr both(size::Expr a, size::Expr b) { return a && b ? size::make(size::Op::And, a, b) : a ? a : b; }

static bool hasWideLoad(ir::vxt::KernelOp kernel) {
  return kernel
      .walk([](ir::vxt::LoadOp load) {
        return mlir::isa<mlir::VectorType>(load.getType()) ? mlir::WalkResult::interrupt()
                                                           : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

size::Expr sharedBytesOf(ir::vxt::KernelOp kernel) {
  size::Expr fixed = ir::sizeArena(kernel.getContext()).constant(kernel.getSharedBytes());
  auto tail = kernel->getAttrOfType<ir::SizeAttr>(Lowering::kSharedTail);
  return tail ? size::make(size::Op::Add, fixed, tail.getExpr()) : fixed;
}

/// The phase's versions: for tensors that lie well, split by what a launch's extents decide; for tensors of which those lie well that products
/// copy at once; and for tensors that lie anyhow.
static void lowerPhase(ModuleState& state, ir::KernelOp phase, artifact::Phase& described) {
  const std::string symbol = described.symbol;
  size::Arena& arena = ir::sizeArena(phase.getContext());
  size::Expr sharedBytes, threads, usualThreads;
  auto argumentOf = [&](unsigned slot) {
    return ir::argumentOfSlot(phase.getContext(), phase.getArgumentTypes(), slot);
  };
  std::set<unsigned> betterAligned, betterWhole;
  ir::SizeAttr longRows;
  int64_t lanes = 1;
  auto lower = [&](const std::string& name, const Assumptions& assumptions) -> ir::vxt::KernelOp {
    const VersionPhase version(phase, assumptions, lanes);
    Lowering lowering(state, version.get(), name, assumptions);
    ir::vxt::KernelOp kernel = lowering.run();
    if (!kernel)
      return nullptr;
    if (!sharedBytes)  // once for all versions
      for (artifact::SharedTensor tensor : lowering.sharedTensors()) {
        tensor.phase = static_cast<uint32_t>(state.kernel.phases.size());
        state.kernel.sharedTensors.push_back(std::move(tensor));
      }
    size::Expr bytes = sharedBytesOf(kernel), own = kernel.getThreads().getExpr();
    if (!threads)
      longRows = lowering.longRows();
    if (assumptions.longRows)
      bytes = size::make(size::Op::Select, longRows.getExpr(), bytes, arena.constant(0));
    else
      betterAligned = lowering.betterAligned(), betterWhole = lowering.betterWhole(), lanes = lowering.lanes();
    VORTEX_CHECK(!threads || assumptions.longRows || own == usualThreads, "versions of '%s' have other threads",
                 symbol.c_str());
    if (!threads || assumptions.longRows)
      threads = threads ? size::make(size::Op::Select, longRows.getExpr(), own, usualThreads) : usualThreads = own;
    sharedBytes = sharedBytes ? size::make(size::Op::Max, sharedBytes, bytes) : bytes;
    described.sharedBytes = state.kernel.sizes.add(sharedBytes);
    described.hardwareThreads = state.kernel.sizes.add(threads);
    return kernel;
  };
  auto describe = [&](ir::vxt::KernelOp lowered, size::Expr when, bool hasOthers = false) {
    for (KernelVersion& version : splitVersions(lowered, argumentOf, hasOthers)) {
      described.symbol = version.kernel.getSymName().str();
      // Registers are not limited for more blocks than shared memory has room for.
      if (const int64_t blocks = version.kernel.getMinBlocks(), bytes = version.kernel.getSharedBytes();
          blocks > 1 && bytes > 0)
        version.kernel.setMinBlocks(std::clamp<int64_t>(int64_t(state.chip.sharedBytesPerCore) / bytes, 1, blocks));
      if (size::Expr holds = both(when, version.when))
        described.versions.push_back({state.kernel.sizes.add(holds), described.symbol});
    }
  };
  const bool isAnyhow = phase->hasAttr(passes::kAnyPlacement);
  const std::set<unsigned> inTiles = argumentsOfTiles(phase);
  const Assumptions fast = isAnyhow ? Assumptions{} : Assumptions{.unitStrides = true, .aligned = inTiles};
  const size::Expr fastWhen = isAnyhow ? size::Expr() : conditionFor(phase, state.kernel, fast);
  ir::vxt::KernelOp kernel = lower(isAnyhow ? symbol + "_general" : symbol, fast);
  if (!kernel)
    return;
  // What these assume decides the threads of a block, so that they come before all others.
  auto describeLong = [&](const std::string& name, Assumptions assumptions, size::Expr when) {
    if (!longRows)
      return true;
    assumptions.longRows = true;
    ir::vxt::KernelOp rows = lower(name, assumptions);
    if (rows)
      describe(rows, both(longRows.getExpr(), when), bool(when));
    return bool(rows);
  };
  if (!describeLong(isAnyhow ? symbol + "_general_long" : symbol + "_long", fast, fastWhen))
    return;
  if (!betterWhole.empty() && !isAnyhow && inTiles.empty()) {
    Assumptions wide = fast;
    wide.wholeRows = betterWhole;
    const size::Expr when = conditionFor(phase, state.kernel, wide);
    ir::vxt::KernelOp rows = when.constant() ? nullptr : lower(symbol + "_wide", wide);
    if (rows && hasWideLoad(rows))
      describe(rows, when);
    else if (rows)
      rows.erase();  // windows whose rows end or start anywhere all the same
  }
  if (!fastWhen)
    return describe(kernel, {});
  if (!describeLong(symbol + "_general_long", {}, {}))
    return;
  ir::vxt::KernelOp general = lower(symbol + "_general", {}), middle;
  if (!general)
    return;
  const Assumptions some{.aligned = betterAligned};
  const size::Expr someWhen = conditionFor(phase, state.kernel, some);
  if (someWhen && someWhen != fastWhen && !(middle = lower(symbol + "_general_aligned", some)))
    return;
  describe(kernel, fastWhen, true);
  if (middle)
    describe(middle, someWhen);
  describe(general, {});
}

Result<void> lowerPhases(ModuleState& state, mlir::ModuleOp module, SpecialPhase special) {
  if (!llvm::hasSingleElement(module.getOps<ir::EntryOp>()))
    return base::Error{"the module has no single vx.entry"};
  for (ir::KernelOp kernel : module.getOps<ir::KernelOp>())
    if (kernel.getWholeTensor())
      return base::Error{"kernel '" + kernel.getSymName().str() + "' is not scheduled yet"};
  ir::EntryOp entry = *module.getOps<ir::EntryOp>().begin();
  artifact::Kernel& kernel = state.kernel;
  kernel.name = entry.getSymName().str();
  describeInterface(entry, kernel);
  // They compute with numbers alone, in operations that vxt has as they are.
  for (auto function : module.getOps<mlir::func::FuncOp>())
    state.module.push_back(function.clone());
  for (ir::KernelOp phase : module.getOps<ir::KernelOp>()) {
    artifact::Phase described = describePhase(phase, kernel);
    if (!special(state, phase, described))
      lowerPhase(state, phase, described);
    if (!state.error.empty())
      return base::Error{state.error};
    kernel.phases.push_back(std::move(described));
    describeGuards(phase, kernel);
  }
  describeSteps(module, kernel);
  if (auto place = ir::fileLocation(entry.getLoc()))
    kernel.faults.push_back({artifact::kDeviceStopped, "the device stopped", place.getFilename().str(), place.getLine(),
                             place.getColumn()});
  VORTEX_CHECK(mlir::succeeded(mlir::verify(state.module)), "the lowered module is not well-formed");
  return {};
}

}  // namespace vortex::target::gpu
