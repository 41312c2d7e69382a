#include "target/metal/metal_target.h"

#include "artifact/device_report.h"
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

#include <mlir/IR/Verifier.h>

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
    return base::Error{base::concat("`", kernel.name, "` takes ", bytes, " bytes of launch parameters, Metal takes ",
                                    artifact::kMaxParameterBytes, " bytes of constants")};
  auto text = writeMetal(*lowered);
  if (!text)
    return text.takeError();
  kernel.code.assign(text->begin(), text->end());
  kernel.facts.push_back({"metal_bytes", static_cast<int64_t>(kernel.code.size()), false});
  return kernel;
}

}  // namespace vortex::target::metal
