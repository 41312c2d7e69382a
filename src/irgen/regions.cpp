// Thread regions: opening, closing, thread positions, and values crossing between block level and threads.
#include "irgen/emitter.h"

namespace vortex::irgen {

using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

static bool isTensor(Value value) { return value && llvm::isa<mlir::RankedTensorType>(value.getType()); }

void Emitter::openRegion(Location loc) {
  if (region_)
    return;
  region_.emplace();
  llvm::SmallVector<Value> inputs;
  region_->op =
      b_.create<ir::ThreadsOp>(loc, mlir::TypeRange{}, blockExtent(0), blockExtent(1), blockExtent(2), inputs);
  mlir::Block& body = region_->op.getBody().emplaceBlock();
  for (int i = 0; i < 4; ++i)
    body.addArgument(b_.getIndexType(), loc);
  b_.setInsertionPoint(region_->op);
}

void Emitter::closeRegion() {
  if (!region_)
    return;
  VORTEX_CHECK(!inThreads_ && b_.getInsertionBlock() == region_->op->getBlock(),
               "a region is closed from inside nested code");
  ir::ThreadsOp op = region_->op;
  llvm::DenseMap<Value, Value> inputOf;
  for (auto [tensor, argument] : region_->inputs)
    inputOf[argument] = tensor;
  llvm::SmallVector<Value> yielded;
  llvm::SmallVector<Value*> targets;
  for (auto& [variable, slot] : variables_) {
    if (!slot.inRegion)
      continue;
    slot.inRegion = false;
    for (Value& leaf : slot.leaves) {
      if (!leaf || isTensor(leaf) || !op.getBody().isAncestor(leaf.getParentRegion()))
        continue;  // a uniform value of the block
      if (Value tensor = inputOf.lookup(leaf)) {
        leaf = tensor;
      } else if (llvm::isa<ir::ViewType>(leaf.getType())) {
        leaf = {};  // windows on memory do not cross regions
      } else {
        yielded.push_back(leaf);
        targets.push_back(&leaf);
      }
    }
  }
  b_.setInsertionPointToEnd(&op.getBody().front());
  b_.create<ir::YieldOp>(op.getLoc(), yielded);
  llvm::SmallVector<mlir::Type> types;
  for (Value value : yielded)
    types.push_back(types_.perThread(value.getType()));
  b_.setInsertionPoint(op);
  auto closed = b_.create<ir::ThreadsOp>(op.getLoc(), types, op.getNx(), op.getNy(), op.getNz(), op.getInputs());
  closed.getBody().takeBody(op.getBody());
  for (auto [target, result] : llvm::zip(targets, closed.getOutputs()))
    *target = result;
  op.erase();
  region_.reset();
  b_.setInsertionPointAfter(closed);
}

void Emitter::inRegion(Location loc, const VariableSet& assigned, Body body) {
  openRegion(loc);
  mlir::OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(&region_->op.getBody().front());
  inThreads_ = true;
  if (predicates_.empty())
    body();
  else
    emitIf(loc, noneSet(loc, predicates_), assigned, body, [] {});
  inThreads_ = false;
}

void Emitter::inNested(mlir::Block* block, Body body) {
  mlir::OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(block);
  Scope scope(*this);
  if (!atBlockLevel())
    return body();
  std::optional<ThreadRegion> outer = std::move(region_);
  region_.reset();
  body();
  VORTEX_CHECK(!region_, "nested code left its thread region open");
  region_ = std::move(outer);
}

Value Emitter::regionArgument(Value tensor) {
  auto [entry, isNew] = region_->inputs.try_emplace(tensor);
  if (isNew) {
    region_->op.getInputsMutable().append(tensor);
    auto element = llvm::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
    entry->second = region_->op.getBody().front().addArgument(element, tensor.getLoc());
  }
  return entry->second;
}

//===-- positions -------------------------------------------------------------------------------------------------===//

Value Emitter::blockExtent(unsigned axis) { return blockExtents_[axis]; }

Value Emitter::threadId(unsigned axis) { return region_->op.getBody().front().getArgument(axis); }

Value Emitter::linearId() { return region_->op.getBody().front().getArgument(3); }

Value Emitter::inRegionPrologue(llvm::function_ref<Value()> make) {
  mlir::OpBuilder::InsertionGuard guard(b_);
  mlir::Block& body = region_->op.getBody().front();
  if (region_->lastPrologue)
    b_.setInsertionPointAfter(region_->lastPrologue);
  else
    b_.setInsertionPointToStart(&body);
  Value value = make();
  if (mlir::Operation* definition = value.getDefiningOp(); definition && definition->getBlock() == &body)
    region_->lastPrologue = definition;
  return value;
}

Value Emitter::globalId(unsigned axis) {
  Value& id = region_->globalIds[axis];
  if (!id)
    id = inRegionPrologue(
        [&] { return Value(b_.create<arith::AddIOp>(region_->op.getLoc(), blockBases_[axis], threadId(axis))); });
  return id;
}

Value Emitter::insideDomain(unsigned axes) {
  axes &= (1u << context_.domain.size()) - 1;
  if (region_->inside[axes])
    return region_->inside[axes];
  Location loc = region_->op.getLoc();
  Value inside;
  for (unsigned axis = 0; axis < context_.domain.size(); ++axis) {
    if (!(axes & 1u << axis))
      continue;
    std::optional<int64_t> extent = types_.fix(context_.domain[axis]).asConstant(), block = context_.block[axis];
    if (extent && block && *block > 0 && *extent % *block == 0)
      continue;  // no surplus threads along this axis
    Value id = globalId(axis);
    inside = inRegionPrologue([&] {
      Value limit = dimValue(loc, context_.domain[axis]);
      Value below = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, id, limit);
      return inside ? Value(b_.create<arith::AndIOp>(loc, inside, below)) : below;
    });
  }
  return region_->inside[axes] = inside;
}

//===-- crossing --------------------------------------------------------------------------------------------------===//

void Emitter::prepareUniform(const Expr& expr) {
  if (!region_ || inThreads_)
    return;
  BodyFacts::Uses uses;
  facts_.collectUses(expr, uses);
  bool conflicts = uses.output && (region_->hasOutput || !region_->written.empty());
  for (const Variable* variable : uses.variables)
    if (auto found = variables_.find(variable); found != variables_.end())
      conflicts |= found->second.inRegion;
  conflicts |= uses.unknownLoads && !region_->written.empty();
  for (const Variable* base : uses.loadedFrom) {
    auto found = variables_.find(base);
    const void* root = nullptr;
    if (found != variables_.end() && found->second.leaves.size() == 1 && found->second.leaves[0])
      root = rootOf(found->second.leaves[0]);
    conflicts |=
        root ? region_->written.contains(root) || region_->written.contains(nullptr) : !region_->written.empty();
  }
  if (conflicts)
    closeRegion();
}

Value Emitter::splat(Location loc, Value scalar) {
  llvm::SmallVector<Value> inputs;
  auto op = b_.create<ir::ThreadsOp>(loc, types_.perThread(scalar.getType()), blockExtent(0), blockExtent(1),
                                     blockExtent(2), inputs);
  mlir::OpBuilder::InsertionGuard guard(b_);
  mlir::Block& body = op.getBody().emplaceBlock();
  for (int i = 0; i < 4; ++i)
    body.addArgument(b_.getIndexType(), loc);
  b_.setInsertionPointToEnd(&body);
  b_.create<ir::YieldOp>(loc, scalar);
  return op.getResult(0);
}

/// A value that all threads of the block have computed alike.
Value Emitter::firstThread(Location loc, Value tensor) {
  auto type = llvm::cast<mlir::RankedTensorType>(tensor.getType());
  return b_.create<ir::ElementOp>(loc, type.getElementType(), tensor, math_.index(loc, 0));
}

Value Emitter::coerceLeaf(Location loc, Value value, mlir::Type expected, bool perThread) {
  if (llvm::isa<mlir::RankedTensorType, ir::ViewType>(expected))
    return value;
  if (!value)
    value = math_.zero(loc, expected);
  if (inThreads_)
    return isTensor(value) ? regionArgument(value) : value;
  if (isTensor(value) && !perThread)
    return firstThread(loc, value);
  if (!isTensor(value) && perThread && context_.hasThreads)
    return splat(loc, value);
  return value;
}

}  // namespace vortex::irgen
