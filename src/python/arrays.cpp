#include "python/arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

namespace vortex::python {

namespace {

constexpr DType kTypes[] = {DType::Bool,   DType::U8,  DType::U16,  DType::U32, DType::U64,
                            DType::I8,     DType::I16, DType::I32,  DType::I64, DType::F8E4M3,
                            DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64};

std::optional<nb::dlpack::dtype> toDlpack(DType type) {
  const auto make = [&](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * byteSize(type)), 1};
  };
  switch (type) {
  case DType::Bool: return make(nb::dlpack::dtype_code::Bool);
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::U64: return make(nb::dlpack::dtype_code::UInt);
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64: return make(nb::dlpack::dtype_code::Int);
  case DType::F16:
  case DType::F32:
  case DType::F64: return make(nb::dlpack::dtype_code::Float);
  case DType::BF16: return make(nb::dlpack::dtype_code::Bfloat);
  case DType::F8E4M3:
  case DType::F8E5M2: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<DType> fromDlpack(nb::dlpack::dtype wanted) {
  for (const DType type : kTypes)
    if (const auto known = toDlpack(type); known && *known == wanted)
      return type;
  return std::nullopt;
}

bool isCuda(const Device& device) { return std::string_view(device.name()).starts_with("cuda"); }

Tensor tensorOver(const Device& device, DType type, const nb::ndarray<nb::ro>& from, bool isReadOnly,
                  const std::function<std::string()>& what) {
  Tensor tensor;
  tensor.type = type;
  // The memory that the strides reach: from the lowest to the highest element.
  int64_t lowest = 0, highest = 0;
  bool isEmpty = false;
  for (size_t i = 0; i < from.ndim(); ++i) {
    const auto extent = static_cast<int64_t>(from.shape(i));
    const int64_t stride = from.stride(i);
    tensor.extents.push_back(extent);
    tensor.strides.push_back(stride);
    isEmpty = isEmpty || extent == 0;
    (stride < 0 ? lowest : highest) += stride * (extent - 1);
  }
  const int64_t size = byteSize(type);
  const int64_t elements = isEmpty ? 0 : highest - lowest + 1;
  auto* first = static_cast<uint8_t*>(const_cast<void*>(from.data())) + (isEmpty ? 0 : lowest * size);
  if (reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(size) != 0)
    throw nb::value_error((what() + " is not aligned to its elements").c_str());
  const Tensor whole = valueOf(device.wrapBytes(type, {elements}, elements ? first : nullptr,
                                                static_cast<uint64_t>(elements * size), isReadOnly));
  tensor.buffer = whole.buffer;
  tensor.byteOffset = isEmpty ? 0 : static_cast<uint64_t>(-lowest * size);
  return tensor;
}

Array matrixOf(const Array& self, int64_t offset, int64_t stride) {
  if (self.tensor.rank() != 1 || !self.tensor.isContiguous() || offset < 0 || stride <= 0)
    throw nb::value_error("a matrix is made of a contiguous array of one dimension");
  Array matrix = self;
  const int64_t rest = self.tensor.extents[0] - offset;
  matrix.tensor.extents = {rest > 0 ? rest / stride : 0, stride};
  matrix.tensor.strides = {stride, 1};
  if (rest > 0)
    matrix.tensor.byteOffset += static_cast<uint64_t>(offset) * byteSize(self.tensor.type);
  return matrix;
}

}  // namespace

DType dtypeNamed(std::string_view wanted) {
  for (const DType type : kTypes)
    if (wanted == name(type))
      return type;
  throw nb::type_error(("there is no element type '" + std::string(wanted) + "'").c_str());
}

void raise(const Error& error) {
  if (error.message.find("out of memory") != std::string::npos) {
    PyErr_SetString(PyExc_MemoryError, error.message.c_str());
    throw nb::python_error();
  }
  const nb::object type = nb::module_::import_("vortex._errors").attr("RuntimeFailure");
  PyErr_SetString(type.ptr(), error.message.c_str());
  throw nb::python_error();
}

Array wrapObject(const Device& device, nb::handle object, const std::function<std::string()>& what) {
  Array array{device, {}, nb::borrow(object), false};
  nb::ndarray<nb::ro> view;
  if (nb::ndarray<> writable; nb::try_cast(object, writable)) {
    view = nb::ndarray<nb::ro>(writable);
  } else if (nb::try_cast(object, view)) {
    array.isReadOnly = true;
  } else {
    const std::string type =
        nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
    throw nb::type_error((what() + " is a " + type + ", not an array of a supported element type").c_str());
  }
  const std::optional<DType> type = fromDlpack(view.dtype());
  if (!type)
    throw nb::type_error((what() + " has elements of a type that kernels do not take").c_str());
  const bool onHost =
      view.device_type() == nb::device::cpu::value || view.device_type() == nb::device::cuda_host::value;
  if (!onHost || isCuda(device))
    throw nb::value_error(
        (what() +
         (onHost ? " is in host memory, the kernel runs on '" : " is in the memory of a GPU, the kernel runs on '") +
         device.name() + "'")
            .c_str());
  array.tensor = tensorOver(device, *type, view, array.isReadOnly, what);
  return array;
}

nb::ndarray<> exportArray(Array& array, nb::handle self) {
  const std::optional<nb::dlpack::dtype> type = toDlpack(array.tensor.type);
  if (!type)
    throw nb::type_error("f8 elements have no type in other libraries");
  std::vector<size_t> shape(array.tensor.extents.begin(), array.tensor.extents.end());
  auto* data = reinterpret_cast<uint8_t*>(array.tensor.buffer.address()) + array.tensor.byteOffset;
  const bool cuda = isCuda(array.device);
  const int index = cuda ? std::atoi(array.device.name().c_str() + 5) : 0;
  return nb::ndarray<>(data, shape.size(), shape.data(), self, array.tensor.strides.data(), *type,
                       cuda ? nb::device::cuda::value : nb::device::cpu::value, index);
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
           "rows of `stride` elements over the memory of a one-dimensional array, from element `offset` on")
      .def("_export",
           [](nb::handle self) {
             return nb::cast(nb::ndarray<nb::array_api>(exportArray(nb::cast<Array&>(self), self)));
           })
      .def("_view",
           [](nb::handle self) {
             Array& array = nb::cast<Array&>(self);
             if (!array.tensor.buffer.host() && array.tensor.elements())
               throw nb::value_error("the array is not in host memory");
             const nb::ndarray<> view = exportArray(array, self);
             return array.isReadOnly ? nb::cast(nb::ndarray<nb::numpy, nb::ro>(view))
                                     : nb::cast(nb::ndarray<nb::numpy>(view));
           })
      .def("_read",
           [](const Array& self, Stream& stream, const nb::ndarray<nb::c_contig>& into) {
             nb::gil_scoped_release release;
             check(stream.read(self.tensor, into.data(), into.nbytes()));
           })
      .def("_write", [](const Array& self, Stream& stream, const nb::ndarray<nb::ro, nb::c_contig>& from) {
        check(stream.write(self.tensor, from.data(), from.nbytes()));
      });
}

}  // namespace vortex::python
