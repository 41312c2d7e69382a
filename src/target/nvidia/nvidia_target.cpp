#include "target/nvidia/nvidia_target.h"

#include "artifact/device_report.h"
#include "base/check.h"
#include "base/text.h"
#include "chip/chip.h"
#include "ir/size_attr.h"
#include "ir/vxnv.h"
#include "passes/phase_marks.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/hopper/schedule.h"
#include "target/gpu/phases.h"
#include "target/gpu/tiles/schedule.h"
#include "target/interface/stopwatch.h"
#include "target/nvidia/assemble.h"
#include "target/nvidia/units.h"

#include <mlir/IR/Verifier.h>

namespace vortex::target::nvidia {

using base::concat;

static const chip::Gpu& chipOf(const Target& target) {
  const chip::Gpu* chip = chip::findGpu(target.chip);
  VORTEX_CHECK(chip, "no table for %s", target.chip.c_str());
  return *chip;
}

passes::TensorSchedule tensorSchedule(const Target& target) {
  passes::TensorSchedule schedule = gpu::tiles::tensorSchedule(chipOf(target));
  gpu::hopper::addBulkTiles(schedule, chipOf(target));
  schedule.heldScanBytes = gpu::tiles::kHeldScanBytes;
  schedule.heldScanLeast = gpu::tiles::kHeldScanLeast;
  return schedule;
}

static artifact::ScalarType mapType(mlir::Type type) {
  using artifact::ScalarType;
  if (type.isBF16() || type.isF16())
    return type.isBF16() ? ScalarType::BF16 : ScalarType::F16;
  if (type.isF32() || type.isTF32())
    return ScalarType::F32;
  switch (ir::vxt::scalarBytes(type)) {
  case 1: return ScalarType::U8;
  case 2: return ScalarType::U16;
  default: return ScalarType::U32;
  }
}

static artifact::TensorMap describeMap(ir::vxnv::MapAttr map, size::Table& sizes) {
  auto sizeOf = [&](mlir::Attribute size) { return sizes.add(mlir::cast<ir::SizeAttr>(size).getExpr()); };
  artifact::TensorMap described;
  described.type = mapType(map.getElement());
  described.roundToTf32 = map.getElement().isTF32();
  described.rank = static_cast<uint32_t>(map.getBox().size());
  described.address = sizeOf(map.getAddress());
  for (uint32_t dim = 0; dim < described.rank; ++dim) {
    described.extents[dim] = sizeOf(map.getExtents()[dim]);
    described.box[dim] = static_cast<uint32_t>(map.getBox()[dim]);
    if (dim > 0)
      described.byteStrides[dim - 1] = sizeOf(map.getStrides()[dim - 1]);
  }
  described.swizzleBytes = static_cast<uint32_t>(map.getSwizzle());
  return described;
}

/// One for launches whose tensors lie well, or whose operands do. False: another phase.
static bool lowerBulkPhase(gpu::ModuleState& state, ir::KernelOp phase, artifact::Phase& described) {
  if (!gpu::hopper::usesBulkCopies(phase))
    return false;
  const bool isAnyhow = phase->hasAttr(passes::kAnyPlacement);
  if (isAnyhow)
    described.symbol += "_general";
  gpu::Lowering lowering(state, phase, described.symbol,
                         isAnyhow ? gpu::Assumptions{} : gpu::Assumptions{.unitStrides = true, .alignedRows = true});
  ir::vxt::KernelOp kernel = lowering.run();
  if (!kernel)
    return true;
  size::Table& sizes = state.kernel.sizes;
  for (auto map : kernel->getAttrOfType<mlir::ArrayAttr>(ir::vxnv::kMaps).getAsRange<ir::vxnv::MapAttr>())
    described.maps.push_back(describeMap(map, sizes));
  described.sharedBytes = sizes.add(gpu::sharedBytesOf(kernel));
  described.hardwareThreads = sizes.add(kernel.getThreads().getExpr());
  return true;
}

static Result<void> checkParameters(const artifact::Kernel& kernel) {
  uint64_t bytes = artifact::parameterBytes(kernel.slotCount, {});
  for (const artifact::Phase& phase : kernel.phases)
    bytes = std::max(bytes, artifact::parameterBytes(kernel.slotCount, phase));
  if (bytes > artifact::kMaxParameterBytes)
    return base::Error{concat("`", kernel.name, "` takes ", bytes, " bytes of launch parameters, GPUs take ",
                              artifact::kMaxParameterBytes)};
  return {};
}

static void expandBulkProducts(mlir::ModuleOp lowered, std::string* text) {
  bool hasRoles = lowered.walk([](ir::vxnv::RolesOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
  if (!hasRoles)
    return;
  if (text) {
    llvm::raw_string_ostream out(*text);
    lowered->print(out);
  }
  gpu::hopper::expandRoles(lowered);
  VORTEX_CHECK(mlir::succeeded(mlir::verify(lowered)), "the expanded module is not well-formed");
}

Result<LoweredKernel> lowerKernel(mlir::ModuleOp module, const Target& target, const CompileTexts& texts,
                                  CompileTimes* times) {
  Stopwatch watch;
  LoweredKernel lowered{{}, mlir::ModuleOp::create(module.getLoc())};
  artifact::Kernel& kernel = lowered.kernel;
  kernel.target = target.chip;
  module.getContext()->getOrLoadDialect<ir::vxnv::VxnvDialect>();
  gpu::ModuleState state{*lowered.entries, chipOf(target), kernel, gpu::hopper::makeTileLowering};
  if (auto done = gpu::lowerPhases(state, module, lowerBulkPhase); !done)
    return done.takeError();
  if (auto fits = checkParameters(kernel); !fits)
    return fits.takeError();
  expandBulkProducts(*lowered.entries, texts.vxnv);
  if (texts.vxt) {
    llvm::raw_string_ostream out(*texts.vxt);
    lowered.entries->print(out);
  }
  for (ir::vxt::KernelOp entry : lowered.entries->getOps<ir::vxt::KernelOp>())
    kernel.absent.push_back(entry.getSymName().str());
  if (times)
    times->lower = watch.lap();
  return lowered;
}

Result<void> addCode(LoweredKernel& lowered, const std::function<bool(const std::string& symbol)>& wanted,
                     const Target& target, const CompileTexts& texts, CompileTimes* times) {
  artifact::Kernel& kernel = lowered.kernel;
  std::vector<ir::vxt::KernelOp> chosen;
  for (ir::vxt::KernelOp entry : lowered.entries->getOps<ir::vxt::KernelOp>())
    if (std::string symbol = entry.getSymName().str(); wanted(symbol)) {
      chosen.push_back(entry);
      std::erase(kernel.absent, symbol);
    }
  UnitTimes unitTimes;
  auto ptx = generatePtx(chosen, kernel.slotCount, target, {texts.llvm, texts.optimizedLlvm}, unitTimes);
  if (!ptx)
    return ptx.takeError();
  kernel.code.assign(ptx->begin(), ptx->end());
  kernel.facts.push_back({"ptx_bytes", int64_t(kernel.code.size()), false});
  if (times) {
    times->emit = unitTimes.emit;
    times->optimize = unitTimes.optimize;
    times->codegen = unitTimes.codegen;
  }
  return {};
}

Result<std::string> compileEntry(mlir::ModuleOp entries, const std::string& symbol, uint32_t slotCount,
                                 const Target& target) {
  auto entry = entries.lookupSymbol<ir::vxt::KernelOp>(symbol);
  if (!entry)
    return base::Error{concat("there is no entry point '", symbol, "'")};
  UnitTimes times;
  return generatePtx(entry, slotCount, target, {}, times);
}

Result<std::vector<uint8_t>> assembleKernel(artifact::Kernel& kernel, const Target& target, artifact::Cache* cache) {
  const std::optional<std::string>& ptxas = findPtxas();
  if (!ptxas)
    return std::vector<uint8_t>();
  auto assembled = assemble(*ptxas, std::string(kernel.code.begin(), kernel.code.end()), target.architecture, cache);
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
