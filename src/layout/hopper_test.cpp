#include "layout/hopper.h"

#include "base/fresh_seed.h"
#include "layout/fragments.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace vortex::layout {
namespace {

// A layout as the ISA writes it: nested extents and strides of the two indices, in elements, and Swizzle<bits, 4, 3> of the bytes.
struct Canonical {
  unsigned swizzleBits;
  std::vector<std::pair<uint32_t, uint32_t>> across, depth;  ///< (extent, stride), the first varies fastest
  static uint32_t offset(const std::vector<std::pair<uint32_t, uint32_t>>& parts, uint32_t index) {
    uint32_t sum = 0;
    for (const auto& [extent, stride] : parts) {
      sum += index % extent * stride;
      index /= extent;
    }
    return sum;
  }
  uint32_t address(uint32_t start, uint32_t elementBytes, uint32_t acrossAt, uint32_t depthAt) const {
    const uint32_t linear = start + (offset(across, acrossAt) + offset(depth, depthAt)) * elementBytes;
    uint32_t result = linear;
    for (unsigned bit = 0; bit < swizzleBits; ++bit)
      result ^= (linear >> (7 + bit) & 1) << (4 + bit);
    return result;
  }
};

constexpr uint32_t kAny = 1u << 20;

/// The table of canonical layouts; T: elements of 16 bytes.
Canonical canonical(const MatrixDescriptor& descriptor, Major major, uint32_t elementBytes) {
  const uint32_t T = 16 / elementBytes, lbo = descriptor.leadingBytes / elementBytes,
                 sbo = descriptor.strideBytes / elementBytes;
  if (major == Major::Depth) {
    switch (descriptor.swizzleBytes) {
    case 0: return {0, {{8, T}, {kAny, sbo}}, {{T, 1}, {kAny, lbo}}};
    case 32: return {1, {{8, 2 * T}, {kAny, sbo}}, {{T, 1}, {kAny, T}}};
    case 64: return {2, {{8, 4 * T}, {kAny, sbo}}, {{T, 1}, {kAny, T}}};
    default: return {3, {{8, 8 * T}, {kAny, sbo}}, {{T, 1}, {kAny, T}}};
    }
  }
  switch (descriptor.swizzleBytes) {
  case 0: return {0, {{T, 1}, {kAny, sbo}}, {{8, T}, {kAny, lbo}}};
  case 32: return {1, {{T, 1}, {2, T}, {kAny, lbo}}, {{8, 2 * T}, {kAny, sbo}}};
  case 64: return {2, {{T, 1}, {4, T}, {kAny, lbo}}, {{8, 4 * T}, {kAny, sbo}}};
  default: return {3, {{T, 1}, {8, T}, {kAny, lbo}}, {{8, 8 * T}, {kAny, sbo}}};
  }
}

template <typename Visit> void forEachTile(Visit visit) {
  for (uint32_t swizzleBytes : {0, 32, 64, 128})
    for (uint32_t elementBytes : {1, 2, 4})
      for (Major major : {Major::Depth, Major::Across})
        for (uint32_t across : {8, 64, 72, 128, 192, 256})
          for (uint32_t depthBytes : {32, 64, 128, 256}) {
            const OperandTile tile{elementBytes, major, swizzleBytes, across, depthBytes / elementBytes};
            const uint32_t along = major == Major::Depth ? tile.depth : tile.across;
            if ((major == Major::Across && elementBytes != 2) || along % tile.boxColumns() != 0)
              continue;
            visit(tile);
          }
}

TEST(Hopper, MatrixInstructionsReadWhatCopiesWrote) {
  unsigned tiles = 0;
  forEachTile([&](const OperandTile& tile) {
    ++tiles;
    const uint32_t start = 3 * kSwizzleAlignment;
    const uint32_t stepDepth = kMatrixDepthBytes / tile.elementBytes;
    const uint32_t firsts = tile.major == Major::Depth ? 8 : std::max(8u, tile.boxColumns());
    for (uint32_t step = 0; step < tile.steps(); ++step)
      for (uint32_t first = 0; first < tile.across; first += firsts * (1 + first % 3)) {
        const MatrixDescriptor descriptor = tile.descriptor(start, step, first);
        const MatrixDescriptor again = MatrixDescriptor::decode(descriptor.encode());
        const Canonical isa = canonical(again, tile.major, tile.elementBytes);
        for (uint32_t across = first; across < tile.across; ++across)
          for (uint32_t depth = 0; depth < stepDepth; ++depth) {
            const uint32_t read = addressRead(again, tile.major, tile.elementBytes, across - first, depth);
            ASSERT_EQ(read, start + tile.place(across, step * stepDepth + depth))
                << tile.swizzleBytes << " " << tile.elementBytes << " " << tile.across << " " << tile.depth << " step "
                << step << " from " << first << " at " << across << ", " << depth;
            ASSERT_EQ(read, isa.address(again.address, tile.elementBytes, across - first, depth));
          }
      }
  });
  EXPECT_GT(tiles, 100u);
}

/// Against the ISA's picture of a copied box: rows of the swizzle's width, one after the other, whose 16-byte pieces are exchanged by
/// the row: all eight in eight rows, four in every two rows, two in every four.
TEST(Hopper, BoxesHoldEveryElementOnceAndRowsKeepTheirPieces) {
  for (uint32_t swizzleBytes : {0, 32, 64, 128})
    for (uint32_t elementBytes : {1, 2, 4, 8})
      for (uint32_t rows : {1, 8, 13, 256}) {
        const uint32_t columns = (swizzleBytes ? swizzleBytes : 48) / elementBytes, box[] = {columns, rows, 2};
        std::map<uint32_t, int> used;
        for (uint32_t layer = 0; layer < 2; ++layer)
          for (uint32_t row = 0; row < rows; ++row)
            for (uint32_t column = 0; column < columns; ++column) {
              const uint32_t at[] = {column, row, layer};
              const uint32_t place = placeInBox(box, elementBytes, swizzleBytes, at);
              EXPECT_EQ(used[place]++, 0);
              EXPECT_EQ(place % elementBytes, 0u);
              const uint32_t line = layer * rows + row, byte = column * elementBytes;
              uint32_t piece = byte / 16;
              if (swizzleBytes == 128)
                piece ^= line % 8;
              if (swizzleBytes == 64)
                piece ^= line / 2 % 4;
              if (swizzleBytes == 32)
                piece ^= line / 4 % 2;
              EXPECT_EQ(place, line * columns * elementBytes + piece * 16 + byte % 16);
            }
        EXPECT_LT(used.rbegin()->first, columns * rows * 2 * elementBytes);
      }
}

TEST(Hopper, DescriptorsAreTheBitsOfTheIsa) {
  // The recipe of a 128-byte swizzle along the depth: 8 rows are 1024 bytes.
  const OperandTile depth{.across = 128, .depth = 64};
  EXPECT_EQ(depth.descriptor(0x8400, 0).encode(), uint64_t{1} << 62 | uint64_t{64} << 32 | uint64_t{1} << 16 | 0x840);
  EXPECT_EQ(depth.descriptor(0x8400, 3).encode(), depth.descriptor(0x8400, 0).encode() + 6);
  // Across it: blocks of 64 columns are 8192 bytes apart, 16 steps of the depth 2048.
  const OperandTile across{.major = Major::Across, .across = 256, .depth = 64};
  EXPECT_EQ(across.descriptor(0, 0).encode(), uint64_t{1} << 62 | uint64_t{64} << 32 | uint64_t{512} << 16);
  EXPECT_EQ(across.descriptor(0, 1).encode(), across.descriptor(0, 0).encode() + 128);
  const uint64_t seed = base::freshSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto bytes = [&] { return static_cast<uint32_t>(random() % 0x4000 * 16); };
  for (int round = 0; round < 1000; ++round) {
    const MatrixDescriptor descriptor{bytes(), bytes(), bytes(), std::array{0u, 32u, 64u, 128u}[random() % 4]};
    EXPECT_EQ(MatrixDescriptor::decode(descriptor.encode()), descriptor);
  }
}

// "Register fragments and shared memory matrix layouts" of wgmma, as the formulas stand there; i numbers the elements of a thread.
TEST(Hopper, FragmentsAgreeWithTheFormulasOfThePtxIsa) {
  for (Bits thread = 0; thread < 128; ++thread) {
    const Bits lane = thread % 32, warp = thread / 32, row = 16 * warp + lane / 4;
    for (Bits i = 0; i < 4; ++i)
      EXPECT_EQ(warpgroupAccumulators().apply({.reg = i, .lane = lane, .warp = warp}),
                (std::vector<Bits>{i < 2 ? row : row + 8, lane % 4 * 2 + (i & 1)}));
    for (Bits i = 0; i < 8; ++i)
      EXPECT_EQ(warpgroupA(16).apply({.reg = i, .lane = lane, .warp = warp}),
                (std::vector<Bits>{i / 2 % 2 == 0 ? row : row + 8, lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)}));
    for (Bits i = 0; i < 16; ++i)
      EXPECT_EQ(warpgroupA(8).apply({.reg = i, .lane = lane, .warp = warp}),
                (std::vector<Bits>{i / 4 % 2 == 0 ? row : row + 8, lane % 4 * 4 + (i & 3) + (i < 8 ? 0 : 16)}));
    for (Bits i = 0; i < 4; ++i)
      EXPECT_EQ(warpgroupA(32).apply({.reg = i, .lane = lane, .warp = warp}),
                (std::vector<Bits>{i % 2 == 0 ? row : row + 8, lane % 4 + (i < 2 ? 0 : 4)}));
  }
  for (const Layout& layout : {warpgroupAccumulators(), warpgroupA(8), warpgroupA(16), warpgroupA(32)})
    EXPECT_TRUE(layout.isInjective() && layout.isSurjective()) << layout.str();
}

/// What lets attention hand the weights of one product to the next without a shuffle.
TEST(Hopper, SixteenColumnsOfAccumulatorsAreAFragmentOfA) {
  EXPECT_EQ(product(warpgroupAccumulators(), Layout({0, 1}).unit(In::Register, 1, 1)), warpgroupA(16));
}

}  // namespace
}  // namespace vortex::layout
