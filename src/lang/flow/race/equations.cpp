// What is 0 is taken apart until it contradicts what is known or says nothing new:
//
// * high · unit + low with |low| < unit: both are 0. `row * N + column` of both sides have equal rows and equal columns.
// * leaf - leaf, leaf - number: one stands for the other from then on, also within the operands of quotients, minima and the like, so that
//   `tile % min(M - first, 4)` of both sides have one divisor where `first` is equal.
// * equal quotients or remainders of x and y by one w > 0: x - y is w · (difference of quotients) + difference of remainders.
//
// Each holds for integers; what may wrap is a leaf (value.h).
#include "lang/flow/race/equations.h"

#include <algorithm>

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostZeros = 32;
constexpr unsigned kMostTests = 64;  ///< of units
constexpr unsigned kMostDepth = 12;

Polynomial negated(const Polynomial& polynomial) { return *Polynomial::sum(Polynomial(), polynomial, -1); }

}  // namespace

bool Equations::areContradictory(std::vector<Polynomial> zeros) {
  for (const Polynomial& zero : zeros)
    add(zero);
  while (tests_ < kMostTests && zeros_.size() < kMostZeros) {
    bool isNew = false;
    for (size_t i = 0; i < zeros_.size() && !isNew; ++i) {
      const Polynomial zero = rewritten(zeros_[i]);
      zeros_[i] = zero.isZero() ? zero : zero.dividedBy(zero.content());
      if (zeros_[i].isZero()) {
        zeros_.erase(zeros_.begin() + static_cast<std::ptrdiff_t>(i--));
        continue;
      }
      if (values_.isNeverZero(zeros_[i], point_))
        return true;
      isNew = settle(i);
    }
    if (!isNew)
      break;
  }
  return values_.areNeverAllZero(zeros_, point_);
}

bool Equations::areEqual(ValueId a, ValueId b) {
  const auto difference =
      Polynomial::sum(rewritten(values_.integer(a, point_)), rewritten(values_.integer(b, point_)), -1);
  return difference && difference->isZero();
}

/// Where x and x % w are both in it, x is w · (x / w) + x % w: `2 * t - t % half`.
std::optional<Polynomial> Equations::inDigits(const Polynomial& zero) {
  for (const auto& [monomial, coefficient] : zero.terms()) {
    const ValueId rest = monomial.size() == 1 ? monomial[0] : kNoValue;
    if (rest == kNoValue || nodes_[rest].kind != NodeKind::Op || nodes_[rest].op != Op::Rem)
      continue;
    const ValueId x = nodes_.operand(rest, 0), w = nodes_.operand(rest, 1);
    const Polynomial dividend = values_.integer(x, point_), divisor = values_.integer(w, point_);
    const auto product =
        Polynomial::product(divisor, values_.integer(nodes_.op(Op::Div, nodes_.type(rest), x, w), point_));
    const auto isIn = [&](const Monomial& part) {
      return std::any_of(zero.terms().begin(), zero.terms().end(),
                         [&](const auto& term) { return term.first == part; });
    };
    if (!product || !isPositive(divisor) ||
        std::any_of(product->terms().begin(), product->terms().end(),
                    [&](const auto& term) { return isIn(term.first); }))
      continue;
    const auto whole = Polynomial::sum(*product, Polynomial::leaf(rest));
    const auto same = whole ? Polynomial::sum(*whole, dividend, -1) : std::nullopt;
    for (const auto& [part, times] : dividend.terms())
      for (const auto& [each, factor] : zero.terms())
        if (same && each == part && !each.empty() && factor % times == 0)
          return Polynomial::sum(zero, *same, factor / times);
  }
  return std::nullopt;
}

/// Takes the number apart, or makes one leaf stand for another.
bool Equations::settle(size_t index) {
  if (!substitute(zeros_[index])) {
    if (splitAtAnyUnit(index))
      return true;
    const auto digits = ++tests_ < kMostTests ? inDigits(zeros_[index]) : std::nullopt;
    if (!digits || digits->isZero())
      return false;
    zeros_[index] = *digits;
    return true;
  }
  zeros_.erase(zeros_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

//===-- digits ----------------------------------------------------------------------------------------------------===//

bool Equations::splitAtAnyUnit(size_t index) {
  std::vector<std::pair<Monomial, __int128>> units;
  for (const auto& [monomial, coefficient] : zeros_[index].terms()) {
    const __int128 size = coefficient < 0 ? -coefficient : coefficient;
    if (!monomial.empty() && size > 1)
      units.push_back({{}, size});
    for (ValueId leaf : monomial) {
      if (monomial.size() > 1 || size > 1)
        units.push_back({{leaf}, 1});
      if (monomial.size() > 2) {  // `row * (H * W) + pixel`
        units.push_back({monomial, 1});
        units.back().first.remove(leaf);
      }
    }
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return std::any_of(units.begin(), units.end(),
                     [&](const auto& unit) { return splitAt(index, unit.first, unit.second); });
}

bool Equations::splitAt(size_t index, const Monomial& leaf, __int128 number) {
  Polynomial high, low;
  for (const auto& [monomial, coefficient] : zeros_[index].terms()) {
    Monomial rest = monomial;
    bool isMultiple = coefficient % number == 0;
    for (ValueId factor : leaf)
      isMultiple = rest.remove(factor) && isMultiple;
    const auto sum = isMultiple ? Polynomial::sum(high, Polynomial::of(rest, coefficient / number))
                                : Polynomial::sum(low, Polynomial::of(monomial, coefficient));
    if (!sum)
      return false;
    (isMultiple ? high : low) = *sum;
  }
  if (high.isZero() || low.isZero() || ++tests_ > kMostTests || !isBelow(low, Polynomial::of(leaf, number)))
    return false;
  zeros_[index] = std::move(high);
  zeros_.push_back(std::move(low));
  return true;
}

bool Equations::isPositive(const Polynomial& polynomial) {
  const auto less = Polynomial::sum(polynomial, Polynomial::constant(-1));
  return less && values_.isAtLeastZero(*less, point_);
}

/// Strictly between -unit and unit.
bool Equations::isBelow(const Polynomial& polynomial, const Polynomial& unit) {
  const auto below = Polynomial::sum(unit, polynomial, -1), above = Polynomial::sum(unit, polynomial);
  return below && above && isPositive(*below) && isPositive(*above);
}

//===-- equal leaves ----------------------------------------------------------------------------------------------===//

void Equations::add(const std::optional<Polynomial>& zero) {
  if (zero && !zero->isZero() && std::find(zeros_.begin(), zeros_.end(), *zero) == zeros_.end())
    zeros_.push_back(*zero);
}

bool Equations::substitute(const Polynomial& zero) {
  const auto& terms = zero.terms();
  if (terms.empty() || terms.size() > 2)
    return false;
  const auto isLeaf = [](const auto& term) {
    return term.first.size() == 1 && (term.second == 1 || term.second == -1);
  };
  // Of two leaves the later one goes, which may be computed from the other.
  const auto& last = terms.size() == 2 && isLeaf(terms[1]) &&
                             (!isLeaf(terms[0]) || indexOf(terms[0].first[0]) < indexOf(terms[1].first[0]))
                         ? terms[1]
                         : terms[0];
  if (!isLeaf(last))
    return false;
  const ValueId gone = last.first[0];
  const auto rest = Polynomial::sum(zero, Polynomial::of(last.first, last.second), -1);
  const Polynomial stays = last.second == 1 ? negated(*rest) : *rest;
  const ValueId other = stays.asLeaf();
  if (!stays.asConstant() && other == kNoValue)
    return false;
  substitutes_.insert_or_assign(indexOf(gone), stays);
  rewritten_.clear();
  if (other != kNoValue)
    addDigits(gone, other);
  return true;
}

/// Two quotients, or two remainders, are equal.
void Equations::addDigits(ValueId a, ValueId b) {
  const Node x = nodes_[a], y = nodes_[b];
  if (x.kind != NodeKind::Op || y.kind != NodeKind::Op || x.op != y.op || (x.op != Op::Div && x.op != Op::Rem))
    return;
  const Polynomial divisor = rewritten(values_.integer(nodes_.operand(a, 1), point_));
  if (divisor != rewritten(values_.integer(nodes_.operand(b, 1), point_)) || !isPositive(divisor))
    return;
  const auto whole = [&](Op op, ValueId of) {
    return values_.integer(nodes_.op(op, nodes_.type(of), nodes_.operand(of, 0), nodes_.operand(of, 1)), point_);
  };
  const auto apart = [](const Polynomial& one, const Polynomial& other) { return Polynomial::sum(one, other, -1); };
  const auto dividends =
      apart(values_.integer(nodes_.operand(a, 0), point_), values_.integer(nodes_.operand(b, 0), point_));
  const auto remainders = apart(whole(Op::Rem, a), whole(Op::Rem, b));
  const auto rest = dividends && remainders ? apart(*dividends, *remainders) : std::nullopt;
  if (!rest)
    return;
  const auto without = [&](const std::optional<Polynomial>& quotients) {
    const auto product = quotients ? Polynomial::product(divisor, *quotients) : std::nullopt;
    add(product ? apart(*rest, *product) : std::nullopt);
  };
  without(apart(whole(Op::Div, a), whole(Op::Div, b)));
  without(apart(flatQuotient(nodes_.operand(a, 0), nodes_.operand(a, 1)),
                flatQuotient(nodes_.operand(b, 0), nodes_.operand(b, 1))));
}

/// x / v / w as x / (v · w), where the product is exact.
Polynomial Equations::flatQuotient(ValueId dividend, ValueId divisor) {
  const MachineType type = nodes_.type(dividend);
  const Polynomial plain = values_.integer(nodes_.op(Op::Div, type, dividend, divisor), point_);
  const ValueId inner = values_.integer(dividend, point_).asLeaf();
  if (inner == kNoValue || nodes_[inner].kind != NodeKind::Op || nodes_[inner].op != Op::Div ||
      !(nodes_.type(inner) == type) || type.isSigned)
    return plain;
  const ValueId by = nodes_.operand(inner, 1), both = nodes_.op(Op::Mul, type, by, divisor);
  const auto product = Polynomial::product(values_.integer(by, point_), values_.integer(divisor, point_));
  if (!product || *product != values_.integer(both, point_))
    return plain;
  return values_.integer(nodes_.op(Op::Div, type, nodes_.operand(inner, 0), both), point_);
}

//===-- what is computed from equal leaves ------------------------------------------------------------------------===//

Polynomial Equations::rewritten(const Polynomial& polynomial, unsigned depth) {
  Polynomial sum;
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    std::optional<Polynomial> product = Polynomial::constant(coefficient);
    for (ValueId leaf : monomial)
      product = product ? Polynomial::product(*product, rewritten(leaf, depth)) : std::nullopt;
    const auto next = product ? Polynomial::sum(sum, *product) : std::nullopt;
    if (!next)
      return polynomial;
    sum = *next;
  }
  return sum;
}

Polynomial Equations::rewritten(ValueId leaf, unsigned depth) {
  if (auto known = rewritten_.find(indexOf(leaf)); known != rewritten_.end())
    return known->second;
  const Node node = nodes_[leaf];
  Polynomial result = Polynomial::leaf(leaf);
  if (depth > kMostDepth)
    return result;
  if (auto other = substitutes_.find(indexOf(leaf)); other != substitutes_.end()) {
    result = rewritten(Polynomial(other->second), depth + 1);
  } else if (Polynomial known = values_.integer(leaf, point_); known.asLeaf() != leaf) {
    result = rewritten(known, depth + 1);  // what was not known when the leaf was taken for one
  } else if (node.kind == NodeKind::Op || node.kind == NodeKind::Convert) {
    const ValueId made = rewrittenNode(leaf, depth + 1);
    const Polynomial value = values_.integer(made, point_);
    if (made != leaf)
      result = value.asLeaf() == made ? value : rewritten(value, depth + 1);
  }
  return rewritten_.insert_or_assign(indexOf(leaf), result).first->second;
}

/// A value that is equal where the leaves are.
ValueId Equations::rewrittenNode(ValueId value, unsigned depth) {
  value = nodes_.resolved(value);
  const Node node = nodes_[value];
  if (depth > kMostDepth || node.kind == NodeKind::Constant)
    return value;
  const Polynomial whole = values_.integer(value, point_);
  if (whole.asLeaf() != value || substitutes_.contains(indexOf(value)))
    return nodeOf(rewritten(whole, depth + 1), node.type);  // in the same way on both sides
  const Operands operands = nodes_.operands(value);
  Operands made = operands;
  for (size_t i = 0; i < made.size(); ++i)
    made.values[i] = rewrittenNode(operands.values[i], depth + 1);
  if (made.values == operands.values)
    return value;
  const auto& [a, b, c] = made.values;
  return node.kind == NodeKind::Convert ? nodes_.convert(node.type, a) : nodes_.op(node.op, node.type, a, b, c);
}

/// The polynomial computed in the type: what is added less what is taken away, as unsigned numbers have no sign.
ValueId Equations::nodeOf(const Polynomial& polynomial, MachineType type) {
  ValueId added = nodes_.constant(type, 0), taken = added;
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    ValueId product = nodes_.constant(type, coefficient < 0 ? -coefficient : coefficient);
    for (ValueId leaf : monomial)
      product = nodes_.op(Op::Mul, type, product, nodes_.convert(type, leaf));
    ValueId& sum = coefficient < 0 ? taken : added;
    sum = nodes_.op(Op::Add, type, sum, product);
  }
  return nodes_.op(Op::Sub, type, added, taken);
}

}  // namespace vortex::lang::flow
