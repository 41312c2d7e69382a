// Host arrays with copies on devices. Python says whether someone holds the host's array: it counts references.
#include "vortex/mirror.h"

#include "python/arrays.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

namespace vortex::python {

namespace {

struct HostMirror {
  Mirror mirror;
  Device device;
  Array whole;  ///< the device's memory, once it is there
  std::shared_ptr<bool> isHeld;
  nb::object lent;  ///< the same as a Python object
};

HostMirror make(const Device& device, uint64_t address, const std::string& dtype, int64_t elements, bool isReadOnly,
                nb::handle owner) {
  const DType type = dtypeNamed(dtype);
  const auto bytes = static_cast<uint64_t>(elements) * byteSize(type);
  auto isHeld = std::make_shared<bool>(false);
  Mirror mirror =
      valueOf(Mirror::over(device, reinterpret_cast<void*>(static_cast<uintptr_t>(address)), bytes,
                           {.owner = keep(owner), .isReadOnly = isReadOnly, .isHeld = [isHeld] { return *isHeld; }}));
  return {std::move(mirror),
          device,
          {device, {{}, 0, type, {elements}, {1}}, nb::none(), isReadOnly},
          std::move(isHeld),
          {}};
}

/// One object for all launches, as long as the memory is the same.
nb::typed<nb::object, Array> forDevice(HostMirror& self, Stream& stream, bool isWritten, bool isHeld) {
  *self.isHeld = isHeld;
  Buffer buffer = valueOf(unlocked([&] { return self.mirror.forDevice(stream, isWritten); }));
  if (!self.lent.is_valid() || buffer.address() != self.whole.tensor.buffer.address()) {
    self.whole.tensor.buffer = std::move(buffer);
    self.lent = nb::cast(self.whole);
  }
  return nb::typed<nb::object, Array>(self.lent);
}

}  // namespace

void bindMirrors(nb::module_& module) {
  nb::class_<HostMirror>(module, "Mirror",
                         "Host memory and its copy on a device; one where the device works in host memory.")
      .def(
          "__init__",
          [](HostMirror* self, const Device& device, uint64_t address, const std::string& dtype, int64_t elements,
             bool isReadOnly,
             nb::handle owner) { new (self) HostMirror(make(device, address, dtype, elements, isReadOnly, owner)); },
          nb::arg("device"), nb::arg("address"), nb::arg("dtype"), nb::arg("elements"), nb::arg("read_only"),
          nb::arg("owner"))
      .def("for_device", &forDevice, nb::arg("stream"), nb::arg("is_written"), nb::arg("is_held"))
      .def(
          "for_host",
          [](HostMirror& self, Stream& stream) {
            check(unlocked([&]() -> Result<void> {
                    Result<void*> host = self.mirror.host(stream);
                    return host ? Result<void>() : host.takeError();
                  }),
                  stream);
          },
          nb::arg("stream"))
      .def(
          "settle",
          [](HostMirror& self, Stream& stream, bool isHeld) {
            *self.isHeld = isHeld;
            check(unlocked([&] { return self.mirror.settle(stream); }), stream);
          },
          nb::arg("stream"), nb::arg("is_held"))
      .def("host_changed", [](HostMirror& self) { self.mirror.hostChanged(); })
      .def_prop_ro("is_device_newer", [](const HostMirror& self) { return self.mirror.isDeviceNewer(); })
      .def_prop_ro(
          "copies",
          [](const HostMirror& self) { return std::pair(self.mirror.copies().toDevice, self.mirror.copies().toHost); },
          "so far, to the device and to the host");
}

}  // namespace vortex::python
