#include "target/nvidia/nvidia_target.h"

#include "artifact/device_report.h"
#include "base/check.h"
#include "base/text.h"
#include "chip/chip.h"
#include "ir/location.h"
#include "ir/size_attr.h"
#include "ir/vx.h"
#include "ir/vxnv.h"
#include "target/gpu/hopper/expand_roles.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/hopper/schedule.h"
#include "target/gpu/lowering.h"
#include "target/gpu/tiles/schedule.h"
#include "target/gpu/tiles/tiles.h"
#include "target/gpu/versions.h"
#include "target/interface/describe.h"
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

passes::TensorSchedule tensorSchedule(const Target& target, mlir::ModuleOp module) {
  passes::TensorSchedule schedule = gpu::tiles::tensorSchedule(chipOf(target), module);
  gpu::hopper::addBulkTiles(schedule, chipOf(target));
  return schedule;
}

static bool hasTiles(ir::KernelOp phase) {
  return phase
      .walk([](mlir::Operation* op) {
        return mlir::isa<ir::TileLoadOp, ir::TileStoreOp>(op) ? mlir::WalkResult::interrupt()
                                                              : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

static size::Expr both(size::Expr a, size::Expr b) { return a && b ? size::make(size::Op::And, a, b) : a ? a : b; }

static size::Expr isMultipleOf16(size::Expr value) {
  return size::make(size::Op::Equal, size::make(size::Op::Mod, value, 16), 0);
}

/// Where the launch's tensors are as `assumptions` says; null: always.
static size::Expr conditionFor(ir::KernelOp phase, const artifact::Kernel& kernel, gpu::Assumptions assumptions) {
  size::Arena& arena = ir::sizeArena(phase.getContext());
  size::Expr all;
  for (auto [i, type] : llvm::enumerate(phase.getArgumentTypes())) {
    auto number = static_cast<unsigned>(i);
    auto view = mlir::dyn_cast<ir::ViewType>(type);
    bool isRead = llvm::any_of(phase.getBody().getArgument(number).getUsers(),
                               [](mlir::Operation* user) { return !mlir::isa<ir::DimOp>(user); });
    if (!view || view.getRank() == 0 || !isRead || gpu::hasAlignedRows(phase, number))
      continue;
    auto rank = static_cast<unsigned>(view.getRank());
    int64_t pitch = innermostStride(kernel, number);
    if (i < kernel.params.size())  // the launch allocates the others
      all = both(all, size::make(size::Op::Equal, arena.stride(number, rank - 1), pitch));
    if (!assumptions.alignedRows || pitch != 1)
      continue;
    all = both(all, isMultipleOf16(arena.address(number)));
    for (unsigned dim = 0; dim + 1 < rank; ++dim)
      all = both(all, isMultipleOf16(size::make(size::Op::Mul, arena.stride(number, dim), view.elementBytes())));
  }
  return all;
}

static size::Expr sharedBytesOf(ir::vxt::KernelOp kernel) {
  size::Expr fixed = ir::sizeArena(kernel.getContext()).constant(kernel.getSharedBytes());
  auto tail = kernel->getAttrOfType<ir::SizeAttr>(gpu::Lowering::kSharedTail);
  return tail ? size::make(size::Op::Add, fixed, tail.getExpr()) : fixed;
}

static artifact::ScalarType mapType(mlir::Type type) {
  using artifact::ScalarType;
  if (type.isBF16() || type.isF16())
    return type.isBF16() ? ScalarType::BF16 : ScalarType::F16;
  if (type.isF32())
    return ScalarType::F32;
  return type.getIntOrFloatBitWidth() == 16 ? ScalarType::U16 : ScalarType::U32;
}

static artifact::TensorMap describeMap(ir::vxnv::MapAttr map, size::Table& sizes) {
  auto sizeOf = [&](mlir::Attribute size) { return sizes.add(mlir::cast<ir::SizeAttr>(size).getExpr()); };
  artifact::TensorMap described;
  described.type = mapType(map.getElement());
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

/// A product of bulk copies: its grid is zero where the launch's tensors do not lie well.
static void lowerBulkProduct(gpu::ModuleState& state, ir::KernelOp phase, artifact::Phase& described) {
  gpu::Lowering lowering(state, phase, described.symbol, {.unitStrides = true, .alignedRows = true});
  ir::vxt::KernelOp kernel = lowering.run();
  if (!kernel)
    return;
  size::Table& sizes = state.kernel.sizes;
  for (auto map : kernel->getAttrOfType<mlir::ArrayAttr>(ir::vxnv::kMaps).getAsRange<ir::vxnv::MapAttr>())
    described.maps.push_back(describeMap(map, sizes));
  described.sharedBytes = sizes.add(sharedBytesOf(kernel));
  described.hardwareThreads = sizes.add(kernel.getThreads().getExpr());
}

/// The phase's versions: for tensors that lie well, split by what a launch's extents decide, and for tensors that lie anyhow.
static void lowerPhase(gpu::ModuleState& state, ir::KernelOp phase, artifact::Phase& described) {
  if (gpu::hopper::isProduct(phase))
    return lowerBulkProduct(state, phase, described);
  gpu::Assumptions fast{.unitStrides = true, .alignedRows = hasTiles(phase)};
  size::Expr fastWhen = conditionFor(phase, state.kernel, fast), sharedBytes;
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
    size::Expr bytes = sharedBytesOf(kernel);
    sharedBytes = sharedBytes ? size::make(size::Op::Max, sharedBytes, bytes) : bytes;
    described.sharedBytes = state.kernel.sizes.add(sharedBytes);
    described.hardwareThreads = state.kernel.sizes.add(kernel.getThreads().getExpr());
    return kernel;
  };
  ir::vxt::KernelOp kernel = lower(described.symbol, fast);
  if (!kernel)
    return;
  auto argumentOf = [&](unsigned slot) {
    return ir::argumentOfSlot(phase.getContext(), phase.getArgumentTypes(), slot);
  };
  auto describe = [&](ir::vxt::KernelOp lowered, size::Expr when) {
    for (gpu::KernelVersion& version : gpu::splitVersions(lowered, argumentOf)) {
      described.symbol = version.kernel.getSymName().str();
      if (size::Expr holds = both(when, version.when))
        described.versions.push_back({state.kernel.sizes.add(holds), described.symbol});
    }
  };
  ir::vxt::KernelOp general;
  if (fastWhen && !(general = lower(described.symbol + "_general", {})))
    return;
  describe(kernel, fastWhen);
  if (general)
    describe(general, {});
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
  module.getContext()->getOrLoadDialect<ir::vxnv::VxnvDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> lowered = mlir::ModuleOp::create(module.getLoc());
  gpu::ModuleState state{*lowered, chipOf(target), kernel, gpu::hopper::makeTileLowering};
  for (ir::KernelOp phase : module.getOps<ir::KernelOp>()) {
    artifact::Phase described = describePhase(phase, kernel);
    lowerPhase(state, phase, described);
    if (!state.error.empty())
      return base::Error{state.error};
    kernel.phases.push_back(std::move(described));
    describeGuards(phase, kernel);
  }
  describeSteps(module, kernel);
  if (auto fits = checkParameters(kernel); !fits)
    return fits.takeError();
  if (auto place = ir::fileLocation(entry.getLoc()))
    kernel.faults.push_back({artifact::kDeviceStopped, "the device stopped", place.getFilename().str(), place.getLine(),
                             place.getColumn()});
  VORTEX_CHECK(mlir::succeeded(mlir::verify(*lowered)), "the lowered module is not well-formed");
  expandBulkProducts(*lowered, texts.vxnv);
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
