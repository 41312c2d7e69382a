// Operations lane by lane.
#include <algorithm>
#include <bit>
#include <utility>

#include "lang/flow/value/context.h"
#include "lang/flow/value/lanes.h"

namespace vortex::lang::flow {

constexpr __int128 kFewNumbers = 64;

std::optional<Lanes> LaneValues::ofOperation(const Node& node, ValueId value) {
  if (node.type == kBool)
    return ofCondition(value);
  const auto operand = [&](size_t index) { return modular(nodes_.operand(value, index)); };
  switch (node.op) {
  case Op::Add:
  case Op::Sub:
  case Op::Mul: {
    const auto a = operand(0), b = a ? operand(1) : std::nullopt;
    if (!b)
      return std::nullopt;
    if (node.op != Op::Mul)
      return node.op == Op::Add ? *a + *b : *a - *b;
    const auto product = Lanes::product(*a, *b);
    if (!product)
      undecided = {};
    return product;
  }
  case Op::Div:
  case Op::CeilDiv:
  case Op::Rem: return ofDivision(node, value);
  case Op::Shl:
  case Op::Shr: return ofShift(node, value);
  case Op::And:
  case Op::Or:
  case Op::Xor: return ofBits(node, value);
  case Op::Min:
  case Op::Max: return ofExtremum(node, value);
  case Op::Select: return ofSelection(value);
  case Op::Eq:
  case Op::Lt:
  case Op::Le: break;
  }
  return ofCondition(value);
}

//===-- division --------------------------------------------------------------------------------------------------===//

std::optional<Lanes> LaneValues::ofDivision(const Node& node, ValueId value) {
  const ValueId left = nodes_.operand(value, 0), right = nodes_.operand(value, 1);
  const auto b = integer(right);
  if (!b)
    return std::nullopt;
  const auto divisor = b->asConstant();
  if (divisor == 0)
    return Lanes();
  // What wraps does not change what is left by a power of two.
  const bool isMask = node.op == Op::Rem && !node.type.isSigned && divisor && exponentOf(*divisor);
  const auto a = isMask ? modular(left) : integer(left);
  if (!a)
    return std::nullopt;
  if (a->isNumbers() && b->isNumbers()) {
    LaneNumbers numbers;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      numbers[lane] =
          applyOp(node.op, node.type, node.type.wrap(a->numbers()[lane]), node.type.wrap(b->numbers()[lane]));
    return Lanes::of(numbers);
  }
  if (!divisor || *divisor < 0 || (!isMask && range(*a).low < 0)) {
    if (a->isSame() && b->isSame())
      return opaque(value);
    return give(b->isNumbers() ? *a : *b, 0);
  }
  return divided(value, node.op != Op::Rem, node.op == Op::CeilDiv ? *a + Lanes::constant(*divisor - 1) : *a, *divisor);
}

/// Of a dividend that is not negative, or modulo a power of two.
std::optional<Lanes> LaneValues::divided(ValueId value, bool isQuotient, const Lanes& dividend, __int128 divisor) {
  const Interval bounds = range(dividend);
  if (bounds.low >= 0 && bounds.high < divisor)
    return isQuotient ? Lanes() : dividend;
  if (dividend.leavesAreMultiplesOf(divisor)) {
    if (isQuotient)
      return dividend.dividedBy(divisor);
    LaneNumbers numbers = dividend.numbers();
    for (__int128& lane : numbers)
      lane = floorModulo(lane, divisor);
    return Lanes::of(numbers);
  }
  if (dividend.isSame())
    return opaque(value);
  const auto less = bounds.low >= 0 || !isQuotient ? reduced(value, isQuotient, dividend, divisor) : std::nullopt;
  if (less)
    return less;
  return give(dividend, divisor);
}

/// (g · x + rest) / (g · c) is x / c, its remainder g · (x % c) + rest, where 0 <= rest < g: 32 · warp + lane by 64 tells that the quotient is the
/// warp's alone.
std::optional<Lanes> LaneValues::reduced(ValueId value, bool isQuotient, const Lanes& dividend, __int128 divisor) {
  __int128 common = divisor;
  for (const auto& [monomial, numbers] : dividend.terms())
    if (!monomial.empty()) {
      if (!allEqual(numbers))
        return std::nullopt;
      common = greatestDivisor(common, numbers[0]);
    }
  LaneNumbers rest = dividend.numbers();
  const __int128 whole = floorDivide(rest[0], common);
  for (__int128& lane : rest) {
    if (floorDivide(lane, common) != whole)
      return std::nullopt;
    lane -= whole * common;
  }
  if (common < 2)
    return std::nullopt;
  const MachineType type = nodes_.type(value);
  ValueId sum = nodes_.constant(type, whole);
  for (const auto& [monomial, numbers] : dividend.terms()) {
    ValueId product = nodes_.constant(type, numbers[0] / common);
    for (ValueId factor : monomial)
      product = nodes_.op(Op::Mul, type, product, nodes_.convert(type, factor));
    if (!monomial.empty())
      sum = nodes_.op(Op::Add, type, sum, product);
  }
  const ValueId other = nodes_.constant(type, divisor / common);
  const Lanes result = opaque(nodes_.op(isQuotient ? Op::Div : Op::Rem, type, sum, other));
  return isQuotient ? result : *Lanes::product(result, Lanes::constant(common)) + Lanes::of(rest);
}

//===-- bits ------------------------------------------------------------------------------------------------------===//

std::optional<Lanes> LaneValues::ofShift(const Node& node, ValueId value) {
  const ValueId left = nodes_.operand(value, 0), right = nodes_.operand(value, 1);
  const auto count = integer(right);
  if (!count)
    return std::nullopt;
  const auto a = node.op == Op::Shl ? modular(left) : integer(left);
  if (!a)
    return std::nullopt;
  if (a->isNumbers() && count->isNumbers()) {
    LaneNumbers numbers;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      numbers[lane] =
          applyOp(node.op, node.type, node.type.wrap(a->numbers()[lane]), node.type.wrap(count->numbers()[lane]));
    return Lanes::of(numbers);
  }
  const auto number = count->asConstant();
  if (!number)
    return a->isSame() && count->isSame() ? opaque(value) : give(count->isNumbers() ? *a : *count, 0);
  const __int128 factor = __int128(1) << static_cast<unsigned>(floorModulo(*number, node.type.width));
  return node.op == Op::Shl ? Lanes::product(*a, Lanes::constant(factor)) : divided(value, true, *a, factor);
}

/// Of two's complement, however wide.
static __int128 bitOperation(Op op, __int128 a, __int128 b) {
  return op == Op::And ? a & b : op == Op::Or ? a | b : a ^ b;
}

std::optional<Lanes> LaneValues::ofBits(const Node& node, ValueId value) {
  auto a = modular(nodes_.operand(value, 0)), b = a ? modular(nodes_.operand(value, 1)) : std::nullopt;
  if (!b)
    return std::nullopt;
  if (a->isNumbers() && b->isNumbers()) {
    LaneNumbers numbers;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      numbers[lane] = bitOperation(node.op, a->numbers()[lane], b->numbers()[lane]);
    return Lanes::of(numbers);
  }
  if (!b->isNumbers())
    std::swap(a, b);
  const bool isMask =
      b->isNumbers() && std::none_of(b->numbers().begin(), b->numbers().end(), [](__int128 lane) { return lane < 0; });
  if (isMask)
    return ofMask(node.op, value, *a, *b);
  if (a->isSame() && b->isSame())
    return opaque(value);
  return give(b->isNumbers() ? *a : *b, 0);
}

/// `mask` has only low bits: the rest of a passes (or, xor) or vanishes (and).
std::optional<Lanes> LaneValues::ofMask(Op op, ValueId value, const Lanes& a, const Lanes& mask) {
  const __int128 most = *std::max_element(mask.numbers().begin(), mask.numbers().end());
  if (most >= __int128(1) << 62)
    return a.isSame() && mask.isSame() ? opaque(value) : give(a, 0);
  const auto period = static_cast<__int128>(std::bit_ceil(static_cast<uint64_t>(most) + 1));
  const Interval bounds = range(a);
  if (op == Op::And && mask.asConstant() == period - 1 && bounds.low >= 0 && bounds.high < period)
    return a;
  if (!a.leavesAreMultiplesOf(period)) {
    if (a.isSame() && mask.isSame() && op == Op::And)
      return opaque(value);
    // Numbers within the low bits must be told apart one by one.
    return give(a, bounds.high < kFewNumbers ? 0 : period);
  }
  LaneNumbers low, rest;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const __int128 number = a.numbers()[lane];
    low[lane] = bitOperation(op, floorModulo(number, period), mask.numbers()[lane]);
    rest[lane] = floorModulo(number, period);
  }
  return op == Op::And ? Lanes::of(low) : a - Lanes::of(rest) + Lanes::of(low);
}

//===-- choices ---------------------------------------------------------------------------------------------------===//

std::optional<Lanes> LaneValues::ofExtremum(const Node& node, ValueId value) {
  const auto a = integer(nodes_.operand(value, 0)), b = a ? integer(nodes_.operand(value, 1)) : std::nullopt;
  if (!b)
    return std::nullopt;
  const Lanes difference = *a - *b;
  std::array<bool, kLanes> takesFirst;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const Interval sign = rangeOfLane(difference, lane);
    if (sign.high > 0 && sign.low < 0)
      return a->isSame() && b->isSame() ? opaque(value) : give(difference, 0);
    takesFirst[lane] = (sign.high <= 0) == (node.op == Op::Min);
  }
  return Lanes::merge(takesFirst, *a, *b);
}

std::optional<Lanes> LaneValues::ofSelection(ValueId value) {
  const std::array<Truth, kLanes> condition = truth(nodes_.operand(value, 0));
  const Undecided reason = undecided;
  const auto all = [&](Truth truth) {
    return std::all_of(condition.begin(), condition.end(), [&](Truth lane) { return lane == truth; });
  };
  const auto operand = [&](size_t index) { return modular(nodes_.operand(value, index)); };
  if (all(Truth::Yes) || all(Truth::No))
    return operand(all(Truth::Yes) ? 1 : 2);
  const auto a = operand(1), b = a ? operand(2) : std::nullopt;
  if (!b)
    return std::nullopt;
  std::array<bool, kLanes> chosen;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    chosen[lane] = condition[lane] == Truth::Yes;
  if (std::find(condition.begin(), condition.end(), Truth::Unknown) == condition.end())
    return Lanes::merge(chosen, *a, *b);
  const Lanes difference = *b - *a;
  if (difference.terms().empty())
    return a;
  // The lanes take one side together: which, nobody knows.
  if (const ValueId condition = nodes_.operand(value, 0); isSameCondition(condition)) {
    if (difference.isSame())
      return opaque(value) + a->fromFirst();
    undecided = {condition, 0};
    return std::nullopt;
  }
  undecided = reason;
  return std::nullopt;
}

//===-- conditions ------------------------------------------------------------------------------------------------===//

/// As 0 and 1.
std::optional<Lanes> LaneValues::ofCondition(ValueId value) {
  const std::array<Truth, kLanes> known = truth(value);
  LaneNumbers numbers;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (known[lane] == Truth::Unknown)
      return isSameCondition(value) ? std::optional(opaque(value)) : std::nullopt;
    numbers[lane] = known[lane] == Truth::Yes;
  }
  return Lanes::of(numbers);
}

static Truth negated(Truth truth) {
  return truth == Truth::Unknown ? truth : truth == Truth::Yes ? Truth::No : Truth::Yes;
}

/// Of bools.
static Truth ofTruths(Op op, Truth a, Truth b, Truth c) {
  switch (op) {
  case Op::And:
  case Op::Or: {
    const Truth strong = op == Op::And ? Truth::No : Truth::Yes;
    return a == strong || b == strong ? strong : a == b ? a : Truth::Unknown;
  }
  case Op::Add:
  case Op::Sub:
  case Op::Xor:
  case Op::Eq:
    if (a == Truth::Unknown || b == Truth::Unknown)
      return Truth::Unknown;
    return (a == b) == (op == Op::Eq) ? Truth::Yes : Truth::No;
  case Op::Select: return b == c || a == Truth::Yes ? b : a == Truth::No ? c : Truth::Unknown;
  default: return Truth::Unknown;
  }
}

std::array<Truth, kLanes> LaneValues::truth(ValueId value) {
  value = nodes_.resolved(value);
  if (auto found = answers_.truths.find(indexOf(value)); found != answers_.truths.end()) {
    undecided = found->second.undecided;
    isApproximate = isApproximate || found->second.isApproximate;
    return found->second.truth;
  }
  const bool wasApproximate = std::exchange(isApproximate, false);
  const auto result = computeTruth(value);
  answers_.truths[indexOf(value)] = {result, undecided, isApproximate};
  isApproximate = isApproximate || wasApproximate;
  return result;
}

std::array<Truth, kLanes> LaneValues::computeTruth(ValueId value) {
  const Node node = nodes_[value];
  std::array<Truth, kLanes> result;
  result.fill(Truth::Unknown);
  const auto operand = [&](size_t index) { return nodes_.operand(value, index); };
  const auto isOne = [&](size_t index) { return nodes_.isConstant(operand(index)) && nodes_[operand(index)].payload; };
  for (const Case& each : cases_)
    if (each.leaf == value && each.factor == 0) {
      result.fill(each.rest != 0 ? Truth::Yes : Truth::No);
      return result;
    }
  const bool isOp = node.kind == NodeKind::Op && node.type == kBool;
  if (isOp && (node.op == Op::Lt || node.op == Op::Le || (node.op == Op::Eq && nodes_.type(operand(0)) != kBool)))
    return ofComparison(node, value);
  if (isOp && (node.op == Op::Sub || node.op == Op::Xor) && isOne(0)) {
    result = truth(operand(1));
    std::transform(result.begin(), result.end(), result.begin(), negated);
    return result;
  }
  if (isOp) {
    std::array<std::array<Truth, kLanes>, 3> operands{};
    std::optional<Undecided> first;  // why an operand is not known
    for (size_t i = 0; i < operandCount(node.op); ++i) {
      operands[i] = truth(operand(i));
      if (!first && std::find(operands[i].begin(), operands[i].end(), Truth::Unknown) != operands[i].end())
        first = undecided;
    }
    undecided = first.value_or(Undecided());
    for (unsigned lane = 0; lane < kLanes; ++lane)
      result[lane] = ofTruths(node.op, operands[0][lane], operands[1][lane], operands[2][lane]);
    return result;
  }
  const auto plain = modular(value);
  for (unsigned lane = 0; plain && plain->isNumbers() && lane < kLanes; ++lane)
    result[lane] = plain->numbers()[lane] & 1 ? Truth::Yes : Truth::No;
  return result;
}

std::array<Truth, kLanes> LaneValues::ofComparison(const Node& node, ValueId value) {
  std::array<Truth, kLanes> result;
  result.fill(Truth::Unknown);
  const auto a = integer(nodes_.operand(value, 0)), b = a ? integer(nodes_.operand(value, 1)) : std::nullopt;
  if (!b)
    return result;
  const Lanes difference = *b - *a;
  const __int128 least = node.op == Op::Lt ? 1 : 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const Interval range = rangeOfLane(difference, lane);
    if (node.op == Op::Eq && (range.low > 0 || range.high < 0))
      result[lane] = Truth::No;
    else if (node.op == Op::Eq ? range.low == 0 && range.high == 0 : range.low >= least)
      result[lane] = Truth::Yes;
    else if (node.op != Op::Eq && range.high < least)
      result[lane] = Truth::No;
    else
      give(difference, 0);
  }
  return result;
}

bool LaneValues::isSameCondition(ValueId value) {
  value = nodes_.resolved(value);
  if (auto found = answers_.sameConditions.find(indexOf(value)); found != answers_.sameConditions.end())
    return found->second;
  return answers_.sameConditions[indexOf(value)] = computeSameCondition(value);
}

bool LaneValues::computeSameCondition(ValueId value) {
  const Node node = nodes_[value];
  if (node.kind != NodeKind::Op || node.type != kBool) {
    const auto plain = modular(value);
    return plain && plain->isSame();
  }
  if ((node.op == Op::Lt || node.op == Op::Le) && isSameComparison(node, value))
    return true;
  if (node.op == Op::Eq || node.op == Op::Lt || node.op == Op::Le) {
    const auto a = integer(nodes_.operand(value, 0)), b = a ? integer(nodes_.operand(value, 1)) : std::nullopt;
    return b && (*a - *b).isSame();
  }
  const Operands operands = nodes_.operands(value);
  return std::all_of(operands.begin(), operands.end(), [&](ValueId each) { return isSameCondition(each); });
}

/// `32 * warp + lane < 64`: what the lanes add to a multiple of 32 does not lead past the next one.
bool LaneValues::isSameComparison(const Node& node, ValueId value) {
  const auto a = integer(nodes_.operand(value, 0)), b = a ? integer(nodes_.operand(value, 1)) : std::nullopt;
  if (!b)
    return false;
  const Lanes apart = *b - *a;
  __int128 divisor = 0;
  for (const auto& [monomial, numbers] : apart.terms()) {
    if (monomial.empty())
      continue;
    if (!allEqual(numbers))
      return false;
    divisor = greatestDivisor(divisor, numbers[0]);
  }
  const __int128 least = node.op == Op::Lt ? 1 : 0;
  const auto side = [&](__int128 number) {
    return divisor == 0 ? (number >= least ? 0 : -1) : floorDivide(number - least, divisor);
  };
  return std::all_of(apart.numbers().begin(), apart.numbers().end(),
                     [&](__int128 number) { return side(number) == side(apart.numbers()[0]); });
}

}  // namespace vortex::lang::flow
