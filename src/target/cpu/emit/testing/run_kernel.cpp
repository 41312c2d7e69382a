#include "target/cpu/emit/testing/run_kernel.h"

#include "artifact/steps.h"
#include "base/check.h"
#include "ir/vx.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::cpu::emit::testing {

static constexpr size_t kRedZone = 4096;
static constexpr unsigned char kPoison = 0xCD;

Arg Arg::scalar(float value) { return scalar(uint64_t(std::bit_cast<uint32_t>(value))); }

struct TestKernel::Loaded {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<artifact::CpuEntry> entries;
};

TestKernel::TestKernel(const std::string& text, const codegen::TargetOptions& options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), "test.mlir");
  VORTEX_CHECK(parsed, "%s", text.c_str());
  codegen::TargetOptions chosen = options;
  if (const char* cpu = std::getenv("VORTEX_TEST_CPU"))  // the same tests for another processor
    chosen.cpu = cpu;
  auto target = codegen::createTarget(chosen);
  VORTEX_CHECK(target);
  if (std::getenv("VORTEX_TEST_WIDE")) {  // the code shapes of AVX-512, taken apart by LLVM where the host lacks it
    target->vector.avx512 = true;
    target->vector.vectorBytes = 64;
    target->vector.vectorRegisters = 32;
  }
  bool wantsText = std::getenv("VORTEX_PRINT_CODE") != nullptr;
  CompileTexts texts;
  texts.optimizedLlvm = &llvm_;
  if (wantsText)
    texts.assembly = &assembly_;
  auto compiled = compileKernel(*parsed, *target, texts, &times_);
  if (!compiled) {
    error_ = compiled.error().message;
    return;
  }
  if (wantsText)
    fprintf(stderr, "%s\n%s\n", llvm_.c_str(), assembly_.c_str());
  kernel_ = std::move(*compiled);
  loaded_ = std::make_unique<Loaded>();
  loaded_->jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  auto& jit = *loaded_->jit;
  jit.getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit.getDataLayout().getGlobalPrefix())));
  llvm::StringRef object(reinterpret_cast<const char*>(kernel_.code.data()), kernel_.code.size());
  llvm::cantFail(jit.addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object)));
  for (const artifact::Phase& phase : kernel_.phases)
    loaded_->entries.push_back(llvm::cantFail(jit.lookup(phase.symbol)).toPtr<artifact::CpuEntry>());
}

TestKernel::~TestKernel() = default;

/// Of the steps of one launch, which computes the lets that the arguments give.
artifact::TakenSteps TestKernel::stepsTaken(const std::vector<uint64_t>& slots) const {
  const uint32_t known = kernel_.lets.empty() ? static_cast<uint32_t>(slots.size()) : kernel_.lets[0].firstSlot;
  std::vector<uint64_t> arguments(slots.begin(), slots.begin() + known);
  const size::Program program = sizeProgram(kernel_);
  size::Values sizes(program, {.clusters = {workers}});
  return *takeSteps(kernel_, sizes, arguments);
}

std::vector<uint64_t> TestKernel::slotsOf(const std::vector<Arg>& args) const {
  std::vector<uint64_t> slots;
  for (const Arg& arg : args) {
    slots.push_back(arg.isTensor ? reinterpret_cast<uint64_t>(arg.data) : arg.bits);
    slots.insert(slots.end(), arg.extents.begin(), arg.extents.end());
    slots.insert(slots.end(), arg.strides.begin(), arg.strides.end());
  }
  VORTEX_CHECK(slots.size() == kernel_.slotCount, "%zu slots for %u", slots.size(), kernel_.slotCount);
  return slots;
}

namespace {

struct PhaseRun {
  artifact::CpuEntry entry;
  artifact::CpuBlock block{};
  uint64_t blocks = 1;
  size_t scratchBytes = 0;
  std::unique_ptr<unsigned char, void (*)(void*)> scratch{nullptr, std::free};

  PhaseRun(const artifact::Phase& phase, artifact::CpuEntry entry, const size::Values& sizes) : entry(entry) {
    for (int axis = 0; axis < 3; ++axis) {
      block.grid[axis] = static_cast<uint32_t>(sizes[phase.grid[axis]]);
      block.block[axis] = static_cast<uint32_t>(sizes[phase.block[axis]]);
      blocks *= block.grid[axis];
    }
    scratchBytes = static_cast<size_t>(sizes[phase.scratchBytes]);
    scratch.reset(static_cast<unsigned char*>(std::aligned_alloc(64, (scratchBytes + kRedZone + 63) / 64 * 64)));
    block.scratch = scratch.get();
  }

  uint32_t run(const std::vector<uint64_t>& slots, uint64_t number) {
    block.id[0] = number % block.grid[0];
    block.id[1] = number / block.grid[0] % block.grid[1];
    block.id[2] = number / block.grid[0] / block.grid[1];
    return entry(slots.data(), &block);
  }
};

}  // namespace

uint32_t TestKernel::run(const std::vector<Arg>& args, unsigned seed) {
  VORTEX_CHECK(loaded_, "%s", error_.c_str());
  std::vector<uint64_t> slots = slotsOf(args);
  prints_.clear();
  const size::Program program = sizeProgram(kernel_);
  size::Values sizes(program, {.clusters = {workers}});
  const artifact::TakenSteps taken = stepsTaken(slots);
  std::vector<uint64_t> own = slots;
  for (size_t step = 0; step < taken.phases.size(); ++step) {
    const uint32_t i = taken.phases[step];
    applySetting(kernel_, taken.allSettings[taken.settings[step]], slots, own);
    sizes.restart();
    sizes.advance(own);
    PhaseRun phase(kernel_.phases[i], loaded_->entries[i], sizes);
    phase.block.context = this;
    phase.block.print = [](void* context, uint32_t fault, const uint64_t* values, uint32_t count) {
      static_cast<TestKernel*>(context)->prints_.push_back({fault, {values, values + count}});
    };
    std::vector<uint64_t> order(phase.blocks);
    for (uint64_t b = 0; b < phase.blocks; ++b)
      order[b] = b;
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (uint64_t number : order) {
      std::memset(phase.scratch.get(), kPoison, phase.scratchBytes + kRedZone);
      if (uint32_t fault = phase.run(own, number))
        return fault;
      for (size_t b = 0; b < kRedZone; ++b)
        VORTEX_CHECK(phase.scratch.get()[phase.scratchBytes + b] == kPoison, "scratch of %zu bytes overrun at +%zu",
                     phase.scratchBytes, b);
    }
  }
  return 0;
}

std::function<void()> TestKernel::prepare(const std::vector<Arg>& args) {
  auto slots = std::make_shared<std::vector<uint64_t>>(slotsOf(args));
  auto phases = std::make_shared<std::vector<PhaseRun>>();
  const size::Program program = sizeProgram(kernel_);
  size::Values sizes(program, {.clusters = {workers}});
  sizes.advance(*slots);
  for (uint32_t i : stepsTaken(*slots).phases)
    phases->emplace_back(kernel_.phases[i], loaded_->entries[i], sizes);
  return [slots, phases] {
    for (PhaseRun& phase : *phases)
      for (uint64_t b = 0; b < phase.blocks; ++b)
        phase.run(*slots, b);
  };
}

std::string module(const std::string& signature, const std::string& grid, const std::string& block,
                   const std::string& body) {
  std::string types, facts;
  int depth = 0;
  std::string type;
  bool inType = false;
  auto finish = [&] {
    if (type.empty())
      return;
    types += (types.empty() ? "" : ", ") + type;
    bool view = type.find("view") != std::string::npos;
    facts += std::string(facts.empty() ? "" : ", ") + "{name = \"arg\", role = #vx.role<param>" +
             (view ? ", access = #vx.access<readwrite>}" : "}");
    type.clear();
    inType = false;
  };
  for (char c : signature) {
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == ',' && depth == 0) {
      finish();
    } else if (c == ':' && !inType) {
      inType = true;
    } else if (inType && !(type.empty() && c == ' ')) {
      type += c;
    }
  }
  finish();
  auto sizes = [](const std::string& list) {
    std::string result;
    size_t start = 0;
    while (start <= list.size()) {
      size_t end = std::min(list.find(';', start), list.size());
      result += (result.empty() ? "" : ", ") + ("#vx.size<\"" + list.substr(start, end - start) + "\">");
      start = end + 1;
    }
    return result;
  };
  return "vx.entry @k : (" + types + ") -> () args [" + facts + "]\n" + "vx.kernel @k.main(" + signature + ") grid [" +
         sizes(grid) + "] block [" + sizes(block) + "] {\n" + body + "\n  vx.return\n}\n";
}

}  // namespace vortex::target::cpu::emit::testing
