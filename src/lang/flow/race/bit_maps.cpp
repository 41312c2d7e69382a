// A number as sums modulo 2 of bits of leaves. Two numbers of one shape over leaves x … and y … are equal exactly if their difference, the same sums of
// the bits of x ^ y …, is 0. Where the sums have as many independent rows as the leaves have bits in them, x and y agree in these bits.
#include "lang/flow/race/bit_maps.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace vortex::lang::flow {
namespace {

constexpr size_t kMostBitLeaves = 6;
constexpr unsigned kMostBitVisits = 4000;
constexpr unsigned kMostBitDepth = 40;

/// A leaf of both sides.
struct Leaf {
  ValueId first = kNoValue, second = kNoValue;
  bool operator==(const Leaf&) const = default;
};
/// Which bits of each leaf are summed.
using Row = std::array<uint64_t, kMostBitLeaves>;
/// By bit of the number, lowest first.
using Rows = std::array<Row, 64>;

bool isZero(const Row& row) {
  return std::all_of(row.begin(), row.end(), [](uint64_t bits) { return bits == 0; });
}

class BitMap {
public:
  BitMap(NodeTable& nodes, const BitBounds& below) : nodes_(nodes), below_(below) {}

  std::vector<Leaf> leaves;
  bool isMixed = false;  ///< something but the leaves themselves

  /// Of the bits that are wanted; the others are not told.
  std::optional<Rows> of(ValueId first, ValueId second, uint64_t wanted = ~uint64_t(0), unsigned depth = 0) {
    first = nodes_.resolved(first);
    second = nodes_.resolved(second);
    const uint64_t open = mayBeSet(first) | mayBeSet(second);
    wanted &= open;
    if (first == second || wanted == 0)
      return Rows{};  // the same number on both sides: no difference
    if (const auto known = rows_.find({first, second, wanted}); known != rows_.end())
      return known->second;
    const auto rows = computed(first, second, wanted, depth);
    return rows_[{first, second, wanted}] = rows ? std::optional(masked(*rows, open)) : rows;
  }

  /// Bits that may be 1.
  uint64_t mayBeSet(ValueId value, unsigned depth = 0) {
    const auto [known, isNew] = set_.try_emplace(indexOf(value), ~uint64_t(0));
    if (!isNew)
      return known->second;
    const uint64_t bits = bitsOf(value, depth);
    return set_[indexOf(value)] = bits;
  }

private:
  std::optional<Rows> computed(ValueId first, ValueId second, uint64_t wanted, unsigned depth) {
    const Node &a = nodes_[first], &b = nodes_[second];
    if (!(a.type == b.type) || depth > kMostBitDepth || ++visits_ > kMostBitVisits)
      return std::nullopt;
    if (a.kind == b.kind && a.kind == NodeKind::Convert && !nodes_.type(nodes_.operand(first, 0)).isSigned)
      return converted(first, second, wanted, depth);
    if (a.kind == NodeKind::Op && b.kind == NodeKind::Op && a.op == b.op)
      if (const auto rows = operation(a, first, second, wanted, depth))
        return rows;
    return leaf(first, second, a.type.width);
  }

  std::optional<Rows> leaf(ValueId first, ValueId second, unsigned width) {
    const Leaf made{first, second};
    auto found = std::find(leaves.begin(), leaves.end(), made);
    if (found == leaves.end() && leaves.size() == kMostBitLeaves)
      return std::nullopt;
    if (found == leaves.end())
      found = leaves.insert(leaves.end(), made);
    const auto number = static_cast<size_t>(found - leaves.begin());
    Rows rows{};
    for (unsigned bit = 0; bit < width; ++bit)
      rows[bit][number] = uint64_t(1) << bit;
    return rows;
  }

  std::optional<Rows> converted(ValueId first, ValueId second, uint64_t wanted, unsigned depth) {
    const ValueId x = nodes_.operand(first, 0), y = nodes_.operand(second, 0);
    if (!(nodes_.type(x) == nodes_.type(y)))
      return std::nullopt;
    auto rows = of(x, y, wanted & allOf(nodes_.type(first)), depth + 1);
    for (unsigned bit = nodes_.type(first).width; rows && bit < 64; ++bit)
      (*rows)[bit] = {};
    return rows;
  }

  std::optional<Rows> operation(const Node& node, ValueId first, ValueId second, uint64_t wanted, unsigned depth) {
    switch (node.op) {
    case Op::Xor:
    case Op::Or:
    case Op::Add: return combined(node, first, second, wanted, depth);
    case Op::Shl:
    case Op::Shr:
    case Op::And:
    case Op::Mul:
    case Op::Div:
    case Op::Rem: return withConstant(node, first, second, wanted, depth);
    default: return std::nullopt;
    }
  }

  /// Of operands that stand in any order: that of the leaves' numbers.
  std::optional<Rows> combined(const Node& node, ValueId first, ValueId second, uint64_t wanted, unsigned depth) {
    // What is carried comes from below.
    const uint64_t bits = node.op == Op::Add ? upTo(wanted) : wanted;
    const ValueId a = nodes_.operand(first, 0), b = nodes_.operand(first, 1);
    // Operands that may have the same bits first.
    const bool isTurned = mayBeSet(a) != mayBeSet(nodes_.operand(second, 0));
    for (const bool isSecondTry : {false, true}) {
      const size_t swapped = isTurned != isSecondTry;
      const ValueId c = nodes_.operand(second, swapped), d = nodes_.operand(second, 1 - swapped);
      // Of Or and Add no bit may be set in both operands, so that nothing is lost and nothing is carried: `(x | x << 8) & 0x00FF00FF`.
      if (node.op != Op::Xor && ((mayBeSet(a) & mayBeSet(b) & bits) != 0 || (mayBeSet(c) & mayBeSet(d) & bits) != 0))
        continue;
      const std::vector<Leaf> before = leaves;
      const auto x = of(a, c, wanted, depth + 1);
      const auto y = x ? of(b, d, wanted, depth + 1) : std::nullopt;
      if (y)
        return masked(sum(node, *x, *y), wanted);
      leaves = before;
      rows_.clear();  // numbers of leaves are given anew
    }
    return std::nullopt;
  }

  Rows sum(const Node& node, const Rows& x, const Rows& y) {
    Rows rows{};
    for (unsigned bit = 0; bit < node.type.width; ++bit)
      for (size_t leaf = 0; leaf < kMostBitLeaves; ++leaf)
        rows[bit][leaf] = x[bit][leaf] ^ y[bit][leaf];
    isMixed = true;
    return rows;
  }

  /// By and with constants, and by powers of two.
  std::optional<Rows> withConstant(const Node& node, ValueId first, ValueId second, uint64_t wanted, unsigned depth) {
    size_t at = nodes_.isConstant(nodes_.operand(first, 1)) ? 1 : 0;
    const ValueId constant = nodes_.operand(first, at);
    const bool isSided = node.op != Op::And && node.op != Op::Mul, isDown = isSided && node.op != Op::Shl;
    if (!nodes_.isConstant(constant) || nodes_.operand(second, at) != constant || (isSided && at == 0) ||
        (isDown && node.type.isSigned))
      return std::nullopt;
    const auto number = static_cast<uint64_t>(nodes_[constant].constant());
    const auto power = [&]() -> std::optional<int> {
      return std::has_single_bit(number) ? std::optional(std::countr_zero(number)) : std::nullopt;
    }();
    const auto count = static_cast<int>(number % node.type.width);
    const auto needed = [&]() -> uint64_t {
      const uint64_t told = wanted & allOf(node.type);
      switch (node.op) {
      case Op::And: return told & number;
      case Op::Shl: return told >> count;
      case Op::Shr: return told << count;
      case Op::Mul: return power ? told >> *power : 0;
      case Op::Div: return power ? told << *power : 0;
      default: return power ? told & (number - 1) : 0;
      }
    }();
    const auto rows = of(nodes_.operand(first, 1 - at), nodes_.operand(second, 1 - at), needed, depth + 1);
    if (!rows)
      return std::nullopt;
    isMixed = true;
    switch (node.op) {
    case Op::And: return masked(*rows, number);
    case Op::Shl: return shifted(*rows, count, node.type.width);
    case Op::Shr: return shifted(*rows, -count, node.type.width);
    case Op::Mul: return power ? std::optional(shifted(*rows, *power, node.type.width)) : std::nullopt;
    case Op::Div: return power ? std::optional(shifted(*rows, -*power, node.type.width)) : std::nullopt;
    default: return power ? std::optional(masked(*rows, number - 1)) : std::nullopt;
    }
  }

  static uint64_t allOf(MachineType type) { return type.width == 64 ? ~uint64_t(0) : (uint64_t(1) << type.width) - 1; }

  /// All bits from the highest one on.
  static uint64_t upTo(uint64_t bits) { return bits == 0 ? 0 : ~uint64_t(0) >> std::countl_zero(bits); }

  static Rows masked(Rows rows, uint64_t mask) {
    for (unsigned bit = 0; bit < 64; ++bit)
      if (!(mask >> bit & 1))
        rows[bit] = {};
    return rows;
  }

  static Rows shifted(const Rows& rows, int left, int width) {
    Rows out{};
    for (int bit = 0; bit < width; ++bit)
      if (bit - left >= 0 && bit - left < width)
        out[static_cast<size_t>(bit)] = rows[static_cast<size_t>(bit - left)];
    return out;
  }

  uint64_t bitsOf(ValueId value, unsigned depth) {
    const Node& node = nodes_[value];
    const uint64_t all = node.type.width == 64 ? ~uint64_t(0) : (uint64_t(1) << node.type.width) - 1;
    if (node.kind == NodeKind::Constant)
      return static_cast<uint64_t>(node.constant()) & all;
    if (const auto below = below_.find(value); below != below_.end() && !node.type.isSigned)
      return upTo(static_cast<uint64_t>(std::max<__int128>(below->second, 1) - 1)) & all;
    if (depth > kMostBitDepth || node.type.isSigned)
      return all;
    if (node.kind == NodeKind::Convert)
      return nodes_.type(nodes_.operand(value, 0)).isSigned ? all : mayBeSet(nodes_.operand(value, 0), depth + 1) & all;
    if (node.kind != NodeKind::Op)
      return all;
    const ValueId x = nodes_.operand(value, 0), y = nodes_.operand(value, 1);
    const uint64_t a = mayBeSet(x, depth + 1), b = mayBeSet(y, depth + 1);
    const bool isKnown = nodes_.isConstant(y);
    const uint64_t number = isKnown ? static_cast<uint64_t>(nodes_[y].constant()) : 0;
    const bool isPower = isKnown && std::has_single_bit(number);
    switch (node.op) {
    case Op::And: return a & b;
    case Op::Or:
    case Op::Xor: return a | b;
    case Op::Add: return (a & b) == 0 ? a | b : all;
    case Op::Shl: return isKnown ? a << number % node.type.width & all : all;
    case Op::Shr: return isKnown ? a >> number % node.type.width : all;
    case Op::Mul: return isPower ? a << std::countr_zero(number) & all : all;
    case Op::Div: return isPower ? a >> std::countr_zero(number) : all;
    case Op::Rem: return isPower ? a & (number - 1) : all;
    default: return all;
    }
  }

  NodeTable& nodes_;
  const BitBounds& below_;
  std::unordered_map<uint32_t, uint64_t> set_;  ///< by value: mayBeSet
  std::map<std::tuple<ValueId, ValueId, uint64_t>, std::optional<Rows>> rows_;
  unsigned visits_ = 0;
};

/// Do the sums tell apart all choices of the bits in them?
bool isInjective(const std::vector<Row>& rows) {
  Row used{};
  std::vector<Row> left;
  for (const Row& row : rows)
    if (!isZero(row))
      left.push_back(row);
  for (const Row& row : left)
    for (size_t leaf = 0; leaf < kMostBitLeaves; ++leaf)
      used[leaf] |= row[leaf];
  size_t columns = 0;
  for (size_t leaf = 0; leaf < kMostBitLeaves; ++leaf)
    for (uint64_t bits = used[leaf]; bits != 0; bits &= bits - 1, ++columns) {
      const uint64_t column = bits & -bits;
      const auto pivot = std::find_if(left.begin() + static_cast<std::ptrdiff_t>(columns), left.end(),
                                      [&](const Row& row) { return (row[leaf] & column) != 0; });
      if (pivot == left.end())
        return false;
      std::iter_swap(left.begin() + static_cast<std::ptrdiff_t>(columns), pivot);
      for (size_t i = columns + 1; i < left.size(); ++i)
        if (left[i][leaf] & column)
          for (size_t k = 0; k < kMostBitLeaves; ++k)
            left[i][k] ^= left[columns][k];
    }
  return true;
}

}  // namespace

std::vector<std::pair<ValueId, ValueId>>
equalByBits(NodeTable& nodes, std::span<const std::pair<ValueId, ValueId>> equal, const BitBounds& below) {
  BitMap map(nodes, below);
  std::vector<Row> rows;
  for (const auto& [first, second] : equal) {
    const auto made = map.of(first, second);
    if (!made)
      return {};
    rows.insert(rows.end(), made->begin(), made->end());
  }
  if (!map.isMixed || !isInjective(rows))
    return {};
  std::vector<std::pair<ValueId, ValueId>> out;
  for (size_t i = 0; i < map.leaves.size(); ++i) {
    uint64_t used = 0;
    for (const Row& row : rows)
      used |= row[i];
    const Leaf& leaf = map.leaves[i];
    const MachineType type = nodes.type(leaf.first);
    const uint64_t all = map.mayBeSet(leaf.first) | map.mayBeSet(leaf.second);
    if (used == 0)
      continue;
    // Of a leaf of which only some bits are used, these are equal.
    const auto taken = [&](ValueId value) {
      return used == all ? value : nodes.op(Op::And, type, value, nodes.constant(type, static_cast<__int128>(used)));
    };
    out.emplace_back(taken(leaf.first), taken(leaf.second));
  }
  return out;
}

}  // namespace vortex::lang::flow
