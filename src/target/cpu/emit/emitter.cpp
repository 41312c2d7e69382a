#include "target/cpu/emit/emitter.h"
#include "target/cpu/emit/functions.h"

#include "analysis/shared_lifetimes.h"
#include "base/check.h"
#include "ir/location.h"
#include "ir/size_attr.h"
#include "target/cpu/emit/region_emitter.h"
#include "target/interface/describe.h"
#include "target/interface/faults.h"

#include <cstddef>
#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::cpu::emit {

namespace scf = mlir::scf;
using llvm::Value;

static_assert(offsetof(artifact::CpuBlock, grid) == 12 && offsetof(artifact::CpuBlock, block) == 24);
static constexpr uint64_t kPrintOffset = offsetof(artifact::CpuBlock, print);
static constexpr uint64_t kMeetOffset = offsetof(artifact::CpuBlock, meet);
static constexpr uint64_t kContextOffset = offsetof(artifact::CpuBlock, context);

Emitter::Emitter(ModuleState& state, ir::KernelOp& kernel, llvm::Function* function, bool unitStrides)
    : ir(state.module.getContext()), state(state), kernel(kernel), function(function), features(state.target.vector),
      unitStrides(unitStrides), lifetimes_(std::make_unique<analysis::SharedLifetimes>(kernel)) {
  auto* entry = llvm::BasicBlock::Create(context(), "entry", function);
  auto* body = llvm::BasicBlock::Create(context(), "body", function);
  ir.SetInsertPoint(entry);
  entryEnd_ = ir.CreateBr(body);
  ir.SetInsertPoint(entryEnd_);
  for (unsigned axis = 0; axis < 3; ++axis)
    blockSize_[axis] = mlir::cast<ir::SizeAttr>((*kernel.getBlock())[axis]).getExpr();
  emitEntry();
  ir.SetInsertPoint(body);
  scratch = std::make_unique<Scratch>(ir, ir::sizeArena(kernel.getContext()), function->getArg(2),
                                      [this](size::Expr expr) { return size(expr); });
  tiles = state.makeTiles(*this);
}

Emitter::~Emitter() = default;

void Emitter::run() {
  emitBlock(kernel.getBody().front());
  tiles->leaveScope();
  ir.CreateRet(ir.getInt32(0));
}

/// Loads ids, scalars, extents and strides.
void Emitter::emitEntry() {
  auto blockWord = [&](unsigned word) {
    Value* pointer = ir.CreateConstGEP1_32(ir.getInt32Ty(), blockArgument(), word);
    return ir.CreateZExt(ir.CreateLoad(ir.getInt32Ty(), pointer), ir.getInt64Ty());
  };
  for (unsigned axis = 0; axis < 3; ++axis) {
    blockId[axis] = blockWord(axis);
    gridDim[axis] = blockWord(3 + axis);
    auto known = blockSize_[axis].constant();
    blockDim[axis] = known ? ir.getInt64(*known) : blockWord(6 + axis);
  }
  auto slot = [&](uint32_t index, llvm::Type* type) -> Value* {
    return ir.CreateLoad(type, ir.CreateConstGEP1_32(ir.getInt64Ty(), slotsArgument(), index));
  };
  llvm::SmallVector<uint32_t> slots = ir::argumentSlots(kernel.getArgumentTypes());
  unsigned tensor = 0;
  for (auto [i, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    auto type = mlir::dyn_cast<ir::ViewType>(argument.getType());
    if (!type) {
      setScalar(argument,
                fromMemory(ir, argument.getType(), slot(slots[i], memoryType(context(), argument.getType()))));
      continue;
    }
    View view;
    view.elementType = type.getElementType();
    view.pointer = function->getArg(3 + tensor++);
    // Results and temporaries are allocated by the launch.
    bool known = unitStrides || state.kernel.params.size() <= i;
    int64_t pitch = innermostStride(state.kernel, i);
    unsigned rank = type.getRank();
    for (unsigned dim = 0; dim < rank; ++dim) {
      view.extents.push_back(type.isDynamic(dim) ? slot(slots[i] + 1 + dim, ir.getInt64Ty())
                                                 : ir.getInt64(type.getShape()[dim]));
      bool isKnown = dim + 1 == rank && known;
      view.strides.push_back(isKnown ? ir.getInt64(pitch) : slot(slots[i] + 1 + rank + dim, ir.getInt64Ty()));
    }
    setView(argument, std::move(view));
  }
}

//===-- values ------------------------------------------------------------------------------------------------===//

Value* Emitter::scalar(mlir::Value value) {
  auto found = scalars_.find(value);
  if (found != scalars_.end())
    return found->second;
  if (auto constant = value.getDefiningOp<mlir::arith::ConstantOp>())
    if (llvm::Constant* emitted = constantValue(context(), constant.getValue()))
      return emitted;
  VORTEX_CHECK(!state.error.empty(), "a value is used before it was emitted");
  return llvm::PoisonValue::get(valueType(context(), value.getType()));
}

const View& Emitter::view(mlir::Value value) {
  auto found = views_.find(value);
  VORTEX_CHECK(found != views_.end(), "a view is used before it was emitted");
  return found->second;
}

Value* Emitter::size(size::Expr expr) {
  llvm::IRBuilder<>::InsertPointGuard guard(ir);
  ir.SetInsertPoint(entryEnd_);
  return size::fold(expr, sizes_, [&](const size::Node& node, const std::array<Value*, 3>& operands) {
    return emitSize(node, operands);
  });
}

Value* Emitter::pointerOrZeros(Value* condition, Value* pointer) {
  constexpr llvm::StringLiteral name = "vx.zeros";
  llvm::GlobalVariable* zeros = state.module.getNamedGlobal(name);
  if (!zeros) {
    auto* type = llvm::ArrayType::get(ir.getInt8Ty(), 16);
    zeros = new llvm::GlobalVariable(state.module, type, true, llvm::GlobalValue::InternalLinkage,
                                     llvm::Constant::getNullValue(type), name);
    zeros->setAlignment(llvm::Align(16));
  }
  return ir.CreateSelect(condition, pointer, zeros);
}

//===-- ops ---------------------------------------------------------------------------------------------------===//

static bool touchesTiles(mlir::Operation* op) {
  auto isTile = [](mlir::Type type) { return mlir::isa<mlir::RankedTensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTile) || llvm::any_of(op->getResultTypes(), isTile);
}

void Emitter::emitBlock(mlir::Block& block) {
  for (mlir::Operation& op : block)
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>()) {
      emitOp(&op);
      for (mlir::Operation* alloc : lifetimes_->endingAfter(&op))
        if (auto piece = sharedPieces_.find(alloc); piece != sharedPieces_.end()) {
          tiles->flushStores();
          scratch->free(piece->second);
        }
    }
}

void Emitter::emitOp(mlir::Operation* op) {
  if (mlir::isa<scf::ForOp>(op))
    return emitScfFor(op);
  if (mlir::isa<scf::IfOp>(op))
    return emitScfIf(op);
  if (mlir::isa<scf::WhileOp>(op))
    return emitScfWhile(op);
  if (auto region = mlir::dyn_cast<ir::ThreadsOp>(op))
    return RegionEmitter(*this, region).run();
  if (touchesTiles(op))
    return tiles->emit(op);
  if (isElementwise(op)) {
    Values operands;
    for (mlir::Value operand : op->getOperands())
      operands.push_back(scalar(operand));
    Value* value = emitElementwise(ir, features, op, operands, 1);
    if (!value)
      return fail(op, "this operation");
    return setScalar(op->getResult(0), value);
  }
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case<ir::LoadOp, ir::StoreOp, ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>(
          [&](auto) { emitMemory(op); })
      .Case([&](ir::AllocOp) { emitAlloc(op); })
      .Case([&](ir::SubviewOp) { emitSubview(op); })
      .Case([&](ir::DimOp dim) { setScalar(dim, view(dim.getView()).extents[dim.getDim()]); })
      .Case([&](ir::BlockIdOp id) { setScalar(id, blockId[unsigned(id.getAxis())]); })
      .Case([&](ir::GridDimOp dim) { setScalar(dim, gridDim[unsigned(dim.getAxis())]); })
      .Case([&](ir::BlockDimOp dim) { setScalar(dim, blockDim[unsigned(dim.getAxis())]); })
      .Case([&](ir::BarrierOp barrier) {
        tiles->flushReads(op);
        if (barrier.getGrid())  // regions already run to completion one after another
          emitMeeting();
      })
      .Case([&](mlir::func::CallOp call) {
        Values arguments;
        for (mlir::Value operand : op->getOperands())
          arguments.push_back(scalar(operand));
        for (auto [result, value] : llvm::zip(op->getResults(), emitCall(ir, functionOf(state, call), arguments)))
          setScalar(result, value);
      })
      .Case<ir::AssertOp, ir::PrintOp>([&](auto) { emitDebug(op); })
      .Default([&](mlir::Operation* other) { fail(other, "this operation"); });
}

//===-- faults and prints -------------------------------------------------------------------------------------===//

void Emitter::fail(mlir::Operation* op, const llvm::Twine& message) {
  if (!state.error.empty())
    return;
  std::string location = ir::describeLocation(op);
  state.error = (location.empty() ? "" : location + ": ") + "the CPU back end does not support " + message.str() +
                " (" + op->getName().getStringRef().str() + ")";
}

uint32_t Emitter::addFault(mlir::Operation* op, llvm::StringRef id, llvm::StringRef message) {
  return target::addFault(state.kernel.faults, op, id, message);
}

void Emitter::returnFaultIf(Value* condition, uint32_t fault, llvm::function_ref<void()> before) {
  returnIf(condition, 1 + fault, before);
}

void Emitter::returnIf(Value* condition, uint32_t code, llvm::function_ref<void()> before) {
  emitIf(ir, condition, [&] {
    if (before)
      before();
    ir.CreateRet(ir.getInt32(code));
    ir.SetInsertPoint(llvm::BasicBlock::Create(context(), "unreachable", function));
  });
}

uint32_t Emitter::addValues(mlir::Operation* op, llvm::StringRef text, mlir::ValueRange values,
                            llvm::ArrayRef<bool> isUnsigned) {
  return target::addValues(state.kernel.faults, op, text, values, isUnsigned);
}

/// Floats as f64 bits, integers extended to 64 bits.
Value* Emitter::printBits(mlir::Type type, Value* value, bool isUnsignedValue) {
  auto wide = [&](llvm::Type* to) { return value->getType()->getWithNewType(to); };
  if (mlir::isa<mlir::FloatType>(type)) {
    if (auto format = narrowFormat(type))
      value = math::emitWiden(ir, features, *format, value);
    if (!type.isF64())
      value = ir.CreateFPExt(value, wide(ir.getDoubleTy()));
    return ir.CreateBitCast(value, wide(ir.getInt64Ty()));
  }
  bool extendsZero = isUnsignedValue || type.isInteger(1) || type.isIndex();
  return extendsZero ? ir.CreateZExt(value, wide(ir.getInt64Ty())) : ir.CreateSExt(value, wide(ir.getInt64Ty()));
}

Value* Emitter::blockPointer(uint64_t offset) {
  return ir.CreateLoad(ir.getPtrTy(), ir.CreateConstGEP1_64(ir.getInt8Ty(), blockArgument(), offset));
}

void Emitter::emitMeeting() {
  auto* type = llvm::FunctionType::get(ir.getInt32Ty(), {ir.getPtrTy()}, false);
  Value* code = ir.CreateCall(type, blockPointer(kMeetOffset), {blockPointer(kContextOffset)});
  returnIf(ir.CreateIsNotNull(code), 0);
}

void Emitter::emitPrint(uint32_t fault, llvm::ArrayRef<Value*> bits) {
  llvm::Type* pointer = ir.getPtrTy();
  Value* print = blockPointer(kPrintOffset);
  emitIf(ir, ir.CreateIsNotNull(print), [&] {
    llvm::AllocaInst* values = entryAlloca(ir, llvm::ArrayType::get(ir.getInt64Ty(), std::max<size_t>(bits.size(), 1)));
    for (auto [i, value] : llvm::enumerate(bits))
      ir.CreateStore(value, ir.CreateConstGEP1_64(ir.getInt64Ty(), values, i));
    auto* type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, ir.getInt32Ty(), pointer, ir.getInt32Ty()}, false);
    ir.CreateCall(type, print, {blockPointer(kContextOffset), ir.getInt32(fault), values, ir.getInt32(bits.size())});
  });
}

void Emitter::emitDebug(mlir::Operation* op) {
  auto print = [&](llvm::StringRef text, mlir::ValueRange values, llvm::ArrayRef<bool> isUnsigned) {
    Values bits;
    for (auto [i, value] : llvm::enumerate(values))
      bits.push_back(printBits(value.getType(), scalar(value), i < isUnsigned.size() && isUnsigned[i]));
    emitPrint(addValues(op, text, values, isUnsigned), bits);
  };
  if (auto text = mlir::dyn_cast<ir::PrintOp>(op))
    return print(text.getFormat(), text.getValues(), text.getIsUnsigned());
  auto check = mlir::cast<ir::AssertOp>(op);
  returnFaultIf(ir.CreateNot(scalar(check.getCondition())), addFault(op, check.getId(), check.getMessage()), [&] {
    if (!check.getValues().empty())
      print(check.getMessage(), check.getValues(), check.getIsUnsigned());
  });
}

}  // namespace vortex::target::cpu::emit
