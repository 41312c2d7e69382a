// Tensors of PyTorch by their own methods, which take a tenth of the time of DLPack. PyTorch is recognised where the program has imported it,
// never imported. All of this holds the interpreter's lock.
#pragma once

#include "vortex/tensor.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

namespace vortex::python {

/// Memory of another library: where its first element lies, and how its elements do.
struct ForeignArray {
  uint64_t address;
  DType type;
  std::vector<int64_t> extents, strides;  ///< strides in elements
  bool isReadOnly;
  nanobind::handle owner;
  int gpu = -1;  ///< index of the GPU whose memory it is; -1: host memory
};

/// Nothing: no plain tensor of PyTorch (of a subclass, sparse, complex, negated lazily). Kernels are no part of automatic differentiation:
/// whether the tensor needs a gradient is not asked.
std::optional<ForeignArray> torchTensor(nanobind::handle object);

/// The CUDA stream that PyTorch uses now. Nothing: this PyTorch does not tell.
std::optional<uint64_t> torchStream(int gpu);

}  // namespace vortex::python
