// Loads at `origin + pitch * row(lane) + column(lane)`, against lane-by-lane C++: arrays end at memory that must not be touched.
#include "target/cpu/emit/testing/run_kernel.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace vortex::target::cpu::emit::testing {
namespace {

constexpr size_t kPages = 1 << 16;

/// Elements that end where a page begins that nobody may touch.
template <typename T> class Fenced {
public:
  explicit Fenced(std::mt19937_64& random) {
    memory_ = static_cast<char*>(mmap(nullptr, 2 * kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(memory_ + kPages, kPages, PROT_NONE), 0);
    for (size_t i = 0; i < kPages / sizeof(T); ++i) {
      const T value = static_cast<T>(random() | 1);  // 0 is what is read outside
      std::memcpy(memory_ + i * sizeof(T), &value, sizeof(T));
    }
  }
  ~Fenced() { munmap(memory_, 2 * kPages); }
  T* last(int64_t count) { return reinterpret_cast<T*>(memory_ + kPages) - count; }

private:
  char* memory_;
};

/// (lane >> shift & mask) * factor + constant.
struct Field {
  int64_t shift, mask, factor, constant;
  int64_t of(int64_t lane) const { return (lane >> shift & mask) * factor + constant; }
  std::string text(const std::string& name) const {
    const std::string c = "%" + name;
    auto constantText = [&](const std::string& suffix, int64_t value) {
      return "    " + c + suffix + " = arith.constant " + std::to_string(value) + " : index\n";
    };
    return constantText("s", shift) + constantText("m", mask) + constantText("f", factor) +
           constantText("c", constant) + "    " + c + "0 = arith.shrui %lane, " + c + "s : index\n    " + c +
           "1 = arith.andi " + c + "0, " + c + "m : index\n    " + c + "2 = arith.muli " + c + "1, " + c +
           "f : index\n    " + c + " = arith.addi " + c + "2, " + c + "c : index\n";
  }
};

template <typename T> void check(const std::string& type, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t end) { return static_cast<int64_t>(random() % end); };
  Fenced<T> memory(random);
  for (int program = 0; program < 12; ++program) {
    const Field row{below(5), (1 << below(4)) - 1, below(4) - 1, below(3) - 1};
    const Field column{below(3), (1 << below(4)) - 1, below(5) - 1, below(5) - 2};
    const int64_t part = int64_t(2) << below(5);  // of a warp, by whose lanes' numbers places are told
    const std::string view = "!vx.view<?x" + type + ", global>";
    codegen::TargetOptions options;
    if (program % 2)
      options.cpu = "x86-64-v3";
    // Without operations of warps, in rows that are no multiples of them.
    const bool hasRows = program % 3 == 0;
    const int64_t nx = hasRows ? 9 + below(16) : 96, ny = hasRows ? 1 + below(6) : 1, threads = nx * ny;
    TestKernel kernel(module("%a: " + view + ", %o: " + view + ", %origin: index, %pitch: index", "1;1;1",
                             std::to_string(nx) + ";" + std::to_string(ny) + ";1", R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c1 = arith.constant 1 : index
  %part = arith.constant )" + std::to_string(part) + R"( : index
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
)" + std::string(hasRows ? "" : "    vx.warp_barrier\n") + R"(
    %lane = arith.remui %l, %part : index
)" + row.text("row") + column.text("column") + R"(
    %start = arith.muli %pitch, %row : index
    %to = arith.addi %origin, %start : index
    %i = arith.addi %to, %column : index
    %v = vx.load %a[%i] guarded : )" + view + " -> " + type + R"(
    %before = arith.muli %y, %nx : index
    %at = arith.addi %before, %x : index
    vx.store %v, %o[%at] : )" + type + ", " + view + R"(
    vx.yield
  })"),
                      options);
    ASSERT_EQ(kernel.error(), "");
    for (int launch = 0; launch < 24; ++launch) {
      const int64_t count = 1 + below(launch % 2 ? 64 : kPages / sizeof(T));
      uint64_t origin = random() % count, pitch = random() % (2 + count / 8);
      if (launch % 6 == 1)
        pitch = -pitch;
      else if (launch % 6 == 2)
        pitch = launch % 4 ? random() >> below(34) : int64_t(uint64_t(1) << (63 - below(6)));  // multiples wrap
      else if (launch % 6 == 3)
        origin = static_cast<uint64_t>(-below(20));
      else if (launch % 6 == 4)  // the last element is the last one
        origin = static_cast<uint64_t>(count - 1 - column.of(part - 1)) - pitch * row.of(part - 1);
      else if (launch % 6 == 5)
        origin = below(3);
      std::vector<T> out(threads, T(77));
      kernel.run(
          {Arg::strided(memory.last(count), {count}, {1}), Arg::tensor(out), Arg::scalar(origin), Arg::scalar(pitch)});
      for (int64_t l = 0; l < threads; ++l) {
        const uint64_t at = origin + pitch * row.of(l % part) + column.of(l % part);
        ASSERT_EQ(out[l], at < uint64_t(count) ? memory.last(count)[at] : T(0))
            << type << " program " << program << " launch " << launch << " thread " << l << " part " << part;
      }
    }
  }
}

TEST(Places, AreReadRowByRow) {
  check<uint32_t>("i32", 1);
  check<uint64_t>("i64", 2);
}

TEST(Places, OfNarrowElements) {
  check<uint16_t>("i16", 3);
  check<uint8_t>("i8", 4);
}

TEST(Places, OfFragmentsAreVectors) {
  const char* body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %lane = arith.remui %l, %c32 : index
    %row = arith.shrui %lane, %c2 : index
    %column = arith.andi %lane, %c3 : index
    %start = arith.muli %pitch, %row : index
    %i = arith.addi %start, %column : index
    %v = vx.load %a[%i] guarded : !vx.view<?xf32, global> -> f32
    %s = vx.warp_reduce addf %v : f32
    vx.store %s, %o[%l] : f32, !vx.view<?xf32, global>
    vx.yield
  })";
  codegen::TargetOptions options;
  options.cpu = "x86-64-v3";
  TestKernel kernel(
      module("%a: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>, %pitch: index", "1;1;1", "32;1;1", body),
      options);
  ASSERT_EQ(kernel.error(), "");
  EXPECT_NE(kernel.llvmText().find("load <4 x float>"), std::string::npos) << kernel.llvmText();
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
