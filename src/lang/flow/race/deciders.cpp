#include "lang/flow/race/deciders.h"

#include <algorithm>

namespace vortex::lang::flow {
namespace {

constexpr unsigned kMostCasesOfPair = 96;
constexpr uint64_t kMostProofSteps = 30'000;  ///< of one pair

/// Splits on how the positions of the two threads are ordered until a subscript differs in every case.
class Digits {
public:
  Digits(Pair& pair, uint64_t limit, unsigned cases)
      : pair_(pair), limit_(limit),
        values_(pair.nodes(), surroundingsOf(pair.view().graph, pair.view().structure, pair.nodes()),
                pair.view().launch) {
    budget_ = cases;
    for (const auto& [leaf, polynomial] : pair.definitions())
      values_.define(leaf, polynomial);
  }

  bool run(const std::vector<Condition>& others = {}) {
    std::vector<Condition> conditions = pair_.conditions();
    conditions.insert(conditions.end(), others.begin(), others.end());
    isSameThread_ = true;
    return run(0, values_.assume(kNoPoint, conditions), false);
  }

  bool wasSplit = false;
  unsigned casesLeft() const { return budget_; }
  uint64_t steps() const { return values_.proofSteps(); }

private:
  /// `isStrict`: the last condition of the point says which of two positions is smaller.
  bool run(size_t axis, PointId point, bool isStrict) {
    const bool isLast = axis >= pair_.axes().size();
    // Taking a subscript apart costs most: only where the positions have been ordered.
    for (const bool byDigits : {false, true}) {
      if (byDigits && !isStrict && !isLast)
        break;
      for (size_t i = pair_.coordinates().size(); i-- > 0;) {
        const Pair::Coordinate& coordinate = pair_.coordinates()[i];
        if (coordinate.divisor != kNoValue &&
            values_.less(pair_.nodes().constant(kUsize, 0), coordinate.divisor, point) != Truth::Yes)
          continue;
        if (byDigits ? !differByDigits(coordinate, point)
                     : !values_.areNeverEqual(coordinate.first, coordinate.second, point))
          continue;
        wasSplit = wasSplit || axis > 0 || byDigits;
        return true;
      }
    }
    if (values_.proofSteps() > limit_ || budget_ == 0)
      return false;
    --budget_;
    if (isLast)
      return isSameThread_ && !pair_.mayBeSame();
    const ValueId a = pair_.axes()[axis].first, b = pair_.axes()[axis].second;
    NodeTable& nodes = pair_.nodes();
    const bool wasSame = isSameThread_;
    for (const auto& [lesser, greater] : {std::pair(a, b), std::pair(b, a)}) {
      if (values_.isNotLess(lesser, greater, point))
        continue;
      isSameThread_ = wasSame && axis >= pair_.decisiveAxes();
      if (!with(point, nodes.op(Op::Lt, kBool, lesser, greater), axis + 1, true))
        return false;
    }
    isSameThread_ = wasSame;
    if (values_.areNeverEqual(a, b, point))
      return true;
    // Blocks that agree in every axis are one block, which other intervals answer for; threads are one thread.
    if (isSameThread_ && axis + 1 == pair_.decisiveAxes() && !pair_.mayBeSame())
      return true;
    return with(point, nodes.op(Op::Eq, kBool, a, b), axis + 1, false);
  }

  bool differByDigits(const Pair::Coordinate& coordinate, PointId point) {
    const auto difference =
        Polynomial::sum(values_.integer(coordinate.first, point), values_.integer(coordinate.second, point), -1);
    unsigned budget = 24;
    return difference && isNeverZero(*difference, point, budget);
  }

  bool isPositive(const Polynomial& polynomial, PointId point) {
    const auto less = Polynomial::sum(polynomial, Polynomial::constant(-1));
    return less && values_.isAtLeastZero(*less, point);
  }

  /// Strictly between -unit and unit.
  bool isBelow(const Polynomial& polynomial, const Polynomial& unit, PointId point) {
    const auto below = Polynomial::sum(unit, polynomial, -1), above = Polynomial::sum(unit, polynomial);
    return below && above && isPositive(*below, point) && isPositive(*above, point);
  }

  /// high · unit + low, where low is smaller than the unit, is 0 only if both are: `row * N + column`.
  bool isNeverZero(const Polynomial& polynomial, PointId point, unsigned& budget) {
    if (budget == 0)
      return false;
    --budget;
    const auto negated = Polynomial::sum(Polynomial(), polynomial, -1);
    if (isPositive(polynomial, point) || (negated && isPositive(*negated, point)))
      return true;
    std::vector<std::pair<Monomial, __int128>> units;
    for (const auto& [monomial, coefficient] : polynomial.terms()) {
      const __int128 size = coefficient < 0 ? -coefficient : coefficient;
      if (!monomial.empty() && size > 1)
        units.push_back({{}, size});
      for (ValueId leaf : monomial)
        if (monomial.size() > 1 || size > 1)
          units.push_back({{leaf}, 1});
    }
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    return std::any_of(units.begin(), units.end(), [&](const auto& unit) {
      return differsAtUnit(polynomial, unit.first, unit.second, point, budget);
    });
  }

  bool differsAtUnit(const Polynomial& polynomial, const Monomial& leaf, __int128 number, PointId point,
                     unsigned& budget) {
    Polynomial high, low;
    for (const auto& [monomial, coefficient] : polynomial.terms()) {
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
    if (high.isZero() || low.isZero() || !isBelow(low, Polynomial::of(leaf, number), point))
      return false;
    return isNeverZero(low, point, budget) || isNeverZero(high, point, budget);
  }

  bool with(PointId point, ValueId condition, size_t axis, bool isStrict) {
    return run(axis, values_.assume(point, {{condition, true}}), isStrict);
  }

  Pair& pair_;
  uint64_t limit_;
  Values values_;
  bool isSameThread_ = true;  ///< all decisive axes so far are equal
  unsigned budget_;
};

}  // namespace

std::string_view name(Decider decider) {
  switch (decider) {
  case Decider::None: return "unknown";
  case Decider::Field: return "field";
  case Decider::Control: return "control";
  case Decider::Form: return "form";
  case Decider::Digits: return "digits";
  case Decider::Enumeration: return "enumeration";
  case Decider::Tickets: return "tickets";
  case Decider::Atomic: return "atomic";
  case Decider::Witness: return "witness";
  }
  VORTEX_UNREACHABLE();
}

/// Two tickets of one counter, as values of both sides.
struct DrawnPair {
  ValueId first = kNoValue, second = kNoValue;
  Ticket firstTicket, secondTicket;
};

static std::optional<DrawnPair> ticketsOf(const Pair& pair, Tickets& tickets) {
  const auto ticketsIn = [&](ValueId side) {
    std::vector<ValueId> leaves;
    std::vector<std::pair<ValueId, Ticket>> found;
    pair.leavesOf(side, leaves);
    for (ValueId leaf : leaves)
      if (const auto origin = pair.leaves().find(indexOf(leaf));
          origin != pair.leaves().end() && origin->second != kNoValue)
        if (auto ticket = tickets.ofValue(origin->second, pair.scope()))
          found.emplace_back(leaf, *ticket);
    return found;
  };
  for (const Pair::Coordinate& coordinate : pair.coordinates())
    for (const auto& [first, ticket] : ticketsIn(coordinate.first))
      for (const auto& [second, other] : ticketsIn(coordinate.second))
        if (first != second && ticket.counter == other.counter)
          return DrawnPair{first, second, ticket, other};
  return std::nullopt;
}

/// Whichever is the lower number, the ranges that start there do not meet, not even where the counter comes round.
static bool differByTickets(Pair& pair, const DrawnPair& drawn, Digits& digits) {
  NodeTable& nodes = pair.nodes();
  const MachineType type = nodes.type(drawn.first);
  const auto areApart = [&](ValueId low, const Ticket& lowest, ValueId high, const Ticket& highest) {
    std::vector<Condition> conditions{{nodes.op(Op::Lt, kBool, low, high), true}};
    if (!type.isSigned) {
      const ValueId distance = nodes.op(Op::Sub, type, high, low);
      conditions.push_back({nodes.op(Op::Le, kBool, nodes.constant(type, lowest.least), distance), true});
      conditions.push_back(
          {nodes.op(Op::Le, kBool, distance, nodes.constant(type, type.highest() + 1 - highest.least)), true});
    }
    return digits.run(conditions);
  };
  return areApart(drawn.first, drawn.firstTicket, drawn.second, drawn.secondTicket) &&
         areApart(drawn.second, drawn.secondTicket, drawn.first, drawn.firstTicket);
}

Decision decide(Pair& pair, Tickets& tickets, const BlockShape& shape, DecisionBudget& budget) {
  if (pair.areApart())
    return {Decider::Field};
  if (pair.contradicts())
    return {Decider::Control};
  const unsigned cases = std::min(budget.cases, kMostCasesOfPair);
  Digits digits(pair, std::min(budget.proofSteps, kMostProofSteps), cases);
  const bool isProven = digits.run();
  const bool wasSplit = digits.wasSplit;
  const auto drawn = isProven || pair.mayBeSame() ? std::nullopt : ticketsOf(pair, tickets);
  const bool areDrawn = drawn && differByTickets(pair, *drawn, digits);
  budget.cases -= cases - digits.casesLeft();
  budget.proofSteps -= std::min(budget.proofSteps, digits.steps());
  if (isProven)
    return {wasSplit ? Decider::Digits : Decider::Form};
  if (areDrawn)
    return {Decider::Tickets, drawn->firstTicket.counter};
  return {differInEveryCase(pair, shape, budget.tableEntries) ? Decider::Enumeration : Decider::None};
}

}  // namespace vortex::lang::flow
