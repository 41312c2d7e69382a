#include "passes/check_fused.h"

#include "ir/launch.h"
#include "ir/location.h"
#include "passes/stream_reductions.h"

#include <algorithm>

namespace vortex::passes {

using namespace mlir;

namespace {

using Phases = SmallVector<SymbolRefAttr>;

Phases fewest(Block& steps);

/// The phases of the case that takes least launches; where the program decides, of the one that takes most.
Phases fewest(ir::ChooseOp choice) {
  std::optional<Phases> best;
  for (auto each : choice.getSteps().front().getOps<ir::CaseOp>()) {
    Phases own = fewest(each.getSteps().front());
    if (!best || (choice.getDecides() ? own.size() > best->size() : own.size() < best->size()))
      best = own;
  }
  return best.value_or(Phases());
}

Phases fewest(Block& steps) {
  Phases phases;
  for (Operation& op : steps) {
    if (auto phase = dyn_cast<ir::PhaseOp>(op)) {
      phases.push_back(phase.getKernelAttr());
    } else if (auto choice = dyn_cast<ir::ChooseOp>(op)) {
      llvm::append_range(phases, fewest(choice));
    } else if (auto loop = dyn_cast<ir::LoopOp>(op)) {
      // As often as its rounds: twice says so.
      for (int round = 0; round < 2; ++round)
        llvm::append_range(phases, fewest(loop.getSteps().front()));
    }
  }
  return phases;
}

/// What a phase is there for, and where that is written.
std::pair<Operation*, std::string> subject(ir::KernelOp phase) {
  std::pair<Operation*, std::string> found{phase, "this"};
  auto prefer = [&](auto kind, const char* name) { phase.walk([&](decltype(kind) op) { found = {op, name}; }); };
  prefer(ir::TileStoreOp(), "what is stored here");
  prefer(ir::ScanOp(), "a running sum");
  prefer(ir::ReduceOp(), "a reduction");
  prefer(ir::DotOp(), "a product");
  return found;
}

}  // namespace

LogicalResult checkFused(ModuleOp module) {
  for (auto entry : module.getOps<ir::EntryOp>()) {
    ir::LaunchOp launch = entry->hasAttr(kFusedAttr) ? ir::findLaunch(module) : ir::LaunchOp();
    Phases phases = launch ? fewest(launch.getSteps().front()) : Phases();
    if (phases.size() < 2)
      continue;
    auto kernelOf = [&](size_t number) {
      return SymbolTable::lookupNearestSymbolFrom<ir::KernelOp>(module, phases[number]);
    };
    auto [first, before] = subject(kernelOf(0));
    auto [second, after] = subject(kernelOf(1));
    InFlightDiagnostic error = second->emitError("`@fused`: ");
    error << after
          << (phases[0] == phases[1]
                  ? " is launched once for each round of a loop"
                  : " is a launch of its own, after " + before + " at " + ir::describeLocation(first));
    if (auto notes = entry->getAttrOfType<ArrayAttr>(kNotesAttr))
      for (auto note : notes.getAsRange<StringAttr>())
        error << "; " << note.getValue();
    return error;
  }
  return success();
}

}  // namespace vortex::passes
