#include "python/torch_tensors.h"
#include "python/dlpack_exchange.h"

#include <string_view>
#include <unordered_map>

namespace vortex::python {

namespace nb = nanobind;

namespace {

nb::object imported(const char* module) {
  nb::object found = nb::steal(PyImport_GetModule(nb::str(module).ptr()));
  PyErr_Clear();
  return found;
}

/// What is used of PyTorch. Lives as long as the process: modules are never unloaded.
struct Torch {
  PyObject *tensor, *strided;
  nb::object rawStream;
  std::unordered_map<PyObject*, DType> types;
  const DlpackExchange* exchange;  ///< null: this PyTorch has none (before 2.10)

  explicit Torch(nb::handle module) {
    tensor = nb::object(module.attr("Tensor")).release().ptr();
    strided = nb::object(nb::getattr(module, "strided", nb::none())).release().ptr();
    rawStream = nb::getattr(nb::getattr(module, "_C", nb::none()), "_cuda_getCurrentRawStream", nb::none());
    exchange = DlpackExchange::of(tensor);
    constexpr std::pair<const char*, DType> kNames[] = {{"bool", DType::Bool},         {"uint8", DType::U8},
                                                        {"uint16", DType::U16},        {"uint32", DType::U32},
                                                        {"uint64", DType::U64},        {"int8", DType::I8},
                                                        {"int16", DType::I16},         {"int32", DType::I32},
                                                        {"int64", DType::I64},         {"float16", DType::F16},
                                                        {"bfloat16", DType::BF16},     {"float32", DType::F32},
                                                        {"float64", DType::F64},       {"float8_e4m3fn", DType::F8E4M3},
                                                        {"float8_e5m2", DType::F8E5M2}};
    for (const auto& [name, type] : kNames)
      if (nb::object known = nb::getattr(module, name, nb::none()); !known.is_none())
        types.emplace(known.release().ptr(), type);
  }

  /// Null: the program has not imported it.
  static const Torch* get() {
    static const Torch* torch = nullptr;
    if (!torch)
      if (const nb::object module = imported("torch"); module && nb::hasattr(module, "Tensor"))
        torch = new Torch(module);
    return torch;
  }
};

/// Attributes and methods by interned names.
class Member {
public:
  explicit Member(const char* name) : name_(PyUnicode_InternFromString(name)) {}
  nb::object of(nb::handle object) const { return nb::steal(PyObject_GetAttr(object.ptr(), name_)); }
  nb::object call(nb::handle object) const { return nb::steal(PyObject_CallMethodNoArgs(object.ptr(), name_)); }

private:
  PyObject* name_;
};

struct Members {
  Member address{"data_ptr"}, dtype{"dtype"}, shape{"shape"}, strides{"stride"}, gpu{"get_device"}, isCuda{"is_cuda"},
      isCpu{"is_cpu"}, layout{"layout"}, isNegated{"is_neg"};
  static const Members& get() {
    static const Members* members = nullptr;
    if (!members)
      members = new Members;
    return *members;
  }
};

bool integers(nb::handle tuple, std::vector<int64_t>& into) {
  if (!tuple || !PyTuple_Check(tuple.ptr()))
    return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple.ptr());
  into.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    into.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple.ptr(), i)));
    if (into.back() == -1 && PyErr_Occurred())
      return false;
  }
  return true;
}

bool isTrue(const nb::object& value) { return value.ptr() == Py_True; }

bool read(const Torch& torch, nb::handle tensor, ForeignArray& array) {
  const Members& members = Members::get();
  const nb::object dtype = members.dtype.of(tensor);
  const auto type = torch.types.find(dtype.ptr());
  if (type == torch.types.end() || members.layout.of(tensor).ptr() != torch.strided ||
      members.isNegated.call(tensor).ptr() != Py_False)
    return false;
  const bool onGpu = isTrue(members.isCuda.of(tensor));
  if (!onGpu && !isTrue(members.isCpu.of(tensor)))
    return false;
  array.type = type->second;
  if (onGpu) {
    const nb::object gpu = members.gpu.call(tensor);
    array.gpu = gpu ? static_cast<int>(PyLong_AsLong(gpu.ptr())) : -1;
  }
  const nb::object address = members.address.call(tensor);
  if (!address || !integers(members.shape.of(tensor), array.extents) ||
      !integers(members.strides.call(tensor), array.strides))
    return false;
  array.address = PyLong_AsUnsignedLongLong(address.ptr());
  return array.extents.size() == array.strides.size() && !PyErr_Occurred();
}

}  // namespace

std::optional<ForeignArray> torchTensor(nb::handle object) {
  if (std::string_view(Py_TYPE(object.ptr())->tp_name) != "Tensor")
    return std::nullopt;
  const Torch* torch = Torch::get();
  if (!torch || reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) != torch->tensor)
    return std::nullopt;
  ForeignArray array{0, DType::F32, {}, {}, false, object};
  // DLPack has no word for "negated lazily".
  const bool isRead = (torch->exchange && Members::get().isNegated.call(object).ptr() == Py_False &&
                       torch->exchange->read(object, array)) ||
                      read(*torch, object, array);
  PyErr_Clear();
  return isRead ? std::optional(std::move(array)) : std::nullopt;
}

bool isTorchTensor(nb::handle object) {
  const Torch* torch = Torch::get();
  return torch && PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(torch->tensor));
}

std::optional<uint64_t> torchStream(int gpu) {
  const Torch* torch = Torch::get();
  if (!torch)
    return std::nullopt;
  if (torch->exchange)
    return torch->exchange->cudaStream(gpu);
  if (torch->rawStream.is_none())
    return std::nullopt;
  const nb::object handle = nb::steal(PyObject_CallFunction(torch->rawStream.ptr(), "i", gpu));
  if (!handle) {
    PyErr_Clear();
    return std::nullopt;
  }
  return PyLong_AsUnsignedLongLong(handle.ptr());
}

}  // namespace vortex::python
