// How far the threads of a region go that have an effect.
//
// `if (local < stride) …` and `if (local == 0) …` between two barriers leave most of a block idle. The walk over its threads ends where such a
// condition does; a region of which one thread is left runs without vectors.
#include "target/cpu/emit/region_emitter.h"

#include <mlir/IR/Matchers.h>
#include <mlir/Interfaces/LoopLikeInterface.h>

namespace vortex::target::cpu::emit {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using llvm::Value;

namespace {

/// For each axis, and for the linear number of a thread: a number that is not exceeded by those with an effect, plus one; null: not known.
using Ends = std::array<Value*, 4>;

class ReachFinder {
public:
  ReachFinder(Emitter& emitter, ir::ThreadsOp region)
      : e_(emitter), ir_(emitter.ir), block_(region.getBody().front()) {}

  std::optional<Ends> ofBlock(mlir::Block& block) {
    std::optional<Ends> all;  // nothing: there are no effects
    for (mlir::Operation& op : block.without_terminator()) {
      if (mlir::isa<ir::LoadOp>(op) || (op.getNumRegions() == 0 && mlir::isMemoryEffectFree(&op)))
        continue;
      Ends one{};
      if (auto branch = mlir::dyn_cast<scf::IfOp>(op))
        all = either(all, ofBranch(branch));
      else if (auto store = mlir::dyn_cast<ir::StoreOp>(op); store && store.getMask())
        all = either(all, ofCondition(store.getMask(), true));
      else
        all = one;
    }
    return all;
  }

private:
  std::optional<Ends> ofBranch(scf::IfOp branch) {
    std::optional<Ends> all;
    const auto side = [&](mlir::Block* block, bool holds) {
      std::optional<Ends> inside = block ? ofBlock(*block) : std::nullopt;
      if (inside)
        all = either(all, both(*inside, ofCondition(branch.getCondition(), holds)));
    };
    side(branch.thenBlock(), true);
    side(branch.elseBlock(), false);
    return all;
  }

  std::optional<Ends> either(const std::optional<Ends>& a, const std::optional<Ends>& b) {
    if (!a || !b)
      return a ? a : b;
    Ends result{};
    for (unsigned i = 0; i < 4; ++i)
      if ((*a)[i] && (*b)[i])
        result[i] = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, (*a)[i], (*b)[i]);
    return result;
  }

  Ends both(const Ends& a, const Ends& b) {
    Ends result{};
    for (unsigned i = 0; i < 4; ++i)
      result[i] = !a[i] ? b[i] : !b[i] ? a[i] : ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a[i], b[i]);
    return result;
  }

  Ends ofCondition(mlir::Value condition, bool holds) {
    mlir::Operation* op = condition.getDefiningOp();
    if (auto inverted = mlir::dyn_cast_or_null<arith::XOrIOp>(op))
      return mlir::matchPattern(inverted.getRhs(), mlir::m_One()) ? ofCondition(inverted.getLhs(), !holds) : Ends{};
    if (holds ? mlir::isa_and_nonnull<arith::AndIOp>(op) : mlir::isa_and_nonnull<arith::OrIOp>(op))
      return both(ofCondition(op->getOperand(0), holds), ofCondition(op->getOperand(1), holds));
    auto compare = mlir::dyn_cast_or_null<arith::CmpIOp>(op);
    return compare ? ofComparison(compare, holds) : Ends{};
  }

  Ends ofComparison(arith::CmpIOp compare, bool holds) {
    llvm::CmpInst::Predicate predicate = integerPredicate(compare);
    mlir::Value number = compare.getLhs(), bound = compare.getRhs();
    std::optional<unsigned> axis = axisOf(number);
    if (!axis) {
      std::swap(number, bound);
      predicate = llvm::CmpInst::getSwappedPredicate(predicate);
      axis = axisOf(number);
    }
    if (!holds)
      predicate = llvm::CmpInst::getInversePredicate(predicate);
    const bool isEqual = predicate == llvm::CmpInst::ICMP_EQ, isSigned = llvm::CmpInst::isSigned(predicate),
               isLess = predicate == llvm::CmpInst::ICMP_ULT || predicate == llvm::CmpInst::ICMP_SLT,
               isAtMost = predicate == llvm::CmpInst::ICMP_ULE || predicate == llvm::CmpInst::ICMP_SLE;
    if (!axis || !(isEqual || isLess || isAtMost))
      return {};
    Value* end = scalar(bound);
    if (!end)
      return {};
    // Of more bits than a thread's number has: neither the sum nor the sign is lost.
    end = isSigned ? ir_.CreateSExt(end, ir_.getInt64Ty()) : ir_.CreateZExt(end, ir_.getInt64Ty());
    if (isSigned)
      end = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, end, ir_.getInt64(isAtMost ? -1 : 0));
    if (!isLess)
      end = isSigned ? ir_.CreateAdd(end, ir_.getInt64(1))
                     : ir_.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, end, ir_.getInt64(1));
    Ends result{};
    result[*axis] = end;
    return result;
  }

  /// 0 to 2: x, y, z; 3: the linear number.
  std::optional<unsigned> axisOf(mlir::Value number) {
    while (mlir::Operation* op = number.getDefiningOp()) {
      if (!mlir::isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::TruncIOp, arith::ExtUIOp, arith::ExtSIOp>(op))
        return std::nullopt;
      mlir::Type to = op->getResult(0).getType();
      if (!to.isIndex() && to.getIntOrFloatBitWidth() < 32)
        return std::nullopt;
      number = op->getOperand(0);
    }
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(number);
    if (!argument || argument.getOwner() != &block_ || argument.getArgNumber() > 3)
      return std::nullopt;
    return argument.getArgNumber();
  }

  /// Of a value that all threads agree on: from outside of the region, or computed from such; else null.
  Value* scalar(mlir::Value value) {
    mlir::Operation* op = value.getDefiningOp();
    if (!block_.getParent()->isAncestor(value.getParentRegion()))
      return e_.scalar(value);
    if (op && op->hasTrait<mlir::OpTrait::ConstantLike>())
      return e_.scalar(value);
    if (!op || !isElementwise(op) || op->getNumResults() != 1)
      return nullptr;
    Values operands;
    for (mlir::Value operand : op->getOperands())
      if (Value* emitted = scalar(operand))
        operands.push_back(emitted);
      else
        return nullptr;
    return emitElementwise(ir_, e_.features, op, operands, 1);
  }

  Emitter& e_;
  llvm::IRBuilder<>& ir_;
  mlir::Block& block_;
};

/// Whether the threads that are walked have linear numbers that follow each other, also where axes are shorter than the block's.
bool isContiguous(llvm::ArrayRef<Value*> walked, llvm::ArrayRef<Value*> dims) {
  bool isOuterOne = true;
  for (unsigned axis : {2u, 1u, 0u}) {
    if (walked[axis] != dims[axis] && !isOuterOne)
      return false;
    isOuterOne &= isOne(walked[axis]);
  }
  return true;
}

}  // namespace

RegionWalk chooseWalk(Emitter& e, ir::ThreadsOp region, const std::array<Value*, 3>& dims) {
  llvm::IRBuilder<>& ir = e.ir;
  const auto product = [&](const std::array<Value*, 3>& of) { return ir.CreateMul(ir.CreateMul(of[0], of[1]), of[2]); };
  RegionWalk walk{dims, product(dims), chooseShape(region, e.features, dims, e.unitStrides), false};
  if (!region.getOutputs().empty() || walk.shape.isFixed)
    return walk;
  const std::optional<Ends> ends = ReachFinder(e, region).ofBlock(region.getBody().front());
  if (!ends)
    return walk;
  std::array<Value*, 3> shorter = dims;
  const auto shorten = [&](unsigned axis, Value* end) {
    shorter[axis] = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, dims[axis], end);
  };
  const auto wideAxes = llvm::count_if(dims, [](Value* dim) { return !isOne(dim); });
  for (unsigned axis = 0; axis < 3; ++axis) {
    const bool isOnly = wideAxes == 1 && !isOne(dims[axis]);
    if (Value* end = (*ends)[3]; end && (isOnly || isOne(end)))
      shorten(axis, end);
    else if (Value* own = (*ends)[axis]; own && !isOne(dims[axis]))
      shorten(axis, own);
  }
  const bool isInTurn = isContiguous(shorter, dims);
  if (shorter == dims || (!isInTurn && !walk.shape.rows))
    return walk;
  walk = {shorter, product(shorter), walk.shape, true};
  if (isInTurn)
    walk.shape = chooseShape(region, e.features, shorter, e.unitStrides);
  return walk;
}

unsigned RegionEmitter::mostInLine() const {
  constexpr unsigned kMost = 4, kMostOperations = 32;
  if (!walk_.isShort)
    return 1;
  unsigned count = 0;
  const auto result = ir::ThreadsOp(region_).walk([&](mlir::Operation* op) {
    const bool isLarge = mlir::isa<mlir::LoopLikeOpInterface>(op) || ++count > kMostOperations;
    return isLarge ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return result.wasInterrupted() ? 1 : kMost;
}

}  // namespace vortex::target::cpu::emit
