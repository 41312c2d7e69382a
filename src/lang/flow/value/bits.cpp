// Shifts and masks as products, quotients and remainders by powers of two, known ones and `1 << s` and numbers that are doubled or halved in every round
// alike: `(t >> s << (s + 1)) | (t & (half - 1))` is `t / half * (2 * half) + t % half`.
#include <algorithm>

#include "lang/flow/value/context.h"

namespace vortex::lang::flow {

constexpr unsigned kMostUnitDepth = 4;

/// x << s is x times the power, also where both wrap.
Form Values::ofShift(Context& context, ValueId value) {
  const MachineType type = nodes_.type(value);
  const ValueId x = nodes_.operand(value, 0), s = nodes_.operand(value, 1), one = nodes_.constant(type, 1);
  const auto count = integer(context, s).asConstant();
  if (!count && x == one)
    return ofPower(context, value);
  const Polynomial factor = count ? Polynomial::constant(__int128(1) << (static_cast<uint64_t>(*count) % type.width))
                                  : integer(context, nodes_.op(Op::Shl, type, one, s));
  return settle(context, value, Polynomial::product(form(context, x).polynomial, factor),
                Polynomial::product(integer(context, x), factor));
}

/// 1 << (s + c) is 2^c times 1 << s, with the largest c that is known; where no bit leaves the type, so is it in 64 bits.
Form Values::ofPower(Context& context, ValueId value) {
  const MachineType type = nodes_.type(value);
  const Polynomial exponent = integer(context, nodes_.operand(value, 1));
  const auto [least, most] = interval(context, exponent);
  if (least < 0 || least >= type.width)
    return leaf(context, value);
  const bool isWithin = most < type.width - (type.isSigned ? 1 : 0);
  const MachineType as = isWithin ? kUsize : type;
  const auto rest = plus(exponent, -least);
  const ValueId count = rest ? nodeOf(*rest, as) : kNoValue;
  if (!rest || integer(context, count) != *rest)
    return leaf(context, value);
  const ValueId base = nodes_.op(Op::Shl, as, nodes_.constant(as, 1), count);
  if (base == value)
    return leaf(context, value);
  const Polynomial power = integer(context, base);
  const Interval range = interval(context, power);
  if (!isWithin && least > 0 && (range.low < 1 || range.high > type.highest() >> static_cast<unsigned>(least)))
    return leaf(context, value);
  return {*Polynomial::product(power, Polynomial::constant(__int128(1) << static_cast<unsigned>(least))), true};
}

/// One term, which is a power of two whatever its leaves are.
bool Values::isPower(Context& context, const Polynomial& polynomial) {
  if (polynomial.terms().size() != 1 || !exponentOf(polynomial.terms()[0].second))
    return false;
  const Monomial& monomial = polynomial.terms()[0].first;
  return std::all_of(monomial.begin(), monomial.end(), [&](ValueId leaf) {
    const Node& node = nodes_[leaf];
    const bool isShifted = node.kind == NodeKind::Op && node.op == Op::Shl && nodes_.isConstant(node.args[0]) &&
                           nodes_[node.args[0]].constant() == 1;
    const bool isDoubled = node.kind == NodeKind::Phi && isPowerOrZero(leaf);
    return (isShifted || isDoubled || context.powers.contains(leaf)) && leafRange(context, leaf).low >= 1;
  });
}

/// A variable that begins with a power of two and is doubled or halved in every round; a power that has left its type is 0.
bool Values::isPowerOrZero(ValueId phi) const {
  const auto isNumber = [&](ValueId value, auto&& holds) {
    return nodes_.isConstant(value) && nodes_[value].constant() > 0 && holds(nodes_[value].constant());
  };
  const auto isPowerOfTwo = [&](ValueId value) {
    return isNumber(value, [](__int128 number) { return exponentOf(number).has_value(); });
  };
  bool isMoved = false;
  for (ValueId operand : nodes_.phiOperands(phi)) {
    operand = nodes_.resolved(operand);
    if (operand == phi || isPowerOfTwo(operand))
      continue;
    const Node& node = nodes_[operand];
    if (node.kind != NodeKind::Op || node.type.isSigned)
      return false;
    const ValueId x = nodes_.operand(operand, 0), y = nodes_.operand(operand, 1);
    const bool isOther = node.op == Op::Mul && y == phi;
    const bool isScaled = (node.op == Op::Mul || node.op == Op::Div) && isPowerOfTwo(isOther ? x : y);
    const bool isShifted = node.op == Op::Shl || node.op == Op::Shr;
    if ((isOther ? y : x) != phi || (!isScaled && !isShifted && !(node.op == Op::Add && y == phi)))
      return false;
    isMoved = true;
  }
  return isMoved;
}

/// Shifts to the right and masks of what is not negative are quotients and remainders; all ones make a complement.
Form Values::ofBits(Context& context, ValueId value) {
  const Node node = nodes_[value];
  const MachineType type = node.type;
  ValueId a = nodes_.operand(value, 0), b = nodes_.operand(value, 1);
  if (node.op == Op::Shr)
    return ofShiftDown(context, value);
  if (integer(context, a).asConstant())
    std::swap(a, b);
  const auto number = integer(context, b).asConstant();
  if (number && node.op == Op::Xor && type.wrap(*number) == type.wrap(-1))
    return settle(context, value, difference(Polynomial::constant(-1), form(context, a).polynomial),
                  difference(Polynomial::constant(type.wrap(-1)), integer(context, a)));
  if (number && *number == 0)
    return node.op == Op::And ? Form{Polynomial(), true} : form(context, a);
  if (node.op == Op::And) {
    if (number && type.wrap(*number) == type.wrap(-1))
      return form(context, a);
    for (const auto& [x, mask] : {std::pair(a, b), std::pair(b, a)})
      if (const auto masked = ofMask(context, x, mask))
        return {*masked, true};
    return leaf(context, value);
  }
  const Polynomial x = integer(context, a), y = integer(context, b);
  if (isAtLeastZero(context, a) && isAtLeastZero(context, b) && haveNoCommonBit(context, x, y, 0))
    if (const auto sum = Polynomial::sum(x, y))
      return {*sum, true};
  return number ? ofBit(context, value, a, *number) : leaf(context, value);
}

Form Values::ofShiftDown(Context& context, ValueId value) {
  const MachineType type = nodes_.type(value);
  const ValueId x = nodes_.operand(value, 0), s = nodes_.operand(value, 1);
  const Interval counts = interval(context, integer(context, s));
  const __int128 most = counts.asConstant() && counts.low >= 0 ? counts.low % type.width : counts.high;
  if (!isAtLeastZero(context, x) || (type.isSigned && (counts.low < 0 || most > type.width - 2)))
    return leaf(context, value);
  const ValueId power = nodes_.op(Op::Shl, type, nodes_.constant(type, 1), s);
  return form(context, nodes_.op(Op::Div, type, x, power));
}

/// x & (p - 1) is x % p, and x & -p is x / p · p.
std::optional<Polynomial> Values::ofMask(Context& context, ValueId x, ValueId mask) {
  const MachineType type = nodes_.type(x);
  if (!isAtLeastZero(context, x))
    return std::nullopt;
  const Polynomial whole = integer(context, mask);
  const auto low = plus(whole, 1);
  const auto high = difference(Polynomial::constant(type.isSigned ? 0 : type.highest() + 1), whole);
  for (const auto& power : {low, high}) {
    if (!power || !isPower(context, *power))
      continue;
    const ValueId divisor = nodeOf(*power, type);
    if (integer(context, divisor) != *power)
      continue;
    const Polynomial part = integer(context, nodes_.op(power == low ? Op::Rem : Op::Div, type, x, divisor));
    return power == low ? part : Polynomial::product(*power, part);
  }
  return std::nullopt;
}

/// Numbers that are not negative: u · high + low with low < u, of each, where u is a power of two.
bool Values::haveNoCommonBit(Context& context, const Polynomial& a, const Polynomial& b, unsigned depth) {
  if (a.isZero() || b.isZero())
    return true;
  if (depth == kMostUnitDepth)
    return false;
  for (const Polynomial* side : {&a, &b})
    for (const auto& [monomial, coefficient] : side->terms()) {
      Polynomial unit = Polynomial::constant(coefficient & -coefficient);
      for (ValueId leaf : monomial)
        if (isPower(context, Polynomial::leaf(leaf)))
          unit = Polynomial::product(unit, Polynomial::leaf(leaf)).value_or(unit);
      const auto isBelow = [&](const Polynomial& low) {
        const auto room = plus(difference(unit, low), -1);
        return room && isAtLeastZero(context, low) && isAtLeastZero(context, *room);
      };
      const auto [aHigh, aLow] = splitBy(a, unit);
      const auto [bHigh, bLow] = splitBy(b, unit);
      const bool isNew = !(aLow == a && bLow == b) && !(aLow.isZero() && bLow.isZero() && unit.asConstant() == 1);
      if (isNew && isBelow(aLow) && isBelow(bLow) && haveNoCommonBit(context, aHigh, bHigh, depth + 1) &&
          haveNoCommonBit(context, aLow, bLow, depth + 1))
        return true;
    }
  return false;
}

/// x ^ 8 and x | 8 where it is known whether x has that bit.
Form Values::ofBit(Context& context, ValueId value, ValueId x, __int128 bit) {
  const Node node = nodes_[value];
  if (node.type.isSigned || !exponentOf(bit) || !node.type.contains(bit * 2))
    return leaf(context, value);
  const Interval rest = range(context, nodes_.op(Op::Rem, node.type, x, nodes_.constant(node.type, bit * 2)));
  const Polynomial whole = integer(context, x);
  if (rest.high < bit)
    return settle(context, value, std::nullopt, plus(whole, bit));
  if (rest.low >= bit)
    return settle(context, value, std::nullopt, plus(whole, node.op == Op::Or ? 0 : -bit));
  return leaf(context, value);
}

}  // namespace vortex::lang::flow
