// All threads of a block of known shape, and all values of everything else that the subscripts depend on: a table from element to thread.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "lang/flow/race/deciders.h"
#include "lang/flow/race/evaluator.h"

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostValues = 64;  ///< of one leaf
constexpr uint64_t kMostCases = 4096;

/// Nodes as machine integers under an assignment of leaves. Each node becomes an instruction behind those of its operands: what is asked for is asked
/// for every thread.
class Assignment {
public:
  using Slot = uint32_t;

  explicit Assignment(const NodeTable& nodes) : nodes_(nodes) {}

  /// Of a leaf, which is unknown until it is set.
  Slot slotOf(ValueId value) {
    value = nodes_.resolved(value);
    if (auto known = slots_.find(indexOf(value)); known != slots_.end())
      return known->second;
    const Node node = nodes_[value];
    Instruction made{.kind = node.kind, .op = node.op, .type = node.type};
    const Operands operands = nodes_.operands(value);
    for (size_t i = 0; i < operands.size(); ++i)
      made.operands[i] = slotOf(operands.values[i]);
    const auto slot = static_cast<Slot>(code_.size());
    code_.push_back(made);
    numbers_.push_back(node.kind == NodeKind::Constant ? Number(node.constant()) : std::nullopt);
    ages_.push_back(operands.size() > 0 ? 0 : kIsLeaf);
    slots_.emplace(indexOf(value), slot);
    return slot;
  }

  void set(Slot leaf, __int128 number) {
    numbers_[leaf] = number;
    ages_[leaf] = kIsLeaf;
  }
  void forget() { ++age_; }

  const Number& operator[](Slot slot) {
    if (ages_[slot] < age_) {
      numbers_[slot] = compute(code_[slot]);
      ages_[slot] = age_;
    }
    return numbers_[slot];
  }

private:
  struct Instruction {
    NodeKind kind = {};
    Op op = {};
    MachineType type;
    std::array<Slot, 3> operands{};
  };

  Number compute(const Instruction& code) {
    const Number a = (*this)[code.operands[0]];
    if (code.kind == NodeKind::Convert)
      return a ? Number(code.type.wrap(*a)) : std::nullopt;
    if (code.op == Op::Select)
      return a ? (*this)[code.operands[*a != 0 ? 1 : 2]] : std::nullopt;
    return applied(code.op, code.type, a, (*this)[code.operands[1]]);
  }

  static constexpr uint64_t kIsLeaf = UINT64_MAX;

  const NodeTable& nodes_;
  std::unordered_map<uint32_t, Slot> slots_;
  std::vector<Instruction> code_;
  std::vector<Number> numbers_;
  std::vector<uint64_t> ages_;  ///< of the assignment that each was computed under
  uint64_t age_ = 1;
};

struct Choice {
  Assignment::Slot leaf = 0;
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
  struct Test {
    Assignment::Slot value = 0;
    bool holds = true;
  };
  struct Sides {
    Assignment::Slot first = 0, second = 0;
  };

  /// Leaves that subscripts depend on must have few values; those that only conditions depend on may stay open.
  bool chooseLeaves() {
    std::vector<ValueId> first, second, needed;
    for (const Pair::Coordinate& coordinate : pair_.coordinates()) {
      if (coordinate.divisor != kNoValue)
        continue;
      pair_.leavesOf(coordinate.first, first);
      pair_.leavesOf(coordinate.second, second);
      subscripts_.push_back({assignment_.slotOf(coordinate.first), assignment_.slotOf(coordinate.second)});
    }
    needed = first;
    needed.insert(needed.end(), second.begin(), second.end());
    for (const Condition& condition : pair_.conditions()) {
      if (!mayBeKnown(condition.value))
        continue;
      std::vector<ValueId> leaves;
      pair_.leavesOf(condition.value, leaves);
      // Which side a condition speaks of is told by its leaves; one of both sides is left out.
      const bool ofFirst = mentions(leaves, true), ofSecond = mentions(leaves, false);
      if (ofFirst && ofSecond) {
        // Of positions alone: other leaves have gone through all their numbers when it is asked.
        if (std::all_of(leaves.begin(), leaves.end(), [&](ValueId leaf) { return isAxis(leaf); }))
          both_.push_back({assignment_.slotOf(condition.value), condition.holds});
      } else {
        (ofSecond ? secondConditions_ : firstConditions_)
            .push_back({assignment_.slotOf(condition.value), condition.holds});
        auto& into = ofSecond ? second : first;
        into.insert(into.end(), leaves.begin(), leaves.end());
      }
    }
    for (const Pair::Coordinate& axis : pair_.axes())
      threads_.push_back({assignment_.slotOf(axis.first), assignment_.slotOf(axis.second)});
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
      (inFirst && inSecond ? shared_
       : inFirst           ? ownFirst_
                           : ownSecond_)
          .push_back({assignment_.slotOf(leaf), std::move(numbers)});
    }
    return true;
  }

  /// It does not follow from a leaf that stays open.
  bool mayBeKnown(ValueId value) {
    const NodeTable& nodes = pair_.nodes();
    value = nodes.resolved(value);
    if (const auto known = mayBeKnown_.find(value); known != mayBeKnown_.end())
      return known->second;
    const Node& node = nodes[value];
    const bool is = node.kind == NodeKind::Op || node.kind == NodeKind::Convert
                        ? mayFollow(node, [&](size_t i) { return mayBeKnown(nodes.operand(value, i)); })
                        : node.kind == NodeKind::Constant || isAxis(value) || !pair_.domain(value, kMostValues).empty();
    return mayBeKnown_[value] = is;
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
      place(first, thread);
      if (!visit(thread))
        return false;
    }
    return true;
  }

  void place(bool first, uint64_t thread) {
    for (size_t axis = threads_.size(); axis-- > 0;) {
      const auto size = static_cast<uint64_t>(sizes_[axis]);
      assignment_.set(first ? threads_[axis].first : threads_[axis].second, static_cast<__int128>(thread % size));
      thread /= size;
    }
    assignment_.forget();
  }

  bool holds(const std::vector<Test>& tests) {
    for (const Test& condition : tests)
      if (const Number& number = assignment_[condition.value]; number && (*number != 0) != condition.holds)
        return false;
    return true;
  }

  /// Nothing: unknown.
  std::optional<std::vector<__int128>> element(bool first) {
    std::vector<__int128> key;
    for (const Sides& subscript : subscripts_) {
      const Number& number = assignment_[first ? subscript.first : subscript.second];
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
    place(true, first);
    place(false, second);
    return holds(both_);
  }

  Pair& pair_;
  Assignment assignment_;
  uint64_t& budget_;
  std::vector<Choice> shared_, ownFirst_, ownSecond_;
  std::vector<Test> firstConditions_, secondConditions_, both_;
  std::vector<Sides> threads_, subscripts_;
  std::map<ValueId, bool> mayBeKnown_;
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
