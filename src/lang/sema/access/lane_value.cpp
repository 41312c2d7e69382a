#include "lang/sema/access/lane_value.h"

#include <algorithm>

namespace vortex::lang::access {

using UnsignedWide = unsigned __int128;
constexpr size_t kMaxTerms = 24, kMaxDegree = 4;

Wide floorDivide(Wide a, Wide b) { return a / b - (a % b < 0); }
Wide floorModulo(Wide a, Wide b) { return a - floorDivide(a, b) * b; }

bool allEqual(const Lanes& lanes) {
  return std::all_of(lanes.begin(), lanes.end(), [&](Wide lane) { return lane == lanes[0]; });
}

LaneValue LaneValue::constant(Wide value) {
  Lanes lanes;
  lanes.fill(value);
  return ofLanes(lanes);
}

LaneValue LaneValue::ofLanes(const Lanes& lanes) {
  LaneValue result;
  result.add({}, lanes, 1);
  return result;
}

LaneValue LaneValue::symbol(SymbolId id) {
  LaneValue result;
  Lanes ones;
  ones.fill(1);
  result.add({id}, ones, 1);
  return result;
}

const Lanes& LaneValue::fixed() const {
  static constexpr Lanes kZeros{};
  auto found = terms_.find({});
  return found == terms_.end() ? kZeros : found->second;
}

bool LaneValue::isUniform() const {
  return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return allEqual(term.second); });
}

std::optional<Wide> LaneValue::asNumber() const {
  if (!isFixed() || !isUniform())
    return std::nullopt;
  return fixed()[0];
}

bool LaneValue::symbolsAreMultiplesOf(Wide divisor) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const auto& term) {
    return term.first.empty() ||
           std::all_of(term.second.begin(), term.second.end(), [&](Wide lane) { return lane % divisor == 0; });
  });
}

LaneValue LaneValue::merge(const std::array<bool, kLanes>& chosen, const LaneValue& a, const LaneValue& b) {
  LaneValue result;
  for (const LaneValue* side : {&a, &b})
    for (const auto& [monomial, lanes] : side->terms_) {
      Lanes kept{};
      for (unsigned i = 0; i < kLanes; ++i)
        if (chosen[i] == (side == &a))
          kept[i] = lanes[i];
      result.add(monomial, kept, 1);
    }
  return result;
}

/// Overflow wraps: a value is known modulo the numbers of its type, which divide those of this one.
void LaneValue::add(const Monomial& monomial, const Lanes& lanes, Wide factor) {
  Lanes& sum = terms_[monomial];
  bool isZero = true;
  for (unsigned i = 0; i < kLanes; ++i) {
    sum[i] = static_cast<Wide>(static_cast<UnsignedWide>(sum[i]) +
                               static_cast<UnsignedWide>(lanes[i]) * static_cast<UnsignedWide>(factor));
    isZero = isZero && sum[i] == 0;
  }
  if (isZero)
    terms_.erase(monomial);
}

LaneValue operator+(const LaneValue& a, const LaneValue& b) {
  LaneValue result = a;
  for (const auto& [monomial, lanes] : b.terms_)
    result.add(monomial, lanes, 1);
  return result;
}

LaneValue operator-(const LaneValue& a, const LaneValue& b) {
  LaneValue result = a;
  for (const auto& [monomial, lanes] : b.terms_)
    result.add(monomial, lanes, -1);
  return result;
}

std::optional<LaneValue> LaneValue::product(const LaneValue& a, const LaneValue& b) {
  LaneValue result;
  for (const auto& [x, xs] : a.terms_)
    for (const auto& [y, ys] : b.terms_) {
      Monomial both;
      std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
      Lanes lanes;
      for (unsigned i = 0; i < kLanes; ++i)
        lanes[i] = static_cast<Wide>(static_cast<UnsignedWide>(xs[i]) * static_cast<UnsignedWide>(ys[i]));
      if (both.size() > kMaxDegree)
        return std::nullopt;
      result.add(both, lanes, 1);
    }
  if (result.terms_.size() > kMaxTerms)
    return std::nullopt;
  return result;
}

LaneValue LaneValue::dividedBy(Wide divisor) const {
  LaneValue result;
  for (const auto& [monomial, lanes] : terms_) {
    Lanes quotient;
    for (unsigned i = 0; i < kLanes; ++i)
      quotient[i] = floorDivide(lanes[i], divisor);
    result.add(monomial, quotient, 1);
  }
  return result;
}

}  // namespace vortex::lang::access
