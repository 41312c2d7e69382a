#include "size/evaluate.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace vortex::size {

int64_t evaluate(Expr expr, const std::function<int64_t(const Node&)>& argument) {
  return fold<int64_t>(expr, [&](const Node& node, const std::array<int64_t, 3>& operands) {
    if (node.op == Op::Constant)
      return node.value;
    return arity(node.op) == 0 ? argument(node) : apply(node.op, operands[0], operands[1], operands[2]);
  });
}

//===-- Table -------------------------------------------------------------------------------------------------===//

Id Table::add(const Row& row) {
  if (known_.empty())
    for (const Row& each : rows_)
      known_.emplace(each, static_cast<uint32_t>(known_.size()));
  auto [place, isNew] = known_.try_emplace(row, static_cast<uint32_t>(rows_.size()));
  if (isNew)
    rows_.push_back(row);
  return {place->second};
}

Id Table::add(Expr expr) {
  return fold<Id>(expr, [&](const Node& node, const std::array<Id, 3>& operands) {
    Row row{.op = node.op, .operands = {node.argument, node.dim, 0}, .value = node.value};
    for (uint32_t i = 0; i < arity(node.op); ++i)
      row.operands[i] = operands[i].index;
    return add(row);
  });
}

std::optional<int64_t> Table::constantOf(Id id) const {
  const Row& row = rows_[id.index];
  return row.op == Op::Constant ? std::optional(row.value) : std::nullopt;
}

std::optional<size_t> Table::firstBadRow() const {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if ((row.op == Op::LaunchGrid && row.operands[0] > 2) ||
        (row.op == Op::Device && row.operands[0] - 1 >= kMaxClusterBlocks))
      return i;
    if (row.op > kLastOp || (row.op != Op::Constant && row.value != 0) || (i == 0 && row != Row{}))
      return i;
    for (uint32_t k = 0; k < 3; ++k)
      if (k >= operandCount(row.op) ? row.operands[k] != 0 : arity(row.op) != 0 && row.operands[k] >= i)
        return i;
  }
  return rows_.empty() ? std::optional<size_t>(0) : std::nullopt;
}

//===-- Program -----------------------------------------------------------------------------------------------===//

Program::Program(const Table& table, const std::function<uint32_t(const Row&)>& slotOf) {
  struct Placed {
    uint32_t slots;
    Step step;
  };
  std::vector<Placed> placed;
  std::vector<uint32_t> needed;  // slots, per row
  for (const Row& row : table.rows()) {
    const auto number = static_cast<uint32_t>(needed.size());
    initial_.push_back(row.value);
    uint32_t slots = 0;
    if (isArgument(row.op)) {
      const uint32_t slot = slotOf(row);
      slots = slot + 1;
      placed.push_back({slots, {Op::Constant, number, {slot, 0, 0}}});
    } else if (row.op == Op::LaunchGrid) {
      grid_.emplace_back(number, row.operands[0]);
    } else if (row.op == Op::Device) {
      clusters_.emplace_back(number, row.operands[0]);
    } else if (row.op != Op::Constant) {
      for (uint32_t k = 0; k < arity(row.op); ++k)
        slots = std::max(slots, needed[row.operands[k]]);
      placed.push_back({slots, {row.op, number, row.operands}});
    }
    needed.push_back(slots);
  }
  rows_ = table.rows();
  // An operand never needs more slots than its user, so this order is one of evaluation too.
  std::ranges::sort(placed, {}, [](const Placed& each) { return std::pair(each.slots, each.step.row); });
  for (const Placed& each : placed) {
    steps_.push_back(each.step);
    slots_.push_back(each.slots);
  }
}

//===-- Values ------------------------------------------------------------------------------------------------===//

Values::Values(const Program& program, const Surroundings& surroundings)
    : program_(&program), values_(program.initial_) {
  for (auto [row, axis] : program.grid_)
    values_[row] = surroundings.grid[axis];
  for (auto [row, blocks] : program.clusters_)
    values_[row] = surroundings.clusters[blocks - 1];
}

void Values::setClusters(uint32_t blocks, int64_t count) {
  for (auto [row, each] : program_->clusters_)
    if (each == blocks)
      values_[row] = count;
}

void Values::advance(std::span<const uint64_t> slots) {
  int64_t* values = values_.data();
  for (; next_ < program_->steps_.size() && program_->slots_[next_] <= slots.size(); ++next_) {
    const Program::Step& step = program_->steps_[next_];
    if (step.op == Op::Constant) {
      values[step.row] = static_cast<int64_t>(slots[step.operands[0]]);
      continue;
    }
    const int64_t a = values[step.operands[0]], b = values[step.operands[1]], c = values[step.operands[2]];
    wrapped_ |= wraps(step.op, a, b);
    values[step.row] = apply(step.op, a, b, c);
  }
}

std::optional<int64_t> Values::exactly(Id id) const {
  const int64_t value = values_[id.index];
  if (!wrapped_)
    return value;
  // Rare, and rows that sizes of memory use are among the first: look at all that may be below this one.
  std::vector<bool> wrapped(id.index + 1);
  for (size_t i = 0; i <= id.index; ++i) {
    const Row& row = program_->rows_[i];
    const auto [a, b, c] = row.operands;
    if (row.op == Op::Select)
      wrapped[i] = wrapped[a] || wrapped[values_[a] ? b : c];
    else if (arity(row.op) != 0)
      wrapped[i] = wraps(row.op, values_[a], values_[b]) || wrapped[a] || wrapped[b] || wrapped[c];
  }
  return wrapped[id.index] ? std::nullopt : std::optional(value);
}

}  // namespace vortex::size
