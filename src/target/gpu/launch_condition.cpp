#include "target/gpu/launch_condition.h"

#include "ir/size_attr.h"
#include "ir/vx.h"
#include "ir/vxt.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;

namespace {

/// Null stands for what cannot be expressed.
class Conversion {
public:
  using Op = size::Op;
  using Expr = size::Expr;

  Conversion(mlir::MLIRContext* context, llvm::function_ref<Expr(unsigned)> argumentOf)
      : arena_(ir::sizeArena(context)), argumentOf_(argumentOf) {}

  Expr convert(mlir::Value value) {
    auto [place, isNew] = known_.try_emplace(value);
    if (!isNew)
      return place->second;
    Expr expr = build(value);
    known_[value] = expr;
    return expr;
  }

private:
  Expr binary(Op op, Expr a, Expr b) { return a && b ? arena_.make(op, a, b) : Expr(); }
  Expr negate(Expr a) { return a ? arena_.make(Op::Not, a) : Expr(); }

  /// a < b as unsigned numbers: moving both by 2^63 makes their order the signed one.
  Expr below(Expr a, Expr b) {
    if (!a || !b || (a.isNotNegative() && b.isNotNegative()))
      return binary(Op::Less, a, b);
    Expr half = arena_.constant(INT64_MIN);
    return binary(Op::Less, binary(Op::Add, a, half), binary(Op::Add, b, half));
  }

  Expr unsignedOnly(Op op, Expr a, Expr b) {
    return a && b && a.isNotNegative() && b.isNotNegative() ? arena_.make(op, a, b) : Expr();
  }

  /// By a constant only: what division by zero leaves differs.
  Expr remainder(Expr a, Expr b) { return b && b.constant().value_or(0) > 0 ? unsignedOnly(Op::Mod, a, b) : Expr(); }

  Expr compare(arith::CmpIOp op) {
    using P = arith::CmpIPredicate;
    bool isOrder = op.getPredicate() != P::eq && op.getPredicate() != P::ne;
    if (isOrder && op.getLhs().getType().isInteger(1))
      return Expr();
    Expr a = convert(op.getLhs()), b = convert(op.getRhs());
    switch (op.getPredicate()) {
    case P::eq: return binary(Op::Equal, a, b);
    case P::ne: return negate(binary(Op::Equal, a, b));
    case P::slt: return binary(Op::Less, a, b);
    case P::sgt: return binary(Op::Less, b, a);
    case P::sle: return negate(binary(Op::Less, b, a));
    case P::sge: return negate(binary(Op::Less, a, b));
    case P::ult: return below(a, b);
    case P::ugt: return below(b, a);
    case P::ule: return negate(below(b, a));
    case P::uge: return negate(below(a, b));
    }
    return Expr();
  }

  Expr select(arith::SelectOp op) {
    Expr condition = convert(op.getCondition()), x = convert(op.getTrueValue()), y = convert(op.getFalseValue());
    return condition && x && y ? arena_.make(Op::Select, condition, x, y) : Expr();
  }

  Expr bitwiseAnd(arith::AndIOp op) {
    Expr a = convert(op.getLhs()), b = convert(op.getRhs());
    if (op.getType().isInteger(1) || !a || !b)
      return binary(Op::And, a, b);
    if (a.constant())
      std::swap(a, b);
    auto mask = b.constant();  // low bits: the remainder of a power of two
    if (!mask || *mask < 0 || *mask == INT64_MAX || (*mask & (*mask + 1)) != 0)
      return Expr();
    return binary(Op::Mod, a, arena_.constant(*mask + 1));
  }

  Expr quotient(ir::IntOp op) {
    Expr a = convert(op.getLhs()), b = convert(op.getRhs());
    switch (op.getKind()) {
    case ir::IntKind::DivU: return unsignedOnly(Op::FloorDiv, a, b);
    case ir::IntKind::CeilDivU: return unsignedOnly(Op::CeilDiv, a, b);
    case ir::IntKind::RemU: return remainder(a, b);
    default: return Expr();
    }
  }

  /// Of a tensor of the launch: its slot.
  Expr address(mlir::Value pointer) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(pointer);
    if (!argument || !mlir::isa<ir::vxt::KernelOp>(argument.getOwner()->getParentOp()))
      return Expr();
    return argumentOf_(argument.getArgNumber());
  }

  Expr build(mlir::Value value) {
    mlir::Type type = value.getType();
    bool isTruth = type.isInteger(1);
    if (!type.isIndex() && !type.isInteger(64) && !isTruth)
      return Expr();
    llvm::APInt number;
    if (mlir::matchPattern(value, mlir::m_ConstantInt(&number)))
      return arena_.constant(isTruth ? static_cast<int64_t>(number.getZExtValue()) : number.getSExtValue());
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
      if (!mlir::isa<ir::vxt::KernelOp>(argument.getOwner()->getParentOp()))
        return Expr();
      return argumentOf_(argument.getArgNumber());
    }
    auto both = [&](Op op, auto from) {
      return isTruth && op != Op::Or ? Expr() : binary(op, convert(from.getLhs()), convert(from.getRhs()));
    };
    auto positive = [&](Op op, auto from) {
      return isTruth ? Expr() : unsignedOnly(op, convert(from.getLhs()), convert(from.getRhs()));
    };
    return llvm::TypeSwitch<mlir::Operation*, Expr>(value.getDefiningOp())
        .Case([&](arith::AddIOp op) { return both(Op::Add, op); })
        .Case([&](arith::SubIOp op) { return both(Op::Sub, op); })
        .Case([&](arith::MulIOp op) { return both(Op::Mul, op); })
        .Case([&](arith::MaxSIOp op) { return both(Op::Max, op); })
        .Case([&](arith::MinSIOp op) { return both(Op::Min, op); })
        .Case([&](arith::MaxUIOp op) { return positive(Op::Max, op); })
        .Case([&](arith::MinUIOp op) { return positive(Op::Min, op); })
        .Case([&](arith::DivUIOp op) { return positive(Op::FloorDiv, op); })
        .Case([&](arith::CeilDivUIOp op) { return positive(Op::CeilDiv, op); })
        .Case([&](arith::RemUIOp op) { return remainder(convert(op.getLhs()), convert(op.getRhs())); })
        .Case([&](arith::AndIOp op) { return bitwiseAnd(op); })
        .Case([&](arith::OrIOp op) { return isTruth ? both(Op::Or, op) : Expr(); })
        .Case([&](arith::XOrIOp op) {
          return isTruth && mlir::matchPattern(op.getRhs(), mlir::m_One()) ? negate(convert(op.getLhs())) : Expr();
        })
        .Case([&](arith::CmpIOp op) { return compare(op); })
        .Case([&](arith::SelectOp op) { return select(op); })
        .Case([&](ir::IntOp op) { return quotient(op); })
        .Case([&](ir::vxt::AddressOp op) { return address(op.getBase()); })
        .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp>([&](auto op) {
          bool extendsSign = mlir::isa<arith::IndexCastOp>(op.getOperation()) && op.getIn().getType().isInteger(1);
          return extendsSign ? Expr() : convert(op.getIn());
        })
        .Default(Expr());
  }

  size::Arena& arena_;
  llvm::function_ref<Expr(unsigned)> argumentOf_;
  llvm::DenseMap<mlir::Value, Expr> known_;
};

}  // namespace

size::Expr launchCondition(mlir::Value value, llvm::function_ref<size::Expr(unsigned slot)> argumentOf,
                           size_t mostSteps) {
  size::Expr expr = Conversion(value.getContext(), argumentOf).convert(value);
  size_t steps = 0;
  if (expr)
    size::fold<bool>(expr, [&](const size::Node&, const std::array<bool, 3>&) { return ++steps != 0; });
  return steps <= mostSteps ? expr : size::Expr();
}

}  // namespace vortex::target::gpu
