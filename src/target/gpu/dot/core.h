// What a thread does with the stages in shared memory: fragments to registers, multiply, and the sums to their place.
#pragma once

#include "target/gpu/dot/operand.h"

#include <memory>

namespace vortex::target::gpu::dot {

/// Rows of the product in shared memory.
struct ResultTile {
  Value pointer;  ///< !vxt.ptr<shared>, element (0, 0) of the block tile
  mlir::Type elementType;
  unsigned pitch;  ///< elements
};

class Core {
public:
  virtual ~Core() = default;
  /// Parts of `plan.depth` that are multiplied one after another.
  virtual unsigned steps() const = 0;
  /// Accumulators of this thread, all zero.
  virtual Values zeros() = 0;
  /// Registers of one part. `a`, `b`: stage pointers.
  virtual Values load(Value a, Value b, unsigned step) = 0;
  virtual void multiply(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> fragments) = 0;
  /// Sums to shared memory, rounded to the result's type.
  virtual void store(llvm::ArrayRef<Value> sums, const ResultTile& result) = 0;
};

/// `type`: of the staged elements; `accType`: in which products and sums are formed.
std::unique_ptr<Core> makeMmaCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b,
                                  mlir::Type type, mlir::Type accType);
std::unique_ptr<Core> makeSimdgroupCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b,
                                        mlir::Type type, mlir::Type accType);
std::unique_ptr<Core> makeFmaCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b,
                                  mlir::Type type, mlir::Type accType);

/// Runtime place of a thread in shared memory plus compile-time moves: pointers differ by constants wherever the swizzle lets them.
class FragmentAddress {
public:
  /// `thread`: i32, element offset of the thread's place at the tile's origin; `possible`: bits it may have.
  FragmentAddress(Lowering& lowering, const SharedTile& tile, Value thread, uint64_t possible, mlir::Type element)
      : l_(lowering), tile_(tile), thread_(thread), possible_(possible), element_(element) {}
  struct At {
    Value pointer;
    int64_t index;
  };
  /// The place moved by (x, k); bits of the move and of the place are disjoint.
  At move(Value stage, uint64_t x, uint64_t k);

private:
  Lowering& l_;
  SharedTile tile_;
  Value thread_;
  uint64_t possible_;
  mlir::Type element_;
  Value stage_;
  llvm::DenseMap<uint64_t, Value> pointers_;  ///< per XOR part, of stage_
};

/// Where this thread's warp is: rows and columns of its part of the block tile (i32), and the lane (i32).
struct WarpPlace {
  Value row, column, lane;
};
WarpPlace warpPlace(Numbers& n, const Plan& plan);

}  // namespace vortex::target::gpu::dot
