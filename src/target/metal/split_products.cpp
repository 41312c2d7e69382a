#include "target/metal/split_products.h"

#include "ir/vx.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>

#include <map>

namespace vortex::target::metal {

namespace {

namespace arith = mlir::arith;
using mlir::Value;

mlir::RankedTensorType typeOf(Value tile) { return mlir::cast<mlir::RankedTensorType>(tile.getType()); }

/// Dimensions of more than one element.
llvm::SmallVector<unsigned> wideDims(Value tile) {
  llvm::SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < typeOf(tile).getRank(); ++dim)
    if (typeOf(tile).getDimSize(dim) != 1)
      dims.push_back(dim);
  return dims;
}

/// A part of a tile's dimension; `size` 0: all of it.
struct Part {
  Value start;
  int64_t size = 0;
};
using Parts = llvm::SmallVector<Part>;

class StoredProduct {
public:
  StoredProduct(ir::TileStoreOp store, uint64_t mostBytes) : store_(store), builder_(store), mostBytes_(mostBytes) {}

  void run() {
    auto type = mlir::dyn_cast<mlir::RankedTensorType>(store_.getValue().getType());
    if (!type || type.getRank() != 2 || !type.hasStaticShape() || store_.getOffsets().size() != 2 ||
        !visit(store_.getValue()) || sumBytes_ == 0 || !mayMoveLoads())
      return;
    int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
    while (static_cast<uint64_t>(rows * columns) * sumBytes_ > mostBytes_) {
      int64_t& longer = rows > columns ? rows : columns;
      if (longer % 2 != 0)
        return;
      longer /= 2;
    }
    if (rows == type.getDimSize(0) && columns == type.getDimSize(1))
      return;
    mlir::Location loc = store_.getLoc();
    const auto index = [&](int64_t value) { return builder_.create<arith::ConstantIndexOp>(loc, value); };
    Value zero = index(0);
    auto down = builder_.create<mlir::scf::ForOp>(loc, zero, index(type.getDimSize(0)), index(rows));
    builder_.setInsertionPointToStart(down.getBody());
    auto across = builder_.create<mlir::scf::ForOp>(loc, zero, index(type.getDimSize(1)), index(columns));
    builder_.setInsertionPointToStart(across.getBody());
    const Parts parts = {{down.getInductionVar(), rows}, {across.getInductionVar(), columns}};
    auto made = builder_.create<ir::TileStoreOp>(loc, of(store_.getValue(), parts), store_.getView(),
                                                 moved(store_.getOffsets(), parts), store_.getInbounds());
    made->setDiscardableAttrs(store_->getDiscardableAttrDictionary());
    store_.erase();
    for (mlir::Operation* op : llvm::reverse(ops_))
      if (op->use_empty())
        op->erase();
  }

private:
  /// Whether parts of the tile can be made, from what nothing else uses.
  bool visit(Value tile) {
    mlir::Operation* op = tile.getDefiningOp();
    const bool isConstant = mlir::isa_and_nonnull<arith::ConstantOp>(op);
    if (!op || (op->getBlock() != store_->getBlock() && !isConstant) || op->getNumResults() != 1)
      return false;
    if (llvm::is_contained(ops_, op))
      return true;
    if (auto dot = mlir::dyn_cast<ir::DotOp>(op)) {
      // A product of products would be computed anew for each part.
      const uint64_t before = std::exchange(sumBytes_, 0);
      if (typeOf(tile).getRank() != 2 || typeOf(dot.getA()).isDynamicDim(0) || typeOf(dot.getB()).isDynamicDim(1) ||
          !visit(dot.getA()) || !visit(dot.getB()) || sumBytes_ != 0)
        return false;
      sumBytes_ = std::max<uint64_t>({before, 4, typeOf(tile).getElementTypeBitWidth() / 8});
      if (!visit(dot.getAcc()))
        return false;
    } else if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op)) {
      if (load.getView() == store_.getView() || load.getOffsets().size() != static_cast<size_t>(typeOf(tile).getRank()))
        return false;
    } else if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op)) {
      const auto extents = [](Value each) {
        return llvm::map_to_vector(wideDims(each), [&](unsigned dim) { return typeOf(each).getDimSize(dim); });
      };
      Value source = reshape.getValue();
      if (!typeOf(tile).hasStaticShape() || !typeOf(source).hasStaticShape() || extents(source) != extents(tile) ||
          !visit(source))
        return false;
    } else if (isConstant) {
      if (!mlir::matchPattern(op, mlir::m_Constant(&splat_)))
        return false;
    } else if (mlir::isa<ir::BroadcastOp, ir::TransposeOp>(op) || ir::isElementwise(op)) {
      for (Value operand : op->getOperands())
        if (mlir::isa<mlir::RankedTensorType>(operand.getType()) && !visit(operand))
          return false;
    } else {
      return false;
    }
    ops_.push_back(op);
    return true;
  }

  /// Between what is read and the store nothing is written, and only the store needs the sums.
  bool mayMoveLoads() {
    const auto isPart = [&](mlir::Operation* op) { return op == store_ || llvm::is_contained(ops_, op); };
    mlir::Operation* first = store_;
    for (mlir::Operation* op : ops_) {
      if (mlir::isa<ir::TileLoadOp>(op) && op->isBeforeInBlock(first))
        first = op;
      if (mlir::isa<ir::DotOp>(op) && !llvm::all_of(op->getUsers(), isPart))
        return false;
    }
    for (mlir::Operation* op = first; op != store_; op = op->getNextNode())
      if (!mlir::isMemoryEffectFree(op) && !mlir::isa<ir::TileLoadOp, ir::LoadOp>(op))
        return false;
    return true;
  }

  mlir::RankedTensorType shrunk(Value tile, const Parts& parts) {
    llvm::SmallVector<int64_t> shape(typeOf(tile).getShape());
    for (auto [extent, part] : llvm::zip(shape, parts))
      extent = part.size ? part.size : extent;
    return mlir::RankedTensorType::get(shape, typeOf(tile).getElementType());
  }

  llvm::SmallVector<Value> moved(mlir::ValueRange offsets, const Parts& parts) {
    llvm::SmallVector<Value> result(offsets);
    for (auto [offset, part] : llvm::zip(result, parts))
      if (part.size)
        offset = builder_.create<arith::AddIOp>(store_.getLoc(), offset, part.start);
    return result;
  }

  Value of(Value tile, const Parts& parts) {
    std::vector<std::pair<void*, int64_t>> key = {{tile.getAsOpaquePointer(), 0}};
    for (const Part& part : parts)
      key.emplace_back(part.start.getAsOpaquePointer(), part.size);
    if (auto known = made_.find(key); known != made_.end())
      return known->second;
    return made_[key] = make(tile, parts);
  }

  Value make(Value tile, const Parts& parts) {
    mlir::Operation* op = tile.getDefiningOp();
    mlir::Location loc = op->getLoc();
    mlir::RankedTensorType type = shrunk(tile, parts);
    Value result;
    if (auto dot = mlir::dyn_cast<ir::DotOp>(op)) {
      Value a = of(dot.getA(), {parts[0], {}}), b = of(dot.getB(), {{}, parts[1]});
      result = builder_.create<ir::DotOp>(loc, type, a, b, of(dot.getAcc(), parts));
    } else if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op)) {
      result = builder_.create<ir::TileLoadOp>(loc, type, load.getView(), moved(load.getOffsets(), parts),
                                               load.getSizes(), load.getOther(), load.getInbounds());
    } else if (auto broadcast = mlir::dyn_cast<ir::BroadcastOp>(op)) {
      Value source = broadcast.getValue();
      if (mlir::isa<mlir::RankedTensorType>(source.getType())) {
        Parts inner;
        for (auto [dim, to] : llvm::enumerate(broadcast.getDims()))
          inner.push_back(typeOf(source).getDimSize(static_cast<unsigned>(dim)) == 1 ? Part{}
                                                                                     : parts[static_cast<size_t>(to)]);
        source = of(source, inner);
      }
      result = builder_.create<ir::BroadcastOp>(loc, type, source, broadcast.getDims(), broadcast.getSizes());
    } else if (auto transpose = mlir::dyn_cast<ir::TransposeOp>(op)) {
      Parts inner(parts.size());
      for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
        inner[static_cast<size_t>(from)] = parts[dim];
      result = builder_.create<ir::TransposeOp>(loc, type, of(transpose.getValue(), inner), transpose.getPermutation());
    } else if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op)) {
      Value source = reshape.getValue();
      Parts inner(static_cast<size_t>(typeOf(source).getRank()));
      for (auto [from, to] : llvm::zip(wideDims(source), wideDims(tile)))
        inner[from] = parts[to];
      result = builder_.create<ir::ReshapeOp>(loc, type, of(source, inner), mlir::ValueRange());
    } else if (mlir::matchPattern(op, mlir::m_Constant(&splat_))) {
      return builder_.create<arith::ConstantOp>(
          loc, mlir::DenseElementsAttr::get(type, splat_.getSplatValue<mlir::Attribute>()));
    } else {
      mlir::IRMapping mapping;
      for (Value operand : op->getOperands())
        if (mlir::isa<mlir::RankedTensorType>(operand.getType()))
          mapping.map(operand, of(operand, parts));
      mlir::Operation* made = builder_.clone(*op, mapping);
      made->getResult(0).setType(type);
      return made->getResult(0);
    }
    result.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return result;
  }

  ir::TileStoreOp store_;
  mlir::OpBuilder builder_;
  uint64_t mostBytes_, sumBytes_ = 0;
  llvm::SmallVector<mlir::Operation*> ops_;  ///< what the stored tile is made of, operands first
  mlir::SplatElementsAttr splat_;
  std::map<std::vector<std::pair<void*, int64_t>>, Value> made_;  ///< by tile and parts
};

}  // namespace

void splitProducts(mlir::ModuleOp module, uint64_t mostBytes) {
  llvm::SmallVector<ir::TileStoreOp> stores;
  module.walk([&](ir::TileStoreOp store) { stores.push_back(store); });
  for (ir::TileStoreOp store : stores)
    StoredProduct(store, mostBytes).run();
}

}  // namespace vortex::target::metal
