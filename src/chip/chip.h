// Numbers of the machines Vortex compiles for. Passes and cost models branch on these numbers, never on a chip's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vortex::chip {

/// Rates of one whole chip in operations per second (a fused multiply-add counts as two), dense, at the boost clock.
/// Zero: the chip has no such unit.
struct PeakRates {
  double f64 = 0, f32 = 0;  ///< ordinary (vector) arithmetic
  double f16 = 0;           ///< ordinary arithmetic in f16
  double matrixF64 = 0, matrixTf32 = 0, matrixF16 = 0, matrixBf16 = 0,
         matrixF8 = 0;  ///< matrix units, accumulating in f32 (f64 for f64)
};

/// What products of matrices cost on one core, in its cycles, when bulk copies feed warpgroup instructions: a tile of `rows` × `columns` takes, per
/// 128 bytes of depth, the longer of rows · columns · (128 / bytes of an element) / multiplyAdds and the bytes moved in shared memory /
/// sharedBytes; then tileCycles · rows · columns / tileResults; and a launch launchCycles. Zeros: no such instructions.
struct ProductCosts {
  uint32_t launchCycles = 0;  ///< from the start of a kernel to its first product, and from its last to its end
  uint32_t tileCycles = 0, tileResults = 1;
  uint32_t multiplyAdds16 = 0;  ///< of 16-bit elements, per cycle
  uint32_t sharedBytes = 0;     ///< per cycle
  uint32_t elementSlots =
      0;  ///< issue slots of lanes that an element of an operand takes which threads bring, beside what computes it
};

/// The instructions that multiply matrices.
enum class MatrixUnit : uint8_t {
  None,
  MmaSync,    ///< NVIDIA: mma.sync on registers of a warp, from sm_80 on
  Mfma,       ///< AMD CDNA
  Simdgroup,  ///< Apple: simdgroup_matrix of 8 by 8
  Xmx,        ///< Intel
};

/// A graphics processor. "Core": NVIDIA's SM, AMD's CU, Apple's GPU core, Intel's Xe-core.
struct Gpu {
  std::string_view name;     ///< the target's name: "sm_90"
  std::string_view product;  ///< the product the whole-chip numbers (cores, rates, bandwidth) belong to
  uint32_t cores = 0;
  uint32_t warpSize = 0;  ///< threads that execute together
  uint32_t maxThreadsPerBlock = 0;
  uint32_t threadsPerCore = 0;    ///< resident at most
  uint32_t blocksPerCore = 0;     ///< resident at most
  uint32_t registersPerCore = 0;  ///< of 32 bits
  uint32_t maxRegistersPerThread = 0;
  uint32_t registerGranule = 0;      ///< registers of a warp are allocated in multiples of this many per thread
  uint32_t sharedBytesPerBlock = 0;  ///< at most, opt-in where the vendor asks for it
  uint32_t sharedBytesPerCore = 0;
  uint32_t sharedBanks = 0;
  uint32_t bankBytes = 0;
  uint64_t l2Bytes = 0;
  double memoryBytesPerSecond = 0;
  double clockHz = 0;  ///< boost
  PeakRates peak;
  MatrixUnit matrixUnit = MatrixUnit::None;
  /// Largest relative error of the hyperbolic tangent unit: measured over all arguments, or what the vendor guarantees. 1: there is none.
  double tanhError = 1;
  bool hasBulkTensorCopies = false;  ///< boxes of tensors, through maps that launches encode
  bool hasWarpgroupMatrix = false;   ///< products of 4 warps from shared memory
  uint32_t maxClusterBlocks = 1;     ///< blocks that can be made to run together and read each other's shared memory
  ProductCosts products{};
  bool estimated = false;  ///< some numbers are measured by third parties, not published by the vendor
};

/// All tables, in a fixed order.
std::span<const Gpu> gpus();
/// By name; nullptr if unknown.
const Gpu* findGpu(std::string_view name);

/// The processor this process runs on.
struct Host {
  std::string name;               ///< as the kernel reports it, e.g. "AMD EPYC 7763"; "unknown" if it does not
  std::string architecture;       ///< "x86_64", "aarch64"
  uint32_t cores = 1;             ///< physical cores this process may use
  uint32_t threads = 1;           ///< hardware threads this process may use: affinity mask and cgroup quota, at least 1
  uint64_t l1Bytes = 0;           ///< data cache of one core; 0 if unknown, as below
  uint64_t l2Bytes = 0;           ///< of one core
  uint64_t l3Bytes = 0;           ///< the one this core shares
  uint32_t l3SharingThreads = 0;  ///< hardware threads that share it
  uint32_t cacheLineBytes = 64;
  uint64_t memoryBytes = 0;  ///< physical memory, or the cgroup's limit if lower
  uint64_t pageBytes = 4096;
  uint32_t vectorBytes = 16;  ///< widest registers that the processor and the kernel support: 16, 32 or 64
  bool hasFma = false;
  bool hasF16Conversion = false;  ///< F16C, or native half floats
  std::string
      model;  ///< hash of what the kernel reports of family, model and features: code for one runs on all that are equal
};

/// Reads cpuid, /sys and /proc: about a millisecond; keep the result. `root` is put before the paths, for tests.
Host detectHost(const std::string& root = "");

}  // namespace vortex::chip
