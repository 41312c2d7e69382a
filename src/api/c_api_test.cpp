#include "vortex/vortex.h"

#include "artifact/artifact.h"
#include "base/file.h"
#include "runtime/hal/conformance_kernels.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace {

std::vector<uint8_t> artifactOf(const char* name) {
  vortex::artifact::Kernel kernel = vortex::hal::conformance::kernelNamed(name);
  const std::string object = *vortex::base::readFile(VORTEX_CONFORMANCE_OBJECT);
  kernel.target = "cpu-x86_64-test";
  kernel.code.assign(object.begin(), object.end());
  return vortex::artifact::serialize(kernel);
}

class CApi : public testing::Test {
protected:
  ~CApi() override {
    vortex_stream_destroy(stream_);
    vortex_device_destroy(device_);
    vortex_runtime_destroy(runtime_);
  }
  vortex_kernel* load(const char* name) {
    const std::vector<uint8_t> bytes = artifactOf(name);
    return vortex_kernel_load(device_, bytes.data(), bytes.size());
  }
  vortex_runtime* runtime_ = vortex_runtime_create();
  vortex_device* device_ = vortex_device_open(runtime_, "cpu");
  vortex_stream* stream_ = vortex_stream_create(device_);
};

TEST_F(CApi, AKernelRunsOnWrittenDataAndItsResultIsRead) {
  EXPECT_STREQ(vortex_device_name(device_), "cpu");
  vortex_kernel* scale = load("scale");
  ASSERT_NE(scale, nullptr) << vortex_last_error();
  EXPECT_STREQ(vortex_kernel_name(scale), "scale");
  const int64_t extents[] = {1000};
  vortex_tensor* x = vortex_tensor_create(device_, VORTEX_F32, extents, 1);
  ASSERT_NE(x, nullptr) << vortex_last_error();
  EXPECT_EQ(vortex_tensor_bytes(x), 4000u);
  EXPECT_EQ(vortex_tensor_extent(x, 0), 1000);
  EXPECT_EQ(vortex_tensor_extent(x, 1), -1);
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  ASSERT_EQ(vortex_stream_write(stream_, x, values.data(), 4000), 0) << vortex_last_error();
  const vortex_argument arguments[] = {vortex_of_tensor(x), vortex_of_f32(1.5f)};
  vortex_tensor* y = nullptr;
  ASSERT_EQ(vortex_stream_launch(stream_, scale, arguments, 2, &y, 1), 1) << vortex_last_error();
  EXPECT_EQ(vortex_tensor_type(y), VORTEX_F32);
  EXPECT_EQ(vortex_tensor_rank(y), 1u);
  vortex_tensor_destroy(x);  // in any order
  vortex_kernel_destroy(scale);
  std::vector<float> back(1000);
  ASSERT_EQ(vortex_stream_read(stream_, y, back.data(), 4000), 0) << vortex_last_error();
  EXPECT_EQ(vortex_stream_synchronize(stream_), 0);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(back[i], values[i] * 1.5f);
  vortex_tensor_destroy(y);
}

TEST_F(CApi, NumbersThatTheirTypeCannotHoldAreRefused) {
  vortex_kernel* scale = load("scale");
  const int64_t extents[] = {1};
  vortex_tensor* x = vortex_tensor_create(device_, VORTEX_F32, extents, 1);
  const auto message = [&](vortex_argument factor) {
    const vortex_argument arguments[] = {vortex_of_tensor(x), factor};
    EXPECT_LT(vortex_stream_launch(stream_, scale, arguments, 2, nullptr, 0), 0);
    return std::string(vortex_last_error());
  };
  EXPECT_EQ(message(vortex_of_integer(VORTEX_I8, 200)), "an argument's bits are no i8 extended to 64 bits: 200");
  EXPECT_NE(message(vortex_of_integer(VORTEX_I8, -128)).find("given a scalar i8"), std::string::npos);
  EXPECT_NE(message(vortex_of_integer(VORTEX_U8, 256)).find("bits that no u8 has"), std::string::npos);
  EXPECT_NE(message(vortex_of_integer(VORTEX_U8, -1)).find("bits that no u8 has"), std::string::npos);
  EXPECT_NE(message(vortex_of_integer(VORTEX_BOOL, 2)).find("bits that no bool has"), std::string::npos);
  vortex_argument unknown = vortex_of_f32(1);
  const int number = 256 + VORTEX_F32;
  std::memcpy(&unknown.type, &number, sizeof number);
  EXPECT_EQ(message(unknown), "an argument of an unknown type: 269");
  vortex_tensor_destroy(x);
  vortex_kernel_destroy(scale);
}

TEST_F(CApi, ARecordingIsReplayedAndUpdated) {
  vortex_kernel* scale = load("scale");
  const int64_t extents[] = {2};
  vortex_tensor* x = vortex_tensor_create(device_, VORTEX_F32, extents, 1);
  const float values[] = {1, 2};
  ASSERT_EQ(vortex_stream_begin_recording(stream_), 0);
  ASSERT_EQ(vortex_stream_write(stream_, x, values, 8), 0);
  const vortex_argument arguments[] = {vortex_of_tensor(x), vortex_of_f32(3)};
  vortex_tensor* y = nullptr;
  ASSERT_EQ(vortex_stream_launch(stream_, scale, arguments, 2, &y, 1), 1) << vortex_last_error();
  EXPECT_LT(vortex_stream_synchronize(stream_), 0);
  vortex_graph* graph = vortex_stream_end_recording(stream_);
  ASSERT_NE(graph, nullptr) << vortex_last_error();
  EXPECT_EQ(vortex_stream_end_recording(stream_), nullptr);
  float back[2] = {};
  ASSERT_EQ(vortex_stream_replay(stream_, graph), 0) << vortex_last_error();
  ASSERT_EQ(vortex_stream_read(stream_, y, back, 8), 0);
  EXPECT_EQ(back[1], 6.0f);
  const vortex_argument others[] = {vortex_of_tensor(x), vortex_of_f32(5)};
  vortex_tensor* z = nullptr;
  EXPECT_LT(vortex_graph_update(graph, 1, scale, others, 2, &z, 1), 0);
  ASSERT_EQ(vortex_graph_update(graph, 0, scale, others, 2, &z, 1), 1) << vortex_last_error();
  ASSERT_EQ(vortex_stream_replay(stream_, graph), 0);
  ASSERT_EQ(vortex_stream_read(stream_, z, back, 8), 0);
  EXPECT_EQ(back[1], 10.0f);
  vortex_tensor_destroy(x);
  vortex_tensor_destroy(y);
  vortex_tensor_destroy(z);
  vortex_graph_destroy(graph);
  vortex_kernel_destroy(scale);
}

TEST_F(CApi, FailuresLeaveAMessage) {
  const auto mentions = [](const char* part) {
    EXPECT_NE(std::string(vortex_last_error()).find(part), std::string::npos) << vortex_last_error();
  };
  EXPECT_EQ(vortex_device_open(runtime_, "abacus"), nullptr);
  mentions("there is no device 'abacus'");
  EXPECT_EQ(vortex_kernel_load(device_, "junk", 4), nullptr);
  mentions("not a Vortex kernel");
  EXPECT_EQ(vortex_kernel_load_file(device_, "/nonexistent.vxk"), nullptr);
  mentions("/nonexistent.vxk");
  const int64_t negative[] = {-1};
  EXPECT_EQ(vortex_tensor_create(device_, VORTEX_F32, negative, 1), nullptr);
  mentions("negative extent -1");
  EXPECT_EQ(vortex_last_error_kind(), VORTEX_FAILED);
  const int64_t most[] = {int64_t{1} << 44};
  EXPECT_EQ(vortex_tensor_create(device_, VORTEX_F32, most, 1), nullptr);
  mentions("out of memory");
  EXPECT_EQ(vortex_last_error_kind(), VORTEX_OUT_OF_MEMORY);
  EXPECT_EQ(vortex_tensor_create(device_, static_cast<vortex_dtype>(99), nullptr, 0), nullptr);
  mentions("unknown element type: 99");
  vortex_kernel* scale = load("scale");
  EXPECT_LT(vortex_stream_launch(stream_, scale, nullptr, 0, nullptr, 0), 0);
  mentions("takes 2 arguments, 0 given");
  const vortex_argument wrong[] = {vortex_of_integer(VORTEX_I32, 1), vortex_of_f64(1)};
  EXPECT_LT(vortex_stream_launch(stream_, scale, wrong, 2, nullptr, 0), 0);
  mentions("argument 'x' is a tensor of f32");
  const int64_t one[] = {1};
  vortex_tensor* x = vortex_tensor_create(device_, VORTEX_F32, one, 1);
  float value = 0;
  EXPECT_LT(vortex_stream_read(stream_, x, &value, 3), 0);
  mentions("the tensor has 4 bytes, the host memory 3");
  vortex_tensor_destroy(x);
  vortex_tensor_destroy(nullptr);
  vortex_kernel_destroy(scale);
}

TEST_F(CApi, AKernelsOwnFailureIsReportedBySynchronize) {
  vortex_kernel* check = load("check");
  const int64_t extents[] = {2};
  vortex_tensor* x = vortex_tensor_create(device_, VORTEX_I32, extents, 1);
  const int32_t values[] = {1, -1};
  ASSERT_EQ(vortex_stream_write(stream_, x, values, 8), 0);
  const vortex_argument argument = vortex_of_tensor(x);
  ASSERT_EQ(vortex_stream_launch(stream_, check, &argument, 1, nullptr, 0), 1) << vortex_last_error();
  EXPECT_LT(vortex_stream_synchronize(stream_), 0);
  EXPECT_STREQ(vortex_last_error(), "kernel 'check' stopped: E0701: value below zero (check.vx:12:5)");
  EXPECT_EQ(vortex_last_error_kind(), VORTEX_FAULT);
  vortex_tensor_destroy(x);
  vortex_kernel_destroy(check);
}

}  // namespace
