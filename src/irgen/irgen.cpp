// One kernel function → one module: argument layout, grid and block, phases, entry.
#include "irgen/irgen.h"

#include "irgen/emitter.h"
#include "irgen/functions.h"
#include "irgen/launch_shape.h"
#include "irgen/prune.h"
#include "lang/flow/graph/views.h"
#include "lang/sema/element.h"

#include "mlir/IR/Verifier.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using lang::GridKind;
using lang::ReduceKind;
using lang::Variable;

void loadDialects(mlir::MLIRContext& context) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

namespace {

ir::Combine combineOf(ReduceKind kind, lang::Scalar scalar) {
  switch (kind) {
  case ReduceKind::Mul: return scalar == lang::Scalar::Bool ? ir::Combine::And : mulCombine(scalar);
  case ReduceKind::Min: return minCombine(scalar);
  case ReduceKind::Max: return maxCombine(scalar);
  case ReduceKind::And: return ir::Combine::And;
  case ReduceKind::Or: return ir::Combine::Or;
  case ReduceKind::Add:
  case ReduceKind::None:
  case ReduceKind::Function: break;
  }
  return addCombine(scalar);
}

class Generator {
public:
  Generator(const lang::Function& kernel, const source::SourceManager& sources, mlir::MLIRContext& context,
            const Options& options)
      : kernel_(kernel), options_(options), types_(&context, options.dims), roots_(kernel),
        entry_(kernel, types_, roots_), locations_(&context, sources),
        facts_(kernel, kernel.kernel->gridKind != GridKind::WholeTensor),
        context_{kernel, types_, entry_, locations_, facts_, roots_},
        module_(mlir::ModuleOp::create(locations_(kernel.nameRange))) {}

  mlir::OwningOpRef<mlir::ModuleOp> run() {
    shape_ = launchShape(entry_, options_, locations_);
    if (!shape_)
      return {};
    context_.hasThreads = kernel_.kernel->gridKind != GridKind::WholeTensor;
    for (unsigned axis = 0; axis < 3; ++axis)
      context_.block[axis] = shape_->blockSize(axis);
    if (kernel_.kernel->gridKind == GridKind::Domain && !options_.isGridGiven)
      context_.domain = kernel_.kernel->domain;
    context_.forChecks = options_.forChecks;
    context_.hasOwnBlock = !options_.block;
    context_.hasOwnLaunch = !options_.block && !options_.isGridGiven;
    lang::flow::eachExpr(*kernel_.body, [&](const Expr& expr) {
      context_.padsTiles |= expr.kind == ExprKind::Slice && context_.guardOf(expr) != lang::Guard::Proven;
      if (expr.kind == ExprKind::Builtin && expr.builtin == lang::Builtin::SyncGrid)
        addGridBarrier();
    });
    prepareBody();
    facts_.addBody(*kernel_.body, nullptr);
    findStorage();
    bool reduces = kernel_.kernel->reduce != ReduceKind::None && context_.hasThreads;
    if (reduces)
      addPartials();
    if (context_.hasThreads)
      declareFunctions();
    emitPhases();
    if (reduces)
      emitReduction();
    emitFunctions();
    createEntry(entry_, *module_, launchConstraints(entry_, options_, *shape_), locations_);
    if (context_.failed)
      return {};
    prune(*module_);
    eraseUncalled(*module_);
    keepEmptyKernels();
    // A combination that no rule above refuses but the dialect does: its verifier has said where.
    if (mlir::failed(mlir::verify(*module_)))
      return {};
    return std::move(module_);
  }

private:
  /// The statements of the body; a value at its end is returned.
  void prepareBody() {
    const Expr* body = kernel_.body;
    if (body->kind == ExprKind::Block)
      statements_.assign(body->args.begin(), body->args.end());
    else
      statements_.push_back(body);
    bool returns = kernel_.resultType && kernel_.resultType->kind != lang::TypeKind::Unit;
    if (!returns || statements_.empty())
      return;
    const Expr* last = statements_.back();
    bool isValue = last->type && last->type->kind != lang::TypeKind::Unit && last->type->kind != lang::TypeKind::Never;
    if (!isValue)
      return;
    finalReturn_ = *last;
    finalReturn_.kind = ExprKind::Return;
    finalReturn_.args = {const_cast<Expr*>(last)};
    finalReturn_.variable = nullptr;
    statements_.back() = &finalReturn_;
    body_ = *body;
    body_.kind = ExprKind::Block;
    body_.args.clear();
    for (const Expr* statement : statements_)
      body_.args.push_back(const_cast<Expr*>(statement));
    facts_.addBody(body_, nullptr);
  }

  /// Which variable names which result, and whether results are written in full.
  void findStorage() {
    for (const Expr* statement : statements_)
      findReturned(*statement);
    for (auto [variable, result] : returned_)
      if (isAlone(variable, result)) {
        context_.storage[variable] = entry_.resultArgument(result);
        storedByElement_.insert(result);
      }
    if (!context_.hasThreads)
      findTileResults();
    for (const auto& variable : kernel_.variables)
      if (variable->isResultStorage && !context_.storage.count(variable.get()) &&
          !context_.tileResults.contains(variable.get()))
        context_.hasThreads
            ? refuseStorage(*variable, "tensors written by element of which several are returned as one result, or one "
                                       "as several, or another of the name")
            : addStorage(*variable);
    for (size_t i = 0; i < entry_.results().size(); ++i) {
      bool filled = kernel_.kernel->gridKind != GridKind::Explicit || kernel_.kernel->tile;
      for (uint32_t leaf = 0; leaf < types_.leafCount(entry_.results()[i]); ++leaf)
        entry_.argument(entry_.resultArgument(i) + leaf).zero &= !(filled && !storedByElement_.contains(i));
    }
  }

  /// Named results without element accesses, slices or references are values like any other tensor of a whole-tensor kernel.
  void findTileResults() {
    VariableSet inMemory;
    for (const Expr* statement : statements_)
      findMemoryUses(*statement, inMemory);
    for (const auto& variable : kernel_.variables) {
      if (!variable->isResultStorage || inMemory.contains(variable.get()) || lang::isStructTensor(variable->type))
        continue;
      context_.tileResults.insert(variable.get());
      for (size_t i = 0; i < entry_.results().size(); ++i)
        if (auto found = context_.storage.find(variable.get());
            found != context_.storage.end() && found->second == entry_.resultArgument(i))
          storedByElement_.erase(i);
    }
    context_.storage.remove_if([&](const auto& entry) { return context_.tileResults.contains(entry.first); });
  }

  static void findMemoryUses(const Expr& expr, VariableSet& inMemory) {
    bool usesPlace = expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice || expr.kind == ExprKind::Ref;
    if (usesPlace && expr.args[0]->kind == ExprKind::Var)
      inMemory.insert(expr.args[0]->variable);
    for (const Expr* child : children(expr))
      findMemoryUses(*child, inMemory);
  }

  /// Of several variables that are returned as one result, and one that is several, none can be the result.
  bool isAlone(const Variable* variable, size_t result) const {
    return llvm::none_of(returned_,
                         [&](const auto& other) { return (other.first == variable) != (other.second == result); });
  }

  /// It stands for a result of its type until the body is emitted.
  void refuseStorage(const Variable& variable, llvm::StringRef what) {
    context_.failed = true;
    mlir::emitError(locations_(variable.range))
        << "not supported yet: " << what << "; `" << variable.name << "` is one";
    for (size_t i = 0; i < entry_.results().size(); ++i)
      if (lang::Type result = entry_.results()[i];
          result->isTensor() && result->elem == variable.type->elem && result->rank() == variable.type->rank())
        context_.storage[&variable] = entry_.resultArgument(i);
  }

  void findReturned(const Expr& expr) {
    if (expr.kind == ExprKind::Return && !facts_.target(expr) && !expr.args.empty()) {
      const Expr& value = *expr.args[0];
      bool tuple = value.kind == ExprKind::MakeTuple && entry_.results().size() > 1;
      for (size_t i = 0; i < (tuple ? value.args.size() : 1); ++i) {
        const Expr& part = tuple ? *value.args[i] : value;
        if (part.kind == ExprKind::Var && part.variable->isResultStorage)
          returned_.insert({part.variable, i});
      }
    }
    for (const Expr* child : children(expr))
      findReturned(*child);
  }

  ir::KernelOp createKernel(llvm::StringRef name, llvm::ArrayRef<ir::SizeAttr> grid,
                            llvm::ArrayRef<ir::SizeAttr> block) {
    mlir::OpBuilder builder(module_->getContext());
    builder.setInsertionPointToEnd(module_->getBody());
    auto type = mlir::FunctionType::get(builder.getContext(), entry_.argumentTypes(), {});
    auto list = [&](llvm::ArrayRef<ir::SizeAttr> sizes) {
      return sizes.empty() ? mlir::ArrayAttr()
                           : builder.getArrayAttr(llvm::SmallVector<mlir::Attribute>(sizes.begin(), sizes.end()));
    };
    auto kernel =
        builder.create<ir::KernelOp>(locations_(kernel_.nameRange), name, type, mlir::ArrayAttr(), mlir::ArrayAttr(),
                                     list(grid), list(block), !context_.hasThreads && grid.empty());
    mlir::Block& body = kernel.getBody().emplaceBlock();
    for (const EntryArgument& argument : entry_.arguments())
      body.addArgument(argument.type, locations_(argument.range));
    return kernel;
  }

  /// Memory of the launch for a tensor that is written by element and is not, or not alone, a result.
  void addStorage(const Variable& variable) {
    if (std::optional<uint32_t> first = entry_.addTemporary(variable)) {
      context_.storage[&variable] = *first;
      return;
    }
    refuseStorage(variable, "tensors written by element whose extents only the running kernel knows");
  }

  void addPartials() {
    ir::SizeAttr blocks = shape_->grid[0];
    for (unsigned axis = 1; axis < 3; ++axis)
      blocks = ir::sizeBinary(size::Op::Mul, blocks, shape_->grid[axis]);
    mlir::Type element = types_.scalar(scalarOf(kernel_.resultType));
    auto type = ir::ViewType::get(types_.context(), {mlir::ShapedType::kDynamic}, element, ir::Space::Global, {});
    context_.partials = entry_.addTemporary("partials", type, {blocks});
  }

  void addGridBarrier() {
    if (context_.gridBarrier)
      return;
    auto type =
        ir::ViewType::get(types_.context(), {1}, mlir::IntegerType::get(types_.context(), 32), ir::Space::Global, {});
    context_.gridBarrier = entry_.addTemporary("grid barrier", type, {entry_.constant(1)});
    entry_.argument(*context_.gridBarrier).zero = true;
  }

  void declareFunctions() {
    for (const auto& kept : kernel_.kept)
      context_.functions[kept.get()] = declareFunction(*kept, *module_, types_, locations_(kept->nameRange));
  }

  /// Those that stay functions, which whole-tensor code has none of. Their extents are no dimensions of the kernel.
  void emitFunctions() {
    const TypeMap types(types_.context(), {});
    for (auto [kept, function] : context_.functions) {
      KernelContext context{*kept, types, entry_, locations_, facts_, roots_};
      context.hasThreads = true;
      context.forChecks = context_.forChecks;
      context.functions = context_.functions;
      Emitter(context, function).emitFunction(function);
      context_.failed |= context.failed;
    }
  }

  void emitPhases() {
    const std::string name = kernel_.artifactName + ".main";
    if (!context_.hasThreads)
      return Emitter(context_, createKernel(name, {}, {})).emitKernel(statements_);
    ir::KernelOp kernel = createKernel(name, shape_->grid, shape_->block);
    if (kernel_.kernel->cooperative)
      kernel->setAttr(ir::kCooperativeAttr, mlir::UnitAttr::get(types_.context()));
    if (!context_.domain.empty()) {
      llvm::SmallVector<mlir::Attribute> extents;
      for (const lang::DimExpr& extent : context_.domain)
        extents.push_back(entry_.size(extent));
      kernel->setAttr("vx.domain", mlir::ArrayAttr::get(types_.context(), extents));
    }
    Emitter(context_, kernel).emitKernel(statements_);
  }

  /// A whole-tensor kernel that does nothing would be scheduled into no phase at all: a launch needs one.
  void keepEmptyKernels() {
    for (ir::KernelOp kernel : module_->getOps<ir::KernelOp>()) {
      if (!kernel.getWholeTensor() || !llvm::hasSingleElement(kernel.getBody().front()))
        continue;
      ir::SizeAttr one = entry_.constant(1);
      auto ones = mlir::ArrayAttr::get(types_.context(), {one, one, one});
      kernel.setWholeTensor(false);
      kernel.setGridAttr(ones);
      kernel.setBlockAttr(ones);
    }
  }

  void emitReduction() {
    constexpr int64_t kReductionThreads = 256;
    ir::SizeAttr one = entry_.constant(1);
    ir::KernelOp kernel =
        createKernel(kernel_.artifactName + ".reduce", {one, one, one}, {entry_.constant(kReductionThreads), one, one});
    context_.block = {kReductionThreads, 1, 1};
    context_.domain.clear();
    lang::Scalar scalar = scalarOf(kernel_.resultType);
    Emitter(context_, kernel)
        .emitReduction(combineOf(kernel_.kernel->reduce, scalar), kernel_.kernel->reduceFunction, *context_.partials,
                       entry_.resultArgument(0));
  }

  const lang::Function& kernel_;
  const Options& options_;
  TypeMap types_;
  lang::Roots roots_;
  Entry entry_;
  Locations locations_;
  BodyFacts facts_;
  KernelContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::optional<LaunchShape> shape_;
  std::vector<const Expr*> statements_;
  Expr finalReturn_, body_;
  llvm::SetVector<std::pair<const Variable*, size_t>> returned_;  ///< variables of results, and the results' numbers
  std::set<size_t> storedByElement_;
};

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> generateKernel(const lang::Function& kernel, const lang::Program&,
                                                 const source::SourceManager& sources, mlir::MLIRContext& context,
                                                 const Options& options) {
  VORTEX_CHECK(kernel.isKernel && kernel.kernel && kernel.body, "`%s` is not an analysed kernel", kernel.name.c_str());
  return Generator(kernel, sources, context, options).run();
}

}  // namespace vortex::irgen
