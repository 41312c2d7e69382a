// Random expressions for tests, kept as they were written beside what the arena made of them.
#pragma once

#include "size/evaluate.h"

#include <algorithm>
#include <random>
#include <vector>

namespace vortex::size::test {

/// Arguments 0 and 1 are tensors of rank 2, argument 2 is a scalar. The launch's grid and the device's clusters stand behind them.
constexpr uint32_t kSlots = 22, kGrid = 11, kClusters = 14;

inline uint32_t slotOf(Op op, uint32_t argument, uint32_t dim) {
  if (op == Op::Scalar)
    return 10;
  if (op == Op::LaunchGrid)
    return kGrid + argument;
  if (op == Op::Device)
    return kClusters + argument - 1;
  return argument * 5 + (op == Op::Address ? 0 : op == Op::Dim ? 1 + dim : 3 + dim);
}

struct Tree {
  Op op;
  uint32_t argument = 0, dim = 0;
  int64_t value = 0;
  std::vector<Tree> operands{};

  Expr build(Arena& arena) const {
    if (op == Op::Constant)
      return arena.constant(value);
    if (arity(op) == 0)
      return arena.leaf(op, argument, dim);
    std::array<Expr, 3> made;
    for (size_t i = 0; i < operands.size(); ++i)
      made[i] = operands[i].build(arena);
    return arena.make(op, made[0], made[1], made[2]);
  }

  int64_t evaluate(const std::vector<uint64_t>& slots) const {
    if (op == Op::Constant)
      return value;
    if (arity(op) == 0)
      return static_cast<int64_t>(slots[slotOf(op, argument, dim)]);
    int64_t values[3] = {};
    for (size_t i = 0; i < operands.size(); ++i)
      values[i] = operands[i].evaluate(slots);
    return apply(op, values[0], values[1], values[2]);
  }

  /// No sum, difference or product of it wraps.
  bool isExact(const std::vector<uint64_t>& slots) const {
    for (const Tree& operand : operands)
      if (!operand.isExact(slots))
        return false;
    return operands.size() != 2 || !wraps(op, operands[0].evaluate(slots), operands[1].evaluate(slots));
  }
};

class Random {
public:
  explicit Random(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t bound) { return random_() % bound; }

  int64_t number() {
    static constexpr int64_t kFew[] = {0,
                                       1,
                                       -1,
                                       2,
                                       3,
                                       4,
                                       5,
                                       -3,
                                       7,
                                       8,
                                       16,
                                       64,
                                       100,
                                       128,
                                       1024,
                                       4096,
                                       INT64_MAX,
                                       INT64_MIN,
                                       INT64_MAX - 1,
                                       int64_t{1} << 47};
    return below(8) == 0 ? static_cast<int64_t>(random_()) : kFew[below(std::size(kFew))];
  }

  Tree tree(unsigned depth) {
    if (depth == 0 || below(6) == 0) {
      if (below(3) == 0)
        return {.op = Op::Constant, .value = number()};
      static constexpr Op kArguments[] = {Op::Dim,     Op::Dim,    Op::Dim,        Op::Stride,
                                          Op::Address, Op::Scalar, Op::LaunchGrid, Op::Device};
      const Op op = kArguments[below(std::size(kArguments))];
      const bool hasDim = op == Op::Dim || op == Op::Stride;
      return {.op = op,
              .argument = op == Op::Scalar   ? 2
                          : op == Op::Device ? 1 + static_cast<uint32_t>(below(kMaxClusterBlocks))
                                             : static_cast<uint32_t>(below(2)),
              .dim = hasDim ? static_cast<uint32_t>(below(2)) : 0};
    }
    constexpr auto kFirst = static_cast<uint64_t>(Op::Add);
    Tree result{.op = static_cast<Op>(kFirst + below(static_cast<uint64_t>(kLastOp) - kFirst + 1))};
    for (uint32_t i = 0; i < arity(result.op); ++i)  // often the same operand again: that is what rules look for
      result.operands.push_back(i > 0 && below(4) == 0 ? pick(result.operands[0]) : tree(depth - 1));
    return result;
  }

  /// What a launch can have.
  std::vector<uint64_t> slots() {
    std::vector<uint64_t> result;
    for (uint32_t slot = 0; slot < kSlots; ++slot)
      result.push_back(static_cast<uint64_t>(number()));
    for (uint32_t slot = kGrid; slot < kSlots; ++slot)
      result[slot] = below(4) == 0 ? UINT32_MAX : below(1000);
    for (uint32_t argument : {0, 1})
      for (uint32_t dim : {0, 1}) {
        static constexpr uint64_t kExtents[] = {0, 1, 2, 3, 7, 16, 64, 127, 128, 129, 4096, uint64_t{1} << 47};
        const uint64_t most = dim == 0
                                  ? uint64_t{1} << 47
                                  : (uint64_t{1} << 47) / std::max<uint64_t>(result[slotOf(Op::Dim, argument, 0)], 1);
        result[slotOf(Op::Dim, argument, dim)] =
            std::min(below(3) == 0 ? below(most + 1) : kExtents[below(std::size(kExtents))], most);
      }
    return result;
  }

private:
  Tree pick(const Tree& from) {
    return from.operands.empty() || below(2) == 0 ? from : pick(from.operands[below(from.operands.size())]);
  }

  std::mt19937_64 random_;
};

inline Surroundings surroundingsOf(const std::vector<uint64_t>& slots) {
  const auto at = [&](uint32_t slot) { return static_cast<int64_t>(slots[slot]); };
  Surroundings result{.grid = {at(kGrid), at(kGrid + 1), at(kGrid + 2)}};
  for (uint32_t i = 0; i < kMaxClusterBlocks; ++i)
    result.clusters[i] = at(kClusters + i);
  return result;
}

}  // namespace vortex::size::test
