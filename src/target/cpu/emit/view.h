// Views and tiles as LLVM values. Views never flow through control flow, so these are compile-time structs.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Value.h>
#include <mlir/IR/BuiltinTypes.h>

namespace vortex::target::cpu::emit {

/// A window on memory. Element (i, j, …) lies at pointer[i * strides[0] + j * strides[1] + …].
struct View {
  mlir::Type elementType;
  llvm::Value* pointer = nullptr;           ///< of element (0, …), block-uniform
  llvm::SmallVector<llvm::Value*> extents;  ///< i64
  llvm::SmallVector<llvm::Value*>
      strides;                ///< i64, in elements; constants where known (the fast version has innermost constant 1)
  bool perThread = false;     ///< a local view made outside a region: pointer[offset * threads + linear id]
  bool blockPrivate = false;  ///< shared or local: only this block's worker touches it
  unsigned rank() const { return extents.size(); }
};

/// A tile in memory, row-major and contiguous; 64-byte aligned, with room for one more cache line after the last element
/// (so that full vectors may be read and written past the end).
struct TileBuffer {
  mlir::Type elementType;
  llvm::Value* pointer = nullptr;
  llvm::SmallVector<llvm::Value*> extents;  ///< i64, constants where the type says so
};

/// Outputs larger than this do not stay in the caches, so storing them around the caches saves reading them first. Whoever runs the blocks
/// fences such stores.
constexpr uint64_t kStreamBytes = 24 << 20;

}  // namespace vortex::target::cpu::emit
