#include "passes/pass_on.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace vortex::passes {

using namespace mlir;

/// By value passed on: its number among the carried ones. Nothing: some of it is computed by the condition.
static std::optional<SmallVector<unsigned>> carriedNumbers(scf::WhileOp loop) {
  SmallVector<unsigned> numbers;
  for (Value value : loop.getConditionOp().getArgs()) {
    auto carried = dyn_cast<BlockArgument>(value);
    if (!carried || carried.getOwner() != loop.getBeforeBody())
      return std::nullopt;
    numbers.push_back(carried.getArgNumber());
  }
  return numbers;
}

static void passOn(scf::WhileOp loop, ArrayRef<unsigned> numbers) {
  OpBuilder builder(loop);
  auto made = builder.create<scf::WhileOp>(loop.getLoc(), loop.getBeforeBody()->getArgumentTypes(), loop.getInits());
  made->setAttrs(loop->getAttrs());
  made.getBefore().takeBody(loop.getBefore());
  made.getAfter().takeBody(loop.getAfter());
  made.getConditionOp().getArgsMutable().assign(made.getBeforeArguments());
  Block& body = made.getAfter().front();
  const unsigned before = body.getNumArguments();
  for (BlockArgument carried : made.getBeforeArguments())
    body.addArgument(carried.getType(), carried.getLoc());
  for (auto [old, number] : llvm::enumerate(numbers)) {
    body.getArgument(static_cast<unsigned>(old)).replaceAllUsesWith(body.getArgument(before + number));
    loop.getResult(static_cast<unsigned>(old)).replaceAllUsesWith(made.getResult(number));
  }
  body.eraseArguments(0, before);
  loop.erase();
}

void passOnWhatIsCarried(ir::KernelOp kernel) {
  SmallVector<scf::WhileOp> loops;
  kernel.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
  for (scf::WhileOp loop : loops)
    if (std::optional<SmallVector<unsigned>> numbers = carriedNumbers(loop);
        numbers && !llvm::equal(loop.getConditionOp().getArgs(), loop.getBeforeArguments()))
      passOn(loop, *numbers);
}

}  // namespace vortex::passes
