#include "target/gpu/launch_condition.h"

#include "ir/vx.h"
#include "ir/vxt.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/Matchers.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
using artifact::SizeExpr;

namespace {

/// A graph in which equal expressions are one node. Node ids are positions in `nodes_`; kNone stands for what cannot be expressed.
class ConditionGraph {
public:
  using Op = SizeExpr::Op;
  using Id = unsigned;
  static constexpr Id kNone = ~0u;

  explicit ConditionGraph(llvm::function_ref<bool(unsigned)> isExtent) : isExtent_(isExtent) {}

  Id convert(mlir::Value value) {
    auto [place, isNew] = known_.try_emplace(value, kNone);
    if (!isNew)
      return place->second;
    Id id = build(value);
    known_[value] = id;
    return id;
  }

  /// Nothing if it takes more steps than this.
  std::optional<SizeExpr> program(Id root, size_t mostSteps) {
    SizeExpr expr;
    if (!emit(root, expr, mostSteps))
      return std::nullopt;
    return expr;
  }

private:
  struct Node {
    Op op;
    int64_t value;
    Id lhs, rhs;
    bool nonNegative;
    int64_t most = INT64_MAX;  ///< an upper bound
  };

  Id node(Op op, int64_t value, Id lhs, Id rhs, bool nonNegative) {
    auto [place, isNew] = ids_.try_emplace({op, value, lhs, rhs}, static_cast<Id>(nodes_.size()));
    if (isNew)
      nodes_.push_back({op, value, lhs, rhs, nonNegative});
    return place->second;
  }
  Id constant(int64_t value) {
    Id id = node(Op::Constant, value, kNone, kNone, value >= 0);
    nodes_[id].most = value;
    return id;
  }
  std::optional<int64_t> constantOf(Id id) const {
    return nodes_[id].op == Op::Constant ? std::optional(nodes_[id].value) : std::nullopt;
  }
  bool nonNegative(Id id) const { return nodes_[id].nonNegative; }

  Id binary(Op op, Id a, Id b) {
    if (a == kNone || b == kNone)
      return kNone;
    auto x = constantOf(a), y = constantOf(b);
    if (x && y)
      return constant(SizeExpr::binary(op, SizeExpr::constant(*x), SizeExpr::constant(*y)).evaluate({}));
    bool idempotent = op == Op::And || op == Op::Or || op == Op::Min || op == Op::Max;
    if (idempotent && a == b)
      return a;
    if (op == Op::And && (x == 1 || y == 1))
      return x == 1 ? b : a;
    bool both = nonNegative(a) && nonNegative(b);
    bool truth = op == Op::Equal || op == Op::Less || op == Op::And || op == Op::Or;
    bool keeps = op == Op::Add || op == Op::Mul || op == Op::FloorDiv || op == Op::CeilDiv || op == Op::Min;
    bool positive = truth || (both && keeps) || (op == Op::Max && (nonNegative(a) || nonNegative(b))) ||
                    (op == Op::Mod && nonNegative(b));
    return node(op, 0, a, b, positive);
  }
  Id negate(Id a) { return a == kNone ? kNone : node(Op::Not, 0, a, kNone, true); }

  /// a < b as unsigned numbers: moving both by 2^63 makes their order the signed one.
  Id below(Id a, Id b) {
    if (a == kNone || b == kNone || (nonNegative(a) && nonNegative(b)))
      return binary(Op::Less, a, b);
    Id half = constant(INT64_MIN);
    return binary(Op::Less, binary(Op::Add, a, half), binary(Op::Add, b, half));
  }

  Id unsignedOnly(Op op, Id a, Id b) {
    return a != kNone && b != kNone && nonNegative(a) && nonNegative(b) ? binary(op, a, b) : kNone;
  }

  /// By a constant only: what division by zero leaves differs.
  Id remainder(Id a, Id b) {
    auto divisor = b == kNone ? std::nullopt : constantOf(b);
    return divisor && *divisor > 0 ? unsignedOnly(Op::Mod, a, b) : kNone;
  }

  Id compare(arith::CmpIOp op) {
    using P = arith::CmpIPredicate;
    bool isOrder = op.getPredicate() != P::eq && op.getPredicate() != P::ne;
    if (isOrder && op.getLhs().getType().isInteger(1))
      return kNone;
    Id a = convert(op.getLhs()), b = convert(op.getRhs());
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
    return kNone;
  }

  Id select(arith::SelectOp op) {
    Id condition = convert(op.getCondition()), x = convert(op.getTrueValue()), y = convert(op.getFalseValue());
    if (condition == kNone || x == kNone || y == kNone)
      return kNone;
    const Node& test = nodes_[condition];
    if (test.op == Op::Less && test.lhs == y && test.rhs == x)
      return binary(Op::Max, x, y);
    if (test.op == Op::Less && test.lhs == x && test.rhs == y)
      return binary(Op::Min, x, y);
    if (!nonNegative(x) || !nonNegative(y))
      return kNone;
    Id chosen = binary(Op::Mul, condition, x);
    int64_t most = std::max(nodes_[x].most, nodes_[y].most);
    auto largest = constantOf(x);
    Id result = largest && nodes_[y].most <= *largest ? binary(Op::Max, y, chosen)
                                                      : binary(Op::Add, chosen, binary(Op::Mul, negate(condition), y));
    nodes_[result].most = std::min(nodes_[result].most, most);
    return result;
  }

  Id bitwiseAnd(arith::AndIOp op) {
    Id a = convert(op.getLhs()), b = convert(op.getRhs());
    if (op.getType().isInteger(1) || a == kNone || b == kNone)
      return binary(Op::And, a, b);
    if (constantOf(a))
      std::swap(a, b);
    auto mask = constantOf(b);  // low bits: the remainder of a power of two
    if (!mask || *mask < 0 || *mask == INT64_MAX || (*mask & (*mask + 1)) != 0)
      return kNone;
    return binary(Op::Mod, a, constant(*mask + 1));
  }

  Id quotient(ir::IntOp op) {
    Id a = convert(op.getLhs()), b = convert(op.getRhs());
    switch (op.getKind()) {
    case ir::IntKind::DivU: return unsignedOnly(Op::FloorDiv, a, b);
    case ir::IntKind::CeilDivU: return unsignedOnly(Op::CeilDiv, a, b);
    case ir::IntKind::RemU: return remainder(a, b);
    default: return kNone;
    }
  }

  /// Of a tensor of the launch: its slot.
  Id address(mlir::Value pointer) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(pointer);
    if (!argument || !mlir::isa<ir::vxt::KernelOp>(argument.getOwner()->getParentOp()))
      return kNone;
    return node(Op::Slot, argument.getArgNumber(), kNone, kNone, false);
  }

  Id build(mlir::Value value) {
    mlir::Type type = value.getType();
    bool isTruth = type.isInteger(1);
    if (!type.isIndex() && !type.isInteger(64) && !isTruth)
      return kNone;
    llvm::APInt number;
    if (mlir::matchPattern(value, mlir::m_ConstantInt(&number)))
      return constant(isTruth ? static_cast<int64_t>(number.getZExtValue()) : number.getSExtValue());
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
      if (!mlir::isa<ir::vxt::KernelOp>(argument.getOwner()->getParentOp()))
        return kNone;
      return node(Op::Slot, argument.getArgNumber(), kNone, kNone, isExtent_(argument.getArgNumber()));
    }
    auto both = [&](Op op, auto from) {
      return isTruth && op != Op::Or ? kNone : binary(op, convert(from.getLhs()), convert(from.getRhs()));
    };
    auto positive = [&](Op op, auto from) {
      return isTruth ? kNone : unsignedOnly(op, convert(from.getLhs()), convert(from.getRhs()));
    };
    return llvm::TypeSwitch<mlir::Operation*, Id>(value.getDefiningOp())
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
        .Case([&](arith::OrIOp op) { return isTruth ? both(Op::Or, op) : kNone; })
        .Case([&](arith::XOrIOp op) {
          return isTruth && mlir::matchPattern(op.getRhs(), mlir::m_One()) ? negate(convert(op.getLhs())) : kNone;
        })
        .Case([&](arith::CmpIOp op) { return compare(op); })
        .Case([&](arith::SelectOp op) { return select(op); })
        .Case([&](ir::IntOp op) { return quotient(op); })
        .Case([&](ir::vxt::AddressOp op) { return address(op.getBase()); })
        .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp>([&](auto op) {
          bool extendsSign = mlir::isa<arith::IndexCastOp>(op.getOperation()) && op.getIn().getType().isInteger(1);
          return extendsSign ? kNone : convert(op.getIn());
        })
        .Default(kNone);
  }

  bool emit(Id id, SizeExpr& expr, size_t mostSteps) const {
    const Node& each = nodes_[id];
    for (Id operand : {each.lhs, each.rhs})
      if (operand != kNone && !emit(operand, expr, mostSteps))
        return false;
    expr.steps.push_back({each.op, each.value});
    return expr.steps.size() <= mostSteps;
  }

  llvm::function_ref<bool(unsigned)> isExtent_;
  std::vector<Node> nodes_;
  std::map<std::tuple<Op, int64_t, Id, Id>, Id> ids_;
  llvm::DenseMap<mlir::Value, Id> known_;
};

}  // namespace

std::optional<SizeExpr> launchCondition(mlir::Value value, llvm::function_ref<bool(unsigned slot)> isExtent,
                                        size_t mostSteps) {
  ConditionGraph graph(isExtent);
  ConditionGraph::Id id = graph.convert(value);
  if (id == ConditionGraph::kNone)
    return std::nullopt;
  return graph.program(id, mostSteps);
}

}  // namespace vortex::target::gpu
