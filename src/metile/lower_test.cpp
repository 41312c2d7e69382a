#include "metile/lower.h"

#include "lang/build/verify.h"
#include "lang/flow/front.h"
#include "lang/sema/dump.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex;
using namespace vortex::metile;

/// A trace as a typed kernel, or the errors.
struct Lowered {
  explicit Lowered(std::string_view text) {
    const std::vector<source::FileId> files = {sources.addText("k.py", "first\nsecond line\n")};
    Result<Trace> parsed = parseTrace(text, files, sources);
    if (!parsed) {
      error = parsed.error().message;
      return;
    }
    trace = *std::move(parsed);
    kinds = inferKinds(trace);
    const bool isRight = check(trace, kinds, sink);
    prune(trace);
    if (isRight)
      lower(trace, kinds, program, sink);
    if (!sink.hasErrors()) {
      for (const lang::Violation& violation : lang::verify(*program.kernels[0]))
        error += violation.message + "\n";
      lang::flow::checkKernels(program, sink, lang::LaunchGrids::OfProgram, {.races = lang::flow::RacePolicy::Allow});
    }
    error += diag::renderText(sink.all(), sources);
    if (isRight)
      dump = lang::dump(*program.kernels[0], {.types = false, .uniformity = false});
  }

  source::SourceManager sources;
  diag::DiagnosticSink sink;
  lang::Program program;
  Trace trace;
  std::vector<Kind> kinds;
  std::string error, dump;
};

constexpr const char* kHead = "kernel k @ 0 1 0 1 5\nthreads 64\nptr x f32 1 r\nptr out f32 1 w\nint n\n";

TEST(LowerTest, AMaskedLoadIsZeroWhereItIsOff) {
  const Lowered k(std::string(kHead) +
                  "%0 param p2\n%1 tid\n%2 lt %1 %0\n%3 load p0 %1 %2\n%4 mul %3 f2.0\nstore p1 %1 %4 %2\n");
  EXPECT_EQ(k.error, "");
  EXPECT_NE(k.dump.find("if "), std::string::npos) << k.dump;
  EXPECT_NE(k.dump.find("2.0"), std::string::npos) << k.dump;
}

TEST(LowerTest, WhatNothingNeedsIsNotLowered) {
  const Lowered k(std::string(kHead) +
                  "%0 param p2\n%1 tid\n%2 load p0 %1 -\n%3 exp %2\ncarry %4 f0.0\nloop %5 i0 %0 i1\n%6 add %4 f1.0\n"
                  "yield %4 %6\nend\nstore p1 %1 f1.0 -\n");
  EXPECT_EQ(k.error, "");
  EXPECT_EQ(k.dump.find("exp"), std::string::npos) << k.dump;
  EXPECT_EQ(k.dump.find("c4"), std::string::npos) << k.dump;
}

TEST(LowerTest, KindsFollowThePromotionTable) {
  const Lowered k("kernel k @ 0 1 0 1 5\nthreads 32\nptr h f16 1 r\nptr i i32 1 r\nptr out f32 1 w\n%0 tid\n%1 load p0 "
                  "%0 -\n%2 load p1 %0 -\n"
                  "%3 mul %1 f2.0\n%4 mul %2 f2.0\n%5 add %1 %2\n%6 add %0 i1\n%7 add %0 %2\ncarry %8 f0.0\nloop %9 i0 "
                  "i4 i1\n%10 add %8 %1\n"
                  "yield %8 %10\nend\n%11 add %3 %4\n%12 add %5 %6\n%13 add %11 %12\n%14 add %13 %7\n%15 add %14 "
                  "%8\nstore p2 %0 %15 -\n");
  EXPECT_EQ(k.error, "");
  EXPECT_EQ(k.kinds[3].dtype, Dtype::F16) << "a literal takes the other side's type";
  EXPECT_EQ(k.kinds[4].dtype, Dtype::F32) << "a float literal makes integers f32";
  EXPECT_EQ(k.kinds[5].dtype, Dtype::F16);
  EXPECT_EQ(k.kinds[6].dtype, Dtype::Index);
  EXPECT_EQ(k.kinds[7].dtype, Dtype::I32);
  EXPECT_EQ(k.kinds[8].dtype, Dtype::F32) << "a sum that starts from 0.0 is kept in f32";
}

TEST(LowerTest, ValidityEndsAtReductionsAndCarriedNames) {
  const Lowered k(
      std::string(kHead) +
      "%0 param p2\n%1 tid\ncarry %2 f0.0\nloop %3 i0 %0 i64\n%4 add %3 %1\n%5 lt %4 %0\n%6 load p0 %4 %5\n%7 exp %6\n"
      "%8 add %2 %7\nyield %2 %8\nend\n%9 sum %2\nstore p1 i0 %9 -\n");
  EXPECT_EQ(k.error, "");
  EXPECT_TRUE(k.kinds[7].mayBeInvalid);
  EXPECT_FALSE(k.kinds[2].mayBeInvalid);
  EXPECT_FALSE(k.kinds[9].mayBeInvalid);
  EXPECT_NE(k.dump.find("select"), std::string::npos) << k.dump;
}

TEST(LowerTest, AValueOfALoopIsUnknownOutsideOfIt) {
  const Lowered k(std::string(kHead) + "%1 tid\nloop %2 i0 i4 i1\n%3 add %2 %1\nend\nstore p1 %1 %3 - @ 0 2 0 2 6\n");
  EXPECT_NE(k.error.find("k.py:2:1"), std::string::npos) << k.error;
  EXPECT_NE(k.error.find("computed in a loop is used outside of it"), std::string::npos) << k.error;
}

TEST(LowerTest, PositionsThatTheFileDoesNotHaveAreCut) {
  const Lowered k(std::string(kHead) + "%1 tid @ 0 99 5 120 7\nstore p1 %1 f1.0 - @ 7 1 0 1 1\n");
  EXPECT_EQ(k.error, "");
}

TEST(LowerTest, AKernelForOneLaunchHasItsNumbersAndItsGrid) {
  const Lowered k(
      "kernel k @ 0 1 0 1 5\nthreads 64\naxes i0\ngrid i37 i1 i1\nptr out f32 1 w\nint n 781\n%0 pid i0\n%1 tid\n"
      "%2 param p1\n%3 mul %0 %2\n%4 add %3 %1\nstore p0 %4 f1.0 -\n");
  EXPECT_EQ(k.error, "");
  EXPECT_NE(k.dump.find("781"), std::string::npos) << k.dump;
  EXPECT_NE(k.dump.find("37"), std::string::npos) << k.dump;
}

TEST(LowerTest, AnAtomicIsDoneByEachLaneOnlyIfLanesDiffer) {
  const auto lowered = [](const std::string& place) {
    return Lowered("kernel k @ 0 1 0 1 5\nthreads 64\nptr out i32 1 w\n%0 pid i0\n%1 tid\ncarry %2 i0\nloop %3 i0 " +
                   place + " i1\n%4 atomic_add p0 %2 i1 -\n%5 add %2 i1\nyield %2 %5\nend\n");
  };
  const Lowered once = lowered("%0"), each = lowered("%1");
  EXPECT_EQ(once.error + each.error, "");
  EXPECT_NE(once.dump.find("thread.local_id"), std::string::npos) << once.dump;
  EXPECT_EQ(once.dump.find("sync_block"), std::string::npos) << "nobody asks what was there\n" << once.dump;
  const std::vector<Variation> uniform = variationOf(once.trace), varying = variationOf(each.trace);
  for (size_t i = 0; i < once.trace.ops.size(); ++i)
    if (once.trace.ops[i].name == "atomic_add") {
      EXPECT_EQ(uniform[i], Variation::None);
    }
  for (size_t i = 0; i < each.trace.ops.size(); ++i)
    if (each.trace.ops[i].name == "atomic_add") {
      EXPECT_EQ(varying[i], Variation::OfLanes) << "in a loop that lanes leave one after the other";
    }
}

TEST(LowerTest, TextOfAnotherFormIsRefusedWithItsLine) {
  EXPECT_EQ(Lowered("kernel k @ 0 1 0 1 5\n%1\n").error, "line 2 of the trace is not understood: %1");
}

}  // namespace
