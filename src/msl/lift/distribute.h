// The code of one thread, structured, to what a block does: vx.threads regions between barriers.
//
// The code between two barriers is a region under a mask: the threads that are on this path. A condition or loop with a barrier inside becomes
// control of the block: as it stands where its condition is uniform; else a branch runs under a narrower mask while any thread takes it, and a
// loop goes on while any thread does, with the results of threads that left kept. Masks are narrowed, never widened. Values that live across a
// cut are results of one region and inputs of another; constants and arithmetic on thread ids are computed anew instead.
#pragma once

#include "msl/lift/uniformity.h"

#include "ir/vx.h"

#include "mlir/IR/IRMapping.h"

namespace vortex::msl::lift {

class Distributor {
public:
  /// `ids`: arguments of the function that are x, y, z and the linear id; `extents`: threads of the block in x, y and z, at block level.
  Distributor(mlir::func::FuncOp function, const Uniformity& uniformity, llvm::ArrayRef<mlir::Value> ids,
              std::array<mlir::Value, 3> extents, mlir::OpBuilder& builder, bool checksBarriers);
  /// What a uniform argument of the function is at block level.
  void bind(mlir::Value argument, mlir::Value value) { bound_[argument] = value; }
  /// Emits the body at the builder's insertion point.
  void run();

private:
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder&, mlir::IRMapping&,
                                                                 llvm::ArrayRef<mlir::Value>)>;
  /// A region that may use the values of the thread's function in `sources` and the tensors in `tensors`, whose elements `body` gets.
  llvm::SmallVector<mlir::Value> emitThreads(llvm::ArrayRef<mlir::Value> sources, llvm::ArrayRef<mlir::Value> tensors,
                                             mlir::TypeRange results, Body body);
  void emitBlock(mlir::Block& block, mlir::Value mask);
  void emitSegment(llvm::ArrayRef<mlir::Operation*> ops, mlir::Value mask);
  void emitUniform(mlir::Operation& op);
  void emitChosen(mlir::Operation& op);
  void emitIf(mlir::scf::IfOp op, mlir::Value mask);
  void emitMaskedIf(mlir::scf::IfOp op, mlir::Value mask);
  llvm::SmallVector<mlir::Value> emitMaskedBranch(mlir::scf::IfOp op, mlir::Region& region, mlir::Value mask);
  void emitWhile(mlir::scf::WhileOp op, mlir::Value mask);
  void emitMaskedWhile(mlir::scf::WhileOp op, mlir::Value mask);

  bool isThreadId(mlir::Value value) const { return llvm::is_contained(ids_, value); }
  /// Length of the longest chain of operations from thread ids and uniform values to `value`; more than all that are allowed if others are in it.
  unsigned stepsTo(mlir::Value value) const;
  /// Whether each region that needs the value computes it, instead of passing it on.
  bool isRecomputed(mlir::Value value) const;
  /// A value of the thread's function at block level: a scalar where `likeScalar`, else a tensor.
  mlir::Value outside(mlir::Value value, bool asTensor);
  mlir::Value narrowed(mlir::Value mask, mlir::Value condition, bool isNegated);
  mlir::Value merged(mlir::Value mask, mlir::Value yes, mlir::Value no);
  mlir::Value fullMask();
  mlir::Value any(mlir::Value mask);
  void beginChecks();
  bool canBeMissed(mlir::Operation* barrier) const;
  void checkBarrier(mlir::Location at, mlir::Value mask);
  mlir::Value zeroTensor(mlir::Type elem);
  mlir::Value zero(mlir::OpBuilder& b, mlir::Type type);
  mlir::Type tensorOf(mlir::Type elem) const { return mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, elem); }
  mlir::Type outsideType(mlir::Value value, bool asTensor) const {
    return asTensor ? tensorOf(value.getType()) : value.getType();
  }

  mlir::func::FuncOp function_;
  const Uniformity& uniformity_;
  llvm::SmallVector<mlir::Value> ids_;
  std::array<mlir::Value, 3> extents_;
  mlir::OpBuilder& b_;
  mlir::Location loc_;
  llvm::DenseMap<mlir::Value, mlir::Value> bound_;  ///< uniform: scalar; per thread: tensor
  mutable llvm::DenseMap<mlir::Value, unsigned> steps_;
  mlir::Value flag_;                  ///< shared word of any()
  mlir::Operation* start_ = nullptr;  ///< where flag_ is made
  bool checksBarriers_;               ///< a thread that comes to a barrier after it missed one is an error
  mlir::Value missed_;  ///< the line of the barrier that a thread missed, 0: none; null: nobody can miss one
};

}  // namespace vortex::msl::lift
