#include "artifact/steps.h"

#include <algorithm>

namespace vortex::artifact {

namespace {

class Walk {
public:
  Walk(size::Values& values, std::vector<uint64_t>& slots) : values_(values), slots_(slots) {}

  /// Steps of a case that is not taken have slots all the same.
  void walk(const std::vector<Step>& steps, bool isTaken) {
    for (const Step& step : steps)
      std::visit([&](const auto& what) { visit(what, isTaken); }, step.what);
  }

  std::vector<uint32_t> phases;

private:
  void visit(const Run& run, bool isTaken) {
    if (isTaken)
      phases.push_back(run.phase);
  }

  void visit(const Let& let, bool isTaken) {
    slots_.push_back(isTaken ? static_cast<uint64_t>(values_[let.value]) : 0);
    values_.advance(slots_);
  }

  void visit(const Choose& choose, bool isTaken) {
    for (const Case& each : choose.cases) {
      const bool isChosen = isTaken && values_[each.needs] != 0 && values_[each.when] != 0;
      walk(each.steps, isChosen);
      isTaken = isTaken && !isChosen;
    }
  }

  size::Values& values_;
  std::vector<uint64_t>& slots_;
};

}  // namespace

std::vector<uint32_t> takeSteps(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots) {
  values.advance(slots);
  Walk walk(values, slots);
  walk.phases.reserve(kernel.phases.size());
  walk.walk(kernel.steps, true);
  return std::move(walk.phases);
}

std::vector<bool> writtenTemporaries(const Kernel& kernel, const std::vector<uint32_t>& phases) {
  std::vector<bool> written(kernel.temporaries.size());
  for (uint32_t phase : phases)
    for (uint32_t temporary : kernel.phases[phase].written)
      written[temporary] = true;
  return written;
}

std::vector<Step> inOrder(size_t phases) {
  std::vector<Step> steps;
  for (size_t phase = 0; phase < phases; ++phase)
    steps.push_back({Run{static_cast<uint32_t>(phase)}});
  return steps;
}

}  // namespace vortex::artifact
