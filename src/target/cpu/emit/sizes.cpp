// Sizes over the launch's arguments: their run-time values, and bounds of index values found by walking to the arguments.
#include "base/check.h"
#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "target/cpu/emit/emitter.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::cpu::emit {

namespace arith = mlir::arith;
using llvm::Value;
using size::Op;

Value* Emitter::emitSize(const size::Node& node, const std::array<Value*, 3>& operands) {
  auto [a, b, otherwise] = operands;
  Value* zero = ir.getInt64(0);
  auto asInt = [&](Value* condition) { return ir.CreateZExt(condition, ir.getInt64Ty()); };
  auto isTrue = [&](Value* value) { return ir.CreateICmpNE(value, zero); };
  auto quotient = [&] { return math::emitInt(ir, math::IntOp::Div, a, b, true); };
  auto rest = [&] { return math::emitInt(ir, math::IntOp::Mod, a, b, true); };
  auto signsDiffer = [&](Value* remainder) { return ir.CreateICmpSLT(ir.CreateXor(remainder, b), zero); };
  switch (node.op) {
  case Op::Constant: return ir.getInt64(node.value);
  case Op::Dim:
  case Op::Stride:
  case Op::Address:
  case Op::Scalar:
    return ir.CreateLoad(ir.getInt64Ty(), ir.CreateConstGEP1_32(ir.getInt64Ty(), slotsArgument(),
                                                                ir::slotOf(node, kernel.getArgumentTypes())));
  case Op::LaunchGrid: return gridDim[node.argument];  // of a kernel whose own grid it is
  case Op::Device: break;                              // code reads lets
  case Op::Add: return ir.CreateAdd(a, b);
  case Op::Sub: return ir.CreateSub(a, b);
  case Op::Mul: return ir.CreateMul(a, b);
  case Op::FloorDiv: {
    Value* remainder = rest();
    return ir.CreateSub(quotient(), asInt(ir.CreateAnd(isTrue(remainder), signsDiffer(remainder))));
  }
  case Op::CeilDiv: {
    Value* remainder = rest();
    return ir.CreateAdd(quotient(), asInt(ir.CreateAnd(isTrue(remainder), ir.CreateNot(signsDiffer(remainder)))));
  }
  case Op::Mod: {
    Value* remainder = rest();
    Value* wraps = ir.CreateAnd(isTrue(remainder), signsDiffer(remainder));
    return ir.CreateAdd(remainder, ir.CreateSelect(wraps, b, zero));
  }
  case Op::Min: return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  case Op::Max: return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  case Op::Equal: return asInt(ir.CreateICmpEQ(a, b));
  case Op::Less: return asInt(ir.CreateICmpSLT(a, b));
  case Op::And: return asInt(ir.CreateAnd(isTrue(a), isTrue(b)));
  case Op::Or: return asInt(ir.CreateOr(isTrue(a), isTrue(b)));
  case Op::Not: return asInt(ir.CreateICmpEQ(a, zero));
  case Op::IsPowerOfTwo:
    return asInt(ir.CreateAnd(ir.CreateICmpSGT(a, zero),
                              ir.CreateICmpEQ(ir.CreateAnd(a, ir.CreateSub(a, ir.getInt64(1))), zero)));
  case Op::Select: return ir.CreateSelect(isTrue(a), b, otherwise);
  }
  VORTEX_UNREACHABLE("size operator %d", int(node.op));
}

namespace {

/// Walks from an index value to launch arguments. `exact`: only equal sizes; else sizes that are never exceeded, for values that are
/// not negative.
struct SizeWalk {
  Emitter& emitter;
  ir::KernelOp kernel;
  bool exact;
  unsigned steps = 0;

  size::Arena& arena() { return ir::sizeArena(kernel.getContext()); }

  size::Expr argument(mlir::BlockArgument argument, std::optional<unsigned> dim) {
    if (argument.getOwner() != &kernel.getBody().front())
      return size::Expr();
    uint32_t number = argument.getArgNumber();
    return dim ? arena().dim(number, *dim) : arena().scalar(number);
  }

  size::Expr extent(mlir::Value view, unsigned dim) {
    auto type = mlir::cast<ir::ViewType>(view.getType());
    if (!type.isDynamic(dim))
      return arena().constant(type.getShape()[dim]);
    if (auto block = mlir::dyn_cast<mlir::BlockArgument>(view))
      return argument(block, dim);
    auto subview = view.getDefiningOp<ir::SubviewOp>();
    if (!subview)
      return size::Expr();
    unsigned dynamic = llvm::count_if(type.getShape().take_front(dim), mlir::ShapedType::isDynamic);
    return walk(subview.getSizes()[dynamic]);
  }

  size::Expr both(Op op, mlir::Operation* def) {
    auto a = walk(def->getOperand(0)), b = walk(def->getOperand(1));
    if (!a || !b)
      return size::Expr();
    return size::make(op, a, b);
  }
  /// The divisor must be exact: a larger one would make the bound too small.
  size::Expr quotient(Op op, mlir::Operation* def) {
    auto a = walk(def->getOperand(0));
    auto b = SizeWalk{emitter, kernel, true, steps}.walk(def->getOperand(1));
    if (a && b)
      return size::make(op, a, b);
    return exact ? size::Expr() : a;
  }
  size::Expr either(Op op, mlir::Operation* def) {
    auto a = walk(def->getOperand(0)), b = walk(def->getOperand(1));
    if (a && b)
      return size::make(op, a, b);
    return exact ? size::Expr() : a ? a : b;
  }

  /// Null: not known exactly.
  size::Expr condition(mlir::Value value) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    if (!compare || !(compare.getLhs().getType().isIndex() || compare.getLhs().getType().isInteger(64)))
      return size::Expr();
    SizeWalk same{emitter, kernel, true, steps};
    auto a = same.walk(compare.getLhs()), b = same.walk(compare.getRhs());
    if (!a || !b)
      return size::Expr();
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt: return size::make(Op::Less, a, b);
    case arith::CmpIPredicate::sgt: return size::make(Op::Less, b, a);
    case arith::CmpIPredicate::sge: return size::make(Op::Not, size::make(Op::Less, a, b));
    case arith::CmpIPredicate::sle: return size::make(Op::Not, size::make(Op::Less, b, a));
    default: return size::Expr();
    }
  }

  /// Of the two, the larger where it is not known which: bounds of 2^63 - 1 that a launch does not have would leave no bytes to reserve.
  size::Expr select(arith::SelectOp op) {
    auto a = walk(op.getTrueValue()), b = walk(op.getFalseValue());
    if (!a || !b)
      return size::Expr();
    if (auto holds = condition(op.getCondition()))
      return size::make(Op::Select, holds, a, b);
    return exact ? size::Expr() : size::make(Op::Max, a, b);
  }

  size::Expr walk(mlir::Value value);
};

size::Expr SizeWalk::walk(mlir::Value value) {
  if (++steps > 200)
    return size::Expr();
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return arena().constant(constant.getSExtValue());
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
    if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(argument.getOwner()->getParentOp()))
      return !exact && argument == loop.getInductionVar() ? walk(loop.getUpperBound()) : size::Expr();
    return this->argument(argument, std::nullopt);
  }
  auto sizeOf = [&](mlir::ArrayAttr list, ir::Axis axis) {
    return mlir::cast<ir::SizeAttr>(list[unsigned(axis)]).getExpr();
  };
  return llvm::TypeSwitch<mlir::Operation*, size::Expr>(value.getDefiningOp())
      .Case([&](ir::DimOp dim) { return extent(dim.getView(), dim.getDim()); })
      .Case([&](ir::BlockDimOp dim) { return sizeOf(*kernel.getBlock(), dim.getAxis()); })
      .Case([&](ir::GridDimOp dim) { return sizeOf(*kernel.getGrid(), dim.getAxis()); })
      .Case([&](ir::BlockIdOp id) -> size::Expr {
        return exact ? size::Expr() : sizeOf(*kernel.getGrid(), id.getAxis());
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(
          [&](auto cast) { return walk(cast->getOperand(0)); })
      .Case([&](arith::TruncIOp cast) { return exact ? size::Expr() : walk(cast.getIn()); })
      .Case([&](arith::AddIOp op) { return both(Op::Add, op); })
      .Case([&](arith::MulIOp op) { return both(Op::Mul, op); })
      .Case([&](arith::SubIOp op) -> size::Expr {
        auto b = SizeWalk{emitter, kernel, true, steps}.walk(op.getRhs());
        auto a = walk(op.getLhs());
        if (a && b)
          return size::make(Op::Sub, a, b);
        return exact ? size::Expr() : a;  // the difference of sizes is not larger than the first
      })
      .Case<arith::MinSIOp, arith::MinUIOp>([&](auto op) { return either(Op::Min, op); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto op) { return both(Op::Max, op); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto op) { return quotient(Op::FloorDiv, op); })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>([&](auto op) { return quotient(Op::CeilDiv, op); })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto op) { return exact ? both(Op::Mod, op) : walk(op.getRhs()); })
      .Case([&](ir::IntOp op) -> size::Expr {
        switch (op.getKind()) {
        case ir::IntKind::DivS:
        case ir::IntKind::DivU: return quotient(Op::FloorDiv, op);
        case ir::IntKind::CeilDivU: return quotient(Op::CeilDiv, op);
        case ir::IntKind::RemS:
        case ir::IntKind::RemU: return exact ? both(Op::Mod, op) : walk(op.getRhs());
        case ir::IntKind::ShrS:
        case ir::IntKind::ShrU: return exact ? size::Expr() : walk(op.getLhs());
        case ir::IntKind::Shl: return size::Expr();
        }
        return size::Expr();
      })
      .Case([&](arith::SelectOp op) { return select(op); })
      .Default(size::Expr());
}

}  // namespace

size::Expr Emitter::upperBound(mlir::Value index) {
  if (auto size = SizeWalk{*this, kernel, true}.walk(index))
    return size;
  return SizeWalk{*this, kernel, false}.walk(index);
}

TileBuffer Emitter::allocateTile(mlir::Operation* op, mlir::RankedTensorType type,
                                 llvm::ArrayRef<mlir::Value> dynamicExtents) {
  size::Arena& arena = ir::sizeArena(kernel.getContext());
  Values extents;
  llvm::SmallVector<size::Expr> bounds;
  for (int64_t extent : type.getShape()) {
    if (!mlir::ShapedType::isDynamic(extent)) {
      extents.push_back(ir.getInt64(extent));
      bounds.push_back(arena.constant(extent));
      continue;
    }
    auto bound = upperBound(dynamicExtents.front());
    if (!bound) {
      fail(op, "a tile whose extent has no bound known before the launch");
      bound = arena.constant(0);
    }
    extents.push_back(scalar(dynamicExtents.front()));
    bounds.push_back(bound);
    dynamicExtents = dynamicExtents.drop_front();
  }
  return allocateTile(type.getElementType(), extents, bounds);
}

TileBuffer Emitter::allocateTile(mlir::Type elementType, llvm::ArrayRef<Value*> extents,
                                 llvm::ArrayRef<size::Expr> bounds) {
  size::Arena& arena = ir::sizeArena(kernel.getContext());
  size::Expr bytes = arena.constant(elementBytes(elementType));
  for (size::Expr bound : bounds)
    bytes = size::make(Op::Mul, bytes, bound);
  bytes = size::make(Op::Add, bytes, 64);  // full vectors may run over the end
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
  size::Arena& arena = ir::sizeArena(kernel.getContext());
  Values extents;
  llvm::SmallVector<size::Expr> bounds;
  for (auto [dim, size] : llvm::enumerate(ir::tileSizes(tile))) {
    size::Expr bound;
    Value* extent = i64(0);
    if (!type.isDynamicDim(dim)) {
      bound = arena.constant(type.getDimSize(dim));
      extent = i64(type.getDimSize(dim));
    } else if (auto constant = mlir::dyn_cast_if_present<mlir::Attribute>(size)) {
      int64_t value = mlir::cast<mlir::IntegerAttr>(constant).getInt();
      bound = arena.constant(value);
      extent = i64(value);
    } else if (auto value = mlir::dyn_cast_if_present<mlir::Value>(size)) {
      bound = upperBound(value);
      extent = scalar(value);
    } else if (isThreadResult(tile)) {
      bound = size::make(Op::Mul, blockSize_[0], size::make(Op::Mul, blockSize_[1], blockSize_[2]));
      extent = this->size(bound);
    }
    if (!bound) {
      fail(op, "a tile whose extent has no bound known before the launch");
      bound = arena.constant(0);
    }
    extents.push_back(extent);
    bounds.push_back(bound);
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
