// Each rule holds for all 64-bit values of arguments, or for those within the operands' ranges; where a value may wrap its range is everything.
// Rules never add a sum or product whose steps could wrap where the original's did not: extents are refused when a step wraps (Values::exactly).
#include "size/simplify.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace vortex::size {

namespace {

using Wide = __int128;

Range ofWide(Wide low, Wide high) {
  if (low < INT64_MIN || high > INT64_MAX)
    return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

Range join(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Range ofProduct(Range a, Range b) {
  const Wide corners[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high};
  return ofWide(*std::ranges::min_element(corners), *std::ranges::max_element(corners));
}

/// Multiplies what is not negative; 2^64 where it is more.
Wide timesAtMost(Wide a, Wide b) { return std::min(a * b, Wide{1} << 64); }

void collectFactors(const Node& node, std::vector<const Node*>& factors) {
  if (node.op != Op::Mul)
    return factors.push_back(&node);
  collectFactors(*node.operands[0], factors);
  collectFactors(*node.operands[1], factors);
}

/// The extents of one tensor have a product of at most 2^47 too (base/tensor_bytes.h), whatever the order of the multiplications. Nothing if
/// a factor may be negative.
std::optional<Range> ofExtents(const Node& a, const Node& b) {
  std::vector<const Node*> factors, seen;
  collectFactors(a, factors);
  collectFactors(b, factors);
  if (factors.size() > 8)
    return std::nullopt;
  Wide low = 1, high = 1;
  for (const Node* factor : factors) {
    if (factor->range.low < 0)
      return std::nullopt;
    // Another dimension of a tensor whose extents are counted already.
    const bool isCounted =
        factor->op == Op::Dim && std::ranges::find(seen, factor) == seen.end() &&
        std::ranges::any_of(seen, [&](const Node* other) { return other->argument == factor->argument; });
    if (factor->op == Op::Dim)
      seen.push_back(factor);
    low = timesAtMost(low, factor->range.low);
    high = isCounted ? high : timesAtMost(high, factor->range.high);
  }
  return ofWide(low, high);
}

/// Of FloorDiv and CeilDiv. Divisors below 0 are too rare to be worth their cases.
Range ofQuotient(Op op, Range a, Range b) {
  if (b.low < 0)
    return {};
  const int64_t least = std::max<int64_t>(b.low, 1), most = std::max<int64_t>(b.high, 1);
  Range range{apply(op, a.low, a.low < 0 ? least : most), apply(op, a.high, a.high < 0 ? most : least)};
  return b.low == 0 ? join(range, {0, 0}) : range;
}

Range ofRemainder(Range a, Range b) {
  if (b.low < 0)
    return {};
  const int64_t most = std::max<int64_t>(b.high - 1, 0);
  return {0, a.low >= 0 ? std::min(most, a.high) : most};
}

bool isTruth(Expr expr) { return expr.range().low >= 0 && expr.range().high <= 1; }
bool isNeverZero(Expr expr) { return !expr.range().contains(0); }
bool isZero(Expr expr) { return expr.constant() == 0; }
/// One of the operands of `expr` is `part`.
bool hasOperand(Expr expr, Op op, Expr part) {
  return expr.op() == op && (expr.operand(0) == part || expr.operand(1) == part);
}
Expr otherOperand(Expr expr, Expr part) { return expr.operand(expr.operand(0) == part ? 1 : 0); }

/// `op` of a constant and something else, constant right: that constant.
std::optional<int64_t> constantRight(Expr expr, Op op) {
  return expr.op() == op ? expr.operand(1).constant() : std::nullopt;
}

Expr simplifySum(Arena& arena, Expr a, Expr b) {
  if (isZero(b))
    return a;
  auto inner = constantRight(a, Op::Add), outer = b.constant();
  if (inner && outer && !wraps(Op::Add, *inner, *outer))
    return arena.make(Op::Add, a.operand(0), arena.constant(*inner + *outer));
  if (a.op() == Op::Sub && a.operand(1) == b)
    return a.operand(0);
  return b.op() == Op::Sub && b.operand(1) == a ? b.operand(0) : Expr();
}

Expr simplifyDifference(Arena& arena, Expr a, Expr b) {
  if (a == b)
    return arena.constant(0);
  if (isZero(b))
    return a;
  return hasOperand(a, Op::Add, b) ? otherOperand(a, b) : Expr();
}

Expr simplifyProduct(Arena& arena, Expr a, Expr b) {
  if (isZero(b) || b.constant() == 1)
    return isZero(b) ? b : a;
  auto inner = constantRight(a, Op::Mul), outer = b.constant();
  if (inner && outer && !wraps(Op::Mul, *inner, *outer))
    return arena.make(Op::Mul, a.operand(0), arena.constant(*inner * *outer));
  return {};
}

/// True if a is x * b and the product cannot wrap.
bool isMultiple(Expr a, Expr b) {
  const Range product =
      ofProduct(a.op() == Op::Mul ? a.operand(0).range() : Range(), a.op() == Op::Mul ? a.operand(1).range() : Range());
  return hasOperand(a, Op::Mul, b) && (product.low != INT64_MIN || product.high != INT64_MAX);
}

Expr simplifyQuotient(Arena& arena, Op op, Expr a, Expr b) {
  if (isZero(a) || isZero(b))
    return arena.constant(0);
  if (b.constant() == 1)
    return a;
  if (a == b && isNeverZero(a))
    return arena.constant(1);
  if (isMultiple(a, b) && isNeverZero(b))
    return otherOperand(a, b);
  auto inner = constantRight(a, op), outer = b.constant();
  if (inner && outer && *inner > 0 && *outer > 0 && !wraps(Op::Mul, *inner, *outer))
    return arena.make(op, a.operand(0), arena.constant(*inner * *outer));
  return {};
}

Expr simplifyRemainder(Arena& arena, Expr a, Expr b) {
  if (isZero(a) || isZero(b) || b.constant() == 1 || a == b || isMultiple(a, b))
    return arena.constant(0);
  const auto divisor = b.constant();
  if (!divisor || *divisor < 0)
    return {};
  if (std::has_single_bit(uint64_t(*divisor)) && uint64_t(*divisor) <= uint64_t{1} << a.node().zeros)
    return arena.constant(0);
  return a.range().low >= 0 && a.range().high < *divisor ? a : Expr();
}

/// Of Min and Max.
Expr simplifyExtreme(Arena& arena, Op op, Expr a, Expr b) {
  const Op dual = op == Op::Min ? Op::Max : Op::Min;
  if (a == b || hasOperand(b, dual, a) || hasOperand(a, op, b))
    return a;
  if (hasOperand(a, dual, b) || hasOperand(b, op, a))
    return b;
  const bool aIsLess = a.range().high <= b.range().low, bIsLess = b.range().high <= a.range().low;
  if (aIsLess || bIsLess)
    return (op == Op::Min) == aIsLess ? a : b;
  auto inner = constantRight(a, op), outer = b.constant();
  if (inner && outer)
    return arena.make(op, a.operand(0), arena.constant(apply(op, *inner, *outer)));
  return {};
}

Expr simplifyComparison(Arena& arena, Op op, Expr a, Expr b) {
  if (a == b)
    return arena.constant(op == Op::Equal);
  const Range x = a.range(), y = b.range();
  const bool isLess = x.high < y.low, isMore = y.high < x.low;
  if (op == Op::Equal) {
    if (isLess || isMore)
      return arena.constant(0);
    if (isTruth(a) && b.constant())  // b is in the range
      return *b.constant() ? a : arena.make(Op::Not, a);
    return {};
  }
  if (isLess || y.high <= x.low)
    return arena.constant(isLess);
  return isZero(a) && isTruth(b) ? b : Expr();
}

/// Of And and Or.
Expr simplifyLogic(Arena& arena, Op op, Expr a, Expr b) {
  const bool isAnd = op == Op::And;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    const bool isTrue = isNeverZero(x), isFalse = isZero(x);
    if (isAnd ? isFalse : isTrue)
      return arena.constant(!isAnd);
    if ((isAnd ? isTrue : isFalse) && isTruth(y))
      return y;
    if (hasOperand(y, op, x))
      return y;
    if (y.op() == Op::Not && y.operand(0) == x)
      return arena.constant(!isAnd);
  }
  return a == b && isTruth(a) ? a : Expr();
}

Expr simplifyUnary(Arena& arena, Op op, Expr a) {
  if (op == Op::Not) {
    if (isNeverZero(a))
      return arena.constant(0);
    return a.op() == Op::Not && isTruth(a.operand(0)) ? a.operand(0) : Expr();
  }
  return a.range().high <= 0 ? arena.constant(0) : Expr();
}

Expr simplifySelect(Arena& arena, Expr condition, Expr x, Expr y) {
  if (isZero(condition) || isNeverZero(condition))
    return isZero(condition) ? y : x;
  if (x == y)
    return x;
  if (x.constant() == 1 && isZero(y) && isTruth(condition))
    return condition;
  if (isZero(x) && y.constant() == 1)
    return arena.make(Op::Not, condition);
  if (condition.op() == Op::Less) {  // the smaller or the larger of the compared
    if (condition.operand(0) == x && condition.operand(1) == y)
      return arena.make(Op::Min, x, y);
    if (condition.operand(0) == y && condition.operand(1) == x)
      return arena.make(Op::Max, x, y);
  }
  return {};
}

}  // namespace

Expr simplify(Arena& arena, Op op, Expr a, Expr b, Expr c) {
  if (a.constant() && (!b || b.constant()) && (!c || c.constant()))
    return arena.constant(apply(op, *a.constant(), b ? *b.constant() : 0, c ? *c.constant() : 0));
  switch (op) {
  case Op::Add: return simplifySum(arena, a, b);
  case Op::Sub: return simplifyDifference(arena, a, b);
  case Op::Mul: return simplifyProduct(arena, a, b);
  case Op::FloorDiv:
  case Op::CeilDiv: return simplifyQuotient(arena, op, a, b);
  case Op::Mod: return simplifyRemainder(arena, a, b);
  case Op::Min:
  case Op::Max: return simplifyExtreme(arena, op, a, b);
  case Op::Equal:
  case Op::Less: return simplifyComparison(arena, op, a, b);
  case Op::And:
  case Op::Or: return simplifyLogic(arena, op, a, b);
  case Op::Not:
  case Op::IsPowerOfTwo: return simplifyUnary(arena, op, a);
  case Op::Select: return simplifySelect(arena, a, b, c);
  default: return {};
  }
}

Range rangeOf(Op op, const std::array<const Node*, 3>& operands) {
  const Range a = operands[0]->range, b = operands[1] ? operands[1]->range : Range();
  switch (op) {
  case Op::Add: return ofWide(Wide{a.low} + b.low, Wide{a.high} + b.high);
  case Op::Sub: return ofWide(Wide{a.low} - b.high, Wide{a.high} - b.low);
  case Op::Mul: return ofExtents(*operands[0], *operands[1]).value_or(ofProduct(a, b));
  case Op::FloorDiv:
  case Op::CeilDiv: return ofQuotient(op, a, b);
  case Op::Mod: return ofRemainder(a, b);
  case Op::Min: return {std::min(a.low, b.low), std::min(a.high, b.high)};
  case Op::Max: return {std::max(a.low, b.low), std::max(a.high, b.high)};
  case Op::Select: return join(b, operands[2]->range);
  case Op::Equal:
  case Op::Less:
  case Op::And:
  case Op::Or:
  case Op::Not:
  case Op::IsPowerOfTwo: return {0, 1};
  default: return {};
  }
}

uint32_t zerosOf(Op op, const std::array<const Node*, 3>& operands) {
  switch (op) {
  case Op::Add:
  case Op::Sub:
  case Op::Min:
  case Op::Max: return std::min(operands[0]->zeros, operands[1]->zeros);
  case Op::Mul: return std::min(operands[0]->zeros + operands[1]->zeros, 63u);
  case Op::Select: return std::min(operands[1]->zeros, operands[2]->zeros);
  default: return 0;
  }
}

}  // namespace vortex::size
