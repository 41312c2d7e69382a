#include "lang/flow/value/lanes.h"

#include <algorithm>
#include <utility>

namespace vortex::lang::flow {

constexpr __int128 kFewValues = 64, kMostResidues = 1024;

LaneValues::LaneValues(Values& values, const BlockShape& block, LaneSurroundings surroundings)
    : values_(values), nodes_(values.nodes()), block_(block), surroundings_(std::move(surroundings)),
      warp_(nodes_.unknown(nullptr, kUsize)) {
  __int128 threads = kMostThreadsOfBlock;
  if (block[0] && block[1] && block[2])
    threads = __int128(*block[0]) * *block[1] * *block[2];
  laneCount_ = static_cast<unsigned>(std::min<__int128>(threads, kLanes));
  const __int128 warps = (threads + kLanes - 1) / kLanes;
  ranges_[indexOf(warp_)] = {0, warps - 1};
  point_ = values_.assume(kNoPoint, {{nodes_.op(Op::Lt, kBool, warp_, nodes_.constant(kUsize, warps)), true}});
}

ValueId LaneValues::index(ValueId value, std::optional<int64_t> extent) {
  value = nodes_.resolved(value);
  auto [found, isNew] = knownIndices_.try_emplace({value, extent.value_or(-1)}, kNoValue);
  if (!isNew)
    return found->second;
  const ValueId made = nodes_.unknown(nullptr, kUsize);
  indices_[indexOf(made)] = {value, extent};
  if (extent)
    ranges_[indexOf(made)] = {0, *extent - 1};
  return found->second = made;
}

std::array<Truth, kLanes> LaneValues::isBelow(ValueId index, int64_t extent) {
  const ValueId value = indices_.at(indexOf(index)).value;
  const Undecided reason = undecided;
  const bool wasApproximate = isApproximate;
  const auto exact = integer(value);
  undecided = reason;
  isApproximate = wasApproximate;
  const auto lanes = modular(index);
  const __int128 wrap = __int128(1) << nodes_.type(value).width;
  const auto ofLane = [&](unsigned lane) {
    if (exact)
      if (const Interval range = rangeOfLane(*exact, lane); range.low >= extent || range.high < 0)
        return Truth::No;
    const Interval range = lanes ? rangeOfLane(*lanes, lane) : Interval{};
    if (range.low <= -Interval::kUnbounded || range.high >= Interval::kUnbounded)
      return Truth::Unknown;
    // The answer is known modulo 2^width: what seems far outside may wrap to the inside.
    const __int128 turns = floorDivide(range.low, wrap) * wrap;
    if (range.high - turns < extent)
      return Truth::Yes;
    return range.low - turns >= extent && range.high - turns < wrap ? Truth::No : Truth::Unknown;
  };
  std::array<Truth, kLanes> result;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    result[lane] = ofLane(lane);
  return result;
}

//===-- leaves ----------------------------------------------------------------------------------------------------===//

/// A number that the lanes agree on, as far as this case knows it.
Lanes LaneValues::leaf(ValueId leaf) const {
  for (const Case& each : cases_)
    if (each.leaf == leaf) {
      const Lanes rest = Lanes::constant(each.rest);
      return each.factor == 0 ? rest : *Lanes::product(Lanes::constant(each.factor), this->leaf(each.quotient)) + rest;
    }
  const auto range = ranges_.find(indexOf(leaf));
  const auto number = range == ranges_.end() ? std::nullopt : range->second.asConstant();
  return number ? Lanes::constant(*number) : Lanes::leaf(leaf);
}

/// What lanes agree on and nothing but its bounds is known of.
Lanes LaneValues::opaque(ValueId value) {
  rangeOfLeaf(value);
  return leaf(value);
}

/// All that the leaf can be, if that is a list.
const std::vector<__int128>* LaneValues::listOf(ValueId leaf) {
  const NodeKind kind = nodes_[leaf].kind;
  const std::vector<__int128>* list = nullptr;
  if (kind == NodeKind::Phi)
    list = &values_.listOf(leaf);
  else if (kind == NodeKind::Load && surroundings_.list)
    list = surroundings_.list(leaf);
  return list && !list->empty() ? list : nullptr;
}

Interval LaneValues::rangeOfLeaf(ValueId leaf) {
  auto [found, isNew] = ranges_.try_emplace(indexOf(leaf));
  if (!isNew)
    return found->second;
  Interval range;
  if (const auto* list = listOf(leaf)) {
    const auto [low, high] = std::minmax_element(list->begin(), list->end());
    range = {*low, *high};
  } else {
    range = values_.range(leaf, point_);
  }
  return ranges_[indexOf(leaf)] = range;
}

std::vector<__int128> LaneValues::fewValues(ValueId leaf, __int128 limit) {
  std::vector<__int128> values;
  if (const auto* list = listOf(leaf))
    values = *list;
  else if (const Interval range = rangeOfLeaf(leaf); range.high - range.low < limit)
    for (__int128 number = range.low; number <= range.high; ++number)
      values.push_back(number);
  return static_cast<__int128>(values.size()) <= limit ? values : std::vector<__int128>();
}

Interval LaneValues::rangeOfLane(const Lanes& value, unsigned lane) {
  Interval sum{0, 0};
  for (const auto& [monomial, numbers] : value.terms()) {
    if (numbers[lane] == 0)
      continue;
    Interval product{1, 1};
    for (ValueId leaf : monomial)
      product = product * rangeOfLeaf(leaf);
    const bool isLarge = numbers[lane] > Interval::kUnbounded || numbers[lane] < -Interval::kUnbounded;
    sum = isLarge ? Interval{} : sum + Interval{numbers[lane], numbers[lane]} * product;
  }
  return sum;
}

Interval LaneValues::range(const Lanes& value) {
  Interval hull = rangeOfLane(value, 0);
  for (unsigned lane = 1; lane < kLanes; ++lane)
    hull = hull.hull(rangeOfLane(value, lane));
  return hull;
}

/// Records that a leaf of `culprit` stands in the way.
std::optional<Lanes> LaneValues::give(const Lanes& culprit, __int128 modulus) {
  undecided = {kNoValue, modulus};
  for (const auto& [monomial, numbers] : culprit.terms())
    if (!monomial.empty() && (modulus == 0 || std::any_of(numbers.begin(), numbers.end(),
                                                          [&](__int128 lane) { return lane % modulus != 0; }))) {
      undecided.leaf = monomial[0];
      __int128 common = modulus;
      for (const __int128 lane : numbers)
        common = greatestDivisor(common, lane);
      if (modulus != 0 && monomial.size() == 1)
        undecided.modulus = modulus / common;  // 32 · leaf modulo 256 asks for the leaf modulo 8
      break;
    }
  return std::nullopt;
}

//===-- values ----------------------------------------------------------------------------------------------------===//

std::optional<Lanes> LaneValues::remembered(Memo Answers::* memo, ValueId value, Compute compute) {
  value = nodes_.resolved(value);
  if (auto found = (answers_.*memo).find(indexOf(value)); found != (answers_.*memo).end()) {
    undecided = found->second.undecided;
    isApproximate = isApproximate || found->second.isApproximate;
    return found->second.lanes;
  }
  const bool wasApproximate = std::exchange(isApproximate, false);
  const auto lanes = (this->*compute)(value);
  (answers_.*memo)[indexOf(value)] = {lanes, undecided, isApproximate};
  isApproximate = isApproximate || wasApproximate;
  return lanes;
}

std::optional<Lanes> LaneValues::modular(ValueId value) {
  return remembered(&Answers::modular, value, &LaneValues::compute);
}

std::optional<Lanes> LaneValues::integer(ValueId value) {
  return remembered(&Answers::integers, value, &LaneValues::computeInteger);
}

std::optional<Lanes> LaneValues::compute(ValueId value) {
  const Node node = nodes_[value];
  switch (node.kind) {
  case NodeKind::Constant: return Lanes::constant(node.constant());
  case NodeKind::Extent:
  case NodeKind::Argument: return opaque(value);
  case NodeKind::Position: return ofPosition(node, value);
  case NodeKind::Phi: return ofPhi(value);
  case NodeKind::Op: return ofOperation(node, value);
  case NodeKind::Convert: {
    const ValueId operand = nodes_.operand(value, 0);
    return node.type.width > nodes_.type(operand).width ? integer(operand) : modular(operand);
  }
  case NodeKind::Load:
  case NodeKind::Ticket:
  case NodeKind::Unknown: break;
  }
  if (auto index = indices_.find(indexOf(value)); index != indices_.end())
    return ofIndex(value, index->second);
  if (value == warp_ || surroundings_.isUniform(value))
    return opaque(value);
  undecided = {value, 0, true};
  return std::nullopt;
}

std::optional<Lanes> LaneValues::computeInteger(ValueId value) {
  const auto lanes = modular(value);
  if (!lanes)
    return std::nullopt;
  const MachineType type = nodes_.type(value);
  if (lanes->isNumbers()) {
    LaneNumbers numbers = lanes->numbers();
    for (__int128& lane : numbers)
      lane = type.wrap(lane);
    return Lanes::of(numbers);
  }
  if (range(*lanes).isWithin(type.lowest(), type.highest()))
    return lanes;
  // Of what a case fixes the forms know nothing, but they know other bounds.
  if (const Form form = values_.form(value, point_); form.isExact && !form.polynomial.mentions(value))
    return ofPolynomial(form.polynomial);
  if (!lanes->isSame())
    return give(*lanes, 0);
  isApproximate = true;
  return opaque(value);
}

/// The polynomial of integers.
std::optional<Lanes> LaneValues::ofPolynomial(const Polynomial& polynomial) {
  Lanes sum;
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    std::optional<Lanes> product = Lanes::constant(coefficient);
    for (ValueId factor : monomial) {
      const auto lanes = integer(factor);
      if (!lanes)
        return std::nullopt;
      product = product ? Lanes::product(*product, *lanes) : std::nullopt;
    }
    if (!product) {
      undecided = {};
      return std::nullopt;
    }
    sum = sum + *product;
  }
  return sum;
}

std::optional<Lanes> LaneValues::ofIndex(ValueId value, const Index& index) {
  auto lanes = modular(index.value);
  if (!lanes)
    return std::nullopt;
  if (lanes->isNumbers()) {
    LaneNumbers numbers = lanes->numbers();
    for (__int128& lane : numbers)
      lane = nodes_.type(index.value).wrap(lane);
    return Lanes::of(numbers);
  }
  if (!index.extent || !lanes->isSame() || range(*lanes).isWithin(0, *index.extent - 1))
    return lanes;
  isApproximate = true;
  return opaque(value);
}

//===-- positions -------------------------------------------------------------------------------------------------===//

std::optional<Lanes> LaneValues::ofThreadAxis(uint32_t axis, ValueId value) {
  ValueId linear = nodes_.position(PositionKind::ThreadLocalId);
  const auto size = [&](uint32_t of) { return nodes_.constant(kUsize, *block_[of]); };
  const bool isLast =
      std::all_of(block_.begin() + axis + 1, block_.end(), [](const auto& extent) { return extent == 1; });
  for (uint32_t before = 0; before < axis; ++before) {
    if (!block_[before]) {
      undecided = {value, 0, true};
      return std::nullopt;
    }
    linear = nodes_.op(Op::Div, kUsize, linear, size(before));
  }
  if (isLast || axis == 2)
    return modular(linear);
  if (block_[axis])
    return modular(nodes_.op(Op::Rem, kUsize, linear, size(axis)));
  undecided = {value, 0, true};
  return std::nullopt;
}

std::optional<Lanes> LaneValues::ofPosition(const Node& node, ValueId value) {
  LaneNumbers lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    lanes[lane] = lane;
  const uint32_t axis = node.axis();
  switch (node.position()) {
  case PositionKind::ThreadId: return block_[axis] == 1 ? Lanes() : ofThreadAxis(axis, value);
  case PositionKind::ThreadLocalId: return *Lanes::product(opaque(warp_), Lanes::constant(kLanes)) + Lanes::of(lanes);
  case PositionKind::WarpId: return opaque(warp_);
  case PositionKind::LaneId: return Lanes::of(lanes);
  case PositionKind::BlockDim: return block_[axis] ? Lanes::constant(*block_[axis]) : opaque(value);
  case PositionKind::ThreadGlobalId: {
    const auto size = modular(nodes_.position(PositionKind::BlockDim, axis));
    const auto thread = modular(nodes_.position(PositionKind::ThreadId, axis));
    if (!thread)
      return std::nullopt;
    return *Lanes::product(*modular(nodes_.position(PositionKind::BlockId, axis)), *size) + *thread;
  }
  case PositionKind::BlockId:
  case PositionKind::GridDim: return opaque(value);
  }
  VORTEX_UNREACHABLE();
}

//===-- phis ------------------------------------------------------------------------------------------------------===//

std::optional<Lanes> LaneValues::ofPhi(ValueId phi) {
  if (const Form form = values_.form(phi, point_); !form.polynomial.mentions(phi))
    return ofPolynomial(form.polynomial);
  const auto like = surroundings_.likeness ? surroundings_.likeness(phi) : LaneSurroundings::Likeness();
  const bool isKnown = like.isCounter || listOf(phi);
  undecided = {phi, 0, true};
  if (!isKnown && surroundings_.selection)
    if (const ValueId selected = surroundings_.selection(phi); selected != kNoValue)
      if (const auto lanes = modular(selected))
        return lanes;
  const Undecided reason = undecided;
  isApproximate = isApproximate || !isKnown;
  if (like.value != kNoValue)
    return likeOther(phi, like.value);
  if (surroundings_.isUniform(phi))
    return opaque(phi);
  undecided = reason;
  return std::nullopt;
}

/// The phi's number in lane 0, and what the others differ from it by.
std::optional<Lanes> LaneValues::likeOther(ValueId phi, ValueId other) {
  const auto lanes = modular(other);
  if (!lanes)
    return std::nullopt;
  const auto isFixed = [&](ValueId leaf) {
    const NodeKind kind = nodes_[leaf].kind;
    return kind == NodeKind::Extent || kind == NodeKind::Argument || kind == NodeKind::Position || leaf == warp_;
  };
  const Lanes apart = lanes->fromFirst();
  for (const auto& [monomial, numbers] : apart.terms())
    if (!std::all_of(monomial.begin(), monomial.end(), isFixed)) {
      undecided = {phi, 0, true};
      return std::nullopt;
    }
  return opaque(phi) + apart;
}

bool LaneValues::isSameInWarp(ValueId value) {
  const Node node = nodes_[value];
  if (node.kind == NodeKind::Op && (node.op == Op::Lt || node.op == Op::Le) && isSameComparison(node, value))
    return true;
  const auto lanes = modular(value);
  if (lanes && lanes->isSame())
    return true;
  const auto integers = integer(value);
  return integers && integers->isSame();
}

//===-- cases -----------------------------------------------------------------------------------------------------===//

std::optional<Undecided> LaneValues::forEachCase(const Visit& visit, unsigned budget) {
  return visitCase(visit, budget);
}

ValueId LaneValues::quotientOf(ValueId leaf, __int128 factor) {
  auto [found, isNew] = quotients_.try_emplace({leaf, factor}, kNoValue);
  if (!isNew)
    return found->second;
  const Interval range = rangeOfLeaf(leaf);
  const auto over = [&](__int128 bound) {
    return bound <= -Interval::kUnbounded || bound >= Interval::kUnbounded ? bound : floorDivide(bound, factor);
  };
  const ValueId made = nodes_.unknown(nullptr, kUsize);
  ranges_[indexOf(made)] = {over(range.low), over(range.high)};
  return found->second = made;
}

/// What an operation depends on, if all of that has few values; else the leaf itself, which then stands for any number in its range.
ValueId LaneValues::splittable(ValueId leaf) {
  std::vector<ValueId> pending{leaf};
  ValueId found = kNoValue;
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (const Operands operands = nodes_.operands(value); operands.size() > 0) {
      pending.insert(pending.end(), operands.begin(), operands.end());
      continue;
    }
    const auto known = modular(value);
    if (!known)
      return leaf;
    for (const auto& [monomial, numbers] : known->terms())
      for (ValueId factor : monomial) {
        if (nodes_[factor].kind == NodeKind::Op || nodes_[factor].kind == NodeKind::Convert) {
          pending.push_back(factor);
          continue;
        }
        const Interval range = rangeOfLeaf(factor);
        if (range.high - range.low >= kMostResidues)
          return leaf;
        found = factor;
      }
  }
  return found == kNoValue ? leaf : found;
}

/// All numbers of the leaf, or factor · quotient + rest for every rest.
std::vector<LaneValues::Case> LaneValues::split(const Undecided& open) {
  const ValueId leaf = splittable(open.leaf);
  const __int128 modulus = leaf == open.leaf ? open.modulus : 0;
  std::vector<Case> result;
  for (__int128 number : fewValues(leaf, modulus == 0 || listOf(leaf) ? kMostResidues : kFewValues))
    result.push_back({leaf, 0, number, kNoValue});
  if (result.empty() && modulus > 1 && modulus <= kMostResidues)
    for (__int128 rest = 0; rest < modulus; ++rest)
      result.push_back({leaf, modulus, rest, quotientOf(leaf, modulus)});
  return result;
}

std::optional<Undecided> LaneValues::visitCase(const Visit& visit, unsigned& budget) {
  if (budget == 0)
    return Undecided{};
  --budget;
  isApproximate = false;
  const auto open = visit(*this);
  if (!open || open->leaf == kNoValue || open->isOfLanes)
    return open;
  const std::vector<Case> cases = split(*open);
  if (cases.empty())
    return open;
  for (const Case& each : cases) {
    Answers answers = std::exchange(answers_, {});
    cases_.push_back(each);
    const auto stuck = visitCase(visit, budget);
    cases_.pop_back();
    answers_ = std::move(answers);
    if (stuck)
      return stuck;
  }
  return std::nullopt;
}

}  // namespace vortex::lang::flow
