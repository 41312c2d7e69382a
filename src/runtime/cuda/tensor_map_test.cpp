// Tensor maps and clusters of launches, on the stand-in.
#include "runtime/cuda/tensor_map.h"

#include "base/fresh_seed.h"
#include "runtime/cuda/testdata/fake_maps.h"
#include "runtime/cuda/testdata/stand_in.h"

#include <cstring>
#include <random>

namespace vortex::cuda {

using artifact::ScalarType;
using artifact::TensorMapOf;
using testing::StandIn;

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace {

constexpr uint32_t kBoxRows = 4, kBoxColumns = 8;

TensorMapOf<size::Expr> matrixMap(size::Arena& arena, uint32_t argument) {
  return {.type = ScalarType::F16,
          .rank = 2,
          .address = arena.address(argument),
          .extents = {arena.dim(argument, 1), arena.dim(argument, 0)},
          .byteStrides = {size::make(size::Op::Mul, arena.stride(argument, 0), 2)},
          .box = {kBoxColumns, kBoxRows}};
}

/// `copy_boxes(x, y)`: y = x in blocks of one box, both f16 matrices.
std::shared_ptr<artifact::Kernel> boxKernel() {
  auto kernel = std::make_shared<artifact::Kernel>();
  size::Arena arena;
  kernel->name = "copy_boxes";
  kernel->params = {{.name = "x", .type = ScalarType::F16, .isTensor = true, .rank = 2, .firstSlot = 0},
                    {.name = "y",
                     .type = ScalarType::F16,
                     .isTensor = true,
                     .rank = 2,
                     .access = artifact::Access::Write,
                     .firstSlot = 5}};
  kernel->slotCount = 10;
  const auto add = [&](size::Expr expr) { return kernel->sizes.add(expr); };
  const auto boxes = [&](uint32_t dim, uint32_t box) {
    return add(size::make(size::Op::CeilDiv, arena.dim(0, dim), box));
  };
  const size::Id one = kernel->sizes.constant(1);
  artifact::Phase phase{.symbol = "copy_boxes",
                        .grid = {boxes(1, kBoxColumns), boxes(0, kBoxRows), one},
                        .block = {one, one, one},
                        .hardwareThreads = kernel->sizes.constant(128),
                        .name = "copy"};
  for (uint32_t argument : {0, 1})
    phase.maps.push_back(artifact::convertMap<size::Id>(matrixMap(arena, argument), add));
  kernel->phases = {phase};
  kernel->steps = artifact::inOrder(1);
  kernel->faults = {{artifact::kDeviceStopped, "", "copy.vx", 1, 1}};
  kernel->target = "sm_90";
  const std::string ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n\n.visible .entry copy_boxes(\n"
                          "\t.param .align 64 .b8 copy_boxes_param_0[384]\n)\n{\n\tret;\n}\n";
  kernel->code.assign(ptx.begin(), ptx.end());
  return kernel;
}

std::shared_ptr<artifact::Kernel> clusterKernel(uint32_t blocks, int64_t grid) {
  auto kernel = testing::bareKernel("sparse");
  kernel->phases[0].cluster[0] = blocks;
  kernel->phases[0].grid[0] = kernel->sizes.constant(grid);
  return kernel;
}

class CudaMaps : public ::testing::Test {
protected:
  ~CudaMaps() override { standIn_.reset(); }

  static const StandIn& fresh() {
    StandIn::get().reset();
    return StandIn::get();
  }

  /// A matrix in poisoned memory, with rows `pitch` elements apart and `gap` elements before it.
  struct Matrix {
    hal::Tensor tensor;
    std::vector<uint16_t> all;  ///< what the whole buffer holds
    size_t at(int64_t row, int64_t column) const {
      return tensor.byteOffset / 2 + static_cast<size_t>(row * tensor.strides[0] + column);
    }
  };
  Matrix matrix(int64_t rows, int64_t columns, int64_t pitch, int64_t gap = 0) {
    Matrix made;
    made.all.resize(static_cast<size_t>(gap + rows * pitch + 8));
    for (uint16_t& value : made.all)
      value = static_cast<uint16_t>(random_());
    made.tensor = {device_->allocate(made.all.size() * 2).value(),
                   static_cast<uint64_t>(gap) * 2,
                   ScalarType::F16,
                   {rows, columns},
                   {pitch, 1}};
    stream_->write(made.tensor.buffer, 0, made.all.data(), made.all.size() * 2).value();
    return made;
  }
  std::vector<uint16_t> contents(const Matrix& matrix) {
    std::vector<uint16_t> values(matrix.all.size());
    stream_->read(values.data(), matrix.tensor.buffer, 0, values.size() * 2).value();
    return values;
  }
  /// What `to` holds after the kernel: `from` inside of it, what was there before everywhere else.
  static std::vector<uint16_t> copied(const Matrix& from, const Matrix& to) {
    std::vector<uint16_t> expected = to.all;
    for (int64_t row = 0; row < to.tensor.extents[0]; ++row)
      for (int64_t column = 0; column < to.tensor.extents[1]; ++column)
        expected[to.at(row, column)] = from.all[from.at(row, column)];
    return expected;
  }
  hal::Launch prepare(const hal::KernelRef& kernel, const Matrix& from, const Matrix& to) {
    return hal::prepare(*device_, kernel, std::vector<hal::Argument>{from.tensor, to.tensor}).value();
  }
  std::string launchError(const std::shared_ptr<artifact::Kernel>& kernel, std::vector<hal::Argument> arguments = {}) {
    const auto loaded = device_->load(kernel);
    if (!loaded)
      return loaded.error().message;
    const auto launched = hal::launch(*device_, *stream_, *loaded, arguments);
    return launched ? "no error" : launched.error().message;
  }

  const StandIn& standIn_ = fresh();
  hal::DeviceRef device_ = testing::openDevice(false).value();
  hal::StreamRef stream_ = device_->createStream().value();
  std::mt19937_64 random_{base::freshSeed()};
};

}  // namespace

TEST_F(CudaMaps, AreEncodedOncePerPreparedLaunchAndMoveBoxesWithRaggedEdges) {
  const hal::KernelRef kernel = device_->load(boxKernel()).value();
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {4, 8}, {5, 9}, {13, 31}}) {
    const Matrix x = matrix(rows, columns, 48, 16), y = matrix(rows, columns, 32);
    const int64_t before = standIn_.count("cuTensorMapEncodeTiled");
    const hal::Launch launch = prepare(kernel, x, y);
    for (int round = 0; round < 3; ++round)
      ASSERT_TRUE(stream_->submit(launch));
    EXPECT_EQ(contents(y), copied(x, y)) << rows << " x " << columns;
    EXPECT_EQ(standIn_.count("cuTensorMapEncodeTiled"), before + 2);
  }
}

TEST_F(CudaMaps, TheDriverIsToldWhatTheMapSays) {
  const Matrix x = matrix(5, 9, 48), y = matrix(5, 9, 32);
  const hal::Launch launch = prepare(device_->load(boxKernel()).value(), x, y);
  ASSERT_EQ(launch.phases.at(0).encodedMaps.size(), 2u);
  fake_cuda::TensorMap map;
  std::memcpy(&map, launch.phases[0].encodedMaps[0].bytes.data(), sizeof map);
  EXPECT_EQ(map.address, x.tensor.buffer->address());
  EXPECT_EQ(map.extents[0], 9u);
  EXPECT_EQ(map.extents[1], 5u);
  EXPECT_EQ(map.strides[1], 96u);
  EXPECT_EQ(map.box[0], kBoxColumns);
  EXPECT_EQ(map.box[1], kBoxRows);
  EXPECT_EQ(map.type, 6);  // CU_TENSOR_MAP_DATA_TYPE_FLOAT16
  EXPECT_EQ(map.swizzle, 0);
}

TEST_F(CudaMaps, TravelInGraphsAndAreReplacedWithTheirLaunch) {
  const hal::KernelRef kernel = device_->load(boxKernel()).value();
  const Matrix a = matrix(13, 31, 48), b = matrix(13, 31, 32), c = matrix(13, 31, 64), d = matrix(7, 16, 24);
  const Matrix e = matrix(7, 16, 16);
  ASSERT_TRUE(stream_->beginRecording());
  ASSERT_TRUE(stream_->submit(prepare(kernel, a, b)));
  ASSERT_TRUE(stream_->submit(prepare(kernel, b, c)));
  const hal::GraphRef graph = stream_->endRecording().value();
  EXPECT_EQ(contents(b), b.all);
  ASSERT_TRUE(stream_->replay(graph));
  EXPECT_EQ(contents(c), copied(a, c));
  const int64_t encoded = standIn_.count("cuTensorMapEncodeTiled");
  ASSERT_TRUE(stream_->replay(graph));
  EXPECT_EQ(standIn_.count("cuTensorMapEncodeTiled"), encoded);
  ASSERT_TRUE(graph->update(1, prepare(kernel, d, e)));
  ASSERT_TRUE(stream_->replay(graph));
  EXPECT_EQ(contents(e), copied(d, e));
}

TEST_F(CudaMaps, WhatCannotBeEncodedIsALaunchErrorWithTheNumber) {
  const Matrix y = matrix(5, 9, 32);
  const auto error = [&](const hal::Tensor& x) { return launchError(boxKernel(), {x, y.tensor}); };
  EXPECT_MENTIONS(error(matrix(5, 9, 36).tensor),
                  "cannot launch kernel 'copy_boxes': phase 'copy' cannot use its tensor "
                  "map 0: the stride of dimension 1 is 72 bytes");
  EXPECT_MENTIONS(error(matrix(5, 9, 48, 4).tensor), "tensor map 0: its address is ");
  hal::Tensor reversed = matrix(5, 9, 48).tensor;
  reversed.byteOffset = 4 * 96, reversed.strides[0] = -48;
  EXPECT_MENTIONS(error(reversed), "the stride of dimension 1 is -96 bytes");
  hal::Tensor row = matrix(5, 9, 48).tensor;
  row.strides[0] = 0;  // one row, five times
  EXPECT_EQ(error(row), "no error");
  // No phase, no map: a launch without work needs none.
  hal::Tensor none = matrix(5, 9, 48).tensor;
  none.extents[0] = 0;
  EXPECT_EQ(error(none), "no error");
  standIn_.set("fail:cuTensorMapEncodeTiled", 1);
  EXPECT_MENTIONS(error(matrix(5, 9, 48).tensor), "phase 'copy', tensor map 0: the driver refuses it");
}

/// Two programs that know the rules, written apart.
TEST_F(CudaMaps, OurRulesAreTheDrivers) {
  const uint64_t seed = random_();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto oneOf = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  const ContextRef context = [] {
    ::setenv("VORTEX_LIBCUDA", StandIn::path().c_str(), 1);
    return Gpu::open(openApi().api, 0).value()->context().value();
  }();
  const Enter enter(*context);
  int encoded = 0;
  for (int round = 0; round < 5000; ++round) {
    TensorMapOf<int64_t> map{.type = static_cast<ScalarType>(random() % 15),
                             .roundToTf32 = random() % 16 == 0,
                             .rank = static_cast<uint32_t>(oneOf({1, 2, 3, 4, 5, 5, 2, 3, 0, 6})),
                             .address = oneOf({0, 4096, 4096, 4112, 4104})};
    for (int64_t& extent : map.extents)
      extent = oneOf({1, 3, 1000, 1000, 77, 64, 8, 5, 4294967295, 0, 4294967296});
    for (int64_t& stride : map.byteStrides)
      stride = oneOf({0, 16, 32, 4096, 4096, 4096, 1099511627760, 1099511627776, -16, 8});
    for (uint32_t& box : map.box)
      box = static_cast<uint32_t>(oneOf({1, 2, 16, 16, 32, 64, 256, 8, 8, 4, 0, 257}));
    map.swizzleBytes = static_cast<uint32_t>(oneOf({0, 32, 64, 128, 128, 128}));
    const std::string error = encodingError(map);
    if (map.rank > artifact::kMaxMapRank)
      continue;  // nothing to hand over
    if (map.roundToTf32 && map.type != ScalarType::F32) {
      EXPECT_NE(error, "");  // the driver never hears of the type
      continue;
    }
    const bool isEncoded = bool(encode(*context, map));
    EXPECT_EQ(isEncoded, error.empty()) << error;
    encoded += isEncoded;
  }
  EXPECT_GT(encoded, 20);
}

TEST_F(CudaMaps, AMapBeyondItsAllocationStopsTheStandIn) {
  auto kernel = boxKernel();
  kernel->phases[0].maps[0].extents[1] = kernel->sizes.constant(1000);
  const Matrix x = matrix(5, 9, 48), y = matrix(5, 9, 32);
  ASSERT_EQ(launchError(kernel, {x.tensor, y.tensor}), "no error");
  EXPECT_FALSE(stream_->synchronize());
}

TEST_F(CudaMaps, AnEntryPointWhoseParameterIsNotAlignedIsRefused) {
  auto kernel = boxKernel();
  std::string ptx(kernel->code.begin(), kernel->code.end());
  ptx.replace(ptx.find(".align 64"), 9, ".align 8");
  kernel->code.assign(ptx.begin(), ptx.end());
  const Matrix x = matrix(5, 9, 48), y = matrix(5, 9, 32);
  EXPECT_MENTIONS(launchError(kernel, {x.tensor, y.tensor}), "CUDA_ERROR_INVALID_VALUE");
}

TEST_F(CudaMaps, MoreMapsThanAParameterHoldsAreRefused) {
  auto kernel = boxKernel();
  kernel->phases[0].maps.resize(31, kernel->phases[0].maps[0]);
  EXPECT_TRUE(device_->load(kernel));  // 128 + 31 * 128 = 4096
  kernel->phases[0].maps.resize(32, kernel->phases[0].maps[0]);
  EXPECT_MENTIONS(device_->load(kernel).error().message, "its arguments take 4224 bytes, a launch can carry 4096");
}

TEST_F(CudaMaps, ClustersAreLaunchedAndRecorded) {
  const hal::KernelRef kernel = device_->load(clusterKernel(2, 6)).value();
  const hal::Launch launch = hal::prepare(*device_, kernel, {}).value();
  ASSERT_TRUE(stream_->submit(launch));
  EXPECT_EQ(standIn_.count("cuLaunchKernelEx"), 1);
  EXPECT_EQ(standIn_.count("cuLaunchKernel"), 0);
  ASSERT_TRUE(stream_->beginRecording());
  ASSERT_TRUE(stream_->submit(launch));
  const hal::GraphRef graph = stream_->endRecording().value();
  ASSERT_TRUE(stream_->replay(graph));
  EXPECT_EQ(standIn_.count("cuLaunchKernelEx"), 2);
  EXPECT_TRUE(stream_->synchronize());
}

TEST_F(CudaMaps, BlocksThatMustRunTogetherAreLaunchedSoOrRefusedWithBothNumbers) {
  auto together = [](int64_t grid) {
    auto kernel = clusterKernel(1, grid);
    kernel->phases[0].isCooperative = true;
    return kernel;
  };
  EXPECT_EQ(launchError(together(8)), "no error");
  EXPECT_EQ(standIn_.count("cuLaunchKernelEx"), 1);
  EXPECT_EQ(standIn_.count("cuLaunchKernel"), 0);
  EXPECT_MENTIONS(launchError(together(9)), "has 9 blocks that must run at the same time (@launch(cooperative)); "
                                            "'cuda:0' runs at most 8 of them");
  EXPECT_EQ(standIn_.count("cuLaunchKernelEx"), 1);
  standIn_.set("fail:cuOccupancyMaxActiveBlocksPerMultiprocessor", 1);
  EXPECT_MENTIONS(launchError(together(8)), "the driver does not tell how many blocks run at the same time");
}

TEST_F(CudaMaps, ClustersThatDoNotFitAreErrorsWithTheNumbers) {
  EXPECT_MENTIONS(launchError(clusterKernel(2, 7)), "has 7 x 1 x 1 blocks, no multiple of its clusters of 2 x 1 x 1");
  EXPECT_MENTIONS(launchError(clusterKernel(9, 9)), "clusters of 9 x 1 x 1 blocks instead of 1 to 8");
  standIn_.set("fail:cuLaunchKernelEx", 912);
  EXPECT_MENTIONS(launchError(clusterKernel(4, 8)),
                  "8 x 1 x 1 blocks of 1 threads in clusters of 4 x 1 x 1 and 0 bytes "
                  "of shared memory: the driver refuses it: "
                  "CUDA_ERROR_INVALID_CLUSTER_SIZE");
  EXPECT_EQ(launchError(clusterKernel(4, 8)), "no error");
}

TEST_F(CudaMaps, ResidentClustersAreAskedForOnceAndReachTheKernelAsASlot) {
  standIn_.set("cores", 132);
  const hal::DeviceRef device = testing::openDevice(false).value();
  for (auto [blocks, count] : {std::pair<uint32_t, uint32_t>{1, 132}, {2, 66}, {4, 33}, {8, 16}, {4, 33}})
    EXPECT_EQ(device->residentClusters(blocks).value(), count);
  EXPECT_EQ(standIn_.count("cuOccupancyMaxActiveClusters"), 3);
  auto kernel = clusterKernel(2, 2);
  size::Arena arena;
  kernel->lets = {{.name = "workers", .type = ScalarType::U64, .firstSlot = 0},
                  {.name = "clusters8", .type = ScalarType::U64, .firstSlot = 1}};
  kernel->steps = {{artifact::Let{0, kernel->sizes.add(arena.clusters(1))}},
                   {artifact::Let{1, kernel->sizes.add(arena.clusters(8))}},
                   {artifact::Run{0}}};
  kernel->slotCount = 2;
  EXPECT_EQ(hal::prepare(*device, device->load(kernel).value(), {}).value().slots, (std::vector<uint64_t>{132, 16}));
  EXPECT_EQ(standIn_.count("cuOccupancyMaxActiveClusters"), 3);
  standIn_.set("fail:cuOccupancyMaxActiveClusters", 1);
  EXPECT_MENTIONS(device->residentClusters(3).error().message, "how many clusters of 3 blocks 'cuda:0' runs");
  EXPECT_EQ(device->residentClusters(3).value(), 44u);
}

TEST_F(CudaMaps, ASliceOfADeviceAndAnOlderDeviceHaveNoClusters) {
  standIn_.set("cores", 3);
  EXPECT_EQ(testing::openDevice(false).value()->residentClusters(4).value(), 0u);
  EXPECT_EQ(testing::openDevice(false).value()->residentClusters(2).value(), 1u);
  standIn_.set("capability", 80);
  EXPECT_EQ(testing::openDevice(false).value()->residentClusters(2).value(), 0u);
}

/// A driver for CUDA 11.4: everything else works, these are errors that name what is missing.
TEST_F(CudaMaps, ADriverWithoutTheFunctionsNamesThem) {
  const StandIn old = StandIn::load(StandIn::oldPath());
  old.reset();
  old.set("version", 11040);
  device_ = testing::openDevice(false, {.useCache = false}, StandIn::oldPath()).value();
  stream_ = device_->createStream().value();
  EXPECT_EQ(device_->residentClusters(2).value(), 0u);
  EXPECT_EQ(device_->residentClusters(1).value(), 4u);
  EXPECT_EQ(launchError(testing::bareKernel("sparse")), "no error");
  EXPECT_MENTIONS(launchError(clusterKernel(2, 2)),
                  "phase 'sparse' runs in clusters: " + StandIn::oldPath() +
                      " has no function cuLaunchKernelEx: the NVIDIA driver is for CUDA 11.4, one for CUDA 11.8 or "
                      "later is needed");
  EXPECT_EQ(old.count("cuLaunchKernel"), 1);
  auto kernel = boxKernel();
  const Matrix x = matrix(5, 9, 48), y = matrix(5, 9, 32);
  EXPECT_MENTIONS(launchError(kernel, {x.tensor, y.tensor}), "its PTX has version 8.0");
  old.set("version", 12000);  // one that reads the code but cannot encode
  device_ = testing::openDevice(false, {.useCache = false}, StandIn::oldPath()).value();
  stream_ = device_->createStream().value();
  const Matrix x2 = matrix(5, 9, 48), y2 = matrix(5, 9, 32);
  EXPECT_MENTIONS(launchError(kernel, {x2.tensor, y2.tensor}), "phase 'copy', tensor map 0: ");
  EXPECT_MENTIONS(launchError(kernel, {x2.tensor, y2.tensor}), "has no function cuTensorMapEncodeTiled");
  EXPECT_MENTIONS(launchError(kernel, {x2.tensor, y2.tensor}), "one for CUDA 12.0 or later is needed");
}

}  // namespace vortex::cuda
