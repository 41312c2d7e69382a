#include "target/cpu/emit/functions.h"

#include "ir/location.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::cpu::emit {

namespace func = mlir::func;
namespace scf = mlir::scf;
using llvm::Value;

namespace {

class FunctionEmitter {
public:
  FunctionEmitter(ModuleState& state, llvm::Function* function) : state_(state), ir_(state.module.getContext()) {
    ir_.SetInsertPoint(llvm::BasicBlock::Create(ir_.getContext(), "entry", function));
  }

  void run(func::FuncOp written, llvm::Function* function) {
    mlir::Block& body = written.getBody().front();
    for (auto [argument, value] : llvm::zip(body.getArguments(), function->args()))
      values_[argument] = &value;
    emitBlock(body);
    Values results = all(body.getTerminator()->getOperands());
    if (results.empty())
      ir_.CreateRetVoid();
    else
      ir_.CreateAggregateRet(results.data(), static_cast<unsigned>(results.size()));
  }

private:
  Values all(mlir::ValueRange values) {
    Values result;
    for (mlir::Value value : values)
      result.push_back(values_.lookup(value));
    return result;
  }

  void setAll(mlir::ValueRange targets, llvm::ArrayRef<Value*> values) {
    for (auto [target, value] : llvm::zip(targets, values))
      values_[target] = value;
  }

  Values side(mlir::Block* block) {
    if (!block)
      return {};
    emitBlock(*block);
    return all(block->getTerminator()->getOperands());
  }

  void emitBlock(mlir::Block& block) {
    for (mlir::Operation& op : block)
      if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
        setAll(op.getResults(), emitOp(op));
  }

  Values emitOp(mlir::Operation& op) {
    if (isElementwise(&op)) {
      Value* value = emitElementwise(ir_, state_.target.vector, &op, all(op.getOperands()), 1);
      return value ? Values{value} : failed(op);
    }
    return llvm::TypeSwitch<mlir::Operation*, Values>(&op)
        .Case([&](func::CallOp call) { return emitCall(ir_, functionOf(state_, call), all(call.getOperands())); })
        .Case([&](scf::IfOp branch) {
          return emitIf(
              ir_, values_.lookup(branch.getCondition()), [&] { return side(branch.thenBlock()); },
              [&] { return side(branch.elseBlock()); });
        })
        .Case([&](scf::ForOp loop) {
          return emitFor(ir_, values_.lookup(loop.getLowerBound()), values_.lookup(loop.getUpperBound()),
                         values_.lookup(loop.getStep()), all(loop.getInitArgs()),
                         [&](Value* counter, llvm::ArrayRef<Value*> carried) {
                           values_[loop.getInductionVar()] = counter;
                           setAll(loop.getRegionIterArgs(), carried);
                           return side(loop.getBody());
                         });
        })
        .Case([&](scf::WhileOp loop) {
          scf::ConditionOp condition = loop.getConditionOp();
          return emitWhile(
              ir_, all(loop.getInits()),
              [&](llvm::ArrayRef<Value*> arguments, Values& forwarded) {
                setAll(loop.getBeforeArguments(), arguments);
                emitBlock(*loop.getBeforeBody());
                forwarded = all(condition.getArgs());
                return values_.lookup(condition.getCondition());
              },
              [&](llvm::ArrayRef<Value*> forwarded) {
                setAll(loop.getAfterArguments(), forwarded);
                return side(loop.getAfterBody());
              });
        })
        .Default([&](mlir::Operation* other) { return failed(*other); });
  }

  Values failed(mlir::Operation& op) {
    if (state_.error.empty())
      state_.error = ir::describeLocation(&op) + ": the CPU back end does not support this operation in a function (" +
                     op.getName().getStringRef().str() + ")";
    Values values;
    for (mlir::Type type : op.getResultTypes())
      values.push_back(llvm::PoisonValue::get(valueType(ir_.getContext(), type)));
    return values;
  }

  ModuleState& state_;
  llvm::IRBuilder<> ir_;
  llvm::DenseMap<mlir::Value, Value*> values_;
};

}  // namespace

llvm::Function* functionOf(ModuleState& state, func::CallOp call) {
  const std::string name = "vx.function." + call.getCallee().str();
  if (llvm::Function* known = state.module.getFunction(name))
    return known;
  auto written = mlir::SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  llvm::LLVMContext& context = state.module.getContext();
  llvm::SmallVector<llvm::Type*> arguments, results;
  for (mlir::Type type : written.getArgumentTypes())
    arguments.push_back(valueType(context, type));
  for (mlir::Type type : written.getResultTypes())
    results.push_back(valueType(context, type));
  llvm::Type* result = results.empty() ? llvm::Type::getVoidTy(context) : llvm::StructType::get(context, results);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, arguments, false),
                                          llvm::GlobalValue::InternalLinkage, name, state.module);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  FunctionEmitter(state, function).run(written, function);
  return function;
}

Values emitCall(llvm::IRBuilder<>& ir, llvm::Function* function, llvm::ArrayRef<Value*> arguments) {
  Value* call = ir.CreateCall(function, arguments);
  Values results;
  if (auto* type = llvm::dyn_cast<llvm::StructType>(function->getReturnType()))
    for (unsigned i = 0; i < type->getNumElements(); ++i)
      results.push_back(ir.CreateExtractValue(call, i));
  return results;
}

}  // namespace vortex::target::cpu::emit
