// Functions that stay functions: one func.func of numbers for the whole kernel. What a call borrows is passed by its numbers and, if it may be
// written, returned by them behind the result; nobody else can look at it meanwhile.
#include "irgen/functions.h"

#include "irgen/emitter.h"

namespace vortex::irgen {

using lang::Expr;
using mlir::Location;
using mlir::Value;

static bool isMutable(const lang::Variable* param) {
  return param->type->kind == lang::TypeKind::Ref && param->type->isMutable;
}

mlir::func::FuncOp declareFunction(const lang::Function& function, mlir::ModuleOp module, const TypeMap& types,
                                   Location loc) {
  llvm::SmallVector<mlir::Type> arguments, results;
  types.flatten(function.resultType, results);
  for (const lang::Variable* param : function.params) {
    types.flatten(stripRef(param->type), arguments);
    if (isMutable(param))
      types.flatten(stripRef(param->type), results);
  }
  std::string name = function.name;
  std::replace_if(name.begin(), name.end(), [](char c) { return !llvm::isAlnum(c); }, '_');
  name += "_" + std::to_string(llvm::range_size(module.getOps<mlir::func::FuncOp>()));
  auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
  auto declared = builder.create<mlir::func::FuncOp>(loc, name, builder.getFunctionType(arguments, results));
  declared.setPrivate();
  declared.addEntryBlock();
  return declared;
}

void eraseUncalled(mlir::ModuleOp module) {
  bool isErased = true;
  while (isErased) {
    isErased = false;
    for (auto function : llvm::make_early_inc_range(module.getOps<mlir::func::FuncOp>()))
      if (mlir::SymbolTable::symbolKnownUseEmpty(function, module)) {
        function.erase();
        isErased = true;
      }
  }
}

Emitter::Emitter(KernelContext& context, mlir::func::FuncOp function)
    : context_(context), types_(context.types), facts_(context.facts), b_(function.getContext()),
      math_(b_, fastMath(*context.function.kernel)), inThreads_(true) {
  b_.setInsertionPointToStart(&function.getBody().front());
}

void Emitter::emitFunction(mlir::func::FuncOp function) {
  const lang::Function& written = context_.function;
  Location at = function.getLoc();
  llvm::ArrayRef<mlir::BlockArgument> left = function.getArguments();
  llvm::SmallVector<const Variable*> returned;
  for (const Variable* param : written.params) {
    const bool isBorrowed = param->type->kind == lang::TypeKind::Ref;
    // What a reference stands for has a name of its own here.
    const Variable* holder =
        isBorrowed ? facts_.newVariable(param->name, stripRef(param->type), lang::Uniformity::PerThread) : param;
    declare(holder);
    const uint32_t count = types_.leafCount(holder->type);
    Flat value;
    value.leaves.append(left.begin(), left.begin() + count);
    left = left.drop_front(count);
    if (count > 0)
      assign(at, holder, std::move(value));
    if (!isBorrowed)
      continue;
    Flat reference;
    reference.ref = std::make_shared<Place>();
    reference.ref->type = holder->type;
    reference.ref->variable = holder;
    reference.ref->leafCount = count;
    variables_[param] = {};
    assign(at, param, std::move(reference));
    if (isMutable(param))
      returned.push_back(holder);
  }
  const Variable* result = facts_.newVariable("result", written.resultType, lang::Uniformity::PerThread);
  declare(result);
  facts_.addBody(*written.body, nullptr);
  execute(*written.body, types_.leafCount(written.resultType) > 0 ? result : nullptr);
  llvm::SmallVector<Value> values;
  returned.insert(returned.begin(), result);
  for (const Variable* variable : returned)
    llvm::append_range(values, read(at, variable).leaves);
  b_.create<mlir::func::ReturnOp>(at, values);
}

void Emitter::emitCall(const Expr& expr, const Variable* into) {
  Location at = loc(expr);
  const bool isPerThread =
      facts_.grade(*expr.args.back()) == Grade::Thread || llvm::any_of(expr.variables, [](const Variable* param) {
        return param->uniformity == lang::Uniformity::PerThread;
      });
  if (atBlockLevel() && isPerThread) {
    VariableSet assigned = assignedIn(&expr);
    if (into)
      assigned.insert(into);
    return inRegion(at, assigned, [&] { emitCall(expr, into); });
  }
  llvm::SmallVector<Value> operands;
  llvm::SmallVector<Place> written;
  for (const Variable* param : expr.variables) {
    Flat value = read(at, param);
    if (value.ref && !value.ref->views.empty())
      unsupported(expr, "a reference to an element of a tensor as an argument of `" + expr.function->name +
                            "`, which stays a function; pass its value, or a variable of the thread");
    if (value.ref && isMutable(param))
      written.push_back(*value.ref);
    llvm::append_range(operands, value.ref ? load(at, *value.ref).leaves : value.leaves);
  }
  mlir::func::FuncOp function = context_.functions.at(expr.function);
  mlir::ResultRange results = b_.create<mlir::func::CallOp>(at, function, operands).getResults();
  auto take = [&](uint32_t count) {
    Flat value;
    value.leaves.append(results.begin(), results.begin() + count);
    results = results.drop_front(count);
    return value;
  };
  Flat result = take(types_.leafCount(expr.function->resultType));
  for (const Place& place : written)
    store(at, place, take(place.leafCount));
  if (into)
    give(expr, into, std::move(result));
}

}  // namespace vortex::irgen
