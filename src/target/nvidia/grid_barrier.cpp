// The barrier of a grid. One thread of each block adds to a word in device memory; the highest bit of the word changes when all have: the first block
// adds 2^31 less what the others add. So the word serves the next barrier as it is. Blocks are resident, as the launch is cooperative.
#include "target/nvidia/emitter.h"

#include "artifact/device_report.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

namespace vortex::target::nvidia {

using artifact::DeviceReport;
namespace in = llvm::Intrinsic;

/// A thread that fails ends, and with it perhaps the one that would tell the other blocks: nobody waits for what does not come.
void Emitter::emitGridBarrier(vxt::GridBarrierOp op) {
  bool mayFail = false;
  kernel_.walk([&](vxt::AssertOp) { mayFail = true; });
  auto special = [&](in::ID id) -> Value* { return ir_.CreateIntrinsic(id, {}, {}); };
  auto hasFailed = [&]() -> Value* {
    return ir_.CreateIsNotNull(
        ir_.CreateAlignedLoad(ir_.getInt32Ty(), reportField(offsetof(DeviceReport, fault)), llvm::Align(4), true));
  };
  auto blockBarrier = [&] { convergent(ir_.CreateIntrinsic(in::nvvm_barrier0, {}, {})); };
  Value* state = value(op.getState());
  blockBarrier();
  target::emitIf(ir_, ir_.CreateIsNull(special(in::nvvm_read_ptx_sreg_tid_x)), [&] {
    Value* block =
        ir_.CreateOr(ir_.CreateOr(special(in::nvvm_read_ptx_sreg_ctaid_x), special(in::nvvm_read_ptx_sreg_ctaid_y)),
                     special(in::nvvm_read_ptx_sreg_ctaid_z));
    Value* blocks =
        ir_.CreateMul(ir_.CreateMul(special(in::nvvm_read_ptx_sreg_nctaid_x), special(in::nvvm_read_ptx_sreg_nctaid_y)),
                      special(in::nvvm_read_ptx_sreg_nctaid_z));
    Value* rest = ir_.CreateSub(ir_.getInt32(0x80000001u), blocks);
    Value* part = ir_.CreateSelect(ir_.CreateIsNull(block), rest, ir_.getInt32(1));
    Value* before = atomicAsm("atom.acq_rel.gpu.global.add.u32", op.getState(), state, {part}, ir_.getInt32Ty());
    target::emitWhile(
        ir_, {},
        [&](llvm::ArrayRef<Value*>, Values&) -> Value* {
          Value* now = atomicAsm("ld.acquire.gpu.global.b32", op.getState(), state, {}, ir_.getInt32Ty());
          Value* waits = ir_.CreateICmpSGE(ir_.CreateXor(before, now), ir_.getInt32(0));
          return mayFail ? ir_.CreateAnd(waits, ir_.CreateNot(hasFailed())) : waits;
        },
        [&](llvm::ArrayRef<Value*>) { return Values(); });
  });
  blockBarrier();
  if (mayFail)
    target::emitIf(ir_, hasFailed(), [&] {
      ir_.CreateIntrinsic(in::nvvm_exit, {}, {});
      ir_.CreateUnreachable();
      ir_.SetInsertPoint(llvm::BasicBlock::Create(ir_.getContext(), "unreachable", function_));
    });
}

}  // namespace vortex::target::nvidia
