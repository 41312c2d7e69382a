#include "target/nvidia/emitter.h"

#include "ir/location.h"
#include "target/gpu/versions.h"
#include "target/nvidia/codegen.h"

#include "artifact/device_report.h"
#include "base/check.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

namespace vortex::target::nvidia {

namespace scf = mlir::scf;

Emitter::Emitter(ModuleState& state, vxt::KernelOp kernel)
    : state_(state), kernel_(kernel), ir_(state.module.getContext()), scalars_(state.tanhError) {}

size_t Emitter::mapCount() {
  auto maps = kernel_->getAttrOfType<mlir::ArrayAttr>(ir::vxnv::kMaps);
  return maps ? maps.size() : 0;
}

void Emitter::createFunction() {
  llvm::LLVMContext& context = ir_.getContext();
  auto* pointer = llvm::PointerType::get(context, 0);
  size_t maps = mapCount();
  uint64_t bytes = maps ? artifact::tensorMapOffset(state_.slotCount) + maps * artifact::kTensorMapBytes
                        : (uint64_t{state_.slotCount} + 1) * sizeof(uint64_t);
  auto* parameters = llvm::ArrayType::get(ir_.getInt64Ty(), bytes / sizeof(uint64_t));
  function_ = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), {pointer}, false),
                                     llvm::GlobalValue::ExternalLinkage, kernel_.getSymName(), state_.module);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addParamAttr(0, llvm::Attribute::getWithByValType(context, parameters));
  function_->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(maps ? 64 : 8)));
  function_->addParamAttr(0, llvm::Attribute::ReadOnly);
  function_->addParamAttr(0, llvm::Attribute::NoAlias);
  if (!maps)  // copies take the address of maps
    function_->addParamAttr(0, llvm::Attribute::NoCapture);
}

void Emitter::run() {
  createFunction();
  annotate();
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
  emitArguments();
  emitBlock(kernel_.getBody().front());
  ir_.CreateRetVoid();
}

/// nvvm.annotations: kernel, threads per block, blocks per core.
void Emitter::annotate() {
  llvm::NamedMDNode* annotations = state_.module.getOrInsertNamedMetadata("nvvm.annotations");
  auto note = [&](llvm::StringRef name, int64_t number) {
    llvm::Metadata* parts[] = {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(ir_.getContext(), name),
                               llvm::ValueAsMetadata::get(ir_.getInt32(number))};
    annotations->addOperand(llvm::MDNode::get(ir_.getContext(), parts));
  };
  note("kernel", 1);
  if (mapCount() > 0) {  // the parameter stays where it is: the first one, in a list of such
    llvm::Metadata* first = llvm::ValueAsMetadata::get(ir_.getInt32(1));
    llvm::Metadata* parts[] = {llvm::ValueAsMetadata::get(function_),
                               llvm::MDString::get(ir_.getContext(), "grid_constant"),
                               llvm::MDNode::get(ir_.getContext(), first)};
    annotations->addOperand(llvm::MDNode::get(ir_.getContext(), parts));
  }
  auto threads = kernel_.constantThreads();
  for (auto [axis, extent] : {std::pair{'x', threads.value_or(1024)}, {'y', 1}, {'z', 1}})
    note((threads ? "reqntid" : "maxntid") + std::string(1, axis), extent);
  if (int64_t blocks = kernel_.getMinBlocks(); blocks > 0)
    note("minctasm", blocks);
  if (kernel_->hasAttr(gpu::kBranchesMark))
    function_->addFnAttr(kKeepsRegisters);
}

void Emitter::emitArguments() {
  llvm::MDBuilder metadata(ir_.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(kernel_.getSymName());
  llvm::SmallVector<std::pair<mlir::Value, llvm::MDNode*>> scopes;
  for (auto [slot, argument] : llvm::enumerate(kernel_.getBody().getArguments())) {
    Value* place = ir_.CreateConstGEP1_32(ir_.getInt64Ty(), function_->getArg(0), slot);
    if (mlir::isa<vxt::PtrType>(argument.getType())) {
      auto* pointer = llvm::PointerType::get(ir_.getContext(), kGlobal);
      set(argument, ir_.CreateAlignedLoad(pointer, place, llvm::Align(8)));
      scopes.push_back({argument, metadata.createAnonymousAliasScope(domain)});
      continue;
    }
    llvm::Type* stored = memoryType(ir_.getContext(), argument.getType());
    set(argument, fromMemory(ir_, argument.getType(), ir_.CreateAlignedLoad(stored, place, llvm::Align(8))));
  }
  for (auto& [argument, own] : scopes) {
    llvm::SmallVector<llvm::Metadata*> others;
    for (auto& [other, scope] : scopes)
      if (other != argument)
        others.push_back(scope);
    aliasScopes_[argument] = {llvm::MDNode::get(ir_.getContext(), {own}), llvm::MDNode::get(ir_.getContext(), others)};
  }
}

//===-- values ------------------------------------------------------------------------------------------------===//

Value* Emitter::value(mlir::Value vxtValue) {
  auto found = values_.find(vxtValue);
  if (found != values_.end())
    return found->second;
  VORTEX_CHECK(!state_.error.empty(), "a value is used before it was emitted");
  return llvm::PoisonValue::get(type(vxtValue.getType()));
}

Values Emitter::all(mlir::ValueRange values) {
  Values result;
  for (mlir::Value each : values)
    result.push_back(value(each));
  return result;
}

void Emitter::setAll(mlir::ValueRange targets, llvm::ArrayRef<Value*> emitted) {
  for (auto [target, each] : llvm::zip(targets, emitted))
    set(target, each);
}

void Emitter::fail(mlir::Operation* op) {
  for (mlir::Value result : op->getResults())
    if (!values_.contains(result))
      set(result, mlir::isa<vxt::PtrType>(result.getType())
                      ? llvm::PoisonValue::get(llvm::PointerType::get(ir_.getContext(), kGlobal))
                      : llvm::PoisonValue::get(type(result.getType())));
  if (!state_.error.empty())
    return;
  std::string where = ir::describeLocation(op);
  state_.error = (where.empty() ? "" : where + ": ") + "the NVIDIA back end does not support this operation (" +
                 op->getName().getStringRef().str() + ")";
}

//===-- ops ---------------------------------------------------------------------------------------------------===//

void Emitter::emitBlock(mlir::Block& block) {
  for (mlir::Operation& op : block)
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
      emitOp(&op);
}

void Emitter::emitOp(mlir::Operation* op) {
  if (auto loop = mlir::dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto branch = mlir::dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto loop = mlir::dyn_cast<scf::WhileOp>(op))
    return emitWhile(loop);
  if (auto widen = llvm::dyn_cast<mlir::arith::ExtFOp>(op); widen && emitWidenPairs(widen))
    return;
  if (isElementwise(op)) {
    Value* result = emitElementwise(ir_, scalars_, op, all(op->getOperands()), lanesOf(op->getResult(0).getType()));
    return result ? set(op->getResult(0), result) : fail(op);
  }
  using I = llvm::Intrinsic::NVVMIntrinsics;
  auto axis = [](ir::Axis a, I x, I y, I z) { return a == ir::Axis::X ? x : a == ir::Axis::Y ? y : z; };
  namespace in = llvm::Intrinsic;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](vxt::ThreadIdOp) { emitId(op, in::nvvm_read_ptx_sreg_tid_x); })
      .Case([&](vxt::BlockIdOp id) {
        emitId(op, axis(id.getAxis(), in::nvvm_read_ptx_sreg_ctaid_x, in::nvvm_read_ptx_sreg_ctaid_y,
                        in::nvvm_read_ptx_sreg_ctaid_z));
      })
      .Case([&](vxt::GridDimOp id) {
        emitId(op, axis(id.getAxis(), in::nvvm_read_ptx_sreg_nctaid_x, in::nvvm_read_ptx_sreg_nctaid_y,
                        in::nvvm_read_ptx_sreg_nctaid_z));
      })
      .Case([&](mlir::func::CallOp call) { emitCall(call); })
      .Case([&](vxt::AssertOp check) { emitAssert(check); })
      .Case([&](vxt::PrintOp print) { emitPrint(print); })
      .Case<vxt::SharedOp, vxt::LocalOp, vxt::OffsetOp, vxt::AddressOp, vxt::LoadOp, vxt::StoreOp, vxt::AsyncCopyOp,
            vxt::AsyncCommitOp, vxt::AsyncWaitOp>([&](auto) { emitMemory(op); })
      .Default([&](mlir::Operation*) {
        if (!emitAtomic(op) && !emitWarp(op) && !emitVector(op) && !emitHopper(op))
          fail(op);
      });
}

llvm::Function* Emitter::functionOf(ModuleState& state, mlir::func::CallOp call) {
  const std::string name = "vx_function_" + call.getCallee().str();
  if (llvm::Function* known = state.module.getFunction(name))
    return known;
  auto written = mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(call, call.getCalleeAttr());
  Emitter emitter(state, nullptr);
  llvm::SmallVector<llvm::Type*> arguments, results;
  for (mlir::Type each : written.getArgumentTypes())
    arguments.push_back(emitter.type(each));
  for (mlir::Type each : written.getResultTypes())
    results.push_back(emitter.type(each));
  llvm::IRBuilder<>& ir = emitter.ir_;
  llvm::Type* result = results.empty() ? ir.getVoidTy() : llvm::StructType::get(ir.getContext(), results);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, arguments, false),
                                          llvm::GlobalValue::InternalLinkage, name, state.module);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  ir.SetInsertPoint(llvm::BasicBlock::Create(ir.getContext(), "entry", function));
  mlir::Block& body = written.getBody().front();
  for (auto [argument, value] : llvm::zip(body.getArguments(), function->args()))
    emitter.set(argument, &value);
  emitter.emitBlock(body);
  Values values = emitter.all(body.getTerminator()->getOperands());
  if (values.empty())
    ir.CreateRetVoid();
  else
    ir.CreateAggregateRet(values.data(), static_cast<unsigned>(values.size()));
  return function;
}

void Emitter::emitCall(mlir::func::CallOp op) {
  Value* call = ir_.CreateCall(functionOf(state_, op), all(op.getOperands()));
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    set(result, ir_.CreateExtractValue(call, static_cast<unsigned>(i)));
}

/// Special registers hold 32 bits; their ranges let address arithmetic stay narrow.
void Emitter::emitId(mlir::Operation* op, llvm::Intrinsic::ID intrinsic) {
  llvm::CallInst* id = ir_.CreateIntrinsic(intrinsic, {}, {});
  bool isThread = intrinsic == llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x;
  uint64_t end = isThread ? kernel_.constantThreads().value_or(1024) : uint64_t{1} << 31;
  id->setMetadata(llvm::LLVMContext::MD_range,
                  llvm::MDBuilder(ir_.getContext()).createRange(llvm::APInt(32, 0), llvm::APInt(32, end)));
  mlir::Value result = op->getResult(0);
  set(result, result.getType().isIndex() ? ir_.CreateZExt(id, ir_.getInt64Ty(), "", true) : id);
}

void Emitter::emitFor(scf::ForOp op) {
  Values results = target::emitFor(ir_, value(op.getLowerBound()), value(op.getUpperBound()), value(op.getStep()),
                                   all(op.getInitArgs()), [&](Value* iv, llvm::ArrayRef<Value*> carried) {
                                     set(op.getInductionVar(), iv);
                                     setAll(op.getRegionIterArgs(), carried);
                                     emitBlock(*op.getBody());
                                     return all(op.getYieldedValues());
                                   });
  setAll(op.getResults(), results);
}

void Emitter::emitIf(scf::IfOp op) {
  if (!llvm::isa<llvm::ConstantInt>(value(op.getCondition())) && emitPredicated(op))
    return;
  auto side = [&](mlir::Block* block) {
    if (!block)
      return Values{};
    emitBlock(*block);
    return all(block->getTerminator()->getOperands());
  };
  Values results = target::emitIf(
      ir_, value(op.getCondition()), [&] { return side(op.thenBlock()); }, [&] { return side(op.elseBlock()); });
  setAll(op.getResults(), results);
}

void Emitter::emitWhile(scf::WhileOp op) {
  scf::ConditionOp condition = op.getConditionOp();
  Values results = target::emitWhile(
      ir_, all(op.getInits()),
      [&](llvm::ArrayRef<Value*> arguments, Values& forwarded) {
        setAll(op.getBeforeArguments(), arguments);
        emitBlock(*op.getBeforeBody());
        forwarded = all(condition.getArgs());
        return value(condition.getCondition());
      },
      [&](llvm::ArrayRef<Value*> forwarded) {
        setAll(op.getAfterArguments(), forwarded);
        emitBlock(*op.getAfterBody());
        return all(op.getYieldOp().getOperands());
      });
  setAll(op.getResults(), results);
}

}  // namespace vortex::target::nvidia
