#include "target/nvidia/units.h"

#include "base/check.h"
#include "chip/chip.h"
#include "target/interface/llvm_module.h"
#include "target/interface/stopwatch.h"
#include "target/nvidia/emitter.h"

#include <atomic>
#include <thread>

namespace vortex::target::nvidia {

namespace {

struct Unit {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code;
  std::string optimizedLlvm, ptx;
  double optimizeMs = 0, codegenMs = 0;
};

/// Helpers and tables get names of their own: all units become one text.
void renameInternals(llvm::Module& code, llvm::StringRef entry) {
  for (llvm::GlobalValue& each : code.global_values())
    if (!each.isDeclaration() && each.getName() != entry)
      each.setName(each.getName() + "_" + entry);
}

void generate(Unit& unit, const std::string& chip, bool wantsText) {
  Stopwatch watch;
  Result<Target> target = createTarget(chip);  // a target machine serves one thread
  VORTEX_CHECK(target, "%s", target.error().message.c_str());
  optimize(*unit.code, *target);
  if (wantsText)
    unit.optimizedLlvm = printModule(*unit.code);
  unit.optimizeMs = watch.lap();
  unit.ptx = emitPtx(*unit.code, *target);
  unit.codegenMs = watch.lap();
}

void generateAll(std::vector<std::unique_ptr<Unit>>& units, const std::string& chip, bool wantsText) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < units.size(); i = next++)
      generate(*units[i], chip, wantsText);
  };
  std::vector<std::thread> others;
  size_t processors = std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(units.size(), processors); ++i)
    others.emplace_back(work);
  work();
  for (std::thread& other : others)
    other.join();
}

/// The units' texts under one header, with one declaration of the shared buffer.
std::string joinUnits(const std::vector<std::unique_ptr<Unit>>& units) {
  std::string all = units.empty() ? std::string() : units[0]->ptx;
  bool declaresBuffer = llvm::StringRef(all).contains("\n.extern .shared");
  for (size_t i = 1; i < units.size(); ++i) {
    llvm::StringRef text = units[i]->ptx;
    size_t header = text.find(".address_size");
    text = text.drop_front(std::min(text.size(), text.find('\n', header) + 1));
    size_t buffer = text.find("\n.extern .shared");
    if (declaresBuffer && buffer != llvm::StringRef::npos) {
      size_t end = text.find('\n', buffer + 1);
      all += text.take_front(buffer);
      text = text.drop_front(end);
    }
    declaresBuffer |= buffer != llvm::StringRef::npos;
    all += text;
  }
  return all;
}

}  // namespace

Result<std::string> generatePtx(llvm::ArrayRef<ir::vxt::KernelOp> entries, uint32_t slotCount, const Target& target,
                                const UnitTexts& texts, UnitTimes& times) {
  Stopwatch watch;
  std::vector<std::unique_ptr<Unit>> units;
  // The emitter reads MLIR, which is not for several threads.
  for (vxt::KernelOp each : entries) {
    units.push_back(std::make_unique<Unit>());
    Unit& unit = *units.back();
    unit.code = createModule(unit.context, each.getSymName(), target);
    const chip::Gpu* chip = chip::findGpu(target.chip);
    ModuleState state{*unit.code, slotCount, target.number, chip ? chip->tanhError : 1};
    Emitter(state, each).run();
    if (!state.error.empty())
      return base::Error{state.error};
    renameInternals(*unit.code, each.getSymName());
    std::string complaint = verify(*unit.code);
    VORTEX_CHECK(complaint.empty(), "%s", complaint.c_str());
    if (texts.llvm)
      *texts.llvm += printModule(*unit.code);
  }
  times.emit = watch.lap();
  generateAll(units, target.chip, texts.optimizedLlvm);
  for (const std::unique_ptr<Unit>& unit : units) {
    if (texts.optimizedLlvm)
      *texts.optimizedLlvm += unit->optimizedLlvm;
    times.optimize = std::max(times.optimize, unit->optimizeMs);
    times.codegen = std::max(times.codegen, unit->codegenMs);
  }
  return joinUnits(units);
}

}  // namespace vortex::target::nvidia
