#include "artifact/steps.h"

#include "base/text.h"

#include <algorithm>
#include <numeric>

namespace vortex::artifact {

namespace {

class Walk {
public:
  Walk(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots)
      : values_(values), slots_(slots), firstSlot_(slots.size()) {
    temporaries_.resize(kernel.temporaries.size());
    std::iota(temporaries_.begin(), temporaries_.end(), 0);
    taken.phases.reserve(kernel.phases.size());
  }

  /// Steps of a case that is not taken have slots all the same. False: too many phases.
  bool walk(const std::vector<Step>& steps, bool isTaken) {
    return std::ranges::all_of(steps, [&](const Step& step) {
      return std::visit([&](const auto& what) { return visit(what, isTaken); }, step.what);
    });
  }

  /// Lets that a setting does not have were set after its phases.
  void finish() {
    if (taken.allSettings.empty())
      addSetting();
    for (Setting& setting : taken.allSettings)
      setting.lets.insert(setting.lets.end(), slots_.begin() + static_cast<ptrdiff_t>(firstSlot_ + setting.lets.size()),
                          slots_.end());
    // The only setting is the launch's own.
    const auto lets = std::span(slots_).subspan(firstSlot_);
    if (std::ranges::equal(lets, taken.allSettings[0].lets))
      return;
    std::ranges::copy(taken.allSettings[0].lets, lets.begin());
    values_.restart();
    values_.advance(slots_);
  }

  TakenSteps taken;
  std::string tooMany;  ///< the loop that runs too often

private:
  bool visit(const Run& run, bool isTaken) {
    if (!isTaken)
      return true;
    if (isChanged_ || taken.allSettings.empty())
      addSetting();
    taken.phases.push_back(run.phase);
    taken.settings.push_back(static_cast<uint32_t>(taken.allSettings.size() - 1));
    return ++work_ <= kMostPhases;
  }

  void addSetting() {
    taken.allSettings.push_back({{slots_.begin() + static_cast<ptrdiff_t>(firstSlot_), slots_.end()}, temporaries_});
    isChanged_ = false;
  }

  bool visit(const Let& let, bool isTaken) {
    set(let.let, isTaken ? static_cast<uint64_t>(values_[let.value]) : 0);
    return true;
  }

  void set(uint32_t let, uint64_t value) {
    const size_t slot = firstSlot_ + let;
    if (slot == slots_.size()) {
      slots_.push_back(value);
    } else {
      isChanged_ |= slots_[slot] != value;
      slots_[slot] = value;
      values_.restart();
    }
    values_.advance(slots_);
  }

  bool visit(const Choose& choose, bool isTaken) {
    for (const Case& each : choose.cases) {
      const bool isChosen = isTaken && values_[each.needs] != 0 && values_[each.when] != 0;
      if (!walk(each.steps, isChosen))
        return false;
      isTaken = isTaken && !isChosen;
    }
    return true;
  }

  bool visit(const Loop& loop, bool isTaken) {
    setAll(loop, loop.first, isTaken);
    isChanged_ |= isTaken;
    bool anyRound = false;
    for (; isTaken && values_[loop.condition] != 0; anyRound = true) {
      if (++work_ > kMostPhases || !walk(loop.steps, true)) {
        tooMany = tooMany.empty() ? loop.name : tooMany;
        return false;
      }
      setAll(loop, loop.next, true);
    }
    isChanged_ |= anyRound;
    return anyRound || walk(loop.steps, false);
  }

  void setAll(const Loop& loop, const std::vector<size::Id>& ids, bool isTaken) {
    std::vector<uint64_t> known;
    for (size::Id id : ids)
      known.push_back(isTaken ? static_cast<uint64_t>(values_[id]) : 0);
    for (uint32_t i = 0; i < known.size(); ++i)
      set(loop.firstLet + i, known[i]);
  }

  bool visit(const Exchange& exchange, bool isTaken) {
    if (isTaken) {
      std::swap(temporaries_[exchange.a], temporaries_[exchange.b]);
      isChanged_ = true;
    }
    return true;
  }

  size::Values& values_;
  std::vector<uint64_t>& slots_;
  const size_t firstSlot_;             ///< of lets
  std::vector<uint32_t> temporaries_;  ///< whose memory each has
  bool isChanged_ = false;             ///< since the last setting
  uint64_t work_ = 0;                  ///< phases and rounds
};

}  // namespace

Result<TakenSteps> takeSteps(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots) {
  values.advance(slots);
  Walk walk(kernel, values, slots);
  if (!walk.walk(kernel.steps, true))
    return Error{base::concat(walk.tooMany, " comes to more than ", kMostPhases,
                              " grids in one launch; call the kernel from a loop of the host")};
  walk.finish();
  return std::move(walk.taken);
}

void applySetting(const Kernel& kernel, const Setting& setting, std::span<const uint64_t> own,
                  std::vector<uint64_t>& slots) {
  for (size_t let = 0; let < setting.lets.size(); ++let)
    slots[kernel.lets[let].firstSlot] = setting.lets[let];
  for (size_t i = 0; i < setting.temporaries.size(); ++i) {
    const Param& from = kernel.temporaries[setting.temporaries[i]];
    std::copy_n(own.begin() + from.firstSlot, 1 + 2 * size_t{from.rank},
                slots.begin() + kernel.temporaries[i].firstSlot);
  }
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
