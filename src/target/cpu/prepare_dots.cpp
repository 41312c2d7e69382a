#include "target/cpu/prepare_dots.h"

#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"
#include "passes/stream_reductions.h"

#include "target/cpu/pack_phase.h"
#include "target/cpu/pack_tiles.h"

namespace vortex::target::cpu {

using SizeOp = size::Op;
namespace arith = mlir::arith;

gemm::Plan dotPlan(const VectorFeatures& features, uint32_t elementBytes) {
  return gemm::choosePlan(features, {}, elementBytes);
}

namespace {

/// A block's or an iteration's part of a dimension, as the schedule and loops over chunks write it: size = min(extent - offset, chunk).
struct Piece {
  mlir::Value offset, extent;
};

std::optional<Piece> pieceOf(mlir::OpFoldResult size) {
  auto value = mlir::dyn_cast_if_present<mlir::Value>(size);
  auto min = value ? value.getDefiningOp<arith::MinUIOp>() : arith::MinUIOp();
  if (!min)
    return std::nullopt;
  for (mlir::Value side : {min.getLhs(), min.getRhs()})
    if (auto left = side.getDefiningOp<arith::SubIOp>())
      return Piece{left.getRhs(), left.getLhs()};
  return std::nullopt;
}

class DotPreparation {
public:
  DotPreparation(mlir::ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, ir::DotOp dot, const gemm::Plan& plan,
                 mlir::Type compute, std::string name)
      : module_(module), entry_(entry), kernel_(kernel), dot_(dot), plan_(plan), compute_(compute),
        name_(std::move(name)), context_(module.getContext()), builder_(module.getContext()) {}

  void run() {
    if (!findSizes() || isAlwaysDirect())
      return;
    ir::LaunchOp launch = ir::launchOf(entry_);
    PackPhase pack(module_, kernel_, dot_, compute_, name_);
    if (!clonePieces(pack))
      return pack.abandon();
    ir::LaunchBuilder steps{mlir::OpBuilder(ir::phaseOf(launch, kernel_))};
    steps.choose(dot_.getLoc(), {{.name = "direct", .when = direct_, .emit = [] {}},
                                 {.name = "packed", .emit = [&] { steps.phase(pack.kernel()); }}});
    llvm::SmallVector<ir::SizeAttr> sizes(extents_);
    sizes.back() = combine(SizeOp::Mul, panels(), size(plan_.nr()));
    unsigned temporary = pack.store(entry_, whole_, sizes, {});
    pack.spread(combine(SizeOp::CeilDiv, panels(), size(kPanelsPerBlock)), batch(), k_);
    usePacked(temporary);
  }

private:
  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(context_, value); }
  ir::SizeAttr combine(SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }

  /// The launch's extent of a dimension, and the mapping that turns a block's piece of it into the whole.
  ir::SizeAttr whole(mlir::OpFoldResult piece, bool remember) {
    auto found = pieceOf(piece);
    if (!found)
      return passes::sizeExpression(piece);
    if (remember)
      pieces_.push_back({mlir::cast<mlir::Value>(piece), *found});
    return passes::sizeExpression(found->extent);
  }

  bool findSizes() {
    auto result = ir::tileSizes(dot_.getResult()), b = ir::tileSizes(dot_.getB());
    size_t rank = result.size();
    m_ = whole(result[rank - 2], false);
    for (mlir::OpFoldResult extent : b)
      if (ir::SizeAttr all = whole(extent, true))
        extents_.push_back(all);
    if (!m_ || extents_.size() != rank)
      return false;
    n_ = extents_[rank - 1];
    k_ = extents_[rank - 2];
    auto atMost = [&](ir::SizeAttr value, uint64_t limit) {
      return combine(SizeOp::Less, value, size(int64_t(limit) + 1));
    };
    ir::SizeAttr work = combine(SizeOp::Mul, combine(SizeOp::Mul, m_, n_), k_);
    direct_ = combine(SizeOp::Max, combine(SizeOp::Max, atMost(m_, plan_.directRows), atMost(n_, plan_.directColumns)),
                      atMost(work, plan_.directWork));
    return true;
  }

  bool isAlwaysDirect() {
    auto known = ir::constantSize(direct_);
    return known && *known != 0;
  }

  /// A kernel with the whole of B; false when B depends on the block in other ways than through its pieces.
  bool clonePieces(PackPhase& pack) {
    mlir::Value zero = pack.builder.create<arith::ConstantIndexOp>(dot_.getLoc(), 0);
    for (auto& [piece, found] : pieces_) {
      mlir::Value extent = pack.clone(found.extent);
      if (!extent)
        return false;
      pack.assume(piece, extent);
      pack.assume(found.offset, zero);
    }
    whole_ = pack.clone(dot_.getB());
    return whole_ != nullptr;
  }

  ir::SizeAttr panels() { return combine(SizeOp::CeilDiv, n_, size(plan_.nr())); }

  ir::SizeAttr batch() {
    ir::SizeAttr product = size(1);
    for (ir::SizeAttr extent : llvm::ArrayRef(extents_).drop_back(2))
      product = combine(SizeOp::Mul, product, extent);
    return product;
  }

  void usePacked(unsigned temporary) {
    mlir::Location loc = dot_.getLoc();
    builder_.setInsertionPoint(dot_);
    auto arguments = kernel_.getBody().getArguments();
    auto type = mlir::cast<mlir::RankedTensorType>(dot_.getB().getType());
    llvm::SmallVector<mlir::Value> offsets, sizes;
    for (auto [dim, extent] : llvm::enumerate(ir::tileSizes(dot_.getB()))) {
      auto piece = pieceOf(extent);
      offsets.push_back(piece ? piece->offset : builder_.create<arith::ConstantIndexOp>(loc, 0));
      if (type.isDynamicDim(dim))
        sizes.push_back(mlir::cast<mlir::Value>(extent));
    }
    mlir::Value direct = widened(builder_, dot_.getB(), compute_);
    auto packed = builder_.create<ir::TileLoadOp>(loc, direct.getType(), arguments[temporary], offsets, sizes,
                                                  mlir::Value(), false);
    packed->setAttr(kPanelsAttribute, builder_.getUnitAttr());
    mlir::Value b = chooseOperand(builder_, kernel_, direct_, direct, packed);
    mlir::Value a = widened(builder_, dot_.getA(), compute_);
    dot_.getAMutable().assign(a);
    dot_.getBMutable().assign(b);
  }

  mlir::ModuleOp module_;
  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  ir::DotOp dot_;
  const gemm::Plan& plan_;
  mlir::Type compute_;
  std::string name_;  ///< of the packing phase
  mlir::MLIRContext* context_;
  mlir::OpBuilder builder_;
  llvm::SmallVector<std::pair<mlir::Value, Piece>> pieces_;  ///< of B's dimensions
  llvm::SmallVector<ir::SizeAttr> extents_;                  ///< of B in the launch
  ir::SizeAttr m_, n_, k_;
  ir::SizeAttr direct_;  ///< 0 or 1
  mlir::Value whole_;
};

/// Sums of narrow floats are kept in the compute type and rounded once.
ir::DotOp widenAccumulator(ir::DotOp dot, mlir::Type compute) {
  mlir::OpBuilder builder(dot);
  auto type = mlir::cast<mlir::RankedTensorType>(dot.getType());
  auto wide = mlir::RankedTensorType::get(type.getShape(), compute);
  mlir::Value start = builder.create<arith::ExtFOp>(dot.getLoc(), wide, dot.getAcc());
  auto result = builder.create<ir::DotOp>(dot.getLoc(), wide, dot.getA(), dot.getB(), start);
  dot.getResult().replaceAllUsesWith(builder.create<arith::TruncFOp>(dot.getLoc(), type, result.getResult()));
  dot.erase();
  return result;
}

}  // namespace

void prepareDots(mlir::ModuleOp module, const VectorFeatures& features) {
  auto entries = module.getOps<ir::EntryOp>();
  if (!llvm::hasSingleElement(entries))
    return;
  for (ir::KernelOp kernel : llvm::to_vector(module.getOps<ir::KernelOp>())) {
    if (kernel.getWholeTensor())
      continue;
    unsigned number = 0;
    llvm::SmallVector<ir::DotOp> dots(kernel.getBody().front().getOps<ir::DotOp>());
    kernel.walk([&](mlir::scf::ForOp loop) {
      if (loop->hasAttr(passes::kStreamedAttr))
        llvm::append_range(dots, loop.getBody()->getOps<ir::DotOp>());
    });
    for (ir::DotOp dot : dots) {
      auto type = mlir::dyn_cast<mlir::FloatType>(mlir::getElementTypeOrSelf(dot.getType()));
      auto packed = dot.getB().getDefiningOp();
      if (!type || dot.use_empty() || (packed && mlir::isa<arith::SelectOp>(packed)) ||
          (packed && packed->hasAttr(kPanelsAttribute)))
        continue;
      mlir::Type compute = type.isF64() ? mlir::Type(type) : mlir::Float32Type::get(module.getContext());
      gemm::Plan plan = dotPlan(features, type.isF64() ? 8 : 4);
      if (type.getWidth() < 32)
        dot = widenAccumulator(dot, compute);
      std::string name = (kernel.getSymName() + ".pack" + (number ? "." + llvm::Twine(number) : llvm::Twine())).str();
      ++number;
      if (!packTileOperands(module, *entries.begin(), kernel, dot, plan, compute, name))
        DotPreparation(module, *entries.begin(), kernel, dot, plan, compute, name).run();
    }
  }
}

}  // namespace vortex::target::cpu
