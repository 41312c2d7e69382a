// Random programs: compiled code against the reference interpreter, which runs the program before it is scheduled.
#include "base/sanitized.h"
#include "interpreter/interpreter.h"
#include "ir/vx.h"
#include "passes/testing/random_program.h"
#include "target/cpu/tiles/testing/tensors.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::cpu::tiles::testing {

using passes::testing::extentOf;
using passes::testing::RandomProgram;
using passes::testing::randomProgram;

namespace {

struct Storage {
  std::vector<uint32_t> ours, reference;
  std::vector<int64_t> extents;
};

std::string shapeText(const RandomProgram::Tensor& tensor) {
  std::string text;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += "?x";
  return text + (tensor.isFloat ? "f32" : "i32");
}

void fill(const RandomProgram::Tensor& tensor, Storage& storage, std::mt19937& random) {
  std::normal_distribution<float> normal;
  size_t count = 1;
  for (int64_t extent : storage.extents)
    count *= extent;
  storage.ours.assign(count + 8, 0xCDCDCDCD);
  for (size_t i = 0; i < count && !tensor.isResult; ++i) {
    float value = normal(random);
    int32_t integer = int32_t(random() % 41) - 20;
    std::memcpy(&storage.ours[i], tensor.isFloat ? static_cast<void*>(&value) : &integer, 4);
  }
  storage.reference = storage.ours;
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
    if (!tensor.isFloat || i + 8 >= storage.ours.size()) {
      ASSERT_EQ(storage.ours[i], storage.reference[i]) << "element " << i << " of " << tensor.name;
      continue;
    }
    float ours, reference;
    std::memcpy(&ours, &storage.ours[i], 4);
    std::memcpy(&reference, &storage.reference[i], 4);
    if (std::isnan(reference) && std::isnan(ours))
      continue;
    if (ours == reference)
      continue;
    ASSERT_NEAR(ours, reference, 2e-4 * (1 + std::abs(reference))) << "element " << i << " of " << tensor.name;
  }
}

void runOne(unsigned seed) {
  SCOPED_TRACE("VORTEX_TILE_PROGRAM=" + std::to_string(seed));
  std::mt19937 random(seed);
  RandomProgram program = randomProgram(random, 4 + random() % 14);
  std::vector<Argument> arguments;
  for (const auto& tensor : program.tensors)
    arguments.push_back({tensor.name, shapeText(tensor), tensor.isResult});
  std::string text = wholeTensor(arguments, program.body);
  SCOPED_TRACE(text);
  TensorKernel kernel(arguments, program.body);
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 31, 40, 64, 90};
  for (int round = 0; round < 3; ++round) {
    int64_t m = sizes[random() % 11], n = sizes[random() % 11], p = sizes[random() % 9], b = 1 + random() % 3;
    SCOPED_TRACE("m n p b " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(p) + " " +
                 std::to_string(b));
    kernel.kernel().workers = 1 + random() % 20;
    std::vector<Storage> storages(program.tensors.size());
    std::vector<Arg> args;
    for (auto [tensor, storage] : llvm::zip(program.tensors, storages)) {
      for (const std::string& symbol : tensor.shape)
        storage.extents.push_back(extentOf(symbol, m, n, p, b));
      fill(tensor, storage, random);
      args.push_back(Arg::tensor(storage.ours, storage.extents));
    }
    ASSERT_EQ(kernel.run(args, seed), 0u);
    interpret(text, storages);
    for (auto [tensor, storage] : llvm::zip(program.tensors, storages))
      if (!::testing::Test::HasFatalFailure())
        compare(tensor, storage);
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

TEST(RandomTiles, AgreeWithTheInterpreter) {
  if (const char* one = std::getenv("VORTEX_TILE_PROGRAM"))
    return runOne(std::strtoul(one, nullptr, 10));
  const char* more = std::getenv("VORTEX_TILE_PROGRAMS");
  unsigned count = more ? std::strtoul(more, nullptr, 10) : base::sampled(25);
  for (unsigned i = 0; i < count && !HasFatalFailure(); ++i)
    runOne(generator()());
}

}  // namespace
}  // namespace vortex::target::cpu::tiles::testing
