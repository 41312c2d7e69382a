// Expressions of an artifact as one table, and their values for a launch: every node is computed once, in one pass.
#pragma once

#include "size/expr.h"

#include <functional>
#include <map>
#include <span>
#include <vector>

namespace vortex::size {

/// The value of one expression, by recursion: for the interpreter and for tests. `argument` gives those of operators without operands.
int64_t evaluate(Expr expr, const std::function<int64_t(const Node&)>& argument);

/// An expression in a table. 0 is the constant 0 in every table.
struct Id {
  uint32_t index = 0;
  bool operator==(const Id&) const = default;
};

/// Of a row: those of the operator, or an argument's number and, for Dim and Stride, the dimension; of LaunchGrid the axis, of Device the blocks of a cluster.
constexpr uint32_t operandCount(Op op) {
  if (op == Op::LaunchGrid || op == Op::Device)
    return 1;
  return !isArgument(op) ? arity(op) : op == Op::Dim || op == Op::Stride ? 2 : 1;
}

struct Row {
  Op op = Op::Constant;
  std::array<uint32_t, 3> operands{};  ///< rows before this one, unless this is an argument
  int64_t value = 0;                   ///< Constant
  auto operator<=>(const Row&) const = default;
};

/// Rows without duplicates, operands before users.
class Table {
public:
  Table() = default;
  /// Of rows read from a file; firstBadRow() before anything else.
  explicit Table(std::vector<Row> rows) : rows_(std::move(rows)) {}

  Id add(Expr expr);
  Id constant(int64_t value) { return add(Row{.op = Op::Constant, .value = value}); }

  const std::vector<Row>& rows() const { return rows_; }
  std::optional<int64_t> constantOf(Id id) const;
  /// Nothing if every row is one that add() can make; else the first one's number.
  std::optional<size_t> firstBadRow() const;

private:
  Id add(const Row& row);
  std::vector<Row> rows_{Row{}};
  std::map<Row, uint32_t> known_;  ///< of rows_, once something was added
};

/// What a launch knows besides its slots.
struct Surroundings {
  std::array<int64_t, 3> grid{};  ///< numbers of blocks that it was given
  /// Of n + 1 blocks that the device runs at the same time.
  std::array<int64_t, kMaxClusterBlocks> clusters{1};
};

/// A table whose arguments are slots of a launch, in an order in which the known slots may grow.
class Program {
public:
  Program() = default;
  /// `slotOf` places arguments.
  Program(const Table& table, const std::function<uint32_t(const Row&)>& slotOf);

  /// Its launches must be given a grid.
  bool takesGrid() const { return !grid_.empty(); }
  /// Rows that count clusters of a device and the blocks of those.
  const std::vector<std::pair<uint32_t, uint32_t>>& clusters() const { return clusters_; }

private:
  friend class Values;
  struct Step {
    Op op;  ///< Constant: reads slot operands[0]
    uint32_t row;
    std::array<uint32_t, 3> operands;
  };
  std::vector<Step> steps_;
  std::vector<Row> rows_;
  std::vector<uint32_t> slots_;                          ///< per step: how many slots must be known
  std::vector<int64_t> initial_;                         ///< values of the constants, at their rows
  std::vector<std::pair<uint32_t, uint32_t>> grid_;      ///< rows of LaunchGrid and their axes
  std::vector<std::pair<uint32_t, uint32_t>> clusters_;  ///< rows of Device and their blocks
};

/// What the expressions of a program are for one launch.
class Values {
public:
  explicit Values(const Program& program, const Surroundings& surroundings = {});

  /// Before advance(): how many clusters of so many blocks there are.
  void setClusters(uint32_t blocks, int64_t count);

  /// Computes what depends on these slots only and was not computed yet. Slots given before keep their values.
  void advance(std::span<const uint64_t> slots);
  /// The slots from here on may be others than those given before.
  void restart() { next_ = 0; }
  int64_t operator[](Id id) const { return values_[id.index]; }
  /// Nothing if a sum, difference or product on the way, other than in what a Select does not take, did not fit 64 bits: for extents and grids, which
  /// must not wrap.
  std::optional<int64_t> exactly(Id id) const;

private:
  const Program* program_;
  std::vector<int64_t> values_;
  size_t next_ = 0;
  bool wrapped_ = false;
};

}  // namespace vortex::size
