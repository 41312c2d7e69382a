#include "lang/flow/race/deciders.h"

#include <algorithm>

#include "lang/flow/race/equations.h"
#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {
namespace {

constexpr unsigned kMostCasesOfPair = 96, kMostChoiceDepth = 4;
constexpr uint64_t kMostProofSteps = 30'000;  ///< of one pair
constexpr size_t kMostAssumptions = 512;      ///< that are remembered from pair to pair

/// Splits on how the positions of the two threads are ordered until a subscript differs in every case.
class Digits {
public:
  Digits(Pair& pair, uint64_t limit, unsigned cases, Values& values)
      : pair_(pair), values_(values), begun_(values.proofSteps()), limit_(begun_ + limit), budget_(cases) {}

  bool run(const std::vector<Condition>& others = {}) {
    std::vector<Condition> conditions = others;
    conditions.insert(conditions.end(), pair_.conditions().begin(), pair_.conditions().end());
    isSameThread_ = true;
    const PointId point = values_.assume(kNoPoint, conditions);
    return excludePartners() || values_.areNeverAllZero(differences(point), point) || differByRows(point) ||
           run(0, point, false);
  }

  /// A branch on the way goes there under a condition that the others contradict: no thread takes it.
  bool isNeverReached() {
    return std::any_of(pair_.passed().begin(), pair_.passed().end(), [&](const Condition& each) {
      std::vector<Condition> others = pair_.conditions();
      std::erase(others, each);
      const auto number = values_.integer(each.value, values_.assume(kNoPoint, std::move(others))).asConstant();
      return number && (*number != 0) != each.holds;
    });
  }

  bool wasSplit = false;
  unsigned casesLeft() const { return budget_; }
  uint64_t steps() const { return values_.proofSteps() - begun_; }

private:
  /// `isStrict`: the last condition of the point says which of two positions is smaller.
  bool run(size_t axis, PointId point, bool isStrict) {
    const bool isLast = axis >= pair_.axes().size();
    for (size_t i = pair_.coordinates().size(); i-- > 0;) {
      const Pair::Coordinate& coordinate = pair_.coordinates()[i];
      if (isMeaningful(coordinate, point) && values_.areNeverEqual(coordinate.first, coordinate.second, point)) {
        wasSplit = wasSplit || axis > 0;
        return true;
      }
    }
    // Taking subscripts apart costs most: only where the positions have been ordered.
    if ((isStrict || isLast || axis == 0) && followsFromDigits(point)) {
      wasSplit = wasSplit || axis > 0;
      return true;
    }
    if (values_.proofSteps() > limit_ || budget_ == 0)
      return false;
    --budget_;
    if (isLast && isSameThread_ && !pair_.mayBeSame())
      return true;
    if (isLast || isStrict)
      if (const ValueId condition = undecidedChoice(point); condition != kNoValue)
        return with(point, condition, axis, isStrict) && with(point, condition, axis, isStrict, false);
    if (isLast)
      return false;
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

  /// Rows of growing lengths, `i * (i + 1) / 2 + j`: whichever thread has the lower i, and where both have one, j tells them apart.
  bool differByRows(PointId point) {
    return std::any_of(pair_.coordinates().begin(), pair_.coordinates().end(), [&](const Pair::Coordinate& each) {
      const auto row = each.divisor == kNoValue ? rowsOf(each) : std::nullopt;
      if (!row || values_.proofSteps() > limit_)
        return false;
      const bool differ = isBelowByRows(point, row->first, row->second, false) &&
                          isBelowByRows(point, row->second, row->first, true) &&
                          differInRow(point, row->first, row->second);
      wasSplit = wasSplit || differ;
      return differ;
    });
  }

  /// The subscripts are apart where the row `low` is before the row `high`: what they differ by is (high - low) · m + rest, at least m + rest.
  bool isBelowByRows(PointId point, ValueId low, ValueId high, bool isSwapped) {
    const PointId there = values_.assume(point, {{pair_.nodes().op(Op::Lt, kBool, low, high), true}});
    const auto apart = Polynomial::sum(values_.integer(high, there), values_.integer(low, there), -1);
    return apart && std::any_of(pair_.coordinates().begin(), pair_.coordinates().end(), [&](const auto& each) {
             const ValueId first = isSwapped ? each.second : each.first, second = isSwapped ? each.first : each.second;
             auto least = Polynomial::sum(values_.integer(second, there), values_.integer(first, there), -1);
             least = least ? withoutQuotients(*least, there) : std::nullopt;
             const auto parts = least ? inRows(*least, *apart) : std::nullopt;
             const auto sum = parts ? Polynomial::sum(parts->first, parts->second) : std::nullopt;
             const auto positive = sum ? Polynomial::sum(*sum, Polynomial::constant(-1)) : std::nullopt;
             return positive && values_.isAtLeastZero(parts->first, there) && values_.isAtLeastZero(*positive, there);
           });
  }

  bool differInRow(PointId point, ValueId a, ValueId b) {
    const PointId there = values_.assume(point, {{pair_.nodes().op(Op::Eq, kBool, a, b), true}});
    std::vector<Polynomial> zeros = differences(there);
    if (auto same = Polynomial::sum(values_.integer(a, there), values_.integer(b, there), -1))
      zeros.push_back(std::move(*same));
    return followsFromDigits(there, std::move(zeros));
  }

  /// At most a multiple of the number, without x / 2: twice that is x, or one less.
  std::optional<Polynomial> withoutQuotients(const Polynomial& number, PointId point) {
    for (const auto& [monomial, coefficient] : number.terms()) {
      const ValueId leaf = monomial.size() == 1 ? monomial[0] : kNoValue;
      const NodeTable& nodes = pair_.nodes();
      if (leaf == kNoValue || nodes[leaf].kind != NodeKind::Op || nodes[leaf].op != Op::Div ||
          nodes[leaf].type.isSigned)
        continue;
      const auto by = values_.integer(nodes.operand(leaf, 1), point).asConstant();
      if (!by || *by < 2 || *by > 64)
        continue;
      const auto rest = Polynomial::sum(number, Polynomial::of(monomial, coefficient), -1);
      const auto scaled = rest ? Polynomial::sum(Polynomial(), *rest, *by) : std::nullopt;
      const auto sum =
          scaled ? Polynomial::sum(*scaled, values_.integer(nodes.operand(leaf, 0), point), coefficient) : std::nullopt;
      const auto least =
          sum && coefficient > 0 ? Polynomial::sum(*sum, Polynomial::constant(coefficient * (1 - *by))) : sum;
      return least ? withoutQuotients(*least, point) : std::nullopt;
    }
    return number;
  }

  /// The number as `apart` · m + rest, m and the rest: no product of the rest has the first leaf of `apart` that stands there alone.
  static std::optional<std::pair<Polynomial, Polynomial>> inRows(Polynomial rest, const Polynomial& apart) {
    const auto own = std::find_if(apart.terms().begin(), apart.terms().end(), [](const auto& term) {
      return term.first.size() == 1 && (term.second == 1 || term.second == -1);
    });
    if (own == apart.terms().end())
      return std::nullopt;
    Polynomial times;
    for (unsigned steps = 0; steps < 64; ++steps) {
      const auto found = std::find_if(rest.terms().begin(), rest.terms().end(), [&](const auto& term) {
        return term.first.size() > 1 &&
               std::find(term.first.begin(), term.first.end(), own->first[0]) != term.first.end();
      });
      if (found == rest.terms().end())
        return std::pair(times, rest);
      Monomial others = found->first;
      others.remove(own->first[0]);
      const Polynomial factor = Polynomial::of(others, found->second * own->second);
      const auto product = Polynomial::product(factor, apart);
      const auto left = product ? Polynomial::sum(rest, *product, -1) : std::nullopt;
      const auto sum = Polynomial::sum(times, factor);
      if (!left || !sum)
        return std::nullopt;
      rest = *left;
      times = *sum;
    }
    return std::nullopt;
  }

  /// Factors of products of two numbers, which each side has one of: the first pair that differs.
  std::optional<std::pair<ValueId, ValueId>> rowsOf(const Pair::Coordinate& coordinate) {
    const NodeTable& nodes = pair_.nodes();
    const auto factors = [&](ValueId value) {
      std::vector<ValueId> out;
      walkOperands(nodes, {value}, [&](ValueId at, const Node& node) {
        if (node.kind == NodeKind::Op && node.op == Op::Mul && !nodes.isConstant(nodes.operand(at, 0)) &&
            !nodes.isConstant(nodes.operand(at, 1)))
          out.push_back(nodes.operand(at, 0));
        return false;
      });
      return out;
    };
    const std::vector<ValueId> a = factors(coordinate.first), b = factors(coordinate.second);
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
      if (a[i] != b[i] && nodes.type(a[i]) == nodes.type(b[i]))
        return std::pair(a[i], b[i]);
    return std::nullopt;
  }

  /// x = y ^ m makes y = x ^ m: where both sides are to be the lower of two partners, that cannot be.
  bool excludePartners() {
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
          if (areContrary(orders, equal))
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

  /// Where all subscripts are equal something is not as it must be, or both are one thread.
  bool followsFromDigits(PointId point) { return followsFromDigits(point, differences(point)); }
  bool followsFromDigits(PointId point, std::vector<Polynomial> zeros) {
    Equations equations(pair_.nodes(), values_, point);
    const bool isContradictory = equations.areContradictory(std::move(zeros));
    wasSplit = wasSplit || equations.isTakenApart();
    if (isContradictory)
      return true;
    const auto& axes = pair_.axes();
    return !pair_.mayBeSame() &&
           std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(pair_.decisiveAxes()),
                       [&](const Pair::Coordinate& axis) { return equations.areEqual(axis.first, axis.second); });
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

  bool with(PointId point, ValueId condition, size_t axis, bool isStrict, bool holds = true) {
    return run(axis, values_.assume(point, {{condition, holds}}), isStrict);
  }

  /// What decides between two numbers in the subscripts: `if i % 2 == 0 { i + 1 } else { i - 1 }`.
  ValueId undecidedChoice(PointId point) {
    for (const Polynomial& difference : differences(point))
      for (const auto& [monomial, coefficient] : difference.terms())
        for (ValueId leaf : monomial) {
          const ValueId condition = choiceIn(leaf);
          if (condition != kNoValue && !values_.integer(condition, point).asConstant())
            return condition;
        }
    return kNoValue;
  }

  /// Of a selection among the operands that are one themselves.
  ValueId choiceIn(ValueId value, unsigned depth = 0) const {
    const NodeTable& nodes = pair_.view().nodes;
    const Node& node = nodes[value];
    if (depth > kMostChoiceDepth)
      return kNoValue;
    if (node.kind == NodeKind::Op && node.op == Op::Select)
      return nodes.operand(value, 0);
    for (ValueId operand : nodes.operands(value))
      if (const ValueId found = choiceIn(operand, depth + 1); found != kNoValue)
        return found;
    return kNoValue;
  }

  Pair& pair_;
  Values& values_;
  uint64_t begun_, limit_;    ///< of proof steps
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
static bool holdsIn(Pair& pair, const std::vector<Supposition>& suppositions, Knowledge& knowledge,
                    DecisionBudget& budget) {
  LaunchFacts launch = pair.view().launch;
  std::vector<Condition> conditions;
  for (const Supposition& each : suppositions) {
    conditions.insert(conditions.end(), each.conditions.begin(), each.conditions.end());
    if (each.product)
      launch.products.push_back(*each.product);
  }
  std::optional<Values> counters;
  if (pair.hasOpenCounters()) {
    Surroundings around = surroundingsOf(pair.view().graph, pair.view().structure, pair.nodes());
    around.conditions = [known = std::move(around.conditions), &conditions](PointId point) {
      std::vector<Condition> all = known(point);
      all.insert(all.end(), conditions.begin(), conditions.end());
      return all;
    };
    counters.emplace(pair.nodes(), std::move(around), launch);
    pair.suppose(*counters, counters->assume(kNoPoint, conditions));
  }
  const unsigned cases = std::min(budget.cases, kMostCasesOfPair);
  Digits digits(pair, std::min(budget.proofSteps, kMostProofSteps), cases, knowledge.of(pair, launch));
  const bool isProven = digits.run(conditions);
  budget.cases -= cases - digits.casesLeft();
  budget.proofSteps -= std::min(budget.proofSteps, digits.steps());
  return isProven;
}

/// Positions in the grid are shorter numbers than blocks, their sizes and threads: subscripts of three or more positions.
static bool differByWholePositions(Pair& pair, Knowledge& knowledge, DecisionBudget& budget) {
  const bool isProven = pair.setWhole() && holdsIn(pair, {}, knowledge, budget);
  pair.setParts();
  return isProven;
}

/// With all suppositions, then without those that it does not take.
static Decision decideForLaunches(Pair& pair, bool areSmall, Knowledge& knowledge, DecisionBudget& budget) {
  std::vector<Supposition> supposed = suppositionsOf(pair, areSmall);
  if (supposed.empty() || !holdsIn(pair, supposed, knowledge, budget))
    return {};
  for (size_t i = supposed.size(); i-- > 0 && supposed.size() > 1;) {
    std::vector<Supposition> fewer = supposed;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (holdsIn(pair, fewer, knowledge, budget))
      supposed = std::move(fewer);
  }
  Decision decision{Decider::Launch};
  for (const Supposition& each : supposed)
    decision.limits.push_back(each.limit);
  return decision;
}

Values& Knowledge::of(Pair& pair, const LaunchFacts& launch) {
  std::vector<__int128> key;
  for (const LaunchFacts::Product& product : launch.products) {
    key.push_back(product.limit);
    for (ValueId factor : product.factors)
      key.push_back(indexOf(factor));
    key.push_back(-1);
  }
  pair.addDefinitions(key);
  std::unique_ptr<Values>& values = values_[key];
  if (!values || values->assumptionCount() > kMostAssumptions) {
    values = std::make_unique<Values>(pair.nodes(),
                                      surroundingsOf(pair.view().graph, pair.view().structure, pair.nodes()), launch);
    for (const auto& [leaf, polynomial] : pair.definitions())
      values->define(leaf, polynomial);
  }
  return *values;
}

Decision decide(Pair& pair, Tickets& tickets, Knowledge& knowledge, const BlockShape& shape, DecisionBudget& budget) {
  if (pair.areApart())
    return {Decider::Field};
  if (pair.contradicts())
    return {Decider::Control};
  const unsigned cases = std::min(budget.cases, kMostCasesOfPair);
  Digits digits(pair, std::min(budget.proofSteps, kMostProofSteps), cases, knowledge.of(pair, pair.view().launch));
  if (digits.isNeverReached())
    return {Decider::Control};
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
  if (differByWholePositions(pair, knowledge, budget))
    return {Decider::Digits};
  if (pair.mayBeSame())
    return {};
  Decision decision = decideForLaunches(pair, false, knowledge, budget);
  return decision.decider == Decider::None ? decideForLaunches(pair, true, knowledge, budget) : decision;
}

}  // namespace vortex::lang::flow
