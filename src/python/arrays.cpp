#include "python/arrays.h"

#include "python/dlpack_exchange.h"
#include "python/exceptions.h"
#include "python/torch_tensors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include <string>

namespace vortex::python {

namespace {

bool isCuda(const Device& device) { return std::string_view(device.name()).starts_with("cuda"); }

Tensor tensorOf(const Device& device, const ForeignArray& from, const std::function<std::string()>& what) {
  if (!isAligned(from))
    throw nb::value_error((what() + " is not aligned to its elements").c_str());
  return valueOf(tensorOver(device, from));
}

Array matrixOf(const Array& self, int64_t offset, int64_t stride, int64_t most) {
  if (self.tensor.rank() != 1 || !self.tensor.isContiguous() || offset < 0 || stride <= 0 || most < 0)
    throw nb::value_error("a matrix is made of a contiguous array of one dimension");
  Array matrix = self;
  const int64_t rest = self.tensor.extents[0] - offset;
  matrix.tensor.extents = {rest > 0 ? std::min(rest / stride, most) : 0, stride};
  matrix.tensor.strides = {stride, 1};
  if (rest > 0)
    matrix.tensor.byteOffset += static_cast<uint64_t>(offset) * byteSize(self.tensor.type);
  return matrix;
}

}  // namespace

Result<Tensor> tensorOver(const Device& device, const ForeignArray& from) {
  Tensor tensor;
  tensor.type = from.type;
  tensor.extents = from.extents;
  tensor.strides = from.strides;
  // The memory that the strides reach: from the lowest to the highest element.
  int64_t lowest = 0, highest = 0;
  bool isEmpty = false;
  for (size_t i = 0; i < from.extents.size(); ++i) {
    isEmpty = isEmpty || from.extents[i] == 0;
    (from.strides[i] < 0 ? lowest : highest) += from.strides[i] * (from.extents[i] - 1);
  }
  const int64_t size = byteSize(from.type);
  const auto bytes = isEmpty ? 0 : static_cast<uint64_t>((highest - lowest + 1) * size);
  const uint64_t first = isEmpty ? 0 : from.address + static_cast<uint64_t>(lowest * size);
  if (isCuda(device)) {
    Result<Buffer> buffer = device.wrapDevice(first, bytes, keep(from.owner), from.isReadOnly);
    if (!buffer)
      return buffer.takeError();
    tensor.buffer = *std::move(buffer);
  } else {
    const Result<Tensor> whole =
        device.wrapBytes(from.type, {static_cast<int64_t>(bytes) / size},
                         reinterpret_cast<void*>(static_cast<uintptr_t>(first)), bytes, from.isReadOnly);
    if (!whole)
      return whole;
    tensor.buffer = whole->buffer;
  }
  tensor.byteOffset = isEmpty ? 0 : static_cast<uint64_t>(-lowest * size);
  return tensor;
}

DType dtypeNamed(std::string_view wanted) {
  for (const DType type : kElementTypes)
    if (wanted == name(type))
      return type;
  throw nb::type_error(("there is no element type '" + std::string(wanted) + "'").c_str());
}

std::shared_ptr<nb::object> keep(nb::handle object) {
  return {new nb::object(nb::borrow(object)), [](nb::object* kept) {
            if (Py_IsInitialized() && !Leaving::isOver())  // else Python frees nothing any more
              locked([&] { delete kept; });
          }};
}

void raise(const Error& error, const std::optional<Fault>& fault) {
  raiseAs("RuntimeFailure", error, error.kind == ErrorKind::Fault ? fault : std::nullopt);
}

std::optional<DType> elementTypeOf(const Py_buffer& view) {
  if (!view.format || std::string_view(view.format).size() != 1)
    return std::nullopt;
  const auto ofSize = [&](DType one, DType two, DType four, DType eight) -> std::optional<DType> {
    switch (view.itemsize) {
    case 1: return one;
    case 2: return two;
    case 4: return four;
    case 8: return eight;
    default: return std::nullopt;
    }
  };
  switch (view.format[0]) {
  case 'e': return DType::F16;
  case 'f': return DType::F32;
  case 'd': return DType::F64;
  case '?': return DType::Bool;
  case 'b':
  case 'h':
  case 'i':
  case 'l':
  case 'q': return ofSize(DType::I8, DType::I16, DType::I32, DType::I64);
  case 'B':
  case 'H':
  case 'I':
  case 'L':
  case 'Q': return ofSize(DType::U8, DType::U16, DType::U32, DType::U64);
  default: return std::nullopt;
  }
}

/// An array of NumPy's own type by the buffer protocol, which costs less than DLPack. Nothing: it is none, or has elements of another kind.
static std::optional<ForeignArray> numpyArray(nb::handle object) {
  if (std::string_view(Py_TYPE(object.ptr())->tp_name) != "numpy.ndarray")
    return std::nullopt;
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::optional<DType> type = elementTypeOf(view);
  std::optional<ForeignArray> from;
  if (type)
    from = ForeignArray{reinterpret_cast<uintptr_t>(view.buf), *type, {}, {}, view.readonly != 0, object};
  for (int i = 0; from && i < view.ndim; ++i) {
    from->extents.push_back(view.shape[i]);
    from->strides.push_back(view.strides[i] / view.itemsize);
    if (view.strides[i] % view.itemsize != 0)
      from.reset();
  }
  PyBuffer_Release(&view);  // the array's owner keeps the memory
  return from;
}

/// Why the array's library does not lend it, in its own words. Empty: it says nothing.
static std::string refusalOf(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__"))
    return "";
  try {
    object.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    const std::string said = nb::str(error.value()).c_str();
    return said.substr(0, said.find('\n'));
  }
  return "";
}

/// Arrays that nobody may write, as those of JAX. In host memory, as NumPy has it, what comes in a form of DLPack that cannot say so counts as such.
static bool isForReading(nb::handle object, bool isOnGpu) {
  if (isTorchTensor(object) || !nb::hasattr(object, "__dlpack__"))
    return false;
  try {
    if (!isOnGpu)
      return PyCapsule_IsValid(object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0)).ptr(),
                               "dltensor");
    const nb::object interface = nb::getattr(object, "__cuda_array_interface__", nb::none());
    return !interface.is_none() && nb::cast<bool>(interface["data"][1]);
  } catch (const nb::python_error&) {
    return !isOnGpu;  // it knows no versions
  }
}

/// By DLPack or the buffer protocol.
static ForeignArray exported(nb::handle object, const std::function<std::string()>& what) {
  ForeignArray from{0, DType::F32, {}, {}, false, object};
  // Views of PyTorch's that are negated when they are read: DLPack has no word for them.
  if (const nb::object isNegated = nb::getattr(object, "is_neg", nb::none());
      !isNegated.is_none() && nb::cast<bool>(isNegated()))
    throw nb::value_error((what() + " is a negated view of its memory; resolve_neg() makes a tensor of it").c_str());
  nb::ndarray<nb::ro> view;
  if (nb::ndarray<> writable; nb::try_cast(object, writable)) {
    view = nb::ndarray<nb::ro>(writable);
  } else if (nb::try_cast(object, view)) {
    from.isReadOnly = true;
  } else {
    const std::string type =
        nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
    if (type == "ndarray" && !nb::cast<bool>(object.attr("flags").attr("aligned")))  // fields of packed structs
      throw nb::value_error((what() + " is not aligned to its elements").c_str());
    if (const nb::object dtype = nb::getattr(object, "dtype", nb::none()); type == "ndarray" && !dtype.is_none())
      throw nb::type_error(
          (what() + " has elements of type " + nb::str(nb::handle(dtype)).c_str() + ", which kernels do not take")
              .c_str());
    const std::string refusal = refusalOf(object);
    throw nb::type_error((what() + " is a " + type + ", not an array of a supported element type" +
                          (refusal.empty() ? "" : ": " + refusal))
                             .c_str());
  }
  const std::optional<DType> type = fromDlpack(view.dtype());
  if (!type)
    throw nb::type_error((what() + " has elements of a type that kernels do not take").c_str());
  from.address = reinterpret_cast<uintptr_t>(view.data());
  from.type = *type;
  if (view.device_type() == nb::device::cuda::value)
    from.gpu = view.device_id();
  else if (view.device_type() != nb::device::cpu::value && view.device_type() != nb::device::cuda_host::value)
    throw nb::value_error((what() + " is in memory that is neither the host's nor a GPU's").c_str());
  for (size_t i = 0; i < view.ndim(); ++i) {
    from.extents.push_back(static_cast<int64_t>(view.shape(i)));
    from.strides.push_back(view.stride(i));
  }
  from.isReadOnly = from.isReadOnly || isForReading(object, from.gpu >= 0);
  return from;
}

Array wrapObject(const Device& device, nb::handle object, const std::function<std::string()>& what) {
  std::optional<ForeignArray> from = numpyArray(object);
  if (!from)
    from = torchTensor(object);
  if (!from)
    from = exported(object, what);
  const bool onHost = from->gpu < 0;
  if (isCuda(device) == onHost)
    throw nb::value_error(
        (what() +
         (onHost ? " is in host memory, the kernel runs on '" : " is in the memory of a GPU, the kernel runs on '") +
         device.name() + "'")
            .c_str());
  return {device, tensorOf(device, *from, what), nb::borrow(object), from->isReadOnly};
}

Array wrapMemory(const Device& device, uint64_t address, const std::string& dtype, std::vector<int64_t> extents,
                 std::optional<std::vector<int64_t>> strides, bool isReadOnly, nb::handle owner) {
  if (strides && strides->size() != extents.size())
    throw nb::value_error("the array has as many strides as extents");
  if (!strides) {
    strides.emplace(extents.size(), 1);
    for (size_t i = extents.size(); i-- > 1;)
      (*strides)[i - 1] = (*strides)[i] * extents[i];
  }
  const ForeignArray from{address, dtypeNamed(dtype), std::move(extents), *std::move(strides), isReadOnly, owner};
  return {device, tensorOf(device, from, [] { return std::string("the array"); }), nb::borrow(owner), isReadOnly};
}

/// A view of the array's memory that keeps `self` alive, as the library of `Kind` sees it.
template <typename... Kind> static nb::object exportArray(nb::handle self) {
  const Array& array = nb::cast<Array&>(self);
  std::vector<size_t> shape(array.tensor.extents.begin(), array.tensor.extents.end());
  auto* data = reinterpret_cast<uint8_t*>(array.tensor.buffer.address()) + array.tensor.byteOffset;
  const bool cuda = isCuda(array.device);
  const int index = cuda ? std::atoi(array.device.name().c_str() + 5) : 0;
  const int device = cuda ? nb::device::cuda::value : nb::device::cpu::value;
  if (array.isReadOnly)
    return nb::cast(nb::ndarray<Kind..., nb::ro>(data, shape.size(), shape.data(), self, array.tensor.strides.data(),
                                                 toDlpack(array.tensor.type), device, index));
  return nb::cast(nb::ndarray<Kind...>(data, shape.size(), shape.data(), self, array.tensor.strides.data(),
                                       toDlpack(array.tensor.type), device, index));
}

void bindArrays(nb::module_& module) {
  nb::class_<Array>(module, "Array", "A strided array in the memory of a device.")
      .def_prop_ro("dtype", [](const Array& self) { return name(self.tensor.type); })
      .def_prop_ro("shape", [](const Array& self) { return nb::tuple(nb::cast(self.tensor.extents)); })
      .def_prop_ro(
          "strides", [](const Array& self) { return nb::tuple(nb::cast(self.tensor.strides)); }, "in elements")
      .def_prop_ro("nbytes", [](const Array& self) { return self.tensor.elements() * byteSize(self.tensor.type); })
      .def_prop_ro("address", [](const Array& self) { return self.tensor.buffer.address() + self.tensor.byteOffset; })
      .def_prop_ro("device", [](const Array& self) { return self.device; })
      .def_prop_ro("read_only", [](const Array& self) { return self.isReadOnly; })
      .def_prop_ro("contiguous", [](const Array& self) { return self.tensor.isContiguous(); })
      .def("reshape",
           [](const Array& self, std::vector<int64_t> shape) {
             return Array{self.device, valueOf(self.tensor.reshaped(std::move(shape))), self.owner, self.isReadOnly};
           })
      .def("matrix", &matrixOf,
           "rows of `stride` elements over the memory of a one-dimensional array, from element `offset` on, `most` at "
           "most")
      .def("_export", [](nb::handle self) { return exportArray<nb::array_api>(self); })
      .def("_view",
           [](nb::handle self) {
             const Array& array = nb::cast<Array&>(self);
             if (!array.tensor.buffer.host() && array.tensor.elements())
               throw nb::value_error("the array is not in host memory");
             if (array.tensor.type == DType::F8E4M3 || array.tensor.type == DType::F8E5M2)
               throw nb::type_error("NumPy has no type for f8 elements");
             return exportArray<nb::numpy>(self);
           })
      .def("_read",
           [](const Array& self, Stream& stream, const nb::ndarray<nb::c_contig>& into) {
             check(unlocked([&] { return stream.read(self.tensor, into.data(), into.nbytes()); }), stream);
           })
      .def("_write", [](const Array& self, Stream& stream, const nb::ndarray<nb::ro, nb::c_contig>& from) {
        check(unlocked([&] { return stream.write(self.tensor, from.data(), from.nbytes()); }), stream);
      });
}

}  // namespace vortex::python
