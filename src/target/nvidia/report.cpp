// Faults and prints: the launch's report, see artifact/device_report.h.
#include "target/nvidia/emitter.h"

#include "artifact/device_report.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

namespace vortex::target::nvidia {

using artifact::DeviceReport;
namespace in = llvm::Intrinsic;

Value* Emitter::reportField(uint64_t offset) {
  auto* pointer = llvm::PointerType::get(ir_.getContext(), kGlobal);
  Value* place = ir_.CreateConstGEP1_32(ir_.getInt64Ty(), function_->getArg(0), state_.slotCount);
  Value* report = ir_.CreateAlignedLoad(pointer, place, llvm::Align(8));
  return ir_.CreateConstGEP1_64(ir_.getInt8Ty(), report, offset);
}

/// Threads that end early count as arrived at every later barrier of the block (PTX ISA, bar: exited threads).
void Emitter::emitAssert(vxt::AssertOp op) {
  Value* condition = value(op.getCondition());
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition); known && !known->isZero())
    return;
  auto* failed = llvm::BasicBlock::Create(ir_.getContext(), "fault", function_);
  auto* passed = llvm::BasicBlock::Create(ir_.getContext(), "passed", function_);
  ir_.CreateCondBr(condition, passed, failed, llvm::MDBuilder(ir_.getContext()).createBranchWeights(1 << 20, 1));
  ir_.SetInsertPoint(failed);
  auto relaxed = llvm::AtomicOrdering::Monotonic;
  Value* exchange = ir_.CreateAtomicCmpXchg(reportField(offsetof(DeviceReport, fault)), ir_.getInt32(0),
                                            ir_.getInt32(1 + op.getFault()), llvm::Align(4), relaxed, relaxed);
  Value* isFirst = ir_.CreateICmpEQ(ir_.CreateExtractValue(exchange, 0), ir_.getInt32(0));
  target::emitIf(ir_, isFirst, [&] {
    in::ID ids[] = {in::nvvm_read_ptx_sreg_ctaid_x, in::nvvm_read_ptx_sreg_ctaid_y, in::nvvm_read_ptx_sreg_ctaid_z,
                    in::nvvm_read_ptx_sreg_tid_x};
    for (unsigned i = 0; i < 4; ++i)
      ir_.CreateAlignedStore(ir_.CreateIntrinsic(ids[i], {}, {}), reportField(offsetof(DeviceReport, block) + 4 * i),
                             llvm::Align(4));
    for (auto [i, each] : llvm::enumerate(op.getValues().take_front(artifact::kFaultValues)))
      ir_.CreateAlignedStore(value(each), reportField(offsetof(DeviceReport, values) + 8 * i), llvm::Align(8));
  });
  ir_.CreateIntrinsic(in::nvvm_exit, {}, {});
  ir_.CreateUnreachable();
  ir_.SetInsertPoint(passed);
}

void Emitter::emitPrint(vxt::PrintOp op) {
  uint64_t words = 1 + op.getValues().size();
  Value* start = ir_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, reportField(offsetof(DeviceReport, printWords)),
                                     ir_.getInt64(words), llvm::Align(8), llvm::AtomicOrdering::Monotonic);
  Value* capacity =
      ir_.CreateAlignedLoad(ir_.getInt32Ty(), reportField(offsetof(DeviceReport, printCapacity)), llvm::Align(4));
  Value* end = ir_.CreateAdd(start, ir_.getInt64(words));
  target::emitIf(ir_, ir_.CreateICmpULE(end, ir_.CreateZExt(capacity, ir_.getInt64Ty())), [&] {
    Value* record = ir_.CreateGEP(ir_.getInt64Ty(), reportField(sizeof(DeviceReport)), start);
    auto put = [&](unsigned word, Value* bits) {
      ir_.CreateAlignedStore(bits, ir_.CreateConstGEP1_64(ir_.getInt64Ty(), record, word), llvm::Align(8));
    };
    put(0, ir_.getInt64((1 + op.getFormat()) | (words - 1) << 32));
    for (auto [i, each] : llvm::enumerate(op.getValues()))
      put(1 + i, value(each));
  });
}

}  // namespace vortex::target::nvidia
