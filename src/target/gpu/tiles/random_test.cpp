// Random programs: vxt run on the host against the reference interpreter, which runs the program before it is scheduled.
#include "interpreter/interpreter.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "passes/testing/random_program.h"
#include "size/evaluate.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

using gpu::testing::Launch;
using gpu::testing::run;
using passes::testing::extentOf;
using passes::testing::RandomProgram;
using passes::testing::randomProgram;

struct Storage {
  std::vector<uint32_t> ours, reference;
  std::vector<int64_t> extents;
};

std::string viewText(const RandomProgram::Tensor& tensor) {
  std::string text = "!vx.view<";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += "?x";
  return text + (tensor.isFloat ? "f32, global>" : "i32, global>");
}

std::string moduleText(const RandomProgram& program) {
  std::string types, arguments, attributes;
  for (const auto& tensor : program.tensors) {
    std::string comma = types.empty() ? "" : ", ";
    types += comma + viewText(tensor);
    arguments += comma + "%" + tensor.name + ": " + viewText(tensor);
    attributes += comma + "{name = \"" + tensor.name + "\", role = #vx.role<param>, access = #vx.access<readwrite>}";
  }
  return "vx.entry @test : (" + types + ") -> () args [" + attributes + "]\nvx.kernel @test.body(" + arguments +
         ") attributes {whole_tensor} {\n" + program.body + "  vx.return\n}\n";
}

void fill(const RandomProgram::Tensor& tensor, Storage& storage, std::mt19937& random) {
  std::normal_distribution<float> normal;
  size_t count = 1;
  for (int64_t extent : storage.extents)
    count *= static_cast<size_t>(extent);
  storage.ours.assign(count, 0xCDCDCDCD);
  for (size_t i = 0; i < count && !tensor.isResult; ++i) {
    float value = normal(random);
    int32_t integer = static_cast<int32_t>(random() % 41) - 20;
    std::memcpy(&storage.ours[i], tensor.isFloat ? static_cast<void*>(&value) : &integer, 4);
  }
  storage.reference = storage.ours;
}

void addTensor(std::vector<uint64_t>& slots, const void* data, llvm::ArrayRef<int64_t> extents) {
  slots.push_back(reinterpret_cast<uint64_t>(data));
  for (int64_t extent : extents)
    slots.push_back(static_cast<uint64_t>(extent));
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    int64_t stride = 1;
    for (size_t inner = dim + 1; inner < extents.size(); ++inner)
      stride *= extents[inner];
    slots.push_back(static_cast<uint64_t>(stride));
  }
}

int64_t evaluate(ir::SizeAttr size, mlir::TypeRange types, const std::vector<uint64_t>& slots) {
  return size::evaluate(size.getExpr(), [&](const size::Node& argument) {
    return static_cast<int64_t>(slots[ir::slotOf(argument, types)]);
  });
}

/// Data and rows start at multiples of 16 bytes.
bool isAligned(const std::vector<uint64_t>& slots, mlir::TypeRange types) {
  size_t slot = 0;
  for (mlir::Type type : types) {
    auto view = llvm::dyn_cast<ir::ViewType>(type);
    if (!view) {
      ++slot;
      continue;
    }
    auto rank = static_cast<size_t>(view.getRank());
    if (slots[slot] % 16 != 0)
      return false;
    for (size_t dim = 0; dim + 1 < rank; ++dim)
      if (slots[slot + 1 + rank + dim] * static_cast<uint64_t>(view.elementBytes()) % 16 != 0)
        return false;
    slot += 1 + 2 * rank;
  }
  return true;
}

/// Runs the phases of one launch on the machine.
class Steps : public ir::LaunchActions {
public:
  /// `seed`: even: the launch's own cases.
  Steps(Lowered& lowered, Lowered& picked, mlir::TypeRange types, Launch& launch, unsigned seed)
      : lowered_(lowered), picked_(picked), types_(types), launch_(launch), drawsCases_(seed % 2 != 0), lot_(seed) {}

  bool run(ir::KernelOp phase) override {
    auto phases = lowered_.vx->getOps<ir::KernelOp>();
    auto kernels = picked_.vxt->getOps<ir::vxt::KernelOp>();
    ir::vxt::KernelOp kernel = *std::next(kernels.begin(), std::distance(phases.begin(), llvm::find(phases, phase)));
    for (auto [axis, size] : llvm::enumerate(phase.getGrid()->getAsRange<ir::SizeAttr>()))
      launch_.grid[axis] = valueOf(size);
    std::string error = gpu::testing::run(kernel, launch_);
    if (!error.empty()) {
      lowered_.vx->dump();
      kernel.dump();
    }
    EXPECT_EQ(error, "") << phase.getSymName().str();
    return error.empty();
  }
  void set(unsigned argument, int64_t value) override {
    launch_.slots[slotOf(argument)] = static_cast<uint64_t>(value);
  }
  void exchange(unsigned a, unsigned b) override { std::swap(launch_.slots[slotOf(a)], launch_.slots[slotOf(b)]); }
  int64_t read(unsigned temporary) override {
    return *reinterpret_cast<const int64_t*>(launch_.slots[slotOf(temporary)]);
  }
  int64_t valueOf(ir::SizeAttr size) override { return evaluate(size, types_, launch_.slots); }
  bool isTaken(ir::CaseOp each) override { return drawsCases_ ? lot_() % 2 == 0 : LaunchActions::isTaken(each); }

private:
  size_t slotOf(unsigned argument) {
    const auto op = types_[argument].isIndex() ? size::Op::Scalar : size::Op::Address;
    return ir::slotOf(size::Node{.op = op, .argument = argument}, types_);
  }

  Lowered &lowered_, &picked_;
  mlir::TypeRange types_;
  Launch& launch_;
  const bool drawsCases_;
  std::mt19937_64 lot_;
};

/// Runs the phases that a launch takes, or of cases drawn by lot, with temporaries full of garbage, in the version that the tensors allow.
void launch(Lowered& lowered, Lowered& fast, std::vector<Storage>& storages, unsigned seed) {
  Launch base;
  base.seed = seed;
  for (Storage& storage : storages) {
    addTensor(base.slots, storage.ours.data(), storage.extents);
    base.memory.push_back({reinterpret_cast<char*>(storage.ours.data()), storage.ours.size() * 4});
  }
  auto entry = *lowered.vx->getOps<ir::EntryOp>().begin();
  mlir::TypeRange types = llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs();
  std::vector<std::vector<uint64_t>> temporaries;
  for (size_t i = storages.size(); i < types.size(); ++i) {
    auto extents = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[i]).getAs<mlir::ArrayAttr>("extents");
    if (!extents) {  // a let
      base.slots.push_back(0);
      continue;
    }
    std::vector<int64_t> sizes;
    size_t count = 1;
    for (auto size : extents.getAsRange<ir::SizeAttr>()) {
      sizes.push_back(evaluate(size, types, base.slots));
      count *= static_cast<size_t>(sizes.back());
    }
    temporaries.emplace_back(count + 1, 0xFBFBFBFBFBFBFBFB);
    addTensor(base.slots, temporaries.back().data(), sizes);
    auto element = llvm::cast<ir::ViewType>(types[i]).elementBytes();
    base.memory.push_back({reinterpret_cast<char*>(temporaries.back().data()), count * static_cast<size_t>(element)});
  }
  Steps steps(lowered, isAligned(base.slots, types) ? fast : lowered, types, base, seed);
  ir::walkLaunch(*lowered.vx, steps);
}

void interpret(const std::string& text, std::vector<Storage>& storages) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  auto interpreter = interpreter::Interpreter::create(*module);
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  std::vector<interpreter::Argument> arguments;
  for (Storage& storage : storages)
    arguments.push_back(interpreter::Argument::tensor(storage.reference.data(), storage.extents));
  auto findings = interpreter->run(arguments);
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_TRUE(findings->empty()) << interpreter::toText(findings->front());
}

void compare(const RandomProgram::Tensor& tensor, const Storage& storage) {
  for (size_t i = 0; i < storage.ours.size(); ++i) {
    if (!tensor.isFloat) {
      ASSERT_EQ(storage.ours[i], storage.reference[i]) << "element " << i << " of " << tensor.name;
      continue;
    }
    float ours, reference;
    std::memcpy(&ours, &storage.ours[i], 4);
    std::memcpy(&reference, &storage.reference[i], 4);
    if ((std::isnan(reference) && std::isnan(ours)) || ours == reference)
      continue;
    ASSERT_NEAR(ours, reference, 2e-4 * (1 + std::abs(reference))) << "element " << i << " of " << tensor.name;
  }
}

struct Sizes {
  int64_t m, n, p, b;
};

/// Both versions of a program, for launches of any sizes.
class Compiled {
public:
  explicit Compiled(const RandomProgram& program)
      : program_(program), text_(moduleText(program)), general_(lower(context_, text_)),
        fast_(lower(context_, text_, {.unitStrides = true, .alignedRows = true})) {}

  const std::string& text() const { return text_; }
  std::string scheduled() {
    std::string text;
    llvm::raw_string_ostream(text) << *general_.vx;
    return text;
  }
  const std::string& error() const { return general_.error.empty() ? fast_.error : general_.error; }

  void check(Sizes sizes, std::mt19937& random) {
    std::vector<Storage> storages(program_.tensors.size());
    for (auto [tensor, storage] : llvm::zip(program_.tensors, storages)) {
      for (const std::string& symbol : tensor.shape)
        storage.extents.push_back(extentOf(symbol, sizes.m, sizes.n, sizes.p, sizes.b));
      fill(tensor, storage, random);
    }
    launch(general_, fast_, storages, static_cast<unsigned>(random()));
    if (::testing::Test::HasFatalFailure())
      return;
    interpret(text_, storages);
    for (auto [tensor, storage] : llvm::zip(program_.tensors, storages))
      if (!::testing::Test::HasFatalFailure())
        compare(tensor, storage);
  }

private:
  RandomProgram program_;
  std::string text_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  Lowered general_, fast_;
};

void runOne(unsigned seed) {
  SCOPED_TRACE("VORTEX_TILE_PROGRAM=" + std::to_string(seed));
  std::mt19937 random(seed);
  RandomProgram program = randomProgram(random, 4 + random() % 14);
  Compiled compiled(program);
  SCOPED_TRACE(compiled.text());
  if (compiled.text().find("vx.dot") != std::string::npos ||
      compiled.error().find("flows through control flow") != std::string::npos)
    return;  // src/target/gpu/dot; docs/limits.md
  ASSERT_EQ(compiled.error(), "");
  static const int64_t extents[] = {1, 2, 3, 5, 8, 16, 17, 31, 40, 64, 90, 128};
  for (int round = 0; round < 3 && !::testing::Test::HasFatalFailure(); ++round) {
    Sizes sizes{extents[random() % 12], extents[random() % 12], extents[random() % 9],
                1 + static_cast<int64_t>(random() % 3)};
    if (round == 2)
      sizes.m = sizes.m / 4 * 4 + 4, sizes.n = sizes.n / 4 * 4 + 4, sizes.p = sizes.p / 4 * 4 + 4;
    SCOPED_TRACE("m n p b " + std::to_string(sizes.m) + " " + std::to_string(sizes.n) + " " + std::to_string(sizes.p) +
                 " " + std::to_string(sizes.b));
    compiled.check(sizes, random);
  }
}

/// x [m, n] → o.
RandomProgram rowProgram(const std::vector<std::string>& result, const std::string& body) {
  std::string type = result.size() == 2 ? "tensor<?x?xf32>" : "tensor<?xf32>";
  std::string view = result.size() == 2 ? "!vx.view<?x?xf32, global>" : "!vx.view<?xf32, global>";
  RandomProgram program;
  program.tensors = {{"x", {"m", "n"}, true, false}, {"o", result, true, true}};
  program.body = R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
)" + body + "  vx.tile_store %r, %o[" +
                 (result.size() == 2 ? "%c0, %c0" : "%c0") + "] inbounds : " + type + ", " + view + "\n";
  return program;
}

void runSizes(const RandomProgram& program, std::initializer_list<Sizes> all) {
  std::mt19937 random(std::random_device{}());
  Compiled compiled(program);
  ASSERT_EQ(compiled.error(), "");
  for (Sizes sizes : all) {
    SCOPED_TRACE("m " + std::to_string(sizes.m) + " n " + std::to_string(sizes.n));
    compiled.check(sizes, random);
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

TEST(Rows, OfEveryLengthAreSoftmaxed) {
  runSizes(rowProgram({"m", "n"}, R"(
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %maxb : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.divf %e, %sumb : tensor<?x?xf32>
)"),
           {{2, 8192, 1, 1},
            {3, 4096, 1, 1},
            {2, 5000, 1, 1},
            {2, 8193, 1, 1},
            {3, 2052, 1, 1},
            {2, 8188, 1, 1},
            {1, 8196, 1, 1},
            {2, 16388, 1, 1},
            {1, 60000, 1, 1},
            {5, 1000, 1, 1},
            {9, 36, 1, 1},
            {5, 1001, 1, 1},
            {70, 3, 1, 1},
            {300, 8, 1, 1},
            {33, 45, 1, 1},
            {2, 130, 1, 1},
            {2, 12287, 1, 1},
            {3, 16385, 1, 1},
            {2, 30001, 1, 1}});
}

TEST(Rows, OfEveryLengthKeepEachElement) {
  runSizes(rowProgram({"m", "n"}, R"(
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.subf %t, %maxb : tensor<?x?xf32>
)"),
           {{3, 1001, 1, 1}, {2, 8192, 1, 1}, {2, 12285, 1, 1}, {3, 16385, 1, 1}, {2, 20000, 1, 1}, {70, 3, 1, 1}});
}

TEST(Rows, ThatStartAnywhereArePassedOn) {
  runSizes(rowProgram({"m", "n"}, "  %r = arith.addf %t, %t : tensor<?x?xf32>\n"),
           {{7, 1001, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {2, 4099, 1, 1}, {3, 64, 1, 1}});
}

TEST(Rows, ThatStartAnywhereMeetOneRow) {
  runSizes(rowProgram({"m", "n"}, R"(
  %c0_ = arith.constant 0 : index
  %row = vx.tile_load %x[%c0_, %c0_] sizes(%n) {vx.guarded} : <?x?xf32, global> -> tensor<1x?xf32>
  %flat = vx.reshape %row sizes(%n) : tensor<1x?xf32> -> tensor<?xf32>
  %all = vx.broadcast %flat dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.mulf %t, %all : tensor<?x?xf32>
)"),
           {{7, 1001, 1, 1}, {5, 7, 1, 1}, {3, 64, 1, 1}});
}

TEST(Rows, ThatStartAnywhereAreSummed) {
  runSizes(rowProgram({"m"}, "  %r = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n"),
           {{7, 1001, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {2, 70001, 1, 1}});
}

/// Every kind of control flow that elements run by themselves, some inside others.
const char* const kLoopPerElement = R"(
  %two = arith.constant 2.0 : f32
  %twos = vx.broadcast %two dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %a, %b = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %t, %z = %twos) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
    %odd = vx.int remu %i, %c2 : index
    %isOdd = arith.cmpi eq, %odd, %c1 : index
    %next = scf.if %isOdd -> (tensor<?x?xf32>) {
      %u = arith.addf %y, %z : tensor<?x?xf32>
      scf.yield %u : tensor<?x?xf32>
    } else {
      %left, %v = scf.while (%k = %i, %w = %y) : (index, tensor<?x?xf32>) -> (index, tensor<?x?xf32>) {
        %more = arith.cmpi ugt, %k, %c0 : index
        scf.condition(%more) %k, %w : index, tensor<?x?xf32>
      } do {
      ^bb0(%k: index, %w: tensor<?x?xf32>):
        %s = arith.subf %w, %t : tensor<?x?xf32>
        %half = vx.int divu %k, %c2 : index
        scf.yield %half, %s : index, tensor<?x?xf32>
      }
      scf.yield %v : tensor<?x?xf32>
    }
    scf.yield %next, %y : tensor<?x?xf32>, tensor<?x?xf32>
  }
  %r = arith.addf %a, %b : tensor<?x?xf32>
)";

TEST(Control, IsRunByEveryElement) {
  runSizes(rowProgram({"m", "n"}, kLoopPerElement),
           {{7, 1001, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {2, 4099, 1, 1}, {3, 64, 1, 1}, {300, 300, 1, 1}});
}

/// Every row needs all of itself: rounds are phases.
const char* const kLoopOfLaunches = R"(
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a, %k = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %t, %h = %c2) -> (tensor<?x?xf32>, index) {
    %max = vx.reduce maxf %y dims [1] : tensor<?x?xf32> -> tensor<?xf32>
    %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
    %d = arith.subf %t, %maxb : tensor<?x?xf32>
    %left, %e = scf.while (%l = %h, %w = %d) : (index, tensor<?x?xf32>) -> (index, tensor<?x?xf32>) {
      %more = arith.cmpi ugt, %l, %i : index
      scf.condition(%more) %l, %w : index, tensor<?x?xf32>
    } do {
    ^bb0(%l: index, %w: tensor<?x?xf32>):
      %col = vx.reduce addf %w dims [0] : tensor<?x?xf32> -> tensor<?xf32>
      %colb = vx.broadcast %col dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
      %z = math.tanh %colb : tensor<?x?xf32>
      %s = arith.subf %w, %z : tensor<?x?xf32>
      %less = arith.subi %l, %c1 : index
      scf.yield %less, %s : index, tensor<?x?xf32>
    }
    %two = arith.cmpi eq, %h, %c2 : index
    %f = scf.if %two -> (tensor<?x?xf32>) {
      %low = vx.reduce minf %e dims [0, 1] : tensor<?x?xf32> -> f32
      %lows = vx.broadcast %low dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
      %g = arith.addf %e, %lows : tensor<?x?xf32>
      scf.yield %g : tensor<?x?xf32>
    } else {
      scf.yield %e : tensor<?x?xf32>
    }
    %next = arith.addi %h, %i : index
    scf.yield %f, %next : tensor<?x?xf32>, index
  }
  %r = arith.addf %a, %t : tensor<?x?xf32>
)";

TEST(Control, IsRunByTheLaunch) {
  RandomProgram program = rowProgram({"m", "n"}, kLoopOfLaunches);
  const std::string text = [&] {
    Compiled compiled(program);
    return compiled.scheduled();
  }();
  EXPECT_NE(text.find("vx.loop"), std::string::npos) << text;
  EXPECT_NE(text.find("decides"), std::string::npos) << text;
  EXPECT_NE(text.find("vx.exchange"), std::string::npos) << text;
  runSizes(program, {{7, 101, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {3, 64, 1, 1}, {100, 300, 1, 1}});
}

TEST(Columns, AreSummedInPieces) {
  runSizes(rowProgram({"n"}, "  %r = vx.reduce addf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>\n"),
           {{700, 130, 1, 1}, {512, 64, 1, 1}, {1, 5, 1, 1}, {1500, 3, 1, 1}});
}

TEST(Columns, FewerThanThreadsAreSharedByThem) {
  runSizes(rowProgram({"n"}, R"(
  %s = vx.reduce addf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %sq = arith.mulf %t, %t : tensor<?x?xf32>
  %q = vx.reduce addf %sq dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %top = vx.reduce maxf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %p = arith.mulf %s, %q : tensor<?xf32>
  %r = arith.addf %p, %top : tensor<?xf32>
)"),
           {{300, 64, 1, 1},
            {77, 67, 1, 1},
            {257, 1, 1, 1},
            {40, 128, 1, 1},
            {9, 129, 1, 1},
            {1, 512, 1, 1},
            {31, 516, 1, 1},
            {7, 1030, 1, 1},
            {5000, 12, 1, 1},
            {9, 4, 1, 1}});
}

TEST(Columns, OfThreeDimensionsAreSharedByThreads) {
  runSizes(rowProgram({"n"}, R"(
  %c3 = arith.constant 3 : index
  %k = vx.int divu %m, %c3 : index
  %k3 = arith.muli %k, %c3 : index
  %head = vx.tile_load %x[%c0, %c0] sizes(%k3, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %cube = vx.reshape %head sizes(%k, %n) : tensor<?x?xf32> -> tensor<?x3x?xf32>
  %r = vx.reduce addf %cube dims [0, 1] : tensor<?x3x?xf32> -> tensor<?xf32>
)"),
           {{300, 64, 1, 1}, {30, 65, 1, 1}, {3, 5, 1, 1}, {600, 4, 1, 1}});
}

TEST(Transposes, GoThroughSharedMemory) {
  RandomProgram program =
      rowProgram({"n", "m"}, "  %r = vx.transpose %t [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>\n");
  runSizes(program, {{128, 192, 1, 1}, {100, 70, 1, 1}, {1, 300, 1, 1}, {65, 64, 1, 1}});
}

/// x [b, m, p, n] with other dimensions than the last in another order.
RandomProgram permutation(const std::vector<std::string>& result, const std::string& order) {
  RandomProgram program;
  program.tensors = {{"x", {"b", "m", "p", "n"}, true, false}, {"o", result, true, true}};
  program.body = R"(
  %c0 = arith.constant 0 : index
  %b = vx.dim %x, 0 : !vx.view<?x?x?x?xf32, global>
  %m = vx.dim %x, 1 : !vx.view<?x?x?x?xf32, global>
  %p = vx.dim %x, 2 : !vx.view<?x?x?x?xf32, global>
  %n = vx.dim %x, 3 : !vx.view<?x?x?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0, %c0, %c0] sizes(%b, %m, %p, %n) inbounds : !vx.view<?x?x?x?xf32, global> -> tensor<?x?x?x?xf32>
  %r = vx.transpose %t )" +
                 order +
                 R"( : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
  vx.tile_store %r, %o[%c0, %c0, %c0, %c0] inbounds : tensor<?x?x?x?xf32>, !vx.view<?x?x?x?xf32, global>
)";
  return program;
}

TEST(Permutations, MoveEveryElementToItsPlace) {
  std::initializer_list<Sizes> sizes = {{7, 24, 5, 3}, {1, 20, 1, 2}, {31, 1, 17, 1}, {2, 12, 67, 1}};
  runSizes(permutation({"b", "p", "m", "n"}, "[0, 2, 1, 3]"), sizes);
  runSizes(permutation({"m", "p", "b", "n"}, "[1, 2, 0, 3]"), sizes);
}

TEST(Scans, ContinueFromBlockToBlock) {
  RandomProgram program = rowProgram({"m*n"}, R"(
  %mn = arith.muli %m, %n : index
  %f = vx.reshape %t sizes(%mn) : tensor<?x?xf32> -> tensor<?xf32>
  %r = vx.scan maxf %f dim 0 : tensor<?xf32>
)");
  runSizes(program, {{3, 4000, 1, 1}, {1, 9001, 1, 1}, {1, 1, 1, 1}});
}

TEST(RandomTiles, AgreeWithTheInterpreter) {
  if (const char* one = std::getenv("VORTEX_TILE_PROGRAM"))
    return runOne(static_cast<unsigned>(std::strtoul(one, nullptr, 10)));
  const char* more = std::getenv("VORTEX_TILE_PROGRAMS");
  unsigned count = more ? static_cast<unsigned>(std::strtoul(more, nullptr, 10)) : 10;
  std::random_device device;
  for (unsigned i = 0; i < count && !HasFatalFailure(); ++i)
    runOne(device());
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
