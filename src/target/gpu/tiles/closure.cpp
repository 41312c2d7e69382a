#include "target/gpu/tiles/closure.h"

#include "analysis/element_control.h"
#include "ir/guarded_slice.h"
#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

DimMap identityMap(unsigned rank) {
  DimMap map;
  for (unsigned dim = 0; dim < rank; ++dim)
    map.push_back({static_cast<int>(dim), true});
  return map;
}

bool isIdentity(llvm::ArrayRef<DimUse> map) {
  for (auto [dim, use] : llvm::enumerate(map))
    if (use.loop != static_cast<int>(dim) || !use.exact)
      return false;
  return true;
}

bool usesLoop(llvm::ArrayRef<DimUse> map, int loop) {
  return llvm::any_of(map, [&](const DimUse& use) { return use.loop == loop || use.loop == DimUse::kMixed; });
}

bool isTile(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }

unsigned rankOf(mlir::Value value) {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type ? static_cast<unsigned>(type.getRank()) : 0;
}

mlir::Type elementType(mlir::Value tile) { return mlir::getElementTypeOrSelf(tile.getType()); }

std::string describe(mlir::Value tile) {
  std::string text = "[";
  llvm::raw_string_ostream out(text);
  auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
  llvm::interleaveComma(type.getShape(), out, [&](int64_t extent) {
    if (mlir::ShapedType::isDynamic(extent))
      out << '?';
    else
      out << extent;
  });
  out << "] of " << type.getElementType();
  return text;
}

bool reducesInnermost(ir::ReduceOp op) {
  return op.getDims().back() + 1 == static_cast<int64_t>(rankOf(op.getValue()));
}

static DimMap sourceOfSlice(ir::SliceOp slice, const DimMap& map) {
  DimMap from;
  unsigned kept = 0;
  for (auto [dim, offset] : llvm::enumerate(slice.getOffsets())) {
    bool dropped = llvm::is_contained(slice.getDropped(), static_cast<int64_t>(dim));
    DimUse use = dropped ? DimUse{} : map[kept++];
    bool guarded = ir::isGuarded(slice, static_cast<int64_t>(dim));
    use.exact = use.exact && !dropped && !guarded && mlir::getConstantIntValue(offset) == 0;
    from.push_back(use);
  }
  return from;
}

static DimMap sourceOfReshape(ir::ReshapeOp reshape, const DimMap& map) {
  ir::ReshapeParts parts = ir::reshapeParts(reshape);
  unsigned rank = rankOf(reshape.getValue()), toRank = rankOf(reshape.getResult());
  DimMap from(rank, DimUse{DimUse::kMixed, false});
  for (unsigned dim = 0; dim < parts.prefix; ++dim)
    from[dim] = map[dim];
  for (unsigned dim = 1; dim <= parts.suffix; ++dim)
    from[rank - dim] = map[map.size() - dim];
  // Extents of one come and go without regrouping anything.
  auto sizes = ir::tileSizes(reshape.getResult());
  unsigned middle = rank - parts.prefix - parts.suffix;
  llvm::SmallVector<unsigned> real;
  for (unsigned dim = parts.prefix; dim < toRank - parts.suffix; ++dim)
    if (!sizes[dim] || mlir::getConstantIntValue(sizes[dim]) != 1)
      real.push_back(dim);
  if (middle == 1 && real.size() == 1)
    from[parts.prefix] = map[real[0]];
  if (middle == 1 && real.empty())
    from[parts.prefix] = DimUse{};
  return from;
}

bool isPerElement(mlir::Value tile) {
  mlir::Operation* op = tile.getDefiningOp();
  return op && op->hasAttr(kPerElement);
}

llvm::SmallVector<std::pair<mlir::Value, DimMap>> operandUses(mlir::Value tile, const DimMap& map) {
  llvm::SmallVector<std::pair<mlir::Value, DimMap>> result;
  mlir::Operation* op = tile.getDefiningOp();
  if (isPerElement(tile))
    analysis::forEachOuterTile(op, [&](mlir::Value outer) { result.push_back({outer, map}); });
  if (!op || op->getNumRegions() != 0 || llvm::isa<ir::TileLoadOp, ir::IotaOp>(op))
    return result;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](ir::BroadcastOp broadcast) {
        if (!isTile(broadcast.getValue()))
          return;
        auto type = llvm::cast<mlir::RankedTensorType>(broadcast.getValue().getType());
        DimMap from;
        for (auto [dim, target] : llvm::enumerate(broadcast.getDims()))
          from.push_back(type.getDimSize(static_cast<unsigned>(dim)) == 1 ? DimUse{} : map[target]);
        result.push_back({broadcast.getValue(), from});
      })
      .Case([&](ir::TransposeOp transpose) {
        DimMap from = map;
        for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
          from[source] = map[dim];
        result.push_back({transpose.getValue(), from});
      })
      .Case([&](ir::SliceOp slice) { result.push_back({slice.getValue(), sourceOfSlice(slice, map)}); })
      .Case([&](ir::ReshapeOp reshape) { result.push_back({reshape.getValue(), sourceOfReshape(reshape, map)}); })
      .Case([&](ir::ReduceOp reduce) {
        DimMap from;
        unsigned kept = 0, rank = rankOf(reduce.getValue());
        for (unsigned dim = 0; dim < rank; ++dim)
          from.push_back(llvm::is_contained(reduce.getDims(), static_cast<int64_t>(dim)) ? DimUse{DimUse::kMixed, false}
                                                                                         : map[kept++]);
        result.push_back({reduce.getValue(), from});
      })
      .Case([&](ir::ScanOp scan) {
        DimMap from = map;
        from[scan.getDim()] = isIdentity(map) ? map[scan.getDim()] : DimUse{DimUse::kMixed, false};
        result.push_back({scan.getValue(), from});
      })
      .Case([&](ir::DotOp) {
        for (mlir::Value operand : op->getOperands())
          result.push_back({operand, DimMap(map.size(), DimUse{DimUse::kMixed, false})});
      })
      .Default([&](mlir::Operation*) {
        for (mlir::Value operand : op->getOperands())
          if (isTile(operand))
            result.push_back({operand, map});
      });
  return result;
}

void Closure::walk(mlir::Value tile, const DimMap& map, Visitor visit) {
  auto& seen = seen_[tile];
  if (llvm::is_contained(seen, map))
    return;
  seen.push_back(map);
  if (!visit(tile, map))
    return;
  for (auto& [operand, from] : operandUses(tile, map))
    walk(operand, from, visit);
}

std::optional<int64_t> upperBound(mlir::Value value) {
  if (auto constant = mlir::getConstantIntValue(value))
    return *constant < 0 ? std::nullopt : std::optional(*constant);
  mlir::Operation* op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> a = upperBound(op->getOperand(0)), b = upperBound(op->getOperand(1));
  if (llvm::isa<arith::MinUIOp, arith::MinSIOp>(op))
    return a && b ? std::min(*a, *b) : a ? a : b;
  if (auto total = llvm::dyn_cast<ir::IntOp>(op)) {
    switch (total.getKind()) {
    case ir::IntKind::DivU:
    case ir::IntKind::CeilDivU: return a;
    case ir::IntKind::RemU: return b ? b : a;
    default: return std::nullopt;
    }
  }
  if (!a || !b || *a >= (int64_t(1) << 31) || *b >= (int64_t(1) << 31))
    return std::nullopt;
  if (llvm::isa<arith::MaxUIOp, arith::MaxSIOp>(op))
    return std::max(*a, *b);
  if (llvm::isa<arith::AddIOp>(op))
    return *a + *b;
  if (llvm::isa<arith::MulIOp>(op))
    return *a * *b;
  return std::nullopt;
}

std::optional<int64_t> elementBound(mlir::Value tile) {
  int64_t product = 1;
  for (mlir::OpFoldResult size : ir::tileSizes(tile)) {
    std::optional<int64_t> bound;
    if (size)
      bound = mlir::getConstantIntValue(size);
    if (!bound && size)
      if (auto value = llvm::dyn_cast<mlir::Value>(size))
        bound = upperBound(value);
    if (!bound || *bound > (int64_t(1) << 31) || product > (int64_t(1) << 31))
      return std::nullopt;
    product *= *bound;
  }
  return product;
}

}  // namespace vortex::target::gpu::tiles
