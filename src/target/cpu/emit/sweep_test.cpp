// Loops of thread regions that step by the number of threads.
#include "base/fresh_seed.h"
#include "target/cpu/emit/testing/run_kernel.h"

#include <gtest/gtest.h>

namespace vortex::target::cpu::emit::testing {
namespace {

constexpr const char* kSweepParams = "%x: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>, %n: index";

std::vector<int32_t> randomNumbers(int64_t count) {
  std::mt19937 engine{base::freshSeed()};
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int32_t& value : values)
    value = static_cast<int32_t>(engine() % 1000);
  return values;
}

/// The body of a kernel of one block of `threads`, with these names: %t threads, %c0, %one, %l the thread.
std::string sweepRegion(const std::string& body) {
  return "  %c0 = arith.constant 0 : index\n  %one = arith.constant 1 : index\n  %zero = arith.constant 0 : i32\n"
         "  %t = vx.block_dim x\n  vx.threads (%step, %one, %one) {\n"
         "  ^bb0(%a: index, %b: index, %c: index, %l: index):\n" +
         body + "    vx.yield\n  }\n";
}

/// Runs the body for blocks of several sizes and rows of several lengths; `expected(x, threads)` gives the first `threads` results.
void compareSweep(const std::string& body,
                  const std::function<std::vector<int32_t>(const std::vector<int32_t>&, int64_t)>& expected) {
  for (const int64_t threads : {32, 64, 100, 256, 1000}) {
    const std::string width = std::to_string(threads);
    TestKernel kernel(module(kSweepParams, "1;1;1", width + ";1;1",
                             "  %step = arith.constant " + width + " : index\n" + sweepRegion(body)));
    ASSERT_EQ(kernel.error(), "");
    for (const int64_t n : {int64_t{0}, int64_t{1}, threads - 1, threads, threads + 1, 3 * threads, 5 * threads + 17}) {
      std::vector<int32_t> x = randomNumbers(std::max<int64_t>(n, 1)),
                           out(static_cast<size_t>(std::max(n, threads)) + 64, 77);
      x.resize(static_cast<size_t>(n));
      ASSERT_EQ(kernel.run({Arg::tensor(x), Arg::tensor(out), Arg::scalar(uint64_t(n))}), 0u);
      std::vector<int32_t> wanted = expected(x, threads);
      wanted.resize(out.size(), 77);
      ASSERT_EQ(out, wanted) << threads << " threads, " << n << " elements";
    }
  }
}

constexpr const char* kMaskedLoad =
    "      %p = arith.addi %i, %l : index\n      %in = arith.cmpi slt, %p, %n : index\n"
    "      %v = scf.if %in -> (i32) {\n        %e = vx.load %x[%p] guarded : !vx.view<?xi32, global> -> i32\n"
    "        scf.yield %e : i32\n      } else {\n        scf.yield %zero : i32\n      }\n";

TEST(Sweep, SumsOfLanesAreCarried) {
  compareSweep(std::string("    %s = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (i32) {\n") +
                   kMaskedLoad +
                   "      %next = arith.addi %acc, %v : i32\n      scf.yield %next : i32\n    }\n"
                   "    vx.store %s, %o[%l] : i32, !vx.view<?xi32, global>\n",
               [](const std::vector<int32_t>& x, int64_t threads) {
                 std::vector<int32_t> sums(static_cast<size_t>(threads));
                 for (size_t i = 0; i < x.size(); ++i)
                   sums[i % sums.size()] += x[i];
                 return sums;
               });
}

TEST(Sweep, StoresInTheLoopReachEveryElement) {
  compareSweep(std::string("    scf.for %i = %c0 to %n step %step {\n") + kMaskedLoad +
                   "      %w = arith.addi %v, %v : i32\n      scf.if %in {\n"
                   "        vx.store %w, %o[%p] guarded : i32, !vx.view<?xi32, global>\n      }\n    }\n",
               [](const std::vector<int32_t>& x, int64_t threads) {
                 std::vector<int32_t> out(std::max(x.size(), static_cast<size_t>(threads)), 77);
                 for (size_t i = 0; i < x.size(); ++i)
                   out[i] = 2 * x[i];
                 return out;
               });
}

TEST(Sweep, WhatIsFoundBeforeAndBetweenLoopsIsThereAfterThem) {
  // first: x[l] or 5 where there is none; a uniform and an affine value are carried too; the second loop uses the first one's result
  compareSweep(
      std::string(
          "    %five = arith.constant 5 : i32\n    %has = arith.cmpi slt, %l, %n : index\n"
          "    %first = scf.if %has -> (i32) {\n      %e = vx.load %x[%l] guarded : !vx.view<?xi32, global> -> i32\n"
          "      scf.yield %e : i32\n    } else {\n      scf.yield %five : i32\n    }\n"
          "    %r:3 = scf.for %i = %c0 to %n step %step iter_args(%acc = %first, %turns = %c0, %at = %l) -> (i32, "
          "index, index) {\n") +
          kMaskedLoad +
          "      %next = arith.addi %acc, %v : i32\n      %turn = arith.addi %turns, %one : index\n"
          "      %move = arith.addi %at, %one : index\n      scf.yield %next, %turn, %move : i32, index, index\n    }\n"
          "    %twice = arith.addi %r#0, %r#0 : i32\n"
          "    %s = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (i32) {\n" +
          kMaskedLoad +
          "      %w = arith.xori %v, %twice : i32\n      %next = arith.addi %acc, %w : i32\n      scf.yield %next : "
          "i32\n    }\n"
          "    %turns64 = arith.index_cast %r#1 : index to i64\n    %turns32 = arith.trunci %turns64 : i64 to i32\n    "
          "%at64 = arith.index_cast %r#2 : index to i64\n    %at32 = arith.trunci %at64 : i64 to i32\n"
          "    %sum = arith.addi %s, %first : i32\n    %sum2 = arith.addi %sum, %turns32 : i32\n    %sum3 = arith.addi "
          "%sum2, %at32 : i32\n"
          "    vx.store %sum3, %o[%l] : i32, !vx.view<?xi32, global>\n",
      [](const std::vector<int32_t>& x, int64_t threads) {
        const auto n = static_cast<int64_t>(x.size());
        const auto turns = static_cast<int32_t>((n + threads - 1) / threads);
        std::vector<int32_t> out;
        for (int64_t lane = 0; lane < threads; ++lane) {
          const int32_t first = lane < n ? x[static_cast<size_t>(lane)] : 5;
          int32_t total = first, second = 0;
          for (int64_t i = lane; i < turns * threads; i += threads)
            total += i < n ? x[static_cast<size_t>(i)] : 0;
          for (int64_t i = lane; i < turns * threads; i += threads)
            second += (i < n ? x[static_cast<size_t>(i)] : 0) ^ (2 * total);
          out.push_back(second + first + turns + static_cast<int32_t>(lane) + turns);
        }
        return out;
      });
}

TEST(Sweep, WarpOperationsSeeTheWholeWarp) {
  compareSweep(
      std::string("    %s = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (i32) {\n") + kMaskedLoad +
          "      %w = vx.warp_reduce addi %v : i32\n      %next = arith.addi %acc, %w : i32\n      scf.yield %next "
          ": i32\n    }\n"
          "    vx.store %s, %o[%l] : i32, !vx.view<?xi32, global>\n",
      [](const std::vector<int32_t>& x, int64_t threads) {
        std::vector<int32_t> warps(static_cast<size_t>((threads + 31) / 32)), out;
        for (size_t i = 0; i < x.size(); ++i)
          warps[i % static_cast<size_t>(threads) / 32] += x[i];
        for (int64_t lane = 0; lane < threads; ++lane)
          out.push_back(warps[static_cast<size_t>(lane / 32)]);
        return out;
      });
}

/// Two loops over rows of `x`, one row for each block; `row` computes where it begins, %r, from %n and the block.
std::string twoPasses(const std::string& row, const std::string& second) {
  const auto pass = [](const std::string& view, const std::string& name, const std::string& start) {
    return "    %" + name + " = scf.for %i = %c0 to %n step %step iter_args(%acc = " + start +
           ") -> (i32) {\n      %p = arith.addi %i, %l : index\n      %in = arith.cmpi slt, %p, %n : index\n"
           "      %q = arith.addi %r, %p : index\n"
           "      %v = scf.if %in -> (i32) {\n        %e = vx.load %" +
           view +
           "[%q] guarded : !vx.view<?xi32, global> -> i32\n        scf.yield %e : i32\n      } else {\n"
           "        scf.yield %zero : i32\n      }\n"
           "      %next = arith.addi %acc, %v : i32\n      scf.yield %next : i32\n    }\n";
  };
  return module("%x: !vx.view<?xi32, global>, %y: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>, %n: index",
                "3;1;1", "64;1;1",
                "  %step = arith.constant 64 : index\n  %k = arith.constant 64 : index\n" +
                    sweepRegion(row + pass("x", "s", "%zero") + pass(second, "u", "%s") +
                                "    %b0 = vx.block_id x\n    %b1 = arith.muli %b0, %k : index\n"
                                "    %at = arith.addi %b1, %l : index\n"
                                "    vx.store %u, %o[%at] : i32, !vx.view<?xi32, global>\n"));
}

TEST(Sweep, AStreamOfFloatFunctionsAsksForWhatFollows) {
  struct Case {
    std::string place, function;
    bool asks;
  };
  const std::string ofBlock =
      "    %b0 = vx.block_id x\n    %b1 = arith.muli %b0, %step : index\n    %i = arith.addi %b1, %l : index\n";
  const std::string exp = "    %y = math.exp %v : f32\n", sum = "    %y = arith.addf %v, %v : f32\n";
  for (const Case& c : {Case{ofBlock, exp, true}, Case{ofBlock, sum, false},
                        Case{"    %i = arith.addi %l, %c0 : index\n", exp, false}}) {
    TestKernel kernel(module("%x: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>", "3;1;1", "64;1;1",
                             "  %step = arith.constant 64 : index\n" +
                                 sweepRegion(c.place + "    %v = vx.load %x[%i] : !vx.view<?xf32, global> -> f32\n" +
                                             c.function + "    vx.store %y, %o[%i] : f32, !vx.view<?xf32, global>\n")));
    ASSERT_EQ(kernel.error(), "");
    EXPECT_EQ(kernel.llvmText().find("@llvm.prefetch") != std::string::npos, c.asks) << c.place << c.function;
  }
}

TEST(Sweep, TheLastPassOverARowAsksForTheNextOne) {
  const std::string rows = "    %id = vx.block_id x\n    %r = arith.muli %id, %n : index\n";
  struct Case {
    std::string row, second;
    bool asks, isRow;
  };
  for (const Case& c : {Case{rows, "x", true, true}, Case{rows, "y", false, true},
                        Case{"    %id = vx.block_id y\n    %r = arith.muli %id, %n : index\n", "x", false, false},
                        Case{"    %r = arith.addi %c0, %c0 : index\n", "x", false, false}}) {
    TestKernel kernel(twoPasses(c.row, c.second));
    ASSERT_EQ(kernel.error(), "");
    EXPECT_EQ(kernel.llvmText().find("@llvm.prefetch") != std::string::npos, c.asks) << c.row << c.second;
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{200}, int64_t{20000}}) {
      std::vector<int32_t> x = randomNumbers(std::max<int64_t>(3 * n, 1)),
                           y = randomNumbers(std::max<int64_t>(3 * n, 1)), out(3 * 64, 77);
      ASSERT_EQ(kernel.run({Arg::tensor(x), Arg::tensor(y), Arg::tensor(out), Arg::scalar(uint64_t(n))}), 0u);
      std::vector<int32_t> wanted(3 * 64, 0);
      for (int64_t block = 0; block < 3; ++block)
        for (int64_t i = 0; i < n; ++i) {
          const auto at = static_cast<size_t>((c.isRow ? block * n : 0) + i);
          wanted[static_cast<size_t>(block * 64 + i % 64)] += x[at] + (c.second == "x" ? x : y)[at];
        }
      ASSERT_EQ(out, wanted) << n << " elements";
    }
  }
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
