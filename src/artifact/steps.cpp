#include "artifact/steps.h"

#include "base/text.h"

#include <algorithm>
#include <numeric>

namespace vortex::artifact {

namespace {

class Walk {
public:
  Walk(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots, const ReadStep& read)
      : values_(values), slots_(slots), read_(read), firstSlot_(slots.size()) {
    temporaries_.resize(kernel.temporaries.size());
    std::iota(temporaries_.begin(), temporaries_.end(), 0);
    taken.phases.reserve(kernel.phases.size());
  }

  /// Steps of a case that is not taken have slots all the same. False: too many phases, or a read that ends the launch.
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
  std::optional<Error> error;

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

  bool visit(const Read& read, bool isTaken) {
    if (!isTaken) {
      set(read.let, 0);
      return true;
    }
    VORTEX_CHECK(read_, "nobody runs what the launch reads back");
    Result<std::optional<uint64_t>> value = read_(taken, temporaries_[read.temporary]);
    taken = {};
    if (!value)
      error = value.takeError();
    if (error || !*value)
      return false;
    set(read.let, **value);
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
        if (work_ > kMostPhases && !error)
          error = Error{base::concat(loop.name, " comes to more than ", kMostPhases,
                                     " grids in one launch; call the kernel from a loop of the host")};
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
  const ReadStep& read_;
  const size_t firstSlot_;             ///< of lets
  std::vector<uint32_t> temporaries_;  ///< whose memory each has
  bool isChanged_ = false;             ///< since the last setting
  uint64_t work_ = 0;                  ///< phases and rounds
};

/// Steps of which nothing has run.
class Possible {
public:
  Possible(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots)
      : kernel_(kernel), values_(values), slots_(slots), isDecidedLater_(kernel.lets.size()),
        depends_(kernel.sizes.rows().size()) {}

  void walk(const std::vector<Step>& steps, bool isPossible) {
    for (const Step& step : steps)
      std::visit([&](const auto& what) { visit(what, isPossible); }, step.what);
  }

  std::vector<uint32_t> phases;

private:
  void visit(const Run& run, bool isPossible) {
    if (isPossible)
      phases.push_back(run.phase);
  }

  void visit(const Let& let, bool isPossible) {
    const bool isLater = !isPossible || dependsOnLater(let.value);
    set(let.let, isLater, isLater ? 0 : static_cast<uint64_t>(values_[let.value]));
  }

  void visit(const Read& read, bool) { set(read.let, true, 0); }

  void visit(const Choose& choose, bool isPossible) {
    for (const Case& each : choose.cases) {
      const bool isLater = dependsOnLater(each.needs) || dependsOnLater(each.when);
      const bool holds = values_[each.needs] != 0 && values_[each.when] != 0;
      walk(each.steps, isPossible && (isLater || holds));
      isPossible = isPossible && (isLater || !holds);
    }
  }

  void visit(const Loop& loop, bool isPossible) {
    for (uint32_t i = 0; i < loop.first.size(); ++i)
      set(loop.firstLet + i, true, 0);
    walk(loop.steps, isPossible);
  }

  void visit(const Exchange&, bool) {}

  void set(uint32_t let, bool isLater, uint64_t value) {
    isDecidedLater_[let] = isLater;
    slots_.push_back(value);
    values_.advance(slots_);
  }

  /// Asked when all lets of the row are set.
  bool dependsOnLater(size::Id id) {
    std::optional<bool>& known = depends_[id.index];
    if (known)
      return *known;
    const size::Row& row = kernel_.sizes.rows()[id.index];
    bool depends = false;
    if (size::isArgument(row.op)) {
      const size_t firstLet = kernel_.params.size() + kernel_.results.size(), argument = row.operands[0];
      depends =
          argument >= firstLet && argument - firstLet < isDecidedLater_.size() && isDecidedLater_[argument - firstLet];
    }
    for (uint32_t i = 0; i < size::arity(row.op); ++i)
      depends |= dependsOnLater({row.operands[i]});
    known = depends;
    return depends;
  }

  const Kernel& kernel_;
  size::Values& values_;
  std::vector<uint64_t>& slots_;
  std::vector<bool> isDecidedLater_;          ///< per let so far
  std::vector<std::optional<bool>> depends_;  ///< per size, where it was asked
};

bool readsBack(const std::vector<Step>& steps) {
  return std::ranges::any_of(steps, [](const Step& step) {
    if (const auto* loop = std::get_if<Loop>(&step.what))
      return readsBack(loop->steps);
    if (const auto* choose = std::get_if<Choose>(&step.what))
      return std::ranges::any_of(choose->cases, [](const Case& each) { return readsBack(each.steps); });
    return std::holds_alternative<Read>(step.what);
  });
}

}  // namespace

Result<TakenSteps> takeSteps(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots,
                             const ReadStep& read) {
  values.advance(slots);
  Walk walk(kernel, values, slots, read);
  const bool isWhole = walk.walk(kernel.steps, true);
  if (walk.error)
    return *std::move(walk.error);
  if (isWhole && !read)
    walk.finish();
  return std::move(walk.taken);
}

bool readsBack(const Kernel& kernel) { return readsBack(kernel.steps); }

std::vector<uint32_t> possiblePhases(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots) {
  values.advance(slots);
  Possible possible(kernel, values, slots);
  possible.walk(kernel.steps, true);
  return std::move(possible.phases);
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
