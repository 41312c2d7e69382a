// For tests: code with one of its waits, arrivals or fences left out.
#pragma once

#include "base/sanitized.h"
#include "ir/vxnv.h"
#include "target/gpu/testing/machine.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

#include <string>

namespace vortex::target::gpu::hopper {

/// A wait that lets the latest group run, after a tile's first one: there is no other.
inline bool isForNothing(ir::vxnv::WgmmaWaitOp wait) {
  int started = 0;
  for (mlir::Operation* op = wait->getPrevNode(); op && wait.getPending() > 0 && !llvm::isa<ir::vxnv::WgmmaWaitOp>(op);
       op = op->getPrevNode()) {
    started += llvm::isa<ir::vxnv::WgmmaCommitOp>(op);
    if (auto product = llvm::dyn_cast<ir::vxnv::WgmmaOp>(op); product && product.getFirst())
      return started < 2;
  }
  return false;
}

/// Of a role's code after its last loop, in a kernel of one tile per block: nobody waits for it.
inline bool isForNothing(ir::vxnv::BarrierArriveOp arrive) {
  mlir::Operation* top = arrive->getParentOp();
  for (mlir::Operation* op = top->getNextNode(); op; op = op->getNextNode())
    if (llvm::isa<mlir::scf::ForOp>(op))
      return false;
  return !top->getParentOfType<mlir::scf::ForOp>();
}

inline bool isOrdering(mlir::Operation* op) {
  namespace vxnv = ir::vxnv;
  if (auto wait = llvm::dyn_cast<vxnv::WgmmaWaitOp>(op))
    return !isForNothing(wait);
  if (auto arrive = llvm::dyn_cast<vxnv::BarrierArriveOp>(op))
    return !isForNothing(arrive);
  return llvm::isa<vxnv::BarrierInitFenceOp, vxnv::BarrierExpectOp, vxnv::BarrierWaitOp, vxnv::BulkCommitOp,
                   vxnv::BulkWaitOp, vxnv::AsyncFenceOp, vxnv::WgmmaFenceOp, vxnv::WgmmaCommitOp, vxnv::NamedBarrierOp,
                   ir::vxt::BarrierOp>(op);
}

inline size_t countOrdering(ir::vxt::KernelOp code) {
  size_t count = 0;
  code.walk([&](mlir::Operation* op) { count += isOrdering(op); });
  return count;
}

/// What comes of the code without its `number`th such operation, of which `left` is the text. Empty: nobody notices.
template <typename Program> std::string runWithout(Program& program, size_t number, std::string& left) {
  auto mutant = program.code().clone();
  mlir::OwningOpRef<mlir::Operation*> owner(mutant);
  mlir::Operation* op = nullptr;
  size_t next = 0;
  mutant.walk([&](mlir::Operation* each) {
    if (isOrdering(each) && next++ == number)
      op = each;
  });
  llvm::raw_string_ostream(left) << *op;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    op->getResult(i).replaceAllUsesWith(op->getOperand(i));
  op->erase();
  std::string failure;
  for (unsigned seed = 0; seed < 6 && failure.empty(); ++seed)  // each kind of operation is the last one in two of them
    failure = program.run(mutant, seed, testing::Timing::Late);
  return failure;
}

}  // namespace vortex::target::gpu::hopper
