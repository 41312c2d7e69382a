#include "msl/lift/distribute.h"

#include "mlir/Dialect/UB/IR/UBOps.h"

#include <llvm/ADT/SetVector.h>

namespace vortex::msl::lift {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using llvm::SmallVector;
using mlir::Value;

Distributor::Distributor(mlir::func::FuncOp function, const Uniformity& uniformity, llvm::ArrayRef<Value> ids,
                         std::array<Value, 3> extents, mlir::OpBuilder& builder, bool checksBarriers)
    : function_(function), uniformity_(uniformity), ids_(ids.begin(), ids.end()), extents_(extents), b_(builder),
      loc_(function.getLoc()), checksBarriers_(checksBarriers) {}

void Distributor::run() {
  start_ = b_.create<arith::ConstantIndexOp>(loc_, 0);
  beginChecks();
  emitBlock(function_.getBody().front(), nullptr);
}

Value Distributor::zero(mlir::OpBuilder& b, mlir::Type type) {
  return b.create<arith::ConstantOp>(loc_, b.getZeroAttr(type));
}

/// Sums and products of thread ids and uniform values, of this many operations one above the other, are cheaper than memory; and where they are
/// computed, the back ends know what lanes have in common and how far they are apart.
static constexpr unsigned kMostSteps = 24;

unsigned Distributor::stepsTo(Value value) const {
  if (!uniformity_.isPerThread(value) || isThreadId(value))
    return 0;
  if (auto known = steps_.find(value); known != steps_.end())
    return known->second;
  unsigned steps = kMostSteps + 1;
  if (mlir::Operation* op = value.getDefiningOp();
      op && op->getNumRegions() == 0 && mlir::isPure(op) && llvm::isa<arith::ArithDialect>(op->getDialect())) {
    steps = 1;
    for (Value operand : op->getOperands())
      steps = std::max(steps, 1 + stepsTo(operand));
  }
  return steps_[value] = steps;
}

bool Distributor::isRecomputed(Value value) const { return stepsTo(value) <= kMostSteps; }

SmallVector<Value> Distributor::emitThreads(llvm::ArrayRef<Value> sources, llvm::ArrayRef<Value> tensors,
                                            mlir::TypeRange results, Body body) {
  llvm::SetVector<Value> inputs, uniform;
  llvm::SetVector<mlir::Operation*> recomputed;
  auto need = [&](auto& self, Value value) -> void {
    if (isThreadId(value))
      return;
    if (!uniformity_.isPerThread(value)) {
      uniform.insert(value);
    } else if (isRecomputed(value)) {
      for (Value operand : value.getDefiningOp()->getOperands())
        self(self, operand);
      recomputed.insert(value.getDefiningOp());
    } else {
      inputs.insert(value);
    }
  };
  for (Value source : sources)
    need(need, source);
  SmallVector<Value> operands(tensors.begin(), tensors.end());
  for (Value input : inputs)
    operands.push_back(outside(input, true));
  mlir::IRMapping map;
  for (Value value : uniform)
    map.map(value, outside(value, false));
  SmallVector<mlir::Type> types;
  for (mlir::Type type : results)
    types.push_back(tensorOf(type));
  auto threads = b_.create<ir::ThreadsOp>(loc_, types, extents_[0], extents_[1], extents_[2], operands);
  mlir::OpBuilder::InsertionGuard guard(b_);
  mlir::Block* block = b_.createBlock(&threads.getBody());
  SmallVector<Value> elements;
  for (Value id : ids_)
    map.map(id, block->addArgument(b_.getIndexType(), loc_));
  for (Value operand : operands)
    elements.push_back(
        block->addArgument(llvm::cast<mlir::RankedTensorType>(operand.getType()).getElementType(), loc_));
  for (auto [input, element] : llvm::zip(inputs, llvm::ArrayRef(elements).drop_front(tensors.size())))
    map.map(input, element);
  for (mlir::Operation* op : recomputed)
    b_.clone(*op, map);
  SmallVector<Value> yielded = body(b_, map, llvm::ArrayRef(elements).take_front(tensors.size()));
  b_.create<ir::YieldOp>(loc_, yielded);
  return SmallVector<Value>(threads.getResults());
}

Value Distributor::outside(Value value, bool asTensor) {
  bool isPerThread = uniformity_.isPerThread(value);
  if (asTensor == isPerThread)
    if (Value known = bound_.lookup(value))
      return known;
  if (!asTensor) {
    VORTEX_CHECK(value.getDefiningOp<mlir::ub::PoisonOp>());
    return zero(b_, value.getType());
  }
  return emitThreads(value, {}, value.getType(), [&](mlir::OpBuilder&, mlir::IRMapping& map, auto) {
    return SmallVector<Value>{map.lookup(value)};
  })[0];
}

//===-- straight code ---------------------------------------------------------===//

void Distributor::emitUniform(mlir::Operation& op) {
  if (llvm::isa<mlir::ub::PoisonOp>(op)) {
    bound_[op.getResult(0)] = zero(b_, op.getResult(0).getType());
    return;
  }
  mlir::IRMapping map;
  op.walk([&](mlir::Operation* each) {
    for (Value operand : each->getOperands())
      if (!op.isAncestor(operand.getParentBlock()->getParentOp()))
        map.map(operand, outside(operand, false));
  });
  mlir::Operation* copy = b_.clone(op, map);
  for (auto [from, to] : llvm::zip(op.getResults(), copy->getResults()))
    bound_[from] = to;
}

/// Those results of a condition that are the same in all threads, though others are not.
void Distributor::emitChosen(mlir::Operation& op) {
  auto choice = llvm::dyn_cast<scf::IfOp>(op);
  for (mlir::OpResult result : op.getResults()) {
    if (!choice || uniformity_.isPerThread(result))
      continue;
    const unsigned i = result.getResultNumber();
    Value yes = choice.thenYield().getOperand(i), no = choice.elseYield().getOperand(i);
    if (yes.getDefiningOp<mlir::ub::PoisonOp>())
      yes = no;
    if (no.getDefiningOp<mlir::ub::PoisonOp>())
      no = yes;
    bound_[result] = b_.create<arith::SelectOp>(op.getLoc(), outside(choice.getCondition(), false), outside(yes, false),
                                                outside(no, false));
  }
}

/// Values of the segment that code behind it uses and that are not computed anew there.
static SmallVector<Value> liveOut(llvm::ArrayRef<mlir::Operation*> ops, llvm::function_ref<bool(Value)> isRecomputed) {
  llvm::DenseSet<mlir::Operation*> inside(ops.begin(), ops.end());
  SmallVector<Value> live;
  for (mlir::Operation* op : ops)
    for (Value result : op->getResults())
      if (!isRecomputed(result) && llvm::any_of(result.getUsers(), [&](mlir::Operation* user) {
            return !inside.contains(op->getBlock()->findAncestorOpInBlock(*user));
          }))
        live.push_back(result);
  return live;
}

void Distributor::emitSegment(llvm::ArrayRef<mlir::Operation*> ops, Value mask) {
  SmallVector<Value> live = liveOut(ops, [&](Value value) { return isRecomputed(value); });
  bool hasEffect =
      !live.empty() || llvm::any_of(ops, [](mlir::Operation* op) { return !mlir::isMemoryEffectFree(op); });
  if (!hasEffect)
    return;
  llvm::DenseSet<mlir::Operation*> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> sources;
  for (mlir::Operation* op : ops)
    op->walk([&](mlir::Operation* each) {
      for (Value operand : each->getOperands()) {
        mlir::Operation* owner = operand.getParentBlock()->getParentOp();
        bool isInner = op->isAncestor(owner) || (operand.getDefiningOp() && inside.contains(operand.getDefiningOp()));
        if (!isInner)
          sources.insert(operand);
      }
    });
  SmallVector<mlir::Type> types;
  for (Value value : live)
    types.push_back(value.getType());
  SmallVector<Value> masks;
  if (mask)
    masks.push_back(mask);
  auto results =
      emitThreads(sources.getArrayRef(), masks, types, [&](mlir::OpBuilder& b, mlir::IRMapping& map, auto elements) {
        auto cloneAll = [&] {
          SmallVector<Value> values;
          for (mlir::Operation* op : ops)
            b.clone(*op, map);
          for (Value value : live)
            values.push_back(map.lookup(value));
          return values;
        };
        if (!mask)
          return cloneAll();
        auto choice = b.create<scf::IfOp>(loc_, types, elements[0], !types.empty());
        mlir::OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(choice.thenBlock());
        SmallVector<Value> values = cloneAll();
        if (!types.empty()) {
          b.create<scf::YieldOp>(loc_, values);
          b.setInsertionPointToStart(choice.elseBlock());
          SmallVector<Value> zeros;
          for (mlir::Type type : types)
            zeros.push_back(zero(b, type));
          b.create<scf::YieldOp>(loc_, zeros);
        }
        return SmallVector<Value>(choice.getResults());
      });
  for (auto [value, result] : llvm::zip(live, results))
    bound_[value] = result;
}

void Distributor::emitBlock(mlir::Block& block, Value mask) {
  SmallVector<mlir::Operation*> segment;
  auto close = [&] {
    if (!segment.empty()) {
      loc_ = segment.front()->getLoc();
      emitSegment(segment, mask);
    }
    segment.clear();
  };
  for (mlir::Operation& op : block) {
    if (op.hasTrait<mlir::OpTrait::IsTerminator>())
      break;
    if (llvm::isa<ir::BarrierOp>(op)) {
      close();
      loc_ = op.getLoc();
      checkBarrier(loc_, mask);
      b_.clone(op);
      continue;
    }
    if (!uniformity_.hasBarrier(&op)) {
      bool isUniform = op.getNumResults() > 0 && (op.getNumRegions() == 0 || uniformity_.isUniformChoice(op)) &&
                       llvm::none_of(op.getResults(), [&](Value result) { return uniformity_.isPerThread(result); });
      isUniform ? emitUniform(op) : segment.push_back(&op);
      if (!isUniform)
        emitChosen(op);
      continue;
    }
    close();
    loc_ = op.getLoc();
    if (auto choice = llvm::dyn_cast<scf::IfOp>(op))
      emitIf(choice, mask);
    else
      emitWhile(llvm::cast<scf::WhileOp>(op), mask);
  }
  close();
}

//===-- masks -----------------------------------------------------------------===//

Value Distributor::fullMask() {
  return emitThreads({}, {}, b_.getI1Type(), [&](mlir::OpBuilder& b, mlir::IRMapping&, auto) {
    return SmallVector<Value>{b.create<arith::ConstantOp>(loc_, b.getBoolAttr(true))};
  })[0];
}

Value Distributor::narrowed(Value mask, Value condition, bool isNegated) {
  SmallVector<Value> masks;
  if (mask)
    masks.push_back(mask);
  return emitThreads(condition, masks, b_.getI1Type(), [&](mlir::OpBuilder& b, mlir::IRMapping& map, auto elements) {
    Value test = map.lookup(condition), no = b.create<arith::ConstantOp>(loc_, b.getBoolAttr(false));
    if (isNegated)
      test = b.create<arith::XOrIOp>(loc_, test, b.create<arith::ConstantOp>(loc_, b.getBoolAttr(true)));
    if (mask)
      test = b.create<arith::SelectOp>(loc_, elements[0], test, no);
    return SmallVector<Value>{test};
  })[0];
}

Value Distributor::merged(Value mask, Value yes, Value no) {
  mlir::Type elem = llvm::cast<mlir::RankedTensorType>(yes.getType()).getElementType();
  return emitThreads({}, {mask, yes, no}, elem, [&](mlir::OpBuilder& b, mlir::IRMapping&, auto elements) {
    return SmallVector<Value>{b.create<arith::SelectOp>(loc_, elements[0], elements[1], elements[2])};
  })[0];
}

Value Distributor::zeroTensor(mlir::Type elem) {
  return emitThreads({}, {}, elem,
                     [&](mlir::OpBuilder& b, mlir::IRMapping&, auto) { return SmallVector<Value>{zero(b, elem)}; })[0];
}

/// By way of a word in shared memory, which all threads of the mask set and all read.
Value Distributor::any(Value mask) {
  auto type = ir::ViewType::get({1}, b_.getI32Type(), ir::Space::Shared);
  if (!flag_) {
    mlir::OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointAfter(start_);
    flag_ = b_.create<ir::AllocOp>(loc_, type, nullptr);
  }
  Value first = b_.create<arith::ConstantIndexOp>(loc_, 0);
  b_.create<ir::BarrierOp>(loc_);
  emitThreads({}, {}, {}, [&](mlir::OpBuilder& b, mlir::IRMapping& map, auto) {
    Value isFirst = b.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::eq, map.lookup(ids_[3]), first);
    b.create<ir::StoreOp>(loc_, zero(b, b.getI32Type()), flag_, first, isFirst, false);
    return SmallVector<Value>();
  });
  b_.create<ir::BarrierOp>(loc_);
  emitThreads({}, mask, {}, [&](mlir::OpBuilder& b, mlir::IRMapping&, auto elements) {
    Value one = b.create<arith::ConstantOp>(loc_, b.getI32IntegerAttr(1));
    b.create<ir::AtomicRmwOp>(loc_, ir::Combine::Or, one, flag_, first, elements[0], ir::Order::Relaxed,
                              ir::Scope::Block, false);
    return SmallVector<Value>();
  });
  b_.create<ir::BarrierOp>(loc_);
  Value word = b_.create<ir::LoadOp>(loc_, b_.getI32Type(), flag_, first, Value(), false);
  return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ne, word, zero(b_, b_.getI32Type()));
}

//===-- conditions ------------------------------------------------------------===//

void Distributor::emitIf(scf::IfOp op, Value mask) {
  if (uniformity_.isPerThread(op.getCondition()))
    return emitMaskedIf(op, mask);
  SmallVector<mlir::Type> types;
  for (Value result : op.getResults())
    types.push_back(outsideType(result, uniformity_.isPerThread(result)));
  Value condition = outside(op.getCondition(), false);
  bool hasElse = !op.getElseRegion().empty();
  auto choice = b_.create<scf::IfOp>(loc_, types, condition, hasElse);
  for (auto [from, to] : llvm::zip(op->getRegions(), choice->getRegions())) {
    if (from.empty())
      continue;
    mlir::OpBuilder::InsertionGuard guard(b_);
    to.front().clear();
    b_.setInsertionPointToStart(&to.front());
    emitBlock(from.front(), mask);
    SmallVector<Value> yielded;
    for (auto [value, result] : llvm::zip(from.front().getTerminator()->getOperands(), op.getResults()))
      yielded.push_back(outside(value, uniformity_.isPerThread(result)));
    b_.create<scf::YieldOp>(loc_, yielded);
  }
  for (auto [from, to] : llvm::zip(op.getResults(), choice.getResults()))
    bound_[from] = to;
}

/// The branch while any thread takes it; its results as emitIf() has them, zero where nobody takes it.
SmallVector<Value> Distributor::emitMaskedBranch(scf::IfOp op, mlir::Region& region, Value mask) {
  mlir::Block& block = region.front();
  bool hasBarrier = llvm::any_of(block, [&](mlir::Operation& each) { return uniformity_.hasBarrier(&each); });
  SmallVector<Value> yielded;
  auto emit = [&] {
    emitBlock(block, mask);
    for (auto [value, result] : llvm::zip(block.getTerminator()->getOperands(), op.getResults()))
      yielded.push_back(outside(value, uniformity_.isPerThread(result)));
  };
  if (!hasBarrier) {
    emit();
    return yielded;
  }
  SmallVector<mlir::Type> types;
  SmallVector<Value> zeros;
  for (Value result : op.getResults()) {
    bool isPerThread = uniformity_.isPerThread(result);
    types.push_back(outsideType(result, isPerThread));
    zeros.push_back(isPerThread ? zeroTensor(result.getType()) : zero(b_, result.getType()));
  }
  auto choice = b_.create<scf::IfOp>(loc_, types, any(mask), !types.empty());
  mlir::OpBuilder::InsertionGuard guard(b_);
  choice.thenBlock()->clear();
  b_.setInsertionPointToStart(choice.thenBlock());
  emit();
  b_.create<scf::YieldOp>(loc_, yielded);
  if (!types.empty()) {
    b_.setInsertionPointToStart(choice.elseBlock());
    b_.create<scf::YieldOp>(loc_, zeros);
  }
  return SmallVector<Value>(choice.getResults());
}

void Distributor::emitMaskedIf(scf::IfOp op, Value mask) {
  Value taken = narrowed(mask, op.getCondition(), false);
  Value other = op.getElseRegion().empty() ? Value() : narrowed(mask, op.getCondition(), true);
  SmallVector<Value> yes = emitMaskedBranch(op, op.getThenRegion(), taken), no;
  if (other)
    no = emitMaskedBranch(op, op.getElseRegion(), other);
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (uniformity_.isPerThread(result)) {
      bound_[result] = merged(taken, yes[i], no[i]);
      continue;
    }
    // Uniform although the condition is not: one of the branches yields poison.
    Value first = op.getThenRegion().front().getTerminator()->getOperand(static_cast<unsigned>(i));
    bound_[result] = first.getDefiningOp<mlir::ub::PoisonOp>() ? no[i] : yes[i];
  }
}

//===-- loops -----------------------------------------------------------------===//

void Distributor::emitWhile(scf::WhileOp op, Value mask) {
  scf::ConditionOp condition = op.getConditionOp();
  if (uniformity_.isPerThread(condition.getCondition()))
    return emitMaskedWhile(op, mask);
  SmallVector<Value> initial;
  SmallVector<mlir::Type> types;
  for (auto [value, argument] : llvm::zip(op.getInits(), op.getBeforeArguments()))
    initial.push_back(outside(value, uniformity_.isPerThread(argument)));
  for (Value result : op.getResults())
    types.push_back(outsideType(result, uniformity_.isPerThread(result)));
  auto loop = b_.create<scf::WhileOp>(loc_, types, initial);
  mlir::OpBuilder::InsertionGuard guard(b_);
  mlir::Block* before = b_.createBlock(&loop.getBefore());
  for (Value argument : op.getBeforeArguments())
    bound_[argument] = before->addArgument(outsideType(argument, uniformity_.isPerThread(argument)), loc_);
  emitBlock(*op.getBeforeBody(), mask);
  SmallVector<Value> passed;
  for (auto [value, result] : llvm::zip(condition.getArgs(), op.getResults()))
    passed.push_back(outside(value, uniformity_.isPerThread(result)));
  b_.create<scf::ConditionOp>(loc_, outside(condition.getCondition(), false), passed);
  mlir::Block* after = b_.createBlock(&loop.getAfter());
  for (auto [argument, result] : llvm::zip(op.getAfterArguments(), op.getResults()))
    bound_[argument] = after->addArgument(outsideType(argument, uniformity_.isPerThread(result)), loc_);
  emitBlock(*op.getAfterBody(), mask);
  SmallVector<Value> next;
  for (auto [value, argument] : llvm::zip(op.getYieldOp().getOperands(), op.getBeforeArguments()))
    next.push_back(outside(value, uniformity_.isPerThread(argument)));
  b_.create<scf::YieldOp>(loc_, next);
  for (auto [from, to] : llvm::zip(op.getResults(), loop.getResults()))
    bound_[from] = to;
}

/// Carried: the mask of the threads that go on, the arguments, and the results of those that left. Everything is a tensor or, where all that
/// are still in the loop agree, a scalar.
void Distributor::emitMaskedWhile(scf::WhileOp op, Value mask) {
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<Value> initial{mask ? mask : fullMask()};
  for (auto [value, argument] : llvm::zip(op.getInits(), op.getBeforeArguments()))
    initial.push_back(outside(value, uniformity_.isPerThread(argument)));
  for (Value result : op.getResults())
    initial.push_back(zeroTensor(result.getType()));
  SmallVector<Value> passedOn;  // what the second region gets: mask, its arguments, results
  SmallVector<mlir::Type> types{tensorOf(b_.getI1Type())};
  for (Value argument : op.getAfterArguments())
    types.push_back(outsideType(argument, uniformity_.isPerThread(argument)));
  for (Value result : op.getResults())
    types.push_back(tensorOf(result.getType()));
  auto loop = b_.create<scf::WhileOp>(loc_, types, initial);
  size_t arguments = op.getBeforeArguments().size();
  mlir::OpBuilder::InsertionGuard guard(b_);
  mlir::Block* before = b_.createBlock(&loop.getBefore());
  for (Value value : initial)
    before->addArgument(value.getType(), loc_);
  for (auto [i, argument] : llvm::enumerate(op.getBeforeArguments()))
    bound_[argument] = before->getArgument(static_cast<unsigned>(1 + i));
  Value active = before->getArgument(0);
  emitBlock(*op.getBeforeBody(), active);
  Value stays = narrowed(active, condition.getCondition(), false),
        leaves = narrowed(active, condition.getCondition(), true);
  passedOn.push_back(stays);
  for (auto [value, argument] : llvm::zip(condition.getArgs(), op.getAfterArguments()))
    passedOn.push_back(outside(value, uniformity_.isPerThread(argument)));
  for (auto [i, value] : llvm::enumerate(condition.getArgs()))
    passedOn.push_back(
        merged(leaves, outside(value, true), before->getArgument(static_cast<unsigned>(1 + arguments + i))));
  b_.create<scf::ConditionOp>(loc_, any(stays), passedOn);
  mlir::Block* after = b_.createBlock(&loop.getAfter());
  for (mlir::Type type : types)
    after->addArgument(type, loc_);
  for (auto [i, argument] : llvm::enumerate(op.getAfterArguments()))
    bound_[argument] = after->getArgument(static_cast<unsigned>(1 + i));
  emitBlock(*op.getAfterBody(), after->getArgument(0));
  SmallVector<Value> next{after->getArgument(0)};
  for (auto [value, argument] : llvm::zip(op.getYieldOp().getOperands(), op.getBeforeArguments()))
    next.push_back(outside(value, uniformity_.isPerThread(argument)));
  for (size_t i = 0; i < op.getNumResults(); ++i)
    next.push_back(after->getArgument(static_cast<unsigned>(1 + op.getAfterArguments().size() + i)));
  b_.create<scf::YieldOp>(loc_, next);
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    bound_[result] = loop.getResult(static_cast<unsigned>(1 + op.getAfterArguments().size() + i));
}

}  // namespace vortex::msl::lift
