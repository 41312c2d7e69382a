// The extension `_vortex`: devices, arrays, streams and launches. The compiler is another extension, loaded when something must be compiled.
#include "python/arrays.h"
#include "python/launch.h"
#include "python/lent_streams.h"
#include "python/torch_tensors.h"

#include "vortex/kernel_cache.h"
#include "vortex/rows.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace vortex::python {
namespace {

Runtime& runtime() {
  static Runtime& instance = *new Runtime;  // never destroyed: daemon threads may work until the process is gone
  return instance;
}

std::vector<std::string> deviceNames() {
  std::vector<std::string> names;
  for (const Device& device : runtime().devices())
    names.push_back(device.name());
  return names;
}

void bindDevices(nb::module_& module) {
  nb::class_<Device>(module, "Device")
      .def_prop_ro("name", &Device::name)
      .def_prop_ro("product", &Device::product)
      .def_prop_ro("target", &Device::target)
      .def_prop_ro("model", &Device::model)
      .def_prop_ro("memory_bytes", &Device::memoryBytes)
      .def_prop_ro("workers", &Device::workers)
      .def("available_bytes", [](const Device& self) { return valueOf(self.availableBytes()); })
      .def("empty",
           [](const Device& self, const std::string& dtype, std::vector<int64_t> shape) {
             return Array{self, valueOf(self.empty(dtypeNamed(dtype), std::move(shape))), nb::none(), false};
           })
      .def(
          "wrap",
          [](const Device& self, nb::handle object, const std::string& what) {
            return wrapObject(self, object, [&] { return what; });
          },
          nb::arg("object"), nb::arg("what") = "the object")
      .def(
          "wrap_memory",
          [](const Device& self, uint64_t address, const std::string& dtype, std::vector<int64_t> shape,
             std::optional<std::vector<int64_t>> strides, bool isReadOnly, nb::handle owner) {
            return wrapMemory(self, address, dtype, std::move(shape), std::move(strides), isReadOnly, owner);
          },
          nb::arg("address"), nb::arg("dtype"), nb::arg("shape"), nb::arg("strides").none(), nb::arg("read_only"),
          nb::arg("owner"))
      .def("wrap_stream", [](const Device& self, uint64_t handle) { return valueOf(self.wrapStream(handle)); })
      .def("lent_stream", [](const Device& self, uint64_t handle) { return valueOf(lentStream(self, handle)); })
      .def("lent_streams", &lentStreams)
      .def("create_stream", [](const Device& self) { return valueOf(self.createStream()); })
      .def("create_event", [](const Device& self) { return valueOf(self.createEvent()); })
      .def("__repr__",
           [](const Device& self) { return "<vortex.Device '" + self.name() + "': " + self.product() + ">"; });
  nb::class_<KernelCache>(module, "KernelCache")
      .def(nb::init<std::string>(), nb::arg("folder") = "")
      .def("get",
           [](const KernelCache& self, nb::bytes key) -> std::optional<nb::bytes> {
             const auto found = self.get({key.c_str(), key.size()});
             return found ? std::optional(nb::bytes(found->data(), found->size())) : std::nullopt;
           })
      .def("put", [](const KernelCache& self, nb::bytes key, nb::bytes value) {
        check(self.put({key.c_str(), key.size()}, {static_cast<const uint8_t*>(value.data()), value.size()}));
      });
  nb::class_<Event>(module, "Event")
      .def("is_complete", &Event::isComplete)
      .def("wait", [](Event& self) { check(unlocked([&] { return self.wait(); })); })
      .def("nanoseconds_since", [](Event& self, const Event& start) { return valueOf(self.nanosecondsSince(start)); });
  nb::class_<Stream>(module, "Stream")
      .def("record", [](Stream& self, const Event& event) { check(self.record(event)); })
      .def("wait", [](Stream& self, const Event& event) { check(self.wait(event)); })
      .def("synchronize", [](Stream& self) { check(unlocked([&] { return self.synchronize(); }), self); });
}

}  // namespace
}  // namespace vortex::python

NB_MODULE(_vortex, module) {
  using namespace vortex::python;
  nb::set_leak_warnings(false);
  bindThreads();
  bindArrays(module);
  bindMirrors(module);
  bindDevices(module);
  bindLaunches(module);
  bindDirectLaunches(module);
  module.def("library_id", [](const std::string& path) { return valueOf(vortex::libraryId(path)); });
  module.def("torch_stream", &torchStream, nb::arg("gpu"));
  module.attr("ROW_REGISTERS") = vortex::kRowRegisters;
  module.def("device_names", &deviceNames);
  module.def("open_device", [](const std::string& name) { return valueOf(runtime().open(name)); });
}
