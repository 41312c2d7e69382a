// Arrays that cross between Python and the runtime.
#pragma once

#include "python/foreign_array.h"
#include "python/threads.h"
#include "vortex/runtime.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace vortex::python {

namespace nb = nanobind;

/// A tensor on a device with what keeps its memory alive. Python's `vortex.Array`.
struct Array {
  Device device;
  Tensor tensor;
  nb::object owner;  ///< of foreign memory; none: the buffer itself owns it
  bool isReadOnly = false;
};

/// Raises the Python exception for an error of the runtime; `fault`, of the kernel that stopped, becomes its attribute.
[[noreturn]] void raise(const Error& error, const std::optional<Fault>& fault = std::nullopt);
template <typename T> T valueOf(Result<T> result) {
  if (!result)
    raise(result.error());
  return *std::move(result);
}
inline void check(const Result<void>& result) {
  if (!result)
    raise(result.error());
}
/// For results of operations that tell of faults of kernels.
inline void check(const Result<void>& result, const Stream& stream) {
  if (!result)
    raise(result.error(), stream.lastFault());
}

/// Spelling in messages and in Python: "f32".
DType dtypeNamed(std::string_view name);

/// The element type of a buffer's format, in the machine's byte order. Nothing: kernels have none like it.
std::optional<DType> elementTypeOf(const Py_buffer& view);

/// A tensor over memory of the device, which is kept alive by the array's owner on a GPU. The array is aligned.
Result<Tensor> tensorOver(const Device& device, const ForeignArray& from);

/// NumPy arrays and DLPack producers as tensors over the same memory. Raises TypeError for objects that are none of
/// these or hold unsupported elements, ValueError for memory of another device; `what` names the object in messages.
Array wrapObject(const Device& device, nb::handle object, const std::function<std::string()>& what);

/// The memory at an address of the device, as the CUDA array interface tells it. Strides in elements; none: row-major. Raises as wrapObject.
Array wrapMemory(const Device& device, uint64_t address, const std::string& dtype, std::vector<int64_t> extents,
                 std::optional<std::vector<int64_t>> strides, bool isReadOnly, nb::handle owner);

/// Keeps a Python object for code that does not hold the interpreter's lock.
std::shared_ptr<nb::object> keep(nb::handle object);

void bindArrays(nb::module_& module);
void bindMirrors(nb::module_& module);

}  // namespace vortex::python
