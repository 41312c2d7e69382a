// Thread regions, warps, barriers, grid values, assertions and printing.
#include "interpreter/machine.h"

#include "base/number_text.h"
#include "ir/barrier_memory.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace vortex::interpreter {

namespace {

//===-- thread regions ----------------------------------------------------------------------------------------===//

/// Thread ids and the lanes' elements of `ins` for one warp.
void bindWarp(Machine& machine, const Node& node, const Warp& warp) {
  const Body& body = node.regions[0];
  const int64_t* extents = machine.threadExtents;
  uint64_t* ids[4];
  for (int i = 0; i < 4; ++i)
    ids[i] = machine.scalarResult(body.arguments[size_t(i)]);
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    int64_t linear = warp.base + int64_t(lane);
    ids[0][lane] = uint64_t(linear % extents[0]);
    ids[1][lane] = uint64_t(linear / extents[0] % extents[1]);
    ids[2][lane] = uint64_t(linear / extents[0] / extents[1]);
    ids[3][lane] = uint64_t(linear);
  }
  for (size_t input = 4; input < body.arguments.size(); ++input) {
    const Value& tile = machine.reg(node.operands[input - 1]);  // operands: nx, ny, nz, inputs
    uint64_t* cells = machine.scalarResult(body.arguments[input]);
    for (size_t lane = 0; lane < kWarpSize; ++lane)
      cells[lane] = warp.present >> lane & 1 ? tile.cells[size_t(warp.base) + lane] : 0;
  }
}

bool checkThreadTiles(Machine& machine, const Node& node, int64_t count) {
  for (size_t operand = 3; operand < node.operands.size(); ++operand)
    if (machine.reg(node.operands[operand]).cells.size() != size_t(count))
      return machine.find(Finding::Kind::Shape, node,
                          "input " + std::to_string(operand - 3) + " of the thread region has " +
                              std::to_string(machine.reg(node.operands[operand]).cells.size()) + " elements for " +
                              std::to_string(count) + " threads");
  return true;
}

bool runThreads(Machine& machine, const Node& node) {
  const Body& body = node.regions[0];
  int64_t count = 1;
  for (int i = 0; i < 3; ++i)
    count *= machine.threadExtents[i] = machine.integer(node.operands[size_t(i)]);
  if (count < 0 || count > INT32_MAX)
    return machine.fail(node, "a thread region with " + std::to_string(count) + " threads");
  if (!checkThreadTiles(machine, node, count))
    return false;
  for (int result : node.results) {
    machine.reg(result).cells.resize(size_t(count));
    machine.reg(result).shape = {count};
  }
  std::vector<int64_t> order(size_t(count + kWarpSize - 1) / kWarpSize);
  std::iota(order.begin(), order.end(), 0);
  if (machine.options.seed)
    std::shuffle(order.begin(), order.end(), machine.random);
  for (int64_t number : order) {
    Warp warp{number * int64_t(kWarpSize)};
    int64_t present = std::min<int64_t>(count - warp.base, kWarpSize);
    warp.present = warp.active = present == kWarpSize ? ~0u : (1u << present) - 1;
    machine.warp = &warp;
    bindWarp(machine, node, warp);
    size_t buffers = machine.blockBuffers.size();
    uint64_t outer = std::exchange(machine.steps, 0);
    bool completed = machine.execute(body);
    machine.steps = outer;
    machine.blockBuffers.resize(buffers);  // memory allocated inside the region ends with it
    machine.warp = nullptr;
    if (!completed)
      return false;
    for (auto [result, yield] : llvm::zip_equal(node.results, body.yields))
      for (int64_t lane = 0; lane < present; ++lane)
        machine.reg(result).cells[size_t(warp.base + lane)] = machine.cell(yield, size_t(lane));
  }
  return true;
}

bool runBarrier(Machine& machine, const Node& node) {
  if (!machine.tellUnwritten())
    return false;
  if (machine.checkRaces) {
    const auto ordered = node.op->getAttrOfType<mlir::StringAttr>(ir::kOrderedMemoryAttr);
    machine.races.barrier(!ordered || ordered.getValue() == "shared", !ordered || ordered.getValue() == "global");
    machine.copies.barrier();
  }
  return !llvm::cast<ir::BarrierOp>(node.op).getGrid() || machine.pause(&Together::meet);
}

template <typename Op, typename F> bool gridValue(Machine& machine, const Node& node, F value) {
  uint64_t* out = machine.scalarResult(node.results[0]);
  std::fill_n(out, machine.lanes(), uint64_t(value(size_t(llvm::cast<Op>(node.op).getAxis()))));
  return true;
}
bool blockId(Machine& machine, const Node& node) {
  return gridValue<ir::BlockIdOp>(machine, node, [&](size_t axis) { return machine.blockId[axis]; });
}
bool gridDim(Machine& machine, const Node& node) {
  return gridValue<ir::GridDimOp>(machine, node, [&](size_t axis) { return machine.grid[axis]; });
}
bool blockDim(Machine& machine, const Node& node) {
  return gridValue<ir::BlockDimOp>(machine, node, [&](size_t axis) { return machine.blockDim[axis]; });
}

//===-- warps -------------------------------------------------------------------------------------------------===//

bool checkConverged(Machine& machine, const Node& node) {
  const Warp& warp = *machine.warp;
  if (!machine.options.check || warp.active == warp.present)
    return true;
  auto missing = size_t(std::countr_zero(warp.present & ~warp.active));
  return machine.find(Finding::Kind::Divergence, node,
                      "a warp operation is reached by " + std::to_string(std::popcount(warp.active)) +
                          " of the warp's " + std::to_string(std::popcount(warp.present)) + " threads",
                      {{machine.describe(machine.threadOf(missing), machine.linearBlock) + " does not reach it", {}}});
}

bool warpBarrier(Machine& machine, const Node& node) {
  if (!checkConverged(machine, node))
    return false;
  if (machine.checkRaces)
    machine.races.warpBarrier(int32_t(machine.warp->base / kWarpSize));
  return true;
}

/// Threads run one after another: what happens is in order. Races are found as with atomics of that order.
bool fence(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::FenceOp>(node.op);
  if (!machine.checkRaces)
    return true;
  const bool acrossBlocks = op.getScope() != ir::Scope::Block;
  machine.forActive([&](size_t lane) {
    const int32_t thread = machine.threadOf(lane);
    if (op.getOrder() != ir::Order::Acquire)
      machine.races.release(thread, acrossBlocks);
    if (op.getOrder() != ir::Order::Release)
      machine.races.acquire(thread, acrossBlocks);
    return true;
  });
  return true;
}

bool warpShuffle(Machine& machine, const Node& node) {
  if (!checkConverged(machine, node))
    return false;
  ir::ShuffleKind kind = llvm::cast<ir::WarpShuffleOp>(node.op).getKind();
  uint64_t* out = machine.scalarResult(node.results[0]);
  return machine.forActive([&](size_t lane) {
    int64_t operand = signExtend(machine.cell(node.operands[1], lane), 32), own = int64_t(lane);
    int64_t source = kind == ir::ShuffleKind::Xor    ? own ^ operand
                     : kind == ir::ShuffleKind::Up   ? own - operand
                     : kind == ir::ShuffleKind::Down ? own + operand
                                                     : operand;
    bool valid = source >= 0 && source < int64_t(kWarpSize) && (machine.warp->active >> source & 1);
    out[lane] = machine.cell(node.operands[0], valid ? size_t(source) : lane);
    return true;
  });
}

bool warpReduce(Machine& machine, const Node& node) {
  if (!checkConverged(machine, node))
    return false;
  auto op = llvm::cast<ir::WarpReduceOp>(node.op);
  Element element = *elementOf(op.getValue().getType());
  uint64_t cells[kWarpSize], next[kWarpSize];
  std::fill_n(cells, kWarpSize, neutral(op.getKind(), op.getValue().getType()));
  machine.forActive([&](size_t lane) { return cells[lane] = machine.cell(node.operands[0], lane), true; });
  for (size_t distance = kWarpSize / 2; distance; distance /= 2) {
    for (size_t lane = 0; lane < kWarpSize; ++lane)
      next[lane] = combine(op.getKind(), element, cells[lane], cells[lane ^ distance]);
    std::copy_n(next, kWarpSize, cells);
  }
  uint64_t* out = machine.scalarResult(node.results[0]);
  return machine.forActive([&](size_t lane) { return out[lane] = cells[lane], true; });
}

bool warpVote(Machine& machine, const Node& node) {
  if (!checkConverged(machine, node))
    return false;
  uint32_t votes = 0, active = machine.active();
  machine.forActive(
      [&](size_t lane) { return votes |= uint32_t(machine.cell(node.operands[0], lane) & 1) << lane, true; });
  ir::VoteKind kind = llvm::cast<ir::WarpVoteOp>(node.op).getKind();
  uint64_t result = kind == ir::VoteKind::Any ? votes != 0 : kind == ir::VoteKind::All ? votes == active : votes;
  uint64_t* out = machine.scalarResult(node.results[0]);
  return machine.forActive([&](size_t lane) { return out[lane] = result, true; });
}

//===-- debugging ---------------------------------------------------------------------------------------------===//

std::string showCell(Element element, uint64_t bits, bool isUnsigned) {
  if (element.format == Format::F64)
    return base::floatText(std::bit_cast<double>(bits));
  if (element.isFloat())  // narrower formats print as the float they equal
    return base::floatText(float(decode(element.format, bits)));
  if (element.width == 1)
    return bits ? "true" : "false";
  return isUnsigned ? std::to_string(bits) : std::to_string(signExtend(bits, element.width));
}

/// The text of one lane; `first`: the operand that the first value is. Where there are values, `{{` and `}}` are braces.
std::string formatted(Machine& machine, const Node& node, llvm::StringRef format, mlir::ValueRange values,
                      llvm::ArrayRef<bool> isUnsigned, size_t first, size_t lane) {
  if (values.empty())
    return format.str();
  std::string text;
  for (size_t next = 0; !format.empty();) {
    const llvm::StringRef pair = format.take_front(2);
    if (pair == "{}" && next < values.size()) {
      const mlir::Type type = values[next].getType();
      text += showCell(*elementOf(type), machine.cell(node.operands[first + next], lane),
                       next < isUnsigned.size() ? isUnsigned[next] : type.isIndex());
      ++next;
    } else {
      text += format.front();
    }
    format = format.drop_front(pair == "{}" || pair == "{{" || pair == "}}" ? 2 : 1);
  }
  return text;
}

bool assertion(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::AssertOp>(node.op);
  return machine.forActive([&](size_t lane) {
    if (machine.cell(node.operands[0], lane))
      return true;
    Finding::Note who{"in " + machine.describe(machine.threadOf(lane), machine.linearBlock), {}};
    return machine.find(Finding::Kind::Assertion, node,
                        formatted(machine, node, op.getMessage(), op.getValues(), op.getIsUnsigned(), 1, lane), {who},
                        op.getId().str());
  });
}

bool print(Machine& machine, const Node& node) {
  if (!machine.options.print)
    return true;
  auto op = llvm::cast<ir::PrintOp>(node.op);
  return machine.forActive([&](size_t lane) {
    machine.options.print(formatted(machine, node, op.getFormat(), op.getValues(), op.getIsUnsigned(), 0, lane));
    return true;
  });
}

}  // namespace

NodeFunction findThreadFunction(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, NodeFunction>(op)
      .Case<ir::ThreadsOp>([](auto) { return runThreads; })
      .Case<ir::BarrierOp>([](auto) { return runBarrier; })
      .Case<ir::BlockIdOp>([](auto) { return blockId; })
      .Case<ir::GridDimOp>([](auto) { return gridDim; })
      .Case<ir::BlockDimOp>([](auto) { return blockDim; })
      .Case<ir::WarpBarrierOp>([](auto) { return warpBarrier; })
      .Case<ir::FenceOp>([](auto) { return fence; })
      .Case<ir::WarpShuffleOp>([](auto) { return warpShuffle; })
      .Case<ir::WarpReduceOp>([](auto) { return warpReduce; })
      .Case<ir::WarpVoteOp>([](auto) { return warpVote; })
      .Case<ir::AssertOp>([](auto) { return assertion; })
      .Case<ir::PrintOp>([](auto) { return print; })
      .Default([](auto) { return nullptr; });
}

}  // namespace vortex::interpreter
