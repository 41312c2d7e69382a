#include "target/cpu/gemm/plan.h"

#include <algorithm>

#include "base/check.h"
#include "target/cpu/gemm/scratch.h"

namespace vortex::target::cpu::gemm {
namespace {

uint64_t roundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }
uint64_t roundDown(uint64_t value, uint64_t step) { return std::max(value / step * step, step); }

}  // namespace

ScratchLayout packedLayout(const Plan& plan) {
  ScratchLayout layout;
  layout.operands = roundUp(uint64_t(plan.mr) * plan.nr() * plan.elementBytes, 64);
  layout.columns = layout.operands + roundUp(uint64_t(plan.mc) * plan.kc * plan.elementBytes, 64);
  layout.partialSums = layout.columns;
  layout.end = layout.partialSums + roundUp(uint64_t(plan.mc) * plan.nc * plan.elementBytes, 64);
  return layout;
}

ScratchLayout localLayout(const Plan& plan) {
  ScratchLayout layout;
  layout.operands = roundUp(uint64_t(plan.mr) * plan.nr() * plan.elementBytes, 64);
  layout.columns = layout.operands + roundUp(uint64_t(plan.directMc) * plan.kc * plan.elementBytes, 64);
  layout.partialSums = layout.columns + roundUp(kLocalPanels * plan.nr() * plan.kc * plan.elementBytes, 64);
  layout.end = layout.partialSums + roundUp(uint64_t(plan.directMc) * plan.directNc * plan.elementBytes, 64);
  return layout;
}

ScratchLayout directLayout(const Plan& plan) {
  ScratchLayout layout;
  layout.operands = roundUp(4 * 8 * plan.lanes * plan.elementBytes, 64);  // a tile of sums
  layout.columns = layout.operands + roundUp(uint64_t(plan.directMc) * plan.directKc * plan.elementBytes, 64);
  layout.partialSums = layout.columns + roundUp(plan.directColumns * plan.directKc * plan.elementBytes, 64);
  layout.end = layout.partialSums + roundUp(uint64_t(plan.directMc) * plan.directNc * plan.elementBytes, 64);
  return layout;
}

uint64_t Plan::scratchBytes(bool accumulates) const {
  uint64_t bytes = 0;
  for (const ScratchLayout& layout : {packedLayout(*this), localLayout(*this), directLayout(*this)})
    bytes = std::max(bytes, accumulates ? layout.end : layout.partialSums);
  return bytes;
}

Plan choosePlan(const VectorFeatures& features, const CacheSizes& caches, uint32_t elementBytes,
                const KnownExtents& extents) {
  VORTEX_CHECK(elementBytes == 4 || elementBytes == 8, "compute types are f32 and f64");
  Plan plan;
  plan.elementBytes = elementBytes;
  plan.lanes = features.lanes(elementBytes);
  plan.nrVectors = 2;
  // mr·2 accumulators, 2 vectors of B and a broadcast element of A (and a product where nothing fuses) fill the
  // register file.
  plan.mr = features.vectorRegisters >= 32 ? 14 : features.fma ? 6 : 4;
  // One panel of B stays in three quarters of L1 while the panels of A pass by (384 beats 256 by 3 % on Zen 3); half of
  // L2 holds the packed block of A.
  plan.kc = static_cast<uint32_t>(
      std::clamp<uint64_t>(roundDown(caches.l1Bytes * 3 / 4 / (plan.nr() * elementBytes), 8), 256, 512));
  if (extents.k && *extents.k > plan.kc) {  // slices of equal depth
    const uint64_t slices = (*extents.k + plan.kc - 1) / plan.kc;
    plan.kc = static_cast<uint32_t>(roundUp((*extents.k + slices - 1) / slices, plan.unroll));
  }
  const uint64_t rows = std::clamp<uint64_t>(caches.l2Bytes / 2 / (uint64_t(plan.kc) * elementBytes), 2 * plan.mr, 192);
  plan.mc = static_cast<uint32_t>(roundDown(rows, plan.mr));
  plan.nc = static_cast<uint32_t>(roundUp(1024, plan.nr()));
  // Fewer blocks than this leave workers idle or the last ones waiting for one straggler.
  constexpr uint64_t kWantedBlocks = 16;
  if (extents.m && extents.n) {
    while (plan.rowBlocks(*extents.m) * plan.columnBlocks(*extents.n) < kWantedBlocks && plan.nc > 512)
      plan.nc = static_cast<uint32_t>(roundUp(plan.nc / 2, plan.nr()));
    while (plan.rowBlocks(*extents.m) * plan.columnBlocks(*extents.n) < kWantedBlocks && plan.mc > 8 * plan.mr)
      plan.mc = static_cast<uint32_t>(roundUp(plan.mc / 2, plan.mr));
  }
  plan.directMc = static_cast<uint32_t>(roundUp(128, plan.mr));
  plan.directNc = static_cast<uint32_t>(roundUp(512, plan.nr()));
  plan.directRows = plan.directMc;
  plan.directColumns = plan.lanes / 2;
  if (extents.m && extents.n) {
    const uint64_t rows = (*extents.m + plan.directMc - 1) / plan.directMc;
    while (rows * ((*extents.n + plan.directNc - 1) / plan.directNc) < kWantedBlocks && plan.directNc > 128)
      plan.directNc = static_cast<uint32_t>(roundUp(plan.directNc / 2, plan.nr()));
  }
  return plan;
}

}  // namespace vortex::target::cpu::gemm
