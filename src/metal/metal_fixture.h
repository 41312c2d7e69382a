#pragma once

#include "vortex/metal/metal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace vortex::metal::testing {

inline NS::String* text(const std::string& characters) {
  return NS::String::string(characters.c_str(), NS::UTF8StringEncoding);
}

/// Adds to `y` the elements of `x` times a factor. The stand-in for a GPU has a function of the kernel's name that does the same.
inline constexpr const char* kSaxpy = R"(#include <metal_stdlib>
using namespace metal;
kernel void metal_saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant float& a [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i] + y[i];
}
)";

/// The CPU, and the stand-in for a GPU with memory of its own.
class Metal : public ::testing::TestWithParam<const char*> {
protected:
  Metal() {
    ::setenv("VORTEX_LIBCUDA", VORTEX_FAKE_CUDA, 1);
    ::setenv("FAKE_CUDA_delay", "100", 1);  // work is late: what does not wait reads too early
    ::setenv("FAKE_CUDA_devices", "2", 1);
    const auto all = NS::TransferPtr(MTL::CopyAllDevices());
    for (NS::UInteger i = 0; i < all->count(); ++i) {
      auto* each = all->object<MTL::Device>(i);
      const bool isCpu = std::string(each->name()->utf8String()).find("Stand-in") == std::string::npos;
      (isCpu == (std::string(GetParam()) == "cpu") && !device ? device : other) = each;
    }
    EXPECT_TRUE(device && other);
    queue = NS::TransferPtr(device->newCommandQueue());
  }
  ~Metal() override { pool_->release(); }

  NS::SharedPtr<MTL::Library> library(const std::string& source) const {
    NS::Error* error = nullptr;
    auto made = NS::TransferPtr(device->newLibrary(text(source), nullptr, &error));
    EXPECT_TRUE(made) << error->localizedDescription()->utf8String();
    return made;
  }
  static NS::SharedPtr<MTL::ComputePipelineState> pipelineOn(MTL::Device* where, const std::string& source,
                                                             const char* kernel) {
    NS::Error* error = nullptr;
    const auto from = NS::TransferPtr(where->newLibrary(text(source), nullptr, &error));
    EXPECT_TRUE(from) << error->localizedDescription()->utf8String();
    const auto function = NS::TransferPtr(from->newFunction(text(kernel)));
    auto made = NS::TransferPtr(where->newComputePipelineState(function.get(), &error));
    EXPECT_TRUE(made) << error->localizedDescription()->utf8String();
    return made;
  }
  NS::SharedPtr<MTL::ComputePipelineState> pipeline(const std::string& source, const char* kernel) const {
    return pipelineOn(device, source, kernel);
  }
  NS::SharedPtr<MTL::Buffer> shared(const std::vector<float>& values) const {
    return NS::TransferPtr(
        device->newBuffer(values.data(), values.size() * sizeof(float), MTL::ResourceStorageModeShared));
  }
  std::vector<float> randomNumbers(size_t count) {
    std::uniform_real_distribution<float> uniform(-4, 4);
    std::vector<float> numbers(count);
    for (float& number : numbers)
      number = uniform(random_);
    return numbers;
  }
  static std::string errorOf(MTL::CommandBuffer* commands) {
    return commands->error() ? commands->error()->localizedDescription()->utf8String() : "";
  }
  bool isCpu() const { return std::string(GetParam()) == "cpu"; }

  NS::AutoreleasePool* pool_ = NS::AutoreleasePool::alloc()->init();
  std::mt19937 random_{std::random_device{}()};
  MTL::Device *device = nullptr, *other = nullptr;
  NS::SharedPtr<MTL::CommandQueue> queue;
};

}  // namespace vortex::metal::testing
