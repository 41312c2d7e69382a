#include "metile/unwritten.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex;
using namespace vortex::metile;

constexpr const char* kOfLanes = "kernel k @ 0 1 0 1 5\nthreads 64\nptr x f32 1 r\nptr out f32 1 w\nint n\n";
constexpr const char* kLoadOfAll = "%9 load t0 %1 -\nstore p1 %1 %9 -\n";

/// Of a kernel in which t0 has 64 elements, and %1 is the lane: the shared memory that may be read before it is written.
std::set<int32_t> unwritten(const std::string& ops) {
  source::SourceManager sources;
  const std::vector<source::FileId> files = {sources.addText("k.py", "first\n")};
  const Result<Trace> trace =
      parseTrace(std::string(kOfLanes) + "%0 shared i64 sf32 i0 s\n%1 tid\n%2 param p2\n" + ops, files, sources);
  if (!trace) {
    ADD_FAILURE() << trace.error().message;
    return {-1};
  }
  return readUnwritten(*trace, inferKinds(*trace));
}

const std::set<int32_t> kNothing, kFirst = {0};

TEST(UnwrittenTest, WhatAllLanesStoreIsWritten) {
  EXPECT_EQ(unwritten(std::string("store t0 %1 f1.0 -\nbarrier\n") + kLoadOfAll), kNothing);
  EXPECT_EQ(unwritten(std::string("%3 sub i63 %1\nstore t0 %3 f1.0 -\nbarrier\n") + kLoadOfAll), kNothing);
  EXPECT_EQ(unwritten(std::string("%3 xor %1 i5\nstore t0 %3 f1.0 -\nbarrier\n") + kLoadOfAll), kNothing);
  EXPECT_EQ(unwritten(std::string("%3 lt %1 i64\nstore t0 %1 f1.0 %3\nbarrier\n") + kLoadOfAll), kNothing);
}

TEST(UnwrittenTest, WhatSomeLanesStoreIsNot) {
  EXPECT_EQ(unwritten(std::string("%3 rem %1 i2\n%4 eq %3 i0\nstore t0 %1 f1.0 %4\nbarrier\n") + kLoadOfAll), kFirst);
  EXPECT_EQ(unwritten(std::string("%3 div %1 i2\nstore t0 %3 f1.0 -\nbarrier\n") + kLoadOfAll), kFirst);
  EXPECT_EQ(unwritten(std::string("%3 add %1 i1\nstore t0 %3 f1.0 -\nbarrier\n") + kLoadOfAll), kFirst);
  EXPECT_EQ(unwritten(std::string("%3 lt %1 %2\nstore t0 %1 f1.0 %3\nbarrier\n") + kLoadOfAll), kFirst);
  EXPECT_EQ(unwritten(std::string("%3 load p0 %1 -\n%4 cast %3 si32\nstore t0 %4 f1.0 -\nbarrier\n") + kLoadOfAll),
            kFirst);
}

TEST(UnwrittenTest, LoadsOfTheSameElementsAreNoReadOfOthers) {
  EXPECT_EQ(unwritten("%3 lt %1 i8\nstore t0 %1 f1.0 %3\nbarrier\n%9 load t0 %1 %3\nstore p1 %1 %9 -\n"), kNothing);
  EXPECT_EQ(unwritten("%3 lt %1 i8\nstore t0 %1 f1.0 %3\nbarrier\n%4 le %1 i8\n%9 load t0 %1 %4\nstore p1 %1 %9 -\n"),
            kFirst);
  EXPECT_EQ(unwritten("store t0 i3 f1.0 -\nbarrier\n%9 load t0 i3 -\nstore p1 %1 %9 -\n"), kNothing);
}

TEST(UnwrittenTest, OutsideThereIsNothingToRead) {
  EXPECT_EQ(unwritten("store t0 %1 f1.0 -\nbarrier\n%3 mul %1 i2\n%9 load t0 %3 -\nstore p1 %1 %9 -\n"), kNothing);
}

TEST(UnwrittenTest, RoundsOfLoopsAreFollowed) {
  EXPECT_EQ(unwritten(std::string("%3 eq %1 i0\nloop %5 i0 i64 i1\nstore t0 %5 f1.0 %3\nend\nbarrier\n") + kLoadOfAll),
            kNothing);
  EXPECT_EQ(unwritten(std::string("%3 eq %1 i0\nloop %5 i0 i63 i1\nstore t0 %5 f1.0 %3\nend\nbarrier\n") + kLoadOfAll),
            kFirst);
  EXPECT_EQ(
      unwritten(std::string("%3 eq %1 i0\nloop %5 i63 i-1 i-1\nstore t0 %5 f1.0 %3\nend\nbarrier\n") + kLoadOfAll),
      kNothing);
  EXPECT_EQ(unwritten(std::string("loop %5 %1 i64 i32\nstore t0 %5 f1.0 -\nend\nbarrier\n") + kLoadOfAll), kNothing);
  EXPECT_EQ(unwritten(std::string("%3 add %1 i1\nloop %5 %3 i64 i32\nstore t0 %5 f1.0 -\nend\nbarrier\n") + kLoadOfAll),
            kFirst);
}

TEST(UnwrittenTest, LoopsThatMayNotRunWriteNothing) {
  EXPECT_EQ(unwritten(std::string("loop %5 i0 %2 i1\nstore t0 %1 f1.0 -\nend\nbarrier\n") + kLoadOfAll), kFirst);
  EXPECT_EQ(
      unwritten("loop %5 i0 %2 i1\nstore t0 %1 f1.0 -\nbarrier\n%9 load t0 %1 -\nstore p1 %1 %9 -\nbarrier\nend\n"),
      kNothing);
  // Some lanes run it without the others.
  EXPECT_EQ(unwritten("%3 add %1 %2\nloop %5 i0 %3 i1\nstore t0 %1 f1.0 -\n%9 load t0 i0 -\nstore p1 %1 %9 -\nend\n"),
            kFirst);
}

TEST(UnwrittenTest, TilesAreWrittenByRowsAndColumns) {
  const auto tiles = [](const std::string& ops) {
    return unwritten("%10 shared i64 sf32 i16 s\n%11 zeros i4 i16 sf32\n" + ops +
                     "%12 tile_load t10 i0 i0 i4 i16\ntile_store p1 i0 i0 %12 i4 i16\n");
  };
  EXPECT_EQ(tiles("tile_store t10 i0 i0 %11 i4 i16\n"), kNothing);
  EXPECT_EQ(tiles("tile_store t10 i1 i0 %11 i4 i16\n"), (std::set<int32_t>{10}));
  EXPECT_EQ(tiles("tile_store t10 i0 i0 %11 i2 i16\ntile_store t10 i2 i0 %11 i2 i16\n"), kNothing);
}

TEST(UnwrittenTest, TypedIntegersWrap) {
  EXPECT_EQ(unwritten(std::string("%3 cast %1 su8\n%4 add %3 i200\n%5 sub %4 i200\nstore t0 %5 f1.0 -\nbarrier\n") +
                      kLoadOfAll),
            kNothing);
  EXPECT_EQ(unwritten(std::string("%3 cast %1 su32\n%4 reverse_bits %3\n%5 shr %4 i26\nstore t0 %5 f1.0 -\nbarrier\n") +
                      kLoadOfAll),
            kNothing);
  EXPECT_EQ(unwritten(std::string("%3 cast %1 su32\n%4 reverse_bits %3\n%5 shr %4 i27\nstore t0 %5 f1.0 -\nbarrier\n") +
                      kLoadOfAll),
            kFirst);
}

TEST(UnwrittenTest, AtomicsReadToo) {
  EXPECT_EQ(unwritten("%3 atomic_add t0 %1 f1.0 -\n"), kFirst);
  EXPECT_EQ(unwritten("store t0 %1 f0.0 -\nbarrier\n%3 atomic_add t0 i5 f1.0 -\n"), kNothing);
}

}  // namespace
