// For tests: the tensors of a product in memory, however they lie.
#pragma once

#include "interpreter/number.h"
#include "ir/launch.h"

#include <cstring>
#include <random>
#include <vector>

namespace vortex::target::gpu::dot::testing {

struct Matrix {
  std::vector<int64_t> extents, strides;  ///< strides in elements
  std::vector<double> values;             ///< row-major
  std::vector<char> memory;               ///< with room in front, so that `skip` elements misalign it
  int64_t skip = 0;
  unsigned bytes = 4;
  char* data() {
    auto aligned = (reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256;
    return reinterpret_cast<char*>(aligned) + skip * bytes;
  }
  /// Bytes from the first element to the last one.
  size_t span() const {
    int64_t elements = 1;
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      if (extents[dim] == 0)
        return 0;
      elements += (extents[dim] - 1) * strides[dim];
    }
    return static_cast<size_t>(elements) * bytes;
  }
};

template <class Visit> void forEachElement(const Matrix& matrix, Visit visit) {
  int64_t count = 1;
  for (int64_t extent : matrix.extents)
    count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t dim = matrix.extents.size(); dim-- > 0; rest /= matrix.extents[dim])
      offset += rest % matrix.extents[dim] * matrix.strides[dim];
    visit(i, offset);
  }
}

struct Layouts {
  bool aligned = false;     ///< rows of whole 16 bytes; else one element of padding and a misaligned start
  bool onlyParams = false;  ///< nothing is known of how the result lies
  int other = -1;           ///< an argument that lies in the other way
};

inline Matrix makeMatrix(std::mt19937_64& random, std::vector<int64_t> extents, mlir::Type type, Layouts layout,
                         bool fill) {
  interpreter::Element element = *interpreter::elementOf(type);
  Matrix matrix{.extents = extents,
                .strides = {},
                .values = {},
                .memory = {},
                .skip = layout.aligned || !fill ? 0 : 1,
                .bytes = element.bytes()};
  matrix.strides.resize(extents.size());
  int64_t stride = 1;
  for (size_t dim = extents.size(); dim-- > 0;) {
    matrix.strides[dim] = stride;
    stride *= extents[dim];
    if (dim + 1 == extents.size() && fill)
      stride = layout.aligned ? (stride + 15) / 16 * 16 : stride + 1;
  }
  matrix.memory.assign(static_cast<size_t>(stride) * element.bytes() + 1024, 0x55);
  forEachElement(matrix, [&](int64_t, int64_t offset) {
    if (!fill)
      return;
    double value = double(int64_t(random() % 17)) - 8;
    matrix.values.push_back(element.isFloat() ? value / 8 : value);
    uint64_t bits = element.isFloat() ? interpreter::encode(element.format, value / 8) : uint64_t(int64_t(value));
    std::memcpy(matrix.data() + offset * element.bytes(), &bits, element.bytes());
  });
  return matrix;
}

/// Temporaries that none of these phases writes are what they stand for.
inline std::vector<Matrix*> standIns(ir::EntryOp entry, llvm::ArrayRef<ir::KernelOp> taken,
                                     std::vector<Matrix*> arguments) {
  for (auto [number, facts] : llvm::enumerate(entry.getArgs().getAsRange<mlir::DictionaryAttr>())) {
    auto original = facts.getAs<mlir::IntegerAttr>(ir::kStandsFor);
    const bool isWritten = llvm::any_of(taken, [number = number](ir::KernelOp phase) {
      return llvm::any_of(phase.getBody().getArgument(static_cast<unsigned>(number)).getUsers(),
                          [](mlir::Operation* user) { return llvm::isa<ir::TileStoreOp>(user); });
    });
    if (original && !isWritten)
      arguments[number] = arguments[static_cast<size_t>(original.getInt())];
  }
  return arguments;
}

}  // namespace vortex::target::gpu::dot::testing
