#pragma once

#include "runtime/hal/device.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::hal {

/// One way to reach devices. Drivers are listed explicitly by whoever builds the program; nothing registers itself.
class Driver {
public:
  virtual ~Driver();
  virtual std::string_view name() const = 0;
  /// The devices that are usable now, in a fixed order. A machine without the hardware or its library has none, which is no
  /// error; an error is a driver that is there and broken.
  virtual Result<std::vector<DeviceRef>> devices() = 0;
  /// Why devices() is empty, in one clause; empty if nothing is known.
  virtual std::string absence() const { return {}; }
};

/// The drivers of a program, most preferred device first. Threads: filled once, then read from anywhere.
class DriverList {
public:
  void add(std::unique_ptr<Driver> driver);
  /// Every device of every driver. A broken driver contributes its error to `problems` (if given) and no device.
  std::vector<DeviceRef> devices(std::vector<Error>* problems = nullptr) const;
  /// By DeviceInfo::name, or by a driver's name, which means its first device. Error: lists the names there are.
  Result<DeviceRef> find(std::string_view name) const;

private:
  std::vector<std::unique_ptr<Driver>> drivers_;
};

}  // namespace vortex::hal
