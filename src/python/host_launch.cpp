// The ordinary launch of a metile kernel on host memory, for callers that launch the same kernel again and again: NumPy arrays, numbers and a
// grid straight from the call. Whatever is not as it was when the kernel was specialised is left to the general way in Python, which is
// ten times slower and gives the reasons.
#include "python/launch.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>

namespace vortex::python {

namespace {

/// An argument of the caller: a number, or an array whose memory begins at that of argument `first`.
struct Given {
  bool isArray = false, isFloat = false;
  DType type = DType::F32;
  size_t first = 0;
};

/// A parameter of the kernel.
struct Slot {
  size_t argument;
  bool isWritten;
};

class Views {
public:
  explicit Views(size_t count) { views_.reserve(count); }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;
  ~Views() {
    for (Py_buffer& view : views_)
      PyBuffer_Release(&view);
  }
  /// Null: the object has no such memory.
  const Py_buffer* add(nb::handle object, bool isWritten) {
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (isWritten ? PyBUF_WRITABLE : 0))) {
      PyErr_Clear();
      return nullptr;
    }
    return &views_.emplace_back(view);
  }

private:
  std::vector<Py_buffer> views_;
};

bool holds(const Py_buffer& view, DType type) {
  if (!view.format || view.format[0] == 0 || view.format[1] != 0)
    return false;
  switch (view.format[0]) {
  case 'f': return type == DType::F32;
  case 'e': return type == DType::F16;
  case 'i': return type == DType::I32;
  case 'I': return type == DType::U32;
  case 'B': return type == DType::U8;
  case '?': return type == DType::Bool;
  default: return false;
  }
}

bool isI32(long long value, int overflow) {
  return !overflow && value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
}

class HostLaunch {
public:
  HostLaunch(const BoundKernel& kernel, Device device, const std::vector<std::pair<std::string, size_t>>& given,
             const std::vector<std::pair<size_t, bool>>& slots)
      : kernel_(kernel.kernel), device_(std::move(device)), array_(nb::module_::import_("numpy").attr("ndarray")) {
    for (const auto& [kind, first] : given) {
      const bool isNumber = kind == "int" || kind == "float";
      given_.push_back({!isNumber, kind == "float", isNumber ? DType::F32 : dtypeNamed(kind), first});
    }
    for (const auto& [argument, isWritten] : slots)
      slots_.push_back({argument, isWritten});
  }

  /// False: nothing has run.
  bool call(Stream& stream, nb::tuple args, nb::handle grid) const {
    if (args.size() != given_.size())
      return false;
    std::vector<bool> written(given_.size());
    for (const Slot& slot : slots_)
      written[slot.argument] = written[slot.argument] || slot.isWritten;
    Views views(args.size());
    std::vector<Argument> values;
    std::vector<const Py_buffer*> memory(args.size());
    values.reserve(args.size());
    for (size_t i = 0; i < args.size(); ++i)
      if (!add(args[i], i, written[i], views, memory, values))
        return false;
    std::vector<Argument> passed;
    passed.reserve(slots_.size() + 3);
    for (const Slot& slot : slots_)
      passed.push_back(values[slot.argument]);
    if (!addGrid(grid, passed))
      return false;
    bool isRefused = false;
    const Result<void> done = unlocked([&]() -> Result<void> {
      isRefused = !stream.launch(kernel_, passed);
      return stream.synchronize();
    });
    if (isRefused)
      return false;
    check(done, stream);
    return true;
  }

private:
  bool add(nb::handle value, size_t index, bool isWritten, Views& views, std::vector<const Py_buffer*>& memory,
           std::vector<Argument>& values) const {
    const Given& wanted = given_[index];
    if (!wanted.isArray) {
      if (wanted.isFloat) {
        values.emplace_back(PyFloat_CheckExact(value.ptr()) ? PyFloat_AS_DOUBLE(value.ptr()) : 0.0);
        return PyFloat_CheckExact(value.ptr());
      }
      int overflow = 0;
      const long long number =
          PyLong_CheckExact(value.ptr()) ? PyLong_AsLongLongAndOverflow(value.ptr(), &overflow) : 0;
      values.emplace_back(static_cast<int64_t>(number));
      return PyLong_CheckExact(value.ptr()) && isI32(number, overflow);
    }
    if (reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())) != array_.ptr())
      return false;
    const Py_buffer* view = views.add(value, isWritten);
    if (!view || view->len == 0 || !holds(*view, wanted.type) ||
        reinterpret_cast<uintptr_t>(view->buf) % static_cast<uintptr_t>(view->itemsize) != 0)
      return false;
    memory[index] = view;
    size_t first = 0;  // the first argument over the same memory
    while (first < index && !(memory[first] && memory[first]->buf == view->buf && memory[first]->len == view->len &&
                              given_[first].type == wanted.type))
      ++first;
    if (first != wanted.first)
      return false;
    Result<Tensor> tensor =
        device_.wrapBytes(wanted.type, {view->len / view->itemsize}, view->buf, static_cast<uint64_t>(view->len));
    if (!tensor)
      return false;
    values.emplace_back(*std::move(tensor));
    return true;
  }

  static bool addGrid(nb::handle grid, std::vector<Argument>& passed) {
    const bool isTuple = PyTuple_CheckExact(grid.ptr());
    const Py_ssize_t axes = isTuple ? PyTuple_GET_SIZE(grid.ptr()) : 1;
    if (axes < 1 || axes > 3)
      return false;
    for (Py_ssize_t axis = 0; axis < 3; ++axis) {
      int64_t extent = 1;
      if (axis < axes) {
        PyObject* value = isTuple ? PyTuple_GET_ITEM(grid.ptr(), axis) : grid.ptr();
        int overflow = 0;
        if (!PyLong_CheckExact(value))
          return false;
        extent = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!isI32(extent, overflow) || extent <= 0)
          return false;
      }
      passed.emplace_back(extent);
    }
    return true;
  }

  Kernel kernel_;
  Device device_;
  nb::object array_;
  std::vector<Given> given_;
  std::vector<Slot> slots_;
};

}  // namespace

void bindHostLaunches(nb::module_& module) {
  nb::class_<HostLaunch>(module, "HostLaunch")
      .def(nb::init<const BoundKernel&, Device, const std::vector<std::pair<std::string, size_t>>&,
                    const std::vector<std::pair<size_t, bool>>&>())
      .def("__call__", &HostLaunch::call);
}

}  // namespace vortex::python
