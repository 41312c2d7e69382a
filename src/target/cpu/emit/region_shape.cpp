// How the warps of a region run over the block's threads.
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

static constexpr Form kUnitStride{Form::Kind::Affine, 1};

static std::optional<uint64_t> unsignedConstant(llvm::Value* value) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value))
    return constant->getZExtValue();
  return std::nullopt;
}

bool hasWarpOps(mlir::Operation& code) {
  return code
      .walk([](mlir::Operation* op) {
        return mlir::isa<ir::WarpReduceOp, ir::WarpVoteOp, ir::WarpShuffleOp, ir::WarpBarrierOp>(op)
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Lanes that fill two registers of 32-bit elements: enough work to hide latencies without running out of registers.
static unsigned preferredWidth(const VectorFeatures& features) { return std::min(32u, 2 * features.lanes(4)); }

static Form axisForm(llvm::ArrayRef<llvm::Value*> dims, unsigned axis, bool linear) {
  if (unsignedConstant(dims[axis]) == 1)
    return kUniform;
  return linear ? kUnitStride : kVarying;
}

/// A divergent loop around accesses without order gains nothing from vectors on machines without fast gathers.
static bool prefersScalar(ir::ThreadsOp region, const RegionShape& shape, const VectorFeatures& features) {
  if (features.avx512)
    return false;
  RegionAnalysis analysis(region, shape);
  auto isIrregular = [&](mlir::ValueRange indices) {
    return llvm::any_of(indices, [&](mlir::Value index) { return analysis.form(index).kind == Form::Kind::Varying; });
  };
  return region.getBody()
      .walk([&](mlir::Operation* op) {
        bool irregular = false;
        if (auto load = mlir::dyn_cast<ir::LoadOp>(op))
          irregular = isIrregular(load.getIndices());
        else if (auto store = mlir::dyn_cast<ir::StoreOp>(op))
          irregular = isIrregular(store.getIndices());
        if (!irregular)
          return mlir::WalkResult::advance();
        for (mlir::Operation* parent = op->getParentOp(); parent != region; parent = parent->getParentOp())
          if (mlir::isa<mlir::scf::ForOp, mlir::scf::WhileOp>(parent) && analysis.diverges(parent))
            return mlir::WalkResult::interrupt();
        return mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

RegionShape chooseShape(ir::ThreadsOp region, const VectorFeatures& features, llvm::ArrayRef<llvm::Value*> dims,
                        bool unitStrides) {
  RegionShape shape;
  const bool warpOps = shape.isFixed = hasWarpOps(*region);
  unsigned preferred = warpOps ? 32 : preferredWidth(features);
  shape.width = preferred;
  unsigned wideAxes = 0;
  for (llvm::Value* dim : dims)
    wideAxes += unsignedConstant(dim) != 1;
  auto nx = unsignedConstant(dims[0]), ny = unsignedConstant(dims[1]), nz = unsignedConstant(dims[2]);
  shape.fullWarps = nx && ny && nz && *nx * *ny * *nz % shape.width == 0;
  mlir::Block& body = region.getBody().front();
  bool usesIds =
      !body.getArgument(0).use_empty() || !body.getArgument(1).use_empty() || !body.getArgument(2).use_empty();
  if (wideAxes <= 1 || !usesIds) {
    for (unsigned axis = 0; axis < 3; ++axis)
      shape.id[axis] = axisForm(dims, axis, wideAxes <= 1);
  } else if (nx && *nx % preferred == 0) {
    // Warps never leave a row.
    shape.id[0] = kUnitStride;
    shape.id[1] = shape.id[2] = kUniform;
    shape.insideRow = true;
    shape.rows = !warpOps;
  } else if (!warpOps && (!nx || *nx >= 8)) {
    // Rows of warps of their own: the largest power of two that divides the row, or a masked rest per row.
    unsigned dividing = nx ? unsigned(*nx & -*nx) : 0;
    shape.width = dividing >= 8 ? std::min(preferred, dividing) : preferred;
    shape.rows = true;
    shape.id[0] = kUnitStride;
    shape.id[1] = shape.id[2] = kUniform;
    shape.insideRow = true;
  } else {
    for (unsigned axis = 0; axis < 3; ++axis)
      shape.id[axis] = axisForm(dims, axis, false);
  }
  if (!warpOps && (wideAxes == 0 || !unitStrides || prefersScalar(region, shape, features))) {
    shape.width = 1;
    shape.rows = usesIds && wideAxes > 1;
  }
  return shape;
}

}  // namespace vortex::target::cpu::emit
