// Phis that can be few numbers: those of loops whose rounds are followed one after the other from where the loop is entered, and what they leave behind
// the loop. Phis that lead to one another are followed together: `offset *= 2` ends with the `d /= 2` that the loop asks of.
#include <algorithm>

#include "lang/flow/value/context.h"
#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {

constexpr size_t kMostListed = 64, kMostRounds = 256;

/// Phis of one loop's header, and how they get their numbers.
struct Values::Trace {
  struct Edge {
    std::vector<ValueId> operands;  ///< as many as phis
    std::vector<Condition> conditions;
    bool isBack = false;
  };
  std::vector<ValueId> phis;  ///< the first of them must be known
  size_t wanted = 0;
  std::vector<Edge> edges;
  std::vector<ValueId> outer;  ///< other phis, which stay the same while the loop runs

  bool isLoop() const {
    return std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.isBack; });
  }
};

static void addOnce(std::vector<ValueId>& values, ValueId value) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(value);
}

const std::vector<__int128>& Values::listOf(ValueId phi) {
  auto [found, isNew] = lists_.try_emplace(indexOf(phi));
  if (!isNew)
    return found->second;
  std::vector<__int128> list = findList(phi);
  return lists_[indexOf(phi)] = std::move(list);
}

std::vector<__int128> Values::findList(ValueId phi) {
  if (const auto counter = counterOf(phi))
    return counter->list.empty() ? numbersOf(*counter) : counter->list;
  if (nodes_.phiOperands(phi).size() == 1)
    return listBehindLoop(phi);
  std::optional<std::vector<Numbers>> rounds = roundsOf({phi}, false);
  if (!rounds)
    rounds = roundsOf({phi}, true);
  std::vector<__int128> list;
  for (const Numbers& numbers : rounds.value_or(std::vector<Numbers>()))
    if (const __int128 number = *evaluate(nodes_, phi, numbers);
        std::find(list.begin(), list.end(), number) == list.end())
      list.push_back(number);
  return list.size() <= kMostListed ? list : std::vector<__int128>();
}

/// Of a short range of constants.
std::vector<__int128> Values::numbersOf(const LoopCounter& counter) const {
  std::vector<__int128> list;
  if (!nodes_.isConstant(counter.begin) || !nodes_.isConstant(counter.end) || !nodes_.isConstant(counter.step))
    return list;
  const __int128 end = nodes_[counter.end].constant(), step = nodes_[counter.step].constant();
  for (__int128 at = nodes_[counter.begin].constant(); counter.isFalling ? at > end : at < end; at += step) {
    if (list.size() == kMostListed)
      return {};
    list.push_back(at);
  }
  return list;
}

/// What rounds that the loop is left in leave.
std::vector<__int128> Values::listBehindLoop(ValueId phi) {
  const ValueId left = nodes_.phiOperands(phi).front();
  std::vector<ValueId> wanted;
  phisOf(left, wanted);
  const auto isOfOneLoop = [&](ValueId each) { return nodes_.phiBlock(each) == nodes_.phiBlock(wanted.front()); };
  if (wanted.empty() || !surroundings_.begin || !std::all_of(wanted.begin(), wanted.end(), isOfOneLoop))
    return {};
  const std::vector<Condition> conditions = conditionsAt(surroundings_.begin(phi));
  const std::optional<std::vector<Numbers>> rounds = roundsOf(wanted, true);
  std::vector<__int128> list;
  for (const Numbers& numbers : rounds.value_or(std::vector<Numbers>())) {
    if (isExcluded(conditions, numbers))
      continue;
    const auto number = evaluate(nodes_, left, numbers);
    if (!number)
      return {};
    if (std::find(list.begin(), list.end(), *number) == list.end())
      list.push_back(*number);
  }
  return list.size() <= kMostListed ? list : std::vector<__int128>();
}

/// What the phis of one header are in each round of the loop, in which any are known that the others or the end of the loop follow from. Nothing: there
/// are too many, or not all that are wanted are known.
std::optional<std::vector<Values::Numbers>> Values::roundsOf(const std::vector<ValueId>& wanted, bool jointly) {
  const Trace trace = traceOf(wanted, jointly);
  if (!trace.isLoop())
    return std::nullopt;
  const std::vector<__int128> around = trace.outer.size() == 1 ? listOf(trace.outer.front()) : std::vector<__int128>();
  std::vector<Numbers> rounds;
  for (__int128 number : around)
    if (!follow(trace, {{trace.outer.front(), number}}, rounds))
      return std::nullopt;
  if (around.empty() && !follow(trace, {}, rounds))
    return std::nullopt;
  return rounds;
}

Values::Trace Values::traceOf(const std::vector<ValueId>& wanted, bool jointly) {
  Trace trace{.phis = wanted, .wanted = wanted.size(), .edges = {}, .outer = {}};
  const BlockId block = nodes_.phiBlock(wanted.front());
  const size_t count = nodes_.phiOperands(wanted.front()).size();
  for (size_t i = 0; i < count; ++i) {
    const auto back = surroundings_.backEdge ? surroundings_.backEdge(wanted.front(), i) : std::nullopt;
    const auto entry = back || !surroundings_.entry ? std::nullopt : surroundings_.entry(wanted.front(), i);
    const auto point = back ? back : entry;
    trace.edges.push_back({{}, point ? conditionsAt(*point) : std::vector<Condition>(), back.has_value()});
  }
  const auto addRelated = [&](ValueId value) {
    std::vector<ValueId> found;
    phisOf(value, found);
    for (ValueId each : found)
      if (nodes_.phiBlock(each) == block)
        addOnce(trace.phis, each);
  };
  if (jointly)
    for (const Trace::Edge& edge : trace.edges)
      for (const Condition& condition : edge.conditions)
        addRelated(condition.value);
  for (size_t next = 0; next < trace.phis.size(); ++next)
    for (size_t i = 0; i < count; ++i) {
      const ValueId operand = nodes_.phiOperands(trace.phis[next])[i];
      trace.edges[i].operands.push_back(operand);
      if (!trace.edges[i].isBack)
        phisOf(operand, trace.outer);
      else if (jointly)
        addRelated(operand);
    }
  return trace;
}

/// Adds the rounds of a loop that is entered while the outer phi has this number. False: too many, or not known.
bool Values::follow(const Trace& trace, const Numbers& outer, std::vector<Numbers>& rounds) const {
  const size_t first = rounds.size();
  const auto add = [&](const Trace::Edge& edge, const Numbers& before) {
    if (isExcluded(edge.conditions, before))
      return true;
    Numbers after = outer;
    for (size_t i = 0; i < trace.phis.size(); ++i)
      if (const auto number = evaluate(nodes_, edge.operands[i], before))
        after.emplace_back(trace.phis[i], *number);
      else if (i < trace.wanted)
        return false;
    if (std::find(rounds.begin() + static_cast<std::ptrdiff_t>(first), rounds.end(), after) == rounds.end())
      rounds.push_back(std::move(after));
    return rounds.size() - first <= kMostListed && rounds.size() <= kMostRounds;
  };
  const auto addAll = [&](bool back, const Numbers& before) {
    return std::all_of(trace.edges.begin(), trace.edges.end(),
                       [&](const Trace::Edge& edge) { return edge.isBack != back || add(edge, before); });
  };
  if (!addAll(false, outer))
    return false;
  for (size_t next = first; next < rounds.size(); ++next)
    if (!addAll(true, Numbers(rounds[next])))
      return false;
  return true;
}

/// The phis that the value is made of, besides others.
void Values::phisOf(ValueId value, std::vector<ValueId>& phis) const {
  value = nodes_.resolved(value);
  if (nodes_[value].kind == NodeKind::Phi)
    addOnce(phis, value);
  for (ValueId operand : nodes_.operands(value))
    phisOf(operand, phis);
}

/// Some condition does not hold with these numbers.
bool Values::isExcluded(const std::vector<Condition>& conditions, const Numbers& numbers) const {
  return std::any_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    const auto truth = evaluate(nodes_, condition.value, numbers);
    return truth && (*truth != 0) != condition.holds;
  });
}

}  // namespace vortex::lang::flow
