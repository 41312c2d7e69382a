#include "target/cpu/pack_tiles.h"

#include "ir/tile_sizes.h"
#include "passes/build/piece_cloner.h"
#include "passes/plan/axes.h"
#include "passes/tile_stretch.h"
#include "target/cpu/pack_phase.h"
#include "target/cpu/prepare_dots.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::cpu {
namespace {

using SizeOp = size::Op;
namespace arith = mlir::arith;
using mlir::Value;

/// Fewer blocks than this do not pay for a packed tile in memory: each would pack its own.
constexpr int64_t kSharingBlocks = 3;

Value withoutCasts(Value value) {
  while (mlir::Operation* op = value.getDefiningOp()) {
    bool isWide = value.getType().isIndex() || value.getType().isInteger(64);
    if (!isWide || !mlir::isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// A constant times anything. A product that may wrap is no multiple of what does not divide the numbers of its type.
bool isMultipleOf(Value offset, int64_t count) {
  auto product = withoutCasts(offset).getDefiningOp<arith::MulIOp>();
  bool isWide = product && (product.getType().isIndex() || product.getType().isInteger(64));
  return product && (isWide || llvm::isPowerOf2_64(count)) && llvm::any_of(product->getOperands(), [&](Value factor) {
           std::optional<int64_t> known = mlir::getConstantIntValue(withoutCasts(factor));
           return known && *known % count == 0;
         });
}

/// One operand: dimension `lane` is that of its tiles, the other one the depth.
class TileOperand {
public:
  TileOperand(mlir::ModuleOp module, ir::KernelOp kernel, ir::DotOp dot, Value tile, unsigned lane, uint32_t width,
              mlir::Type compute, llvm::Twine name)
      : kernel_(kernel), tile_(tile), lane_(lane), compute_(compute),
        lanes_(mlir::cast<mlir::RankedTensorType>(tile.getType()).getDimSize(lane)),
        padded_((lanes_ + width - 1) / width * width), pack_(module, kernel, dot, compute, name) {}

  /// Makes the whole operand in a phase of its own. False: it depends on blocks in other ways than through the tile's number.
  bool stretchAll() {
    mlir::Location loc = tile_.getLoc();
    mlir::OpBuilder& builder = pack_.builder;
    auto extent = builder.create<arith::ConstantIndexOp>(loc, 0);  // until the views are known
    passes::TileStretch stretch(builder, extent,
                                {.window = [this](ir::TileLoadOp load) { return window(load); },
                                 .start = [this](ir::TileLoadOp load, int64_t dim) { return start(load, dim); },
                                 .keep = [this](Value value) { return pack_.clone(value); }});
    whole_ = stretch.of(tile_, lane_);
    if (!whole_ || !tiles_)
      return false;
    builder.setInsertionPoint(extent);
    ir::SizeAttr all = combine(SizeOp::Mul, allTiles(), size(lanes_));
    extent.replaceAllUsesWith(passes::emitSize(builder, loc, all, pack_.kernel().getBody().getArguments()));
    extent.erase();
    return true;
  }

  ir::SizeAttr tiles() const { return tiles_; }
  PackPhase& phase() { return pack_; }

  void store(ir::EntryOp entry, ir::SizeAttr depth) {
    llvm::SmallVector<ir::SizeAttr> extents(2, depth);
    extents[lane_] = combine(SizeOp::Mul, allTiles(), size(padded_));
    mlir::OpBuilder& builder = pack_.builder;
    layout_ = builder.getNamedAttr(lane_ == 0 ? kTileRowsAttribute : kTileColumnsAttribute,
                                   builder.getI64IntegerAttr(lanes_));
    temporary_ = pack_.store(entry, whole_, extents, *layout_);
    pack_.spread(allTiles(), size(1), depth);
  }

  /// The block's tile of the packed copy, or what it was where that does not pay.
  Value use(mlir::OpBuilder& builder, ir::SizeAttr isDirect) {
    mlir::Location loc = tile_.getLoc();
    auto arguments = kernel_.getBody().getArguments();
    auto constant = [&](int64_t value) -> Value { return builder.create<arith::ConstantIndexOp>(loc, value); };
    Value offset = builder.create<ir::IntOp>(loc, builder.getIndexType(), ir::IntKind::DivU, offset_, constant(lanes_));
    offset = builder.create<arith::MinUIOp>(loc, offset, passes::emitSize(builder, loc, tiles_, arguments));
    llvm::SmallVector<Value> offsets(2, constant(0)), sizes;
    offsets[lane_] = builder.create<arith::MulIOp>(loc, offset, constant(padded_));
    Value direct = widened(builder, tile_, compute_);
    llvm::SmallVector<mlir::OpFoldResult> extents = ir::tileSizes(tile_);
    for (mlir::OpFoldResult extent : extents)
      if (auto value = mlir::dyn_cast<Value>(extent))
        sizes.push_back(value);
    auto packed =
        builder.create<ir::TileLoadOp>(loc, direct.getType(), arguments[temporary_], offsets, sizes, Value(), false);
    packed->setAttr(kPanelsAttribute, builder.getUnitAttr());
    packed->setAttr(layout_->getName(), layout_->getValue());
    return chooseOperand(builder, kernel_, isDirect, direct, packed);
  }

private:
  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(kernel_.getContext(), value); }
  ir::SizeAttr combine(SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }
  /// With the one behind the end.
  ir::SizeAttr allTiles() { return combine(SizeOp::Add, tiles_, size(1)); }

  std::optional<passes::TileWindow> window(ir::TileLoadOp load) {
    if (pack_.isWritten(load.getView()) || load->hasAttr(kPanelsAttribute))
      return std::nullopt;
    return passes::TileWindow{load.getView(), llvm::to_vector(load.getOffsets()), load.getOther(), false};
  }

  Value start(ir::TileLoadOp load, int64_t dim) {
    Value offset = load.getOffsets()[dim];
    auto view = mlir::dyn_cast<mlir::BlockArgument>(load.getView());
    bool isSame = !offset_ || withoutCasts(offset_) == withoutCasts(offset);
    if (!view || view.getOwner() != &kernel_.getBody().front() || !isSame || !isMultipleOf(offset, lanes_))
      return {};
    offset_ = offset;
    ir::SizeAttr extent = ir::sizeDim(kernel_.getContext(), view.getArgNumber(), static_cast<unsigned>(dim));
    ir::SizeAttr tiles = combine(SizeOp::CeilDiv, extent, size(lanes_));
    tiles_ = tiles_ ? combine(SizeOp::Max, tiles_, tiles) : tiles;
    return pack_.builder.create<arith::ConstantIndexOp>(load.getLoc(), 0);
  }

  ir::KernelOp kernel_;
  Value tile_;
  unsigned lane_;
  mlir::Type compute_;
  int64_t lanes_, padded_;  ///< of a tile; in whole panels
  PackPhase pack_;
  Value offset_;        ///< where the block's tile starts in every view
  ir::SizeAttr tiles_;  ///< of the largest view
  Value whole_;
  std::optional<mlir::NamedAttribute> layout_;
  unsigned temporary_ = 0;
};

}  // namespace

bool packTileOperands(mlir::ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, ir::DotOp dot,
                      const gemm::Plan& plan, mlir::Type compute, llvm::StringRef name) {
  auto type = mlir::cast<mlir::RankedTensorType>(dot.getType());
  if (type.getRank() != 2 || !type.hasStaticShape() || !kernel.getGrid() || dot->getParentOp() != kernel)
    return false;
  ir::SizeAttr depth = passes::sizeExpression(ir::tileSizes(dot.getA())[1]);
  if (!depth)
    return false;
  auto size = [&](int64_t value) { return ir::sizeConstant(module.getContext(), value); };
  ir::LaunchOp launch = ir::launchOf(entry);
  TileOperand b(module, kernel, dot, dot.getB(), 1, plan.nr(), compute, name);
  TileOperand a(module, kernel, dot, dot.getA(), 0, plan.mr, compute, name + ".rows");
  bool packsB = b.stretchAll(), packsA = packsB && a.stretchAll();
  ir::SizeAttr blocks = size(1);
  mlir::ArrayAttr grid = *kernel.getGrid();
  for (mlir::Attribute extent : grid)
    blocks = ir::sizeBinary(SizeOp::Mul, blocks, mlir::cast<ir::SizeAttr>(extent));
  ir::SizeAttr work =
      ir::sizeBinary(SizeOp::Mul, ir::sizeBinary(SizeOp::Mul, blocks, size(type.getNumElements())), depth);
  ir::SizeAttr isDirect = ir::sizeBinary(SizeOp::Less, work, size(int64_t(plan.directWork)));
  auto addUse = [&](const TileOperand& operand) {
    ir::SizeAttr shared = ir::sizeBinary(SizeOp::Mul, operand.tiles(), size(kSharingBlocks));
    isDirect = ir::sizeBinary(SizeOp::Max, isDirect, ir::sizeBinary(SizeOp::Less, blocks, shared));
  };
  if (packsB)
    addUse(b);
  if (packsA)
    addUse(a);
  bool isNever = ir::constantSize(isDirect).value_or(0) != 0;
  if (!packsA || isNever)
    a.phase().abandon();
  if (!packsB || isNever) {
    b.phase().abandon();
    return false;
  }
  ir::LaunchBuilder steps{mlir::OpBuilder(ir::phaseOf(launch, kernel))};
  steps.choose(dot.getLoc(), {{.name = "direct", .when = isDirect, .emit = [] {}}, {.name = "packed", .emit = [&] {
                                                                                      steps.phase(b.phase().kernel());
                                                                                      if (packsA)
                                                                                        steps.phase(a.phase().kernel());
                                                                                    }}});
  mlir::OpBuilder builder(dot);
  b.store(entry, depth);
  dot.getBMutable().assign(b.use(builder, isDirect));
  if (packsA)
    a.store(entry, depth);
  dot.getAMutable().assign(packsA ? a.use(builder, isDirect) : widened(builder, dot.getA(), compute));
  return true;
}

}  // namespace vortex::target::cpu
