// Phis of loops. A counter is begin + step · count, always modulo 2^width, and as an integer only if the conditions at every back edge bound it so
// that one more step fits its type: `while i < n { i += stride }` wraps where n is near the type's end.
#include <algorithm>

#include "lang/flow/value/context.h"

namespace vortex::lang::flow {

constexpr __int128 kMostSupposed = kMostElements * 2;  ///< of a counter

/// Nothing where it is not known whether it grows.
std::optional<LoopCounter> Values::counterOf(ValueId phi) {
  auto counter = surroundings_.counter ? surroundings_.counter(phi) : std::nullopt;
  if (!counter || !counter->list.empty())
    return counter;
  const Interval step = range(contextAt(kNoPoint), counter->step);
  counter->isFalling = step.high < 0;
  return step.low > 0 || step.high < 0 ? counter : std::nullopt;
}

Form Values::ofPhi(Context& context, ValueId phi) {
  if (inProgress_.contains(phi) && !inductions_.contains(indexOf(phi)))
    return leaf(context, phi);
  const std::optional<Induction>& induction = inductionOf(phi);
  if (!induction || induction->count == kNoValue)
    return leaf(context, phi);
  const auto taken = Polynomial::product(induction->step, Polynomial::leaf(induction->count));
  const Polynomial begin =
      induction->isExact ? integer(context, induction->begin) : form(context, induction->begin).polynomial;
  const auto sum = taken ? Polynomial::sum(begin, *taken) : std::nullopt;
  return sum ? Form{*sum, induction->isExact} : leaf(context, phi);
}

const std::optional<Values::Induction>& Values::inductionOf(ValueId phi) {
  static const std::optional<Induction> kNone;
  if (auto found = inductions_.find(indexOf(phi)); found != inductions_.end())
    return found->second;
  if (!inProgress_.insert(phi).second)
    return kNone;
  std::optional<Induction> found = findInduction(phi);
  inProgress_.erase(phi);
  if (found && found->count != kNoValue)
    counted_[indexOf(found->count)] = phi;
  return inductions_.insert_or_assign(indexOf(phi), std::move(found)).first->second;
}

std::optional<Values::Induction> Values::findInduction(ValueId phi) {
  const MachineType type = nodes_.type(phi);
  if (const auto counter = counterOf(phi)) {
    if (!counter->list.empty())
      return std::nullopt;
    const Polynomial step = integer(counter->step, kNoPoint);
    Induction result{step, counter->begin, counter->end, kNoValue, type, true};
    if (!counter->isFalling && step != Polynomial::constant(1))
      result.count = nodes_.unknown(nullptr, kUsize);
    return result;
  }
  const std::vector<ValueId> operands(nodes_.phiOperands(phi).begin(), nodes_.phiOperands(phi).end());
  Induction result{{}, kNoValue, kNoValue, kNoValue, type, true};
  std::optional<Polynomial> step;
  bool supposes = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto edge = surroundings_.backEdge ? surroundings_.backEdge(phi, i) : std::nullopt;
    if (!edge) {
      if (result.begin != kNoValue && result.begin != operands[i])
        return std::nullopt;
      result.begin = operands[i];
      continue;
    }
    const auto [next, isSupposed] = nextOf(phi, operands[i], *edge);
    supposes = supposes || isSupposed;
    const auto change = difference(next.polynomial, Polynomial::leaf(phi));
    if (!change || change->isZero() || (step && *step != *change) || !isSameInEveryIteration(*change))
      return std::nullopt;
    step = change;
    result.isExact = result.isExact && next.isExact;
  }
  if (!step || result.begin == kNoValue)
    return std::nullopt;
  result.isSmall = supposes && range(contextAt(kNoPoint), result.begin).isWithin(0, kMostSupposed);
  result.isExact = result.isExact && result.isSmall == supposes;
  result.step = *step;
  result.count = nodes_.unknown(nullptr, kUsize);
  return result;
}

/// What the phi is in the next iteration, and whether that is so only if the phi is at most kMostSupposed, which the next one is then too: what begins
/// there stays there. `while tile * 256 < n` bounds the tile only if the product does not wrap.
std::pair<Form, bool> Values::nextOf(ValueId phi, ValueId operand, PointId edge) {
  const auto ask = [&](bool supposes) {
    Context context;  // the phi is a leaf in it, so what it learns must not be remembered
    if (supposes)
      context.refined[indexOf(phi)] = {0, kMostSupposed};
    context.conditions = conditionsAt(edge);
    build(context);
    Form next = form(context, operand);
    if (supposes && !interval(context, next.polynomial).isWithin(0, kMostSupposed))
      next.isExact = false;
    return next;
  };
  const Form plain = ask(false);
  if (plain.isExact || nodes_.type(phi).width < 64)
    return {plain, false};
  const Form bounded = ask(true);
  return bounded.isExact && bounded.polynomial == plain.polynomial ? std::pair(bounded, true) : std::pair(plain, false);
}

bool Values::isSameInEveryIteration(const Polynomial& polynomial) const {
  return std::all_of(polynomial.terms().begin(), polynomial.terms().end(), [&](const auto& term) {
    return std::all_of(term.first.begin(), term.first.end(),
                       [&](ValueId leaf) { return isSameInEveryIteration(leaf); });
  });
}

/// Made of sizes, arguments and positions only.
bool Values::isSameInEveryIteration(ValueId value) const {
  const Node& node = nodes_[value];
  switch (node.kind) {
  case NodeKind::Constant:
  case NodeKind::Extent:
  case NodeKind::Argument:
  case NodeKind::Position: return true;
  default: break;
  }
  const Operands operands = nodes_.operands(value);
  return operands.size() > 0 &&
         std::all_of(operands.begin(), operands.end(), [&](ValueId each) { return isSameInEveryIteration(each); });
}

std::optional<Polynomial> Values::countLimit(Context& context, const Induction& induction) {
  if (!induction.isExact)
    return std::nullopt;
  const Polynomial begin = integer(context, induction.begin);
  if (induction.end != kNoValue)
    return plus(difference(integer(context, induction.end), begin), -1);
  const Interval step = interval(context, induction.step);
  const __int128 most = induction.isSmall ? kMostSupposed : induction.type.highest();
  return step.low > 0 ? difference(Polynomial::constant(most), begin) : std::nullopt;
}

Interval Values::rangeOfCount(Context& context, const Induction& induction) {
  const auto limit = countLimit(context, induction);
  const Interval step = interval(context, induction.step);
  if (!limit || step.low < 1)
    return {0, Interval::kUnbounded};
  return {0, std::max<__int128>(floorDivide(interval(context, *limit).high, step.low), 0)};
}

Interval Values::rangeOfPhi(Context& context, ValueId phi) {
  if (const std::vector<__int128>& list = listOf(phi); !list.empty()) {
    const auto [low, high] = std::minmax_element(list.begin(), list.end());
    return {*low, *high};
  }
  if (const auto counter = counterOf(phi)) {
    const Interval begin = range(context, counter->begin), end = range(context, counter->end);
    return counter->isFalling ? Interval{end.low + 1, begin.high} : Interval{begin.low, end.high - 1};
  }
  inductionOf(phi);  // else operands of back edges would be remembered as if it had none
  if (!inProgress_.insert(phi).second)
    return {};
  // Operands of back edges are of an earlier iteration, of which this point's conditions say nothing.
  const std::vector<ValueId> operands(nodes_.phiOperands(phi).begin(), nodes_.phiOperands(phi).end());
  std::optional<Interval> hull;
  bool shrinks = false;
  for (ValueId operand : operands) {
    const Node node = nodes_[operand];
    if (node.kind == NodeKind::Op && (node.op == Op::Div || node.op == Op::Shr) && nodes_.operand(operand, 0) == phi) {
      shrinks = true;  // towards 0
      continue;
    }
    // A range's counter has left its range where its loop is left.
    const Interval next = counterOf(nodes_.resolved(operand)) ? Interval() : range(contextAt(kNoPoint), operand);
    hull = hull ? hull->hull(next) : next;
  }
  inProgress_.erase(phi);
  if (hull && shrinks)
    hull = hull->hull({0, 0});
  Interval range = hull.value_or(Interval());
  if (range.low <= nodes_.type(phi).lowest())
    range.low = std::max(range.low, leastOf(phi));
  if (isPowerOrZero(phi))
    range.high = std::min(range.high, (nodes_.type(phi).highest() + 1) / 2);
  return range;
}

/// What a loop is entered with, where no round makes it less: `while half < N { half *= 2 }` cannot wrap to 0.
__int128 Values::leastOf(ValueId phi) {
  const __int128 lowest = nodes_.type(phi).lowest();
  const auto [found, isNew] = leasts_.try_emplace(indexOf(phi), lowest);
  if (!isNew || !surroundings_.backEdge)
    return found->second;
  __int128 least = nodes_.type(phi).highest();
  std::vector<std::pair<ValueId, PointId>> rounds;
  const std::vector<ValueId> operands(nodes_.phiOperands(phi).begin(), nodes_.phiOperands(phi).end());
  for (size_t i = 0; i < operands.size(); ++i)
    if (const auto edge = surroundings_.backEdge(phi, i))
      rounds.emplace_back(operands[i], *edge);
    else
      least = std::min(least, range(contextAt(kNoPoint), operands[i]).low);
  const bool isKept = least > lowest && std::all_of(rounds.begin(), rounds.end(), [&](const auto& round) {
                        Context context;  // as in nextOf
                        context.refined[indexOf(phi)] = {least, nodes_.type(phi).highest()};
                        context.conditions = conditionsAt(round.second);
                        build(context);
                        return range(context, round.first).low >= least;
                      });
  return leasts_[indexOf(phi)] = isKept && !rounds.empty() ? least : lowest;
}

void Values::inequalitiesOfPhi(Context& context, ValueId phi, std::vector<Polynomial>& out) {
  const auto counter = counterOf(phi);
  if (!counter || !counter->list.empty())
    return;
  const Polynomial self = Polynomial::leaf(phi);
  const Polynomial begin = integer(context, counter->begin), end = integer(context, counter->end);
  const auto fromBegin = counter->isFalling ? difference(begin, self) : difference(self, begin);
  const auto toEnd = counter->isFalling ? difference(self, end) : difference(end, self);
  for (const auto& bound : {fromBegin, plus(toEnd, -1)})
    if (bound)
      out.push_back(*bound);
}

}  // namespace vortex::lang::flow
