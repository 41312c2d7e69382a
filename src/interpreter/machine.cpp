#include "interpreter/machine.h"

#include "base/memory.h"
#include "base/tensor_bytes.h"
#include "interpreter/location.h"

namespace vortex::interpreter {

/// Operations after which another block goes on: one that waits in a loop for it costs little else.
static constexpr uint64_t kTurn = 4096;

void Machine::exchange(PausedBlock& other) {
  std::swap(blockId, other.id);
  std::swap(linearBlock, other.linear);
  std::swap(warp, other.warp);
  std::swap(threadExtents, other.threadExtents);
  races.exchange(other.races);
  std::swap(copies, other.copies);
  std::swap(blockBuffers, other.buffers);
  std::swap(unwritten, other.unwritten);
  std::swap(steps, other.steps);
  std::swap(frame_, other.frame);
}

bool Machine::pause(bool (Together::*turn)()) {
  PausedBlock own;
  exchange(own);
  const bool goesOn = (together->*turn)();
  exchange(own);
  sinceTurn = 0;
  return goesOn;
}

bool Machine::execute(const Body& body) {
  for (const Node& node : body.nodes) {
    if (options.maxSteps && ++steps > options.maxSteps)
      return find(Finding::Kind::Steps, node,
                  std::string(warp ? "a warp has" : "block-level code has") + " executed " +
                      std::to_string(options.maxSteps) + " operations here and goes on",
                  {{"in " + describe(warp ? int32_t(warp->base) : kBlockThread, linearBlock) +
                        "; blocks and warps run one after another here: one that waits for another never ends",
                    {}}});
    if (together && ++sinceTurn > kTurn && !pause(&Together::pass))
      return false;
    if (hasUnwritten && !checkWritten(node))
      return false;
    if (!node.function(*this, node))
      return false;
  }
  return true;
}

/// Control flow passes tiles on; everything else uses their elements.
bool Machine::checkWritten(const Node& node) {
  if ((!node.regions.empty() && !llvm::isa<ir::ThreadsOp>(node.op)) || node.callee)
    return true;
  for (int operand : node.operands)
    if (reg(operand).unwritten)
      return find(Finding::Kind::Uninitialised, node, "a local tile is read before anything was written to it",
                  {{"in " + describe(kBlockThread, linearBlock), {}}});
  return true;
}

bool Machine::fits(const Node& node, llvm::ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return true;
  std::optional<std::string> problem = base::outOfMemory(base::fullBytes(shape, sizeof(uint64_t)));
  return !problem || find(Finding::Kind::Memory, node, *problem);
}

void Machine::assign(int target, const Value& source) {
  Value& value = reg(target);
  if (&value == &source)
    return;
  if (!warp) {
    value = source;
    return;
  }
  if (!source.views.empty()) {
    value.views.resize(kWarpSize);
    forActive([&](size_t lane) { return value.views[lane] = source.view(lane), true; });
    return;
  }
  value.cells.resize(kWarpSize);
  forActive([&](size_t lane) { return value.cells[lane] = source.cell(lane), true; });
}

void Machine::assign(llvm::ArrayRef<int> targets, llvm::ArrayRef<int> sources) {
  // All sources are read before any target changes: a loop may swap its carried values.
  llvm::SmallVector<Value, 4> copies;
  bool overlap = llvm::any_of(sources, [&](int source) { return llvm::is_contained(targets, source); });
  if (!overlap) {
    for (auto [target, source] : llvm::zip_equal(targets, sources))
      assign(target, reg(source));
    return;
  }
  for (int source : sources)
    copies.push_back(reg(source));
  for (auto [target, copy] : llvm::zip_equal(targets, copies))
    assign(target, copy);
}

bool Machine::find(Finding::Kind kind, const Node& node, std::string message, std::vector<Finding::Note> notes,
                   std::string id) {
  if (!tellUnwritten())  // what follows may come from it
    return false;
  findings_.push_back({kind, std::move(id), std::move(message), locationOf(node.op->getLoc()), std::move(notes)});
  return false;
}

bool Machine::tellUnwritten() {
  if (!unwritten)
    return true;
  findings_.push_back(std::move(unwritten->first));
  unwritten.reset();
  return false;
}

bool Machine::fail(const Node& node, const std::string& message) {
  error = toText(locationOf(node.op->getLoc())) + message;
  return false;
}

static std::string triple(int64_t x, int64_t y, int64_t z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

std::string Machine::describe(int32_t thread, uint32_t block) const {
  std::string text;
  if (thread == kBlockThread)
    text = "block-level code";
  else
    text = "thread " + triple(thread % threadExtents[0], thread / threadExtents[0] % threadExtents[1],
                              thread / threadExtents[0] / threadExtents[1]);
  int64_t x = block % grid[0], y = block / grid[0] % grid[1], z = block / grid[0] / grid[1];
  return text + " of block " + triple(x, y, z);
}

bool Machine::isSurplus(size_t lane) const {
  if (!warp)
    return false;
  int64_t linear = warp->base + int64_t(lane);
  int64_t id[3] = {linear % threadExtents[0], linear / threadExtents[0] % threadExtents[1],
                   linear / threadExtents[0] / threadExtents[1]};
  for (size_t axis = 0; axis < 3; ++axis)
    if (blockId[axis] * blockDim[axis] + id[axis] >= domain[axis])
      return true;
  return false;
}

Buffer& Machine::newBuffer() { return blockBuffers.emplace_back(); }

}  // namespace vortex::interpreter
