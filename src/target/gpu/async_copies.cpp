#include "target/gpu/async_copies.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

static void expand(vxt::AsyncCopyOp op) {
  mlir::OpBuilder b(op);
  mlir::Location loc = op.getLoc();
  int64_t elementBytes = vxt::scalarBytes(op.getElement());
  int64_t count = static_cast<int64_t>(op.getBytes()) / elementBytes;
  auto vector = mlir::VectorType::get({count}, op.getElement());
  auto alignment = static_cast<int64_t>(op.getBytes());
  mlir::Value loaded;
  if (!op.getSourceBytes()) {
    loaded = b.create<vxt::LoadOp>(loc, vector, op.getSource(), op.getSourceIndex(), mlir::Value(), alignment,
                                   vxt::Cache::Default);
  } else {
    llvm::SmallVector<mlir::Value> elements;
    mlir::Type indexType = op.getSourceIndex().getType();
    for (int64_t i = 0; i < count; ++i) {
      mlir::Value index = b.create<arith::AddIOp>(
          loc, op.getSourceIndex(), b.create<arith::ConstantOp>(loc, b.getIntegerAttr(indexType, i)).getResult());
      mlir::Value end =
          b.create<arith::ConstantOp>(loc, b.getI32IntegerAttr(static_cast<int32_t>((i + 1) * elementBytes)));
      mlir::Value present = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ule, end, op.getSourceBytes());
      elements.push_back(
          b.create<vxt::LoadOp>(loc, op.getElement(), op.getSource(), index, present, int64_t{0}, vxt::Cache::Default));
    }
    loaded = b.create<mlir::vector::FromElementsOp>(loc, vector, elements);
  }
  b.create<vxt::StoreOp>(loc, loaded, op.getDestination(), op.getDestinationIndex(), mlir::Value(), alignment,
                         vxt::Cache::Default);
  op.erase();
}

void expandAsyncCopies(vxt::KernelOp kernel) {
  kernel.walk([](mlir::Operation* op) {
    if (auto copy = mlir::dyn_cast<vxt::AsyncCopyOp>(op))
      expand(copy);
    else if (mlir::isa<vxt::AsyncCommitOp, vxt::AsyncWaitOp>(op))
      op->erase();
  });
}

}  // namespace vortex::target::gpu
