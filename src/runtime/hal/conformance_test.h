// The suite that every driver must pass. A driver's test links conformance_test.cpp and instantiates Conformance with itself:
//   INSTANTIATE_TEST_SUITE_P(Cpu, Conformance, testing::Values(DriverUnderTest{…}));
#pragma once

#include "runtime/hal/conformance_kernels.h"
#include "runtime/hal/launch.h"

#include <gtest/gtest.h>

namespace vortex::hal::conformance {

struct DriverUnderTest {
  std::string name;
  /// A fresh device. `memoryLimit`: bytes after which allocations must fail; 0: the driver's own.
  Result<DeviceRef> (*create)(uint64_t memoryLimit) = nullptr;
  /// Sets `code` and `target`.
  void (*addCode)(artifact::Kernel& kernel) = nullptr;
  friend void PrintTo(const DriverUnderTest& driver, std::ostream* out) { *out << driver.name; }
};

class Conformance : public testing::TestWithParam<DriverUnderTest> {
protected:
  void SetUp() override;
  /// Buffer with these values. The test fails and aborts on errors, as in the other members.
  template <typename T> BufferRef upload(const std::vector<T>& values) {
    BufferRef buffer = device_->allocate(values.size() * sizeof(T)).value();
    stream_->write(buffer, 0, values.data(), values.size() * sizeof(T)).value();
    return buffer;
  }
  template <typename T> std::vector<T> download(const BufferRef& buffer) {
    std::vector<T> values(buffer->bytes() / sizeof(T));
    stream_->read(values.data(), buffer, 0, buffer->bytes()).value();
    return values;
  }
  template <typename T>
  Tensor tensor(const std::vector<T>& values, artifact::ScalarType type, std::vector<int64_t> extents) {
    return {upload(values), 0, type, std::move(extents), {}};
  }
  KernelRef load(const std::string& name);
  Result<std::vector<Tensor>> run(const KernelRef& kernel, const std::vector<Argument>& arguments,
                                  LaunchOptions options = {});
  std::string launchError(const KernelRef& kernel, const std::vector<Argument>& arguments, LaunchOptions options = {});
  bool executes() const { return device_->info().executes; }

  DeviceRef device_;
  StreamRef stream_;
};

Argument scalarF32(float value);
Argument scalarI32(int32_t value);
Argument scalarI64(int64_t value);

}  // namespace vortex::hal::conformance
