#include "target/gpu/tiles/schedule.h"

#include "target/gpu/dot/product.h"

namespace vortex::target::gpu::tiles {

passes::TensorSchedule tensorSchedule(const chip::Gpu& chip) {
  passes::TensorSchedule schedule;
  schedule.elementsPerBlock = 8192;  // 256 threads, 32 elements in flight each
  schedule.squareSide = 64;
  schedule.squareBytes = chip.sharedBytesPerBlock;
  schedule.minInner = 8;  // what memory delivers at once
  schedule.smallElementsPerBlock = 2048;
  schedule.smallTensor = int64_t(chip.cores) * 2 * schedule.elementsPerBlock;
  schedule.reductionBlocks = int64_t(chip.cores) * 8;  // all cores full with blocks of 256 threads
  schedule.streamedBytesPerBlock = 4096;               // one access of 16 bytes per thread
  schedule.sweptElementsPerBlock = 65536;
  schedule.keptElementsPerBlock = kMostKeptElements;
  schedule.fusedOnly = true;
  schedule.sumsVectors = true;
  schedule.productRules = [&chip](llvm::ArrayRef<ir::DotOp> products) { return dot::productRules(chip, products); };
  return schedule;
}

}  // namespace vortex::target::gpu::tiles
