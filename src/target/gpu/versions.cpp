#include "target/gpu/versions.h"

#include "target/gpu/launch_condition.h"

#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/Builders.h>
#include <mlir/IR/IRMapping.h>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;

namespace {

/// Shorter sides cost less to assemble than the choice costs each launch.
constexpr unsigned kLongSide = 100;  // operations
constexpr size_t kMostVersions = 8;
/// A launch evaluates the conditions: about a nanosecond per step.
constexpr size_t kMostSteps = 160;

bool isLong(mlir::Region& region) {
  unsigned count = 0;
  return region
      .walk([&](mlir::Operation*) {
        return ++count < kLongSide ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Replaces the `scf.if` by one of its sides.
void take(mlir::scf::IfOp branch, bool condition) {
  mlir::Block& side = (condition ? branch.getThenRegion() : branch.getElseRegion()).front();
  mlir::Operation* yield = side.getTerminator();
  branch.replaceAllUsesWith(yield->getOperands());
  yield->erase();
  branch->getBlock()->getOperations().splice(branch->getIterator(), side.getOperations());
  branch.erase();
}

struct Split {
  mlir::scf::IfOp branch;
  size::Expr when;
};

std::optional<Split> findSplit(vxt::KernelOp kernel, llvm::function_ref<size::Expr(unsigned)> argumentOf) {
  std::optional<Split> found;
  kernel.walk<mlir::WalkOrder::PreOrder>([&](mlir::scf::IfOp branch) {
    if (branch.getElseRegion().empty() || !isLong(branch.getThenRegion()) || !isLong(branch.getElseRegion()))
      return mlir::WalkResult::advance();
    size::Expr when = launchCondition(branch.getCondition(), argumentOf, kMostSteps);
    if (!when)
      return mlir::WalkResult::advance();
    found = Split{branch, when};
    return mlir::WalkResult::interrupt();
  });
  return found;
}

void setBlocks(vxt::KernelOp kernel) {
  std::optional<int64_t> fewest;
  kernel.walk([&](mlir::Operation* op) {
    auto blocks = mlir::dyn_cast_if_present<mlir::IntegerAttr>(op->removeAttr(kBlocksMark));
    if (blocks)
      fewest = std::min(fewest.value_or(INT64_MAX), blocks.getInt());
    op->removeAttr(kElsewhereMark);
    if (op != kernel && op->removeAttr(kBranchesMark))
      kernel->setAttr(kBranchesMark, mlir::UnitAttr::get(kernel.getContext()));
  });
  if (fewest)
    kernel.setMinBlocks(*fewest);
}

/// The mark stands where every launch of the version comes.
bool isElsewhere(vxt::KernelOp kernel) {
  return llvm::any_of(kernel.getBody().getOps(), [](mlir::Operation& op) { return op.hasAttr(kElsewhereMark); });
}

}  // namespace

llvm::SmallVector<KernelVersion> splitVersions(vxt::KernelOp kernel,
                                               llvm::function_ref<size::Expr(unsigned)> argumentOf, bool hasOthers) {
  llvm::SmallVector<KernelVersion> versions{{kernel, {}}};
  for (size_t at = 0; at < versions.size();) {
    auto split = findSplit(versions[at].kernel, argumentOf);
    if (split && split->when.constant()) {  // every launch takes the same side
      take(split->branch, *split->when.constant() != 0);
      continue;
    }
    if (!split || versions.size() == kMostVersions) {
      ++at;
      continue;
    }
    // The copy takes the else side and stands behind: where it is asked, the condition did not hold.
    vxt::KernelOp whole = versions[at].kernel;
    mlir::OpBuilder builder(whole);
    builder.setInsertionPointAfter(whole);
    mlir::IRMapping mapping;
    auto copy = mlir::cast<vxt::KernelOp>(builder.clone(*whole, mapping));
    take(mlir::cast<mlir::scf::IfOp>(mapping.lookup(split->branch.getOperation())), false);
    take(split->branch, true);
    size::Expr outer = versions[at].when;
    versions[at].when = outer ? size::make(size::Op::And, outer, split->when) : split->when;
    versions.insert(versions.begin() + at + 1, {copy, outer});
  }
  for (size_t i = versions.size(); i-- > 1;)
    if ((hasOthers || i + 1 < versions.size()) && isElsewhere(versions[i].kernel)) {
      versions[i].kernel.erase();
      versions.erase(versions.begin() + i);
    }
  for (size_t i = 1; i < versions.size(); ++i)
    versions[i].kernel.setSymName((kernel.getSymName() + "_v" + llvm::Twine(i + 1)).str());
  for (KernelVersion& version : versions)
    setBlocks(version.kernel);
  return versions;
}

}  // namespace vortex::target::gpu
