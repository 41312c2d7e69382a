#include "passes/plan/stream_loop.h"

namespace vortex::passes {

namespace arith = mlir::arith;
namespace scf = mlir::scf;

namespace {

/// What is yielded for a carried sum: carried · factor + reduce; the reduction's operand.
mlir::Value termsOf(mlir::Value yielded) {
  auto sum = yielded.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return {};
  for (mlir::Value operand : sum->getOperands())
    if (auto reduce = operand.getDefiningOp<ir::ReduceOp>(); reduce && reduce.getKind() == ir::Combine::AddF)
      return reduce.getValue();
  return {};
}

bool isMaximum(mlir::Value yielded, mlir::Value carried) {
  auto maximum = yielded.getDefiningOp<arith::MaximumFOp>();
  return maximum && llvm::is_contained(maximum->getOperands(), carried) &&
         llvm::any_of(maximum->getOperands(), [](mlir::Value operand) {
           auto reduce = operand.getDefiningOp<ir::ReduceOp>();
           return reduce && reduce.getKind() == ir::Combine::MaxF;
         });
}

/// The exponential of everything along the chunk, which is that of a difference.
void findExponentials(StreamLoop& stream) {
  mlir::Type scores = stream.scoresProduct.getType();
  for (mlir::Operation& op : *stream.loop.getBody()) {
    if (!llvm::isa<mlir::math::ExpOp, mlir::math::Exp2Op>(op) || op.getResult(0).getType() != scores)
      continue;
    auto difference = op.getOperand(0).getDefiningOp<arith::SubFOp>();
    if (!difference)
      continue;
    stream.exponentials = op.getResult(0);
    stream.scores = difference.getLhs();
    stream.isBase2 = llvm::isa<mlir::math::Exp2Op>(op);
  }
}

/// T of the loads' rows min(T − t0, step).
void findExtent(StreamLoop& stream) {
  for (mlir::Operation& op : *stream.loop.getBody())
    if (llvm::isa<arith::MinUIOp, arith::MinSIOp>(op))
      for (mlir::Value operand : op.getOperands())
        if (auto rest = operand.getDefiningOp<arith::SubIOp>();
            rest && rest.getRhs() == stream.loop.getInductionVar() && !stream.extent)
          stream.extent = rest.getLhs();
}

}  // namespace

std::optional<StreamLoop> matchStream(scf::ForOp loop) {
  StreamLoop stream;
  stream.loop = loop;
  std::optional<unsigned> maximum, accumulator;
  for (auto [number, yielded, carried] : llvm::enumerate(loop.getYieldedValues(), loop.getRegionIterArgs())) {
    auto index = static_cast<unsigned>(number);
    if (auto product = yielded.getDefiningOp<ir::DotOp>(); product && !accumulator) {
      stream.product = product;
      accumulator = index;
    } else if (isMaximum(yielded, carried) && !maximum) {
      maximum = index;
    } else if (mlir::Value terms = termsOf(yielded)) {
      stream.sums.push_back({index, terms});
    } else {
      return std::nullopt;
    }
  }
  for (mlir::Operation& op : *loop.getBody())
    if (auto product = llvm::dyn_cast<ir::DotOp>(op); product && product != stream.product) {
      if (stream.scoresProduct)
        return std::nullopt;
      stream.scoresProduct = product;
    }
  if (!maximum || !accumulator || !stream.scoresProduct)
    return std::nullopt;
  stream.maximum = *maximum;
  stream.accumulator = *accumulator;
  auto rounded = stream.product.getA().getDefiningOp<arith::TruncFOp>();
  if (!rounded)
    return std::nullopt;
  stream.weights = rounded.getIn();
  auto rows = loop->getAttrOfType<mlir::IntegerAttr>(kRowsAttr);
  stream.rows =
      rows ? static_cast<unsigned>(rows.getInt()) : static_cast<unsigned>(stream.scoresProduct.getType().getRank()) - 2;
  findExponentials(stream);
  findExtent(stream);
  return stream.exponentials && stream.extent ? std::optional(stream) : std::nullopt;
}

void setChunkSize(scf::ForOp loop, int64_t size) {
  mlir::OpBuilder builder(loop);
  mlir::Value made = builder.create<arith::ConstantIndexOp>(loop.getLoc(), size);
  loop.getStep().replaceUsesWithIf(made, [&](mlir::OpOperand& use) { return loop->isAncestor(use.getOwner()); });
}

}  // namespace vortex::passes
