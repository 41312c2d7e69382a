// The oracle of the value tests: nodes evaluated for every combination of what a few leaves can be.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "lang/flow/value/value.h"

namespace vortex::lang::flow::testing {

inline constexpr MachineType kU8{8, false}, kI8{8, true};

/// A column of numbers per node: row r is the r-th combination of leaf values.
class EveryValue {
public:
  explicit EveryValue(const NodeTable& nodes) : nodes_(nodes) {}

  /// All numbers of the leaf's type, with all combinations so far.
  void add(ValueId leaf) {
    const MachineType type = nodes_.type(leaf);
    const auto count = static_cast<size_t>(type.highest() - type.lowest() + 1), before = rows_;
    for (auto& [id, column] : columns_) {
      std::vector<int64_t> next;
      for (size_t i = 0; i < count; ++i)
        next.insert(next.end(), column.begin(), column.end());
      column = std::move(next);
    }
    std::vector<int64_t>& column = columns_[leaf];
    for (size_t i = 0; i < count; ++i)
      column.insert(column.end(), before, static_cast<int64_t>(type.lowest()) + static_cast<int64_t>(i));
    rows_ = before * count;
  }

  size_t rows() const { return rows_; }

  const std::vector<int64_t>& of(ValueId value) {
    value = nodes_.resolved(value);
    if (auto found = columns_.find(value); found != columns_.end())
      return found->second;
    const Node& node = nodes_[value];
    std::vector<int64_t> result(rows_);
    if (node.kind == NodeKind::Constant) {
      std::fill(result.begin(), result.end(), static_cast<int64_t>(node.constant()));
    } else {
      const std::vector<int64_t>& a = of(nodes_.operand(value, 0));
      for (size_t row = 0; node.kind == NodeKind::Convert && row < rows_; ++row)
        result[row] = static_cast<int64_t>(node.type.wrap(a[row]));
      if (node.kind == NodeKind::Op) {
        const std::vector<int64_t>& b = of(nodes_.operand(value, 1));
        const std::vector<int64_t>& c = operandCount(node.op) == 3 ? of(nodes_.operand(value, 2)) : b;
        for (size_t row = 0; row < rows_; ++row)
          result[row] = static_cast<int64_t>(applyOp(node.op, node.type, a[row], b[row], c[row]));
      }
    }
    return columns_.emplace(value, std::move(result)).first->second;
  }

  __int128 of(const Polynomial& polynomial, size_t row) {
    __int128 sum = 0;
    for (const auto& [monomial, coefficient] : polynomial.terms()) {
      __int128 product = coefficient;
      for (ValueId leaf : monomial)
        product *= of(leaf)[row];
      sum += product;
    }
    return sum;
  }

private:
  const NodeTable& nodes_;
  std::map<ValueId, std::vector<int64_t>> columns_;
  size_t rows_ = 1;
};

/// Random expressions over given leaves: every operation, with constants where the rules look at them.
class RandomNodes {
public:
  RandomNodes(NodeTable& nodes, std::vector<ValueId> leaves, uint32_t seed)
      : nodes_(nodes), leaves_(std::move(leaves)), random_(seed) {}

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  ValueId make(MachineType type, unsigned depth) {
    if (depth == 0 || below(8) == 0)
      return below(3) == 0 ? number(type) : nodes_.convert(type, leaves_[below(leaves_.size())]);
    const auto operand = [&] { return make(type, depth - 1); };
    switch (below(14)) {
    case 0:
    case 1: return nodes_.op(Op::Add, type, operand(), number(type));
    case 2: return nodes_.op(below(2) ? Op::Add : Op::Sub, type, operand(), operand());
    case 3: return nodes_.op(Op::Mul, type, operand(), below(3) ? number(type) : operand());
    case 4: return nodes_.op(Op::Rem, type, operand(), below(4) ? number(type) : operand());
    case 5: return nodes_.op(below(3) ? Op::Div : Op::CeilDiv, type, operand(), below(4) ? number(type) : operand());
    case 6: return nodes_.op(Op::Shl, type, operand(), count(type, depth));
    case 7: return nodes_.op(Op::Shr, type, operand(), count(type, depth));
    case 8: return nodes_.op(Op::And, type, operand(), below(4) ? mask(type, depth) : operand());
    case 9: return nodes_.op(below(2) ? Op::Or : Op::Xor, type, operand(), below(3) ? operand() : number(type));
    case 10: return nodes_.op(below(2) ? Op::Min : Op::Max, type, operand(), operand());
    case 11: return nodes_.op(Op::Select, type, condition(depth - 1), operand(), operand());
    default: return nodes_.convert(type, make(anyType(), depth - 1));
    }
  }

  ValueId condition(unsigned depth) {
    const MachineType type = anyType();
    constexpr Op kComparisons[] = {Op::Lt, Op::Le, Op::Eq};
    if (below(8) == 0) {  // a power of two
      const ValueId x = make(type, depth), less = nodes_.op(Op::Sub, type, x, nodes_.constant(type, 1));
      return nodes_.op(Op::Eq, kBool, nodes_.op(Op::And, type, x, less), nodes_.constant(type, 0));
    }
    if (depth > 0 && below(5) == 0)
      return nodes_.op(below(2) ? Op::And : Op::Or, kBool, condition(depth - 1), condition(depth - 1));
    if (below(6) == 0)
      return nodes_.complement(condition(0));
    const ValueId left = make(type, depth);
    return nodes_.op(kComparisons[below(3)], kBool, left, below(2) ? number(type) : make(type, depth));
  }

  MachineType anyType() {
    constexpr MachineType kTypes[] = {{8, false},  {8, true},  {8, false}, {4, false},
                                      {16, false}, {12, true}, {6, true}};
    return kTypes[below(std::size(kTypes))];
  }

  ValueId number(MachineType type) {
    constexpr int kFew[] = {0, 1, 2, 3, 4, 5, 8, 16, -1, -2, 128, 255, 7, 10};
    return nodes_.constant(type, below(3) ? kFew[below(std::size(kFew))] : static_cast<int>(below(256)));
  }

  /// Of bits: known, or a number of few bits and a little more.
  ValueId count(MachineType type, unsigned depth) {
    const ValueId few = nodes_.constant(type, static_cast<int>(below(9)));
    if (below(2) || type.width < 4)
      return few;
    const ValueId small = nodes_.op(Op::And, type, make(type, depth - 1), nodes_.constant(type, 3));
    return below(2) ? small : nodes_.op(Op::Add, type, below(8) ? small : make(type, depth - 1), few);
  }

  /// Ones below a power of two, or all others.
  ValueId mask(MachineType type, unsigned depth) {
    const ValueId one = nodes_.constant(type, 1);
    const ValueId power = below(4) ? nodes_.op(Op::Shl, type, one, count(type, depth)) : make(type, depth - 1);
    const ValueId ones = nodes_.op(Op::Sub, type, power, one);
    return below(3) ? ones : nodes_.complement(ones);
  }

private:
  NodeTable& nodes_;
  std::vector<ValueId> leaves_;
  std::mt19937 random_;
};

}  // namespace vortex::lang::flow::testing
