#include "target/nvidia/nvidia_target.h"

#include "artifact/device_report.h"
#include "base/check.h"
#include "base/text.h"
#include "chip/chip.h"
#include "ir/size_attr.h"
#include "ir/vx.h"
#include "target/gpu/lowering.h"
#include "target/gpu/tiles/schedule.h"
#include "target/gpu/tiles/tiles.h"
#include "target/gpu/versions.h"
#include "target/interface/describe.h"
#include "target/nvidia/assemble.h"
#include "target/nvidia/stopwatch.h"
#include "target/nvidia/units.h"

#include <mlir/IR/Verifier.h>

namespace vortex::target::nvidia {

using artifact::SizeExpr;
using base::concat;

static const chip::Gpu& chipOf(const Target& target) {
  const chip::Gpu* chip = chip::findGpu(target.chip);
  VORTEX_CHECK(chip, "no table for %s", target.chip.c_str());
  return *chip;
}

passes::TensorSchedule tensorSchedule(const Target& target, mlir::ModuleOp module) {
  return gpu::tiles::tensorSchedule(chipOf(target), module);
}

static bool hasTiles(ir::KernelOp phase) {
  return phase
      .walk([](mlir::Operation* op) {
        return mlir::isa<ir::TileLoadOp, ir::TileStoreOp>(op) ? mlir::WalkResult::interrupt()
                                                              : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

static SizeExpr multipleOf16(const SizeExpr& value) {
  using Op = SizeExpr::Op;
  return SizeExpr::binary(Op::Equal, SizeExpr::binary(Op::Mod, value, SizeExpr::constant(16)), SizeExpr::constant(0));
}

/// Where the launch's tensors are as `assumptions` says; empty: always.
static SizeExpr conditionFor(ir::KernelOp phase, const artifact::Kernel& kernel, gpu::Assumptions assumptions) {
  using Op = SizeExpr::Op;
  SizeExpr all;
  auto require = [&](const SizeExpr& condition) {
    all = all.steps.empty() ? condition : SizeExpr::binary(Op::And, all, condition);
  };
  llvm::SmallVector<uint32_t> first = ir::argumentSlots(phase.getArgumentTypes());
  for (auto [i, type] : llvm::enumerate(phase.getArgumentTypes())) {
    auto view = mlir::dyn_cast<ir::ViewType>(type);
    bool isRead = llvm::any_of(phase.getBody().getArgument(static_cast<unsigned>(i)).getUsers(),
                               [](mlir::Operation* user) { return !mlir::isa<ir::DimOp>(user); });
    if (!view || view.getRank() == 0 || !isRead || gpu::hasAlignedRows(kernel, static_cast<unsigned>(i)))
      continue;
    unsigned rank = view.getRank();
    auto stride = [&](unsigned dim) { return SizeExpr::slot(first[i] + 1 + rank + dim); };
    int64_t pitch = innermostStride(kernel, i);
    if (i < kernel.params.size())  // the launch allocates the others
      require(SizeExpr::binary(Op::Equal, stride(rank - 1), SizeExpr::constant(pitch)));
    if (!assumptions.alignedRows || pitch != 1)
      continue;
    require(multipleOf16(SizeExpr::slot(first[i])));
    for (unsigned dim = 0; dim + 1 < rank; ++dim)
      require(multipleOf16(SizeExpr::binary(Op::Mul, stride(dim), SizeExpr::constant(view.elementBytes()))));
  }
  return all;
}

/// Which launch slots are extents.
static llvm::SmallVector<bool> extentSlots(ir::KernelOp phase) {
  llvm::SmallVector<bool> extents;
  for (mlir::Type type : phase.getArgumentTypes()) {
    extents.push_back(false);
    if (auto view = mlir::dyn_cast<ir::ViewType>(type)) {
      extents.append(view.getRank(), true);
      extents.append(view.getRank(), false);
    }
  }
  return extents;
}

static SizeExpr sharedBytesOf(ir::KernelOp phase, ir::vxt::KernelOp kernel) {
  SizeExpr fixed = SizeExpr::constant(kernel.getSharedBytes());
  auto tail = kernel->getAttrOfType<ir::SizeAttr>(gpu::Lowering::kSharedTail);
  if (!tail)
    return fixed;
  auto more = ir::toSizeExpr(tail, phase.getArgumentTypes(), [&] { return phase.emitError(); });
  VORTEX_CHECK(mlir::succeeded(more));
  return SizeExpr::binary(SizeExpr::Op::Add, fixed, *more);
}

static void raise(SizeExpr& to, const SizeExpr& value) {
  bool known = to.steps.size() == 1 && value.steps.size() == 1;
  to = known ? SizeExpr::constant(std::max(value.evaluate({}), to.evaluate({})))
             : SizeExpr::binary(SizeExpr::Op::Max, to, value);
}

/// The phase's versions: for tensors that lie well, split by what a launch's extents decide, and for tensors that lie anyhow.
static void lowerPhase(gpu::ModuleState& state, ir::KernelOp phase, artifact::Phase& described) {
  gpu::Assumptions fast{.unitStrides = true, .alignedRows = hasTiles(phase)};
  SizeExpr fastWhen = conditionFor(phase, state.kernel, fast);
  described.sharedBytes = SizeExpr::constant(0);
  auto lower = [&](const std::string& symbol, gpu::Assumptions assumptions) -> ir::vxt::KernelOp {
    gpu::Lowering lowering(state, phase, symbol, assumptions);
    ir::vxt::KernelOp kernel = lowering.run();
    if (!kernel)
      return nullptr;
    if (assumptions.unitStrides)
      for (artifact::SharedTensor tensor : lowering.sharedTensors()) {
        tensor.phase = static_cast<uint32_t>(state.kernel.phases.size());
        state.kernel.sharedTensors.push_back(std::move(tensor));
      }
    raise(described.sharedBytes, sharedBytesOf(phase, kernel));
    auto threads = ir::toSizeExpr(kernel.getThreads(), phase.getArgumentTypes(), [&] { return phase.emitError(); });
    VORTEX_CHECK(mlir::succeeded(threads));
    described.hardwareThreads = *threads;
    return kernel;
  };
  ir::vxt::KernelOp kernel = lower(described.symbol, fast);
  if (!kernel)
    return;
  llvm::SmallVector<bool> extents = extentSlots(phase);
  auto describe = [&](ir::vxt::KernelOp lowered, const SizeExpr& when) {
    for (gpu::KernelVersion& version : gpu::splitVersions(lowered, [&](unsigned slot) { return extents[slot]; })) {
      SizeExpr both = when.steps.empty()           ? std::move(version.when)
                      : version.when.steps.empty() ? when
                                                   : SizeExpr::binary(SizeExpr::Op::And, when, version.when);
      described.symbol = version.kernel.getSymName().str();
      if (!both.steps.empty())
        described.versions.push_back({std::move(both), described.symbol});
    }
  };
  ir::vxt::KernelOp general;
  if (!fastWhen.steps.empty() && !(general = lower(described.symbol + "_general", {})))
    return;
  describe(kernel, fastWhen);
  if (general)
    describe(general, {});
}

static Result<void> checkParameters(const artifact::Kernel& kernel) {
  uint64_t bytes = (uint64_t{kernel.slotCount} + 1) * 8;
  if (bytes > artifact::kMaxParameterBytes)
    return base::Error{concat("`", kernel.name, "` takes ", bytes, " bytes of launch parameters, GPUs take ",
                              artifact::kMaxParameterBytes)};
  return {};
}

Result<artifact::Kernel> compileKernel(mlir::ModuleOp module, const Target& target, const CompileTexts& texts,
                                       CompileTimes* times) {
  if (!llvm::hasSingleElement(module.getOps<ir::EntryOp>()))
    return base::Error{"the module has no single vx.entry"};
  for (ir::KernelOp kernel : module.getOps<ir::KernelOp>())
    if (kernel.getWholeTensor())
      return base::Error{"kernel '" + kernel.getSymName().str() + "' is not scheduled yet"};
  Stopwatch watch;
  CompileTimes spent;
  ir::EntryOp entry = *module.getOps<ir::EntryOp>().begin();
  artifact::Kernel kernel;
  kernel.name = entry.getSymName().str();
  kernel.target = target.chip;
  describeInterface(entry, kernel);
  if (auto fits = checkParameters(kernel); !fits)
    return fits.takeError();
  module.getContext()->getOrLoadDialect<ir::vxt::VxtDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> lowered = mlir::ModuleOp::create(module.getLoc());
  gpu::ModuleState state{*lowered, chipOf(target), kernel, gpu::tiles::makeTileLowering};
  for (ir::KernelOp phase : module.getOps<ir::KernelOp>()) {
    artifact::Phase described = describePhase(phase);
    lowerPhase(state, phase, described);
    if (!state.error.empty())
      return base::Error{state.error};
    kernel.phases.push_back(std::move(described));
    describeGuards(phase, kernel);
  }
  if (auto place = gpu::fileLocation(entry.getLoc()))
    kernel.faults.push_back({artifact::kDeviceStopped, "the device stopped", place.getFilename().str(), place.getLine(),
                             place.getColumn()});
  VORTEX_CHECK(mlir::succeeded(mlir::verify(*lowered)), "the lowered module is not well-formed");
  if (texts.vxt) {
    llvm::raw_string_ostream out(*texts.vxt);
    lowered->print(out);
  }
  spent.lower = watch.lap();

  UnitTimes unitTimes;
  auto ptx = generatePtx(*lowered, kernel.slotCount, target, {texts.llvm, texts.optimizedLlvm}, unitTimes);
  if (!ptx)
    return ptx.takeError();
  kernel.code.assign(ptx->begin(), ptx->end());
  spent.emit = unitTimes.emit;
  spent.optimize = unitTimes.optimize;
  spent.codegen = unitTimes.codegen;
  kernel.facts.push_back({"ptx_bytes", int64_t(kernel.code.size()), false});
  if (times)
    *times = spent;
  return kernel;
}

Result<std::vector<uint8_t>> assembleKernel(artifact::Kernel& kernel, const Target& target) {
  const std::optional<std::string>& ptxas = findPtxas();
  if (!ptxas)
    return std::vector<uint8_t>();
  auto assembled = assemble(*ptxas, std::string(kernel.code.begin(), kernel.code.end()), target.architecture);
  if (!assembled)
    return assembled.takeError();
  Assembled result = std::move(assembled).value();
  for (const EntryFacts& entry : result.entries) {
    kernel.facts.push_back({"registers." + entry.symbol, entry.registers, false});
    kernel.facts.push_back({"stack_bytes." + entry.symbol, entry.stackBytes, false});
    kernel.facts.push_back({"spill_bytes." + entry.symbol, entry.spillStoreBytes + entry.spillLoadBytes, false});
  }
  return std::move(result.cubin);
}

}  // namespace vortex::target::nvidia
