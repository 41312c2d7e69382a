#include "lang/sema/access/check_accesses.h"
#include "lang/sema/element.h"
#include "layout/memory_access.h"

#include <algorithm>
#include <set>

namespace vortex::lang::access {

namespace {

/// Rows of an extent that is not known are taken to lie far apart, at places that share no sector.
constexpr Wide kFarApart = Wide(1) << 14;
constexpr size_t kNeighbours = 8;  ///< values of a loop counter that count as one access: a sector has 8 words

Wide bytesOf(const ElementLeaf& leaf) { return (bitWidth(leaf.scalar) + 7) / 8; }

class SectorVisit {
public:
  SectorVisit(const std::vector<const Access*>& accesses, std::optional<SectorUse>& best)
      : accesses_(accesses), layout_(elementLayout(accesses[0]->tensor->elem)), best_(best) {
    for (const ElementLeaf& leaf : layout_.leaves)
      alignment_ = std::max(alignment_, bytesOf(leaf));
  }

  std::optional<Undecided> operator()(Evaluation& evaluation) {
    std::array<bool, kLanes> active;
    if (!findActive(evaluation, active))
      return Undecided{};
    places_.clear();
    std::optional<LaneValue> first;
    for (const Access* access : accesses_) {
      auto value = evaluation.value(access->offset);
      if (!value)
        return evaluation.undecided;
      if (auto open = addPlaces(evaluation, *access, *value, first ? *first : *value, active))
        return open;
      if (!first)
        first = value;
    }
    finish(*first, active, evaluation);
    return std::nullopt;
  }

private:
  bool findActive(Evaluation& evaluation, std::array<bool, kLanes>& active) {
    active.fill(true);
    for (const Condition& condition : accesses_[0]->conditions) {
      std::array<Truth, kLanes> truth = evaluation.truth(condition.node);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (truth[lane] == Truth::Unknown && !condition.isBound)
          return false;
        if (truth[lane] != Truth::Unknown && (truth[lane] == Truth::Yes) != condition.sense)
          active[lane] = false;
      }
    }
    return true;
  }

  /// The number that stands for a monomial of extents; nothing for other unknowns.
  static std::optional<Wide> numberFor(const Graph& graph, const Monomial& monomial) {
    Wide number = 1;
    for (SymbolId id : monomial) {
      if (!graph.symbols[id].isExtent)
        return std::nullopt;
      number *= kFarApart;
    }
    return number;
  }

  std::optional<Undecided> addPlaces(Evaluation& evaluation, const Access& access, const LaneValue& value,
                                     const LaneValue& first, const std::array<bool, kLanes>& active) {
    Lanes places = value.fixed();
    std::vector<Wide> shifts{0};
    for (const auto& [monomial, lanes] : value.terms()) {
      if (monomial.empty())
        continue;
      std::optional<Wide> shared;
      bool isSame = true;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (active[lane]) {
          isSame = isSame && lanes[lane] == shared.value_or(lanes[lane]);
          shared = lanes[lane];
        }
      if (!isSame) {
        auto number = numberFor(evaluation.graph, monomial);
        if (!number)
          return Undecided{monomial[0], 0, nullptr};
        for (unsigned lane = 0; lane < kLanes; ++lane)
          places[lane] += lanes[lane] * *number;
      } else if (monomial.size() == 1 && shared) {
        addIterations(evaluation.graph.symbols[monomial[0]], access, monomial[0], *shared, shifts);
      }
    }
    if (&access != accesses_[0] && !isNeighbour(access, value - first, active))
      return std::nullopt;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (active[lane])
        for (Wide shift : shifts)
          addElement(places[lane] + shift, access);
    return std::nullopt;
  }

  /// For every lane the same number of bytes from the first access, and in its sector if the alignment allows.
  bool isNeighbour(const Access& access, const LaneValue& distance, const std::array<bool, kLanes>& active) const {
    for (const auto& [monomial, lanes] : distance.terms())
      if (!monomial.empty())
        return false;
    std::optional<Wide> elements;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (active[lane] && distance.fixed()[lane] != elements.value_or(distance.fixed()[lane]))
        return false;
      if (active[lane])
        elements = distance.fixed()[lane];
    }
    const ElementLeaf &leaf = layout_.leaves[access.firstLeaf], &firstLeaf = layout_.leaves[accesses_[0]->firstLeaf];
    const Wide bytes = layout_.isInterleaved ? elements.value_or(0) * layout_.bytes + leaf.offset - firstLeaf.offset
                                             : elements.value_or(0) * bytesOf(leaf);
    return bytes < layout::kSectorBytes && bytes > -Wide(layout::kSectorBytes) &&
           (layout_.isInterleaved || &leaf == &firstLeaf);
  }

  /// The scalars that the access takes of one element: in a plane each, or side by side.
  void addElement(Wide element, const Access& access) {
    const size_t end = std::min<size_t>(access.firstLeaf + access.leafCount, layout_.leaves.size());
    for (size_t i = access.firstLeaf; i < end; ++i) {
      const ElementLeaf& leaf = layout_.leaves[i];
      if (layout_.isInterleaved)
        places_[0].emplace(element * layout_.bytes + leaf.offset, bytesOf(leaf));
      else
        places_[i].emplace(element * bytesOf(leaf), bytesOf(leaf));
    }
  }

  /// Short loops of constant length: `for c in 0..3 { … x[i, c] … }` uses what lies side by side.
  static void addIterations(const Symbol& symbol, const Access& access, SymbolId id, Wide factor,
                            std::vector<Wide>& shifts) {
    std::vector<Wide> values = symbol.values;
    if (values.empty() && symbol.lowest && symbol.highest &&
        *symbol.highest - *symbol.lowest < static_cast<Wide>(kNeighbours))
      for (Wide value = *symbol.lowest; value <= *symbol.highest; ++value)
        values.push_back(value);
    if (values.empty() || values.size() > kNeighbours ||
        std::find(access.counters.begin(), access.counters.end(), id) == access.counters.end())
      return;
    std::vector<Wide> all;
    for (Wide shift : shifts)
      for (Wide value : values)
        all.push_back(shift + value * factor);
    shifts = std::move(all);
  }

  void finish(const LaneValue& first, const std::array<bool, kLanes>& active, const Evaluation& evaluation) {
    if (places_.empty())
      return;
    SectorUse use;
    use.structBytes = layout_.isInterleaved ? layout_.bytes : 0;
    for (const auto& [plane, bytes] : places_) {
      const Wide step = layout_.isInterleaved ? alignment_ : bytes.begin()->second;
      size_t least = SIZE_MAX;
      for (Wide start = 0; start < layout::kSectorBytes; start += step) {
        std::set<Wide> sectors;
        for (const auto& [place, size] : bytes)
          sectors.insert(floorDivide(place + start, layout::kSectorBytes));
        least = std::min(least, sectors.size());
      }
      use.sectors += static_cast<unsigned>(least);
      for (const auto& [place, size] : bytes)
        use.usedBytes += static_cast<unsigned>(size);
    }
    use.stride = strideOf(first, active, evaluation);
    const bool isBetter = !best_ || uint64_t(use.usedBytes) * best_->sectors > uint64_t(best_->usedBytes) * use.sectors;
    if (isBetter || (best_->isPoor() && !use.isPoor()))
      best_ = use;
  }

  /// Distance between neighbouring lanes where it is the same for all of them.
  static std::string strideOf(const LaneValue& value, const std::array<bool, kLanes>& active,
                              const Evaluation& evaluation) {
    std::string text;
    for (const auto& [monomial, lanes] : value.terms()) {
      std::optional<Wide> step;
      for (unsigned lane = 0; lane + 1 < kLanes; ++lane) {
        if (!active[lane] || !active[lane + 1])
          continue;
        if (step && *step != lanes[lane + 1] - lanes[lane])
          return "";
        step = lanes[lane + 1] - lanes[lane];
      }
      if (step.value_or(0) == 0)
        continue;
      std::string term = *step == 1 && !monomial.empty() ? "" : std::to_string(static_cast<int64_t>(*step));
      for (SymbolId id : monomial) {
        if (evaluation.graph.symbols[id].name.empty())
          return "";
        term += (term.empty() ? "`" : " * `") + evaluation.graph.symbols[id].name + "`";
      }
      text += (text.empty() ? "" : " + ") + term;
    }
    return text;
  }

  const std::vector<const Access*>& accesses_;
  ElementLayout layout_;
  Wide alignment_ = 1;
  std::optional<SectorUse>& best_;
  std::map<size_t, std::map<Wide, Wide>> places_;  ///< per plane: where, and how many bytes
};

}  // namespace

std::optional<SectorUse> sectorUse(Trace& trace, const std::vector<const Access*>& accesses) {
  if (accesses.empty() || !isStorable(accesses[0]->tensor->elem))
    return std::nullopt;
  std::optional<SectorUse> best;
  if (Evaluation::forEachCase(trace.graph, SectorVisit(accesses, best), 256))
    return std::nullopt;
  return best;
}

}  // namespace vortex::lang::access
