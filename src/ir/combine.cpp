#include "ir/combine.h"

#include "base/check.h"

namespace vortex::ir {

mlir::Value createCombine(mlir::OpBuilder& builder, mlir::Location loc, Combine kind, mlir::Value a, mlir::Value b,
                          mlir::arith::FastMathFlags flags) {
  using namespace mlir::arith;
  switch (kind) {
  case Combine::AddI: return builder.create<AddIOp>(loc, a, b);
  case Combine::AddF: return builder.create<AddFOp>(loc, a, b, flags);
  case Combine::MulI: return builder.create<MulIOp>(loc, a, b);
  case Combine::MulF: return builder.create<MulFOp>(loc, a, b, flags);
  case Combine::MaxS: return builder.create<MaxSIOp>(loc, a, b);
  case Combine::MaxU: return builder.create<MaxUIOp>(loc, a, b);
  case Combine::MaxF: return builder.create<MaximumFOp>(loc, a, b, flags);
  case Combine::MinS: return builder.create<MinSIOp>(loc, a, b);
  case Combine::MinU: return builder.create<MinUIOp>(loc, a, b);
  case Combine::MinF: return builder.create<MinimumFOp>(loc, a, b, flags);
  case Combine::And: return builder.create<AndIOp>(loc, a, b);
  case Combine::Or: return builder.create<OrIOp>(loc, a, b);
  case Combine::Xor: return builder.create<XOrIOp>(loc, a, b);
  case Combine::Exchange: break;
  }
  VORTEX_UNREACHABLE("an exchange computes nothing");
}

}  // namespace vortex::ir
