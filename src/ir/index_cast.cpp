#include "ir/index_cast.h"

namespace vortex::ir {

namespace arith = mlir::arith;

mlir::Value fromIndex(mlir::OpBuilder& builder, mlir::Location loc, mlir::Type type, mlir::Value value) {
  mlir::Type i64 = builder.getI64Type();
  auto shaped = llvm::dyn_cast<mlir::ShapedType>(type);
  mlir::Type wide = shaped ? mlir::Type(shaped.clone(i64)) : i64;
  value = builder.createOrFold<arith::IndexCastUIOp>(loc, wide, value);
  return type == wide ? value : builder.createOrFold<arith::TruncIOp>(loc, type, value);
}

mlir::LogicalResult verifyIndexCasts(mlir::Operation* op) {
  mlir::WalkResult walked = op->walk([](mlir::Operation* each) -> mlir::WalkResult {
    if (!llvm::isa<arith::IndexCastOp, arith::IndexCastUIOp>(each))
      return mlir::WalkResult::advance();
    mlir::Type from = mlir::getElementTypeOrSelf(each->getOperand(0)),
               to = mlir::getElementTypeOrSelf(each->getResult(0));
    if (!from.isIndex() || to.getIntOrFloatBitWidth() >= 64)
      return mlir::WalkResult::advance();
    each->emitOpError() << "narrows an index to " << to << ", which folds lose: cast to i64, then truncate";
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(walked.wasInterrupted());
}

}  // namespace vortex::ir
