// All threads of a block of known shape, and all values of everything else that the subscripts depend on: a table from element to thread.
#include <algorithm>
#include <unordered_map>

#include "lang/flow/race/deciders.h"

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostValues = 64;  ///< of one leaf
constexpr uint64_t kMostCases = 4096;

using Number = std::optional<__int128>;

/// Nodes as machine integers under an assignment of leaves.
class Assignment {
public:
  explicit Assignment(NodeTable& nodes) : nodes_(nodes) {}

  void set(ValueId leaf, __int128 number) { leaves_[indexOf(leaf)] = number; }
  void forget() { known_.clear(); }

  Number operator()(ValueId value) {
    value = nodes_.resolved(value);
    if (auto leaf = leaves_.find(indexOf(value)); leaf != leaves_.end())
      return leaf->second;
    const Node& node = nodes_[value];
    if (node.kind == NodeKind::Constant)
      return node.constant();
    if (node.kind != NodeKind::Op && node.kind != NodeKind::Convert)
      return std::nullopt;
    auto [found, isNew] = known_.try_emplace(indexOf(value), std::nullopt);
    if (!isNew)
      return found->second;
    const Number number = compute(node, value);
    return known_[indexOf(value)] = number;
  }

private:
  Number compute(const Node& node, ValueId value) {
    const Number a = (*this)(nodes_.operand(value, 0));
    if (node.kind == NodeKind::Convert)
      return a ? Number(node.type.wrap(*a)) : std::nullopt;
    if (node.op == Op::Select)
      return a ? (*this)(nodes_.operand(value, *a != 0 ? 1 : 2)) : std::nullopt;
    const Number b = (*this)(nodes_.operand(value, 1));
    if (node.type == kBool && (node.op == Op::And || node.op == Op::Or)) {
      const __int128 decides = node.op == Op::Or;
      if ((a && *a == decides) || (b && *b == decides))
        return decides;
    }
    return a && b ? Number(applyOp(node.op, node.type, *a, *b)) : std::nullopt;
  }

  NodeTable& nodes_;
  std::unordered_map<uint32_t, __int128> leaves_;
  std::unordered_map<uint32_t, Number> known_;
};

struct Choice {
  ValueId leaf;
  std::vector<__int128> numbers;
};

class Enumeration {
public:
  Enumeration(Pair& pair, uint64_t& budget) : pair_(pair), assignment_(pair.nodes()), budget_(budget) {}

  bool run() {
    if (pair_.mayBeSame() || pair_.coordinates().empty() || !chooseLeaves())
      return false;
    return eachCase(shared_, 0, [&] { return oneCase(); });
  }

private:
  /// Leaves that subscripts depend on must have few values; those that only conditions depend on may stay open.
  bool chooseLeaves() {
    std::vector<ValueId> first, second, needed;
    for (const Pair::Coordinate& coordinate : pair_.coordinates()) {
      if (coordinate.divisor != kNoValue)
        continue;
      pair_.leavesOf(coordinate.first, first);
      pair_.leavesOf(coordinate.second, second);
    }
    needed = first;
    needed.insert(needed.end(), second.begin(), second.end());
    for (const Condition& condition : pair_.conditions()) {
      std::vector<ValueId> leaves;
      pair_.leavesOf(condition.value, leaves);
      // Which side a condition speaks of is told by its leaves; one of both sides is left out.
      const bool ofFirst = mentions(leaves, true), ofSecond = mentions(leaves, false);
      if (ofFirst && ofSecond) {
        both_.push_back(condition);
      } else {
        (ofSecond ? secondConditions_ : firstConditions_).push_back(condition);
        auto& into = ofSecond ? second : first;
        into.insert(into.end(), leaves.begin(), leaves.end());
      }
    }
    for (size_t axis = 0; axis < pair_.axes().size(); ++axis)
      threads_.push_back(pair_.axes()[axis]);
    uint64_t cases = 1;
    std::vector<ValueId> all = first;
    all.insert(all.end(), second.begin(), second.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (ValueId leaf : all) {
      if (isAxis(leaf))
        continue;
      const bool isNeeded = std::find(needed.begin(), needed.end(), leaf) != needed.end();
      std::vector<__int128> numbers = pair_.domain(leaf, kMostValues);
      if (numbers.empty() || cases * numbers.size() > kMostCases) {
        if (isNeeded)
          return false;
        continue;
      }
      const bool inFirst = std::find(first.begin(), first.end(), leaf) != first.end();
      const bool inSecond = std::find(second.begin(), second.end(), leaf) != second.end();
      cases *= numbers.size();
      (inFirst && inSecond ? shared_ : inFirst ? ownFirst_ : ownSecond_).push_back({leaf, std::move(numbers)});
    }
    return true;
  }

  bool isAxis(ValueId leaf) const {
    return std::any_of(pair_.axes().begin(), pair_.axes().end(),
                       [&](const Pair::Coordinate& axis) { return axis.first == leaf || axis.second == leaf; });
  }

  bool mentions(const std::vector<ValueId>& leaves, bool first) const {
    return std::any_of(pair_.axes().begin(), pair_.axes().end(), [&](const Pair::Coordinate& axis) {
      return axis.first != axis.second &&
             std::find(leaves.begin(), leaves.end(), first ? axis.first : axis.second) != leaves.end();
    });
  }

  template <typename Visit> bool eachCase(const std::vector<Choice>& choices, size_t at, const Visit& visit) {
    if (at == choices.size()) {
      assignment_.forget();
      return visit();
    }
    for (__int128 number : choices[at].numbers) {
      assignment_.set(choices[at].leaf, number);
      if (!eachCase(choices, at + 1, visit))
        return false;
    }
    return true;
  }

  bool oneCase() {
    table_.clear();
    const bool filled =
        eachThread(true, [&](uint64_t thread) { return eachCase(ownFirst_, 0, [&] { return enter(thread); }); });
    return filled &&
           eachThread(false, [&](uint64_t thread) { return eachCase(ownSecond_, 0, [&] { return isFree(thread); }); });
  }

  /// Sets the positions of one side to each thread of the block.
  template <typename Visit> bool eachThread(bool first, const Visit& visit) {
    uint64_t count = 1;
    for (int64_t size : sizes_)
      count *= static_cast<uint64_t>(size);
    for (uint64_t thread = 0; thread < count; ++thread) {
      uint64_t rest = thread;
      for (size_t axis = threads_.size(); axis-- > 0;) {
        const auto size = static_cast<uint64_t>(sizes_[axis]);
        assignment_.set(first ? threads_[axis].first : threads_[axis].second, static_cast<__int128>(rest % size));
        rest /= size;
      }
      assignment_.forget();
      if (!visit(thread))
        return false;
    }
    return true;
  }

  bool holds(const std::vector<Condition>& conditions) {
    for (const Condition& condition : conditions)
      if (const Number number = assignment_(condition.value); number && (*number != 0) != condition.holds)
        return false;
    return true;
  }

  /// Nothing: unknown.
  std::optional<std::vector<__int128>> element(bool first) {
    std::vector<__int128> key;
    for (const Pair::Coordinate& coordinate : pair_.coordinates()) {
      if (coordinate.divisor != kNoValue)
        continue;
      const Number number = assignment_(first ? coordinate.first : coordinate.second);
      if (!number)
        return std::nullopt;
      key.push_back(*number);
    }
    return key;
  }

  bool enter(uint64_t thread) {
    if (budget_ == 0)
      return false;
    --budget_;
    if (!holds(firstConditions_))
      return true;
    const auto key = element(true);
    if (key)
      table_[*key].push_back(thread);
    return key.has_value();
  }

  bool isFree(uint64_t thread) {
    if (budget_ == 0)
      return false;
    --budget_;
    if (!holds(secondConditions_))
      return true;
    const auto key = element(false);
    if (!key)
      return false;
    auto found = table_.find(*key);
    return found == table_.end() || std::all_of(found->second.begin(), found->second.end(), [&](uint64_t other) {
             return other == thread || !mayMeet(other, thread);
           });
  }

  /// Do the conditions on both sides together (one warp, different warps) allow these two?
  bool mayMeet(uint64_t first, uint64_t second) {
    if (both_.empty())
      return true;
    for (const auto& [thread, isFirst] : {std::pair(first, true), std::pair(second, false)}) {
      uint64_t rest = thread;
      for (size_t axis = threads_.size(); axis-- > 0;) {
        const auto size = static_cast<uint64_t>(sizes_[axis]);
        assignment_.set(isFirst ? threads_[axis].first : threads_[axis].second, static_cast<__int128>(rest % size));
        rest /= size;
      }
    }
    assignment_.forget();
    return holds(both_);
  }

  Pair& pair_;
  Assignment assignment_;
  uint64_t& budget_;
  std::vector<Choice> shared_, ownFirst_, ownSecond_;
  std::vector<Condition> firstConditions_, secondConditions_, both_;
  std::vector<Pair::Coordinate> threads_;
  std::map<std::vector<__int128>, std::vector<uint64_t>> table_;

public:
  std::vector<int64_t> sizes_;
};

}  // namespace

bool differInEveryCase(Pair& pair, const BlockShape& shape, uint64_t& budget) {
  Enumeration enumeration(pair, budget);
  int64_t threads = 1;
  for (size_t axis = 3; axis-- > 0;) {
    if (!shape[axis])
      return false;
    threads *= *shape[axis];
    if (*shape[axis] > 1)
      enumeration.sizes_.push_back(*shape[axis]);
  }
  // Blocks that differ have no table.
  if (threads > 1024 || enumeration.sizes_.size() != pair.axes().size())
    return false;
  return enumeration.run();
}

}  // namespace vortex::lang::flow
