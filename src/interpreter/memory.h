// Memory as the interpreter sees it: allocations, views on them, and which elements were written.
#pragma once

#include "interpreter/number.h"

#include "llvm/ADT/SmallVector.h"

#include <cstring>
#include <vector>

namespace vortex::interpreter {

/// One allocation, or the storage behind a tensor argument.
struct Buffer {
  uint8_t* base = nullptr;
  unsigned elementBytes = 1;
  ir::Space space = ir::Space::Global;
  std::string name;
  std::vector<uint8_t> storage;
  /// One byte per element, 0 until written. Empty: not tracked (parameters, or no checking).
  std::vector<uint8_t> written;
  int64_t unitsOfElement = 1;  ///< how many elements are one of the source's, in which messages count
  int64_t perThread = 0;       ///< elements of one thread's array, for buffers that hold those of several; else 0

  static constexpr uint8_t kPoison = 0xff;
  /// Own storage, poisoned.
  void allocate(size_t elements, bool track);
  /// For own storage only.
  bool holds(int64_t element) const { return element >= 0 && (size_t(element) + 1) * elementBytes <= storage.size(); }
  uint8_t* address(int64_t element) { return base + element * int64_t(elementBytes); }
  uint64_t load(int64_t element) {
    uint64_t bits = 0;
    std::memcpy(&bits, address(element), elementBytes);
    return bits;
  }
  void store(int64_t element, uint64_t bits) {
    std::memcpy(address(element), &bits, elementBytes);
    if (!written.empty())
      written[size_t(element)] = 1;
  }
};

/// A value of type !vx.view.
struct View {
  Buffer* buffer = nullptr;
  int64_t offset = 0;  ///< of element [0, …, 0], before the swizzle
  llvm::SmallVector<int64_t, 4> extents, strides;
  int64_t threadStride = 0;  ///< local views allocated outside vx.threads: elements per thread
  ir::SwizzleAttr swizzle;

  int64_t element(int64_t flat, int64_t thread) const {
    return (swizzle ? swizzle.apply(flat) : flat) + threadStride * thread;
  }
};

/// The value of a register: cells of a scalar (one, or one per lane) or tile, or views (one, or one per lane).
struct Value {
  std::vector<uint64_t> cells;
  llvm::SmallVector<int64_t, 4> shape;  ///< of a tile
  bool unwritten = false;               ///< a tile that was declared without a value; in check mode
  std::vector<View> views;

  uint64_t cell(size_t lane) const { return cells.size() == 1 ? cells[0] : cells[lane]; }
  const View& view(size_t lane) const { return views.size() == 1 ? views[0] : views[lane]; }
};

llvm::SmallVector<int64_t, 4> rowMajorStrides(llvm::ArrayRef<int64_t> extents);
llvm::SmallVector<int64_t, 4> columnMajorStrides(llvm::ArrayRef<int64_t> extents);
inline size_t elementCount(llvm::ArrayRef<int64_t> extents) {
  size_t count = 1;
  for (int64_t extent : extents)
    count *= size_t(std::max<int64_t>(extent, 0));
  return count;
}

}  // namespace vortex::interpreter
