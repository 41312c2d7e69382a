// Bounds of leaves and polynomials. Bounds by other values (i < n) need no form of their own: they are polynomials that are at least 0.
#include <algorithm>
#include <iterator>
#include <utility>

#include "lang/flow/value/context.h"

namespace vortex::lang::flow {

Interval Values::range(ValueId value, PointId point) { return range(contextAt(point), value); }

Interval Values::range(Context& context, ValueId value) {
  const MachineType type = nodes_.type(value);
  return interval(context, integer(context, value)).meet({type.lowest(), type.highest()});
}

//===-- leaves ----------------------------------------------------------------------------------------------------===//

Interval Values::leafRange(Context& context, ValueId leaf) {
  if (auto found = context.ranges.find(indexOf(leaf)); found != context.ranges.end())
    return found->second;
  const MachineType type = nodes_.type(leaf);
  Interval range = Interval{type.lowest(), type.highest()}.meet(structuralRange(context, leaf));
  if (auto found = context.refined.find(indexOf(leaf)); found != context.refined.end())
    range = range.meet(found->second);
  context.ranges.insert_or_assign(indexOf(leaf), range);
  return range;
}

Interval Values::structuralRange(Context& context, ValueId leaf) {
  const Node node = nodes_[leaf];
  switch (node.kind) {
  case NodeKind::Extent: return {0, kMostElements};
  case NodeKind::Position: return rangeOfPosition(context, node);
  case NodeKind::Phi: return rangeOfPhi(context, leaf);
  case NodeKind::Op: return rangeOfOp(context, leaf);
  case NodeKind::Unknown:
    if (auto counted = counted_.find(indexOf(leaf)); counted != counted_.end())
      return rangeOfCount(context, *inductionOf(counted->second));
    return {};
  default: return {};
  }
}

Interval Values::rangeOfPosition(Context& context, const Node& node) {
  const auto most = [&](PositionKind kind) {
    const Interval size = interval(context, integer(context, nodes_.position(kind, node.axis())));
    const __int128 known = kind == PositionKind::GridDim ? kMostBlocksOfAxis : kMostThreadsOfBlock;
    return (size.asConstant() ? size.high : std::min(size.high, known)) - 1;
  };
  switch (node.position()) {
  case PositionKind::ThreadId: return {0, most(PositionKind::BlockDim)};
  case PositionKind::BlockId: return {0, most(PositionKind::GridDim)};
  case PositionKind::BlockDim: return {1, kMostThreadsOfBlock};
  case PositionKind::GridDim: return {1, kMostBlocksOfAxis};
  default: return {};
  }
}

/// Of a / b, rounded towards zero or (of numbers that are not negative) up.
static Interval rangeOfQuotient(const Interval& a, const Interval& b, bool isUp) {
  const __int128 most = std::max(a.low < 0 ? -a.low : a.low, a.high < 0 ? -a.high : a.high);
  if (b.low < 1 || (isUp && a.low < 0))
    return {a.low >= 0 && b.low >= 0 ? 0 : -most, most};
  const auto divide = [&](__int128 x, __int128 y) { return isUp ? ceilDivide(x, y) : x / y; };
  const auto [low, high] =
      std::minmax({divide(a.low, b.low), divide(a.low, b.high), divide(a.high, b.low), divide(a.high, b.high)});
  return {low, high};
}

/// Of the sign of a, smaller than b; 0 where b is.
static Interval rangeOfRemainder(const Interval& a, const Interval& b) {
  const __int128 divisor = std::max(b.low < 0 ? -b.low : b.low, b.high < 0 ? -b.high : b.high);
  const __int128 most = std::max<__int128>(divisor - 1, 0);
  return {a.low >= 0 ? 0 : -std::min(-a.low, most), a.high <= 0 ? 0 : std::min(a.high, most)};
}

static Interval rangeOfBits(Op op, const Interval& a, const Interval& b) {
  if (op == Op::And && (a.low >= 0 || b.low >= 0))
    return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
  if (a.low < 0 || b.low < 0)
    return {};
  __int128 mask = 1;
  while (mask <= std::max(a.high, b.high))
    mask *= 2;
  return {op == Op::Or ? std::max(a.low, b.low) : 0, mask - 1};
}

static Interval rangeOfShift(const Interval& a, const Interval& count, MachineType type) {
  const auto number = count.asConstant();
  if (a.low >= 0 && count.low >= 0 && count.high < type.width)
    return {a.low >> static_cast<unsigned>(count.high), a.high >> static_cast<unsigned>(count.low)};
  if (!number)
    return {std::min<__int128>(a.low, 0), std::max<__int128>(a.high, a.low < 0 ? -1 : 0)};
  const __int128 power = __int128(1) << (static_cast<uint64_t>(*number) % type.width);
  return {floorDivide(a.low, power), floorDivide(a.high, power)};
}

/// Operands are integers of their types here, so all bounds are small.
Interval Values::rangeOfOp(Context& context, ValueId leaf) {
  const Node node = nodes_[leaf];
  const auto operand = [&](size_t index) { return range(context, nodes_.operand(leaf, index)); };
  const Interval a = operand(0), b = operand(1);
  switch (node.op) {
  case Op::Div: return rangeOfQuotient(a, b, false);
  case Op::CeilDiv: return rangeOfQuotient(a, b, true);
  case Op::Rem: return rangeOfRemainder(a, b);
  case Op::And:
  case Op::Or:
  case Op::Xor: return rangeOfBits(node.op, a, b);
  case Op::Shr: return rangeOfShift(a, b, node.type);
  case Op::Shl:
    if (a == Interval{1, 1} && !node.type.isSigned)
      return Interval{1, (node.type.highest() + 1) / 2}.meet(
          {b.high < node.type.width ? __int128(1) << static_cast<unsigned>(b.low) : 1,
           __int128(1) << static_cast<unsigned>(std::min<__int128>(b.high, node.type.width - 1))});
    if (a.low >= 0 && b.low >= 0 && b.high < node.type.width &&
        a.high <= node.type.highest() >> static_cast<unsigned>(b.high))
      return {a.low << static_cast<unsigned>(b.low), a.high << static_cast<unsigned>(b.high)};
    return {};
  case Op::Min: return {std::min(a.low, b.low), std::min(a.high, b.high)};
  case Op::Max: return {std::max(a.low, b.low), std::max(a.high, b.high)};
  case Op::Select: return b.hull(operand(2));
  default: return {};
  }
}

//===-- polynomials -----------------------------------------------------------------------------------------------===//

Interval Values::interval(Context& context, const Monomial& monomial) {
  if (monomial.size() < 2)
    return monomial.empty() ? Interval{1, 1} : leafRange(context, monomial[0]);
  if (auto known = context.products.find(monomial); known != context.products.end())
    return known->second;
  Interval product{1, 1};
  for (ValueId leaf : monomial)
    product = product * leafRange(context, leaf);
  product = product.meet(boundedByProducts(context, monomial));
  return context.products.insert_or_assign(monomial, product).first->second;
}

/// By the products of sizes that are bounded: of factors that are sizes, or parts of them (ceil_div(M, 64) is at most M). Numbers that may be negative are
/// no sizes: launches bound the product of those that are not.
Interval Values::boundedByProducts(Context& context, const Monomial& monomial) {
  std::vector<ValueId> least;
  for (ValueId leaf : monomial)
    least.push_back(wholeOf(context, leaf));
  Interval best;
  for (const auto& [factors, limit] : launch_.products) {
    std::vector<ValueId> left = factors;
    std::vector<bool> isTaken(least.size());
    size_t common = 0;
    for (size_t i = 0; i < least.size(); ++i)
      if (const auto found = std::find(left.begin(), left.end(), least[i]);
          found != left.end() && leafRange(context, least[i]).low >= 0) {
        left.erase(found);
        isTaken[i] = true;
        ++common;
      }
    if (common < 2)
      continue;
    Interval bounded{0, limit};
    for (size_t i = 0; i < least.size(); ++i)
      if (!isTaken[i])
        bounded = bounded * leafRange(context, monomial[i]);
    best = best.meet(bounded);
  }
  return best;
}

/// What the leaf is a part of, and at most as large as: the dividend of a quotient.
ValueId Values::wholeOf(Context& context, ValueId leaf) {
  const Node node = nodes_[leaf];
  if (node.kind != NodeKind::Op || (node.op != Op::Div && node.op != Op::CeilDiv && node.op != Op::Rem) ||
      node.type.isSigned)
    return leaf;
  const ValueId dividend = integer(context, nodes_.operand(leaf, 0)).asLeaf();
  return dividend == kNoValue ? leaf : dividend;
}

Interval Values::interval(Context& context, const Polynomial& polynomial) {
  Interval sum{0, 0};
  for (const auto& [monomial, coefficient] : polynomial.terms())
    sum = sum + coefficient * interval(context, monomial);
  return sum;
}

bool Values::isAtLeastZero(const Polynomial& polynomial, PointId point) {
  return isAtLeastZero(contextAt(point), polynomial);
}

bool Values::isAtLeastZero(Context& context, ValueId value) {
  return !nodes_.type(value).isSigned || isAtLeastZero(context, integer(context, value));
}

/// All terms but the constant divided by the leaf; nothing where one is no multiple of it.
static std::optional<Polynomial> withoutFactor(const Polynomial& polynomial, ValueId factor) {
  std::optional<Polynomial> out = Polynomial();
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    if (monomial.empty())
      continue;
    Monomial rest = monomial;
    if (!rest.remove(factor))
      return std::nullopt;
    out = out ? Polynomial::sum(*out, Polynomial::of(rest, coefficient)) : std::nullopt;
  }
  return out;
}

static void addTo(std::vector<Polynomial>& out, const std::optional<Polynomial>& polynomial) {
  if (polynomial && !polynomial->asConstant())
    out.push_back(*polynomial);
}

//===-- inequalities ----------------------------------------------------------------------------------------------===//

const std::vector<Polynomial>& Values::inequalitiesOf(Context& context, ValueId leaf) {
  if (auto found = context.inequalities.find(indexOf(leaf)); found != context.inequalities.end())
    return found->second;
  std::vector<Polynomial> result;
  for (const Polynomial& each : context.atLeastZero)
    if (each.mentions(leaf))
      result.push_back(each);
  context.inequalities.insert_or_assign(indexOf(leaf), result);  // whoever asks meanwhile
  ++context.incomplete;
  structuralInequalities(context, leaf, result);
  if (--context.incomplete > 0) {
    context.partialLeaves.push_back(indexOf(leaf));
  } else {
    for (uint32_t other : std::exchange(context.partialLeaves, {}))
      context.inequalities.erase(other);
    for (const Polynomial& polynomial : std::exchange(context.notProven, {}))
      context.isAtLeastZero.erase(polynomial);
  }
  return context.inequalities.insert_or_assign(indexOf(leaf), std::move(result)).first->second;
}

void Values::structuralInequalities(Context& context, ValueId leaf, std::vector<Polynomial>& out) {
  const Node node = nodes_[leaf];
  const auto add = [&](const std::optional<Polynomial>& polynomial) { addTo(out, polynomial); };
  const Polynomial self = Polynomial::leaf(leaf);
  if (node.kind == NodeKind::Position &&
      (node.position() == PositionKind::ThreadId || node.position() == PositionKind::BlockId)) {
    const bool isThread = node.position() == PositionKind::ThreadId;
    const ValueId size = nodes_.position(isThread ? PositionKind::BlockDim : PositionKind::GridDim, node.axis());
    add(plus(difference(integer(context, size), self), -1));
  }
  if (node.kind == NodeKind::Phi)
    inequalitiesOfPhi(context, leaf, out);
  if (auto counted = counted_.find(indexOf(leaf)); counted != counted_.end()) {
    const Induction& induction = *inductionOf(counted->second);
    const auto limit = countLimit(context, induction), taken = Polynomial::product(induction.step, self);
    if (limit && taken)
      add(difference(*limit, *taken));
  }
  if (node.kind == NodeKind::Op)
    inequalitiesOfOp(context, leaf, out);
}

/// x < M · N makes x / (N · 8) · 8 less than M: what is at least 1 and a multiple of N, which is not negative, is so without N.
void Values::addReduced(Context& context, const Polynomial& dividend, const Polynomial& divisor,
                        const Polynomial& product, std::vector<Polynomial>& out) {
  std::set<ValueId> factors;
  for (const auto& [monomial, coefficient] : divisor.terms())
    factors.insert(monomial.begin(), monomial.end());
  if (factors.empty())
    return;
  std::vector<Polynomial> facts = context.atLeastZero;
  if (const ValueId leaf = dividend.asLeaf(); leaf != kNoValue) {
    const std::vector<Polynomial>& structural = inequalitiesOf(context, leaf);
    facts.insert(facts.end(), structural.begin(), structural.end());
  }
  const auto rest = difference(dividend, product);
  for (const Polynomial& fact : facts) {
    const auto sum = rest ? Polynomial::sum(fact, *rest) : std::nullopt;
    if (!sum || sum->constantPart() >= 0)
      continue;
    for (ValueId factor : factors)
      if (const auto reduced = withoutFactor(*sum, factor); reduced && leafRange(context, factor).low >= 0)
        addTo(out, plus(reduced, -1));
  }
}

/// x < 256 makes x / p · p + p at most 256 where p is a power of two that is not larger: it divides 256.
void Values::addWhole(Context& context, const Polynomial& dividend, const Polynomial& divisor,
                      const Polynomial& product, std::vector<Polynomial>& out) {
  const __int128 most = interval(context, dividend).high;
  __int128 power = 1;
  while (power <= most && power < kMostElements)
    power *= 2;
  const auto sum = Polynomial::sum(product, divisor);
  if (power > most && sum && interval(context, divisor).high < 2 * power)
    addTo(out, difference(Polynomial::constant(power), *sum));
}

void Values::inequalitiesOfOp(Context& context, ValueId leaf, std::vector<Polynomial>& out) {
  const Node node = nodes_[leaf];
  const auto add = [&](const std::optional<Polynomial>& polynomial) { addTo(out, polynomial); };
  const Polynomial self = Polynomial::leaf(leaf);
  const ValueId left = nodes_.operand(leaf, 0), right = nodes_.operand(leaf, 1);
  const Polynomial a = integer(context, left), b = integer(context, right);
  const auto isPositive = [&](const Polynomial& polynomial) {
    const auto less = plus(polynomial, -1);
    return less && isAtLeastZero(context, *less);
  };
  switch (node.op) {
  case Op::Div: {
    const auto product = Polynomial::product(b, self);
    if (!product || !isAtLeastZero(context, left) || !isAtLeastZero(context, right))
      return;
    add(difference(a, *product));
    addReduced(context, a, b, *product, out);
    if (!isPositive(b))
      return;
    if (isPower(context, b))
      addWhole(context, a, b, *product, out);
    if (const auto above = Polynomial::sum(*product, b))
      add(plus(difference(*above, a), -1));
    // Where the remainder is known, the quotient times the divisor is exact: quotients of even numbers differ.
    if (const auto rest = integer(context, nodes_.op(Op::Rem, node.type, left, right)).asConstant())
      if (const auto exact = plus(difference(a, *product), -*rest)) {
        add(*exact);
        add(difference(Polynomial(), *exact));
      }
    return;
  }
  case Op::CeilDiv: {
    const auto product = Polynomial::product(b, self), sum = Polynomial::sum(a, b);
    if (!product || !sum || !isAtLeastZero(context, left) || !isPositive(b))
      return;
    add(difference(*product, a));
    add(plus(difference(*sum, *product), -1));
    return;
  }
  case Op::Rem: {
    if (!isAtLeastZero(context, left) || !isAtLeastZero(context, right))
      return;
    add(plus(difference(b, self), isPositive(b) ? -1 : 0));
    add(difference(a, self));
    const Polynomial quotient = integer(context, nodes_.op(Op::Div, node.type, left, right));
    const auto product = Polynomial::product(b, quotient);
    const auto rest = product ? difference(a, *product) : std::nullopt;
    if (rest && isPositive(b)) {
      add(difference(*rest, self));
      add(difference(self, *rest));
    }
    return;
  }
  case Op::And:
    if (isAtLeastZero(context, left))
      add(difference(a, self));
    if (isAtLeastZero(context, right))
      add(difference(b, self));
    return;
  case Op::Min:
    add(difference(a, self));
    add(difference(b, self));
    return;
  case Op::Max:
    add(difference(self, a));
    add(difference(self, b));
    return;
  default: return;
  }
}

}  // namespace vortex::lang::flow
