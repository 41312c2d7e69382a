// Sizes over the launch's arguments: their run-time values, and bounds of index values found by walking to the arguments.
#include "base/check.h"
#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "target/cpu/emit/emitter.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::cpu::emit {

namespace arith = mlir::arith;
using artifact::SizeExpr;
using llvm::Value;
using Op = SizeExpr::Op;

/// The postfix program as straight-line code.
Value* Emitter::emitSize(const SizeExpr& expr) {
  Values stack;
  Value* zero = ir.getInt64(0);
  auto asInt = [&](Value* condition) { return ir.CreateZExt(condition, ir.getInt64Ty()); };
  auto isTrue = [&](Value* value) { return ir.CreateICmpNE(value, zero); };
  for (const SizeExpr::Step& step : expr.steps) {
    if (step.op == Op::Constant || step.op == Op::Slot) {
      stack.push_back(
          step.op == Op::Constant
              ? static_cast<Value*>(ir.getInt64(step.value))
              : ir.CreateLoad(ir.getInt64Ty(), ir.CreateConstGEP1_32(ir.getInt64Ty(), slotsArgument(), step.value)));
      continue;
    }
    Value* b = stack.pop_back_val();
    if (step.op == Op::Not || step.op == Op::IsPowerOfTwo) {
      Value* isPower = ir.CreateAnd(ir.CreateICmpSGT(b, zero),
                                    ir.CreateICmpEQ(ir.CreateAnd(b, ir.CreateSub(b, ir.getInt64(1))), zero));
      stack.push_back(asInt(step.op == Op::Not ? ir.CreateICmpEQ(b, zero) : isPower));
      continue;
    }
    Value* a = stack.pop_back_val();
    auto quotient = [&] { return math::emitInt(ir, math::IntOp::Div, a, b, true); };
    auto rest = [&] { return math::emitInt(ir, math::IntOp::Mod, a, b, true); };
    auto signsDiffer = [&](Value* remainder) { return ir.CreateICmpSLT(ir.CreateXor(remainder, b), zero); };
    Value* result = nullptr;
    switch (step.op) {
    case Op::Add: result = ir.CreateAdd(a, b); break;
    case Op::Sub: result = ir.CreateSub(a, b); break;
    case Op::Mul: result = ir.CreateMul(a, b); break;
    case Op::FloorDiv: {
      Value* remainder = rest();
      result = ir.CreateSub(quotient(), asInt(ir.CreateAnd(isTrue(remainder), signsDiffer(remainder))));
      break;
    }
    case Op::CeilDiv: {
      Value* remainder = rest();
      result = ir.CreateAdd(quotient(), asInt(ir.CreateAnd(isTrue(remainder), ir.CreateNot(signsDiffer(remainder)))));
      break;
    }
    case Op::Mod: {
      Value* remainder = rest();
      Value* wraps = ir.CreateAnd(isTrue(remainder), signsDiffer(remainder));
      result = ir.CreateAdd(remainder, ir.CreateSelect(wraps, b, zero));
      break;
    }
    case Op::Min: result = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); break;
    case Op::Max: result = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); break;
    case Op::Equal: result = asInt(ir.CreateICmpEQ(a, b)); break;
    case Op::Less: result = asInt(ir.CreateICmpSLT(a, b)); break;
    case Op::And: result = asInt(ir.CreateAnd(isTrue(a), isTrue(b))); break;
    case Op::Or: result = asInt(ir.CreateOr(isTrue(a), isTrue(b))); break;
    default: VORTEX_UNREACHABLE("size operator %d", int(step.op));
    }
    stack.push_back(result);
  }
  return stack.empty() ? zero : stack.back();
}

namespace {

/// Walks from an index value to launch arguments. `exact`: only equal sizes; else sizes that are never exceeded, for values that are
/// not negative.
struct SizeWalk {
  Emitter& emitter;
  ir::KernelOp kernel;
  bool exact;
  unsigned steps = 0;

  std::optional<SizeExpr> slot(mlir::BlockArgument argument, std::optional<unsigned> dim) {
    if (argument.getOwner() != &kernel.getBody().front())
      return std::nullopt;
    uint32_t first = ir::argumentSlots(kernel.getArgumentTypes())[argument.getArgNumber()];
    return SizeExpr::slot(first + (dim ? 1 + *dim : 0));
  }

  std::optional<SizeExpr> extent(mlir::Value view, unsigned dim) {
    auto type = mlir::cast<ir::ViewType>(view.getType());
    if (!type.isDynamic(dim))
      return SizeExpr::constant(type.getShape()[dim]);
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(view))
      return slot(argument, dim);
    auto subview = view.getDefiningOp<ir::SubviewOp>();
    if (!subview)
      return std::nullopt;
    unsigned dynamic = llvm::count_if(type.getShape().take_front(dim), mlir::ShapedType::isDynamic);
    return walk(subview.getSizes()[dynamic]);
  }

  std::optional<SizeExpr> both(Op op, mlir::Operation* def) {
    auto a = walk(def->getOperand(0)), b = walk(def->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    return SizeExpr::binary(op, *a, *b);
  }
  /// The divisor must be exact: a larger one would make the bound too small.
  std::optional<SizeExpr> quotient(Op op, mlir::Operation* def) {
    auto a = walk(def->getOperand(0));
    auto b = SizeWalk{emitter, kernel, true, steps}.walk(def->getOperand(1));
    if (a && b)
      return SizeExpr::binary(op, *a, *b);
    return exact ? std::nullopt : a;
  }
  std::optional<SizeExpr> either(Op op, mlir::Operation* def) {
    auto a = walk(def->getOperand(0)), b = walk(def->getOperand(1));
    if (a && b)
      return SizeExpr::binary(op, *a, *b);
    return exact ? std::nullopt : a ? a : b;
  }

  std::optional<SizeExpr> walk(mlir::Value value);
};

std::optional<SizeExpr> SizeWalk::walk(mlir::Value value) {
  if (++steps > 200)
    return std::nullopt;
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return SizeExpr::constant(constant.getSExtValue());
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
    if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(argument.getOwner()->getParentOp()))
      return !exact && argument == loop.getInductionVar() ? walk(loop.getUpperBound()) : std::nullopt;
    return slot(argument, std::nullopt);
  }
  auto sizeOf = [&](mlir::ArrayAttr list, ir::Axis axis) -> std::optional<SizeExpr> {
    auto size = ir::toSizeExpr(mlir::cast<ir::SizeAttr>(list[unsigned(axis)]), kernel.getArgumentTypes(),
                               [&] { return kernel.emitOpError(); });
    return mlir::succeeded(size) ? std::optional<SizeExpr>(*size) : std::nullopt;
  };
  return llvm::TypeSwitch<mlir::Operation*, std::optional<SizeExpr>>(value.getDefiningOp())
      .Case([&](ir::DimOp dim) { return extent(dim.getView(), dim.getDim()); })
      .Case([&](ir::BlockDimOp dim) { return sizeOf(*kernel.getBlock(), dim.getAxis()); })
      .Case([&](ir::GridDimOp dim) { return sizeOf(*kernel.getGrid(), dim.getAxis()); })
      .Case([&](ir::BlockIdOp id) -> std::optional<SizeExpr> {
        return exact ? std::nullopt : sizeOf(*kernel.getGrid(), id.getAxis());
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(
          [&](auto cast) { return walk(cast->getOperand(0)); })
      .Case([&](arith::TruncIOp cast) { return exact ? std::nullopt : walk(cast.getIn()); })
      .Case([&](arith::AddIOp op) { return both(Op::Add, op); })
      .Case([&](arith::MulIOp op) { return both(Op::Mul, op); })
      .Case([&](arith::SubIOp op) -> std::optional<SizeExpr> {
        auto b = SizeWalk{emitter, kernel, true, steps}.walk(op.getRhs());
        auto a = walk(op.getLhs());
        if (a && b)
          return SizeExpr::binary(Op::Sub, *a, *b);
        return exact ? std::nullopt : a;  // the difference of sizes is not larger than the first
      })
      .Case<arith::MinSIOp, arith::MinUIOp>([&](auto op) { return either(Op::Min, op); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto op) { return both(Op::Max, op); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto op) { return quotient(Op::FloorDiv, op); })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>([&](auto op) { return quotient(Op::CeilDiv, op); })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto op) { return exact ? both(Op::Mod, op) : walk(op.getRhs()); })
      .Case([&](ir::IntOp op) -> std::optional<SizeExpr> {
        switch (op.getKind()) {
        case ir::IntKind::DivS:
        case ir::IntKind::DivU: return quotient(Op::FloorDiv, op);
        case ir::IntKind::CeilDivU: return quotient(Op::CeilDiv, op);
        case ir::IntKind::RemS:
        case ir::IntKind::RemU: return exact ? both(Op::Mod, op) : walk(op.getRhs());
        case ir::IntKind::ShrS:
        case ir::IntKind::ShrU: return exact ? std::nullopt : walk(op.getLhs());
        case ir::IntKind::Shl: return std::nullopt;
        }
        return std::nullopt;
      })
      .Case([&](arith::SelectOp op) -> std::optional<SizeExpr> {
        auto a = walk(op.getTrueValue()), b = walk(op.getFalseValue());
        if (exact || !a || !b)
          return std::nullopt;
        return SizeExpr::binary(Op::Max, *a, *b);
      })
      .Default([](mlir::Operation*) { return std::nullopt; });
}

}  // namespace

std::optional<SizeExpr> Emitter::upperBound(mlir::Value index) {
  if (auto size = SizeWalk{*this, kernel, true}.walk(index))
    return size;
  return SizeWalk{*this, kernel, false}.walk(index);
}

TileBuffer Emitter::allocateTile(mlir::Operation* op, mlir::RankedTensorType type,
                                 llvm::ArrayRef<mlir::Value> dynamicExtents) {
  Values extents;
  llvm::SmallVector<SizeExpr> bounds;
  for (int64_t extent : type.getShape()) {
    if (!mlir::ShapedType::isDynamic(extent)) {
      extents.push_back(ir.getInt64(extent));
      bounds.push_back(SizeExpr::constant(extent));
      continue;
    }
    auto bound = upperBound(dynamicExtents.front());
    if (!bound) {
      fail(op, "a tile whose extent has no bound known before the launch");
      bound = SizeExpr::constant(0);
    }
    extents.push_back(scalar(dynamicExtents.front()));
    bounds.push_back(*bound);
    dynamicExtents = dynamicExtents.drop_front();
  }
  return allocateTile(type.getElementType(), extents, bounds);
}

TileBuffer Emitter::allocateTile(mlir::Type elementType, llvm::ArrayRef<Value*> extents,
                                 llvm::ArrayRef<SizeExpr> bounds) {
  SizeExpr bytes = SizeExpr::constant(elementBytes(elementType));
  for (const SizeExpr& bound : bounds)
    bytes = SizeExpr::binary(Op::Mul, bytes, bound);
  bytes = SizeExpr::binary(Op::Add, bytes, SizeExpr::constant(64));  // full vectors may run over the end
  return {elementType, scratch->allocate(bytes), Values(extents.begin(), extents.end())};
}

/// The value comes from a region, perhaps through loops and branches: one element per thread.
static bool isThreadResult(mlir::Value value, unsigned depth = 0) {
  if (depth > 32)
    return false;
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
    mlir::Operation* parent = argument.getOwner()->getParentOp();
    if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(parent))
      return isThreadResult(loop.getTiedLoopInit(argument)->get(), depth + 1);
    auto loop = mlir::dyn_cast<mlir::scf::WhileOp>(parent);
    if (!loop)
      return false;
    unsigned number = argument.getArgNumber();
    bool before = argument.getOwner() == loop.getBeforeBody();
    return isThreadResult(before ? loop.getInits()[number] : loop.getConditionOp().getArgs()[number], depth + 1);
  }
  mlir::Operation* def = value.getDefiningOp();
  unsigned number = mlir::cast<mlir::OpResult>(value).getResultNumber();
  return llvm::TypeSwitch<mlir::Operation*, bool>(def)
      .Case([](ir::ThreadsOp) { return true; })
      .Case([&](mlir::scf::ForOp loop) { return isThreadResult(loop.getInitArgs()[number], depth + 1); })
      .Case([&](mlir::scf::WhileOp loop) { return isThreadResult(loop.getConditionOp().getArgs()[number], depth + 1); })
      .Case([&](mlir::scf::IfOp branch) { return isThreadResult(branch.thenYield().getOperand(number), depth + 1); })
      .Default([&](mlir::Operation* op) {
        return isElementwise(op) && op->getNumOperands() > 0 &&
               isThreadResult(op->getOperand(op->getNumOperands() - 1), depth + 1);
      });
}

TileBuffer Emitter::allocateFor(mlir::Operation* op, mlir::Value tile) {
  auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
  Values extents;
  llvm::SmallVector<SizeExpr> bounds;
  for (auto [dim, size] : llvm::enumerate(ir::tileSizes(tile))) {
    std::optional<SizeExpr> bound;
    Value* extent = i64(0);
    if (!type.isDynamicDim(dim)) {
      bound = SizeExpr::constant(type.getDimSize(dim));
      extent = i64(type.getDimSize(dim));
    } else if (auto constant = mlir::dyn_cast_if_present<mlir::Attribute>(size)) {
      int64_t value = mlir::cast<mlir::IntegerAttr>(constant).getInt();
      bound = SizeExpr::constant(value);
      extent = i64(value);
    } else if (auto value = mlir::dyn_cast_if_present<mlir::Value>(size)) {
      bound = upperBound(value);
      extent = scalar(value);
    } else if (isThreadResult(tile)) {
      bound = SizeExpr::binary(Op::Mul, blockSize_[0], SizeExpr::binary(Op::Mul, blockSize_[1], blockSize_[2]));
      extent = this->size(*bound);
    }
    if (!bound) {
      fail(op, "a tile whose extent has no bound known before the launch");
      bound = SizeExpr::constant(0);
    }
    extents.push_back(extent);
    bounds.push_back(*bound);
  }
  return allocateTile(type.getElementType(), extents, bounds);
}

void Emitter::copyTile(const TileBuffer& from, const TileBuffer& to) {
  Value* bytes = i64(elementBytes(from.elementType));
  for (Value* extent : from.extents)
    bytes = ir.CreateMul(bytes, extent);
  ir.CreateMemCpy(to.pointer, llvm::Align(64), from.pointer, llvm::Align(64), bytes);
}

}  // namespace vortex::target::cpu::emit
