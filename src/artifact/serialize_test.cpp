#include "artifact/artifact.h"
#include "artifact/checksum.h"
#include "artifact/validate.h"

#include <gtest/gtest.h>
#include <random>

namespace {

using namespace vortex::artifact;
using vortex::size::Id;
using vortex::size::Op;
namespace size = vortex::size;

Kernel sample() {
  Kernel kernel;
  size::Arena arena;
  size::Table& sizes = kernel.sizes;
  const Id rows = sizes.add(arena.dim(0, 0)), columns = sizes.add(arena.dim(0, 1)), one = sizes.constant(1);
  kernel.name = "softmax";
  kernel.target = "cpu-x86_64-znver3";
  kernel.params = {{.name = "x", .type = ScalarType::BF16, .isTensor = true, .rank = 2, .firstSlot = 0},
                   {.name = "eps", .type = ScalarType::F32, .firstSlot = 5}};
  kernel.results = {
      {.name = "y",
       .type = ScalarType::F32,
       .isTensor = true,
       .rank = 2,
       .access = Access::Write,
       .firstSlot = 6,
       .extents = {rows, columns},
       .zeroFill = true},
      {.name = "sum", .type = ScalarType::F32, .isTensor = true, .rank = 0, .access = Access::Write, .firstSlot = 11}};
  kernel.lets = {{.name = "few", .type = ScalarType::U64, .firstSlot = 12}};
  kernel.temporaries = {{.name = "t",
                         .type = ScalarType::U8,
                         .isTensor = true,
                         .rank = 1,
                         .access = Access::ReadWrite,
                         .firstSlot = 13,
                         .extents = {sizes.add(make(Op::Mul, arena.dim(0, 0), 64))}}};
  kernel.slotCount = 16;
  kernel.constraints = {
      {sizes.add(make(Op::Equal, arena.dim(0, 0), arena.dim(0, 1))), "{0} is not {1}", {rows, columns}}};
  kernel.phases = {{.symbol = "softmax.0",
                    .grid = {rows, one, one},
                    .block = {},
                    .scratchBytes = sizes.constant(4096),
                    .sharedBytes = {},
                    .hardwareThreads = sizes.constant(256),
                    .versions = {{sizes.add(make(Op::Equal, arena.stride(0, 0), 1)), "softmax.0_fast"}},
                    .written = {0},
                    .name = "softmax"},
                   {.symbol = "softmax.1",
                    .grid = {sizes.add(arena.dim(5, 0)), one, one},
                    .block = {one, one, one},
                    .name = "apply"}};
  TensorMap map{.type = ScalarType::BF16, .rank = 2, .box = {64, 128}, .swizzleBytes = 128};
  map.address = sizes.add(arena.address(0));
  map.extents[0] = columns, map.extents[1] = rows;
  map.byteStrides[0] = sizes.add(make(Op::Mul, arena.stride(0, 0), 2));
  kernel.phases[0].maps = {map};
  kernel.phases[0].cluster[0] = 2;
  const Id few = sizes.add(make(Op::Less, arena.dim(0, 0), 4)), isFew = sizes.add(arena.scalar(4));
  kernel.steps = {
      {Let{0, few}},
      {Choose{{{"small", one, isFew, {}}, {"split", few, one, {{Run{0}}, {Run{1}}}}, {"nothing", one, one, {}}}}}};
  kernel.scalarResults = {1};
  kernel.faults = {{"E0701", "index out of range", "a.vx", 3, 7}};
  kernel.notes = {"guard inserted", ""};
  kernel.facts = {{"flops", -1, true}};
  kernel.sharedTensors = {{"tile", "Tensor<f32, [256]> @shared", "a.vx", 4, 4, 9, 1024, 128, 0, true}};
  kernel.code = {1, 2, 3, 0, 255};
  return kernel;
}

TEST(Artifact, SampleIsValid) {
  const auto valid = validate(sample());
  EXPECT_TRUE(valid) << valid.error().message;
}

TEST(Artifact, SerialisedFormReadsBackUnchanged) {
  const std::vector<uint8_t> bytes = serialize(sample());
  const auto again = deserialize(bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(serialize(*again), bytes);
  EXPECT_EQ(again->sizes.rows(), sample().sizes.rows());
  EXPECT_EQ(again->results[0].extents[1], sample().results[0].extents[1]);
  EXPECT_TRUE(again->results[0].zeroFill);
  EXPECT_EQ(again->phases[0].maps[0].box[1], 128u);
  EXPECT_EQ(again->phases[0].maps[0].byteStrides[0], sample().phases[0].maps[0].byteStrides[0]);
  EXPECT_EQ(again->phases[0].cluster[0], 2u);
  EXPECT_EQ(again->faults[0].line, 3u);
  EXPECT_EQ(again->sharedTensors[0].offset, 128u);
  EXPECT_TRUE(again->sharedTensors[0].isCompilers);
  EXPECT_EQ(again->code, sample().code);
  EXPECT_TRUE(deserialize(serialize(Kernel{})));
}

TEST(Artifact, EveryTruncationAndEveryFlippedBitIsAnError) {
  const std::vector<uint8_t> bytes = serialize(sample());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(deserialize({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)})) << size;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = bytes;
    damaged[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(deserialize(damaged)) << bit;
  }
}

/// Damage whose checksum is right: the field reader itself must hold.
TEST(Artifact, RandomPayloadsWithValidChecksumsDoNotCrash) {
  std::mt19937 random(1);
  const std::vector<uint8_t> bytes = serialize(sample());
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> damaged(bytes.begin(), bytes.end() - sizeof(Checksum));
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int edit = 0; edit < edits; ++edit)
      damaged[20 + random() % (damaged.size() - 20)] = static_cast<uint8_t>(random() % 4 == 0 ? 0xff : random());
    const Checksum sum = checksum(damaged);
    damaged.insert(damaged.end(), sum.begin(), sum.end());
    if (const auto kernel = deserialize(damaged)) {
      ++accepted;  // harmless edits: names, facts, code
      EXPECT_TRUE(validate(*kernel));
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Artifact, AnotherVersionIsNamed) {
  std::vector<uint8_t> bytes = serialize(sample());
  for (uint8_t version : {5, 7, 9, 12, 99}) {
    bytes[8] = version;
    EXPECT_EQ(deserialize(bytes).error().message, "the kernel has format version " + std::to_string(version) +
                                                      ", this build reads version 16: build it again");
  }
}

TEST(Artifact, ValidationNamesTheCulprit) {
  const auto message = [](auto edit) {
    Kernel kernel = sample();
    edit(kernel);
    const auto valid = validate(kernel);
    return valid ? std::string("valid") : valid.error().message;
  };
  EXPECT_NE(message([](Kernel& k) { k.params[1].firstSlot = 4; }).find("'eps'"), std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.slotCount = 17; }).find("slotCount is 17"), std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.results[0].extents.pop_back(); }).find("'y'"), std::string::npos);
  EXPECT_NE(message([](Kernel& k) {
              size::Arena arena;
              k.results[0].extents[0] = k.sizes.add(arena.address(5));
            }).find("slot 13"),
            std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.phases[0].grid[0].index = 1000; }).find("grid of phase 'softmax' is row 1000"),
            std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.sizes = size::Table({size::Row{.op = Op::Not}}); }).find("row 0 of its 1 sizes"),
            std::string::npos);
  for (size::Expr (*reads)(size::Arena&) :
       {+[](size::Arena& arena) { return arena.dim(6, 0); }, +[](size::Arena& arena) { return arena.dim(1, 0); },
        +[](size::Arena& arena) { return arena.stride(0, 2); }, +[](size::Arena& arena) { return arena.scalar(0); }})
    EXPECT_NE(message([&](Kernel& k) {
                size::Arena arena;
                k.sizes.add(reads(arena));
              }).find("which it does not have"),
              std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.scalarResults = {2}; }).find("scalar result 2"), std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.temporaries[0].rank = UINT32_MAX; }).find("'t'"), std::string::npos);
  for (uint32_t original : {0u, 1u, 2u})  // a tensor of another type, a scalar, no parameter
    EXPECT_NE(message([&](Kernel& k) { k.temporaries[0].original = original; }).find("'t' cannot stand for parameter"),
              std::string::npos);
  EXPECT_NE(message([&](Kernel& k) { k.results[0].original = 0; }).find("'y' cannot stand for"), std::string::npos);
  EXPECT_NE(message([](Kernel& k) { k.phases[0].symbol.clear(); }).find("no entry symbol"), std::string::npos);
  const auto mapMessage = [&](auto edit) { return message([&](Kernel& k) { edit(k.phases[0].maps[0]); }); };
  const std::string map = "tensor map 0 of phase 'softmax'";
  for (const auto& [text, part] : std::initializer_list<std::pair<std::string, std::string>>{
           {mapMessage([](TensorMap& m) { m.rank = 0; }), "it has 0 dimensions"},
           {mapMessage([](TensorMap& m) { m.rank = 6; }), "it has 6 dimensions"},
           {mapMessage([](TensorMap& m) { m.box[1] = 0; }), "0 elements in dimension 1"},
           {mapMessage([](TensorMap& m) { m.box[1] = 257; }), "257 elements in dimension 1"},
           {mapMessage([](TensorMap& m) { m.box[0] = 4; }), "8 bytes, no multiple of 16"},
           {mapMessage([](TensorMap& m) { m.box[0] = 72; }), "144 bytes, its swizzle 128"},
           {mapMessage([](TensorMap& m) { m.swizzleBytes = 16; }), "a swizzle of 16 bytes"},
           {mapMessage([](TensorMap& m) { m.type = static_cast<ScalarType>(77); }), "no known type"},
           {mapMessage([](TensorMap& m) { m.roundToTf32 = true; }), "it rounds bf16 to tf32"},
           {mapMessage([](TensorMap& m) { m.address.index = 500; }), "the address of tensor map 0"},
           {mapMessage([](TensorMap& m) { m.extents[1].index = 500; }), "an extent of tensor map 0"},
           {mapMessage([](TensorMap& m) { m.byteStrides[0].index = 500; }), "a stride of tensor map 0"}}) {
    EXPECT_NE(text.find(map), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  for (auto [x, y] : {std::pair<uint32_t, uint32_t>{0, 1}, {9, 1}, {4, 4}, {1u << 31, 2}})
    EXPECT_NE(
        message([&](Kernel& k) { k.phases[0].cluster[0] = x, k.phases[0].cluster[1] = y; }).find("has clusters of"),
        std::string::npos);
  for (auto edit : {+[](Kernel& k) { k.phases[0].maps.clear(); }, +[](Kernel& k) { k.phases[0].cluster[0] = 1; }})
    EXPECT_NE(message([&](Kernel& k) { edit(k), k.phases[0].hardwareThreads = {}; }).find("no hardware threads"),
              std::string::npos);
}

TEST(Artifact, ScalarTypesHaveTheLanguagesNames) {
  EXPECT_STREQ(name(ScalarType::BF16), "bf16");
  EXPECT_STREQ(name(ScalarType::F8E5M2), "f8e5m2");
  EXPECT_EQ(byteSize(ScalarType::F64), 8u);
  EXPECT_EQ(byteSize(ScalarType::Bool), 1u);
}

}  // namespace
