// Tiles that loops and branches carry: vxt run on the host against the reference interpreter, on chips with much and with little shared memory.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "base/text.h"
#include "chip/chip.h"
#include "interpreter/interpreter.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>
#include <random>

namespace vortex::target::gpu::tiles::testing::carried {
namespace {

using base::concat;
using gpu::testing::Launch;

constexpr int64_t kTiles = 4;

/// x holds kTiles tiles below one another, o takes as many; y has as many elements as the loop iterations.
struct Shape {
  int64_t rows = 8, columns = 8;
  std::string type() const { return concat("tensor<", rows, "x", columns, "xi32>"); }
  std::string column() const { return concat("tensor<", rows, "x1xi32>"); }
  std::string row() const { return concat("tensor<", columns, "xi32>"); }
};

std::string kernel(const Shape& shape, const std::string& body) {
  std::string text = R"(
vx.entry @test : (!vx.view<?x?xi32, global>, !vx.view<?xi32, global>, !vx.view<?x?xi32, global>) -> () args [
  {name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "y", role = #vx.role<param>, access = #vx.access<read>},
  {name = "o", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @test.main(%x: !vx.view<?x?xi32, global>, %y: !vx.view<?xi32, global>, %o: !vx.view<?x?xi32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = vx.dim %y, 0 : !vx.view<?xi32, global>
)";
  for (int64_t i = 0; i < kTiles; ++i)
    text += concat("  %at", i, " = arith.constant ", i * shape.rows, " : index\n  %x", i, " = vx.tile_load %x[%at", i,
                   ", %c0] : <?x?xi32, global> -> ", shape.type(), "\n");
  text += body;
  for (int64_t i = 0; i < kTiles; ++i)
    text += concat("  vx.tile_store %r#", i, ", %o[%at", i, ", %c0] : ", shape.type(), ", <?x?xi32, global>\n");
  return text + "  vx.return\n}\n";
}

using Numbers = std::vector<int32_t>;
struct Data {
  Numbers x, y, o;
};

Data interpret(const std::string& text, const Shape& shape, Data data) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  auto interpreter = interpreter::Interpreter::create(*module);
  EXPECT_TRUE(interpreter);
  auto tiles = [&](Numbers& values) {
    return interpreter::Argument::tensor(values.data(), {kTiles * shape.rows, shape.columns});
  };
  std::vector<interpreter::Argument> arguments{
      tiles(data.x), interpreter::Argument::tensor(data.y.data(), {static_cast<int64_t>(data.y.size())}),
      tiles(data.o)};
  EXPECT_TRUE(interpreter->run(arguments));
  return data;
}

Data execute(Lowered& lowered, const Shape& shape, Data data, unsigned seed) {
  Launch launch;
  launch.seed = seed;
  auto add = [&](Numbers& values, bool isMatrix) {
    auto address = reinterpret_cast<uint64_t>(values.data());
    auto columns = static_cast<uint64_t>(shape.columns);
    if (isMatrix)
      launch.slots.insert(launch.slots.end(),
                          {address, static_cast<uint64_t>(kTiles * shape.rows), columns, columns, 1});
    else
      launch.slots.insert(launch.slots.end(), {address, values.size(), 1});
    launch.memory.push_back({reinterpret_cast<char*>(values.data()), values.size() * 4});
  };
  add(data.x, true);
  add(data.y, false);
  add(data.o, true);
  EXPECT_EQ(gpu::testing::run(*lowered.vxt->getOps<ir::vxt::KernelOp>().begin(), launch), "");
  return data;
}

/// The results of `text` for loops of 0 to 3 iterations; `bytes`: of shared memory that the chip has, 0: as many as sm_90. The bytes it takes; none:
/// so few are not enough.
std::optional<int64_t> check(const std::string& text, const Shape& shape, uint32_t bytes, std::mt19937& random) {
  SCOPED_TRACE(text);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  chip::Gpu chip = *chip::findGpu("sm_90");
  if (bytes)
    chip.sharedBytesPerBlock = bytes;
  Lowered lowered = lower(context, text, {}, nullptr, nullptr, &chip);
  if (!bytes)
    EXPECT_EQ(lowered.error, "");
  if (!lowered.error.empty())
    return std::nullopt;
  const auto elements = static_cast<size_t>(kTiles * shape.rows * shape.columns);
  for (size_t n = 0; n < 4; ++n) {
    Data data{Numbers(elements), Numbers(n), Numbers(elements, -7)};
    for (int32_t& value : data.x)
      value = static_cast<int32_t>(random() % 201) - 100;
    for (int32_t& value : data.y)
      value = static_cast<int32_t>(random() % 2);
    for (int repeat = 0; repeat < 2; ++repeat)
      EXPECT_EQ(execute(lowered, shape, data, static_cast<unsigned>(random())).o, interpret(text, shape, data).o)
          << n << " iterations";
  }
  return (*lowered.vxt->getOps<ir::vxt::KernelOp>().begin()).getSharedBytes();
}

/// Writes operations on tiles that are visible at a place.
class Writer {
public:
  Writer(const Shape& shape, std::mt19937& random) : shape_(shape), random_(random) {}

  std::string body;

  std::string pick(const std::vector<std::string>& from) { return from[random_() % from.size()]; }
  std::string name() { return concat("%v", next_++); }
  void line(const std::string& text) { body += "    " + text + "\n"; }

  std::string expression(const std::vector<std::string>& from, int depth) {
    if (depth == 0 || random_() % 4 == 0)
      return pick(from);
    std::string a = expression(from, depth - 1), result = name(), type = shape_.type();
    switch (random_() % (shape_.rows == shape_.columns ? 7 : 5)) {
    case 0: {
      std::string sums = name(), column = name();
      line(concat(sums, " = vx.reduce  addi ", a, " dims [1] : ", type, " -> tensor<", shape_.rows, "xi32>"));
      line(concat(column, " = vx.reshape ", sums, " : tensor<", shape_.rows, "xi32> -> ", shape_.column()));
      line(concat(result, " = vx.broadcast ", column, " dims [0, 1] : ", shape_.column(), " -> ", type));
      return result;
    }
    case 1: {
      std::string sums = name();
      line(concat(sums, " = vx.reduce  maxs ", a, " dims [0] : ", type, " -> ", shape_.row()));
      line(concat(result, " = vx.broadcast ", sums, " dims [1] : ", shape_.row(), " -> ", type));
      return result;
    }
    case 5: line(concat(result, " = vx.transpose ", a, " [1, 0] : ", type, " -> ", type)); return result;
    case 6: {
      std::string b = expression(from, depth - 1), zero = name();
      line(concat(zero, " = arith.constant dense<0> : ", type));
      line(concat(result, " = vx.dot ", a, ", ", b, ", ", zero, " : ", type, ", ", type, " -> ", type));
      return result;
    }
    default: {
      const char* op = std::array{"addi", "subi", "xori"}[random_() % 3];
      line(concat(result, " = arith.", op, " ", a, ", ", expression(from, depth - 1), " : ", type));
      return result;
    }
    }
  }

  /// One of two tiles, by what this iteration reads.
  std::string choice(const std::vector<std::string>& from, const std::string& iteration) {
    std::string flag = name(), condition = name(), zero = name(), result = name();
    line(concat(flag, " = vx.load %y[", iteration, "] guarded : <?xi32, global> -> i32"));
    line(concat(zero, " = arith.constant 0 : i32"));
    line(concat(condition, " = arith.cmpi eq, ", flag, ", ", zero, " : i32"));
    line(concat(result, " = scf.if ", condition, " -> (", shape_.type(), ") {"));
    line(concat("scf.yield ", expression(from, 2), " : ", shape_.type()));
    line("} else {");
    line(concat("scf.yield ", expression(from, 2), " : ", shape_.type()));
    line("}");
    return result;
  }

  std::string list(const std::vector<std::string>& values) { return base::join(values, ", "); }
  std::string types() const { return base::join(std::vector<std::string>(kTiles, shape_.type()), ", "); }

private:
  Shape shape_;
  std::mt19937& random_;
  int next_ = 0;
};

std::string randomLoop(const Shape& shape, std::mt19937& random) {
  Writer w(shape, random);
  std::vector<std::string> inits, carried, next;
  for (int64_t i = 0; i < kTiles; ++i) {
    inits.push_back(random() % 2 ? concat("%x", i) : w.expression({"%x0", "%x1", "%x2", "%x3"}, 2));
    carried.push_back(concat("%a", i));
  }
  std::vector<std::string> visible = carried;
  const bool isWhile = random() % 4 == 0;
  std::string before = w.body;
  w.body.clear();
  if (random() % 2)
    visible.push_back("%x1");
  if (random() % 3 == 0)
    visible.push_back(w.choice(visible, "%i"));
  for (int64_t i = 0; i < kTiles; ++i)
    next.push_back(random() % 3 == 0 ? w.pick(visible) : w.expression(visible, 3));
  std::string body = w.body, pairs;
  for (int64_t i = 0; i < kTiles; ++i)
    pairs += concat(i ? ", " : "", carried[static_cast<size_t>(i)], " = ", inits[static_cast<size_t>(i)]);
  if (!isWhile)
    return kernel(shape, concat(before, "  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(", pairs, ") -> (",
                                w.types(), ") {\n", body, "    scf.yield ", w.list(next), " : ", w.types(), "\n  }\n"));
  std::string arguments;
  for (int64_t i = 0; i < kTiles; ++i)
    arguments += concat(", %a", i, ": ", shape.type());
  std::vector<std::string> forwarded{"%b1", "%b0", "%b2", "%b3"};
  std::string pairsOfWhile;
  for (int64_t i = 0; i < kTiles; ++i)
    pairsOfWhile += concat(", %b", i, " = ", inits[static_cast<size_t>(i)]);
  return kernel(shape, concat(before, "  %k, %r:4 = scf.while (%j = %c0", pairsOfWhile, ") : (index, ", w.types(),
                              ") -> (index, ", w.types(),
                              ") {\n    %more = arith.cmpi ult, %j, %n : index\n    scf.condition(%more) %j, ",
                              w.list(forwarded), " : index, ", w.types(), "\n  } do {\n  ^bb0(%i: index", arguments,
                              "):\n", body, "    %after = arith.addi %i, %c1 : index\n    scf.yield %after, ",
                              w.list(next), " : index, ", w.types(), "\n  }\n"));
}

std::string loopOf(const Shape& shape, const std::string& body, const std::string& yields) {
  std::mt19937 none;
  Writer w(shape, none);
  return kernel(
      shape,
      concat("  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %x0, %a1 = %x1, %a2 = %x2, %a3 = %x3) -> (",
             w.types(), ") {\n", body, "    scf.yield ", yields, " : ", w.types(), "\n  }\n"));
}

TEST(Carried, TilesChangePlaces) {
  std::mt19937 random(base::freshSeed());
  for (const char* yields : {"%a1, %a0, %a2, %a3", "%a1, %a2, %a3, %a0", "%a1, %a0, %a3, %a2", "%a3, %a0, %a0, %a1"})
    check(loopOf({}, "", yields), {}, 0, random);
}

TEST(Carried, ElementwiseUpdatesNeedNoMoreMemoryThanTheTiles) {
  std::mt19937 random(base::freshSeed());
  const Shape shape{16, 24};
  std::string type = shape.type();
  std::string body = "    %m = vx.reduce  addi %a3 dims [0] : " + type + " -> " + shape.row() +
                     "\n    %b = vx.broadcast %m dims [1] : " + shape.row() + " -> " + type +
                     "\n    %s = arith.addi %a0, %b : " + type + "\n    %t = arith.subi %a1, %a2 : " + type +
                     "\n    %u = arith.xori %a2, %a3 : " + type + "\n";
  constexpr int64_t kSums = 24 * 4, kScratch = 256 * 4 * 4;
  EXPECT_LE(check(loopOf(shape, body, "%s, %t, %u, %a3"), shape, 0, random).value_or(1 << 30),
            kTiles * 16 * 25 * 4 + kSums + kScratch);
}

TEST(Carried, ABranchMayHandOnWhatItLoads) {
  std::mt19937 random(base::freshSeed());
  const Shape shape{16, 24};
  std::string type = shape.type();
  std::string body = R"(
    %flag = vx.load %y[%i] guarded : <?xi32, global> -> i32
    %zero = arith.constant 0 : i32
    %isZero = arith.cmpi eq, %flag, %zero : i32
    %c = scf.if %isZero -> (TYPE) {
      %l = vx.tile_load %x[%at2, %c0] : <?x?xi32, global> -> TYPE
      scf.yield %l : TYPE
    } else {
      scf.yield %a1 : TYPE
    }
    %m = vx.reduce  addi %c dims [0] : TYPE -> tensor<24xi32>
    %b = vx.broadcast %m dims [1] : tensor<24xi32> -> TYPE
    %s = arith.addi %c, %b : TYPE
)";
  for (size_t at; (at = body.find("TYPE")) != std::string::npos;)
    body.replace(at, 4, type);
  check(loopOf(shape, body, "%s, %c, %a2, %a3"), shape, 0, random);
}

/// One element for each row: the threads that do not write it do not read it either.
TEST(Carried, ElementsOfRowsAreUpdatedInPlace) {
  std::mt19937 random(base::freshSeed());
  for (Shape shape : {Shape{5, 12}, Shape{8, 64}, Shape{3, 200}}) {
    std::string text = R"(
  %none = arith.constant dense<-1000> : tensor<Rxi32>
  %q:5 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %x0, %a1 = %x1, %a2 = %x2, %a3 = %x3, %m = %none)
      -> (TYPE, TYPE, TYPE, TYPE, tensor<Rxi32>) {
    %most = vx.reduce  maxs %a0 dims [1] : TYPE -> tensor<Rxi32>
    %sum = arith.addi %m, %most : tensor<Rxi32>
    %column = vx.reshape %sum : tensor<Rxi32> -> tensor<Rx1xi32>
    %wide = vx.broadcast %column dims [0, 1] : tensor<Rx1xi32> -> TYPE
    %next = arith.xori %a0, %wide : TYPE
    scf.yield %next, %a0, %a2, %a1, %sum : TYPE, TYPE, TYPE, TYPE, tensor<Rxi32>
  }
  %last = vx.reshape %q#4 : tensor<Rxi32> -> tensor<Rx1xi32>
  %end = vx.broadcast %last dims [0, 1] : tensor<Rx1xi32> -> TYPE
  %r:4 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a0 = %q#0, %a1 = %q#1, %a2 = %q#2, %a3 = %q#3)
      -> (TYPE, TYPE, TYPE, TYPE) {
    %t = arith.addi %a0, %end : TYPE
    scf.yield %t, %a1, %a2, %a3 : TYPE, TYPE, TYPE, TYPE
  }
)";
    for (auto [what, with] : {std::pair<std::string, std::string>("TYPE", shape.type()),
                              std::pair<std::string, std::string>("<Rx", concat("<", shape.rows, "x"))})
      for (size_t at; (at = text.find(what)) != std::string::npos;)
        text.replace(at, what.size(), with);
    check(kernel(shape, text), shape, 0, random);
  }
}

/// A tile in shared memory is read where it is used, unless that is overwritten before.
TEST(Carried, CopiesInALoopLeaveWhatWasReadBeforeIt) {
  std::mt19937 random(base::freshSeed());
  check(kernel({}, R"(
  %t = vx.alloc "t" : !vx.view<8x8xi32, shared>
  vx.stage_copy %x[%at0, %c0] to %t {vx.guarded} : <?x?xi32, global> to <8x8xi32, shared>
  vx.stage_commit
  vx.stage_wait 0
  vx.barrier
  %first = vx.tile_load %t[%c0, %c0] inbounds : <8x8xi32, shared> -> tensor<8x8xi32>
  %p = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x2) -> (tensor<8x8xi32>) {
    vx.barrier
    vx.stage_copy %x[%at1, %c0] to %t {vx.guarded} : <?x?xi32, global> to <8x8xi32, shared>
    vx.stage_commit
    vx.stage_wait 0
    vx.barrier
    %next = vx.tile_load %t[%c0, %c0] inbounds : <8x8xi32, shared> -> tensor<8x8xi32>
    %sum = arith.addi %a, %next : tensor<8x8xi32>
    scf.yield %sum : tensor<8x8xi32>
  }
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %p, %a1 = %x1, %a2 = %x2, %a3 = %x3)
      -> (tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>) {
    %sum = arith.addi %a0, %first : tensor<8x8xi32>
    scf.yield %sum, %a1, %a2, %a3 : tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>
  }
)"),
        {}, 0, random);
}

/// A tile that a barrier stands behind is copied where something behind that reads it.
TEST(Carried, BarriersCopyOnlyWhatIsReadBehindThem) {
  std::mt19937 random(base::freshSeed());
  const auto bytes = [&](const char* read) {
    return check(kernel({}, base::concat(R"(
  %t = vx.alloc "t" : !vx.view<8x8xi32, shared>
  vx.tile_store %x0, %t[%c0, %c0] inbounds : tensor<8x8xi32>, <8x8xi32, shared>
  vx.barrier
  %first = vx.tile_load %t[%c0, %c0] inbounds : <8x8xi32, shared> -> tensor<8x8xi32>
  vx.tile_store %first, %o[%at0, %c0] : tensor<8x8xi32>, <?x?xi32, global>
  vx.barrier
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %x0, %a1 = %x1, %a2 = %x2, %a3 = %x3)
      -> (tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>) {
    %sum = arith.addi %a0, )",
                                         read, R"( : tensor<8x8xi32>
    scf.yield %sum, %a1, %a2, %a3 : tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>
  }
)")),
                 {}, 0, random)
        .value_or(0);
  };
  EXPECT_LT(bytes("%a1"), bytes("%first"));
}

/// Sixteen random loops; how many of them also run in little shared memory.
int randomLoops(unsigned seed) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int fitted = 0;
  for (int i = 0; i < base::sampled(16) && !::testing::Test::HasFailure(); ++i) {
    const Shape shape = i % 2 ? Shape{8, 8} : Shape{5, 12};
    std::string text = randomLoop(shape, random);
    auto much = check(text, shape, 0, random);
    constexpr int64_t kLeast = 28'000;  // any plan of a product wants so many
    if (much && *much > 0)
      fitted += check(text, shape, static_cast<uint32_t>(i % 2 ? kLeast : *much * 7 / 8), random).has_value();
  }
  return fitted;
}

TEST(Carried, RandomLoopsComputeWhatTheInterpreterDoes) {
  EXPECT_GT(randomLoops(base::freshSeed()), base::kIsSanitized ? -1 : 3);
}

TEST(Carried, LoopsThatOnceFailed) {
  for (unsigned seed : {2154539185U, 1482458875U})
    randomLoops(seed);
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing::carried
