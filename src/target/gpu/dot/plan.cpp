#include "target/gpu/dot/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

namespace vortex::target::gpu::dot {

namespace {

unsigned log2Of(unsigned value) { return static_cast<unsigned>(std::countr_zero(value)); }

/// Shapes worth trying, best for large products first. What a shape costs is modelled below; the order decides between equals. Measured on
/// an H200 at 2048³, 4096³ and 8192³ in TFLOP/s: bf16 128x256x64 435, 462 and 458, 128x128x64 with two blocks 416, 431 and 427, 256x128x64
/// 414, 427 and 426; f32, of cuBLAS: 128x128x16 with two blocks 0.93, 256x128x8 0.88. At 1024³ tiles of 64x128 fill the chip: bf16 0.91, f32 1.01.
constexpr std::array kMmaPlans = {
    Plan{Unit::Mma, 128, 256, 64, 64, 64, 0, 3, 1}, Plan{Unit::Mma, 128, 128, 64, 64, 64, 0, 3, 2},
    Plan{Unit::Mma, 128, 256, 32, 64, 64, 0, 4, 1}, Plan{Unit::Mma, 128, 128, 32, 64, 64, 0, 4, 2},
    Plan{Unit::Mma, 128, 128, 64, 64, 32, 0, 3, 1}, Plan{Unit::Mma, 64, 128, 64, 32, 32, 0, 4, 2},
    Plan{Unit::Mma, 128, 64, 64, 32, 32, 0, 4, 2},  Plan{Unit::Mma, 64, 64, 64, 32, 32, 0, 4, 3},
    Plan{Unit::Mma, 32, 128, 64, 32, 32, 0, 4, 2},  Plan{Unit::Mma, 16, 128, 64, 16, 32, 0, 4, 2},
    Plan{Unit::Mma, 64, 32, 64, 16, 32, 0, 4, 2},   Plan{Unit::Mma, 64, 16, 64, 16, 16, 0, 4, 2},
    Plan{Unit::Mma, 16, 64, 64, 16, 16, 0, 4, 2},   Plan{Unit::Mma, 64, 64, 64, 32, 16, 0, 3, 2},
    Plan{Unit::Mma, 16, 256, 64, 16, 32, 0, 3, 1},  Plan{Unit::Mma, 32, 256, 64, 32, 32, 0, 3, 1},
};
constexpr std::array kFmaPlans = {
    Plan{Unit::Fma, 128, 128, 16, 32, 64, 4, 3, 2}, Plan{Unit::Fma, 256, 128, 8, 64, 64, 4, 4, 1},
    Plan{Unit::Fma, 64, 128, 16, 32, 32, 4, 3, 2},  Plan{Unit::Fma, 128, 64, 16, 32, 32, 4, 3, 2},
    Plan{Unit::Fma, 64, 64, 16, 32, 32, 4, 3, 2},   Plan{Unit::Fma, 32, 64, 16, 32, 32, 4, 3, 2},
    Plan{Unit::Fma, 64, 64, 16, 16, 32, 4, 3, 2},   Plan{Unit::Fma, 32, 128, 16, 16, 64, 4, 3, 2},
    Plan{Unit::Fma, 32, 64, 16, 16, 32, 4, 3, 2},   Plan{Unit::Fma, 32, 32, 16, 16, 32, 4, 3, 2},
    Plan{Unit::Fma, 16, 128, 16, 16, 32, 4, 3, 2},  Plan{Unit::Fma, 16, 64, 16, 16, 32, 4, 3, 2},
    Plan{Unit::Fma, 16, 256, 16, 16, 32, 4, 3, 2},
};

/// Products leave through shared memory, of which these chips have 32 KiB. Not measured: nobody had such a chip.
constexpr std::array kSimdgroupPlans = {
    Plan{Unit::Simdgroup, 64, 64, 16, 32, 32, 0, 2, 2}, Plan{Unit::Simdgroup, 64, 64, 16, 16, 32, 0, 2, 2},
    Plan{Unit::Simdgroup, 32, 64, 16, 16, 32, 0, 2, 2}, Plan{Unit::Simdgroup, 64, 32, 16, 32, 16, 0, 2, 2},
    Plan{Unit::Simdgroup, 32, 32, 16, 16, 16, 0, 2, 2}, Plan{Unit::Simdgroup, 32, 32, 16, 16, 32, 0, 2, 2},
    Plan{Unit::Simdgroup, 16, 64, 16, 16, 16, 0, 2, 2}, Plan{Unit::Simdgroup, 8, 64, 16, 8, 16, 0, 2, 2},
    Plan{Unit::Simdgroup, 8, 128, 16, 8, 16, 0, 2, 2},  Plan{Unit::Simdgroup, 8, 32, 16, 8, 16, 0, 2, 2},
    Plan{Unit::Simdgroup, 32, 32, 16, 8, 16, 0, 2, 2},  Plan{Unit::Simdgroup, 64, 64, 16, 16, 16, 0, 2, 1},
};

/// Registers a thread needs, with what was seen beside accumulators and fragments in compiled kernels.
unsigned registers(const Plan& plan, const Problem& problem) {
  constexpr unsigned kRest = 32;
  if (plan.unit == Unit::Simdgroup)  // two elements of each matrix; fragments of this part and the next
    return 2 * plan.fragments() + 4 * (plan.warpRows + plan.warpColumns) / kSimdgroupSide + kRest;
  unsigned accumulators = plan.warpRows * plan.warpColumns / 32 * std::max(1u, problem.accBytes / 4);
  unsigned perFragment = problem.elementBits == 64                     ? 4  // 64 bytes of depth instead of 32
                         : problem.elementBits == 8 && problem.isFloat ? 3  // and one set as f16
                                                                       : 2;
  unsigned fragments = plan.unit == Unit::Mma
                           ? perFragment * (plan.warpRows + plan.warpColumns) / 4
                           : 2 * (plan.threadRows() + plan.threadColumns()) * std::max(1u, problem.accBytes / 4);
  return accumulators + fragments + kRest;
}

/// The system takes 1 KiB of shared memory per block (CUDA C++ Programming Guide, compute capability 8.x and 9.0).
constexpr uint64_t kReservedShared = 1024;

bool fits(const chip::Gpu& chip, const Plan& plan, const Problem& problem) {
  unsigned bytes = (problem.elementBits + 7) / 8;
  uint64_t result = uint64_t(plan.rows) * (plan.columns + 8) * problem.accBytes;
  if (plan.threads() > chip.maxThreadsPerBlock || std::max(sharedBytes(plan, bytes), result) > chip.sharedBytesPerBlock)
    return false;
  if (plan.blocks > 1 &&
      plan.blocks * (std::max(sharedBytes(plan, bytes), result) + kReservedShared) > chip.sharedBytesPerCore)
    return false;
  unsigned available = std::min(chip.maxRegistersPerThread, chip.registersPerCore / (plan.threads() * plan.blocks));
  return registers(plan, problem) <= available + 1;
}

/// Operations per second of the chip's matrix unit on such operands; 0: it takes none.
double matrixRate(const chip::Gpu& chip, const Problem& problem) {
  if (chip.matrixUnit == chip::MatrixUnit::Simdgroup)
    return problem.isFloat && problem.accBytes == 4 && (problem.elementBits == 16 || problem.elementBits == 32)
               ? chip.peak.matrixF16
               : 0;
  if (chip.matrixUnit != chip::MatrixUnit::MmaSync)
    return 0;
  const chip::PeakRates& peak = chip.peak;
  if (!problem.isFloat) {
    // Integers run at the rate of 8-bit floats, or twice that of f16 on chips without those.
    double rate = peak.matrixF8 > 0 ? peak.matrixF8 : 2 * peak.matrixF16;
    return problem.elementBits == 8 && problem.accBytes <= 4 ? rate : 0;
  }
  switch (problem.elementBits) {
  case 64: return problem.accBytes == 8 ? peak.matrixF64 : 0;
  case 32: return problem.tf32 && problem.accBytes == 4 ? peak.matrixTf32 : 0;
  default: return problem.accBytes == 4 ? peak.matrixF16 : 0;  // 8-bit floats are multiplied as f16
  }
}

double roundedUp(int64_t extent, unsigned tile) {
  return static_cast<double>((extent + tile - 1) / tile * tile) / static_cast<double>(extent);
}

/// Modelled core cycles per useful multiply-add of a block in its main loop.
double cost(const chip::Gpu& chip, const Plan& plan, const Problem& problem) {
  double elementBytes = std::max(1.0, problem.elementBits / 8.0);
  double work = double(plan.rows) * plan.columns * plan.depth;
  // Arithmetic: the share of the peak that one warp's instruction stream reaches grows with the accumulators it has in flight.
  constexpr double kWarpShare = 0.65;  // of the matrix peak, what mma.sync reaches: measured on H100 and H200
  double rate = plan.unit != Unit::Fma  ? kWarpShare * matrixRate(chip, problem)
                : problem.accBytes == 8 ? chip.peak.f64
                                        : chip.peak.f32;
  double perCycle = std::max(1.0, rate / 2 / chip.cores / chip.clockHz);
  double inFlight = double(plan.warpRows) * plan.warpColumns / (64.0 * 64.0) * plan.warps() * plan.blocks / 8;
  double arithmetic = work / perCycle / std::min(1.0, 0.5 + 0.5 * inFlight);
  // Shared memory: 128 bytes a cycle; every warp reads its rows and columns once per step, the copy writes them once.
  double reads = double(plan.warps()) * (plan.warpRows + plan.warpColumns) * plan.depth * elementBytes;
  double writes = double(plan.rows + plan.columns) * plan.depth * elementBytes;
  double shared = (reads + writes) / 128;
  // L2 to cores: 128x128 tiles ran at 455 TFLOP/s on an H200, which is 32 bytes a cycle for each core; they were not limited by it.
  double global = writes / 40;
  constexpr double kStep = 150;  // cycles for barrier and loop: what steps of 32 and 64 differ by, measured as above
  double step = std::max({arithmetic, shared, global}) + 0.15 * (shared + global) + kStep;
  double waste = (problem.rows > 0 ? roundedUp(problem.rows, plan.rows) : 1) *
                 (problem.columns > 0 ? roundedUp(problem.columns, plan.columns) : 1);
  double alone = plan.blocks == 1 ? 1.05 : 1;  // nobody works while the first stages and the results move
  return step / work * waste * alone;
}

}  // namespace

uint64_t SharedTile::offset(uint64_t x, uint64_t k) const {
  uint64_t inner = depthInner ? k : x, outer = depthInner ? x : k;
  return swizzle.apply(outer * pitch + inner);
}

std::string Plan::str() const {
  auto size = [](unsigned a, unsigned b) { return std::to_string(a) + "x" + std::to_string(b); };
  return std::string(unit == Unit::Mma         ? "mma "
                     : unit == Unit::Simdgroup ? "sgm "
                                               : "fma ") +
         size(rows, columns) + "x" + std::to_string(depth) + " warp " + size(warpRows, warpColumns) + " lanes " +
         std::to_string(laneRows) + " stages " + std::to_string(stages) + " blocks " + std::to_string(blocks);
}

std::optional<Plan> parsePlan(const std::string& text) {
  Plan plan;
  char unit[4] = {};
  int read =
      std::sscanf(text.c_str(), "%3s %ux%ux%u warp %ux%u lanes %u stages %u blocks %u", unit, &plan.rows, &plan.columns,
                  &plan.depth, &plan.warpRows, &plan.warpColumns, &plan.laneRows, &plan.stages, &plan.blocks);
  plan.unit = std::string(unit) == "mma" ? Unit::Mma : std::string(unit) == "sgm" ? Unit::Simdgroup : Unit::Fma;
  return read == 9 && plan.str() == text ? std::optional(plan) : std::nullopt;
}

bool usesMatrixUnit(const chip::Gpu& chip, const Problem& problem) { return matrixRate(chip, problem) > 0; }

bool suits(const chip::Gpu& chip, const Plan& plan, const Problem& problem) {
  return (plan.unit == Unit::Fma || usesMatrixUnit(chip, problem)) && fits(chip, plan, problem);
}

/// The shapes for the unit that multiplies.
static std::vector<Plan> plansOf(const chip::Gpu& chip, const Problem& problem) {
  if (!usesMatrixUnit(chip, problem))
    return {kFmaPlans.begin(), kFmaPlans.end()};
  if (chip.matrixUnit == chip::MatrixUnit::Simdgroup)
    return {kSimdgroupPlans.begin(), kSimdgroupPlans.end()};
  std::vector<Plan> plans;
  for (Plan plan : kMmaPlans) {
    // Measured at 2048³ in f64: 64x64x16 with three blocks 57 TFLOP/s, 128x128x16 with one 47.
    if (problem.elementBits == 64 && plan.blocks == 1)
      continue;
    plan.depth = plan.depth * 16 / problem.elementBits;  // the same bytes
    if (plan.depth >= 2 * matrixDepth(problem.elementBits / 8))
      plans.push_back(plan);
  }
  return plans;
}

/// The same shapes in as little shared memory as their units do with: two stages of short steps, one block.
static std::vector<Plan> frugal(std::vector<Plan> plans, const Problem& problem) {
  constexpr unsigned kFmaDepth = 8;
  for (Plan& plan : plans) {
    plan.stages = 2;
    plan.blocks = 1;
    plan.depth = plan.unit == Unit::Mma   ? 2 * matrixDepth(problem.elementBits / 8)
                 : plan.unit == Unit::Fma ? std::min(plan.depth, kFmaDepth)
                                          : plan.depth;
  }
  return plans;
}

/// The cheapest plan with block tiles of at most `mostElements`.
static std::optional<Plan> cheapest(const chip::Gpu& chip, const std::vector<Plan>& plans, const Problem& problem,
                                    bool anyThreads, unsigned mostElements, unsigned leastBlocks = 1) {
  std::optional<Plan> best;
  double least = 0;
  for (const Plan& plan : plans) {
    if ((!anyThreads && problem.threads != 0 && plan.threads() != problem.threads) || !fits(chip, plan, problem) ||
        plan.rows * plan.columns > mostElements || plan.blocks < leastBlocks)
      continue;
    double modelled = cost(chip, plan, problem);
    if (!best || modelled < least) {
      best = plan;
      least = modelled;
    }
  }
  return best;
}

std::optional<Plan> choosePlan(const chip::Gpu& chip, const Problem& problem) {
  const std::vector<Plan> plans = plansOf(chip, problem);
  auto best = cheapest(chip, plans, problem, false, ~0u);
  if (!best)
    best = cheapest(chip, plans, problem, true, ~0u);
  return best ? best : cheapest(chip, frugal(plans, problem), problem, true, ~0u);
}

std::optional<Plan> chooseSmallPlan(const chip::Gpu& chip, const Problem& problem, const Plan& usual) {
  // Below this, tiles are chosen for known small extents, not to occupy the chip.
  constexpr unsigned kUsualElements = 128 * 128;
  unsigned elements = usual.rows * usual.columns;
  return elements < kUsualElements ? std::nullopt
                                   : cheapest(chip, plansOf(chip, problem), problem, true, kUsualElements / 2);
}

std::optional<Plan> chooseThinPlan(const chip::Gpu& chip, const Problem& problem) {
  if (problem.rows > 0 && problem.rows <= kThinRows)
    return std::nullopt;  // the usual plan is thin
  Problem thin = problem;
  thin.rows = kThinRows;
  std::optional<Plan> plan = cheapest(chip, plansOf(chip, thin), thin, true, ~0u,
                                      2);  // pieces of the depth are short: one block starts while another ends
  return plan && plan->rows <= kThinRows ? plan : std::nullopt;
}

FragmentLoad fragmentLoad(unsigned elementBytes, bool depthInner) {
  if (elementBytes == 8 || (elementBytes == 4 && !depthInner))
    return FragmentLoad::Elements;
  return depthInner          ? FragmentLoad::Matrix
         : elementBytes == 2 ? FragmentLoad::TransposedMatrix
                             : FragmentLoad::TransposedBytes;
}

/// Lanes 8i … 8i + 7 of ldmatrix point at the rows of matrix i. Of A: rows 0–7 and 8–15 of the first depth half, then of the second; of B:
/// both depth halves of columns 0–7, then of 8–15. layout::mmaA and mmaB say which register that is. Transposed bytes: matrices 0 and 1 hold
/// the even and odd depths of the first half, rows 2t and 2t + 1 of each go to one lane: together the four that the instruction wants there.
std::array<LanePlace, 5> fragmentLanes(FragmentLoad load, bool isA, unsigned elementBytes) {
  unsigned chunk = 16 / elementBytes;
  switch (load) {
  case FragmentLoad::Matrix:
    return {{{1, 0},
             {2, 0},
             {4, 0},
             isA ? LanePlace{8, 0} : LanePlace{0, chunk},
             isA ? LanePlace{0, chunk} : LanePlace{8, 0}}};
  case FragmentLoad::TransposedMatrix:
    return {{{0, 1}, {0, 2}, {0, 4}, isA ? LanePlace{8, 0} : LanePlace{0, 8}, isA ? LanePlace{0, 8} : LanePlace{8, 0}}};
  case FragmentLoad::TransposedBytes: return {{{0, 2}, {0, 4}, {0, 8}, {0, 1}, {0, 16}}};
  case FragmentLoad::Elements: break;
  }
  return {{{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}};
}

//===-- shared memory ----------------------------------------------------------------------------------------------===//

unsigned fmaPiece(unsigned elementBytes) { return std::min(4u, 16 / elementBytes); }

// A quarter warp reads two neighbouring row pieces and four neighbouring column pieces: each of its accesses is one pass.
unsigned fmaLaneRow(const Plan& plan, unsigned lane) {
  return plan.laneRows == 4 ? (lane & 1) | (lane >> 4 & 1) << 1 : (lane & 1) | (lane >> 3 & 3) << 1;
}
unsigned fmaLaneColumn(const Plan& plan, unsigned lane) { return plan.laneRows == 4 ? lane >> 1 & 7 : lane >> 1 & 3; }

namespace {

/// What the lanes of one access read (the row each points at, for ldmatrix), as bits of (x, k) in rows of 2^innerBits elements.
layout::LaneAccess matrixLanes(bool isA, bool depthInner, unsigned elementBytes, unsigned innerBits) {
  FragmentLoad load = fragmentLoad(elementBytes, depthInner);
  layout::LaneAccess access{{}, load == FragmentLoad::Elements ? elementBytes : 16};
  for (auto [x, k] : fragmentLanes(load, isA, elementBytes))
    access.lanes.push_back(layout::Bits(depthInner ? x : k) << innerBits | (depthInner ? k : x));
  return access;
}

layout::LaneAccess matrixLanes(bool isA, const SharedTile& tile) {
  return matrixLanes(isA, tile.depthInner, tile.elementBytes, tile.innerBits());
}

layout::LaneAccess copyLanes(unsigned elementBytes) {
  layout::LaneAccess access{{}, 16};
  for (unsigned bit = 0; bit < 5; ++bit)
    access.lanes.push_back(layout::Bits(16 / elementBytes) << bit);
  return access;
}

std::vector<uint64_t> offsets(const SharedTile& tile, const layout::LaneAccess& access) {
  std::vector<uint64_t> result;
  for (layout::Bits lane = 0; lane < 32; ++lane)
    result.push_back(tile.swizzle.apply(layout::applyColumns(access.lanes, lane)) * tile.elementBytes);
  return result;
}

unsigned wavefronts(std::span<const SharedAccess> accesses) {
  unsigned sum = 0;
  for (const SharedAccess& access : accesses)
    sum += layout::countBanks(access.lanes, access.bytes).wavefronts;
  return sum;
}

}  // namespace

std::vector<layout::LaneAccess> tileAccesses(bool isA, bool depthInner, unsigned elementBytes, unsigned rows,
                                             unsigned columns) {
  std::vector<layout::LaneAccess> result;
  for (const layout::LaneAccess& access :
       {matrixLanes(isA, depthInner, elementBytes, columns), copyLanes(elementBytes)})
    if (std::ranges::all_of(access.lanes, [&](layout::Bits bits) { return bits >> (rows + columns) == 0; }))
      result.push_back(access);
  // Lanes that reach past a row of so few columns would meet the next one's.
  for (auto [x, k] : fragmentLanes(fragmentLoad(elementBytes, depthInner), isA, elementBytes))
    if ((depthInner ? k : x) >> columns != 0)
      return {};
  return result;
}

SharedTile sharedTile(const Plan& plan, bool isA, unsigned elementBytes, bool depthInner) {
  SharedTile tile;
  tile.across = log2Of(isA ? plan.rows : plan.columns);
  tile.depth = log2Of(plan.depth);
  tile.elementBytes = elementBytes;
  if (plan.unit == Unit::Mma) {
    tile.depthInner = depthInner;
    tile.pitch = 1u << tile.innerBits();
    std::array accesses{copyLanes(tile.elementBytes), matrixLanes(isA, tile)};
    tile.swizzle =
        layout::solveXorSwizzle(tile.outerBits(), tile.innerBits(), log2Of(tile.chunk()), elementBytes, accesses)
            .swizzle;
    return tile;
  }
  if (plan.unit == Unit::Simdgroup) {  // the instruction turns tiles; rows follow each other in other banks
    tile.depthInner = depthInner;
    tile.pitch = (1u << tile.innerBits()) + tile.chunk();
    return tile;
  }
  // The fma unit reads runs along the rows (columns) at one step; padding keeps those reads one constant apart.
  tile.depthInner = false;
  unsigned best = ~0u, least = ~0u;
  for (unsigned pad = 0; pad <= 32; pad += std::max(1u, fmaPiece(elementBytes))) {
    tile.pitch = (1u << tile.across) + pad;
    auto accesses = sharedAccesses(plan, isA, tile);
    if (depthInner == false)
      std::erase_if(accesses,
                    [](const SharedAccess& access) { return access.what == std::string("transposing copy"); });
    if (unsigned cost = wavefronts(accesses); cost < least) {
      least = cost;
      best = tile.pitch;
    }
  }
  tile.pitch = best;
  return tile;
}

uint64_t sharedBytes(const Plan& plan, unsigned elementBytes) {
  // Padding of the fma unit's rows is at most this, see sharedTile.
  constexpr unsigned kMostPadding = 32;
  if (plan.unit == Unit::Simdgroup)
    return uint64_t(plan.stages) * (plan.rows + plan.columns) * (plan.depth * elementBytes + 16);
  unsigned padding = plan.unit == Unit::Fma ? 2 * kMostPadding : 0;
  return uint64_t(plan.stages) * plan.depth * (plan.rows + plan.columns + padding) * elementBytes;
}

std::vector<SharedAccess> sharedAccesses(const Plan& plan, bool isA, const SharedTile& tile) {
  std::vector<SharedAccess> result;
  if (plan.unit == Unit::Mma) {
    result.push_back({"copy", offsets(tile, copyLanes(tile.elementBytes)), 16});
    layout::LaneAccess load = matrixLanes(isA, tile);
    result.push_back({"matrix load", offsets(tile, load), load.bytes});
    return result;
  }
  unsigned piece = fmaPiece(tile.elementBytes);
  SharedAccess read{"fragment", {}, piece * tile.elementBytes}, copy{"transposing copy", {}, tile.elementBytes};
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned x = (isA ? fmaLaneRow(plan, lane) : fmaLaneColumn(plan, lane)) * piece;
    read.lanes.push_back(tile.offset(x, 0) * tile.elementBytes);
    copy.lanes.push_back(tile.offset(lane >> tile.depth, lane & ((1u << tile.depth) - 1)) * tile.elementBytes);
  }
  result.push_back(std::move(read));
  result.push_back(std::move(copy));
  return result;
}

std::vector<SharedAccess> resultAccesses(const Plan& plan, unsigned elementBytes, unsigned pitch) {
  bool mma = plan.unit == Unit::Mma;
  unsigned run = mma ? 2 : fmaPiece(elementBytes);
  SharedAccess store{"accumulators", {}, run * elementBytes};
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint64_t row = mma ? lane >> 2 : fmaLaneRow(plan, lane) * run,
             column = mma ? (lane & 3) * 2 : fmaLaneColumn(plan, lane) * run;
    store.lanes.push_back((row * pitch + column) * elementBytes);
  }
  return {store};
}

unsigned resultPitch(const Plan& plan, unsigned elementBytes) {
  if (plan.unit == Unit::Simdgroup)
    return plan.columns + 16 / elementBytes;
  unsigned best = ~0u, least = ~0u, step = std::max(1u, 16 / elementBytes);
  for (unsigned pad = 0; pad <= 32; pad += step)
    if (unsigned cost = wavefronts(resultAccesses(plan, elementBytes, plan.columns + pad)); cost < least) {
      least = cost;
      best = plan.columns + pad;
    }
  return best;
}

}  // namespace vortex::target::gpu::dot
