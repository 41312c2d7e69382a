#include "artifact/tensor_map.h"
#include "base/fresh_seed.h"

#include <gtest/gtest.h>
#include <random>

namespace {

using namespace vortex::artifact;
namespace size = vortex::size;

TensorMapOf<int64_t> wellFormed() {
  return {.type = ScalarType::F16,
          .rank = 3,
          .address = 4096,
          .extents = {100, 7, 3},
          .byteStrides = {208, 2048},
          .box = {64, 8, 1},
          .swizzleBytes = 128};
}

TEST(TensorMap, ErrorsNameTheNumberThatDecided) {
  EXPECT_EQ(encodingError(wellFormed()), "");
  const auto error = [](auto edit) {
    TensorMapOf<int64_t> map = wellFormed();
    edit(map);
    return encodingError(map);
  };
  EXPECT_EQ(error([](auto& m) { m.address = 4104; }), "its address is 4104, no multiple of 16");
  EXPECT_EQ(error([](auto& m) { m.extents[1] = 0; }), "extent 1 is 0 instead of 1 to 4294967295");
  EXPECT_EQ(error([](auto& m) { m.extents[0] = int64_t{1} << 32; }),
            "extent 0 is 4294967296 instead of 1 to 4294967295");
  EXPECT_EQ(error([](auto& m) { m.byteStrides[0] = 200; }),
            "the stride of dimension 1 is 200 bytes instead of a multiple of 16 from 0 to 1099511627760");
  EXPECT_NE(error([](auto& m) { m.byteStrides[1] = -2048; }), "");
  EXPECT_NE(error([](auto& m) { m.byteStrides[1] = int64_t{1} << 40; }), "");
  EXPECT_EQ(error([](auto& m) { m.byteStrides[1] = 0; }), "");   // broadcast
  EXPECT_EQ(error([](auto& m) { m.byteStrides[1] = 16; }), "");  // need not increase
  EXPECT_EQ(error([](auto& m) { m.extents[0] = (int64_t{1} << 32) - 1; }), "");
}

/// The compiler's condition and the launch's check agree, wherever the numbers come from.
TEST(TensorMap, TheConditionHoldsForWhatIsEncodedAndForNothingElse) {
  const uint64_t seed = vortex::base::freshSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto oneOf = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  size::Arena arena;
  int encoded = 0;
  for (int round = 0; round < 5000; ++round) {
    TensorMapOf<int64_t> map = wellFormed();
    map.rank = 1 + random() % 3;
    map.address = oneOf({0, 16, 4096, 4096, 4096, 8, 4097, -16});
    for (int64_t& extent : map.extents)
      extent = oneOf({1, 2, 100, 100, 4294967295, 4294967295, 0, -1, 4294967296});
    for (int64_t& stride : map.byteStrides)
      stride = oneOf({0, 16, 4096, 1099511627760, 16, 1099511627776, -16, 24, 15});
    // Each expression as a constant, or as an argument whose value is known to the evaluation only.
    std::vector<int64_t> values;
    const auto expr = [&](int64_t value) {
      if (random() % 2 == 0)
        return arena.constant(value);
      values.push_back(value);
      return arena.scalar(static_cast<uint32_t>(values.size() - 1));
    };
    const size::Expr condition = isEncodable(convertMap<size::Expr>(map, expr));
    const int64_t holds = size::evaluate(condition, [&](const size::Node& node) { return values[node.argument]; });
    EXPECT_EQ(holds != 0, encodingError(map).empty()) << encodingError(map);
    encoded += holds != 0;
  }
  EXPECT_GT(encoded, 100);
}

}  // namespace
