#include <algorithm>

#include "base/check.h"
#include "lang/flow/value/context.h"

namespace vortex::lang::flow {

Values::Values(NodeTable& nodes, Surroundings surroundings, LaunchFacts launch)
    : nodes_(nodes), surroundings_(std::move(surroundings)), launch_(std::move(launch)) {}

Values::~Values() = default;

Form Values::form(ValueId value, PointId point) { return form(contextAt(point), value); }

Polynomial Values::integer(ValueId value, PointId point) { return integer(contextAt(point), value); }

Form Values::form(Context& context, ValueId value) {
  value = nodes_.resolved(value);
  if (auto found = context.forms.find(indexOf(value)); found != context.forms.end())
    return found->second;
  if (!context.computing.insert(value).second)
    return leaf(context, value);
  Form form = computeForm(context, value);
  context.computing.erase(value);
  return context.forms.insert_or_assign(indexOf(value), std::move(form)).first->second;
}

Polynomial Values::integer(Context& context, ValueId value) {
  const Form known = form(context, value);
  return known.isExact ? known.polynomial : leaf(context, nodes_.resolved(value)).polynomial;
}

/// The value itself, or the one number that it can be.
Form Values::leaf(Context& context, ValueId value) {
  if (auto number = leafRange(context, value).asConstant())
    return {Polynomial::constant(*number), true};
  return {Polynomial::leaf(value), true};
}

/// Is the polynomial of integers always a number of the type?
bool Values::fits(Context& context, const Polynomial& polynomial, MachineType type) {
  if (interval(context, polynomial).isWithin(type.lowest(), type.highest()))
    return true;
  const auto above = plus(polynomial, -type.lowest());
  const auto below = difference(Polynomial::constant(type.highest()), polynomial);
  return above && below && isAtLeastZero(context, *above) && isAtLeastZero(context, *below);
}

/// Of two polynomials congruent to the value: one that is exact, if either is. `modular` is made of the operands' forms, `whole` of the integers
/// they are, where inexact operands are leaves with ranges.
Form Values::settle(Context& context, ValueId value, const std::optional<Polynomial>& modular,
                    const std::optional<Polynomial>& whole) {
  const MachineType type = nodes_.type(value);
  if (modular && fits(context, *modular, type))
    return {*modular, true};
  if (whole && whole != modular && fits(context, *whole, type))
    return {*whole, true};
  if (modular || whole)
    return {modular ? *modular : *whole, false};
  return leaf(context, value);
}

Form Values::computeForm(Context& context, ValueId value) {
  if (auto defined = defined_.find(indexOf(value)); defined != defined_.end())
    return {defined->second, true};
  const Node node = nodes_[value];
  switch (node.kind) {
  case NodeKind::Constant: return {Polynomial::constant(node.constant()), true};
  case NodeKind::Op: return ofOp(context, value);
  case NodeKind::Convert: return ofConvert(context, value);
  case NodeKind::Position: return ofPosition(context, node, value);
  case NodeKind::Phi: return ofPhi(context, value);
  case NodeKind::Extent:
  case NodeKind::Argument:
  case NodeKind::Load:
  case NodeKind::Ticket:
  case NodeKind::Unknown: return leaf(context, value);
  }
  VORTEX_UNREACHABLE();
}

//===-- operations ------------------------------------------------------------------------------------------------===//

Form Values::ofOp(Context& context, ValueId value) {
  const Node node = nodes_[value];
  const ValueId a = nodes_.operand(value, 0), b = nodes_.operand(value, 1);
  switch (node.op) {
  case Op::Add:
  case Op::Sub: {
    const __int128 sign = node.op == Op::Add ? 1 : -1;
    const Form x = form(context, a), y = form(context, b);
    return settle(context, value, Polynomial::sum(x.polynomial, y.polynomial, sign),
                  Polynomial::sum(integer(context, a), integer(context, b), sign));
  }
  case Op::Mul: {
    const Form x = form(context, a), y = form(context, b);
    return settle(context, value, Polynomial::product(x.polynomial, y.polynomial),
                  Polynomial::product(integer(context, a), integer(context, b)));
  }
  case Op::Shl: return ofShift(context, value);
  case Op::Div:
  case Op::Rem:
  case Op::CeilDiv: return ofDivision(context, value);
  case Op::Shr:
  case Op::And:
  case Op::Or:
  case Op::Xor: return ofBits(context, value);
  case Op::Min:
  case Op::Max:
  case Op::Select: return ofChoice(context, value);
  case Op::Eq:
  case Op::Lt:
  case Op::Le: return ofComparison(context, value);
  }
  VORTEX_UNREACHABLE();
}

Form Values::ofConvert(Context& context, ValueId value) {
  const ValueId operand = nodes_.operand(value, 0);
  const MachineType from = nodes_.type(operand), to = nodes_.type(value);
  const Polynomial whole = integer(context, operand);
  if (to.width > from.width)  // what the operand wrapped to is extended
    return settle(context, value, std::nullopt, whole);
  return settle(context, value, form(context, operand).polynomial, whole);
}

/// a = b · quotient + rest with 0 <= rest < b and 0 <= a: the digits of `row * N + column`. Else the value is a leaf.
Form Values::ofDivision(Context& context, ValueId value) {
  const Op op = nodes_[value].op;
  const Polynomial a = integer(context, nodes_.operand(value, 0)), b = integer(context, nodes_.operand(value, 1));
  if (b == Polynomial::constant(0))
    return {Polynomial(), true};
  if (const auto x = a.asConstant(), y = b.asConstant(); x && y)
    return {Polynomial::constant(applyOp(op, nodes_.type(value), *x, *y)), true};
  if (op == Op::CeilDiv || !isAtLeastZero(context, nodes_.operand(value, 0)))
    return leaf(context, value);
  std::vector<std::pair<Polynomial, Polynomial>> digits{{Polynomial(), a}};
  const bool isTerm = b.terms().size() == 1 && b.terms().begin()->second > 0;
  if (isTerm)
    digits.push_back(splitBy(a, b));
  const auto divisor = b.asConstant();
  const Interval dividends = interval(context, a);
  if (divisor && *divisor > 0 && dividends.low >= 0 && dividends.high < Interval::kUnbounded) {  // of threads 32 to 63
    const __int128 quotient = dividends.low / *divisor;
    const auto rest = plus(a, -quotient * *divisor);
    if (rest && quotient == dividends.high / *divisor)
      digits.emplace_back(Polynomial::constant(quotient), *rest);
  }
  for (const auto& [quotient, rest] : digits) {
    const auto room = plus(difference(b, rest), -1);
    if (room && isAtLeastZero(context, rest) && isAtLeastZero(context, *room))
      return {op == Op::Rem ? rest : quotient, true};
  }
  // b · high + low by b is high and low / b: 256 · block + thread by 32 is 8 · block + thread / 32.
  const auto [high, low] = isTerm ? splitBy(a, b, true) : std::pair(Polynomial(), a);
  const ValueId dividend = high.isZero() ? value : nodeOf(low, nodes_.type(value));
  const auto positive = plus(b, -1);
  if (!high.isZero() && positive && isAtLeastZero(context, *positive) && isAtLeastZero(context, low) &&
      std::all_of(high.terms().begin(), high.terms().end(), [](const auto& term) { return term.second > 0; }) &&
      integer(context, dividend) == low) {
    const ValueId part = nodes_.op(op, nodes_.type(value), dividend, nodes_.operand(value, 1));
    if (const auto sum = Polynomial::sum(op == Op::Rem ? Polynomial() : high, integer(context, part)))
      return {*sum, true};
  }
  return divisor && *divisor > 0 ? ofReducedDivision(context, value, a, *divisor)
                                 : ofPlainDivision(context, value, a, b);
}

/// Of numbers that are not negative: the same leaf in all types, and of all ways to write the operands.
Form Values::ofPlainDivision(Context& context, ValueId value, const Polynomial& a, const Polynomial& b) {
  if (!isAtLeastZero(context, nodes_.operand(value, 1)))
    return leaf(context, value);
  const ValueId dividend = nodeOf(a, kUsize), divisor = nodeOf(b, kUsize);
  const ValueId plain = nodes_.op(nodes_[value].op, kUsize, dividend, divisor);
  if (plain == value || integer(context, dividend) != a || integer(context, divisor) != b)
    return leaf(context, value);
  return {integer(context, plain), true};
}

/// (g · x + rest) / (g · c) is x / c, its remainder g · (x % c) + rest, where 0 <= rest < g: 32 · warp + lane by 64 tells that the quotient is the
/// warp's alone.
Form Values::ofReducedDivision(Context& context, ValueId value, const Polynomial& a, __int128 divisor) {
  const MachineType type = nodes_.type(value);
  __int128 common = divisor;
  for (const auto& [monomial, coefficient] : a.terms())
    if (!monomial.empty())
      common = greatestDivisor(common, coefficient);
  const auto plain = [&] { return ofPlainDivision(context, value, a, Polynomial::constant(divisor)); };
  if (common < 2 || common >= divisor)
    return plain();
  const auto [reduced, rest] = splitBy(a, Polynomial::constant(common));
  const ValueId dividend = nodeOf(reduced, type);
  if (integer(context, dividend) != reduced)
    return plain();
  const ValueId other = nodes_.constant(type, divisor / common);
  const Op op = nodes_[value].op;
  const Polynomial result = integer(context, nodes_.op(op, type, dividend, other));
  if (op == Op::Div)
    return {result, true};
  const auto scaled = Polynomial::sum(rest, result, common);
  return scaled ? Form{*scaled, true} : leaf(context, value);
}

/// The polynomial computed in the type.
ValueId Values::nodeOf(const Polynomial& polynomial, MachineType type) {
  ValueId sum = nodes_.constant(type, 0);
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    ValueId product = nodes_.constant(type, coefficient);
    for (ValueId leaf : monomial)
      product = nodes_.op(Op::Mul, type, product, nodes_.convert(type, leaf));
    sum = nodes_.op(Op::Add, type, sum, product);
  }
  return sum;
}

Form Values::ofComparison(Context& context, ValueId value) {
  const Op op = nodes_[value].op;
  const ValueId a = nodes_.operand(value, 0), b = nodes_.operand(value, 1);
  Truth truth = Truth::Unknown;
  if (op == Op::Eq)
    truth = differ(context, a, b) ? Truth::No : Truth::Unknown;
  const auto difference = flow::difference(integer(context, b), integer(context, a));
  if (op == Op::Eq && difference && difference->isZero())
    truth = Truth::Yes;
  if (op != Op::Eq && difference) {
    const auto holds = plus(difference, op == Op::Lt ? -1 : 0);
    const auto fails = flow::difference(Polynomial::constant(op == Op::Lt ? 0 : -1), *difference);
    if (holds && isAtLeastZero(context, *holds))
      truth = Truth::Yes;
    else if (fails && isAtLeastZero(context, *fails))
      truth = Truth::No;
  }
  if (truth == Truth::Unknown)
    return leaf(context, value);
  return {Polynomial::constant(truth == Truth::Yes ? 1 : 0), true};
}

/// Min, Max, Select: one of the operands where it is seen which.
Form Values::ofChoice(Context& context, ValueId value) {
  const Op op = nodes_[value].op;
  const ValueId a = nodes_.operand(value, 0), b = nodes_.operand(value, 1);
  if (op == Op::Select) {
    const auto condition = integer(context, a).asConstant();
    return condition ? form(context, *condition != 0 ? b : nodes_.operand(value, 2)) : leaf(context, value);
  }
  const Polynomial x = integer(context, a), y = integer(context, b);
  const auto yFirst = difference(x, y), xFirst = difference(y, x);
  if (yFirst && isAtLeastZero(context, *yFirst))
    return {op == Op::Min ? y : x, true};
  if (xFirst && isAtLeastZero(context, *xFirst))
    return {op == Op::Min ? x : y, true};
  return leaf(context, value);
}

//===-- positions -------------------------------------------------------------------------------------------------===//

Form Values::ofPosition(Context& context, const Node& node, ValueId value) {
  const auto at = [&](PositionKind kind, uint32_t axis) { return nodes_.position(kind, axis); };
  const auto make = [&](Op op, ValueId a, ValueId b) { return nodes_.op(op, kUsize, a, b); };
  switch (node.position()) {
  case PositionKind::BlockDim:
  case PositionKind::GridDim: {
    const auto& known = node.position() == PositionKind::BlockDim ? launch_.blockDim : launch_.gridDim;
    const ValueId size = known[node.axis()];
    return size == kNoValue ? leaf(context, value) : Form{integer(context, size), true};
  }
  case PositionKind::ThreadGlobalId: {
    const uint32_t axis = node.axis();
    const ValueId before = make(Op::Mul, at(PositionKind::BlockId, axis), at(PositionKind::BlockDim, axis));
    return form(context, make(Op::Add, before, at(PositionKind::ThreadId, axis)));
  }
  case PositionKind::ThreadLocalId: {
    ValueId sum = at(PositionKind::ThreadId, 2);
    for (const uint32_t axis : {1u, 0u})
      sum = make(Op::Add, make(Op::Mul, sum, at(PositionKind::BlockDim, axis)), at(PositionKind::ThreadId, axis));
    return form(context, sum);
  }
  case PositionKind::WarpId:
    return form(context, make(Op::Div, at(PositionKind::ThreadLocalId, 0), nodes_.constant(kUsize, 32)));
  case PositionKind::LaneId:
    return form(context, make(Op::Rem, at(PositionKind::ThreadLocalId, 0), nodes_.constant(kUsize, 32)));
  case PositionKind::ThreadId:
  case PositionKind::BlockId: return leaf(context, value);
  }
  VORTEX_UNREACHABLE();
}

//===-- memory ----------------------------------------------------------------------------------------------------===//

/// What a leaf is congruent to: an inexact value its polynomial, a remainder its dividend.
std::optional<Values::Congruence> Values::memoryOf(Context& context, ValueId leaf) {
  const Node node = nodes_[leaf];
  if (node.kind == NodeKind::Op && (node.op == Op::Rem || node.op == Op::And)) {
    const ValueId a = nodes_.operand(leaf, 0), b = nodes_.operand(leaf, 1);
    for (const auto& [dividend, other] : {std::pair(a, b), std::pair(b, a)}) {
      const auto number = integer(context, other).asConstant();
      if (node.op == Op::And && number && exponentOf(*number + 1))
        return Congruence{integer(context, dividend), *number + 1};
      if (node.op == Op::Rem && number && *number != 0 && dividend == a)
        return Congruence{integer(context, dividend), *number < 0 ? -*number : *number};
    }
    return std::nullopt;
  }
  const Form known = form(context, leaf);
  if (known.isExact)
    return std::nullopt;
  return Congruence{known.polynomial, __int128(1) << node.type.width};
}

}  // namespace vortex::lang::flow
