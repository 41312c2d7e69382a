// Regions of which only some threads have an effect.
#include "target/cpu/emit/testing/run_kernel.h"

#include <functional>
#include <gtest/gtest.h>

namespace vortex::target::cpu::emit::testing {
namespace {

struct Thread {
  int64_t x, y, z, linear, n;
};

struct Case {
  const char* code;  ///< defines %c of the thread's %x, %y, %z, %l and the argument %n
  std::function<bool(const Thread&)> holds;
};

const Case kCases[] = {
    {"%c = arith.cmpi ult, %l, %n : index", [](const Thread& t) { return uint64_t(t.linear) < uint64_t(t.n); }},
    {"%c = arith.cmpi slt, %l, %n : index", [](const Thread& t) { return t.linear < t.n; }},
    {"%c = arith.cmpi sgt, %n, %x : index", [](const Thread& t) { return t.n > t.x; }},
    {"%c = arith.cmpi sle, %y, %n : index", [](const Thread& t) { return t.y <= t.n; }},
    {"%c = arith.cmpi ule, %z, %n : index", [](const Thread& t) { return uint64_t(t.z) <= uint64_t(t.n); }},
    {"%c = arith.cmpi eq, %l, %zero : index", [](const Thread& t) { return t.linear == 0; }},
    {"%c = arith.cmpi eq, %x, %three : index", [](const Thread& t) { return t.x == 3; }},
    {"%c = arith.cmpi ult, %x, %three : index", [](const Thread& t) { return t.x < 3; }},
    {"%c = arith.cmpi ult, %y, %three : index", [](const Thread& t) { return t.y < 3; }},
    {"%c = arith.cmpi ult, %l, %three : index", [](const Thread& t) { return t.linear < 3; }},
    {"%c = arith.cmpi ugt, %x, %three : index", [](const Thread& t) { return t.x > 3; }},
    {"%c = arith.cmpi ne, %l, %zero : index", [](const Thread& t) { return t.linear != 0; }},
    {"%w = arith.index_castui %l : index to i64\n%m = arith.trunci %w : i64 to i32\n%k = arith.constant -5 : i32\n"
     "%c = arith.cmpi ult, %m, %k : i32",
     [](const Thread&) { return true; }},
    {"%w = arith.index_castui %l : index to i64\n%m = arith.trunci %w : i64 to i32\n%k = arith.constant -5 : i32\n"
     "%c = arith.cmpi sle, %m, %k : i32",
     [](const Thread&) { return false; }},
    {"%w = arith.index_castui %l : index to i64\n%m = arith.trunci %w : i64 to i8\n%k = arith.constant 2 : i8\n%c = "
     "arith.cmpi ult, %m, %k : i8",
     [](const Thread& t) { return t.linear % 256 < 2; }},
    {"%k = arith.muli %n, %three : index\n%c = arith.cmpi slt, %x, %k : index",
     [](const Thread& t) { return t.x < 3 * t.n; }},
    {"%a = arith.cmpi eq, %x, %zero : index\n%b = arith.cmpi eq, %y, %zero : index\n%c = arith.andi %a, %b : i1",
     [](const Thread& t) { return t.x == 0 && t.y == 0; }},
    {"%a = arith.cmpi ult, %x, %three : index\n%b = arith.cmpi slt, %y, %n : index\n%c = arith.ori %a, %b : i1",
     [](const Thread& t) { return t.x < 3 || t.y < t.n; }},
    {"%a = arith.cmpi uge, %x, %three : index\n%b = arith.cmpi sge, %z, %n : index\n%e = arith.ori %a, %b : i1\n"
     "%c = arith.xori %e, %true : i1",
     [](const Thread& t) { return !(t.x >= 3 || t.z >= t.n); }},
};

/// What threads with the condition store beside what they kept before, which all of them did; `form` says how the condition is written.
std::string body(const Case& each, int form) {
  std::string text = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %nz = vx.block_dim z
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %true = arith.constant true
  %seven = arith.constant 7 : i64
  %keep = vx.alloc "keep" : !vx.view<2xi64, local>
  vx.threads (%nx, %ny, %nz) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = arith.index_cast %l : index to i64
    vx.store %v, %keep[%zero] : i64, !vx.view<2xi64, local>
    vx.yield
  }
  vx.threads (%nx, %ny, %nz) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
)";
  text += each.code;
  text += R"(
    %rows = arith.muli %z, %ny : index
    %row = arith.addi %rows, %y : index
    %before = arith.muli %row, %nx : index
    %at = arith.addi %before, %x : index
    %kept = vx.load %keep[%zero] : !vx.view<2xi64, local> -> i64
    %v = arith.addi %kept, %seven : i64
)";
  const std::string store = "vx.store %v, %o[%at] guarded : i64, !vx.view<?xi64, global>\n";
  if (form == 0)
    text += "scf.if %c {\n" + store + "}\n";
  else if (form == 1)
    text += "%no = arith.xori %c, %true : i1\nscf.if %no {\n} else {\n" + store + "}\n";
  else if (form == 2)
    text += "vx.store %v, %o[%at] mask %c guarded : i64, !vx.view<?xi64, global>\n";
  else
    text += "%few = arith.cmpi ult, %x, %three : index\nscf.if %few {\nscf.if %c {\n" + store +
            "}\n}\nscf.if %c {\n%many = arith.cmpi uge, %x, %three : index\nscf.if %many {\n" + store + "}\n}\n";
  return text + "    vx.yield\n  }";
}

TEST(Reach, ThreadsWithAnEffectHaveIt) {
  int next = 0;  // an odd number of cases: each has another form in the next block
  for (auto [nx, ny, nz] : {std::array<int64_t, 3>{256, 1, 1},
                            {40, 1, 1},
                            {1, 40, 1},
                            {16, 16, 1},
                            {16, 1, 3},
                            {4, 9, 2},
                            {32, 4, 1},
                            {1, 1, 1},
                            {2, 2, 2}})
    for (const Case& each : kCases) {
      const int form = next++ % 4;
      const std::string block = std::to_string(nx) + ";" + std::to_string(ny) + ";" + std::to_string(nz);
      TestKernel kernel(module("%o: !vx.view<?xi64, global>, %n: index", "1;1;1", block, body(each, form)));
      ASSERT_EQ(kernel.error(), "");
      for (int64_t n : {0, 1, 5, 33, 300, -1}) {
        const int64_t threads = nx * ny * nz;
        std::vector<int64_t> out(static_cast<size_t>(threads), -1), expected = out;
        for (int64_t l = 0; l < threads; ++l)
          if (each.holds({l % nx, l / nx % ny, l / nx / ny, l, n}))
            expected[static_cast<size_t>(l)] = l + 7;
        ASSERT_EQ(kernel.run({Arg::tensor(out), Arg::scalar(static_cast<uint64_t>(n))}), 0u);
        ASSERT_EQ(out, expected) << block << " n " << n << " form " << form << ": " << each.code;
      }
    }
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
