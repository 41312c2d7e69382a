#include "target/gpu/hopper/schedule.h"

#include "artifact/device_report.h"
#include "artifact/tensor_map.h"
#include "target/gpu/hopper/configuration.h"

#include <cmath>

namespace vortex::target::gpu::hopper {

namespace {

/// Coordinates of copies are signed 32-bit numbers.
constexpr int64_t kCoordinateEnd = int64_t(1) << 31;

size::Expr both(size::Expr a, size::Expr b) { return size::make(size::Op::And, a, b); }

/// The launches in which a tensor map of all of a tensor can be made, and used.
size::Expr reach(const passes::Placement& tensor) {
  size::Arena& arena = tensor.address.arena();
  auto rank = static_cast<uint32_t>(tensor.extents.size());
  if (rank == 0 || rank > artifact::kMaxMapRank)
    return arena.constant(0);
  artifact::TensorMapOf<size::Expr> map{.rank = rank, .address = tensor.address};
  size::Expr all = size::make(size::Op::Equal, tensor.strides.back(), 1);
  for (unsigned dim = 0; dim < rank; ++dim) {
    unsigned place = rank - 1 - dim;
    map.extents[place] = tensor.extents[dim];
    all = both(all, size::make(size::Op::Less, map.extents[place], kCoordinateEnd));
    if (place > 0)
      map.byteStrides[place - 1] = size::make(size::Op::Mul, tensor.strides[dim], tensor.elementBytes);
  }
  return both(all, artifact::isEncodable(map));
}

}  // namespace

void addBulkTiles(passes::TensorSchedule& schedule, const chip::Gpu& chip) {
  // Thinner products are split along the depth or run in thin blocks. Measured on an H200 (docs/performance.md): fewer rows than 32 gain nothing.
  constexpr int64_t kRows = 32, kColumns = 16, kSide = 64;
  // Of kStoredResults results that threads store: measured with the tiles' steps (docs/performance.md).
  constexpr int64_t kStoredCycles = 6000, kStoredResults = 128 * 256;
  const chip::ProductCosts& costs = chip.products;
  for (const Configuration& each : configurations(chip)) {
    const int64_t results = int64_t(each.rows) * each.columns;
    schedule.bulkTiles.push_back({.rows = each.rows,
                                  .columns = each.columns,
                                  .plan = each.str(),
                                  .stepBytes = kDepthBytes,
                                  .stepCycles = each.stepCycles,
                                  .partCycles = each.partCycles,
                                  .tileCycles = costs.tileCycles * results / costs.tileResults,
                                  .startCycles = costs.launchCycles,
                                  .anyhowStepCycles = each.anyhowCycles,
                                  .anyhowTileCycles = kStoredCycles * results / kStoredResults,
                                  .isForTileCode = each.isForTileCode()});
  }
  for (const StreamConfiguration& each : streamConfigurations(chip))
    schedule.streamTiles.push_back({.rows = each.rows(),
                                    .step = each.keys,
                                    .width = each.width,
                                    .duration = each.duration,
                                    .plan = each.str(),
                                    .ofPieces = each.ofPieces});
  const double lanes = chip.peak.f32 / 2 / chip.cores / chip.clockHz;
  schedule.operandCosts = {.launchCycles = costs.launchCycles,
                           .bytesPerCycle = std::lround(chip.memoryBytesPerSecond / chip.clockHz),
                           .elementSlots = costs.elementSlots,
                           .slotsPerCycle = std::lround(lanes)};
  schedule.bulkReach = reach;
  schedule.bulkRows = kRows;
  schedule.bulkColumns = kColumns;
  schedule.bulkSide = kSide;
  // Maps follow the slots in the parameter; temporaries that later products add need some too.
  constexpr uint64_t kMaps = 8, kLaterSlots = 100;
  schedule.bulkSlots = static_cast<uint32_t>(
      (artifact::kMaxParameterBytes - kMaps * artifact::kTensorMapBytes) / sizeof(uint64_t) - kLaterSlots);
}

}  // namespace vortex::target::gpu::hopper
