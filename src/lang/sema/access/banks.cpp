#include "lang/sema/access/check_accesses.h"
#include "layout/memory_access.h"
#include "layout/swizzle.h"

#include <algorithm>

namespace vortex::lang::access {

namespace {

struct Word {
  Wide number;
  std::vector<Wide> symbols;  ///< coefficients that differ between lanes
  unsigned lane;
  bool isSameAs(const Word& other) const { return number == other.number && symbols == other.symbols; }
};

int64_t elementBytesOf(Type tensor) { return (bitWidth(tensor->elem->scalar) + 7) / 8; }

/// The node of the element's place, through the swizzle of its layout.
std::optional<NodeId> placeOf(Trace& trace, const Access& access) {
  Graph& graph = trace.graph;
  if (access.tensor->layout != SharedLayout::BankConflictFree)
    return access.offset;
  std::vector<int64_t> shape;
  for (const DimExpr& extent : access.tensor->shape) {
    auto constant = extent.asConstant();
    if (!constant)
      return std::nullopt;
    shape.push_back(*constant);
  }
  auto [found, isNew] = trace.swizzles.try_emplace(access.tensor);
  if (isNew)
    found->second = layout::solveTileSwizzle(shape, static_cast<unsigned>(elementBytesOf(access.tensor)));
  const layout::XorSwizzle swizzle = found->second;
  if (swizzle.mask == 0)
    return access.offset;
  const Wide mask = Wide(swizzle.mask) << swizzle.shift;
  NodeId moved = graph.make(Op::And, access.offset, graph.constant(mask));
  moved = graph.make(Op::Shr, moved, graph.constant(swizzle.shift));
  moved = graph.make(Op::Shl, moved, graph.constant(swizzle.base));
  return graph.make(Op::Xor, access.offset, moved);
}

class BankVisit {
public:
  BankVisit(const Access& access, NodeId place, BankUse& worst)
      : access_(access), place_(place), bytes_(elementBytesOf(access.tensor)), worst_(worst) {}

  std::optional<Undecided> operator()(Evaluation& evaluation) {
    findActive(evaluation);
    auto place = evaluation.value(place_);
    if (!place)
      return evaluation.undecided;
    if (auto open = needsCases(*place))
      return open;
    const unsigned phase = bytes_ <= 4 ? kLanes : static_cast<unsigned>(kLanes * 4 / bytes_);
    const BankUse before = worst_;
    for (unsigned first = 0; first < kLanes; first += phase)
      countPhase(evaluation, *place, first, first + phase);
    if (!bound_ || worst_.degree == before.degree)
      return std::nullopt;
    worst_ = before;
    return bound_;
  }

private:
  void findActive(Evaluation& evaluation) {
    isExact_ = true;
    bound_.reset();
    active_.fill(true);
    for (const Condition& condition : access_.conditions) {
      std::array<Truth, kLanes> truth = evaluation.truth(condition.node);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (truth[lane] == Truth::Unknown)
          isExact_ = isExact_ && condition.isBound;
        else if ((truth[lane] == Truth::Yes) != condition.sense)
          active_[lane] = false;
      }
    }
    for (const auto& [index, extent] : access_.bounds)
      if (auto value = evaluation.value(index))
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          const Evaluation::Range at = evaluation.rangeOfLane(*value, lane);
          if ((at.lowest && *at.lowest >= extent) || (at.highest && *at.highest < 0))
            active_[lane] = false;
          else if (at.highest && *at.highest >= extent)
            tellApart(evaluation, *value);
        }
  }

  /// Whether a lane lies inside its tensor depends on these symbols: a conflict is asked for once more for each of their numbers.
  void tellApart(const Evaluation& evaluation, const LaneValue& index) {
    for (const auto& [monomial, lanes] : index.terms()) {
      if (monomial.empty() || bound_)
        continue;
      const Symbol& symbol = evaluation.graph.symbols[monomial[0]];
      if (symbol.lowest && symbol.highest && *symbol.highest - *symbol.lowest < kLanes)
        bound_ = Undecided{monomial[0], 0, nullptr};
    }
  }

  /// Symbols that move lanes apart, or elements within a word, must be known as far as banks go.
  std::optional<Undecided> needsCases(const LaneValue& place) {
    varying_.clear();
    const int64_t period = layout::kBanks * layout::kBankBytes / bytes_, perWord = std::max<int64_t>(4 / bytes_, 1);
    for (const auto& [monomial, lanes] : place.terms()) {
      if (monomial.empty())
        continue;
      std::optional<Wide> first;
      bool isSame = true, isWhole = true;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (!active_[lane])
          continue;
        if (!first)
          first = lanes[lane];
        isSame = isSame && lanes[lane] == *first;
        isWhole = isWhole && (lanes[lane] - *first) % period == 0;
      }
      if (!isSame && !isWhole)
        return Undecided{monomial[0], period, nullptr};
      if (first.value_or(0) % perWord != 0)
        return Undecided{monomial[0], perWord, nullptr};
      if (!isSame)
        varying_.push_back(&lanes);
    }
    return std::nullopt;
  }

  void countPhase(Evaluation& evaluation, const LaneValue& place, unsigned first, unsigned end) {
    std::vector<Word> banks[layout::kBanks];
    for (unsigned lane = first; lane < end; ++lane) {
      if (!active_[lane])
        continue;
      for (int64_t at = 0; at < bytes_; at += 4) {
        Word word{floorDivide(place.fixed()[lane] * bytes_ + at, layout::kBankBytes), {}, lane};
        for (const Lanes* lanes : varying_)
          word.symbols.push_back((*lanes)[lane]);
        auto& bank = banks[floorModulo(word.number, layout::kBanks)];
        if (std::none_of(bank.begin(), bank.end(), [&](const Word& other) { return other.isSameAs(word); }))
          bank.push_back(std::move(word));
      }
    }
    for (const auto& bank : banks) {
      const bool isExact = isExact_ && varying_.empty() && !evaluation.isApproximate;
      if (bank.size() < worst_.degree || (bank.size() == worst_.degree && (worst_.isExact || !isExact)))
        continue;
      if (bank.size() < 2)
        continue;
      worst_.degree = static_cast<unsigned>(bank.size());
      for (unsigned i = 0; i < 2; ++i) {
        worst_.lanes[i] = bank[i].lane;
        worst_.bytes[i] = static_cast<int64_t>(bank[i].number) * layout::kBankBytes;
      }
      worst_.isExact = isExact;
      worst_.when = evaluation.describeCase();
    }
  }

  const Access& access_;
  NodeId place_;
  int64_t bytes_;
  BankUse& worst_;
  std::array<bool, kLanes> active_{};
  bool isExact_ = true;
  std::optional<Undecided> bound_;
  std::vector<const Lanes*> varying_;
};

}  // namespace

BankAnswer bankUse(Trace& trace, const Access& access) {
  BankAnswer answer;
  if (access.tensor->elem->kind != TypeKind::Scalar) {
    answer.open = Undecided{};
    return answer;
  }
  auto place = placeOf(trace, access);
  if (!place) {
    answer.open = Undecided{};
    return answer;
  }
  answer.open = Evaluation::forEachCase(trace.graph, BankVisit(access, *place, answer.worst));
  return answer;
}

}  // namespace vortex::lang::access
