// Pointwise operations on everything, and the tile operations that move elements.
#include "interpreter/machine.h"
#include "interpreter/tile_walk.h"
#include "ir/guarded_slice.h"
#include "ir/vx_checked.h"

#include "llvm/ADT/TypeSwitch.h"

#include <optional>

namespace vortex::interpreter {

bool newTile(Machine& machine, const Node& node, size_t firstSize, Shape& shape) {
  auto type = llvm::cast<mlir::RankedTensorType>(node.op->getResult(0).getType());
  shape.clear();
  for (int64_t extent : type.getShape()) {
    if (mlir::ShapedType::isDynamic(extent))
      extent = machine.integer(node.operands[firstSize++]);
    if (extent < 0)
      return machine.find(Finding::Kind::Shape, node, "a tile has the negative extent " + std::to_string(extent));
    shape.push_back(extent);
  }
  if (!machine.fits(node, shape))
    return false;
  Value& result = machine.reg(node.results[0]);
  result.shape = shape;
  result.cells.resize(elementCount(shape));
  return true;
}

static std::string showShape(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (int64_t extent : shape)
    text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

bool reportShape(Machine& machine, const Node& node, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  return machine.find(Finding::Kind::Shape, node,
                      "the extents " + showShape(a) + " and " + showShape(b) + " do not fit");
}

namespace {

//===-- pointwise ---------------------------------------------------------------------------------------------===//

bool wraps(mlir::Operation* op, Element element, bool isSigned, uint64_t a, uint64_t b) {
  auto wide = [&](uint64_t bits) { return isSigned ? (__int128)signExtend(bits, element.width) : (__int128)bits; };
  __int128 exact = 0;
  if (llvm::isa<ir::CheckedMulOp>(op)) {
    if (__builtin_mul_overflow(wide(a), wide(b), &exact))
      return true;
  } else {
    exact = llvm::isa<ir::CheckedAddOp>(op) ? wide(a) + wide(b) : wide(a) - wide(b);
  }
  return exact != wide(uint64_t(exact) & element.mask());
}

/// Fills the call of a node and makes room for its results; false: the run stops.
bool prepare(Machine& machine, const Node& node, ElementCall& call) {
  call.from = node.kernel.from;
  call.to = node.kernel.to;
  call.detail = node.kernel.detail;
  call.count = machine.lanes();
  const Value* tile = nullptr;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Value& operand = machine.reg(node.operands[i]);
    bool isTile = !machine.inThreads() && llvm::isa<mlir::TensorType>(node.op->getOperand(unsigned(i)).getType());
    if (isTile && tile && tile->shape != operand.shape)
      return reportShape(machine, node, tile->shape, operand.shape);
    if (isTile)
      tile = &operand;
    call.in[i] = operand.cells.data();
    call.step[i] = operand.cells.size() == 1 ? 0 : 1;
  }
  if (tile)
    call.count = tile->cells.size();
  for (size_t i = 0; i < node.results.size(); ++i) {
    Value& result = machine.reg(node.results[i]);
    result.cells.resize(call.count);
    if (tile)
      result.shape = tile->shape;
    call.out[i] = result.cells.data();
  }
  return true;
}

bool pointwise(Machine& machine, const Node& node) {
  ElementCall call;
  if (!prepare(machine, node, call))
    return false;
  node.kernel.function(call);
  return true;
}

bool checkedPointwise(Machine& machine, const Node& node) {
  ElementCall call;
  if (!prepare(machine, node, call))
    return false;
  const bool isSigned = !node.kernel.detail;
  for (size_t i = 0; machine.options.check && machine.options.overflow && i < call.count; ++i) {
    bool isActive = !machine.inThreads() || (machine.active() >> i & 1);
    if (isActive && wraps(node.op, call.from, isSigned, call.operand(0, i), call.operand(1, i)))
      return machine.find(Finding::Kind::Overflow, node,
                          "integer overflow: the result does not fit " + std::to_string(call.from.width) +
                              " bits and wraps");
  }
  node.kernel.function(call);
  return true;
}

//===-- memory ------------------------------------------------------------------------------------------------===//

using Place = std::optional<int64_t>;  ///< the element of a buffer; nothing: outside

/// Calls f(cell number, element or nothing outside) for every element of a tile at offsets of a view. Elements of views with negative strides
/// lie before the view's first.
template <typename F>
bool walkView(Machine& machine, const Node& node, const View& view, llvm::ArrayRef<int64_t> shape,
              llvm::ArrayRef<int64_t> offsets, bool inbounds, F f) {
  return walk(shape, [&](size_t number, llvm::ArrayRef<int64_t> index) {
    int64_t flat = view.offset;
    bool inside = true;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t position = offsets[dim] + index[dim];
      if (position < 0 || position >= view.extents[dim]) {
        if (inbounds)
          return reportOutside(machine, node, view, dim, position, 0, false);
        inside = false;
      }
      flat += position * view.strides[dim];
    }
    return f(number, inside ? std::optional(view.element(flat, 0)) : std::nullopt);
  });
}

Shape operandIntegers(Machine& machine, const Node& node, size_t first, size_t count) {
  Shape values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(machine.integer(node.operands[first + i]));
  return values;
}

bool tileLoad(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::TileLoadOp>(node.op);
  size_t rank = op.getOffsets().size();
  Shape shape, offsets = operandIntegers(machine, node, 1, rank);
  if (!newTile(machine, node, 1 + rank, shape))
    return false;
  uint64_t other = op.getOther() ? machine.cell(node.operands.back()) : 0;
  const View& view = machine.reg(node.operands[0]).views[0];
  Value& result = machine.reg(node.results[0]);
  return walkView(machine, node, view, shape, offsets, op.getInbounds(), [&](size_t number, Place at) {
    if (!at)
      return result.cells[number] = other, true;
    if (!checkElement(machine, node, view, *at, 0, false, Atomicity::None))
      return false;
    result.cells[number] = view.buffer->load(*at);
    return true;
  });
}

bool tileStore(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::TileStoreOp>(node.op);
  const Value& tile = machine.reg(node.operands[0]);
  const View& view = machine.reg(node.operands[1]).views[0];
  Shape offsets = operandIntegers(machine, node, 2, op.getOffsets().size());
  return walkView(machine, node, view, tile.shape, offsets, op.getInbounds(), [&](size_t number, Place at) {
    if (!at)
      return true;
    if (!checkElement(machine, node, view, *at, 0, true, Atomicity::None))
      return false;
    view.buffer->store(*at, tile.cells[number]);
    return true;
  });
}

/// Copies at once. In check mode the elements stay in use until the barrier that completes the copy.
bool stageCopy(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::StageCopyOp>(node.op);
  const View& source = machine.reg(node.operands[0]).views[0];
  const View& destination = machine.reg(node.operands.back()).views[0];
  Shape offsets = operandIntegers(machine, node, 1, op.getOffsets().size()), window;
  for (size_t dim = 0, next = 0; dim < offsets.size(); ++dim)
    window.push_back(llvm::is_contained(op.getDropped(), int64_t(dim)) ? 1 : destination.extents[next++]);
  std::vector<uint64_t> values(elementCount(window));
  std::vector<std::pair<const void*, bool>> touched;
  if (!walkView(machine, node, source, window, offsets, op.getInbounds(), [&](size_t number, Place at) {
        if (at && !checkElement(machine, node, source, *at, 0, false, Atomicity::None))
          return false;
        values[number] = at ? source.buffer->load(*at) : 0;
        if (at)
          touched.push_back({source.buffer->address(*at), false});
        return true;
      }))
    return false;
  Shape shape(destination.extents.begin(), destination.extents.end()), origin(shape.size(), 0);
  if (!walkView(machine, node, destination, shape, origin, true, [&](size_t number, Place at) {
        if (!checkElement(machine, node, destination, *at, 0, true, Atomicity::None))
          return false;
        destination.buffer->store(*at, values[number]);
        touched.push_back({destination.buffer->address(*at), true});
        return true;
      }))
    return false;
  if (machine.checkRaces)
    for (auto [address, isWrite] : touched)
      machine.copies.add(address, node.op, isWrite);
  return true;
}

bool stageCommit(Machine& machine, const Node&) {
  machine.copies.commit();
  return true;
}

bool stageWait(Machine& machine, const Node& node) {
  machine.copies.wait(uint32_t(llvm::cast<ir::StageWaitOp>(node.op).getPending()));
  return true;
}

//===-- moving elements ---------------------------------------------------------------------------------------===//

/// result[i, j, …] = source[base + i * strides[0] + j * strides[1] + …]
bool gather(Machine& machine, const Node& node, const Value& source, llvm::ArrayRef<int64_t> strides, int64_t base) {
  Value& result = machine.reg(node.results[0]);
  return walk(result.shape, [&](size_t number, llvm::ArrayRef<int64_t> index) {
    int64_t position = base;
    for (size_t dim = 0; dim < index.size(); ++dim)
      position += index[dim] * strides[dim];
    result.cells[number] = source.cells[size_t(position)];
    return true;
  });
}

bool broadcast(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::BroadcastOp>(node.op);
  const Value& source = machine.reg(node.operands[0]);
  Shape shape;
  if (!newTile(machine, node, 1, shape))
    return false;
  machine.reg(node.results[0]).unwritten = machine.hasUnwritten && op->hasAttr("vx.unwritten");
  Shape strides(shape.size(), 0);
  if (!llvm::isa<mlir::TensorType>(op.getValue().getType()))
    return gather(machine, node, source, strides, 0);
  Shape sourceStrides = rowMajorStrides(source.shape);
  for (auto [i, dim] : llvm::enumerate(op.getDims())) {
    if (source.shape[i] != 1 && source.shape[i] != shape[size_t(dim)])
      return reportShape(machine, node, source.shape, shape);
    strides[size_t(dim)] = source.shape[i] == 1 ? 0 : sourceStrides[i];
  }
  return gather(machine, node, source, strides, 0);
}

bool iota(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::IotaOp>(node.op);
  Shape shape;
  if (!newTile(machine, node, 0, shape))
    return false;
  Value& result = machine.reg(node.results[0]);
  uint64_t mask = elementOf(op.getResult().getType())->mask();
  return walk(shape, [&](size_t number, llvm::ArrayRef<int64_t> index) {
    result.cells[number] = uint64_t(index[size_t(op.getDim())]) & mask;
    return true;
  });
}

bool transpose(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::TransposeOp>(node.op);
  const Value& source = machine.reg(node.operands[0]);
  Value& result = machine.reg(node.results[0]);
  Shape sourceStrides = rowMajorStrides(source.shape), strides;
  result.shape.clear();
  for (int64_t dim : op.getPermutation()) {
    result.shape.push_back(source.shape[size_t(dim)]);
    strides.push_back(sourceStrides[size_t(dim)]);
  }
  result.cells.resize(source.cells.size());
  return gather(machine, node, source, strides, 0);
}

bool reshape(Machine& machine, const Node& node) {
  const Value& source = machine.reg(node.operands[0]);
  Shape shape;
  if (!newTile(machine, node, 1, shape))
    return false;
  if (elementCount(shape) != source.cells.size())
    return reportShape(machine, node, source.shape, shape);
  machine.reg(node.results[0]).cells = source.cells;
  return true;
}

bool slice(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::SliceOp>(node.op);
  const Value& source = machine.reg(node.operands[0]);
  size_t rank = source.shape.size();
  Shape shape, strides = rowMajorStrides(source.shape);
  if (!newTile(machine, node, 1 + rank, shape))
    return false;
  Shape offsets = operandIntegers(machine, node, 1, rank);
  const bool isEmpty = llvm::is_contained(shape, 0);  // wherever it begins
  for (size_t dim = 0, next = 0; dim < rank; ++dim) {
    int64_t extent = llvm::is_contained(op.getDropped(), int64_t(dim)) ? 1 : shape[next++];
    bool isOutside = offsets[dim] < 0 || offsets[dim] > source.shape[dim] - extent;
    if (!isEmpty && isOutside && !ir::isGuarded(op, int64_t(dim)))
      return machine.find(Finding::Kind::Bounds, node,
                          "elements " + std::to_string(offsets[dim]) + " to " + std::to_string(offsets[dim] + extent) +
                              " are outside dimension " + std::to_string(dim) + " of extent " +
                              std::to_string(source.shape[dim]));
  }
  Value& result = machine.reg(node.results[0]);
  return walk(shape, [&](size_t number, llvm::ArrayRef<int64_t> index) {
    int64_t at = 0;
    bool isInside = true;
    for (size_t dim = 0, next = 0; dim < rank; ++dim) {
      // The sum may wrap: then it is outside.
      uint64_t step = llvm::is_contained(op.getDropped(), int64_t(dim)) ? 0 : uint64_t(index[next++]);
      uint64_t position = uint64_t(offsets[dim]) + step;
      isInside = isInside && position < uint64_t(source.shape[dim]);
      at += isInside ? int64_t(position) * strides[dim] : 0;
    }
    result.cells[number] = isInside ? source.cells[size_t(at)] : 0;
    return true;
  });
}

bool element(Machine& machine, const Node& node) {
  const Value& source = machine.reg(node.operands[0]);
  Shape strides = rowMajorStrides(source.shape);
  uint64_t* out = machine.scalarResult(node.results[0]);
  out[0] = 0;
  int64_t position = 0;
  for (size_t dim = 0; dim < source.shape.size(); ++dim) {
    int64_t index = machine.integer(node.operands[1 + dim]);
    if (uint64_t(index) >= uint64_t(source.shape[dim]))
      return true;
    position += index * strides[dim];
  }
  out[0] = source.cells[size_t(position)];
  return true;
}

}  // namespace

NodeFunction findTileFunction(mlir::Operation* op) {
  if (NodeFunction function = findCombiningFunction(op))
    return function;
  return llvm::TypeSwitch<mlir::Operation*, NodeFunction>(op)
      .Case<ir::TileLoadOp>([](auto) { return tileLoad; })
      .Case<ir::TileStoreOp>([](auto) { return tileStore; })
      .Case<ir::StageCopyOp>([](auto) { return stageCopy; })
      .Case<ir::StageCommitOp>([](auto) { return stageCommit; })
      .Case<ir::StageWaitOp>([](auto) { return stageWait; })
      .Case<ir::BroadcastOp>([](auto) { return broadcast; })
      .Case<ir::IotaOp>([](auto) { return iota; })
      .Case<ir::TransposeOp>([](auto) { return transpose; })
      .Case<ir::ReshapeOp>([](auto) { return reshape; })
      .Case<ir::SliceOp>([](auto) { return slice; })
      .Case<ir::ElementOp>([](auto) { return element; })
      .Case<ir::CheckedAddOp, ir::CheckedSubOp, ir::CheckedMulOp>([](auto) { return checkedPointwise; })
      .Default([](mlir::Operation* other) { return findElementKernel(other).function ? pointwise : nullptr; });
}

}  // namespace vortex::interpreter
