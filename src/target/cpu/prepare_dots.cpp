#include "target/cpu/prepare_dots.h"

#include "ir/launch.h"
#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "passes/axes.h"
#include "passes/phase_builder.h"
#include "passes/stream_reductions.h"

#include <mlir/IR/IRMapping.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

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

mlir::Value rootView(mlir::Value view) {
  while (auto subview = view.getDefiningOp<ir::SubviewOp>())
    view = subview.getSource();
  return view;
}

class DotPreparation {
public:
  DotPreparation(mlir::ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, ir::DotOp dot, const gemm::Plan& plan,
                 mlir::Type compute, unsigned number)
      : module_(module), entry_(entry), kernel_(kernel), dot_(dot), plan_(plan), compute_(compute), number_(number),
        context_(module.getContext()), builder_(module.getContext()) {}

  void run() {
    if (!findSizes() || isAlwaysDirect())
      return;
    ir::LaunchOp launch = ir::launchOf(entry_);
    createPackPhase();
    if (!pack_)
      return;
    addPackStep(launch);
    unsigned temporary = addTemporary();
    finishPackPhase(temporary);
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

  bool isWritten(mlir::Value view) {
    mlir::Value root = rootView(view);
    bool written = false;
    kernel_.walk([&](mlir::Operation* op) {
      mlir::Value target;
      if (auto store = mlir::dyn_cast<ir::TileStoreOp>(op))
        target = store.getView();
      else if (auto store = mlir::dyn_cast<ir::StoreOp>(op))
        target = store.getView();
      else if (!mlir::isa<ir::TileLoadOp, ir::LoadOp>(op) && op->getNumRegions() == 0 && !mlir::isMemoryEffectFree(op))
        written = true;  // an effect we do not look into
      written |= target && rootView(target) == root;
    });
    return written;
  }

  /// Cheap enough to be evaluated wherever it is packed, and the same in every block.
  bool mayClone(mlir::Operation* op) {
    if (op->getNumRegions() != 0 ||
        mlir::isa<ir::BlockIdOp, ir::GridDimOp, ir::BlockDimOp, ir::ReduceOp, ir::ScanOp, ir::DotOp>(op))
      return false;
    if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op); reshape && reshape.getValue().getType().getRank() > 1)
      return false;  // it may need all of its source in memory
    if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op))
      return !isWritten(load.getView()) && !load->hasAttr(kPanelsAttribute);
    if (auto load = mlir::dyn_cast<ir::LoadOp>(op))
      return !isWritten(load.getView());
    return mlir::isMemoryEffectFree(op);
  }

  mlir::Value clone(mlir::Value value) {
    if (mlir::Value known = mapping_.lookupOrNull(value))
      return known;
    mlir::Operation* op = value.getDefiningOp();
    if (!op || !op->getParentRegion()->isAncestor(dot_->getParentRegion()) || !mayClone(op))
      return {};
    for (mlir::Value operand : op->getOperands())
      if (!clone(operand))
        return {};
    builder_.clone(*op, mapping_);
    return mapping_.lookup(value);
  }

  /// A kernel with the whole of B; none when B depends on the block in other ways than through its pieces.
  void createPackPhase() {
    builder_.setInsertionPoint(kernel_);
    mlir::OperationState state(dot_.getLoc(), ir::KernelOp::getOperationName());
    std::string name = (kernel_.getSymName() + ".pack" + (number_ ? "." + llvm::Twine(number_) : llvm::Twine())).str();
    state.addAttribute("sym_name", builder_.getStringAttr(name));
    state.addAttribute("function_type", kernel_.getFunctionTypeAttr());
    auto* body = new mlir::Block();
    for (mlir::BlockArgument argument : kernel_.getBody().getArguments())
      mapping_.map(argument, body->addArgument(argument.getType(), argument.getLoc()));
    state.addRegion()->push_back(body);
    auto pack = mlir::cast<ir::KernelOp>(builder_.create(state));
    builder_.setInsertionPointToEnd(body);
    mlir::Value zero = builder_.create<arith::ConstantIndexOp>(dot_.getLoc(), 0);
    for (auto& [piece, found] : pieces_) {
      mlir::Value extent = clone(found.extent);
      if (!extent)
        return pack.erase();
      mapping_.map(piece, extent);
      mapping_.map(found.offset, zero);
    }
    whole_ = clone(dot_.getB());
    if (!whole_)
      return pack.erase();
    pack_ = pack;
  }

  /// In front of the product, for launches that use it.
  void addPackStep(ir::LaunchOp launch) {
    ir::LaunchBuilder steps{mlir::OpBuilder(ir::phaseOf(launch, kernel_))};
    steps.choose(dot_.getLoc(), {{.name = "direct", .when = direct_, .emit = [] {}},
                                 {.name = "packed", .emit = [&] { steps.phase(pack_); }}});
  }

  ir::SizeAttr panels() { return combine(SizeOp::CeilDiv, n_, size(plan_.nr())); }

  ir::SizeAttr batch() {
    ir::SizeAttr product = size(1);
    for (ir::SizeAttr extent : llvm::ArrayRef(extents_).drop_back(2))
      product = combine(SizeOp::Mul, product, extent);
    return product;
  }

  /// Appends an argument to the entry and every phase.
  unsigned addTemporary() {
    llvm::SmallVector<mlir::Attribute> sizes(extents_.begin(), extents_.end());
    size_t rank = sizes.size();
    sizes[rank - 1] = combine(SizeOp::Mul, panels(), size(plan_.nr()));
    auto type = ir::ViewType::get(llvm::SmallVector<int64_t>(rank, mlir::ShapedType::kDynamic), compute_);
    auto facts = builder_.getDictionaryAttr(
        {builder_.getNamedAttr("name", builder_.getStringAttr("")),
         builder_.getNamedAttr("role", ir::RoleAttr::get(context_, ir::Role::Temp)),
         builder_.getNamedAttr("access", ir::AccessModeAttr::get(context_, ir::AccessMode::ReadWrite)),
         builder_.getNamedAttr("extents", builder_.getArrayAttr(sizes))});
    llvm::SmallVector<mlir::Type> types(kernel_.getArgumentTypes());
    types.push_back(type);
    auto function = mlir::FunctionType::get(context_, types, {});
    for (ir::KernelOp phase : module_.getOps<ir::KernelOp>()) {
      phase.setFunctionType(function);
      phase.getBody().addArgument(type, phase.getLoc());
    }
    llvm::SmallVector<mlir::Attribute> args(entry_.getArgs().begin(), entry_.getArgs().end());
    args.push_back(facts);
    entry_.setFunctionType(function);
    entry_.setArgsAttr(builder_.getArrayAttr(args));
    return types.size() - 1;
  }

  mlir::Value widened(mlir::Value tile) {
    auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
    if (type.getElementType() == compute_)
      return tile;
    return builder_.create<arith::ExtFOp>(dot_.getLoc(), mlir::RankedTensorType::get(type.getShape(), compute_), tile);
  }

  void finishPackPhase(unsigned temporary) {
    mlir::Location loc = dot_.getLoc();
    builder_.setInsertionPointToEnd(&pack_.getBody().front());
    mlir::Value zero = builder_.create<arith::ConstantIndexOp>(loc, 0);
    llvm::SmallVector<mlir::Value> offsets(extents_.size(), zero);
    auto store =
        builder_.create<ir::TileStoreOp>(loc, widened(whole_), pack_.getBody().getArgument(temporary), offsets, false);
    store->setAttr(kPanelsAttribute, builder_.getUnitAttr());
    builder_.create<ir::ReturnOp>(loc);
    ir::SizeAttr blocks = combine(SizeOp::CeilDiv, panels(), size(kPanelsPerBlock));
    // A narrow B has too few panels for the workers.
    ir::SizeAttr each = combine(SizeOp::CeilDiv, ir::sizeClusters(context_), combine(SizeOp::Mul, blocks, batch()));
    ir::SizeAttr pieces =
        combine(SizeOp::Max, size(1), combine(SizeOp::Min, each, combine(SizeOp::FloorDiv, k_, size(kPackedSteps))));
    pack_->setAttr("grid", builder_.getArrayAttr({blocks, batch(), pieces}));
    pack_->setAttr("block", builder_.getArrayAttr({size(1), size(1), size(1)}));
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
    mlir::Value direct = widened(dot_.getB());
    auto packed = builder_.create<ir::TileLoadOp>(loc, direct.getType(), arguments[temporary], offsets, sizes,
                                                  mlir::Value(), false);
    packed->setAttr(kPanelsAttribute, builder_.getUnitAttr());
    mlir::Value b = packed;
    if (!ir::constantSize(direct_)) {
      mlir::Value number = passes::emitSize(builder_, loc, direct_, arguments);
      mlir::Value zero = builder_.create<arith::ConstantIndexOp>(loc, 0);
      mlir::Value isDirect = builder_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, number, zero);
      b = builder_.create<arith::SelectOp>(loc, isDirect, direct, packed);
    }
    mlir::Value a = widened(dot_.getA());
    dot_.getAMutable().assign(a);
    dot_.getBMutable().assign(b);
  }

  mlir::ModuleOp module_;
  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  ir::DotOp dot_;
  const gemm::Plan& plan_;
  mlir::Type compute_;
  unsigned number_;
  mlir::MLIRContext* context_;
  mlir::OpBuilder builder_;
  mlir::IRMapping mapping_;
  llvm::SmallVector<std::pair<mlir::Value, Piece>> pieces_;  ///< of B's dimensions
  llvm::SmallVector<ir::SizeAttr> extents_;                  ///< of B in the launch
  ir::SizeAttr m_, n_, k_;
  ir::SizeAttr direct_;  ///< 0 or 1
  ir::KernelOp pack_;
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
      DotPreparation(module, *entries.begin(), kernel, dot, plan, compute, number++).run();
    }
  }
}

}  // namespace vortex::target::cpu
