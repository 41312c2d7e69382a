// What follows a product, on its sums in registers: each warp finishes 16 rows, writes them to its own piece of shared memory and lets the copy
// engine store them while the next tile is multiplied. What there is one of per row is stored by the threads that have it.
#pragma once

#include "target/gpu/hopper/operand.h"
#include "target/gpu/tiles/evaluator.h"

namespace vortex::target::gpu::hopper {

/// Two sums of this thread, of the warp's upper or lower 8 rows and column group `column` / 8, as elements of the product.
Value pairOfSums(Lowering& lowering, mlir::Value product, Value sums, int64_t column, int64_t half);

/// The warp writes 16 rows of `columns` elements to shared memory. `pair`: this thread's, by column group · 8 and half; `place`: the pointer to a byte of
/// a row, from the row's number and the sum of two parts.
void stagePairs(Lowering& lowering, int64_t columns, int64_t elementBytes,
                llvm::function_ref<Value(int64_t column, int64_t half)> pair,
                llvm::function_ref<Value(Value row, Value byte, int64_t more)> place);

class Epilogue {
public:
  /// What is known per row beside the product: a tile of its leading dimensions.
  struct RowValue {
    mlir::Value tile;
    Values halves;  ///< of this thread's upper and lower row
  };
  /// `rows`: the dimension of the product that the block has several of; of others before the columns it has one. `columns`: of a consumer.
  /// `stores`: of values that are elementwise in the product, and in tiles known per row; or in those only, which then are stored per row. Through
  /// transposes that leave the columns last, and with dimensions regrouped of which the phase has one element, or all columns as the innermost.
  Epilogue(Lowering& lowering, Maps& maps, mlir::Value product, unsigned rows, llvm::ArrayRef<ir::TileStoreOp> stores,
           int64_t columns);

  /// `row`, `column`: of the tile, where the warp's 16 rows begin; `staging`: its kStagedBytes.
  void emit(Value sums, Value row, Value column, Value staging, llvm::ArrayRef<RowValue> rows = {});
  /// After the last tile.
  void finish();

private:
  struct Target {
    ir::TileStoreOp op;
    mlir::Value value;                ///< before dimensions are regrouped
    llvm::SmallVector<int64_t> dims;  ///< of the product, per dimension of the value; -1: of extent 1
    /// Of the value, per dimension of the view; -1: one element of the regrouped dimensions.
    llvm::SmallVector<int64_t> places;
    /// The dimension of the view that dimension `dim` of the product is.
    int64_t placeOf(int64_t dim) const;
  };
  struct Store : Target {
    int64_t columns;  ///< of a box of 16 rows
    int64_t elementBytes;
    int64_t map;
    bool isOneOfSeveral;  ///< the view's last dimension holds the columns of several
  };
  struct Warp;
  /// At hand where a warp's rows are finished.
  bool isKnown(mlir::Value tile) const;
  Target targetOf(ir::TileStoreOp op) const;
  void addStore(Maps& maps, Target target);
  void storeRows(const Warp& warp, const Target& target);
  void emitColumns(Warp& warp, int64_t from);
  void stage(const Warp& warp, Store& store, int64_t from, Value buffer);
  void send(const Warp& warp, Store& store, int64_t from, Value buffer);
  Value evaluate(const Warp& warp, Store& store, int64_t half, int64_t column);
  tiles::At position(const Warp& warp, int64_t half, int64_t column);
  static tiles::At turned(Lowering& l, const tiles::At& at, llvm::ArrayRef<int64_t> dims);
  void remember(Warp& warp, int64_t half, int64_t column);
  void remember(const Warp& warp, const RowValue& value);

  Lowering& l_;
  tiles::Evaluator v_;
  tiles::Requirements aligned_;
  mlir::Value product_;
  unsigned rows_;
  int64_t columns_, step_;
  bool reads_ = false;  ///< other tensors
  llvm::SmallVector<Store, 2> stores_;
  llvm::SmallVector<Target, 1> rowStores_;
  unsigned stored_ = 0, perTile_ = 0;
};

}  // namespace vortex::target::gpu::hopper
