// Pointers to offsets. Every pointer of a kernel stands for a place in one of a few memories: a buffer, threadgroup memory, a local array. It becomes
// an i64 offset into that memory, counted in units that divide every access and every step, and, where several memories may be meant, an i32
// that chooses. Accesses become calls that the importer knows:
//   T    __vx_load.T(i32 memory, i64 offset, i1 mask)                T    __vx_atomic.KIND.T(T, i32 memory, i64 offset, i1 mask)
//   void __vx_store.T(T, i32 memory, i64 offset, i1 mask)            T    __vx_cas.T(T expected, T desired, i32 memory, i64 offset, i1 mask)
//   T    __vx_atomic_load.T(i32, i64, i1)                            void __vx_atomic_store.T(T, i32, i64, i1)
#pragma once

#include "msl/front/compile.h"

#include <llvm/IR/Function.h>

namespace vortex::msl::flatten {

struct Memory {
  enum class Kind : uint8_t { Buffer, Threadgroup, Shared, Local };
  Kind kind = Kind::Buffer;
  std::string name;
  uint32_t index = 0;  ///< Buffer, Threadgroup: of the parameter
  uint64_t bytes = 0;  ///< Shared, Local
  unsigned unitBytes = 1;
  llvm::Type* elem = nullptr;  ///< scalar of unitBytes
  bool isWritten = false;
  uint64_t elementBytes = 0;  ///< of what the source counts in; 0: not known
};

/// Rewrites the entry. Problems: pointers kept in memory, made from integers, or returned by what is no pointer arithmetic.
std::vector<Memory> lowerPointers(front::Unit& unit, const Kernel& kernel);

}  // namespace vortex::msl::flatten
