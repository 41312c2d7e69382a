#include "lang/flow/value/lane_numbers.h"

#include <algorithm>
#include <iterator>

namespace vortex::lang::flow {

using Unsigned = unsigned __int128;
constexpr size_t kMostLaneTerms = 24, kMostLaneFactors = 4;

__int128 floorModulo(__int128 a, __int128 b) { return a - floorDivide(a, b) * b; }

bool allEqual(const LaneNumbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](__int128 lane) { return lane == numbers[0]; });
}

Lanes Lanes::constant(__int128 value) {
  LaneNumbers numbers;
  numbers.fill(value);
  return of(numbers);
}

Lanes Lanes::of(const LaneNumbers& numbers) {
  Lanes result;
  result.add({}, numbers, 1);
  return result;
}

Lanes Lanes::leaf(ValueId leaf) {
  Lanes result;
  LaneNumbers ones;
  ones.fill(1);
  result.terms_.emplace_back(Monomial{leaf}, ones);
  return result;
}

const LaneNumbers& Lanes::numbers() const {
  static constexpr LaneNumbers kZeros{};
  return terms_.empty() || !terms_[0].first.empty() ? kZeros : terms_[0].second;
}

bool Lanes::isSame() const {
  return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return allEqual(term.second); });
}

std::optional<__int128> Lanes::asConstant() const {
  return isNumbers() && isSame() ? std::optional(numbers()[0]) : std::nullopt;
}

bool Lanes::leavesAreMultiplesOf(__int128 divisor) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const auto& term) {
    return term.first.empty() ||
           std::all_of(term.second.begin(), term.second.end(), [&](__int128 lane) { return lane % divisor == 0; });
  });
}

Lanes Lanes::fromFirst() const {
  Lanes result;
  for (const auto& [monomial, numbers] : terms_) {
    LaneNumbers apart = numbers;
    for (__int128& lane : apart)
      lane -= numbers[0];
    result.add(monomial, apart, 1);
  }
  return result;
}

Lanes Lanes::merge(const std::array<bool, kLanes>& chosen, const Lanes& a, const Lanes& b) {
  Lanes result;
  for (const Lanes* side : {&a, &b})
    for (const auto& [monomial, numbers] : side->terms_) {
      LaneNumbers kept{};
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (chosen[lane] == (side == &a))
          kept[lane] = numbers[lane];
      result.add(monomial, kept, 1);
    }
  return result;
}

void Lanes::add(const Monomial& monomial, const LaneNumbers& numbers, __int128 factor) {
  auto at = std::lower_bound(terms_.begin(), terms_.end(), monomial,
                             [](const auto& term, const Monomial& key) { return term.first < key; });
  if (at == terms_.end() || at->first != monomial)
    at = terms_.insert(at, {monomial, {}});
  bool isZero = true;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    __int128& sum = at->second[lane];
    sum = static_cast<__int128>(static_cast<Unsigned>(sum) +
                                static_cast<Unsigned>(numbers[lane]) * static_cast<Unsigned>(factor));
    isZero = isZero && sum == 0;
  }
  if (isZero)
    terms_.erase(at);
}

Lanes Lanes::plus(const Lanes& other, __int128 factor) const {
  Lanes result = *this;
  for (const auto& [monomial, numbers] : other.terms_)
    result.add(monomial, numbers, factor);
  return result;
}

std::optional<Lanes> Lanes::product(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (const auto& [x, xs] : a.terms_)
    for (const auto& [y, ys] : b.terms_) {
      if (x.size() + y.size() > kMostLaneFactors)
        return std::nullopt;
      Monomial both;
      std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
      LaneNumbers numbers;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        numbers[lane] = static_cast<__int128>(static_cast<Unsigned>(xs[lane]) * static_cast<Unsigned>(ys[lane]));
      result.add(both, numbers, 1);
    }
  return result.terms_.size() <= kMostLaneTerms ? std::optional(result) : std::nullopt;
}

Lanes Lanes::dividedBy(__int128 divisor) const {
  Lanes result;
  for (const auto& [monomial, numbers] : terms_) {
    LaneNumbers quotients;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      quotients[lane] = floorDivide(numbers[lane], divisor);
    result.add(monomial, quotients, 1);
  }
  return result;
}

}  // namespace vortex::lang::flow
