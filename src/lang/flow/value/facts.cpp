// What conditions say of integers: polynomials that are at least 0 or not 0, and ranges of leaves.
#include <algorithm>

#include "lang/flow/value/context.h"

namespace vortex::lang::flow {

constexpr uint32_t kFirstAssumed = 1u << 31;
constexpr size_t kMostFacts = 64;

size_t Values::AssumptionHash::operator()(const Assumption& assumption) const {
  uint64_t hash = indexOf(assumption.base);
  for (const Condition& condition : assumption.conditions)
    hash = (hash ^ (uint64_t(indexOf(condition.value)) * 2 + condition.holds)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

PointId Values::assume(PointId base, std::vector<Condition> conditions) {
  const PointId next{kFirstAssumed + static_cast<uint32_t>(assumptions_.size())};
  Assumption made{base, std::move(conditions)};
  const auto [known, isNew] = assumed_.try_emplace(made, next);
  if (isNew)
    assumptions_.push_back(std::move(made));
  return known->second;
}

std::vector<Condition> Values::conditionsAt(PointId point) const {
  return point != kNoPoint && surroundings_.conditions ? surroundings_.conditions(point) : std::vector<Condition>();
}

Values::Context& Values::contextAt(PointId point) {
  if (auto found = contexts_.find(indexOf(point)); found != contexts_.end())
    return *found->second;
  auto context = std::make_unique<Context>();
  if (point == kNoPoint || indexOf(point) < kFirstAssumed) {
    context->conditions = conditionsAt(point);
    build(*context);
  } else {
    const Assumption& assumption = assumptions_[indexOf(point) - kFirstAssumed];
    extend(*context, contextAt(assumption.base), assumption.conditions);
  }
  return *contexts_.insert_or_assign(indexOf(point), std::move(context)).first->second;
}

/// Twice, as what a condition says of a value may make the operands of an earlier one exact.
void Values::build(Context& context) {
  for (int round = 0; round < 2; ++round)
    learnAll(context, context.conditions);
}

/// What the base knows is not learnt anew.
void Values::extend(Context& context, const Context& base, const std::vector<Condition>& conditions) {
  context.conditions = base.conditions;
  context.conditions.insert(context.conditions.end(), conditions.begin(), conditions.end());
  context.atLeastZero = base.atLeastZero;
  context.notZero = base.notZero;
  context.refined = base.refined;
  context.powers = base.powers;
  for (int round = 0; round < (conditions.size() > 1 ? 2 : 1); ++round)
    learnAll(context, conditions);
}

void Values::learnAll(Context& context, const std::vector<Condition>& conditions) {
  bool isSettled = false;
  for (const Condition& condition : conditions) {
    const size_t known = context.atLeastZero.size();
    learn(context, condition);
    if (isSettled && context.atLeastZero.size() == known)
      continue;
    isSettled = false;
    for (int refinements = 0; refinements < 3 && !isSettled; ++refinements) {
      isSettled = !refine(context);
      if (!isSettled)
        context.forget();
    }
  }
  context.forget();
}

void Values::learn(Context& context, Condition condition) {
  const ValueId value = nodes_.resolved(condition.value);
  const Node node = nodes_[value];
  if (node.kind == NodeKind::Op) {
    const ValueId a = nodes_.operand(value, 0), b = nodes_.operand(value, 1);
    const auto isNumber = [&](ValueId id, __int128 number) {
      return nodes_.isConstant(id) && nodes_[id].constant() == number;
    };
    switch (node.op) {
    case Op::Eq:
      learnBit(context, a, b, condition.holds);
      learnBit(context, b, a, condition.holds);
      if (condition.holds)
        learnPower(context, isNumber(a, 0) ? b : a, isNumber(a, 0) ? a : b);
      [[fallthrough]];
    case Op::Lt:
    case Op::Le: return learnComparison(context, node, value, condition.holds);
    case Op::And:
    case Op::Or:
      if (condition.holds == (node.op == Op::And)) {
        learn(context, {a, condition.holds});
        learn(context, {b, condition.holds});
        return;
      }
      break;
    case Op::Sub:  // 1 - b
    case Op::Xor:
      if (isNumber(a, 1))
        return learn(context, {b, !condition.holds});
      if (node.op == Op::Xor && isNumber(b, 1))
        return learn(context, {a, !condition.holds});
      break;
    case Op::Select: {  // a && b is `a ? b : false`, a || b is `a ? true : b`
      const ValueId c = nodes_.operand(value, 2);
      const bool isBoth = isNumber(c, 0), isEither = isNumber(b, 1);
      if ((isBoth && condition.holds) || (isEither && !condition.holds)) {
        learn(context, {a, condition.holds});
        learn(context, {isBoth ? b : c, condition.holds});
        return;
      }
      break;
    }
    default: break;
    }
  }
  const Polynomial known = integer(context, value);
  addAtLeastZero(context, condition.holds ? plus(known, -1) : difference(Polynomial(), known));
}

/// `x & 8 == 0`: the remainder of x by 16 is less than 8.
void Values::learnBit(Context& context, ValueId masked, ValueId compared, bool holds) {
  const Node node = nodes_[masked];
  if (node.kind != NodeKind::Op || node.op != Op::And || !nodes_.isConstant(compared))
    return;
  const ValueId a = nodes_.operand(masked, 0), b = nodes_.operand(masked, 1);
  const ValueId mask = nodes_.isConstant(a) ? a : b, x = nodes_.isConstant(a) ? b : a;
  if (!nodes_.isConstant(mask) || !exponentOf(nodes_[mask].constant()) ||
      !node.type.contains(nodes_[mask].constant() * 2))
    return;
  const __int128 bit = nodes_[mask].constant(), number = nodes_[compared].constant();
  if ((number != 0 && number != bit) || (node.type.isSigned && !isAtLeastZero(context, x)))
    return;
  const ValueId rest = nodes_.op(Op::Rem, node.type, x, nodes_.constant(node.type, bit * 2));
  learn(context, {nodes_.op(Op::Lt, kBool, rest, mask), holds == (number == 0)});
}

/// `x & (x - 1) == 0`
void Values::learnPower(Context& context, ValueId masked, ValueId compared) {
  const Node node = nodes_[masked];
  if (node.kind != NodeKind::Op || node.op != Op::And || !nodes_.isConstant(compared) ||
      nodes_[compared].constant() != 0)
    return;
  const ValueId a = nodes_.operand(masked, 0), b = nodes_.operand(masked, 1);
  for (const auto& [x, less] : {std::pair(a, b), std::pair(b, a)}) {
    const auto apart = difference(form(context, x).polynomial, form(context, less).polynomial);
    const ValueId leaf = integer(context, x).asLeaf();
    if (!apart || leaf == kNoValue || apart->reduced(__int128(1) << node.type.width) != Polynomial::constant(1))
      continue;
    context.powers.insert(leaf);
    if (!nodes_.type(leaf).isSigned)
      addAtLeastZero(context,
                     difference(Polynomial::constant((nodes_.type(leaf).highest() + 1) / 2), Polynomial::leaf(leaf)));
  }
}

void Values::learnComparison(Context& context, const Node& node, ValueId value, bool holds) {
  const ValueId left = nodes_.operand(value, 0), right = nodes_.operand(value, 1);
  const Polynomial a = integer(context, left), b = integer(context, right);
  switch (node.op) {
  case Op::Lt:
  case Op::Le: {
    const bool isLess = node.op == Op::Lt;
    if (holds)
      addAtLeastZero(context, plus(difference(b, a), isLess ? -1 : 0));
    else
      addAtLeastZero(context, plus(difference(a, b), isLess ? 0 : -1));
    return;
  }
  default: break;
  }
  if (nodes_.type(left) == kBool)
    for (const auto& [one, other] : {std::pair(left, right), std::pair(right, left)})
      if (const auto number = integer(context, other).asConstant(); number && !nodes_.isConstant(one))
        return learn(context, {one, holds == (*number == 1)});
  if (holds) {
    addAtLeastZero(context, difference(a, b));
    addAtLeastZero(context, difference(b, a));
    return;
  }
  addNotZero(context, difference(a, b));
}

void Values::addAtLeastZero(Context& context, const std::optional<Polynomial>& polynomial) {
  if (!polynomial || polynomial->asConstant() || context.atLeastZero.size() >= kMostFacts)
    return;
  if (std::find(context.atLeastZero.begin(), context.atLeastZero.end(), *polynomial) == context.atLeastZero.end())
    context.atLeastZero.push_back(*polynomial);
}

/// What is not 0 and not negative is at least 1.
void Values::addNotZero(Context& context, const std::optional<Polynomial>& polynomial) {
  if (!polynomial || polynomial->asConstant())
    return;
  if (std::find(context.notZero.begin(), context.notZero.end(), *polynomial) == context.notZero.end())
    context.notZero.push_back(*polynomial);
  const auto negated = difference(Polynomial(), *polynomial);
  if (isAtLeastZero(context, *polynomial))
    addAtLeastZero(context, plus(polynomial, -1));
  else if (isAtLeastZero(context, *negated))
    addAtLeastZero(context, plus(negated, -1));
}

/// What the range of x / 32 says of x, which is not negative.
void Values::learnDividend(Context& context, ValueId quotient, const Interval& range) {
  const Node node = nodes_[quotient];
  if (node.kind != NodeKind::Op || node.op != Op::Div)
    return;
  const auto divisor = integer(context, nodes_.operand(quotient, 1)).asConstant();
  if (!divisor || *divisor <= 0 || !isAtLeastZero(context, nodes_.operand(quotient, 0)))
    return;
  const auto scaled = [&](__int128 number) -> std::optional<__int128> {
    __int128 product = 0;
    const bool isSmall =
        number > 0 && number < Interval::kUnbounded && !__builtin_mul_overflow(number, *divisor, &product);
    return isSmall || number == 0 ? std::optional(product) : std::nullopt;
  };
  const Polynomial dividend = integer(context, nodes_.operand(quotient, 0));
  if (const auto least = scaled(range.low))
    addAtLeastZero(context, plus(dividend, -*least));
  if (const auto most = scaled(range.high))
    addAtLeastZero(context, difference(Polynomial::constant(*most + *divisor - 1), dividend));
}

/// The product is not 0, so that none of its factors is. True if one got a smaller range.
bool Values::excludeZero(Context& context, const Monomial& product) {
  bool isBetter = false;
  const Monomial factors = product;
  for (ValueId leaf : factors)
    if (const Interval known = leafRange(context, leaf); known.low == 0 && known.high > 0) {
      context.narrow(leaf, {1, known.high});
      isBetter = true;
    }
  return isBetter;
}

/// Ranges of leaves that stand alone in a fact. True if one got smaller.
bool Values::refine(Context& context) {
  bool isBetter = false;
  std::vector<std::pair<ValueId, Interval>> narrowed;
  for (const Polynomial& fact : context.atLeastZero)
    for (const auto& [monomial, coefficient] : fact.terms()) {
      if (monomial.empty())
        continue;
      const auto rest = difference(fact, Polynomial::of(monomial, coefficient));
      const __int128 most = rest ? interval(context, *rest).high : Interval::kUnbounded;
      if (most >= Interval::kUnbounded)
        continue;
      if (monomial.size() > 1) {
        isBetter |= coefficient > 0 && most < 0 && excludeZero(context, monomial);
        continue;
      }
      // coefficient * leaf >= -most
      const Interval known = leafRange(context, monomial[0]);
      Interval bound;
      if (coefficient > 0)
        bound.low = ceilDivide(-most, coefficient);
      else
        bound.high = floorDivide(most, -coefficient);
      const Interval better = known.meet(bound);
      if (better == known)
        continue;
      isBetter = true;
      context.narrow(monomial[0], better);
      narrowed.emplace_back(monomial[0], better);
    }
  for (const auto& [leaf, range] : narrowed)
    learnDividend(context, leaf, range);
  return isBetter;
}

}  // namespace vortex::lang::flow
