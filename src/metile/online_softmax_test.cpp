#include "metile/online_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace vortex;
using namespace vortex::metile;

/// A trace of two loops, rewritten.
struct Rewritten {
  explicit Rewritten(const std::string& text) {
    const std::vector<source::FileId> files = {sources.addText("k.py", "first\nsecond line\n")};
    Result<Trace> parsed = parseTrace(
        "kernel k @ 0 1 0 1 5\nthreads 64\nptr x f32 1 r\nptr out f32 1 w\nint n\nptr y f32 1 r\nptr z f32 1 w\n" +
            text,
        files, sources);
    trace = *std::move(parsed);
    prune(trace);
    std::vector<Kind> kinds = inferKinds(trace);
    remarks = collectSumsWithMaxima(trace, kinds);
    EXPECT_EQ(kinds, inferKinds(trace));
  }
  long count(std::string_view name) const {
    return std::count_if(trace.ops.begin(), trace.ops.end(), [&](const Op& op) { return op.name == name; });
  }
  std::string reason() const {
    return remarks.empty() ? "no remark" : remarks.back().isDone ? "done" : remarks.back().message;
  }

  source::SourceManager sources;
  Trace trace;
  std::vector<Remark> remarks;
};

/// The parts of the program; each test changes some.
struct Parts {
  std::string start = "f-1e38", element = "%4", betweenLoops = "", bound = "%10", secondRange = "i0 %0 i64",
              offset = "add %12 %1", memory = "p0", summand = "%17", extra = "", initial = "f0.0";
  std::string text() const {
    return "%0 param p2\n%1 tid\ncarry %2 " + start +
           "\nloop %3 i0 %0 i64\n%5 add %3 %1\n%6 lt %5 %0\n%4 load p0 %5 %6\n%7 abs %4\n%8 maximum %2 " + element +
           "\nyield %2 %8\nend\n%10 max %2\n" + betweenLoops + "carry %11 " + initial + "\nloop %12 " + secondRange +
           "\n%13 " + offset + "\n%14 lt %13 %0\n%15 load " + memory + " %13 %14\n%16 sub %15 " + bound +
           "\n%17 exp %16\n%30 mul %17 %15\n%31 mul %16 f0.5\n%32 exp %31\n" + extra + "%18 add %11 " + summand +
           "\nyield %11 %18\nend\n%19 sum %11\nstore p1 i0 %19 -\n";
  }
};

TEST(OnlineSoftmaxTest, TheSumMovesToTheMaximum) {
  const Rewritten k(Parts{}.text());
  EXPECT_EQ(k.reason(), "done");
  EXPECT_EQ(k.count("loop"), 1);
  EXPECT_EQ(k.count("load"), 1);
  EXPECT_EQ(k.count("exp"), 2) << "one in the loop, one after it";
  EXPECT_EQ(k.count("carry"), 2);
}

TEST(OnlineSoftmaxTest, WaysToWriteTheSameAreTheSame) {
  Parts swapped;
  swapped.offset = "add %1 %12";
  EXPECT_EQ(Rewritten(swapped.text()).reason(), "done");
  Parts infinite;
  infinite.start = "f-inf";
  EXPECT_EQ(Rewritten(infinite.text()).reason(), "done");
  Parts perLane;
  perLane.bound = "%2";
  EXPECT_EQ(Rewritten(perLane.text()).reason(), "done");
  Parts above;
  above.betweenLoops = "%40 maximum %10 f0.0\n", above.bound = "%40";
  EXPECT_EQ(Rewritten(above.text()).reason(), "done");
  Parts started;
  started.initial = "f2.5";
  EXPECT_EQ(Rewritten(started.text()).reason(), "done");
  Parts otherMemory;
  otherMemory.betweenLoops = "store p4 %1 %10 -\nbarrier\n";
  EXPECT_EQ(Rewritten(otherMemory.text()).reason(), "done");
}

TEST(OnlineSoftmaxTest, NearMissesStayAsTheyAre) {
  const auto expect = [](const Parts& parts, const char* reason) {
    const Rewritten k(parts.text());
    EXPECT_NE(k.reason().find(reason), std::string::npos) << k.reason();
    EXPECT_GE(k.count("loop"), 2);
  };
  expect({.element = "%7"}, "not those whose maximum is taken");
  expect({.memory = "p3"}, "not those whose maximum is taken");
  expect({.offset = "sub %12 %1"}, "not those whose maximum is taken");
  expect({.betweenLoops = "store p0 %1 %10 -\n"}, "their memory is written in between");
  expect({.betweenLoops = "loop %50 i0 i4 i1\nstore p0 %50 %10 -\nend\n"}, "their memory is written in between");
  expect({.summand = "%30"}, "something else than exp(x - maximum)");
  expect({.summand = "%32"}, "something else than exp(x - maximum)");
  expect({.secondRange = "i0 %0 i32"}, "it counts from, to or by other numbers");
  expect({.secondRange = "i64 %0 i64"}, "it counts from, to or by other numbers");
  expect({.extra = "store p4 %13 %17 %14\n"}, "it stores");
  expect({.extra = "print sx %17\n"}, "it prints");
  expect({.betweenLoops = "%40 min %2\n", .bound = "%40"}, "not known to be at least");
  expect({.betweenLoops = "%40 add %10 f-1.0\n", .bound = "%40"}, "not known to be at least");
  expect({.betweenLoops = "%41 tid\n%40 load p3 %41 -\n%42 maximum %40 f0.0\n%43 simd_shuffle_xor %2 i1\n",
          .bound = "%43"},
         "not known to be at least");
  expect({.betweenLoops = "%40 cast %10 sf16\n%41 load p3 i0 -\n",
          .summand = "%35",
          .extra = "%33 sub %15 %41\n%34 exp %33\n%35 add %34 %17\n"},
         "its summands subtract different values");
}

TEST(OnlineSoftmaxTest, LoopsThatHaveNothingToDoWithEachOtherAreNotTold) {
  const Rewritten k("%0 param p2\n%1 tid\ncarry %2 f-1e38\nloop %3 i0 %0 i64\n%5 add %3 %1\n%4 load p0 %5 -\n%8 "
                    "maximum %2 %4\nyield %2 %8\nend\n"
                    "carry %11 f0.0\nloop %12 i0 %0 i64\n%13 add %12 %1\n%15 load p0 %13 -\n%17 exp %15\n%18 add %11 "
                    "%17\nyield %11 %18\nend\n%19 add %2 %11\nstore p1 %1 %19 -\n");
  EXPECT_TRUE(k.remarks.empty());
  EXPECT_EQ(k.count("loop"), 2);
}

TEST(OnlineSoftmaxTest, TwoRowsAtOnceAreTwoPairs) {
  std::string text = "%0 param p2\n%1 tid\ncarry %2 f-1e38\ncarry %20 f-1e38\nloop %3 i0 %0 i64\n%5 add %3 %1\n%4 load "
                     "p0 %5 -\n%21 load p3 %5 -\n%8 maximum %2 %4\n"
                     "%22 maximum %20 %21\nyield %2 %8\nyield %20 %22\nend\n%10 max %2\n%23 max %20\ncarry %11 "
                     "f0.0\ncarry %24 f0.0\nloop %12 i0 %0 i64\n%13 add %12 %1\n"
                     "%15 load p0 %13 -\n%25 load p3 %13 -\n%16 sub %15 %10\n%17 exp %16\n%18 add %11 %17\n%26 sub %25 "
                     "%23\n%27 exp %26\n%28 add %24 %27\nyield %11 %18\n"
                     "yield %24 %28\nend\n%19 add %11 %24\nstore p1 %1 %19 -\n";
  EXPECT_EQ(Rewritten(text).reason(), "done");
  const size_t at = text.find("sub %25 %23");
  const Rewritten crossed(text.replace(at, 11, "sub %25 %10"));
  EXPECT_NE(crossed.reason().find("not those whose maximum"), std::string::npos) << crossed.reason();
}

}  // namespace
