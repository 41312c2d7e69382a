// Is a polynomial of integers at least 0? It is if its interval is, or if nothing that is known leaves it room below 0: products of leaves are variables
// of a linear system, whose rows are what bounds these leaves (i < n), times what else stands in the product (row * N + column).
#include <algorithm>
#include <iterator>
#include <ranges>

#include "lang/flow/value/context.h"
#include "lang/flow/value/linear.h"

namespace vortex::lang::flow {

constexpr size_t kMostRows = 40, kMostVariables = 32;
constexpr uint64_t kMostPivots = 64;
constexpr unsigned kMostSplits = 3;  ///< minima, maxima and selections that are taken apart

struct Values::Proof {
  std::vector<Monomial> monomials;
  std::vector<Polynomial> rows;  ///< at least 0
  std::vector<ValueId> splits;   ///< leaves that `rows` says are one of their operands

  size_t numberOf(const Monomial& monomial) const {
    return static_cast<size_t>(std::find(monomials.begin(), monomials.end(), monomial) - monomials.begin());
  }
  bool hasRoom() const { return rows.size() < kMostRows && monomials.size() < kMostVariables; }
  void mention(const Polynomial& polynomial) {
    for (const auto& [monomial, coefficient] : polynomial.terms())
      if (!monomial.empty() && numberOf(monomial) == monomials.size())
        monomials.push_back(monomial);
  }
  LinearSystem::Row row(const Polynomial& polynomial, __int128 scale) const {
    LinearSystem::Row row;
    for (const auto& [monomial, coefficient] : polynomial.terms())
      if (!monomial.empty())
        row.emplace_back(numberOf(monomial), scale * coefficient);
    return row;
  }
};

bool Values::isAtLeastZero(Context& context, const Polynomial& polynomial) {
  if (interval(context, polynomial).low >= 0)
    return true;
  if (auto known = context.isAtLeastZero.find(polynomial); known != context.isAtLeastZero.end())
    return known->second;
  const bool isProven = prove(context, polynomial, {});
  context.isAtLeastZero.insert_or_assign(polynomial, isProven);
  if (!isProven && context.incomplete > 0)
    context.notProven.push_back(polynomial);
  return isProven;
}

bool Values::prove(Context& context, const Polynomial& polynomial, Proof proof) {
  proof.mention(polynomial);
  for (size_t i = 0; i < proof.monomials.size() && proof.hasRoom(); ++i)
    addBounds(context, Monomial(proof.monomials[i]), proof);
  if (leavesNoRoom(context, polynomial, proof))
    return true;
  return proof.splits.size() < kMostSplits && proveBySplitting(context, polynomial, proof);
}

/// What is known of each of the leaves, times the others of the product, which must not be negative.
void Values::addBounds(Context& context, const Monomial& monomial, Proof& proof) {
  for (size_t i = 0; i < monomial.size(); ++i) {
    const ValueId leaf = monomial[i];
    if (i > 0 && leaf == monomial[i - 1])
      continue;
    for (const Polynomial& bound : inequalitiesOf(context, leaf))
      for (const auto& part : bound.terms() | std::views::keys) {
        if (std::find(part.begin(), part.end(), leaf) == part.end() ||
            !std::includes(monomial.begin(), monomial.end(), part.begin(), part.end()))
          continue;
        Monomial factor;
        std::set_difference(monomial.begin(), monomial.end(), part.begin(), part.end(), std::back_inserter(factor));
        if (interval(context, factor).low < 0)
          continue;
        // Times others, a number beyond any block says no more than the product's interval, and makes the system's numbers too large.
        const bool isLimit = std::all_of(bound.terms().begin(), bound.terms().end(),
                                         [](const auto& term) { return term.first.empty() || term.second < 0; });
        if (!factor.empty() && isLimit && bound.constantPart() > kMostThreadsOfBlock)
          continue;
        const auto row = factor.empty() ? bound : Polynomial::product(bound, Polynomial::of(factor, 1));
        if (!row || !proof.hasRoom() || interval(context, *row).low >= 0 ||
            std::find(proof.rows.begin(), proof.rows.end(), *row) != proof.rows.end())
          continue;
        proof.rows.push_back(*row);
        proof.mention(*row);
      }
  }
}

bool Values::leavesNoRoom(Context& context, const Polynomial& polynomial, const Proof& proof) {
  LinearSystem system;
  for (const Monomial& monomial : proof.monomials)
    system.addVariable(interval(context, monomial));
  system.addAtLeast(proof.row(polynomial, -1), 1 + polynomial.constantPart());
  for (const Polynomial& row : proof.rows)
    system.addAtLeast(proof.row(row, 1), -row.constantPart());
  uint64_t steps = kMostPivots;
  const bool isEmpty = system.isEmpty(steps);
  proofSteps_ += 1 + proof.rows.size() + (kMostPivots - steps);
  return isEmpty;
}

/// A minimum, maximum or selection is one of its operands: both cases must hold.
bool Values::proveBySplitting(Context& context, const Polynomial& polynomial, const Proof& proof) {
  for (const Monomial& monomial : proof.monomials) {
    const ValueId leaf = monomial[0];
    const Node node = nodes_[leaf];
    if (monomial.size() != 1 || node.kind != NodeKind::Op ||
        (node.op != Op::Min && node.op != Op::Max && node.op != Op::Select) ||
        std::find(proof.splits.begin(), proof.splits.end(), leaf) != proof.splits.end())
      continue;
    const size_t first = node.op == Op::Select ? 1 : 0;
    for (size_t index = first; index < first + 2; ++index) {
      Proof one = proof;
      one.splits.push_back(leaf);
      const auto same = difference(Polynomial::leaf(leaf), integer(context, nodes_.operand(leaf, index)));
      if (!same)
        return false;
      for (const Polynomial& each : {*same, *difference(Polynomial(), *same)}) {
        one.rows.push_back(each);
        one.mention(each);
      }
      if (!prove(context, polynomial, std::move(one)))
        return false;
    }
    return true;
  }
  return false;
}

}  // namespace vortex::lang::flow
