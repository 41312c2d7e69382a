#include "interpreter/program.h"

#include "interpreter/location.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace vortex::interpreter {

namespace {

class Decoder {
public:
  explicit Decoder(Program& program) : program_(program) {}

  Function* function(mlir::Operation* op, mlir::Region& region) {
    auto [entry, isNew] = decoded_.try_emplace(op, nullptr);
    if (!isNew)
      return entry->second;
    Function& result = program_.functions.emplace_back();
    entry->second = &result;  // before the body: it may call itself
    result.op = op;
    Function* outer = std::exchange(current_, &result);
    auto registers = std::exchange(registers_, llvm::DenseMap<mlir::Value, int>());
    body(region, result.body);
    result.registers = registers_.size();
    registers_ = std::move(registers);
    current_ = outer;
    return &result;
  }

  std::string error;

private:
  int registerOf(mlir::Value value) { return registers_.try_emplace(value, int(registers_.size())).first->second; }

  void fail(mlir::Operation* op, const llvm::Twine& message) {
    if (error.empty())
      error = toText(locationOf(op->getLoc())) + message.str();
  }

  void body(mlir::Region& region, Body& result) {
    if (region.empty())
      return;
    if (!region.hasOneBlock())
      return fail(region.getParentOp(), "the interpreter executes structured control flow only");
    for (mlir::Value argument : region.getArguments())
      result.arguments.push_back(registerOf(argument));
    for (mlir::Operation& op : region.front()) {
      if (op.hasTrait<mlir::OpTrait::IsTerminator>()) {
        for (mlir::Value operand : op.getOperands())
          result.yields.push_back(registerOf(operand));
        continue;
      }
      if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op))
        this->constant(constant);
      else
        node(op, result.nodes.emplace_back());
    }
  }

  void constant(mlir::arith::ConstantOp op) {
    Value value;
    auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
    auto tile = llvm::dyn_cast<mlir::ShapedType>(op.getType());
    if (tile && !tile.hasStaticShape())
      return fail(op, "a constant tile without static extents");
    if (!elementOf(op.getType()) || (llvm::isa<mlir::TensorType>(op.getType()) && !dense))
      return fail(op, "the interpreter does not know constants of this type");
    if (!dense) {
      value.cells.push_back(attributeBits(op.getValue()));
    } else {
      auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
      value.shape.assign(type.getShape().begin(), type.getShape().end());
      for (mlir::Attribute element : dense.getValues<mlir::Attribute>())
        value.cells.push_back(attributeBits(element));
    }
    current_->constants.emplace_back(registerOf(op.getResult()), std::move(value));
  }

  void node(mlir::Operation& op, Node& result) {
    result.op = &op;
    for (mlir::Value operand : op.getOperands())
      result.operands.push_back(registerOf(operand));
    for (mlir::Value value : op.getResults())
      result.results.push_back(registerOf(value));
    access(op, result);
    result.function = findNodeFunction(&op);
    result.kernel = findElementKernel(&op);
    if (!result.function)
      return fail(&op, "the interpreter does not execute '" + op.getName().getStringRef() + "' on these types");
    for (mlir::Region& region : op.getRegions())
      body(region, result.regions.emplace_back());
    if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op)) {
      auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(&op, call.getCalleeAttr());
      if (!callee || callee.isExternal())
        return fail(&op, "call of a function without a body");
      result.callee = function(callee, callee.getBody());
    }
  }

  template <typename Op> void plainAccess(Op op, Node& node) {
    node.viewRegister = registerOf(op.getView());
    for (mlir::Value index : op.getIndices())
      node.indices.push_back(registerOf(index));
    if (op.getMask())
      node.maskRegister = registerOf(op.getMask());
    node.guarded = op.getGuarded();
    if constexpr (requires { op.getRaceFree(); })
      node.isRaceFree = op.getRaceFree();
    if constexpr (requires { op.getValue(); })
      node.valueRegister = registerOf(op.getValue());
  }

  void access(mlir::Operation& op, Node& node) {
    llvm::TypeSwitch<mlir::Operation*>(&op)
        .Case<ir::LoadOp, ir::StoreOp, ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>(
            [&](auto access) { plainAccess(access, node); });
  }

  Program& program_;
  Function* current_ = nullptr;
  llvm::DenseMap<mlir::Value, int> registers_;
  llvm::DenseMap<mlir::Operation*, Function*> decoded_;
};

/// Memory elements that the interpreter cannot read: index is eight bytes, bool one, everything else a whole number of bytes.
bool hasKnownElements(mlir::TypeRange types) {
  return llvm::all_of(types, [](mlir::Type type) {
    auto view = llvm::dyn_cast<ir::ViewType>(type);
    auto element = elementOf(view ? view.getElementType() : type);
    return element && (!view || element->width == 1 || std::has_single_bit(unsigned(element->width)));
  });
}

}  // namespace

base::Result<Program> decode(mlir::ModuleOp module) {
  Program program;
  Decoder decoder(program);
  for (mlir::Operation& op : module.getOps()) {
    if (auto entry = llvm::dyn_cast<ir::EntryOp>(op))
      program.entry = entry;
    if (auto kernel = llvm::dyn_cast<ir::KernelOp>(op)) {
      if (!hasKnownElements(kernel.getArgumentTypes()))
        return base::Error{toText(locationOf(op.getLoc())) +
                           "the interpreter does not know an argument's element type"};
      program.phases.push_back(decoder.function(kernel, kernel.getBody()));
    }
  }
  if (!program.entry)
    return base::Error{"the module has no vx.entry"};
  if (!decoder.error.empty())
    return base::Error{decoder.error};
  return program;
}

NodeFunction findNodeFunction(mlir::Operation* op) {
  for (auto find : {findAccessFunction, findControlFunction, findThreadFunction, findTileFunction})
    if (NodeFunction function = find(op))
      return function;
  return nullptr;
}

}  // namespace vortex::interpreter
