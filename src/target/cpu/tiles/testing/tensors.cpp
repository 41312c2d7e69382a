#include "target/cpu/tiles/testing/tensors.h"

#include "artifact/steps.h"
#include "base/check.h"
#include "base/fresh_seed.h"
#include "ir/vx.h"
#include "passes/phases.h"
#include "passes/simplify.h"

#include <cstdlib>
#include <mlir/Parser/Parser.h>
#include <mlir/Pass/PassManager.h>
#include <mlir/Transforms/Passes.h>

namespace vortex::target::cpu::tiles::testing {

std::string wholeTensor(const std::vector<Argument>& arguments, const std::string& body) {
  std::string types, facts, signature;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    std::string type = "!vx.view<" + argument.shape + ", global>", comma = i ? ", " : "";
    types += comma + type;
    signature += comma + "%" + argument.name + ": " + type;
    facts += comma + "{name = \"" + argument.name + "\", role = #vx.role<param>, access = #vx.access<" +
             (argument.isResult ? "readwrite" : "read") + ">}";
  }
  return "vx.entry @k : (" + types + ") -> () args [" + facts + "]\nvx.kernel @k.body(" + signature +
         ") attributes {whole_tensor} {\n" + body + "\n  vx.return\n}\n";
}

std::string scheduled(const std::string& text) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), "test.mlir");
  VORTEX_CHECK(parsed, "%s", text.c_str());
  auto target = codegen::createTarget();
  VORTEX_CHECK(target);
  mlir::PassManager passes(&context);
  passes.addPass(passes::createPhasesPass(tensorSchedule(*target)));
  passes.addPass(passes::createSimplifyPass());
  passes.addPass(mlir::createCSEPass());
  VORTEX_CHECK(mlir::succeeded(passes.run(*parsed)));
  std::string result;
  llvm::raw_string_ostream stream(result);
  parsed->print(stream);
  if (std::getenv("VORTEX_PRINT_CODE"))
    fprintf(stderr, "%s\n", result.c_str());
  return result;
}

TensorKernel::TensorKernel(const std::vector<Argument>& arguments, const std::string& body)
    : text_(scheduled(wholeTensor(arguments, body))), kernel_(text_) {
  VORTEX_CHECK(kernel_.error().empty(), "%s\n%s", kernel_.error().c_str(), text_.c_str());
}

std::vector<Arg> TensorKernel::withTemporaries(const std::vector<Arg>& args) {
  std::vector<uint64_t> slots;
  for (const Arg& arg : args) {
    slots.push_back(reinterpret_cast<uint64_t>(arg.data));
    slots.insert(slots.end(), arg.extents.begin(), arg.extents.end());
    slots.insert(slots.end(), arg.strides.begin(), arg.strides.end());
  }
  std::vector<Arg> all = args;
  const size::Program program = sizeProgram(kernel_.kernel());
  size::Values values(program, {.clusters = {kernel_.workers}});
  const size_t given = slots.size();
  VORTEX_CHECK(bool(takeSteps(kernel_.kernel(), values, slots)), "endless loops");
  for (size_t let = given; let < slots.size(); ++let)
    all.push_back(Arg::scalar(slots[let]));
  memory_.clear();
  for (const artifact::Param& temporary : kernel_.kernel().temporaries) {
    std::vector<int64_t> extents;
    size_t count = 1;
    values.advance(slots);
    for (size::Id extent : temporary.extents)
      count *= extents.emplace_back(values[extent]);
    memory_.emplace_back(count * byteSize(temporary.type) / 8 + 16, 0xCDCDCDCDCDCDCDCDull);
    std::vector<int64_t> strides(extents.size(), 1);
    for (size_t i = extents.size(); i-- > 1;)
      strides[i - 1] = strides[i] * extents[i];
    uintptr_t address = (reinterpret_cast<uintptr_t>(memory_.back().data()) + 63) / 64 * 64;
    all.push_back(Arg::strided(reinterpret_cast<void*>(address), extents, strides));
    slots.push_back(address);
    slots.insert(slots.end(), extents.begin(), extents.end());
    slots.insert(slots.end(), strides.begin(), strides.end());
  }
  return all;
}

uint32_t TensorKernel::run(const std::vector<Arg>& args, unsigned seed) {
  return kernel_.run(withTemporaries(args), seed);
}
std::function<void()> TensorKernel::prepare(const std::vector<Arg>& args) {
  return kernel_.prepare(withTemporaries(args));
}

std::mt19937& generator() {
  static std::mt19937 engine(base::freshSeed());
  return engine;
}

std::vector<float> randomFloats(size_t count, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values)
    value = normal(generator());
  return values;
}

}  // namespace vortex::target::cpu::tiles::testing
