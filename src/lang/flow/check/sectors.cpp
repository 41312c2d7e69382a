#include "lang/flow/check/sectors.h"

#include <algorithm>

#include "lang/flow/check/lane_conditions.h"
#include "lang/sema/element.h"
#include "layout/memory_access.h"

namespace vortex::lang::flow {
namespace {

/// Rows of an extent that is not known are taken to lie far apart, at places that share no sector.
constexpr __int128 kFarApart = __int128(1) << 14;
constexpr __int128 kNeighbours = 8;  ///< values of a loop counter that count as one access: a sector has 8 words

__int128 bytesOf(const ElementLeaf& leaf) { return (bitWidth(leaf.scalar) + 7) / 8; }

using Active = std::array<bool, kLanes>;

/// The number that stands for a monomial of extents; nothing for other unknowns.
std::optional<__int128> numberFor(const NodeTable& nodes, const Monomial& monomial) {
  __int128 number = 1;
  for (ValueId leaf : monomial) {
    if (nodes[leaf].kind != NodeKind::Extent)
      return std::nullopt;
    number *= kFarApart;
  }
  return number;
}

class SectorVisit {
public:
  SectorVisit(const AccessMap& map, const std::vector<const ElementAccess*>& accesses, std::optional<SectorUse>& best)
      : map_(map), accesses_(accesses), layout_(elementLayout(accesses[0]->tensor->elem)), best_(best) {
    for (const ElementLeaf& leaf : layout_.leaves)
      alignment_ = std::max(alignment_, bytesOf(leaf));
  }

  std::optional<Undecided> operator()(LaneValues& lanes) {
    const ActiveLanes found = activeLanes(lanes, accesses_[0]->conditions);
    if (found.isUnknown)
      return Undecided{};
    active_ = found.isActive;
    places_.clear();
    std::optional<Lanes> first;
    for (const ElementAccess* access : accesses_) {
      const auto value = access->offset == kNoValue ? std::nullopt : lanes.modular(access->offset);
      if (!value)
        return access->offset == kNoValue ? Undecided{} : lanes.undecided;
      if (auto open = addPlaces(lanes, *access, *value, first ? *first : *value))
        return open;
      if (!first)
        first = value;
    }
    finish(*first);
    return std::nullopt;
  }

private:
  std::optional<Undecided> addPlaces(LaneValues& lanes, const ElementAccess& access, const Lanes& value,
                                     const Lanes& first) {
    LaneNumbers places = value.numbers();
    std::vector<__int128> shifts{0};
    for (const auto& [monomial, numbers] : value.terms()) {
      if (monomial.empty())
        continue;
      std::optional<__int128> common;
      bool isSame = true;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (active_[lane]) {
          isSame = isSame && numbers[lane] == common.value_or(numbers[lane]);
          common = numbers[lane];
        }
      if (!isSame) {
        const auto number = numberFor(lanes.nodes(), monomial);
        if (!number)
          return Undecided{monomial[0]};
        for (unsigned lane = 0; lane < kLanes; ++lane)
          places[lane] += numbers[lane] * *number;
      } else if (monomial.size() == 1 && common) {
        addIterations(lanes, access, monomial[0], *common, shifts);
      }
    }
    if (&access != accesses_[0] && !isNeighbour(access, value - first))
      return std::nullopt;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (active_[lane])
        for (__int128 shift : shifts)
          addElement(places[lane] + shift, access);
    return std::nullopt;
  }

  /// For every lane the same number of bytes from the first access, and in its sector if the alignment allows.
  bool isNeighbour(const ElementAccess& access, const Lanes& distance) const {
    if (!distance.isNumbers())
      return false;
    std::optional<__int128> elements;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (active_[lane] && distance.numbers()[lane] != elements.value_or(distance.numbers()[lane]))
        return false;
      if (active_[lane])
        elements = distance.numbers()[lane];
    }
    const ElementLeaf &leaf = layout_.leaves[access.firstLeaf], &firstLeaf = layout_.leaves[accesses_[0]->firstLeaf];
    const __int128 bytes = layout_.isInterleaved ? elements.value_or(0) * layout_.bytes + leaf.offset - firstLeaf.offset
                                                 : elements.value_or(0) * bytesOf(leaf);
    return bytes < layout::kSectorBytes && bytes > -__int128(layout::kSectorBytes) &&
           (layout_.isInterleaved || &leaf == &firstLeaf);
  }

  /// The scalars that the access takes of one element: in a plane each, or side by side.
  void addElement(__int128 element, const ElementAccess& access) {
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
  void addIterations(LaneValues& lanes, const ElementAccess& access, ValueId counter, __int128 factor,
                     std::vector<__int128>& shifts) const {
    const std::vector<__int128> values = lanes.fewValues(counter, kNeighbours);
    if (values.empty() || !map_.isCounterOf(counter, access))
      return;
    std::vector<__int128> all;
    for (__int128 shift : shifts)
      for (__int128 value : values)
        all.push_back(shift + value * factor);
    shifts = std::move(all);
  }

  void finish(const Lanes& first) {
    if (places_.empty())
      return;
    SectorUse use;
    use.structBytes = layout_.isInterleaved ? layout_.bytes : 0;
    for (const auto& [plane, bytes] : places_) {
      const __int128 step = layout_.isInterleaved ? alignment_ : bytes.begin()->second;
      size_t least = SIZE_MAX;
      for (__int128 start = 0; start < layout::kSectorBytes; start += step) {
        std::set<__int128> sectors;
        for (const auto& [place, size] : bytes)
          sectors.insert(floorDivide(place + start, layout::kSectorBytes));
        least = std::min(least, sectors.size());
      }
      use.sectors += static_cast<unsigned>(least);
      for (const auto& [place, size] : bytes)
        use.usedBytes += static_cast<unsigned>(size);
    }
    use.stride = strideOf(first);
    const bool isBetter = !best_ || uint64_t(use.usedBytes) * best_->sectors > uint64_t(best_->usedBytes) * use.sectors;
    if (isBetter || (best_->isPoor() && !use.isPoor()))
      best_ = use;
  }

  /// Distance between neighbouring lanes where it is the same for all of them.
  std::string strideOf(const Lanes& value) const {
    std::string text;
    for (const auto& [monomial, numbers] : value.terms()) {
      std::optional<__int128> step;
      for (unsigned lane = 0; lane + 1 < kLanes; ++lane) {
        if (!active_[lane] || !active_[lane + 1])
          continue;
        if (step && *step != numbers[lane + 1] - numbers[lane])
          return "";
        step = numbers[lane + 1] - numbers[lane];
      }
      if (step.value_or(0) == 0)
        continue;
      std::string term = *step == 1 && !monomial.empty() ? "" : std::to_string(static_cast<int64_t>(*step));
      for (ValueId leaf : monomial) {
        const std::string name = map_.nameOf(leaf);
        if (name.empty())
          return "";
        term += (term.empty() ? "`" : " * `") + name + "`";
      }
      text += (text.empty() ? "" : " + ") + term;
    }
    return text;
  }

  const AccessMap& map_;
  const std::vector<const ElementAccess*>& accesses_;
  ElementLayout layout_;
  __int128 alignment_ = 1;
  std::optional<SectorUse>& best_;
  Active active_{};
  std::map<size_t, std::map<__int128, __int128>> places_;  ///< per plane: where, and how many bytes
};

}  // namespace

std::optional<SectorUse> sectorUse(AccessMap& map, const std::vector<const ElementAccess*>& accesses) {
  if (accesses.empty() || !isStorable(accesses[0]->tensor->elem))
    return std::nullopt;
  std::optional<SectorUse> best;
  if (map.lanes.forEachCase(SectorVisit(map, accesses, best), 256))
    return std::nullopt;
  return best;
}

}  // namespace vortex::lang::flow
