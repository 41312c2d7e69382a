#include "runtime/hal/driver.h"

#include "base/text.h"

namespace vortex::hal {

Driver::~Driver() = default;

void DriverList::add(std::unique_ptr<Driver> driver) { drivers_.push_back(std::move(driver)); }

std::vector<DeviceRef> DriverList::devices(std::vector<Error>* problems) const {
  std::vector<DeviceRef> all;
  for (const std::unique_ptr<Driver>& driver : drivers_) {
    Result<std::vector<DeviceRef>> found = driver->devices();
    if (found)
      all.insert(all.end(), found->begin(), found->end());
    else if (problems)
      problems->push_back(found.takeError());
  }
  return all;
}

Result<DeviceRef> DriverList::find(std::string_view name) const {
  std::vector<std::string> known;
  for (const std::unique_ptr<Driver>& driver : drivers_) {
    const bool wholeDriver = driver->name() == name;
    Result<std::vector<DeviceRef>> found = driver->devices();
    if (!found) {
      if (wholeDriver)
        return found.takeError();
      continue;
    }
    for (const DeviceRef& device : *found) {
      if (wholeDriver || device->info().name == name)
        return device;
      known.push_back(device->info().name);
    }
    if (wholeDriver)
      return Error{base::concat("this machine has no device for '", name, "'")};
  }
  return Error{base::concat("there is no device '", name, "'; this machine has: ", base::join(known, ", "))};
}

}  // namespace vortex::hal
