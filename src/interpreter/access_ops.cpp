// Views, loads, stores and atomics.
#include "base/memory.h"
#include "interpreter/location.h"
#include "interpreter/machine.h"
#include "ir/units_of_element.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace vortex::interpreter {

using ir::Order;

static std::string nameOf(const Buffer& buffer) {
  return buffer.name.empty() ? std::string(stringifySpace(buffer.space)) + " memory" : "`" + buffer.name + "`";
}

/// "element 4 of `t`": of a thread's own array within it.
static std::string describeElement(const Buffer& buffer, int64_t element) {
  int64_t own = buffer.perThread > 0 ? element % buffer.perThread : element;
  return "element " + std::to_string(own / buffer.unitsOfElement) + " of " + nameOf(buffer);
}

bool reportOutside(Machine& machine, const Node& node, const View& view, size_t dim, int64_t index, size_t lane,
                   bool guarded) {
  const bool isPart =
      llvm::any_of(node.op->getOperands(), [](mlir::Value operand) { return operand.getDefiningOp<ir::SubviewOp>(); });
  const int64_t units = view.buffer->unitsOfElement;
  std::string message = "index " + std::to_string(llvm::divideFloorSigned(index, units)) + " is outside dimension " +
                        std::to_string(dim) + " of " + (isPart ? "a part of " : "") + nameOf(*view.buffer) +
                        ", which has extent " + std::to_string(view.extents[dim] / units);
  Finding::Note who{"in " + machine.describe(machine.threadOf(lane), machine.linearBlock) +
                        (guarded ? "; without checking the access is skipped" : ""),
                    {}};
  return machine.find(Finding::Kind::Bounds, node, message, {who});
}

static std::string accessName(bool isWrite, Atomicity atomicity) {
  return std::string(atomicity == Atomicity::None ? "" : "atomic ") + (isWrite ? "write" : "read") +
         (atomicity == Atomicity::Block ? " of block scope" : "");
}

static Atomicity atomicityOf(ir::Scope scope) {
  return scope == ir::Scope::Block ? Atomicity::Block : Atomicity::Device;
}

static bool isRaceFree(mlir::Operation* op) {
  if (auto load = llvm::dyn_cast<ir::LoadOp>(op))
    return load.getRaceFree();
  auto store = llvm::dyn_cast<ir::StoreOp>(op);
  return store && store.getRaceFree();
}

static bool reportRace(Machine& machine, const Node& node, const View& view, int64_t element,
                       const std::string& accesses, const std::string& note, mlir::Operation* other) {
  llvm::SmallVector<Finding::Note> notes = {{note, locationOf(other->getLoc())}};
  if (isRaceFree(node.op) || isRaceFree(other))
    notes.push_back({"the compiler has proven that no other thread meets one of these accesses: "
                     "either tensors of the launch overlap, or this is an error of the compiler",
                     {}});
  if (machine.unwritten && machine.unwritten->addresses.contains(view.buffer->address(element)))
    machine.unwritten.reset();
  return machine.find(Finding::Kind::Race, node, "race on " + describeElement(*view.buffer, element) + ": " + accesses,
                      {notes.begin(), notes.end()});
}

static bool checkIterations(Machine& machine, const Node& node, const View& view, int64_t element, bool isWrite,
                            Atomicity atomicity) {
  for (IterationRaces* loop : machine.claimed)
    if (auto earlier = loop->access(view.buffer->address(element), node.op, isWrite, atomicity))
      return reportRace(machine, node, view, element,
                        accessName(isWrite, atomicity) + " in iteration " + std::to_string(loop->iteration()) +
                            " and " + accessName(earlier->isWrite, earlier->atomicity) + " in iteration " +
                            std::to_string(earlier->thread) + " of a `@parallel` loop",
                        "the other access; iterations are unordered", earlier->op);
  return true;
}

static bool checkRace(Machine& machine, const Node& node, const View& view, int64_t element, size_t lane, bool isWrite,
                      Atomicity atomicity) {
  ir::Space space = view.buffer->space;
  if (space == ir::Space::Local || space == ir::Space::Constant)
    return true;
  if (!machine.checkRaces)
    return checkIterations(machine, node, view, element, isWrite, atomicity);
  if (node.isRaceFree && machine.options.trustsProofs)
    return true;
  if (!isWrite && space == ir::Space::Global && machine.isSurplus(lane))
    return true;  // no result depends on it, or the threads of the domain race as well
  int32_t thread = machine.threadOf(lane);
  auto own = [&] { return accessName(isWrite, atomicity) + " by " + machine.describe(thread, machine.linearBlock); };
  if (const CopiesInFlight::Use* copy = machine.copies.find(view.buffer->address(element), isWrite))
    return reportRace(machine, node, view, element,
                      own() + " and a copy in flight that " + (copy->isWrite ? "writes" : "reads") + " it",
                      "the copy; the `sync_block()` that completes it is not between", copy->op);
  auto conflict = machine.races.access(view.buffer->address(element), thread, node.op, isWrite, atomicity,
                                       space == ir::Space::Global);
  if (!conflict)
    return true;
  const Access& earlier = conflict->earlier;
  return reportRace(machine, node, view, element,
                    own() + " and " + accessName(earlier.isWrite, earlier.atomicity) + " by " +
                        machine.describe(earlier.thread, earlier.block),
                    conflict->acrossBlocks ? "the other access; blocks are unordered"
                                           : "the other access; no barrier is between them",
                    earlier.op);
}

bool checkElement(Machine& machine, const Node& node, const View& view, int64_t element, size_t lane, bool isWrite,
                  Atomicity atomicity) {
  if (!machine.options.check)
    return true;
  Buffer& buffer = *view.buffer;
  bool reads = !isWrite || llvm::isa<ir::AtomicRmwOp, ir::AtomicCasOp>(node.op);
  if (reads && !buffer.written.empty() && !buffer.written[size_t(element)]) {
    const Finding::Note who{"in " + machine.describe(machine.threadOf(lane), machine.linearBlock), {}};
    const std::string message = describeElement(buffer, element) + " is read before anything was written to it";
    if (!machine.checkRaces || !machine.inThreads() || buffer.space == ir::Space::Local)
      return machine.find(Finding::Kind::Uninitialised, node, message, {who});
    if (!machine.unwritten)
      machine.unwritten = {{Finding::Kind::Uninitialised, {}, message, locationOf(node.op->getLoc()), {who}}, {}};
    machine.unwritten->addresses.insert(buffer.address(element));
  }
  return checkRace(machine, node, view, element, lane, isWrite, atomicity);
}

namespace {

/// Where an access of one lane goes.
struct Target {
  enum class State : uint8_t { Inside, Skipped, Stopped } state = State::Stopped;
  const View* view = nullptr;
  int64_t element = 0;
};

Target resolve(Machine& machine, const Node& node, size_t lane) {
  if (node.maskRegister >= 0 && !machine.cell(node.maskRegister, lane))
    return {Target::State::Skipped};
  const View& view = machine.reg(node.viewRegister).view(lane);
  int64_t flat = view.offset;
  for (size_t dim = 0; dim < node.indices.size(); ++dim) {
    int64_t index = machine.integer(node.indices[dim], lane);
    if (uint64_t(index) >= uint64_t(view.extents[dim])) {
      if (node.guarded && (!machine.options.check || machine.isSurplus(lane)))
        return {Target::State::Skipped};
      reportOutside(machine, node, view, dim, index, lane, node.guarded);
      return {};
    }
    flat += index * view.strides[dim];
  }
  int64_t element = view.element(flat, std::max<int32_t>(machine.threadOf(lane), 0));
  if (!view.buffer->storage.empty() && !view.buffer->holds(element)) {
    machine.fail(
        node,
        "an access leaves its allocation: the thread region has more threads than the block, or a swizzle is too wide");
    return {};
  }
  return {Target::State::Inside, &view, element};
}

/// Runs f(lane, buffer, element, result) on every lane whose access happens; others get 0.
template <typename F> bool accessAll(Machine& machine, const Node& node, bool isWrite, Atomicity atomicity, F f) {
  uint64_t* out = node.results.empty() ? nullptr : machine.scalarResult(node.results[0]);
  return machine.forActive([&](size_t lane) {
    uint64_t unused = 0, &result = out ? out[lane] : unused;
    result = 0;
    Target target = resolve(machine, node, lane);
    if (target.state != Target::State::Inside)
      return target.state == Target::State::Skipped;
    if (!checkElement(machine, node, *target.view, target.element, lane, isWrite, atomicity))
      return false;
    f(lane, *target.view->buffer, target.element, result);
    return true;
  });
}

bool load(Machine& machine, const Node& node) {
  return accessAll(machine, node, false, Atomicity::None,
                   [](size_t, Buffer& buffer, int64_t element, uint64_t& result) { result = buffer.load(element); });
}

bool store(Machine& machine, const Node& node) {
  return accessAll(machine, node, true, Atomicity::None, [&](size_t lane, Buffer& buffer, int64_t element, uint64_t&) {
    buffer.store(element, machine.cell(node.valueRegister, lane));
  });
}

/// Release before the operation, acquire after it, in check mode.
template <typename F> bool ordered(Machine& machine, Order order, ir::Scope scope, F f) {
  bool check = machine.checkRaces, acrossBlocks = scope != ir::Scope::Block;
  auto each = [&](auto sync) { machine.forActive([&](size_t lane) { return sync(machine.threadOf(lane)), true; }); };
  if (check && (order == Order::Release || order == Order::AcqRel))
    each([&](int32_t thread) { machine.races.release(thread, acrossBlocks); });
  bool completed = f();
  if (check && (order == Order::Acquire || order == Order::AcqRel))
    each([&](int32_t thread) { machine.races.acquire(thread, acrossBlocks); });
  return completed;
}

bool atomicRmw(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::AtomicRmwOp>(node.op);
  Element type = *elementOf(op.getValue().getType());
  ir::Combine kind = op.getKind();
  return ordered(machine, op.getOrder(), op.getScope(), [&] {
    return accessAll(machine, node, true, atomicityOf(op.getScope()),
                     [&](size_t lane, Buffer& buffer, int64_t element, uint64_t& result) {
                       result = buffer.load(element);
                       buffer.store(element, combine(kind, type, result, machine.cell(node.valueRegister, lane), true));
                     });
  });
}

bool atomicCas(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::AtomicCasOp>(node.op);
  return ordered(machine, op.getOrder(), op.getScope(), [&] {
    return accessAll(machine, node, true, atomicityOf(op.getScope()),
                     [&](size_t lane, Buffer& buffer, int64_t element, uint64_t& result) {
                       result = buffer.load(element);
                       if (result == machine.cell(node.operands[0], lane))
                         buffer.store(element, machine.cell(node.operands[1], lane));
                     });
  });
}

bool atomicLoad(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::AtomicLoadOp>(node.op);
  return ordered(machine, op.getOrder(), op.getScope(), [&] {
    return accessAll(machine, node, false, atomicityOf(op.getScope()),
                     [](size_t, Buffer& buffer, int64_t element, uint64_t& result) { result = buffer.load(element); });
  });
}

bool atomicStore(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::AtomicStoreOp>(node.op);
  return ordered(machine, op.getOrder(), op.getScope(), [&] {
    return accessAll(machine, node, true, atomicityOf(op.getScope()),
                     [&](size_t lane, Buffer& buffer, int64_t element, uint64_t&) {
                       buffer.store(element, machine.cell(node.valueRegister, lane));
                     });
  });
}

bool alloc(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::AllocOp>(node.op);
  ir::ViewType type = op.getResult().getType();
  Element element = *elementOf(type.getElementType());
  bool isLocal = type.getSpace() == ir::Space::Local;
  int64_t threads = machine.blockDim[0] * machine.blockDim[1] * machine.blockDim[2];
  int64_t instances = !isLocal ? 1 : machine.inThreads() ? int64_t(kWarpSize) : std::max<int64_t>(threads, 1);
  Buffer& buffer = machine.newBuffer();
  buffer.elementBytes = element.bytes();
  buffer.space = type.getSpace();
  buffer.name = op.getName().value_or("").str();
  if (auto units = op->getAttrOfType<mlir::IntegerAttr>(ir::kUnitsOfElement))
    buffer.unitsOfElement = units.getInt();
  buffer.perThread = isLocal ? type.numElements() : 0;
  int64_t bytes = type.numElements() * instances * (int64_t(element.bytes()) + machine.options.check);
  if (std::optional<std::string> problem = base::outOfMemory(static_cast<unsigned __int128>(bytes)))
    return machine.find(Finding::Kind::Memory, node, *problem);
  buffer.allocate(size_t(type.numElements() * instances), machine.options.check);
  View view;
  view.buffer = &buffer;
  view.extents.assign(type.getShape().begin(), type.getShape().end());
  view.strides = type.isColMajor() ? columnMajorStrides(type.getShape()) : rowMajorStrides(type.getShape());
  view.swizzle = type.getSwizzle();
  Value& result = machine.reg(node.results[0]);
  if (isLocal)
    view.threadStride = type.numElements();
  if (!isLocal || !machine.inThreads()) {
    result.views.assign(1, view);
    return true;
  }
  // Instances by lane: counter the thread id that an access adds.
  view.threadStride = 0;
  result.views.assign(kWarpSize, view);
  for (size_t lane = 0; lane < kWarpSize; ++lane)
    result.views[lane].offset = int64_t(lane) * type.numElements();
  return true;
}

bool dim(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::DimOp>(node.op);
  uint64_t* out = machine.scalarResult(node.results[0]);
  return machine.forActive([&](size_t lane) {
    out[lane] = uint64_t(machine.reg(node.operands[0]).view(lane).extents[size_t(op.getDim())]);
    return true;
  });
}

bool subviewOfLane(Machine& machine, const Node& node, ir::SubviewOp op, const View& source, View& result,
                   size_t lane) {
  size_t rank = source.extents.size(), nextSize = 1 + rank, nextDim = 0;
  llvm::ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  result = source;
  result.extents.clear();
  result.strides.clear();
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t offset = machine.integer(node.operands[1 + dim], lane), extent = 1;
    if (!llvm::is_contained(op.getDropped(), int64_t(dim))) {
      extent = shape[nextDim++];
      if (mlir::ShapedType::isDynamic(extent))
        extent = machine.integer(node.operands[nextSize++], lane);
      result.extents.push_back(extent);
      result.strides.push_back(source.strides[dim]);
    }
    if (extent < 0 || (extent > 0 && (offset < 0 || offset > source.extents[dim] - extent)))
      return reportOutside(machine, node, source, dim, offset < 0 ? offset : offset + std::max<int64_t>(extent, 1) - 1,
                           lane, false);
    result.offset += extent == 0 ? 0 : offset * source.strides[dim];
  }
  return true;
}

bool subview(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::SubviewOp>(node.op);
  const Value& source = machine.reg(node.operands[0]);
  Value& result = machine.reg(node.results[0]);
  result.views.resize(machine.lanes());
  return machine.forActive(
      [&](size_t lane) { return subviewOfLane(machine, node, op, source.view(lane), result.views[lane], lane); });
}

}  // namespace

NodeFunction findAccessFunction(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, NodeFunction>(op)
      .Case<ir::LoadOp>([](auto) { return load; })
      .Case<ir::StoreOp>([](auto) { return store; })
      .Case<ir::AtomicRmwOp>([](auto) { return atomicRmw; })
      .Case<ir::AtomicCasOp>([](auto) { return atomicCas; })
      .Case<ir::AtomicLoadOp>([](auto) { return atomicLoad; })
      .Case<ir::AtomicStoreOp>([](auto) { return atomicStore; })
      .Case<ir::AllocOp>([](auto) { return alloc; })
      .Case<ir::DimOp>([](auto) { return dim; })
      .Case<ir::SubviewOp>([](auto) { return subview; })
      .Default([](auto) { return nullptr; });
}

}  // namespace vortex::interpreter
