// Random programs: vxt run on the host against the reference interpreter, which runs the program before it is scheduled.
#include "interpreter/interpreter.h"
#include "ir/size_attr.h"
#include "passes/testing/random_program.h"
#include "target/gpu/tiles/machine_test.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

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
  auto expr = ir::toSizeExpr(size, types, [&] { return mlir::emitError(mlir::UnknownLoc::get(size.getContext())); });
  return expr->evaluate(slots);
}

/// Data and rows start at multiples of 16 bytes.
bool isAligned(const std::vector<uint64_t>& slots, mlir::TypeRange types) {
  size_t slot = 0;
  for (mlir::Type type : types) {
    auto view = llvm::cast<ir::ViewType>(type);
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

/// Runs all phases with temporaries full of garbage, in the version that the tensors allow.
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
  auto phases = lowered.vx->getOps<ir::KernelOp>();
  Lowered& picked = isAligned(base.slots, types) ? fast : lowered;
  for (auto [phase, kernel] : llvm::zip(phases, picked.vxt->getOps<ir::vxt::KernelOp>())) {
    Launch own = base;
    for (auto [axis, size] : llvm::enumerate(phase.getGrid()->getAsRange<ir::SizeAttr>()))
      own.grid[axis] = evaluate(size, types, base.slots);
    std::string error = run(kernel, own);
    if (!error.empty()) {
      lowered.vx->dump();
      kernel.dump();
    }
    ASSERT_EQ(error, "") << phase.getSymName().str();
  }
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

void runOne(unsigned seed) {
  SCOPED_TRACE("VORTEX_TILE_PROGRAM=" + std::to_string(seed));
  std::mt19937 random(seed);
  RandomProgram program = randomProgram(random, 4 + random() % 14);
  std::string text = moduleText(program);
  if (text.find("vx.dot") != std::string::npos)
    return;
  SCOPED_TRACE(text);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Lowered lowered = lower(context, text);
  if (lowered.error.find("flows through control flow") != std::string::npos)
    return;  // docs/limits.md
  ASSERT_EQ(lowered.error, "");
  Lowered fast = lower(context, text, {.unitStrides = true, .alignedRows = true});
  ASSERT_EQ(fast.error, "");
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 31, 40, 64, 90, 128};
  for (int round = 0; round < 3; ++round) {
    int64_t m = sizes[random() % 12], n = sizes[random() % 12], p = sizes[random() % 9];
    if (round == 2)
      m = m / 4 * 4 + 4, n = n / 4 * 4 + 4, p = p / 4 * 4 + 4;
    int64_t b = 1 + static_cast<int64_t>(random() % 3);
    SCOPED_TRACE("m n p b " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(p) + " " +
                 std::to_string(b));
    std::vector<Storage> storages(program.tensors.size());
    for (auto [tensor, storage] : llvm::zip(program.tensors, storages)) {
      for (const std::string& symbol : tensor.shape)
        storage.extents.push_back(extentOf(symbol, m, n, p, b));
      fill(tensor, storage, random);
    }
    launch(lowered, fast, storages, seed);
    if (::testing::Test::HasFatalFailure())
      return;
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
    return runOne(static_cast<unsigned>(std::strtoul(one, nullptr, 10)));
  const char* more = std::getenv("VORTEX_TILE_PROGRAMS");
  unsigned count = more ? static_cast<unsigned>(std::strtoul(more, nullptr, 10)) : 10;
  std::random_device device;
  for (unsigned i = 0; i < count && !HasFatalFailure(); ++i)
    runOne(device());
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
