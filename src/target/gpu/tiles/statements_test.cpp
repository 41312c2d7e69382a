// Random statements that update tensors in place, one after the other, on the machine, against the reference interpreter.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "target/gpu/tiles/testing/programs.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

using passes::testing::RandomProgram;

class Statements {
public:
  explicit Statements(std::mt19937& random) : random_(random) {
    for (const char* name : {"a", "b", "c", "d"})
      program_.tensors.push_back({name, {"m", "n"}});
    program_.tensors.push_back({"w", {"n"}});
    program_.tensors.push_back({"u", {"m"}});
    program_.body = R"(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %less = arith.subi %n, %c1 : index
  %tenth = arith.constant 0.125 : f32
  %scale = vx.broadcast %tenth dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
)";
  }

  RandomProgram empty() { return program_; }

  RandomProgram make() {
    for (unsigned left = 2 + pick(6); left > 0; --left)
      statement();
    return program_;
  }

private:
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }
  std::string any() { return std::string(1, "abcd"[pick(4)]); }
  std::string let(const std::string& text) {
    std::string name = "%v" + std::to_string(next_++);
    program_.body += "  " + name + " = " + text + "\n";
    return name;
  }

  std::string load(const std::string& tensor) {
    return let("vx.tile_load %" + tensor +
               "[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>");
  }

  /// A new load, one from before, or what an earlier statement has computed.
  std::string operand() {
    if (!values_.empty() && pick(4) == 0)
      return values_[pick(static_cast<unsigned>(values_.size()))];
    values_.push_back(load(any()));
    return values_.back();
  }

  std::string sumsOfRows(const std::string& tile) {
    std::string sums = let(std::string("vx.reduce ") + (pick(2) ? "addf " : "maxf ") + tile +
                           " dims [1] : tensor<?x?xf32> -> tensor<?xf32>");
    return let("vx.broadcast " + sums + " dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>");
  }

  std::string expression() {
    std::string value = operand();
    for (unsigned left = 1 + pick(3); left > 0; --left) {
      const unsigned kind = pick(8);
      std::string other =
          kind == 0   ? sumsOfRows(value)
          : kind == 1 ? let("vx.broadcast " +
                            let("vx.tile_load %w[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>") +
                            " dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>")
                      : operand();
      const char* ops[] = {"arith.addf", "arith.subf", "arith.maximumf", "arith.mulf"};
      std::string made = let(std::string(ops[pick(4)]) + " " + value + ", " + other + " : tensor<?x?xf32>");
      value = let("math.tanh " + let("arith.mulf " + made + ", %scale : tensor<?x?xf32>") + " : tensor<?x?xf32>");
    }
    return value;
  }

  void store(const std::string& value, const std::string& tensor) {
    program_.body += "  vx.tile_store " + value + ", %" + tensor +
                     "[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>\n";
  }

  void statement() {
    switch (pick(12)) {
    case 0: {  // what is no statement over the same elements
      std::string sums = let("vx.reduce addf " + load(any()) + " dims [" + (pick(2) ? "1" : "0") +
                             "] : tensor<?x?xf32> -> tensor<?xf32>");
      const bool isRow = program_.body.find("dims [1] : tensor<?x?xf32> -> tensor<?xf32>",
                                            program_.body.rfind(sums + " =")) != std::string::npos;
      const std::string to = isRow ? "u" : "w";
      program_.body +=
          "  vx.tile_store " + sums + ", %" + to + "[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>\n";
      return;
    }
    case 1: {  // other elements of a tensor
      std::string from = any(), to = any();
      if (from == to)
        return;
      std::string value = let("vx.tile_load %" + from +
                              "[%c0, %c1] sizes(%m, %less) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>");
      program_.body += "  vx.tile_store " + value + ", %" + to +
                       "[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>\n";
      return;
    }
    default: break;
    }
    std::string value = expression();
    store(value, any());
    if (pick(3) == 0)
      values_.push_back(value);
    if (pick(3) == 0)
      values_.clear();
  }

  std::mt19937& random_;
  RandomProgram program_;
  std::vector<std::string> values_;
  unsigned next_ = 0;
};

void runOne(unsigned seed, unsigned& refused) {
  SCOPED_TRACE("VORTEX_TILE_PROGRAM=" + std::to_string(seed));
  std::mt19937 random(seed);
  Compiled compiled(Statements(random).make());
  SCOPED_TRACE(compiled.text());
  if (compiled.error().find("a tile of this size") != std::string::npos)
    return void(++refused);  // docs/limits.md
  ASSERT_EQ(compiled.error(), "");
  for (Sizes sizes : {Sizes{7, 64, 1, 1}, Sizes{33, 5, 1, 1}, Sizes{3, 1001, 1, 1}, Sizes{2, 4100, 1, 1}}) {
    SCOPED_TRACE("m n " + std::to_string(sizes.m) + " " + std::to_string(sizes.n));
    compiled.check(sizes, random);
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

const std::string kLoad =
    "vx.tile_load %a[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>\n";

std::string store(const std::string& value, const std::string& to) {
  return "  vx.tile_store " + value + ", %" + to + "[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>\n";
}

/// A store, a second one that loads the same elements by another load, and a third that shares an operation with the first: that operation takes
/// the second's load, and the first no longer has its own. A fourth looks at the loads of all three.
TEST(Statements, ShareLoadsOfOperationsThatTheyShare) {
  std::mt19937 random(base::freshSeed());
  RandomProgram program = Statements(random).empty();
  program.body += "  %first = " + kLoad + "  %second = " + kLoad + "  %shared = math.tanh %second : tensor<?x?xf32>\n" +
                  store("%shared", "b") + "  %other = arith.mulf %first, %scale : tensor<?x?xf32>\n" +
                  store("%other", "c") + "  %third = arith.addf %shared, %scale : tensor<?x?xf32>\n" +
                  store("%third", "d") + "  %last = " + kLoad +
                  "  %fourth = arith.subf %last, %scale : tensor<?x?xf32>\n" + store("%fourth", "a");
  Compiled compiled(program);
  ASSERT_EQ(compiled.error(), "");
  compiled.check({7, 64, 1, 1}, random);
}

/// The last statement's load is replaced by the second, which it uses, too, and which is replaced by the first.
TEST(Statements, ShareLoadsThatAreReplacedThemselves) {
  std::mt19937 random(base::freshSeed());
  RandomProgram program = Statements(random).empty();
  program.body += "  %first = " + kLoad + "  %second = " + kLoad + "  %shared = math.tanh %second : tensor<?x?xf32>\n" +
                  store("%shared", "b") + "  %other = arith.mulf %first, %scale : tensor<?x?xf32>\n" +
                  store("%other", "c") + "  %last = " + kLoad +
                  "  %third = arith.addf %last, %shared : tensor<?x?xf32>\n" + store("%third", "d");
  Compiled compiled(program);
  ASSERT_EQ(compiled.error(), "");
  compiled.check({7, 64, 1, 1}, random);
}

TEST(Statements, UpdateTensorsInOrder) {
  const char* more = std::getenv("VORTEX_TILE_PROGRAMS");
  const unsigned count = more ? static_cast<unsigned>(std::strtoul(more, nullptr, 10)) : base::sampled(12);
  unsigned refused = 0;
  if (const char* one = std::getenv("VORTEX_TILE_PROGRAM"))
    return runOne(static_cast<unsigned>(std::strtoul(one, nullptr, 10)), refused);
  for (unsigned tried = 0; tried < count + refused && !HasFatalFailure(); ++tried) {
    runOne(base::freshSeed(), refused);
    ASSERT_LE(refused, 8 + count / 2) << "most programs fit";
  }
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
