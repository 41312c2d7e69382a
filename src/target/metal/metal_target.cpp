#include "target/metal/metal_target.h"

#include "artifact/device_report.h"
#include "artifact/metal_interface.h"
#include "base/check.h"
#include "base/text.h"
#include "chip/chip.h"
#include "ir/location.h"
#include "ir/simplify.h"
#include "target/gpu/async_copies.h"
#include "target/gpu/end_threads.h"
#include "target/gpu/phases.h"
#include "target/gpu/tiles/schedule.h"
#include "target/gpu/tiles/tiles.h"
#include "target/metal/reuse_arithmetic.h"
#include "target/metal/split_products.h"
#include "target/metal/writer.h"

#include <map>
#include <mlir/IR/Verifier.h>
#include <set>

namespace vortex::target::metal {

static const char* const kTarget = "metal3.1";

std::vector<std::string> targetNames() { return {kTarget}; }
bool isTarget(const std::string& name) { return name == kTarget; }

const char* chipName() { return "apple_m1"; }

static const chip::Gpu& smallest() {
  const chip::Gpu* chip = chip::findGpu(chipName());
  VORTEX_CHECK(chip, "no table for Apple's GPUs");
  return *chip;
}

passes::TensorSchedule tensorSchedule() { return gpu::tiles::tensorSchedule(smallest()); }

/// First slots of the tensors that any entry point of a phase accesses: which one a launch takes does not matter to who encodes it.
static Result<std::vector<uint32_t>> tensorsOf(mlir::ModuleOp lowered, const artifact::Phase& phase,
                                               const std::string& kernel) {
  std::set<uint32_t> slots;
  auto add = [&](const std::string& symbol) {
    auto entry = lowered.lookupSymbol<ir::vxt::KernelOp>(symbol);
    VORTEX_CHECK(entry, "no code of %s", symbol.c_str());
    for (mlir::BlockArgument argument : entry.getBody().getArguments())
      if (mlir::isa<ir::vxt::PtrType>(argument.getType()) && !argument.use_empty())
        slots.insert(argument.getArgNumber());
  };
  add(phase.symbol);
  for (const artifact::Version& version : phase.versions)
    add(version.symbol);
  if (slots.size() > artifact::kMetalSlotsBuffer)
    return base::Error{base::concat(ir::describeLocation(lowered.lookupSymbol(phase.symbol)), ": `", kernel,
                                    "` takes more than ", artifact::kMetalSlotsBuffer, " tensors in one launch, ",
                                    slots.size(), "; Metal kernels take 31 buffers, two of them the compiler's")};
  return std::vector<uint32_t>(slots.begin(), slots.end());
}

Result<artifact::Kernel> compileKernel(mlir::ModuleOp module, const std::string& target, std::string* vxt) {
  for (ir::KernelOp phase : module.getOps<ir::KernelOp>())
    if (phase->hasAttr(ir::kCooperativeAttr))
      return base::Error{base::concat(ir::describeLocation(phase), ": `", phase.getSymName().str(),
                                      "` is cooperative, but the threadgroups of a Metal dispatch need not run at the "
                                      "same time")};
  // The other half is for the operands.
  splitProducts(module, smallest().sharedBytesPerBlock / 2);
  artifact::Kernel kernel;
  kernel.target = target;
  mlir::OwningOpRef<mlir::ModuleOp> lowered = mlir::ModuleOp::create(module.getLoc());
  gpu::ModuleState state{*lowered, smallest(), kernel, gpu::tiles::makeTileLowering};
  auto none = [](gpu::ModuleState&, ir::KernelOp, artifact::Phase&) { return false; };
  if (auto done = gpu::lowerPhases(state, module, none); !done)
    return done.takeError();
  for (ir::vxt::KernelOp each : lowered->getOps<ir::vxt::KernelOp>()) {
    gpu::expandAsyncCopies(each);
    gpu::endThreads(each);
    reuseArithmetic(each);
  }
  // No compiler cleans the text before it is printed and parsed: loops without rounds and branches on constants would be in it.
  ir::simplify(*lowered);
  for (ir::vxt::KernelOp each : lowered->getOps<ir::vxt::KernelOp>())
    reuseArithmetic(each);
  VORTEX_CHECK(mlir::succeeded(mlir::verify(*lowered)), "the module to be printed is not well-formed");
  if (vxt) {
    llvm::raw_string_ostream out(*vxt);
    lowered->print(out);
  }
  // The slots are one buffer of constants.
  if (uint64_t bytes = uint64_t{kernel.slotCount} * sizeof(uint64_t); bytes > artifact::kMaxParameterBytes)
    return base::Error{base::concat("`", kernel.name, "` takes ", bytes,
                                    " bytes of launch parameters, those of temporaries among them; Metal takes ",
                                    artifact::kMaxParameterBytes, " bytes of constants")};
  std::map<std::string, std::vector<uint32_t>> tensors;
  for (const artifact::Phase& phase : kernel.phases) {
    auto taken = tensorsOf(*lowered, phase, kernel.name);
    if (!taken)
      return taken.takeError();
    for (const artifact::Version& version : phase.versions)
      tensors[version.symbol] = *taken;
    tensors[phase.symbol] = *std::move(taken);
  }
  auto text = writeMetal(*lowered, [&](llvm::StringRef symbol) -> const auto& { return tensors.at(symbol.str()); });
  if (!text)
    return text.takeError();
  kernel.code.assign(text->begin(), text->end());
  kernel.facts.push_back({"metal_bytes", static_cast<int64_t>(kernel.code.size()), false});
  return kernel;
}

}  // namespace vortex::target::metal
