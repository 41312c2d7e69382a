// What follows a product whose results lie anyhow: the sums of a warp's 16 rows go to its piece of shared memory, and its threads come back for them
// along the rows. There they do what follows and store it, neighbours side by side, and read so what is read beside it.
#pragma once

#include "target/gpu/tiles/evaluator.h"

namespace vortex::target::gpu::hopper {

class AnyhowEpilogue {
public:
  /// `stores`: of values that have the product's dimensions and are elementwise in it. `columns`: of a consumer.
  AnyhowEpilogue(Lowering& lowering, mlir::Value product, llvm::ArrayRef<ir::TileStoreOp> stores, int64_t columns);

  /// `row`, `column`: of the tile, where the warp's 16 rows begin; `staging`: its kStagedBytes.
  void emit(Value sums, Value row, Value column, Value staging);

private:
  void finishRows(Value staging, Value row, Value column, int64_t columns);
  tiles::At position(Value row, Value column);
  Value place(Value staging, Value row, Value byte, int64_t more);

  Lowering& l_;
  tiles::Evaluator v_;
  mlir::Value product_;  ///< or what it is rounded to before anything else is done with it
  llvm::SmallVector<ir::TileStoreOp, 2> stores_;
  int64_t columns_, elementBytes_;  ///< of a consumer; of the product
};

}  // namespace vortex::target::gpu::hopper
