// The instructions of vxnv as PTX. They are inline assembly: LLVM 19 has no intrinsics for some, and others fix what we choose (waits, descriptors).
#include "target/nvidia/emitter.h"

#include "artifact/device_report.h"
#include "ir/vxnv.h"
#include "layout/hopper.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/IR/InlineAsm.h>

namespace vortex::target::nvidia {

namespace vxnv = ir::vxnv;

/// Places of operands in inline assembly, in the order they are given.
namespace {
class AsmText {
public:
  explicit AsmText(std::string text) : text_(std::move(text)) {}
  std::string text_, constraints_;
  Values operands;
  unsigned next = 0;

  AsmText& operator<<(const std::string& more) {
    text_ += more;
    return *this;
  }
  /// `letter`: the constraint of its register.
  AsmText& operand(Value* value, const char* letter) {
    text_ += "$" + std::to_string(next++);
    constraints_ += (constraints_.empty() ? "" : ",") + std::string(letter);
    operands.push_back(value);
    return *this;
  }
};
}  // namespace

/// Effects on memory keep their order.
static void emitAsm(llvm::IRBuilder<>& ir, const AsmText& code) {
  llvm::SmallVector<llvm::Type*> types;
  for (Value* operand : code.operands)
    types.push_back(operand->getType());
  std::string constraints = code.constraints_ + (code.constraints_.empty() ? "" : ",") + "~{memory}";
  auto* signature = llvm::FunctionType::get(ir.getVoidTy(), types, false);
  ir.CreateCall(llvm::InlineAsm::get(signature, code.text_, constraints, true), code.operands)->setConvergent();
}

Value* Emitter::sharedAddress(mlir::Value pointer) { return ir_.CreatePtrToInt(value(pointer), ir_.getInt32Ty()); }

/// Of a map in the parameter, which is not copied: the function is a grid_constant one.
Value* Emitter::mapAddress(int64_t map) {
  uint64_t offset =
      artifact::tensorMapOffset(state_.slotCount) + static_cast<uint64_t>(map) * artifact::kTensorMapBytes;
  return ir_.CreateConstGEP1_64(ir_.getInt8Ty(), function_->getArg(0), offset);
}

/// "[map, {x, y, …}]"
static void listBox(AsmText& code, Value* map, llvm::ArrayRef<Value*> coordinates) {
  code << "[";
  code.operand(map, "l") << ", {";
  for (auto [i, coordinate] : llvm::enumerate(coordinates)) {
    code << (i ? ", " : "");
    code.operand(coordinate, "r");
  }
  code << "}]";
}

static std::string dimensions(size_t count) { return std::to_string(count) + "d"; }

void Emitter::emitBulkLoad(vxnv::BulkLoadOp op) {
  AsmText code("cp.async.bulk.tensor." + dimensions(op.getCoordinates().size()) +
               ".shared::cluster.global.mbarrier::complete_tx::bytes [");
  code.operand(sharedAddress(op.getDestination()), "r") << "], ";
  listBox(code, mapAddress(op.getMap()), all(op.getCoordinates()));
  code << ", [";
  code.operand(sharedAddress(op.getBarrier()), "r") << "];";
  emitAsm(ir_, code);
}

void Emitter::emitBulkStore(vxnv::BulkStoreOp op) {
  AsmText code("cp.async.bulk.tensor." + dimensions(op.getCoordinates().size()) + ".global.shared::cta.bulk_group ");
  listBox(code, mapAddress(op.getMap()), all(op.getCoordinates()));
  code << ", [";
  code.operand(sharedAddress(op.getSource()), "r") << "];";
  emitAsm(ir_, code);
}

/// The loop is inside one statement, where LLVM cannot rotate or duplicate it; its labels are local to the braces.
void Emitter::emitBarrierWait(vxnv::BarrierWaitOp op) {
  AsmText code("{\n\t.reg .pred done;\nwaiting:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [");
  code.operand(sharedAddress(op.getBarrier()), "r") << "], ";
  code.operand(value(op.getParity()), "r") << ";\n\t@!done bra waiting;\n\t}";
  emitAsm(ir_, code);
}

/// "{$0, $1, …}" of results that are also operands, unless `fresh`.
static std::string sumList(unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", $" : "{$") + std::to_string(i);
  return list + "}";
}

static std::string flag(bool isSet) { return isSet ? ", 1" : ", 0"; }

/// Inline assembly whose results are the sums (f32 or i32); `text` numbers further operands from the count of the sums on. `isRead`: the sums are operands
/// too, in the same registers.
Values Emitter::sumsAsm(const std::string& text, mlir::ValueRange sums, bool isRead, llvm::ArrayRef<Value*> others) {
  auto count = static_cast<unsigned>(sums.size());
  std::string constraints;
  llvm::SmallVector<llvm::Type*> types;
  Values operands(others);
  const bool isInteger = sums[0].getType().isInteger();
  llvm::Type* sumType = isInteger ? static_cast<llvm::Type*>(ir_.getInt32Ty()) : ir_.getFloatTy();
  for (unsigned i = 0; i < count; ++i)
    constraints += std::string(i ? "," : "") + (isInteger ? "=r" : "=f");
  for (Value* other : others) {
    types.push_back(other->getType());
    constraints += other->getType()->isIntegerTy(64) ? ",l" : ",r";
  }
  for (unsigned i = 0; isRead && i < count; ++i) {
    types.push_back(sumType);
    operands.push_back(value(sums[i]));
    constraints += "," + std::to_string(i);
  }
  llvm::SmallVector<llvm::Type*> made(count, sumType);
  auto* signature = llvm::FunctionType::get(llvm::StructType::get(ir_.getContext(), made), types, false);
  llvm::CallInst* call = ir_.CreateCall(llvm::InlineAsm::get(signature, text, constraints, true), operands);
  call->setConvergent();
  Values results;
  for (unsigned i = 0; i < count; ++i)
    results.push_back(ir_.CreateExtractValue(call, i));
  return results;
}

static const char* unitType(mlir::Type element) {
  return element.isBF16()             ? "bf16"
         : element.isF16()            ? "f16"
         : element.isFloat8E4M3FN()   ? "e4m3"
         : element.isFloat8E5M2()     ? "e5m2"
         : element.isTF32()           ? "tf32"
         : element.isSignedInteger(8) ? "s8"
                                      : "u8";
}

/// `a`: a descriptor or four registers of A. Sums start as the product where the predicate is false. Of floats 1, 1: nothing is negated; of 16-bit ones then
/// which operands lie across.
template <typename Product> void Emitter::emitProduct(Product op, llvm::ArrayRef<Value*> a, const std::string& across) {
  auto count = static_cast<unsigned>(op.getSums().size()), b = count + static_cast<unsigned>(a.size());
  const mlir::Type element = op.getElement();
  const int64_t bytes = ir::vxt::scalarBytes(element);
  const std::string type = unitType(element), depth = std::to_string(layout::kMatrixDepthBytes / bytes);
  const std::string flags = (element.isInteger() ? "" : ", 1, 1") + (bytes == 2 ? across : "");
  auto number = [](unsigned i) { return "$" + std::to_string(i); };
  std::string left = number(count);
  for (unsigned i = count + 1; i < b; ++i)
    left += ", " + number(i);
  std::string text = "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, " + number(b + 1) +
                     ", 0;\n\twgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k" + depth +
                     (element.isInteger() ? ".s32." : ".f32.") + type + "." + type + " " + sumList(count) + ", " +
                     (a.size() > 1 ? "{" + left + "}" : left) + ", " + number(b) + ", adds" + flags + ";\n\t}";
  Values others(a);
  others.append({value(op.getB()), ir_.getInt32(op.getFirst() ? 0 : 1)});
  setAll(op.getResults(), sumsAsm(text, op.getSums(), !op.getFirst(), others));
}

void Emitter::emitWgmma(vxnv::WgmmaOp op) {
  emitProduct(op, value(op.getA()), flag(op.getAAcross()) + flag(op.getBAcross()));
}

void Emitter::emitWgmma(vxnv::WgmmaRegistersOp op) {
  emitProduct(op, {value(op.getA0()), value(op.getA1()), value(op.getA2()), value(op.getA3())}, flag(op.getBAcross()));
}

void Emitter::emitNamedBarrier(vxnv::NamedBarrierOp op) {
  AsmText code(op.getArrives() ? "bar.arrive " : "bar.sync ");
  code.operand(value(op.getNumber()), "r") << ", " + std::to_string(op.getThreads()) + ";";
  emitAsm(ir_, code);
}

void Emitter::emitStoreMatrix(vxnv::StoreMatrixOp op) {
  AsmText code("stmatrix.sync.aligned.m8n8.x4.shared.b16 [");
  code.operand(sharedAddress(op.getBase()), "r") << "], {";
  for (auto [i, word] : llvm::enumerate(op.getWords())) {
    code << (i ? ", " : "");
    code.operand(value(word), "r");
  }
  code << "};";
  emitAsm(ir_, code);
}

bool Emitter::emitHopper(mlir::Operation* op) {
  auto plain = [&](const std::string& text) { emitAsm(ir_, AsmText(text)); };
  auto onBarrier = [&](const std::string& name, mlir::Value barrier, const std::string& rest) {
    AsmText code(name + " [");
    code.operand(sharedAddress(barrier), "r") << "]" + rest + ";";
    emitAsm(ir_, code);
  };
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](vxnv::BarrierInitOp init) {
        onBarrier("mbarrier.init.shared::cta.b64", init.getBarrier(), ", " + std::to_string(init.getCount()));
      })
      .Case([&](vxnv::BarrierInitFenceOp) { plain("fence.mbarrier_init.release.cluster;"); })
      .Case([&](vxnv::BarrierExpectOp expect) {
        onBarrier("mbarrier.arrive.expect_tx.shared::cta.b64 _,", expect.getBarrier(),
                  ", " + std::to_string(expect.getBytes()));
      })
      .Case([&](vxnv::BarrierArriveOp arrive) {
        onBarrier("mbarrier.arrive.shared::cta.b64 _,", arrive.getBarrier(), "");
      })
      .Case([&](vxnv::BarrierWaitOp wait) { emitBarrierWait(wait); })
      .Case([&](vxnv::BulkLoadOp load) { emitBulkLoad(load); })
      .Case([&](vxnv::BulkStoreOp store) { emitBulkStore(store); })
      .Case([&](vxnv::BulkCommitOp) { plain("cp.async.bulk.commit_group;"); })
      .Case([&](vxnv::BulkWaitOp wait) {
        plain(std::string("cp.async.bulk.wait_group") + (wait.getWritten() ? " " : ".read ") +
              std::to_string(wait.getPending()) + ";");
      })
      .Case([&](vxnv::PrefetchMapOp prefetch) {
        AsmText code("prefetch.tensormap [");
        code.operand(mapAddress(prefetch.getMap()), "l") << "];";
        emitAsm(ir_, code);
      })
      .Case([&](vxnv::AsyncFenceOp) { plain("fence.proxy.async.shared::cta;"); })
      .Case([&](vxnv::SetRegistersOp registers) {
        plain(std::string("setmaxnreg.") + (registers.getMore() ? "inc" : "dec") + ".sync.aligned.u32 " +
              std::to_string(registers.getCount()) + ";");
      })
      .Case([&](vxnv::WgmmaFenceOp) { plain("wgmma.fence.sync.aligned;"); })
      .Case<vxnv::WgmmaOp, vxnv::WgmmaRegistersOp>([&](auto product) { emitWgmma(product); })
      .Case([&](vxnv::NamedBarrierOp barrier) { emitNamedBarrier(barrier); })
      .Case([&](vxnv::WgmmaCommitOp) { plain("wgmma.commit_group.sync.aligned;"); })
      .Case([&](vxnv::WgmmaWaitOp wait) {
        std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(wait.getPending()) + ";";
        setAll(wait.getResults(), sumsAsm(text, wait.getSums(), true, {}));
      })
      .Case([&](vxnv::StoreMatrixOp store) { emitStoreMatrix(store); })
      .Default([&](mlir::Operation*) { isKnown = false; });
  return isKnown;
}

}  // namespace vortex::target::nvidia
