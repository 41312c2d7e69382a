// Calls of thread regions: lane after lane, as the function is code of one thread. Lanes that do not come here may not run it: its loops would
// count with whatever they hold.
#include "target/cpu/emit/functions.h"
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

using llvm::Value;

void RegionEmitter::emitCall(mlir::func::CallOp op) {
  Values arguments, zeros;
  for (mlir::Value operand : op.getOperands()) {
    const Lane passed = lane(operand);
    if (!passed.isUniform())
      return emitByLane(op);
    arguments.push_back(passed.value);
  }
  for (mlir::Type type : op.getResultTypes())
    zeros.push_back(e_.zero(type));
  auto call = [&] { return emit::emitCall(ir_, functionOf(e_.state, op), arguments); };
  Values results =
      mask_ && !maskNonEmpty_ ? emit::emitIf(ir_, anyLane(ir_, mask_), call, [&] { return zeros; }) : call();
  for (auto [result, value] : llvm::zip(op.getResults(), results))
    set(result, Lane::uniform(value));
}

}  // namespace vortex::target::cpu::emit
