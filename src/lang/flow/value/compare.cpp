// Equal, different, less: of the difference of two values, as integers and modulo what they are known to be congruent to.
#include <algorithm>

#include "lang/flow/value/context.h"

namespace vortex::lang::flow {

constexpr int kMostExpansions = 4;

/// Positive and below the modulus (0: any), or so with the other sign.
bool Values::isBetweenMultiples(Context& context, const Polynomial& polynomial, __int128 modulus) {
  const Polynomial negated = *difference(Polynomial(), polynomial);
  for (const Polynomial* side : {&polynomial, &negated}) {
    const auto above = plus(*side, -1);
    if (!above || !isAtLeastZero(context, *above))
      continue;
    if (modulus == 0)
      return true;
    const auto below = difference(Polynomial::constant(modulus - 1), *side);
    if (below && isAtLeastZero(context, *below))
      return true;
  }
  return false;
}

/// Never 0 modulo `modulus` (0: as an integer): strictly between two multiples of it, or not a multiple of a number that divides the modulus and all
/// other coefficients.
bool Values::isNeverZero(Context& context, const Polynomial& difference, __int128 modulus) {
  const Polynomial reduced = modulus != 0 ? difference.reduced(modulus) : difference;
  __int128 divisor = modulus;
  for (const auto& [monomial, coefficient] : reduced.terms())
    if (!monomial.empty())
      divisor = greatestDivisor(divisor, coefficient);
  const __int128 constant = reduced.constantPart();
  if (divisor == 0 ? constant != 0 : divisor > 1 && constant % divisor != 0)
    return true;
  for (const Polynomial* candidate : {&reduced, &difference}) {
    if (candidate == &difference && difference == reduced)
      break;
    // c · x is 0 modulo m where x is 0 modulo m / gcd(c, m), and nowhere else: all threads' `3 * i % 256` differ.
    const __int128 common = candidate->content();
    if (modulus != 0 && common > 1
            ? isNeverZero(context, candidate->dividedBy(common), modulus / greatestDivisor(common, modulus))
            : isBetweenMultiples(context, *candidate, modulus))
      return true;
  }
  return modulus == 0 && std::any_of(context.notZero.begin(), context.notZero.end(), [&](const Polynomial& known) {
           return known == difference || known == *flow::difference(Polynomial(), difference);
         });
}

bool Values::differ(Context& context, ValueId a, ValueId b) {
  // `i ^ 1` and `i`: bits are exchanged of which one is set.
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    const ValueId leaf = integer(context, one).asLeaf();
    const bool isXor = leaf != kNoValue && nodes_[leaf].kind == NodeKind::Op && nodes_[leaf].op == Op::Xor;
    for (size_t i = 0; isXor && i < 2; ++i)
      if (integer(context, nodes_.operand(leaf, i)) == integer(context, other) &&
          isNeverZero(context, integer(context, nodes_.operand(leaf, 1 - i)), 0))
        return true;
  }
  const auto whole = flow::difference(integer(context, a), integer(context, b));
  if (whole && (isNeverZero(context, *whole, 0) || areNeverAllZero(context, {&*whole, 1})))
    return true;
  if (!whole)
    return false;
  // Leaves are replaced by what they are congruent to, round by round; each makes the modulus smaller.
  Polynomial difference = *whole;
  __int128 modulus = 0;
  for (int round = 0; round < kMostExpansions; ++round) {
    Polynomial next;
    bool isExpanded = false;
    for (const auto& [monomial, coefficient] : difference.terms()) {
      std::optional<Polynomial> term = Polynomial::constant(coefficient);
      __int128 termModulus = 0;
      for (ValueId leaf : monomial) {
        const auto memory = memoryOf(context, leaf);
        const Polynomial factor = memory ? memory->polynomial : Polynomial::leaf(leaf);
        if (memory)
          termModulus = greatestDivisor(termModulus, memory->modulus);
        term = term ? Polynomial::product(*term, factor) : std::nullopt;
      }
      const auto sum = term ? Polynomial::sum(next, *term) : std::nullopt;
      if (!sum)
        return false;
      next = *sum;
      isExpanded = isExpanded || termModulus != 0;
      __int128 scaled = 0;
      if (termModulus != 0)
        modulus =
            greatestDivisor(modulus, __builtin_mul_overflow(termModulus, coefficient, &scaled) ? termModulus : scaled);
    }
    if (!isExpanded)
      return false;
    difference = next;
    if (isNeverZero(context, difference, modulus))
      return true;
  }
  return false;
}

/// Two conditions, or one and its reverse, say that the polynomial is 0.
bool Values::isZeroByFacts(Context& context, const Polynomial& polynomial) {
  const auto negated = difference(Polynomial(), polynomial);
  return isAtLeastZero(context, polynomial) && isAtLeastZero(context, *negated);
}

Truth Values::equal(ValueId a, ValueId b, PointId point) {
  Context& context = contextAt(point);
  a = nodes_.resolved(a);
  b = nodes_.resolved(b);
  if (a == b)
    return Truth::Yes;
  const auto whole = difference(integer(context, a), integer(context, b));
  if (whole && (whole->isZero() || isZeroByFacts(context, *whole)))
    return Truth::Yes;
  if (nodes_.type(a) == nodes_.type(b)) {
    const auto modular = difference(form(context, a).polynomial, form(context, b).polynomial);
    if (modular && modular->reduced(__int128(1) << nodes_.type(a).width).isZero())
      return Truth::Yes;
  }
  return differ(context, a, b) ? Truth::No : Truth::Unknown;
}

Truth Values::differ(ValueId a, ValueId b, PointId point) {
  switch (equal(a, b, point)) {
  case Truth::Yes: return Truth::No;
  case Truth::No: return Truth::Yes;
  case Truth::Unknown: break;
  }
  return Truth::Unknown;
}

bool Values::isNeverZero(const Polynomial& polynomial, PointId point) {
  return isNeverZero(contextAt(point), polynomial, 0);
}

bool Values::areNeverEqual(ValueId a, ValueId b, PointId point) {
  a = nodes_.resolved(a);
  b = nodes_.resolved(b);
  return a != b && differ(contextAt(point), a, b);
}

Truth Values::less(ValueId a, ValueId b, PointId point) {
  Context& context = contextAt(point);
  const auto below = plus(difference(integer(context, b), integer(context, a)), -1);
  if (below && isAtLeastZero(context, *below))
    return Truth::Yes;
  return isNotLess(a, b, point) ? Truth::No : Truth::Unknown;
}

bool Values::isNotLess(ValueId a, ValueId b, PointId point) {
  Context& context = contextAt(point);
  const auto above = difference(integer(context, a), integer(context, b));
  return above && isAtLeastZero(context, *above);
}

}  // namespace vortex::lang::flow
