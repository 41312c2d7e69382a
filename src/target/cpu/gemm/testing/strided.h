// For tests and benchmarks: complete kernels around the building blocks, for strided matrices in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "target/cpu/codegen/testing/load.h"
#include "target/cpu/gemm/gemm.h"

namespace vortex::target::cpu::gemm {

enum class Element { F32, F64, F16, BF16 };

struct Configuration {
  Element element = Element::F32;  ///< of A and B; the compute type is f64 for F64, else f32; C has the compute type
  Contiguous a = Contiguous::Column, b = Contiguous::Column;
  bool silu = false;              ///< A goes through x·sigmoid(x) first
  bool initial = false;           ///< C starts from itself
  bool scale = false;             ///< epilogue: 2·x + column number
  bool partialInScratch = false;  ///< else C holds partial sums (only without `initial`)
  KnownExtents known = {};        ///< also compiled in as constants
};

/// Strides in elements; the contiguous one is 1.
struct Arguments {
  const void *a, *b;
  void *c, *packed;
  uint64_t m, n, k, aRow, aColumn, bRow, bColumn, cRow;
};

struct Kernels {
  Plan plan;
  std::unique_ptr<codegen::LoadedCode> code;
  void (*packB)(const Arguments*, uint64_t panelBegin, uint64_t panelEnd);
  void (*packedBlock)(const Arguments*, void* scratch, uint64_t row, uint64_t rows, uint64_t column, uint64_t columns);
  void (*directBlock)(const Arguments*, void* scratch, uint64_t row, uint64_t rows, uint64_t column, uint64_t columns);

  /// The whole product on this thread, the way the plan says; scratch and packed storage are its own.
  void run(Arguments arguments) const;
};

/// `assembly`, when not null, receives the text of the optimised module.
Kernels compile(const codegen::Target& target, const Plan& plan, const Configuration& configuration,
                std::string* assembly = nullptr);

/// Memory aligned to 64 bytes.
struct AlignedBytes {
  explicit AlignedBytes(uint64_t size) : storage(size + 64) {}
  void* data() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(storage.data()) + 63) & ~uintptr_t(63)); }
  std::vector<uint8_t> storage;
};

}  // namespace vortex::target::cpu::gemm
