// Subscripts of a pair that are equal only where simpler numbers are: without the summands that both sides have, and without bits that a condition says
// are clear.
#include <algorithm>

#include "lang/flow/race/pair.h"

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostSummands = 8;
using Summands = std::vector<std::pair<ValueId, bool>>;  ///< with true: taken away

/// False: there are too many.
bool addSummands(const NodeTable& nodes, ValueId value, bool isTaken, Summands& out) {
  const Node& node = nodes[value];
  if (node.kind != NodeKind::Op || (node.op != Op::Add && node.op != Op::Sub)) {
    out.emplace_back(value, isTaken);
    return out.size() <= kMostSummands;
  }
  return addSummands(nodes, nodes.operand(value, 0), isTaken, out) &&
         addSummands(nodes, nodes.operand(value, 1), isTaken != (node.op == Op::Sub), out);
}

/// Forms know sums of everything else.
bool isOfBits(const NodeTable& nodes, ValueId value) {
  const Node& node = nodes[value];
  const Operands operands = nodes.operands(value);
  if (node.kind == NodeKind::Op && (node.op == Op::Xor || node.op == Op::Or || node.op == Op::And))
    return true;
  const bool isScaled = node.kind == NodeKind::Convert || (node.kind == NodeKind::Op && node.op == Op::Mul);
  return isScaled && std::any_of(operands.begin(), operands.end(), [&](ValueId each) { return isOfBits(nodes, each); });
}

/// Both sides as they were before they were made larger, which changes no number.
std::pair<ValueId, ValueId> withoutExtensions(const NodeTable& nodes, ValueId a, ValueId b) {
  const auto inner = [&](ValueId value) {
    return nodes[value].kind == NodeKind::Convert ? nodes.operand(value, 0) : value;
  };
  const ValueId x = inner(a), y = inner(b);
  const bool areLarger = x != a && y != b && nodes.type(x) == nodes.type(y) && nodes.type(a) == nodes.type(b) &&
                         nodes.type(x).width <= nodes.type(a).width;
  return areLarger ? withoutExtensions(nodes, x, y) : std::pair(a, b);
}

/// Numbers that have no bit in common where the condition does or does not hold, each in either order.
void addClear(const NodeTable& nodes, ValueId value, bool holds, std::vector<std::pair<ValueId, ValueId>>& out) {
  const Node& node = nodes[value];
  if (node.kind != NodeKind::Op)
    return;
  const auto isOp = [&](Op op) { return node.op == op; };
  for (const size_t i : {0u, 1u}) {
    const ValueId other = nodes.operand(value, 1 - i), number = nodes.operand(value, i);
    const bool isZero = nodes.isConstant(number) && nodes[number].constant() == 0;
    if (isOp(Op::And) && node.type == kBool && holds)
      addClear(nodes, other, true, out);
    else if ((isOp(Op::Eq) || isOp(Op::Xor)) && nodes.type(other) == kBool && nodes.isConstant(number))
      addClear(nodes, other, holds != (isZero == isOp(Op::Eq)), out);
    else if (isOp(Op::Eq) && holds && isZero && nodes[other].kind == NodeKind::Op && nodes[other].op == Op::And)
      for (const size_t side : {0u, 1u})
        out.emplace_back(nodes.operand(other, side), nodes.operand(other, 1 - side));
  }
}

}  // namespace

void Pair::addCoordinate(ValueId first, ValueId second) {
  if (first != second && std::none_of(coordinates_.begin(), coordinates_.end(), [&](const Coordinate& each) {
        return each.first == first && each.second == second;
      }))
    coordinates_.push_back({first, second});
}

/// x + c and y + c are equal exactly where x and y are, also where they wrap.
void Pair::addWithoutCommon() {
  NodeTable& nodes = view_.nodes;
  for (size_t i = coordinates_.size(); i-- > 0;) {
    const auto [first, second] = withoutExtensions(nodes, coordinates_[i].first, coordinates_[i].second);
    const MachineType type = nodes.type(first);
    Summands x, y;
    if (!(nodes.type(second) == type) || !addSummands(nodes, first, false, x) || !addSummands(nodes, second, false, y))
      continue;
    const size_t common = std::erase_if(x, [&](const auto& each) {
      const auto found = std::find(y.begin(), y.end(), each);
      return found != y.end() && (y.erase(found), true);
    });
    const auto sumOf = [&](const Summands& summands) {
      ValueId sum = nodes.constant(type, 0);
      for (const auto& [value, isTaken] : summands)
        sum = nodes.op(isTaken ? Op::Sub : Op::Add, type, sum, value);
      return sum;
    };
    const auto hasBits = [&](const auto& each) { return isOfBits(nodes, each.first); };
    if (common > 0 && (std::any_of(x.begin(), x.end(), hasBits) || std::any_of(y.begin(), y.end(), hasBits)))
      addCoordinate(sumOf(x), sumOf(y));
  }
}

/// Where x & m and y & m are 0, x | m and the like differ from x in bits of m only: whatever of each side is equal, x and y are.
void Pair::addCleared() {
  NodeTable& nodes = view_.nodes;
  std::vector<std::pair<ValueId, ValueId>> clear;
  for (const Condition& condition : conditions_)
    addClear(nodes, condition.value, condition.holds, clear);
  const auto isWithout = [&](ValueId value, ValueId x, ValueId mask) {
    const Node& node = nodes[value];
    const bool mayBe = node.kind == NodeKind::Op && (node.op == Op::Or || node.op == Op::Xor || node.op == Op::Add);
    const auto isOf = [&](size_t i) { return nodes.operand(value, i) == x && nodes.operand(value, 1 - i) == mask; };
    return value == x || (mayBe && (isOf(0) || isOf(1)));
  };
  for (size_t i = coordinates_.size(); i-- > 0;) {
    const auto [first, second] = withoutExtensions(nodes, coordinates_[i].first, coordinates_[i].second);
    for (const auto& [x, mask] : clear)
      for (const auto& [y, other] : clear)
        if (mask == other && isWithout(first, x, mask) && isWithout(second, y, mask))
          addCoordinate(x, y);
  }
}

}  // namespace vortex::lang::flow
