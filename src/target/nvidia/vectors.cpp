// Operations of the vector dialect on rank-1 vectors: moving elements between registers.
#include "target/nvidia/emitter.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::nvidia {

namespace mv = mlir::vector;

bool Emitter::emitVector(mlir::Operation* op) {
  auto lanes = [&] { return lanesOf(op->getResult(0).getType()); };
  /// Where an extract or insert of one element reaches.
  auto position = [&](auto at) -> Value* {
    mlir::OpFoldResult index = at.getMixedPosition()[0];
    if (auto dynamic = llvm::dyn_cast<mlir::Value>(index))
      return value(dynamic);
    return ir_.getInt64(llvm::cast<mlir::IntegerAttr>(llvm::cast<mlir::Attribute>(index)).getInt());
  };
  // A vector of one element is a scalar here.
  auto isOne = [&](mlir::Type type) { return lanesOf(type) == 1; };
  Value* result =
      llvm::TypeSwitch<mlir::Operation*, Value*>(op)
          .Case([&](mv::ExtractElementOp extract) {
            Value* source = value(extract.getVector());
            return isOne(extract.getVector().getType())
                       ? source
                       : ir_.CreateExtractElement(source, value(extract.getPosition()));
          })
          .Case([&](mv::InsertElementOp insert) {
            Value* element = value(insert.getSource());
            return isOne(insert.getType())
                       ? element
                       : ir_.CreateInsertElement(value(insert.getDest()), element, value(insert.getPosition()));
          })
          .Case([&](mv::ExtractOp extract) -> Value* {
            if (extract.getNumIndices() != 1)
              return nullptr;
            Value* source = value(extract.getVector());
            return isOne(extract.getVector().getType()) ? source : ir_.CreateExtractElement(source, position(extract));
          })
          .Case([&](mv::InsertOp insert) -> Value* {
            if (insert.getNumIndices() != 1)
              return nullptr;
            Value* element = value(insert.getSource());
            return isOne(insert.getType())
                       ? element
                       : ir_.CreateInsertElement(value(insert.getDest()), element, position(insert));
          })
          .Case<mv::SplatOp, mv::BroadcastOp>([&](auto splat) -> Value* {
            Value* source = value(splat->getOperand(0));
            if (source->getType()->isVectorTy() || lanes() == 1)
              return source->getType() == type(splat->getResult(0).getType()) ? source : nullptr;
            return ir_.CreateVectorSplat(lanes(), source);
          })
          .Case([&](mv::FromElementsOp from) {
            Value* all = llvm::PoisonValue::get(type(from.getType()));
            if (lanes() == 1)
              return value(from.getElements()[0]);
            for (auto [i, element] : llvm::enumerate(from.getElements()))
              all = ir_.CreateInsertElement(all, value(element), uint64_t(i));
            return all;
          })
          .Case([&](mv::BitCastOp cast) { return ir_.CreateBitCast(value(cast.getSource()), type(cast.getType())); })
          .Case([&](mv::ShapeCastOp cast) { return value(cast.getSource()); })
          .Case([&](mv::ExtractStridedSliceOp slice) -> Value* {
            llvm::SmallVector<int> mask;
            int64_t first = mlir::cast<mlir::IntegerAttr>(slice.getOffsets()[0]).getInt();
            for (unsigned i = 0; i < lanes(); ++i)
              mask.push_back(first + i);
            if (isOne(slice.getVector().getType()))
              return value(slice.getVector());
            return lanes() == 1 ? ir_.CreateExtractElement(value(slice.getVector()), uint64_t(first))
                                : ir_.CreateShuffleVector(value(slice.getVector()), mask);
          })
          .Case([&](mv::ShuffleOp shuffle) -> Value* {
            Value *a = value(shuffle.getV1()), *b = value(shuffle.getV2());
            if (a->getType() != b->getType() || !a->getType()->isVectorTy() || lanes() == 1)
              return nullptr;
            llvm::SmallVector<int> mask;
            for (mlir::Attribute index : shuffle.getMask())
              mask.push_back(mlir::cast<mlir::IntegerAttr>(index).getInt());
            return ir_.CreateShuffleVector(a, b, mask);
          })
          .Default([](mlir::Operation*) -> Value* { return nullptr; });
  if (!result)
    return false;
  set(op->getResult(0), result);
  return true;
}

}  // namespace vortex::target::nvidia
