#include "target/cpu/tiles/closure.h"

#include "ir/guarded_slice.h"
#include "ir/reshape_parts.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::cpu::tiles {

namespace arith = mlir::arith;
namespace mm = mlir::math;

DimMap identityMap(unsigned rank) {
  DimMap map;
  for (unsigned dim = 0; dim < rank; ++dim)
    map.push_back({int(dim), true});
  return map;
}

bool isIdentity(llvm::ArrayRef<DimUse> map) {
  for (auto [dim, use] : llvm::enumerate(map))
    if (use.loop != int(dim) || !use.exact)
      return false;
  return true;
}

bool usesLoop(llvm::ArrayRef<DimUse> map, int loop) {
  return llvm::any_of(map, [&](const DimUse& use) { return use.loop == loop || use.loop == DimUse::kMixed; });
}

llvm::SmallVector<std::pair<mlir::Value, DimMap>> Closure::operands(mlir::Value tile, const DimMap& map) {
  llvm::SmallVector<std::pair<mlir::Value, DimMap>> result;
  mlir::Operation* op = tile.getDefiningOp();
  if (!op || evaluator_.place(tile) || mlir::isa<ir::TileLoadOp, ir::IotaOp>(op))
    return result;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](ir::BroadcastOp broadcast) {
        if (!isTile(broadcast.getValue()))
          return;
        auto type = mlir::cast<mlir::RankedTensorType>(broadcast.getValue().getType());
        DimMap from;
        for (auto [dim, target] : llvm::enumerate(broadcast.getDims()))
          from.push_back(type.getDimSize(dim) == 1 ? DimUse{} : map[target]);
        result.push_back({broadcast.getValue(), from});
      })
      .Case([&](ir::TransposeOp transpose) {
        DimMap from = map;
        for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
          from[source] = map[dim];
        result.push_back({transpose.getValue(), from});
      })
      .Case([&](ir::SliceOp slice) {
        DimMap from;
        unsigned kept = 0;
        for (auto [dim, offset] : llvm::enumerate(slice.getOffsets())) {
          bool dropped = llvm::is_contained(slice.getDropped(), int64_t(dim));
          DimUse use = dropped ? DimUse{} : map[kept++];
          bool guarded = ir::isGuarded(slice, int64_t(dim));
          use.exact = use.exact && !dropped && !guarded && mlir::getConstantIntValue(offset) == 0;
          from.push_back(use);
        }
        result.push_back({slice.getValue(), from});
      })
      .Case([&](ir::ReshapeOp reshape) {
        ir::ReshapeParts parts = ir::reshapeParts(reshape);
        unsigned rank = mlir::cast<mlir::RankedTensorType>(reshape.getValue().getType()).getRank();
        DimMap from(rank, DimUse{DimUse::kMixed, false});
        for (unsigned dim = 0; dim < parts.prefix; ++dim)
          from[dim] = map[dim];
        for (unsigned dim = 1; dim <= parts.suffix; ++dim)
          from[rank - dim] = map[map.size() - dim];
        result.push_back({reshape.getValue(), from});
      })
      .Case([&](ir::ReduceOp reduce) {
        DimMap from;
        unsigned kept = 0, rank = mlir::cast<mlir::RankedTensorType>(reduce.getValue().getType()).getRank();
        for (unsigned dim = 0; dim < rank; ++dim)
          from.push_back(llvm::is_contained(reduce.getDims(), int64_t(dim)) ? DimUse{DimUse::kMixed, false}
                                                                            : map[kept++]);
        result.push_back({reduce.getValue(), from});
      })
      .Case<ir::DotOp, ir::ScanOp>([&](auto) {
        for (mlir::Value operand : op->getOperands())
          result.push_back({operand, DimMap(map.size(), DimUse{DimUse::kMixed, false})});
      })
      .Default([&](mlir::Operation*) {
        if (op->getNumRegions() == 0)
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
  for (auto& [operand, from] : operands(tile, map))
    walk(operand, from, visit);
}

static unsigned costOfOp(mlir::Operation* op) {
  unsigned cost =
      llvm::TypeSwitch<mlir::Operation*, unsigned>(op)
          .Case<ir::BroadcastOp, ir::TransposeOp, ir::SliceOp, arith::ConstantOp>([](auto) { return 0; })
          .Case<ir::ReshapeOp>([](auto) { return 1; })
          .Case<arith::DivFOp, mm::SqrtOp, mm::RsqrtOp>([](auto) { return 5; })
          .Case<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::RemFOp, ir::IntOp>(
              [](auto) { return 20; })
          .Case<mm::AbsFOp, mm::FmaOp, mm::FloorOp, mm::CeilOp, mm::TruncOp, mm::RoundEvenOp, mm::CopySignOp>(
              [](auto) { return 1; })
          .Case<mm::ExpOp, mm::Exp2Op>([](auto) { return 14; })
          .Case<mm::PowFOp, mm::Atan2Op, mm::SinOp, mm::CosOp, mm::TanOp, mm::ErfOp, mm::AsinOp, mm::AcosOp, mm::AtanOp,
                mm::SinhOp, mm::CoshOp, mm::CbrtOp>([](auto) { return 40; })
          .Case<ir::ReduceOp, ir::ScanOp, ir::DotOp>([](auto) { return 1000; })
          .Default([](mlir::Operation* other) { return ir::isFloatFunction(other) ? 20 : 1; });
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  if (auto real = mlir::dyn_cast<mlir::FloatType>(type);
      real && real.getWidth() < 32 && cost > 0 && !mlir::isa<ir::TileLoadOp>(op))
    cost += real.isF16() ? 2 : 6;
  return cost;
}

unsigned costOf(Evaluator& evaluator, mlir::Value tile, llvm::function_ref<bool(mlir::Value)> known) {
  unsigned cost = 0;
  llvm::DenseSet<mlir::Value> seen;
  llvm::SmallVector<mlir::Value> pending{tile};
  while (!pending.empty()) {
    mlir::Value value = pending.pop_back_val();
    if (!isTile(value) || !seen.insert(value).second)
      continue;
    if (known && known(value))
      continue;
    mlir::Operation* op = value.getDefiningOp();
    if (!op || evaluator.place(value)) {
      ++cost;
      continue;
    }
    cost += costOfOp(op);
    if (cost >= 1000)
      return cost;
    if (op->getNumRegions() == 0)
      pending.append(op->operand_begin(), op->operand_end());
  }
  return cost;
}

llvm::SmallVector<mlir::Type> elementTypes(Evaluator& evaluator, llvm::ArrayRef<mlir::Value> tiles) {
  llvm::SmallVector<mlir::Type> types;
  llvm::DenseSet<mlir::Value> seen;
  llvm::SmallVector<mlir::Value> pending(tiles.begin(), tiles.end());
  while (!pending.empty()) {
    mlir::Value value = pending.pop_back_val();
    if (!isTile(value) || !seen.insert(value).second)
      continue;
    types.push_back(mlir::getElementTypeOrSelf(value.getType()));
    mlir::Operation* op = value.getDefiningOp();
    if (op && !evaluator.place(value) && op->getNumRegions() == 0)
      pending.append(op->operand_begin(), op->operand_end());
  }
  return types;
}

}  // namespace vortex::target::cpu::tiles
