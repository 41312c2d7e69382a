// Tensors of PyTorch by DLPack's functions for C, else by their own methods, which take a tenth of the time of `__dlpack__`. PyTorch is
// recognised where the program has imported it, never imported. All of this holds the interpreter's lock.
#pragma once

#include "python/foreign_array.h"

#include <optional>

namespace vortex::python {

/// Nothing: no plain tensor of PyTorch (of a subclass, sparse, complex, negated lazily). Kernels are no part of automatic differentiation:
/// whether the tensor needs a gradient is not asked.
std::optional<ForeignArray> torchTensor(nanobind::handle object);

/// Also of a subclass, as parameters of modules are.
bool isTorchTensor(nanobind::handle object);

/// The CUDA stream that PyTorch uses now. Nothing: this PyTorch does not tell.
std::optional<uint64_t> torchStream(int gpu);

}  // namespace vortex::python
