// Numbers that cannot all be 0, by a linear system modulo the divisors of remainders: x - x % m is 0 modulo m. Cells of one colour of a checkerboard,
// (x + y) % 2 == 0, have no neighbour of that colour.
#include <algorithm>

#include "lang/flow/value/context.h"

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostRemainders = 8, kMostEqualities = 8, kMostRowsOfSystem = 24;
constexpr size_t kMostTermsOfRow = 4;  ///< of a row that bounds are asked of

/// Rows that are 0 modulo one number, each with a term of its own that no later one has.
class Echelon {
public:
  explicit Echelon(__int128 modulus) : modulus_(modulus) {}

  /// Without the terms of earlier rows. Nothing: it has too many terms.
  std::optional<Polynomial> reduced(Polynomial row) const {
    for (const auto& [monomial, pivot] : rows_) {
      const __int128 times = coefficientOf(row, monomial);
      if (times == 0)
        continue;
      const auto rest = Polynomial::sum(row, pivot, -times);
      if (!rest)
        return std::nullopt;
      row = rest->reduced(modulus_);
    }
    return row;
  }

  /// `comesLast`: remainders, which say most where they are left alone.
  template <typename Last> void add(const Polynomial& row, const Last& comesLast) {
    const Polynomial::Terms::value_type* own = nullptr;
    for (const auto& term : row.terms())
      if (!term.first.empty() && (term.second == 1 || term.second == -1) &&
          (!own || (comesLast(own->first) && !comesLast(term.first))))
        own = &term;
    if (!own)
      return;
    const auto scaled = Polynomial::sum(Polynomial(), row, own->second);
    if (scaled)
      rows_.emplace_back(own->first, *scaled);
  }

private:
  static __int128 coefficientOf(const Polynomial& row, const Monomial& monomial) {
    for (const auto& [each, coefficient] : row.terms())
      if (each == monomial)
        return coefficient;
    return 0;
  }

  __int128 modulus_;
  std::vector<std::pair<Monomial, Polynomial>> rows_;
};

}  // namespace

/// Remainders that the conditions speak of, and what two of them say is 0.
void Values::findRemainders(Context& context) {
  context.areRemaindersKnown = true;
  std::set<ValueId> seen;
  const std::vector<Polynomial> facts = context.atLeastZero;
  for (const Polynomial& fact : facts) {
    for (const auto& [monomial, coefficient] : fact.terms())
      for (ValueId leaf : monomial)
        if (const Node& node = nodes_[leaf];
            node.kind == NodeKind::Op && node.op == Op::Rem && seen.insert(leaf).second)
          if (const auto memory = memoryOf(context, leaf); memory && context.remainders.size() < kMostRemainders)
            if (const auto multiple = difference(memory->polynomial, Polynomial::leaf(leaf)))
              context.remainders.push_back({leaf, *multiple, memory->modulus});
    const auto negated = difference(Polynomial(), fact);
    const auto other = std::find(facts.begin(), facts.end(), *negated);
    if (other != facts.end() && &*other > &fact && context.equalities.size() < kMostEqualities)
      context.equalities.push_back(fact);
  }
}

bool Values::areNeverAllZero(std::span<const Polynomial> zeros, PointId point) {
  return areNeverAllZero(contextAt(point), zeros);
}

bool Values::areNeverAllZero(Context& context, std::span<const Polynomial> zeros) {
  if (!context.areRemaindersKnown)
    findRemainders(context);
  std::set<__int128> moduli;
  for (const Context::Remainder& remainder : context.remainders)
    moduli.insert(remainder.modulus);
  return std::any_of(moduli.begin(), moduli.end(),
                     [&](__int128 modulus) { return areNeverAllZero(context, zeros, modulus); });
}

bool Values::areNeverAllZero(Context& context, std::span<const Polynomial> zeros, __int128 modulus) {
  std::vector<Polynomial> rows(zeros.begin(), zeros.end());
  const auto isRemainder = [&](const Monomial& monomial) {
    return std::any_of(context.remainders.begin(), context.remainders.end(), [&](const Context::Remainder& each) {
      return monomial.size() == 1 && monomial[0] == each.leaf;
    });
  };
  for (const Context::Remainder& each : context.remainders)
    if (each.modulus % modulus == 0)
      rows.push_back(each.multiple);
  rows.insert(rows.end(), context.equalities.begin(), context.equalities.end());
  Echelon echelon(modulus);
  for (size_t i = 0; i < std::min(rows.size(), kMostRowsOfSystem); ++i) {
    const auto row = echelon.reduced(rows[i].reduced(modulus));
    if (!row || row->isZero())
      continue;
    if (row->terms().size() <= kMostTermsOfRow && isNeverZero(context, *row, modulus))
      return true;
    echelon.add(*row, isRemainder);
  }
  return false;
}

}  // namespace vortex::lang::flow
