#include "msl/lift/import.h"

#include "msl/flatten/clean.h"
#include "msl/lift/importer.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/DebugInfoMetadata.h>

namespace vortex::msl::lift {

namespace cf = mlir::cf;

mlir::Type importType(mlir::MLIRContext* context, llvm::Type* type) {
  if (type->isHalfTy())
    return mlir::Float16Type::get(context);
  if (type->isBFloatTy())
    return mlir::BFloat16Type::get(context);
  if (type->isFloatTy())
    return mlir::Float32Type::get(context);
  if (type->isIntegerTy(1) || type->isIntegerTy(8) || type->isIntegerTy(16) || type->isIntegerTy(32) ||
      type->isIntegerTy(64))
    return mlir::IntegerType::get(context, type->getIntegerBitWidth());
  return nullptr;
}

Importer::Importer(front::Unit& unit, const std::vector<Memory>& memories, mlir::ModuleOp module)
    : unit_(unit), isContractionForbidden_(unit.files->forbidsContraction()), memories_(memories),
      b_(module.getContext()), loc_(b_.getUnknownLoc()), module_(module) {}

void Importer::refuse(const llvm::Instruction* at, const std::string& message) {
  if (unit_.problems.empty())
    unit_.problems.push_back(flatten::problemAt(unit_, at, message));
}

mlir::Location Importer::location(const llvm::Instruction& at) {
  const auto place = unit_.files->placeOf(at.getDebugLoc().get());
  return place ? mlir::FileLineColLoc::get(b_.getContext(), place->path, place->line,
                                           place->source->sourceColumn(place->line, place->column))
               : mlir::Location(b_.getUnknownLoc());
}

mlir::Type Importer::type(llvm::Type* type, const llvm::Instruction* at) {
  if (mlir::Type known = importType(b_.getContext(), type))
    return known;
  std::string text;
  llvm::raw_string_ostream out(text);
  type->print(out);
  refuse(at, type->isDoubleTy() ? "Metal has no double" : "values of type " + text + " are not supported");
  return b_.getI32Type();
}

mlir::Value Importer::constant(const llvm::Constant* value) {
  mlir::Type type = this->type(value->getType(), at_);
  if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(value))
    return b_.create<mlir::arith::ConstantOp>(loc_, b_.getIntegerAttr(type, number->getValue()));
  if (auto* number = llvm::dyn_cast<llvm::ConstantFP>(value))
    return b_.create<mlir::arith::ConstantOp>(loc_, mlir::FloatAttr::get(type, number->getValueAPF()));
  return b_.create<mlir::arith::ConstantOp>(loc_, b_.getZeroAttr(type));  // undef, poison
}

mlir::Value Importer::value(const llvm::Value* value) {
  if (auto* number = llvm::dyn_cast<llvm::Constant>(value))
    return constant(number);
  mlir::Value known = values_.lookup(value);
  if (!known) {
    refuse(llvm::dyn_cast<llvm::Instruction>(value), "this value cannot be lowered");
    return constant(llvm::Constant::getNullValue(llvm::Type::getInt32Ty(unit_.context)));
  }
  return known;
}

mlir::func::FuncOp Importer::run() {
  b_.setInsertionPointToEnd(module_.getBody());
  llvm::SmallVector<mlir::Type> types;
  for (const Memory& memory : memories_)
    types.push_back(viewType(memory));
  types.append(static_cast<size_t>(ThreadValue::Count), b_.getIndexType());
  function_ = b_.create<mlir::func::FuncOp>(loc_, "thread", b_.getFunctionType(types, {}));
  llvm::ReversePostOrderTraversal<llvm::Function*> order(unit_.entry);
  for (llvm::BasicBlock* block : order) {
    auto* made = new mlir::Block();
    function_.getBody().push_back(made);
    blocks_[block] = made;
    if (block == &unit_.entry->getEntryBlock())
      for (mlir::Type each : types)
        made->addArgument(each, loc_);
    for (llvm::PHINode& phi : block->phis())
      values_[&phi] = made->addArgument(type(phi.getType(), &phi), location(phi));
  }
  for (llvm::BasicBlock* block : order) {
    b_.setInsertionPointToEnd(blocks_[block]);
    for (llvm::Instruction& each : *block) {
      if (llvm::isa<llvm::PHINode>(each))
        continue;
      loc_ = location(each);
      at_ = &each;
      each.isTerminator() ? importTerminator(each) : importInstruction(each);
      if (!unit_.problems.empty())
        return nullptr;
    }
  }
  return function_;
}

mlir::Value Importer::threadValue(ThreadValue which) {
  return function_.getArgument(static_cast<unsigned>(memories_.size()) + static_cast<unsigned>(which));
}

ir::ViewType Importer::viewType(const Memory& memory) {
  ir::Space space = memory.kind == Memory::Kind::Buffer  ? ir::Space::Global
                    : memory.kind == Memory::Kind::Local ? ir::Space::Local
                                                         : ir::Space::Shared;
  int64_t extent = memory.kind == Memory::Kind::Buffer
                       ? mlir::ShapedType::kDynamic
                       : static_cast<int64_t>(std::max<uint64_t>(memory.bytes / memory.unitBytes, 1));
  mlir::Type elem = memory.elem ? importType(b_.getContext(), memory.elem) : nullptr;
  return ir::ViewType::get({extent}, elem ? elem : b_.getI8Type(), space);
}

llvm::SmallVector<mlir::Value> Importer::incoming(const llvm::BasicBlock* from, const llvm::BasicBlock* to) {
  llvm::SmallVector<mlir::Value> values;
  for (const llvm::PHINode& phi : to->phis())
    values.push_back(value(phi.getIncomingValueForBlock(from)));
  return values;
}

void Importer::importTerminator(llvm::Instruction& at) {
  llvm::BasicBlock* block = at.getParent();
  if (auto* branch = llvm::dyn_cast<llvm::BranchInst>(&at)) {
    llvm::BasicBlock* first = branch->getSuccessor(0);
    if (!branch->isConditional()) {
      b_.create<cf::BranchOp>(loc_, blocks_[first], incoming(block, first));
      return;
    }
    llvm::BasicBlock* second = branch->getSuccessor(1);
    mlir::Value condition = value(branch->getCondition());
    auto yes = incoming(block, first), no = incoming(block, second);
    b_.create<cf::CondBranchOp>(loc_, condition, blocks_[first], yes, blocks_[second], no);
  } else if (llvm::isa<llvm::ReturnInst, llvm::UnreachableInst>(at)) {
    b_.create<mlir::func::ReturnOp>(loc_);
  } else {
    refuse(&at, "this control flow is not supported");
  }
}

mlir::func::FuncOp importThread(front::Unit& unit, const std::vector<Memory>& memories, mlir::ModuleOp module) {
  return Importer(unit, memories, module).run();
}

}  // namespace vortex::msl::lift
