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
  std::string reason;
  for (const std::unique_ptr<Driver>& driver : drivers_) {
    const bool wholeDriver = driver->name() == name;
    const bool named =
        wholeDriver || (name.starts_with(driver->name()) && name.substr(driver->name().size()).starts_with(':'));
    Result<std::vector<DeviceRef>> found = driver->devices();
    if (!found) {
      if (named)
        return found.takeError();
      continue;
    }
    for (const DeviceRef& device : *found) {
      if (wholeDriver || device->info().name == name)
        return device;
      known.push_back(device->info().name);
    }
    if (named && found->empty() && !driver->absence().empty())
      reason = base::concat(" (", driver->absence(), ")");
  }
  return Error{
      base::concat("there is no device '", name, "'", reason, "; this machine has: ", base::join(known, ", "))};
}

}  // namespace vortex::hal
