#include "base/fresh_seed.h"
#include "msl/record.h"

#include <gtest/gtest.h>

#include <random>

namespace vortex::msl {
namespace {

Response sample() {
  Response response;
  response.kernels = {
      {"gemm",
       {{ParameterKind::Buffer, "sizes", "constant uint3 &", 3, "", "has_sizes", 12, {"x.metal", 40}, 16},
        {ParameterKind::Input, "i", "uint", 0, "thread_position_in_grid", "", 0, {}}},
       512,
       {"x.metal", 12}}};
  response.files = {"/a/b.metal", "/a/c.h"};
  response.constants = {{"has_sizes", 7}};
  response.buffers = {{3, "i32", 4, false}, {0, "f32", 4, true}};
  response.staticThreadgroupBytes = 4096;
  response.module = std::string("module {\0}", 10);
  response.problems = {{"E0901", "no", "x.metal", 3, 5, {{"see here", "y.metal", 9}}}};
  return response;
}

TEST(Record, IsReadAsItWasWritten) {
  const std::vector<uint8_t> bytes = toBytes(sample());
  const std::optional<Response> read = fromBytes(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(toBytes(*read), bytes);
  EXPECT_EQ(read->kernels[0].parameters[0].leastBytes, 12u);
  EXPECT_EQ(read->kernels[0].parameters[0].elementBytes, 16u);
  EXPECT_EQ(read->kernels[0].parameters[0].place.offset, 40u);
  EXPECT_EQ(read->kernels[0].place.file, "x.metal");
  EXPECT_EQ(read->constants[0].name, "has_sizes");
  EXPECT_TRUE(read->buffers[1].isWritten);
  EXPECT_EQ(read->module.size(), 10u);
  EXPECT_EQ(read->problems[0].notes[0].offset, 9u);
}

TEST(Record, OfAnyLengthThatIsCutOffIsNothing) {
  const std::vector<uint8_t> bytes = toBytes(sample());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(fromBytes({bytes.data(), length})) << length;
}

TEST(Record, ThatIsDamagedDoesNotCrash) {
  std::mt19937 random(base::freshSeed());
  const std::vector<uint8_t> bytes = toBytes(sample());
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
    (void)fromBytes(damaged);
  }
}

}  // namespace
}  // namespace vortex::msl
