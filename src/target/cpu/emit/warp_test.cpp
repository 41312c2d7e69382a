// Warp operations, against lane-by-lane C++.
#include "target/cpu/emit/testing/run_kernel.h"

#include <gtest/gtest.h>

namespace vortex::target::cpu::emit::testing {
namespace {

std::string warpBody(const std::string& ops) {
  return R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c1 = arith.constant 1 : index
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = vx.load %a[%l] : !vx.view<?xf32, global> -> f32
    %liWide = arith.index_cast %l : index to i64
    %li = arith.trunci %liWide : i64 to i32
)" + ops +
         R"(
    vx.store %r, %o[%l] : f32, !vx.view<?xf32, global>
    vx.yield
  })";
}

void check(const std::string& ops,
           const std::function<float(const std::vector<float>&, int lane, int first, int count)>& expected) {
  for (auto [bx, by] : {std::pair(64, 1), {50, 1}, {16, 4}, {12, 3}, {32, 2}}) {
    TestKernel kernel(module("%a: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>", "1;1;1",
                             std::to_string(bx) + ";" + std::to_string(by) + ";1", warpBody(ops)));
    ASSERT_EQ(kernel.error(), "");
    int n = bx * by;
    std::mt19937 engine(bx);
    std::vector<float> a(n), out(n + 4, -1.f);
    for (float& value : a)
      value = float(int(engine() % 2001) - 1000) / 7;
    kernel.run({Arg::tensor(a), Arg::strided(out.data(), {n}, {1})});
    for (int i = 0; i < n; ++i) {
      int first = i / 32 * 32;
      ASSERT_EQ(out[i], expected(a, i - first, first, std::min(32, n - first))) << "lane " << i << " of " << n;
    }
    ASSERT_EQ(out[n], -1.f);
  }
}

TEST(Warp, SumsInButterflyOrder) {
  check("    %r = vx.warp_reduce addf %v : f32", [](const std::vector<float>& a, int, int first, int count) {
    float lanes[32];
    for (int l = 0; l < 32; ++l)
      lanes[l] = l < count ? a[first + l] : -0.f;
    for (int distance = 16; distance; distance /= 2)
      for (int l = 0; l < distance; ++l)
        lanes[l] += lanes[l + distance];
    return lanes[0];
  });
}

TEST(Warp, TakesMaxima) {
  check("    %r = vx.warp_reduce maxf %v : f32", [](const std::vector<float>& a, int, int first, int count) {
    return *std::max_element(a.begin() + first, a.begin() + first + count);
  });
}

TEST(Warp, ShufflesByXor) {
  check("    %k = arith.constant 5 : i32\n    %r = vx.warp_shuffle xor %v, %k : f32",
        [](const std::vector<float>& a, int lane, int first, int count) {
          return a[first + ((lane ^ 5) < count ? lane ^ 5 : lane)];
        });
}

TEST(Warp, ShufflesDownAndUp) {
  check(R"(    %k = arith.constant 3 : i32
    %d = vx.warp_shuffle down %v, %k : f32
    %u = vx.warp_shuffle up %v, %k : f32
    %r = arith.subf %d, %u : f32)",
        [](const std::vector<float>& a, int lane, int first, int count) {
          return a[first + (lane + 3 < count ? lane + 3 : lane)] - a[first + (lane >= 3 ? lane - 3 : lane)];
        });
}

TEST(Warp, BroadcastsALane) {
  check("    %k = arith.constant 7 : i32\n    %r = vx.warp_shuffle index %v, %k : f32",
        [](const std::vector<float>& a, int lane, int first, int count) { return a[first + (7 < count ? 7 : lane)]; });
}

TEST(Warp, ReadsLanesChosenAtRunTime) {
  check(R"(    %c11 = arith.constant 11 : i32
    %c40 = arith.constant 40 : i32
    %m = arith.muli %li, %c11 : i32
    %k = vx.int remu %m, %c40 : i32
    %r = vx.warp_shuffle index %v, %k : f32)",
        [](const std::vector<float>& a, int lane, int first, int count) {
          int k = (first + lane) * 11 % 40;
          return a[first + (k < count ? k : lane)];
        });
}

TEST(Warp, Votes) {
  check(R"(    %zero = arith.constant 0.0 : f32
    %p = arith.cmpf ogt, %v, %zero : f32
    %any = vx.warp_vote any %p -> i1
    %all = vx.warp_vote all %p -> i1
    %bits = vx.warp_vote ballot %p -> i32
    %fb = arith.uitofp %bits : i32 to f32
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %fa = arith.select %any, %one, %zero : f32
    %fc = arith.select %all, %two, %zero : f32
    %s = arith.addf %fa, %fc : f32
    %r = arith.addf %s, %fb : f32)",
        [](const std::vector<float>& a, int, int first, int count) {
          uint32_t bits = 0;
          for (int l = 0; l < count; ++l)
            bits |= uint32_t(a[first + l] > 0) << l;
          uint32_t full = count == 32 ? ~0u : (1u << count) - 1;
          return (bits ? 1.f : 0.f) + (bits == full ? 2.f : 0.f) + float(bits);
        });
}

TEST(Warp, BranchesOnVotesStayUniform) {
  check(R"(    %zero = arith.constant 0.0 : f32
    %p = arith.cmpf ogt, %v, %zero : f32
    %any = vx.warp_vote all %p -> i1
    %r = scf.if %any -> f32 {
      scf.yield %zero : f32
    } else {
      %s = vx.warp_reduce minf %v : f32
      scf.yield %s : f32
    })",
        [](const std::vector<float>& a, int, int first, int count) {
          float least = *std::min_element(a.begin() + first, a.begin() + first + count);
          return least > 0 ? 0.f : least;
        });
}

/// Lane l searches from place l, by steps that the numbers there tell; arrays, windows, conditions and counts come from outside of the search.
TEST(Warp, LanesThatDivergeRunOneAfterAnother) {
  std::string body = R"(
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %few = arith.constant 20 : i32
  %n = vx.dim %a, 0 : !vx.view<?xi32, global>
  %nx = vx.block_dim x
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %first = vx.load %a[%l] : !vx.view<?xi32, global> -> i32
    %all = vx.warp_reduce addi %one : i32
    %own = vx.alloc "own" : !vx.view<2xi32, local>
    vx.store %first, %own[%c0] : i32, !vx.view<2xi32, local>
    %rest = arith.subi %n, %l : index
    %window = vx.subview %a[%l] sizes(%rest) : !vx.view<?xi32, global> to !vx.view<?xi32, global>
    %isOdd = arith.trunci %first : i32 to i1
    %found:2 = scf.while (%at = %l, %steps = %zero) : (index, i32) -> (index, i32) {
      %here = vx.load %a[%at] guarded : !vx.view<?xi32, global> -> i32
      %goesOn = arith.cmpi sgt, %here, %zero : i32
      %isLeft = arith.cmpi slt, %steps, %few : i32
      %both = arith.andi %goesOn, %isLeft : i1
      scf.condition(%both) %at, %steps : index, i32
    } do {
    ^bb0(%at: index, %steps: i32):
      %here = vx.load %a[%at] guarded : !vx.view<?xi32, global> -> i32
      %wide = arith.extsi %here : i32 to i64
      %by = arith.index_cast %wide : i64 to index
      %next = arith.addi %at, %by : index
      %beside = vx.load %window[%by] guarded : !vx.view<?xi32, global> -> i32
      %before = vx.load %own[%c0] : !vx.view<2xi32, local> -> i32
      %sum = arith.addi %before, %beside : i32
      %kept = arith.select %isOdd, %sum, %before : i32
      vx.store %kept, %own[%c0] : i32, !vx.view<2xi32, local>
      %more = arith.addi %steps, %one : i32
      scf.yield %next, %more : index, i32
    }
    %end64 = arith.index_cast %found#0 : index to i64
    %end = arith.trunci %end64 : i64 to i32
    %collected = vx.load %own[%c0] : !vx.view<2xi32, local> -> i32
    %p = arith.addi %end, %collected : i32
    %q = arith.addi %p, %found#1 : i32
    %r = arith.addi %q, %all : i32
    vx.store %r, %o[%l] : i32, !vx.view<?xi32, global>
    vx.yield
  })";
  for (int threads : {32, 96, 45}) {
    TestKernel kernel(module("%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>", "1;1;1",
                             std::to_string(threads) + ";1;1", body),
                      {.cpu = "x86-64-v3", .features = ""});
    ASSERT_EQ(kernel.error(), "");
    std::mt19937 random(threads);
    int n = threads + 30;
    std::vector<int32_t> a(n), out(threads + 4, -1);
    for (int32_t& value : a)
      value = int32_t(random() % 7);
    kernel.run({Arg::tensor(a), Arg::tensor(out)});
    for (int l = 0; l < threads; ++l) {
      int at = l, steps = 0, kept = a[l];
      const auto get = [&](int place) { return place < n ? a[place] : 0; };
      while (get(at) > 0 && steps < 20) {
        if (a[l] % 2 != 0)
          kept += get(l + get(at));
        at += get(at);
        ++steps;
      }
      ASSERT_EQ(out[l], at + kept + steps + std::min(32, threads - l / 32 * 32)) << "lane " << l;
    }
    ASSERT_EQ(out[threads], -1);
  }
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
