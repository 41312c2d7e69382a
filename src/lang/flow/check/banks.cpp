#include "lang/flow/check/banks.h"

#include <algorithm>

#include "lang/flow/check/lane_conditions.h"
#include "layout/memory_access.h"
#include "layout/swizzle.h"

namespace vortex::lang::flow {
namespace {

constexpr unsigned kMostCases = 2048, kMostCasesOfNotes = 128;

struct Word {
  __int128 number;
  std::vector<__int128> leaves;  ///< coefficients that differ between lanes
  unsigned lane;
  bool isSameAs(const Word& other) const { return number == other.number && leaves == other.leaves; }
};

int64_t elementBytesOf(Type tensor) { return (bitWidth(tensor->elem->scalar) + 7) / 8; }

/// The element's place through the swizzle of its layout; kNoValue: not known.
ValueId placeOf(AccessMap& map, const ElementAccess& access) {
  if (access.offset == kNoValue || access.tensor->layout != SharedLayout::BankConflictFree)
    return access.offset;
  std::vector<int64_t> shape;
  for (const DimExpr& extent : access.tensor->shape) {
    const auto constant = extent.asConstant();
    if (!constant)
      return kNoValue;
    shape.push_back(*constant);
  }
  const layout::XorSwizzle swizzle =
      layout::solveTileSwizzle(shape, static_cast<unsigned>(elementBytesOf(access.tensor)));
  if (swizzle.mask == 0)
    return access.offset;
  NodeTable& nodes = map.graph.values;
  const auto op = [&](Op op, ValueId a, __int128 number) {
    return nodes.op(op, kUsize, a, nodes.constant(kUsize, number));
  };
  const ValueId taken = op(Op::And, access.offset, __int128(swizzle.mask) << swizzle.shift);
  const ValueId moved = op(Op::Shl, op(Op::Shr, taken, swizzle.shift), swizzle.base);
  return nodes.op(Op::Xor, kUsize, access.offset, moved);
}

class BankVisit {
public:
  BankVisit(const AccessMap& map, const ElementAccess& access, ValueId place, BankUse& worst)
      : map_(map), access_(access), place_(place), bytes_(elementBytesOf(access.tensor)), worst_(worst) {}

  std::optional<Undecided> operator()(LaneValues& lanes) {
    findActive(lanes);
    const auto place = lanes.modular(place_);
    if (!place)
      return lanes.undecided;
    if (auto open = needsCases(*place))
      return open;
    const unsigned phase = bytes_ <= 4 ? kLanes : static_cast<unsigned>(kLanes * 4 / bytes_);
    const BankUse before = worst_;
    isExact_ = isExact_ && varying_.empty() && !lanes.isApproximate;
    for (unsigned first = 0; first < kLanes; first += phase)
      countPhase(*place, first, first + phase);
    if (!bound_ || worst_.degree == before.degree)
      return std::nullopt;
    worst_ = before;
    return bound_;
  }

private:
  void findActive(LaneValues& lanes) {
    const ActiveLanes found = activeLanes(lanes, access_.conditions);
    active_ = found.isActive;
    isExact_ = !found.isUnknown;
    bound_.reset();
    for (const auto& [index, extent] : access_.indices) {
      const std::array<Truth, kLanes> isInside = lanes.isBelow(index, extent);
      for (unsigned lane = 0; lane < kLanes; ++lane)
        active_[lane] = active_[lane] && isInside[lane] != Truth::No;
      if (std::ranges::find(isInside, Truth::Unknown) != isInside.end())
        if (const auto at = lanes.modular(index))
          tellApart(lanes, *at);
    }
  }

  /// Whether a lane lies inside its tensor depends on these leaves: a conflict is asked for once more for each of their numbers.
  void tellApart(LaneValues& lanes, const Lanes& index) {
    for (const auto& [monomial, numbers] : index.terms()) {
      if (monomial.empty() || bound_)
        continue;
      const Interval range = lanes.rangeOfLane(Lanes::leaf(monomial[0]), 0);
      if (range.high - range.low < kLanes)
        bound_ = Undecided{monomial[0]};
    }
  }

  /// Leaves that move lanes apart, or elements within a word, must be known as far as banks go.
  std::optional<Undecided> needsCases(const Lanes& place) {
    varying_.clear();
    const int64_t period = layout::kBanks * layout::kBankBytes / bytes_, perWord = std::max<int64_t>(4 / bytes_, 1);
    for (const auto& [monomial, numbers] : place.terms()) {
      if (monomial.empty())
        continue;
      std::optional<__int128> first;
      bool isSame = true, isWhole = true;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (!active_[lane])
          continue;
        first = first.value_or(numbers[lane]);
        isSame = isSame && numbers[lane] == *first;
        isWhole = isWhole && (numbers[lane] - *first) % period == 0;
      }
      if (!isSame && !isWhole)
        return Undecided{monomial[0], period};
      if (first.value_or(0) % perWord != 0)
        return Undecided{monomial[0], perWord};
      if (!isSame)
        varying_.push_back(&numbers);
    }
    return std::nullopt;
  }

  void countPhase(const Lanes& place, unsigned first, unsigned end) {
    std::vector<Word> banks[layout::kBanks];
    for (unsigned lane = first; lane < end; ++lane) {
      if (!active_[lane])
        continue;
      for (int64_t at = 0; at < bytes_; at += 4) {
        Word word{floorDivide(place.numbers()[lane] * bytes_ + at, layout::kBankBytes), {}, lane};
        for (const LaneNumbers* numbers : varying_)
          word.leaves.push_back((*numbers)[lane]);
        auto& bank = banks[floorModulo(word.number, layout::kBanks)];
        if (std::none_of(bank.begin(), bank.end(), [&](const Word& other) { return other.isSameAs(word); }))
          bank.push_back(std::move(word));
      }
    }
    for (const auto& bank : banks)
      compare(bank);
  }

  void compare(const std::vector<Word>& bank) {
    if (bank.size() < 2 || bank.size() < worst_.degree ||
        (bank.size() == worst_.degree && (worst_.isExact || !isExact_)))
      return;
    worst_.degree = static_cast<unsigned>(bank.size());
    for (unsigned i = 0; i < 2; ++i) {
      worst_.lanes[i] = bank[i].lane;
      // Modulo 2^64, as indices are.
      worst_.bytes[i] = static_cast<int64_t>(static_cast<uint64_t>(bank[i].number) * layout::kBankBytes);
    }
    worst_.isExact = isExact_;
    worst_.when = map_.describeCase();
  }

  const AccessMap& map_;
  const ElementAccess& access_;
  ValueId place_;
  int64_t bytes_;
  BankUse& worst_;
  std::array<bool, kLanes> active_{};
  bool isExact_ = true;
  std::optional<Undecided> bound_;
  std::vector<const LaneNumbers*> varying_;
};

}  // namespace

BankAnswer bankUse(AccessMap& map, const ElementAccess& access) {
  BankAnswer answer;
  const bool isScalar = access.tensor->elem->kind == TypeKind::Scalar;
  const ValueId place = isScalar ? placeOf(map, access) : kNoValue;
  if (place == kNoValue)
    answer.open = Undecided{kNoValue, 0, isScalar && access.offset == kNoValue};
  else
    answer.open = map.lanes.forEachCase(BankVisit(map, access, place, answer.worst),
                                        access.verify.isValid() ? kMostCases : kMostCasesOfNotes);
  return answer;
}

}  // namespace vortex::lang::flow
