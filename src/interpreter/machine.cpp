#include "interpreter/machine.h"

#include "interpreter/location.h"

namespace vortex::interpreter {

bool Machine::execute(const Body& body) {
  for (const Node& node : body.nodes) {
    if (options.maxSteps && ++steps > options.maxSteps)
      return fail(node, "the run exceeds " + std::to_string(options.maxSteps) + " steps");
    if (!node.function(*this, node))
      return false;
  }
  return true;
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
  findings_.push_back({kind, std::move(id), std::move(message), locationOf(node.op->getLoc()), std::move(notes)});
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
