// Where a counter must be for conditions of a loop to hold.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/IRMapping.h>

#include <optional>

namespace vortex::target::gpu {

/// Not negative: a constant or a thread's own number.
bool isCount(mlir::Value value);

/// What holds in all iterations up to some number, which is computed in front of the loop: comparisons of the counter plus something that stays
/// with something that stays, and that accesses at such places are inside of their views. The loop starts at a count.
class PlainIterations {
public:
  /// While `holds()`, counter < `below` says what the comparison does, or that an access is inside along a dimension.
  struct Limit {
    mlir::Value below;  ///< of type index
    mlir::Value end;    ///< what the counter plus something is compared with
  };

  explicit PlainIterations(mlir::scf::ForOp loop);

  bool isEmpty() const { return limits_.empty() && inside_.empty(); }
  /// The comparison holds in plain iterations.
  bool isTrue(mlir::Operation& op) const { return mlir::isa<mlir::arith::CmpIOp>(op) && limits_.contains(&op); }
  bool isInside(mlir::Operation& op) const { return inside_.contains(&op); }
  /// Those of one comparison or access; none: it depends on no counter, or on more.
  llvm::ArrayRef<Limit> limitsOf(mlir::Operation* op) const;
  /// The counter is below it in plain iterations; at most 2^63 - 1 less 2^62.
  mlir::Value end(mlir::Value end);
  /// For which numbers all this is so (i1); null: for all.
  mlir::Value holds() const { return holds_; }

private:
  /// The counter, if it is part of it, plus a value that stays; null: nothing.
  struct Place {
    bool hasCounter = false;
    mlir::Value rest;
  };

  bool isInLoop(mlir::Value value) { return loop_.getRegion().isAncestor(value.getParentRegion()); }
  mlir::Value constant(int64_t value);
  mlir::Value asIndex(mlir::Value value);
  mlir::Value keep(mlir::Value value);
  std::optional<Place> placeOf(mlir::Value value);
  void require(mlir::arith::CmpIPredicate predicate, mlir::Value x, mlir::Value y);
  Limit require(const Place& place, mlir::Value end, bool isUnsigned);
  void addComparison(mlir::arith::CmpIOp op);
  void addAccess(mlir::Operation* op, mlir::Value view, mlir::OperandRange indices);

  mlir::scf::ForOp loop_;
  mlir::OpBuilder b_;
  mlir::Location loc_;
  mlir::IRMapping kept_;
  llvm::MapVector<mlir::Operation*, llvm::SmallVector<Limit, 1>> limits_;
  llvm::SmallPtrSet<mlir::Operation*, 8> inside_;
  mlir::Value holds_;
};

}  // namespace vortex::target::gpu
