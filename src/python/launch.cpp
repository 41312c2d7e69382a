#include "python/launch.h"
#include "python/entries.h"
#include "python/lent_streams.h"
#include "python/resident.h"
#include "python/torch_tensors.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

namespace vortex::python {

namespace {

/// The values of a launch and what keeps their memory alive.
struct Arguments {
  std::vector<Argument> values;
  std::vector<nb::object> owners;
};

/// Which argument a message is about; made into text only for messages.
struct Place {
  const BoundKernel& kernel;
  size_t index;
  /// "argument 2 ('y') of kernel 'scale'"
  std::string text() const {
    return "argument " + std::to_string(index + 1) + " ('" + kernel.params[index].name + "') of kernel '" +
           kernel.kernel.name() + "'";
  }
};

Argument integer(nb::handle value, const Place& what) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0)
    return Argument(static_cast<int64_t>(number));
  const unsigned long long large = PyLong_AsUnsignedLongLong(value.ptr());
  if (!PyErr_Occurred())
    return Argument(static_cast<uint64_t>(large));
  PyErr_Clear();
  PyErr_SetString(PyExc_OverflowError, (what.text() + " does not fit 64 bits").c_str());
  throw nb::python_error();
}

Argument number(nb::handle value, const Place& what) {
  if (PyBool_Check(value.ptr()))
    return Argument(value.ptr() == Py_True);
  if (PyLong_Check(value.ptr()))
    return integer(value, what);
  if (PyFloat_Check(value.ptr()))
    return Argument(PyFloat_AS_DOUBLE(value.ptr()));
  if (nb::hasattr(value, "item")) {  // numbers of NumPy, and arrays, of which those of one element are numbers
    nb::object plain = nb::steal(PyObject_CallMethod(value.ptr(), "item", nullptr));
    if (!plain.is_valid())
      PyErr_Clear();
    else if (PyFloat_Check(plain.ptr()) || PyLong_Check(plain.ptr()))
      return number(plain, what);
  }
  const std::string type =
      nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()))).attr("__name__"));
  throw nb::type_error((what.text() + " is a number, a " + type + " was given").c_str());
}

Arguments convert(const Device& device, const BoundKernel& kernel, nb::tuple given) {
  const std::vector<ParamInfo>& params = kernel.params;
  if (given.size() != params.size())
    throw nb::type_error(("kernel '" + kernel.kernel.name() + "' takes " + std::to_string(params.size()) +
                          " arguments, " + std::to_string(given.size()) + " given")
                             .c_str());
  Arguments out;
  for (size_t i = 0; i < params.size(); ++i) {
    const nb::handle value = given[i];
    const Place what{kernel, i};
    if (!params[i].isTensor) {
      out.values.push_back(number(value, what));
      continue;
    }
    Array array =
        nb::isinstance<Array>(value) ? nb::cast<Array>(value) : wrapObject(device, value, [&] { return what.text(); });
    if (params[i].isWritten && array.isReadOnly)
      throw nb::value_error((what.text() + " is written by the kernel, but the array is read-only").c_str());
    if (array.tensor.type != params[i].type)
      throw nb::type_error((what.text() + " has elements of type " + name(params[i].type) + "; an array of " +
                            name(array.tensor.type) + " was given")
                               .c_str());
    if (array.tensor.rank() != params[i].rank)
      throw nb::value_error((what.text() + " has " + std::to_string(params[i].rank) +
                             (params[i].rank == 1 ? " dimension" : " dimensions") + "; an array of " +
                             std::to_string(array.tensor.rank()) + " was given")
                                .c_str());
    out.values.push_back(array.tensor);
    out.owners.push_back(std::move(array.owner));
  }
  return out;
}

using Grid = std::optional<std::array<int64_t, 3>>;

/// What a launch prints goes to a Python function. That may raise: on the CPU the launch raises it when the kernel has ended, GPUs print
/// when nobody can be told.
class PrintSink {
public:
  explicit PrintSink(nb::handle function) : shared_(std::make_shared<Shared>(keep(function))) {}

  void operator()(const Print& line) const {
    if (Leaving::isOver())
      return;
    const std::string text = line.text();
    locked([&] {
      if (shared_->failure)
        return;
      try {
        (*shared_->function)(text);
      } catch (nb::python_error& error) {
        if (shared_->isOver)
          error.discard_as_unraisable("print of a kernel");
        else
          shared_->failure.emplace(std::move(error));
      }
    });
  }
  /// At the end of the launch.
  void raise() const {
    shared_->isOver = true;
    if (shared_->failure) {
      nb::python_error failure = std::move(*shared_->failure);
      shared_->failure.reset();
      throw failure;
    }
  }

private:
  struct Shared {
    explicit Shared(std::shared_ptr<nb::object> given) : function(std::move(given)) {}
    std::shared_ptr<nb::object> function;
    std::optional<nb::python_error> failure;
    bool isOver = false;
  };
  std::shared_ptr<Shared> shared_;
};

/// Results that another library makes: a Python function of element type and extents. What it raises, the launch raises.
class ResultMaker {
public:
  ResultMaker(nb::handle function, const Device& device) : function_(function), device_(device) {}

  Result<Tensor> operator()(size_t result, DType type, std::span<const int64_t> extents) {
    Result<Tensor> tensor = Error{"its allocator failed"};
    locked([&] {
      try {
        const nb::object shape = nb::tuple(nb::cast(std::vector<int64_t>(extents.begin(), extents.end())));
        nb::object made = function_(name(type), shape);
        tensor = wrapObject(device_, made, [] { return std::string("a new result"); }).tensor;
        made_.resize(std::max(made_.size(), result + 1));
        made_[result] = std::move(made);
      } catch (nb::python_error& error) {
        failure_.emplace(std::move(error));
      } catch (const std::exception& error) {
        tensor = Error{error.what()};
      }
    });
    return tensor;
  }
  void raise() {
    if (failure_)
      throw nb::python_error(std::move(*failure_));
  }
  /// The results in the caller's kind.
  nb::list collect(std::vector<Array> arrays) {
    nb::list out;
    for (size_t i = 0; i < arrays.size(); ++i)
      out.append(i < made_.size() && made_[i].is_valid() ? made_[i] : nb::cast(std::move(arrays[i])));
    return out;
  }

private:
  nb::handle function_;
  const Device& device_;
  std::vector<nb::object> made_;
  std::optional<nb::python_error> failure_;
};

/// Arrays to write results to: ours, others' on the device, None for new ones.
std::vector<std::optional<Array>> storageOf(const Device& device, const BoundKernel& kernel, nb::sequence results) {
  std::vector<std::optional<Array>> storage;
  for (const nb::handle result : results)
    if (result.is_none())
      storage.emplace_back();
    else if (nb::isinstance<Array>(result))
      storage.emplace_back(nb::cast<Array>(result));
    else
      storage.emplace_back(
          wrapObject(device, result, [&] { return "out= for a result of kernel '" + kernel.kernel.name() + "'"; }));
  return storage;
}

LaunchOptions optionsOf(const std::vector<std::optional<Array>>& results, const std::optional<PrintSink>& print,
                        const Grid& grid) {
  LaunchOptions options;
  options.grid = grid;
  for (const std::optional<Array>& result : results)
    options.results.push_back(result ? std::optional(result->tensor) : std::nullopt);
  if (print)
    options.print = *print;
  return options;
}

std::vector<Array> wrapResults(const Device& device, std::vector<Tensor> tensors) {
  std::vector<Array> arrays;
  for (Tensor& tensor : tensors)
    arrays.push_back({device, std::move(tensor), nb::none(), false});
  return arrays;
}

/// Launches `self`; what `maker` makes are the results.
Result<std::vector<Tensor>> launchOn(const BoundKernel& self, const Device& device, Stream& stream,
                                     std::span<const Argument> arguments, const LaunchOptions& options) {
  std::vector<Tensor> made;
  Result<void> done = unlocked([&] {
    return run(device, stream, [&]() -> Result<void> {
      Result<std::vector<Tensor>> launched = stream.launch(self.kernel, arguments, options);
      if (!launched)
        return launched.takeError();
      made = *std::move(launched);
      return {};
    });
  });
  if (!done)
    return done.takeError();
  return made;
}

/// The launch of a kernel whose arrays all lie on its GPU and belong to one library, straight to the runtime. None: it is not such a launch, or
/// its arguments do not fit; the general way tells. `out`: none, an array or a tuple of arrays. `makerOf`: the maker of results of a value's kind.
nb::object launchResident(const BoundKernel& self, const Device& device, Stream& own, nb::tuple given, nb::handle out,
                          nb::object print, const Grid& grid, nb::handle makerOf) {
  const std::vector<ParamInfo>& params = self.params;
  Residents residents(device);
  if (!residents || given.size() != params.size())
    return nb::none();
  std::vector<Argument> values;
  values.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const nb::handle value = given[i];
    if (!params[i].isTensor) {
      if (!PyFloat_CheckExact(value.ptr()) && !PyLong_CheckExact(value.ptr()))
        return nb::none();
      values.push_back(number(value, Place{self, i}));
      continue;
    }
    std::optional<Tensor> tensor = residents.take(value, params[i].isWritten);
    if (!tensor || tensor->type != params[i].type || tensor->rank() != params[i].rank)
      return nb::none();
    values.emplace_back(*std::move(tensor));
  }
  LaunchOptions options;
  options.grid = grid;
  const bool isTuple = PyTuple_CheckExact(out.ptr());
  const size_t wanted = out.is_none() ? 0 : isTuple ? static_cast<size_t>(PyTuple_GET_SIZE(out.ptr())) : 1;
  for (size_t i = 0; i < wanted; ++i) {
    std::optional<Tensor> tensor =
        residents.take(isTuple ? PyTuple_GET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i)) : out.ptr(), true);
    if (!tensor)
      return nb::none();
    options.results.emplace_back(*std::move(tensor));
  }
  const size_t results = self.resultCount;
  if (!out.is_none() ? wanted != results : results != 0 && !residents.torch() && !residents.hasOurs())
    return nb::none();
  std::optional<Stream> stream = residents.stream(own);
  if (!stream)
    return nb::none();
  const std::optional<PrintSink> sink = print.is_none() ? std::nullopt : std::optional<PrintSink>(print);
  if (sink)
    options.print = *sink;
  nb::object make = nb::none();
  if (residents.torch() && results != 0 && out.is_none() && (make = makerOf(residents.torch())).is_none())
    return nb::none();
  ResultMaker maker(make, device);
  if (!make.is_none())
    options.allocate = std::ref(maker);
  Result<std::vector<Tensor>> made = launchOn(self, device, *stream, values, options);
  if (sink)
    sink->raise();
  maker.raise();
  if (!made)
    check(made.takeError(), *stream);
  return maker.collect(wrapResults(device, *std::move(made)));
}

/// Asynchronous work may outlive the call: what it uses is kept until the stream is synchronised or the next launch finds it done.
struct BoundLaunch {
  PreparedLaunch launch;
  Device device;
  std::vector<nb::object> owners;
};

void repeat(const BoundLaunch& self, Stream& stream, uint64_t times) {
  constexpr auto kPoll = std::chrono::milliseconds(50);  // how soon Ctrl-C is obeyed
  for (uint64_t at = 0; at < times;) {
    check(unlocked([&] {
            const auto end = std::chrono::steady_clock::now() + kPoll;
            return run(self.device, stream, [&]() -> Result<void> {
              Result<void> done;
              do
                done = stream.submit(self.launch);
              while (done && ++at < times && std::chrono::steady_clock::now() < end);
              return done;
            });
          }),
          stream);
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  }
}

nb::dict describe(const ParamInfo& param) {
  nb::dict out;
  out["name"] = param.name;
  out["dtype"] = name(param.type);
  out["is_tensor"] = param.isTensor;
  out["rank"] = param.rank;
  out["is_written"] = param.isWritten;
  out["is_field"] = param.structBytes != 0;  // of an array of structs
  return out;
}

nb::list describeAll(const std::vector<ParamInfo>& params) {
  nb::list out;
  for (const ParamInfo& param : params)
    out.append(describe(param));
  return out;
}

}  // namespace

void bindLaunches(nb::module_& module) {
  nb::class_<BoundLaunch>(module, "PreparedLaunch")
      .def("results", [](const BoundLaunch& self) { return wrapResults(self.device, self.launch.results()); })
      .def("submit",
           [](const BoundLaunch& self, Stream& stream) {
             check(unlocked([&] { return run(self.device, stream, [&] { return stream.submit(self.launch); }); }),
                   stream);
           })
      .def(
          "submit_to_torch",
          [](const BoundLaunch& self, int gpu) {
            const std::optional<uint64_t> handle = torchStream(gpu);
            if (!handle)
              return false;
            Stream stream = valueOf(lentStream(self.device, *handle));
            check(unlocked([&] { return run(self.device, stream, [&] { return stream.submit(self.launch); }); }),
                  stream);
            return true;
          },
          nb::arg("gpu"), "into PyTorch's current stream; false: it tells none")
      .def("repeat", &repeat);
  nb::class_<BoundKernel>(module, "LoadedKernel")
      .def_prop_ro("name", [](const BoundKernel& self) { return self.kernel.name(); })
      .def_prop_ro("target", [](const BoundKernel& self) { return self.kernel.target(); })
      .def_prop_ro("params", [](const BoundKernel& self) { return describeAll(self.params); })
      .def_prop_ro("results", [](const BoundKernel& self) { return describeAll(self.kernel.results()); })
      .def("facts",
           [](const BoundKernel& self) {
             nb::dict facts;
             for (const auto& [key, value] : self.kernel.facts())
               facts[key.c_str()] = value;
             return facts;
           })
      .def(
          "launch",
          [](const BoundKernel& self, const Device& device, Stream& stream, nb::tuple given, nb::sequence results,
             nb::object print, const Grid& grid, nb::object make) {
            const Arguments arguments = convert(device, self, given);
            const std::vector<std::optional<Array>> storage = storageOf(device, self, results);
            const std::optional<PrintSink> sink = print.is_none() ? std::nullopt : std::optional<PrintSink>(print);
            LaunchOptions options = optionsOf(storage, sink, grid);
            ResultMaker maker(make, device);
            if (!make.is_none())
              options.allocate = std::ref(maker);
            Result<std::vector<Tensor>> made = launchOn(self, device, stream, arguments.values, options);
            if (sink)
              sink->raise();
            maker.raise();
            if (!made)
              check(made.takeError(), stream);
            return maker.collect(wrapResults(device, *std::move(made)));
          },
          nb::arg("device"), nb::arg("stream"), nb::arg("arguments"), nb::arg("results"), nb::arg("print").none(),
          nb::arg("grid") = nb::none(), nb::arg("make") = nb::none())
      .def("launch_resident", &launchResident, nb::arg("device"), nb::arg("own"), nb::arg("arguments"),
           nb::arg("out").none(), nb::arg("print").none(), nb::arg("grid").none(), nb::arg("maker_of"))
      .def(
          "prepare",
          [](const BoundKernel& self, const Device& device, Stream& stream, nb::tuple given,
             const std::vector<std::optional<Array>>& results, const Grid& grid) {
            Arguments arguments = convert(device, self, given);
            const LaunchOptions options = optionsOf(results, std::nullopt, grid);
            return BoundLaunch{
                valueOf(unlocked([&] { return stream.prepare(self.kernel, arguments.values, options); })), device,
                std::move(arguments.owners)};
          },
          nb::arg("device"), nb::arg("stream"), nb::arg("arguments"), nb::arg("results"), nb::arg("grid") = nb::none());
  module.def("load", [](const Device& device, nb::bytes artifact) {
    const std::span bytes(static_cast<const uint8_t*>(artifact.data()), artifact.size());
    return BoundKernel(valueOf(unlocked([&] { return device.load(bytes); })));
  });
  module.def(
      "load_plan",
      [](const Device& device, nb::bytes artifact, std::optional<KernelCache> cache, nb::bytes key, nb::callable open,
         nb::callable warn) {
        EntrySource entries = keptEntries(std::move(cache), {key.c_str(), key.size()}, open, warn);
        const std::span bytes(static_cast<const uint8_t*>(artifact.data()), artifact.size());
        return BoundKernel(valueOf(unlocked([&] { return device.load(bytes, std::move(entries)); })));
      },
      nb::arg("device"), nb::arg("artifact"), nb::arg("cache").none(), nb::arg("key"), nb::arg("open"),
      nb::arg("warn"));
  module.def("load_file",
             [](const Device& device, const std::string& path) { return BoundKernel(valueOf(device.loadFile(path))); });
}

}  // namespace vortex::python
