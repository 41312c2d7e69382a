#include "target/metal/reuse_arithmetic.h"

#include "target/interface/elementwise.h"

#include <llvm/ADT/ScopedHashTable.h>
#include <mlir/IR/OperationSupport.h>

namespace vortex::target::metal {

namespace {

using Flags = mlir::OperationEquivalence::Flags;

struct SameArithmetic : llvm::DenseMapInfo<mlir::Operation*> {
  static unsigned getHashValue(const mlir::Operation* op) {
    return static_cast<unsigned>(mlir::OperationEquivalence::computeHash(
        const_cast<mlir::Operation*>(op), mlir::OperationEquivalence::directHashValue,
        mlir::OperationEquivalence::ignoreHashValue, Flags::IgnoreLocations));
  }
  static bool isEqual(const mlir::Operation* one, const mlir::Operation* other) {
    if (one == other)
      return true;
    if (one == getEmptyKey() || one == getTombstoneKey() || other == getEmptyKey() || other == getTombstoneKey())
      return false;
    return mlir::OperationEquivalence::isEquivalentTo(const_cast<mlir::Operation*>(one),
                                                      const_cast<mlir::Operation*>(other), Flags::IgnoreLocations);
  }
};

using Known = llvm::ScopedHashTable<mlir::Operation*, mlir::Operation*, SameArithmetic>;

void visit(mlir::Block& block, Known& known) {
  Known::ScopeTy scope(known);
  for (mlir::Operation& op : llvm::make_early_inc_range(block)) {
    for (mlir::Region& region : op.getRegions())
      for (mlir::Block& inner : region)
        visit(inner, known);
    const bool isPlace = mlir::isa<ir::vxt::ThreadIdOp, ir::vxt::BlockIdOp, ir::vxt::GridDimOp, ir::vxt::OffsetOp>(op);
    if ((!isElementwise(&op) && !isPlace) || !mlir::isPure(&op))
      continue;
    if (mlir::Operation* before = known.lookup(&op)) {
      op.replaceAllUsesWith(before->getResults());
      op.erase();
    } else {
      known.insert(&op, &op);
    }
  }
}

}  // namespace

void reuseArithmetic(ir::vxt::KernelOp kernel) {
  Known known;
  visit(kernel.getBody().front(), known);
}

}  // namespace vortex::target::metal
