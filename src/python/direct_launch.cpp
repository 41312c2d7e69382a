// The ordinary launch of a metile kernel, for callers that launch the same kernel again and again: arrays where they lie, numbers and a grid
// straight from the call. On the CPU the arrays are NumPy's, PyTorch's or ours; on a GPU they are PyTorch's, and the launch goes into PyTorch's
// stream, or ours.
// Whatever is not as it was when the kernel was specialised is left to the general way in Python, which is ten times slower and gives the
// reasons.
#include "python/launch.h"
#include "python/resident.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace vortex::python {

namespace {

/// An argument of the caller: a number, or an array whose memory begins at that of argument `first`.
struct Given {
  bool isArray = false, isFloat = false;
  DType type = DType::F32;
  size_t first = 0;
};

/// Rows of `stride` elements from an element on, `most` at most.
struct Window {
  int64_t offset, stride, most;
};

/// What a matrix may end with: a row that its memory ends within, as python/metile/_tails.py says.
enum class Tail : uint8_t { None, Follows, Is, Rows };

/// A parameter of the kernel.
struct Slot {
  size_t argument;
  bool isWritten;
  std::optional<Window> window;  ///< of a matrix; of a last row and of the number of whole ones that of their matrix
  Tail tail = Tail::None;
  bool isLast = false;  ///< no later parameter is over the same argument
};

/// Memory of an argument.
struct Memory {
  uint64_t address = 0, bytes = 0;
  friend bool operator==(const Memory&, const Memory&) = default;
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

/// Numbers of Python and NumPy. Arrays without extents are none.
class Numbers {
public:
  Numbers()
      : integer_(nb::module_::import_("numpy").attr("integer")),
        floating_(nb::module_::import_("numpy").attr("floating")) {}

  std::optional<int64_t> i32(nb::handle value) const {
    nb::object index;  // of NumPy's
    if (!PyLong_Check(value.ptr())) {
      if (PyFloat_Check(value.ptr()) || PyObject_IsInstance(value.ptr(), integer_.ptr()) != 1)
        return std::nullopt;
      index = nb::steal(PyNumber_Index(value.ptr()));
      value = index;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    const bool fits =
        !overflow && number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max();
    return fits ? std::optional<int64_t>(number) : std::nullopt;
  }
  std::optional<double> f64(nb::handle value) const {
    if (!PyFloat_Check(value.ptr()) &&
        (PyLong_Check(value.ptr()) || PyObject_IsInstance(value.ptr(), floating_.ptr()) != 1))
      return std::nullopt;
    const double number = PyFloat_AsDouble(value.ptr());
    const bool fits = std::isinf(number) || !std::isinf(static_cast<float>(number));
    return fits ? std::optional<double>(number) : std::nullopt;
  }

private:
  nb::object integer_, floating_;
};

/// What one call passes.
struct Call {
  Call(size_t count, const Device& device) : views(count), memory(count), tensors(count), residents(device) {
    values.reserve(count);
  }
  Views views;
  std::vector<Memory> memory;
  std::vector<Argument> values;  ///< numbers, by argument
  std::vector<Tensor> tensors;   ///< of the arrays, by argument
  Residents residents;
};

class DirectLaunch {
public:
  using Slots = std::vector<std::tuple<size_t, bool, std::optional<std::tuple<int64_t, int64_t, int64_t>>, uint8_t>>;

  /// `given`: "int", "float", or the element type and the first argument over the same memory. `numbers`: the integers that windows follow
  /// from; a call with others is not made.
  DirectLaunch(const BoundKernel& kernel, Device device, const std::vector<std::pair<std::string, size_t>>& given,
               const Slots& slots, std::vector<std::pair<size_t, int64_t>> numbers)
      : kernel_(kernel.kernel), device_(std::move(device)), numpy_(nb::module_::import_("numpy").attr("ndarray")),
        numbers_(std::move(numbers)) {
    for (const auto& [kind, first] : given) {
      const bool isNumber = kind == "int" || kind == "float";
      given_.push_back({!isNumber, kind == "float", isNumber ? DType::F32 : dtypeNamed(kind), first});
    }
    for (const auto& [argument, isWritten, window, tail] : slots) {
      slots_.push_back({argument, isWritten, std::nullopt, static_cast<Tail>(tail), false});
      if (window)
        slots_.back().window = {std::get<0>(*window), std::get<1>(*window), std::get<2>(*window)};
    }
    written_.resize(given_.size());
    std::vector<bool> isUsed(given_.size());
    for (size_t i = slots_.size(); i-- > 0;) {
      Slot& slot = slots_[i];
      written_[slot.argument] = written_[slot.argument] || slot.isWritten;
      slot.isLast = !isUsed[slot.argument];
      isUsed[slot.argument] = true;
    }
  }

  /// False: nothing has run. `own`: the stream of kernels on arrays of ours.
  bool call(Stream& own, nb::tuple args, nb::handle grid) {
    if (args.size() != given_.size())
      return false;
    Call call(args.size(), device_);
    for (size_t i = 0; i < args.size(); ++i)
      if (!(given_[i].isArray ? addArray(args[i], i, call) : addNumber(args[i], i, call)))
        return false;
    std::vector<Argument> passed;
    passed.reserve(slots_.size() + 3);
    for (const Slot& slot : slots_)
      if (!pass(slot, call, passed))
        return false;
    if (!addGrid(grid, passed))
      return false;
    std::optional<Stream> stream = call.residents.stream(own);
    if (!stream)
      return false;
    bool isRefused = false;
    const Result<void> done = unlocked([&] {
      return run(device_, *stream, [&]() -> Result<void> {
        const Result<PreparedLaunch> prepared = stream->prepare(kernel_, passed);
        isRefused = !prepared;
        return prepared ? stream->submit(*prepared) : Result<void>();
      });
    });
    if (isRefused)
      return false;
    check(done, *stream);
    return true;
  }

private:
  bool addNumber(nb::handle value, size_t index, Call& call) const {
    if (given_[index].isFloat) {
      const std::optional<double> number = kinds_.f64(value);
      call.values.emplace_back(number.value_or(0));
      return number.has_value();
    }
    const std::optional<int64_t> number = kinds_.i32(value);
    call.values.emplace_back(number.value_or(0));
    return number && std::all_of(numbers_.begin(), numbers_.end(),
                                 [&](const auto& known) { return known.first != index || known.second == *number; });
  }

  bool addArray(nb::handle value, size_t index, Call& call) const {
    const Given& wanted = given_[index];
    Tensor& tensor = call.tensors[index];
    const bool isNumpy = reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())) == numpy_.ptr();
    if (!(isNumpy ? hostArray(value, index, call, tensor) : otherArray(value, index, call, tensor)))
      return false;
    size_t first = 0;  // the first argument over the same memory
    while (first < index &&
           !(given_[first].isArray && call.memory[first] == call.memory[index] && given_[first].type == wanted.type))
      ++first;
    if (first != wanted.first)
      return false;
    call.values.emplace_back(0);
    return true;
  }

  bool hostArray(nb::handle value, size_t index, Call& call, Tensor& tensor) const {
    if (call.residents)
      return false;
    const DType type = given_[index].type;
    const Py_buffer* view = call.views.add(value, written_[index]);
    if (!view || view->len == 0 || elementTypeOf(*view) != type ||
        reinterpret_cast<uintptr_t>(view->buf) % static_cast<uintptr_t>(view->itemsize) != 0)
      return false;
    const auto bytes = static_cast<uint64_t>(view->len);
    call.memory[index] = {reinterpret_cast<uintptr_t>(view->buf), bytes};
    Result<Tensor> wrapped = device_.wrapBytes(type, {view->len / view->itemsize}, view->buf, bytes);
    if (wrapped)
      tensor = *std::move(wrapped);
    return static_cast<bool>(wrapped);
  }

  bool otherArray(nb::handle value, size_t index, Call& call, Tensor& tensor) const {
    std::optional<Tensor> taken = call.residents.take(value, written_[index]);
    if (!taken)
      return false;
    tensor = *std::move(taken);
    const int64_t elements = tensor.elements();
    const uint64_t size = byteSize(tensor.type), address = tensor.buffer.address() + tensor.byteOffset;
    if (tensor.type != given_[index].type || !tensor.isContiguous() || elements == 0 || address % size != 0)
      return false;
    tensor.extents = {elements};
    tensor.strides = {1};
    call.memory[index] = {address, static_cast<uint64_t>(elements) * size};
    return true;
  }

  bool pass(const Slot& slot, Call& call, std::vector<Argument>& passed) const {
    if (!given_[slot.argument].isArray) {
      passed.push_back(call.values[slot.argument]);
      return true;
    }
    Tensor& tensor = call.tensors[slot.argument];
    Tensor matrix = slot.isLast ? std::move(tensor) : tensor;
    if (!slot.window) {
      passed.emplace_back(std::move(matrix));
      return true;
    }
    const auto [offset, stride, most] = *slot.window;
    const int64_t rest = matrix.extents[0] - offset;
    if (offset < 0 || stride <= 0 || rest <= 0)
      return false;
    const bool isCut = rest % stride != 0 && rest / stride < most;  // the last row is not whole
    if (isCut != (slot.tail != Tail::None))
      return false;
    int64_t first = offset, rows = std::min(rest / stride, most), columns = stride;
    if (slot.tail == Tail::Rows) {
      passed.emplace_back(rows);
      return true;
    }
    if (slot.tail == Tail::Is) {
      first += rows * stride;
      columns = matrix.extents[0] - first;
      rows = 1;
    }
    matrix.byteOffset += static_cast<uint64_t>(first) * byteSize(matrix.type);
    matrix.extents = {rows, columns};
    matrix.strides = {columns, 1};
    passed.emplace_back(std::move(matrix));
    return true;
  }

  bool addGrid(nb::handle grid, std::vector<Argument>& passed) const {
    const bool isTuple = PyTuple_CheckExact(grid.ptr());
    const Py_ssize_t axes = isTuple ? PyTuple_GET_SIZE(grid.ptr()) : 1;
    if (axes < 1 || axes > 3)
      return false;
    for (Py_ssize_t axis = 0; axis < 3; ++axis) {
      std::optional<int64_t> extent = 1;
      if (axis < axes)
        extent = kinds_.i32(isTuple ? PyTuple_GET_ITEM(grid.ptr(), axis) : grid.ptr());
      if (!extent || *extent <= 0)
        return false;
      passed.emplace_back(*extent);
    }
    return true;
  }

  Kernel kernel_;
  Device device_;
  nb::object numpy_;
  Numbers kinds_;
  std::vector<Given> given_;
  std::vector<Slot> slots_;
  std::vector<bool> written_;  ///< by argument
  std::vector<std::pair<size_t, int64_t>> numbers_;
};

}  // namespace

void bindDirectLaunches(nb::module_& module) {
  nb::class_<DirectLaunch>(module, "DirectLaunch")
      .def(nb::init<const BoundKernel&, Device, const std::vector<std::pair<std::string, size_t>>&,
                    const DirectLaunch::Slots&, std::vector<std::pair<size_t, int64_t>>>(),
           nb::arg("kernel"), nb::arg("device"), nb::arg("given"), nb::arg("slots"), nb::arg("numbers"))
      .def("run", &DirectLaunch::call);
}

}  // namespace vortex::python
