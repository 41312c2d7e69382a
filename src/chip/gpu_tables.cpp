// Sources, by the marks used below:
//  [CC]   CUDA C++ Programming Guide, appendix "Compute Capabilities", table "Technical Specifications per Compute Capability"
//  [H100] NVIDIA H100 Tensor Core GPU Architecture (white paper), tables for H100 SXM5; [H200] H200 data sheet
//  [A100] NVIDIA A100 Tensor Core GPU Architecture (white paper), A100 SXM; [A80] A100 80 GB data sheet
//  [ISA3] AMD Instinct MI300 Instruction Set Architecture reference guide
//  [CD3]  AMD CDNA 3 Architecture (white paper), MI300X column
//  [MFS]  Apple, Metal Feature Set Tables
//  [AMB]  philipturner/metal-benchmarks (measured), per-core table; Apple publishes none of these
//  [APR]  Apple product announcements (cores, bandwidth; M1 and M2 also the f32 rate)
//  [XEO]  Intel oneAPI GPU Optimization Guide, chapter "Intel Xe GPU Architecture", Xe-HPC
//  [MAX]  Intel Data Center GPU Max Series technical overview and the Max 1550 product page
#include "chip/chip.h"

namespace vortex::chip {

namespace {

constexpr uint32_t kKiB = 1024;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr double kTera = 1e12, kGiga = 1e9;

constexpr Gpu kSm90 = {
    .name = "sm_90",
    .product = "NVIDIA H200 SXM",
    .cores = 132,                       // [H100]; H200 is the same die
    .warpSize = 32,                     // [CC]
    .maxThreadsPerBlock = 1024,         // [CC]
    .threadsPerCore = 2048,             // [CC]
    .blocksPerCore = 32,                // [CC]
    .registersPerCore = 64 * kKiB,      // [CC]
    .maxRegistersPerThread = 255,       // [CC]
    .registerGranule = 8,               // CUDA Occupancy Calculator: 256 registers per warp
    .sharedBytesPerBlock = 227 * kKiB,  // [CC]
    .sharedBytesPerCore = 228 * kKiB,   // [CC]
    .sharedBanks = 32,                  // [CC], "Shared Memory": 32 banks of 32 bits
    .bankBytes = 4,
    .l2Bytes = 50 * kMiB,                  // [H100]
    .memoryBytesPerSecond = 4800 * kGiga,  // [H200]
    .clockHz = 1.98 * kGiga,               // [H100] rates divided by units; reported by the driver as maximum SM clock
    .peak = {.f64 = 33.5 * kTera,
             .f32 = 66.9 * kTera,
             .f16 = 133.8 * kTera,
             .matrixF64 = 66.9 * kTera,
             .matrixTf32 = 494.7 * kTera,
             .matrixF16 = 989.4 * kTera,
             .matrixBf16 = 989.4 * kTera,
             .matrixF8 = 1978.9 * kTera},  // [H100]
    .matrixUnit = MatrixUnit::MmaSync,
    .tanhError = 0x1.8p-17,       // measured on an H200: 2^-16.46, over all arguments
    .hasBulkTensorCopies = true,  // PTX ISA: cp.async.bulk.tensor from sm_90 on
    .hasWarpgroupMatrix = true,   // PTX ISA: wgmma on sm_90a
    .maxClusterBlocks = 8,        // [CC]: portable clusters
    // The first two fitted to 2048³, 4096³ and 8192³ in bf16 on an H200 (128×256 tiles: 39,960, 274,700 and 2,131,000 cycles); rates: [H100] f16
    // rate / cores / clock, and 32 banks of 4 bytes.
    .products = {.launchCycles = 5400,
                 .tileCycles = 1780,
                 .tileResults = 128 * 256,
                 .multiplyAdds16 = 2048,
                 .sharedBytes = 128,
                 .elementSlots = 90},
};

constexpr Gpu kSm80 = {
    .name = "sm_80",
    .product = "NVIDIA A100 SXM 80 GB",
    .cores = 108,                       // [A100]
    .warpSize = 32,                     // [CC]
    .maxThreadsPerBlock = 1024,         // [CC]
    .threadsPerCore = 2048,             // [CC]
    .blocksPerCore = 32,                // [CC]
    .registersPerCore = 64 * kKiB,      // [CC]
    .maxRegistersPerThread = 255,       // [CC]
    .registerGranule = 8,               // CUDA Occupancy Calculator
    .sharedBytesPerBlock = 163 * kKiB,  // [CC]
    .sharedBytesPerCore = 164 * kKiB,   // [CC]
    .sharedBanks = 32,                  // [CC]
    .bankBytes = 4,
    .l2Bytes = 40 * kMiB,                  // [A100]
    .memoryBytesPerSecond = 2039 * kGiga,  // [A80]
    .clockHz = 1.41 * kGiga,               // [A100]
    .peak = {.f64 = 9.7 * kTera,
             .f32 = 19.5 * kTera,
             .f16 = 78 * kTera,
             .matrixF64 = 19.5 * kTera,
             .matrixTf32 = 156 * kTera,
             .matrixF16 = 312 * kTera,
             .matrixBf16 = 312 * kTera,
             .matrixF8 = 0},  // [A100]
    .matrixUnit = MatrixUnit::MmaSync,
    .tanhError = 0x1p-11,  // PTX ISA, tanh.approx
};

constexpr Gpu kGfx942 = {
    .name = "gfx942",
    .product = "AMD Instinct MI300X",
    .cores = 304,                      // [CD3]: 8 dies of 38
    .warpSize = 64,                    // [ISA3]
    .maxThreadsPerBlock = 1024,        // [ISA3]: work-groups of at most 16 waves
    .threadsPerCore = 2048,            // [ISA3]: 4 SIMDs, 8 waves each
    .blocksPerCore = 16,               // AMD ROCm occupancy documentation: 16 work-groups per CU beyond one wave each
    .registersPerCore = 128 * kKiB,    // [CD3]: 512 KiB of vector registers per CU
    .maxRegistersPerThread = 512,      // [ISA3]: 256 vector + 256 accumulation registers
    .registerGranule = 8,              // [ISA3]: vector registers are allocated in groups of 8
    .sharedBytesPerBlock = 64 * kKiB,  // [ISA3]: LDS
    .sharedBytesPerCore = 64 * kKiB,   // [ISA3]
    .sharedBanks = 32,                 // [ISA3]: 32 banks of 4 bytes
    .bankBytes = 4,
    .l2Bytes = 4 * kMiB,                   // [CD3]: per die, not shared between dies (256 MiB Infinity Cache behind)
    .memoryBytesPerSecond = 5300 * kGiga,  // [CD3]
    .clockHz = 2.1 * kGiga,                // [CD3]
    .peak = {.f64 = 81.7 * kTera,
             .f32 = 163.4 * kTera,
             .f16 = 163.4 * kTera,
             .matrixF64 = 163.4 * kTera,
             .matrixTf32 = 653.7 * kTera,
             .matrixF16 = 1307.4 * kTera,
             .matrixBf16 = 1307.4 * kTera,
             .matrixF8 = 2614.9 * kTera},  // [CD3]
    .matrixUnit = MatrixUnit::Mfma,
};

/// Apple's cores differ between generations only in what nobody publishes; the shared part is stated once.
constexpr Gpu apple(std::string_view name, std::string_view product, uint32_t cores, double bytesPerSecond,
                    double clockHz) {
  const double f32 = cores * 128.0 * 2.0 * clockHz;  // [AMB]: 128 multiply-add lanes per core
  return {
      .name = name,
      .product = product,
      .cores = cores,                 // [APR]
      .warpSize = 32,                 // [AMB]; threadExecutionWidth on every Apple GPU so far
      .maxThreadsPerBlock = 1024,     // [MFS]
      .threadsPerCore = 3072,         // [AMB]: with few registers
      .blocksPerCore = 96,            // threadsPerCore / warpSize: no other limit is known
      .registersPerCore = 52 * kKiB,  // [AMB]: about 208 KiB (later revisions of that table; M3 allocates dynamically)
      .maxRegistersPerThread = 128,   // dougallj/applegpu: 256 half registers
      .registerGranule = 4,           // dougallj/applegpu: allocation in steps of 8 half registers
      .sharedBytesPerBlock = 32 * kKiB,  // [MFS]: maximum total threadgroup memory
      .sharedBytesPerCore = 60 * kKiB,   // [AMB]: of 64 KiB, a part is reserved
      .sharedBanks = 32,                 // [AMB]: 128 bytes per cycle as 32 words; bank rule not published
      .bankBytes = 4,
      .l2Bytes = 8 * kMiB,  // system level cache of the base chips, [AMB] and chipsandcheese measurements
      .memoryBytesPerSecond = bytesPerSecond,  // [APR]
      .clockHz = clockHz,                      // M1, M2: [APR] rate / lanes; M3, M4: reported by third-party tools
      .peak = {.f64 = 0,
               .f32 = f32,
               .f16 = f32,
               .matrixTf32 = 0,
               .matrixF16 = f32,
               .matrixBf16 = f32,
               .matrixF8 = 0},  // [AMB]: simdgroup_matrix runs on the ordinary lanes; no f64
      .matrixUnit = MatrixUnit::Simdgroup,
      .estimated = true,
  };
}

constexpr Gpu kPvc = {
    .name = "pvc",
    .product = "Intel Data Center GPU Max 1550",
    .cores = 128,                       // [MAX]: 2 stacks of 64 Xe-cores
    .warpSize = 32,                     // [XEO]: sub-groups of 16 or 32
    .maxThreadsPerBlock = 1024,         // [XEO]: maximum work-group size
    .threadsPerCore = 2048,             // [XEO]: 8 vector engines x 8 hardware threads x 32 lanes
    .blocksPerCore = 64,                // [XEO]: 64 hardware threads per Xe-core, one per work-group at least
    .registersPerCore = 128 * kKiB,     // [XEO]: 64 threads x 128 registers of 64 bytes
    .maxRegistersPerThread = 128,       // [XEO]: large register mode, 256 registers of 64 bytes over 32 lanes
    .registerGranule = 64,              // [XEO]: 128 or 256 registers of 64 bytes, nothing between
    .sharedBytesPerBlock = 128 * kKiB,  // [XEO]: maximum SLM of a work-group
    .sharedBytesPerCore = 128 * kKiB,   // [XEO]: SLM of the 512 KiB L1
    .sharedBanks = 64,                  // [XEO], "Shared Local Memory": 64 banks of 4 bytes
    .bankBytes = 4,
    .l2Bytes = 204 * kMiB,                   // [MAX]: 408 MiB over two stacks; one stack's part is near
    .memoryBytesPerSecond = 3276.8 * kGiga,  // [MAX]
    .clockHz = 1.6 * kGiga,                  // [MAX]
    .peak = {.f64 = 52.4 * kTera,
             .f32 = 52.4 * kTera,
             .f16 = 104.9 * kTera,
             .matrixTf32 = 419.4 * kTera,
             .matrixF16 = 838.9 * kTera,
             .matrixBf16 = 838.9 * kTera,
             .matrixF8 = 0},  // [XEO]: operations per cycle and Xe-core x cores x clock
    .matrixUnit = MatrixUnit::Xmx,
};

constexpr Gpu kGpus[] = {
    kSm90,
    kSm80,
    kGfx942,
    apple("apple_m1", "Apple M1, 8-core GPU", 8, 68.25 * kGiga, 1.278 * kGiga),
    apple("apple_m2", "Apple M2, 10-core GPU", 10, 100 * kGiga, 1.398 * kGiga),
    apple("apple_m3", "Apple M3, 10-core GPU", 10, 100 * kGiga, 1.398 * kGiga),
    apple("apple_m4", "Apple M4, 10-core GPU", 10, 120 * kGiga, 1.470 * kGiga),
    kPvc,
};

constexpr bool isPlausible(const Gpu& gpu) {
  return gpu.cores > 0 && gpu.threadsPerCore % gpu.warpSize == 0 && gpu.maxThreadsPerBlock % gpu.warpSize == 0 &&
         gpu.hasWarpgroupMatrix == (gpu.products.multiplyAdds16 != 0) && gpu.maxClusterBlocks > 0 &&
         gpu.sharedBytesPerBlock <= gpu.sharedBytesPerCore && gpu.memoryBytesPerSecond > 0 && gpu.peak.f32 > 0;
}
constexpr bool allPlausible() {
  for (const Gpu& gpu : kGpus)
    if (!isPlausible(gpu))
      return false;
  return true;
}
static_assert(allPlausible());

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

const Gpu* findGpu(std::string_view name) {
  for (const Gpu& gpu : kGpus)
    if (gpu.name == name)
      return &gpu;
  return nullptr;
}

}  // namespace vortex::chip
