#include "lang/sema/access/lane_value.h"

#include <algorithm>

namespace vortex::lang::access {

constexpr size_t kMaxTerms = 24, kMaxDegree = 4;

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t floorModulo(int64_t a, int64_t b) { return a - floorDivide(a, b) * b; }

bool allEqual(const Lanes& lanes) {
  return std::all_of(lanes.begin(), lanes.end(), [&](int64_t lane) { return lane == lanes[0]; });
}

LaneValue LaneValue::constant(int64_t value) {
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

std::optional<int64_t> LaneValue::asNumber() const {
  if (!isFixed() || !isUniform())
    return std::nullopt;
  return fixed()[0];
}

bool LaneValue::symbolsAreMultiplesOf(int64_t divisor) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const auto& term) {
    return term.first.empty() ||
           std::all_of(term.second.begin(), term.second.end(), [&](int64_t lane) { return lane % divisor == 0; });
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

/// Overflow wraps: what it would be in the kernel too, and no index of a real tensor comes near.
void LaneValue::add(const Monomial& monomial, const Lanes& lanes, int64_t factor) {
  Lanes& sum = terms_[monomial];
  bool isZero = true;
  for (unsigned i = 0; i < kLanes; ++i) {
    sum[i] = static_cast<int64_t>(static_cast<uint64_t>(sum[i]) +
                                  static_cast<uint64_t>(lanes[i]) * static_cast<uint64_t>(factor));
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
        lanes[i] = static_cast<int64_t>(static_cast<uint64_t>(xs[i]) * static_cast<uint64_t>(ys[i]));
      if (both.size() > kMaxDegree)
        return std::nullopt;
      result.add(both, lanes, 1);
    }
  if (result.terms_.size() > kMaxTerms)
    return std::nullopt;
  return result;
}

LaneValue LaneValue::dividedBy(int64_t divisor) const {
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
