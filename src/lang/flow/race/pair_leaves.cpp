// What the subscripts and conditions of a pair depend on: which conditions matter, which numbers a leaf may have, and when two pairs ask the same.
#include <algorithm>

#include "lang/flow/race/pair.h"

#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {

/// What shares no value with the subscripts and positions, nor with what does, only makes proofs longer and equal questions look different.
/// The bool that a condition compares with something else, `(x[i] > x[j]) == ascending`: where nothing else asks for it, the condition holds at will.
static ValueId comparedBool(const Pair& pair, const NodeTable& nodes, ValueId condition) {
  const Node& node = nodes[condition];
  for (size_t i = 0; node.kind == NodeKind::Op && (node.op == Op::Eq || node.op == Op::Xor) && i < 2; ++i) {
    const ValueId leaf = nodes.operand(condition, i);
    std::vector<ValueId> others;
    pair.leavesOf(nodes.operand(condition, 1 - i), others);
    const bool isLeaf = nodes[leaf].kind != NodeKind::Op && nodes[leaf].kind != NodeKind::Convert;
    if (isLeaf && nodes.type(leaf) == kBool && std::find(others.begin(), others.end(), leaf) == others.end())
      return leaf;
  }
  return kNoValue;
}

void Pair::dropUnrelated() {
  std::set<ValueId> related;
  std::vector<ValueId> leaves;
  for (const Coordinate& coordinate : axes_)
    related.insert({coordinate.first, coordinate.second});
  for (const Coordinate& coordinate : coordinates_)
    for (ValueId value : {coordinate.first, coordinate.second})
      leavesOf(value, leaves);
  for (const Condition& condition : passed_)
    leavesOf(condition.value, leaves);
  related.insert(leaves.begin(), leaves.end());
  std::vector<std::vector<ValueId>> groups;
  std::map<ValueId, size_t> uses;
  for (const Condition& condition : conditions_) {
    leavesOf(condition.value, groups.emplace_back());
    for (ValueId leaf : groups.back())
      ++uses[leaf];
  }
  for (size_t i = 0; i < conditions_.size(); ++i)
    if (const ValueId free = comparedBool(*this, view_.nodes, conditions_[i].value);
        uses[free] == 1 && !related.contains(free))
      groups[i].clear();
  for (const auto& [leaf, polynomial] : definitions_) {
    groups.push_back({leaf});
    for (const auto& [monomial, coefficient] : polynomial.terms())
      groups.back().insert(groups.back().end(), monomial.begin(), monomial.end());
  }
  const auto isRelated = [&](ValueId leaf) { return related.contains(leaf); };
  std::vector<bool> isKept(groups.size());
  for (bool isDone = false; !isDone;) {
    isDone = true;
    for (size_t i = 0; i < groups.size(); ++i)
      if (!isKept[i] && std::any_of(groups[i].begin(), groups[i].end(), isRelated)) {
        isKept[i] = true;
        isDone = false;
        related.insert(groups[i].begin(), groups[i].end());
      }
  }
  size_t next = 0;
  std::erase_if(conditions_, [&](const Condition&) { return !isKept[next++]; });
  std::erase_if(definitions_, [&](const auto&) { return !isKept[next++]; });
  std::erase_if(origins_, [&](const auto& entry) { return !related.contains(ValueId{entry.first}); });
}

/// What two variables of a loop begin with that are exchanged in every iteration: `let t = a`, `a = b`, `b = t`. Their sum stays what it was.
static std::optional<std::pair<__int128, __int128>> exchanged(const Graph& graph, ValueId a, ValueId b) {
  const NodeTable& nodes = graph.values;
  const BlockId block = nodes.phiBlock(a);
  std::optional<std::pair<__int128, __int128>> begin;
  for (size_t i = 0; i < graph[block].predecessors.size(); ++i) {
    const ValueId x = nodes.resolved(nodes.phiOperands(a)[i]), y = nodes.resolved(nodes.phiOperands(b)[i]);
    if (graph.isInside(graph[block].predecessors[i], graph[block].loop)) {
      if (x != b || y != a)
        return std::nullopt;
    } else if (begin || !nodes.isConstant(x) || !nodes.isConstant(y)) {
      return std::nullopt;
    } else {
      begin.emplace(nodes[x].constant(), nodes[y].constant());
    }
  }
  return begin;
}

/// `made` stands for the phi of a loop's header: what it and the one that it is exchanged with are together.
void Pair::addExchanged(Env& env, ValueId phi, ValueId made, unsigned depth) {
  NodeTable& nodes = view_.nodes;
  env.known[indexOf(phi)] = made;
  for (ValueId each : view_.graph[nodes.phiBlock(phi)].phis) {
    const ValueId other = nodes.resolved(each);
    if (other == phi || nodes[other].kind != NodeKind::Phi || nodes.phiBlock(other) != nodes.phiBlock(phi))
      continue;
    const auto begin = exchanged(view_.graph, phi, other);
    if (!begin)
      continue;
    const auto [low, high] = std::minmax(begin->first, begin->second);
    const MachineType type = nodes.type(made);
    assume(nodes.op(Op::Le, kBool, nodes.constant(type, low), made));
    assume(nodes.op(Op::Le, kBool, made, nodes.constant(type, high)));
    const ValueId partner = clone(env, other, depth);
    const auto rest = Polynomial::sum(Polynomial::constant(low + high), Polynomial::leaf(partner), -1);
    if (rest && indexOf(other) < indexOf(phi) && nodes[partner].kind != NodeKind::Op && !nodes.isConstant(partner))
      definitions_.push_back({made, *rest});
  }
}

void Pair::addDefinitions(std::vector<__int128>& key) const {
  for (const auto& [leaf, polynomial] : definitions_) {
    key.push_back(-2 - __int128(indexOf(leaf)));
    for (const auto& [monomial, coefficient] : polynomial.terms()) {
      key.push_back(coefficient);
      for (ValueId factor : monomial)
        key.push_back(indexOf(factor));
      key.push_back(-1);
    }
  }
}

std::vector<__int128> Pair::key() const {
  std::vector<__int128> key = {static_cast<int>(scope_), areApart_, contradicts_, mayBeSame_};
  for (const Coordinate& coordinate : coordinates_)
    for (ValueId value : {coordinate.first, coordinate.second, coordinate.divisor})
      key.push_back(indexOf(value));
  key.push_back(-1);
  for (const std::vector<Condition>* each :
       {&conditions_, &passed_}) {  // a condition without leaves is in the latter alone
    for (const Condition& condition : *each)
      key.push_back(__int128(indexOf(condition.value)) * 2 + condition.holds);
    key.push_back(-1);
  }
  addDefinitions(key);
  // What a leaf stands for gives it its numbers.
  for (const auto& [leaf, origin] : std::map<uint32_t, ValueId>(origins_.begin(), origins_.end())) {
    key.push_back(leaf);
    key.push_back(indexOf(origin));
  }
  return key;
}

void Pair::leavesOf(ValueId value, std::vector<ValueId>& out) const {
  walkOperands(view_.nodes, {value}, [&](ValueId at, const Node& node) {
    const bool isLeaf = node.kind != NodeKind::Op && node.kind != NodeKind::Convert && node.kind != NodeKind::Constant;
    if (isLeaf && std::find(out.begin(), out.end(), at) == out.end())
      out.push_back(at);
    return false;
  });
}

std::vector<__int128> Pair::domain(ValueId leaf, size_t limit) const {
  if (auto known = lists_.find(indexOf(leaf)); known != lists_.end() && known->second.size() <= limit)
    return known->second;
  auto origin = origins_.find(indexOf(leaf));
  const ValueId asked = origin != origins_.end() && origin->second != kNoValue ? origin->second : leaf;
  std::vector<__int128> numbers;
  if (const StepId step = view_.graph.definition(asked); step != kNoStep && view_.graph[step].kind == StepKind::Item)
    for (LoopId loop = view_.graph[view_.graph.blockOf(step)].loop; loop != kNoLoop; loop = view_.graph[loop].parent)
      if (const auto& counter = view_.graph[loop].counter;
          counter && counter->list && counter->value == asked && counter->list->intList.size() <= limit)
        return {counter->list->intList.begin(), counter->list->intList.end()};
  if (view_.nodes[asked].kind == NodeKind::Phi)
    if (const std::vector<__int128>& list = view_.values.listOf(asked); !list.empty() && list.size() <= limit)
      return list;
  const Interval range = view_.values.range(asked, kNoPoint);
  if (range.high - range.low >= static_cast<__int128>(limit))
    return {};
  for (__int128 number = range.low; number <= range.high; ++number)
    numbers.push_back(number);
  return numbers;
}

}  // namespace vortex::lang::flow
