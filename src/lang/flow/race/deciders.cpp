#include "lang/flow/race/deciders.h"

#include <algorithm>

namespace vortex::lang::flow {
namespace {

constexpr unsigned kMostCasesOfPair = 96;
constexpr uint64_t kMostProofSteps = 30'000;  ///< of one pair

/// Splits on how the positions of the two threads are ordered until a subscript differs in every case.
class Digits {
public:
  Digits(Pair& pair, uint64_t limit, unsigned cases, const LaunchFacts& launch)
      : pair_(pair), limit_(limit),
        values_(pair.nodes(), surroundingsOf(pair.view().graph, pair.view().structure, pair.nodes()), launch) {
    budget_ = cases;
    for (const auto& [leaf, polynomial] : pair.definitions())
      values_.define(leaf, polynomial);
  }

  bool run(const std::vector<Condition>& others = {}) {
    std::vector<Condition> conditions = others;
    conditions.insert(conditions.end(), pair_.conditions().begin(), pair_.conditions().end());
    isSameThread_ = true;
    const PointId point = values_.assume(kNoPoint, conditions);
    return excludePartners(point) || values_.areNeverAllZero(differences(point), point) || run(0, point, false);
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
        if (!isMeaningful(coordinate, point))
          continue;
        if (byDigits ? !differByDigits(coordinate, point) && !differByRemainder(coordinate, point)
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

  /// x = y ^ m makes y = x ^ m: where both sides are to be the lower of two partners, that cannot be.
  bool excludePartners(PointId point) {
    std::vector<Order> orders;
    for (const Condition& condition : pair_.conditions())
      addOrders(condition, orders);
    NodeTable& nodes = pair_.nodes();
    for (const Pair::Coordinate& coordinate : pair_.coordinates())
      for (const auto& [x, masked] :
           {std::pair(coordinate.first, coordinate.second), std::pair(coordinate.second, coordinate.first)}) {
        if (nodes[masked].kind != NodeKind::Op || nodes[masked].op != Op::Xor || coordinate.divisor != kNoValue)
          continue;
        for (const size_t i : {0u, 1u}) {
          const ValueId y = nodes.operand(masked, i), mask = nodes.operand(masked, 1 - i);
          const ValueId partner = nodes.op(Op::Xor, nodes.type(masked), x, mask);
          const auto equal = [&](ValueId value) { return value == x ? masked : value == partner ? y : value; };
          if (areContrary(orders, equal) || areBothClear(x, y, mask, point))
            return true;
        }
      }
    return false;
  }

  struct Order {
    ValueId low = kNoValue, high = kNoValue;
    bool isStrict = false;
  };

  void addOrders(const Condition& condition, std::vector<Order>& orders) const {
    const NodeTable& nodes = pair_.view().nodes;
    const Node& node = nodes[condition.value];
    if (node.kind != NodeKind::Op)
      return;
    const ValueId a = nodes.operand(condition.value, 0), b = nodes.operand(condition.value, 1);
    if (node.op == Op::And && condition.holds) {
      addOrders({a, true}, orders);
      addOrders({b, true}, orders);
    } else if (node.op == Op::Lt || node.op == Op::Le) {
      orders.push_back({condition.holds ? a : b, condition.holds ? b : a, condition.holds == (node.op == Op::Lt)});
    }
  }

  /// One order says the contrary of another where some values are equal to others.
  template <typename Equal> static bool areContrary(const std::vector<Order>& orders, const Equal& equal) {
    for (const Order& one : orders)
      for (const Order& other : orders)
        if ((one.isStrict || other.isStrict) && equal(one.low) == other.high && equal(one.high) == other.low)
          return true;
    return false;
  }

  /// x & mask and y & mask are 0, but the mask is not.
  bool areBothClear(ValueId x, ValueId y, ValueId mask, PointId point) {
    NodeTable& nodes = pair_.nodes();
    const auto isClear = [&](ValueId value) {
      const MachineType type = nodes.type(value);
      const ValueId isZero = nodes.op(Op::Eq, kBool, nodes.op(Op::And, type, value, mask), nodes.constant(type, 0));
      return std::find(pair_.conditions().begin(), pair_.conditions().end(), Condition{isZero, true}) !=
             pair_.conditions().end();
    };
    const Interval range = values_.range(mask, point);
    return (range.low > 0 || range.high < 0) && isClear(x) && isClear(y);
  }

  /// x % n and y % n differ where x and y do, if these are less than n apart.
  bool differByRemainder(const Pair::Coordinate& coordinate, PointId point) {
    NodeTable& nodes = pair_.nodes();
    const auto isRest = [&](ValueId value) { return nodes[value].kind == NodeKind::Op && nodes[value].op == Op::Rem; };
    const auto [first, second, divisor] = coordinate;
    if (divisor != kNoValue || !isRest(first) || !isRest(second) || nodes.operand(first, 1) != nodes.operand(second, 1))
      return false;
    const auto apart = Polynomial::sum(values_.integer(nodes.operand(first, 0), point),
                                       values_.integer(nodes.operand(second, 0), point), -1);
    unsigned budget = 8;
    zeros_.clear();
    return apart && isBelow(*apart, values_.integer(nodes.operand(first, 1), point), point) &&
           isNeverZero(*apart, point, budget);
  }

  bool differByDigits(const Pair::Coordinate& coordinate, PointId point) {
    const auto difference =
        Polynomial::sum(values_.integer(coordinate.first, point), values_.integer(coordinate.second, point), -1);
    unsigned budget = 24;
    zeros_ = differences(point);
    return difference && isNeverZero(*difference, point, budget);
  }

  /// Of the subscripts: where two accesses meet, all are 0.
  std::vector<Polynomial> differences(PointId point) {
    std::vector<Polynomial> out;
    for (const Pair::Coordinate& coordinate : pair_.coordinates())
      if (isMeaningful(coordinate, point))
        if (auto difference = Polynomial::sum(values_.integer(coordinate.first, point),
                                              values_.integer(coordinate.second, point), -1))
          out.push_back(std::move(*difference));
    return out;
  }

  bool isMeaningful(const Pair::Coordinate& coordinate, PointId point) {
    return coordinate.divisor == kNoValue ||
           values_.less(pair_.nodes().constant(kUsize, 0), coordinate.divisor, point) == Truth::Yes;
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
    const size_t known = zeros_.size();
    zeros_.insert(zeros_.end(), {high.dividedBy(high.content()), low.dividedBy(low.content())});
    if (isNeverZero(low, point, budget) || isNeverZero(high, point, budget) || areQuotientAndRemainder(point) ||
        values_.areNeverAllZero(zeros_, point))
      return true;
    zeros_.resize(known);
    return false;
  }

  /// x / w = y / w and x % w = y % w, though x and y differ.
  bool areQuotientAndRemainder(PointId point) {
    NodeTable& nodes = pair_.nodes();
    for (const Polynomial& zero : zeros_) {
      const auto& terms = zero.terms();
      if (terms.size() != 2 || terms[0].first.size() != 1 || terms[1].first.size() != 1 ||
          terms[0].second != -terms[1].second)
        continue;
      const ValueId a = terms[0].first[0], b = terms[1].first[0];
      if (nodes[a].kind != NodeKind::Op || nodes[a].op != Op::Div || nodes[b].kind != NodeKind::Op ||
          nodes[b].op != Op::Div || nodes.operand(a, 1) != nodes.operand(b, 1))
        continue;
      const ValueId x = nodes.operand(a, 0), y = nodes.operand(b, 0), by = nodes.operand(a, 1);
      const auto rest = [&](ValueId of) { return values_.integer(nodes.op(Op::Rem, nodes.type(of), of, by), point); };
      const auto rests = Polynomial::sum(rest(x), rest(y), -1);
      const bool areEqual = rests && std::any_of(zeros_.begin(), zeros_.end(), [&](const Polynomial& other) {
                              const auto sum = Polynomial::sum(other, *rests),
                                         apart = Polynomial::sum(other, *rests, -1);
                              return (sum && sum->isZero()) || (apart && apart->isZero());
                            });
      if (areEqual && isPositive(values_.integer(by, point), point) && values_.areNeverEqual(x, y, point))
        return true;
    }
    return false;
  }

  bool with(PointId point, ValueId condition, size_t axis, bool isStrict) {
    return run(axis, values_.assume(point, {{condition, true}}), isStrict);
  }

  Pair& pair_;
  std::vector<Polynomial> zeros_;  ///< what a subscript's digits would have to be
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
  case Decider::Launch: return "launch";
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

/// Is it proven if all these are so?
static bool holdsIn(Pair& pair, const std::vector<Supposition>& suppositions, DecisionBudget& budget) {
  LaunchFacts launch = pair.view().launch;
  std::vector<Condition> conditions;
  for (const Supposition& each : suppositions) {
    conditions.insert(conditions.end(), each.conditions.begin(), each.conditions.end());
    if (each.product)
      launch.products.push_back(*each.product);
  }
  const unsigned cases = std::min(budget.cases, kMostCasesOfPair);
  Digits digits(pair, std::min(budget.proofSteps, kMostProofSteps), cases, launch);
  const bool isProven = digits.run(conditions);
  budget.cases -= cases - digits.casesLeft();
  budget.proofSteps -= std::min(budget.proofSteps, digits.steps());
  return isProven;
}

/// With all suppositions, then without those that it does not take.
static Decision decideForLaunches(Pair& pair, DecisionBudget& budget) {
  std::vector<Supposition> supposed = suppositionsOf(pair);
  if (supposed.empty() || !holdsIn(pair, supposed, budget))
    return {};
  for (size_t i = supposed.size(); i-- > 0 && supposed.size() > 1;) {
    std::vector<Supposition> fewer = supposed;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (holdsIn(pair, fewer, budget))
      supposed = std::move(fewer);
  }
  Decision decision{Decider::Launch};
  for (const Supposition& each : supposed)
    decision.limits.push_back(each.limit);
  return decision;
}

Decision decide(Pair& pair, Tickets& tickets, const BlockShape& shape, DecisionBudget& budget) {
  if (pair.areApart())
    return {Decider::Field};
  if (pair.contradicts())
    return {Decider::Control};
  const unsigned cases = std::min(budget.cases, kMostCasesOfPair);
  Digits digits(pair, std::min(budget.proofSteps, kMostProofSteps), cases, pair.view().launch);
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
  if (differInEveryCase(pair, shape, budget.tableEntries))
    return {Decider::Enumeration};
  return pair.mayBeSame() ? Decision() : decideForLaunches(pair, budget);
}

}  // namespace vortex::lang::flow
