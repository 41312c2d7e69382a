// Products that a loop adds up (`acc += a @ b`, also `acc = acc * s + a @ b` with one s per row): the sums stay in the registers of the block's
// threads until the loop is over.
#pragma once

#include "target/gpu/dot/plan.h"
#include "target/gpu/tiles/evaluator.h"

namespace vortex::target::gpu::dot {

/// How sums are spread over the threads.
struct SumsLayout {
  Plan plan;
  SharedTile a, b;  ///< the operands' tiles: some loads deal rows and columns in another order
  mlir::Type type, accType;
};

class Collector {
public:
  explicit Collector(tiles::Evaluator& evaluator) : e_(evaluator) {}

  /// As TileLowering::registersFor and bindRegisters, for loop arguments that start at zero and only collect products of one block tile;
  /// nothing and false for others. A loop's result goes to shared memory once its last loop is over.
  std::optional<Values> registersFor(mlir::Value tile, mlir::Value target);
  bool bind(mlir::Value target, mlir::Value like, llvm::ArrayRef<Value> registers);
  /// The product, where its accumulator is held here; else false.
  bool add(ir::DotOp dot);

  /// `result` is `sums` times `factors`, of which a row has one, and a product.
  struct Scaled {
    mlir::Value sums, factors, result;
  };

private:
  tiles::Evaluator& e_;
  llvm::DenseMap<mlir::Value, Values> sums_;
  llvm::DenseMap<mlir::Value, ir::DotOp> products_;  ///< per loop argument and result
  llvm::DenseMap<mlir::Operation*, SumsLayout> layouts_;
  llvm::DenseMap<mlir::Operation*, Scaled> scaled_;  ///< per product
};

}  // namespace vortex::target::gpu::dot
