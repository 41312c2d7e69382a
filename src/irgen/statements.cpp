// Statements: where each is placed, sequences with jumps, declarations, assignments, inlined calls.
#include "irgen/emitter.h"

#include "lang/sema/element.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using mlir::Location;
using mlir::Value;

VariableSet Emitter::assignedIn(llvm::ArrayRef<const Expr*> statements) const {
  VariableSet set;
  for (const Expr* statement : statements)
    facts_.collectAssigned(*statement, set);
  return set;
}

static bool isOnePlace(const Place* a, const Place* b) {
  return a == b || (a && b && a->variable && a->variable == b->variable && a->firstLeaf == b->firstLeaf &&
                    a->leafCount == b->leafCount && a->choices.empty() && b->choices.empty());
}

void Emitter::evaluate(const Expr& expr, const Variable* into) {
  if (!atBlockLevel())
    return execute(expr, into);
  switch (facts_.grade(expr)) {
  case Grade::Uniform: prepareUniform(expr); return execute(expr, into);
  case Grade::Thread: return executeInRegion(expr, into);
  case Grade::Block: return executeBlockLevel(expr, into);
  }
}

void Emitter::executeInRegion(const Expr& expr, const Variable* into) {
  VariableSet assigned = assignedIn(&expr);
  if (into)
    assigned.insert(into);
  if (expr.kind == ExprKind::Let && !predicates_.empty()) {
    declare(expr.variable);  // outlives the predicate
    assigned.insert(expr.variable);
  }
  inRegion(loc(expr), assigned, [&] { execute(expr, into); });
}

void Emitter::execute(const Expr& expr, const Variable* into) {
  switch (expr.kind) {
  case ExprKind::Block: {
    Scope scope(*this);
    return emitSequence(llvm::SmallVector<const Expr*>(expr.args.begin(), expr.args.end()), into);
  }
  case ExprKind::If: return emitIfExpr(expr, into, {}, nullptr);
  case ExprKind::While: return emitWhileExpr(expr);
  case ExprKind::Loop: {
    const Variable* value = into ? facts_.flags(&expr).value : nullptr;
    if (value)
      declare(value);
    emitWhileExpr(expr);
    if (value) {
      const Slot result = variables_[value];
      variables_[into] = result;
    }
    return;
  }
  case ExprKind::For: return emitForExpr(expr);
  case ExprKind::Inline: return emitInline(expr, into);
  case ExprKind::Let: return emitLet(expr);
  case ExprKind::Assign: return emitAssign(expr);
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return: return emitJump(expr);
  default: {
    Flat value = evalNode(expr);
    if (into)
      give(expr, into, std::move(value));
  }
  }
}

/// Statements that need block level somewhere inside. Those that only contain such statements do not end the open region themselves.
void Emitter::executeBlockLevel(const Expr& expr, const Variable* into) {
  switch (expr.kind) {
  case ExprKind::Block:
  case ExprKind::Inline:
  case ExprKind::Let:
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return: return execute(expr, into);
  case ExprKind::If:
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::For:
    closeRegion();
    if (expr.kind == ExprKind::Loop && into)
      VORTEX_CHECK(facts_.flags(&expr).value, "a loop without value is used as one");
    return execute(expr, into);
  default: break;
  }
  bool shortCircuits = expr.kind == ExprKind::Binary && !isTileType(expr.type) &&
                       (expr.binaryOp == lang::BinaryOp::And || expr.binaryOp == lang::BinaryOp::Or);
  if (shortCircuits) {
    closeRegion();
    return execute(expr, into);
  }
  Flat value = evalBlockLevel(expr);
  if (into)
    give(expr, into, std::move(value));
}

/// Branches and jumps give a reference no value of their own: which one the running kernel takes would be forgotten.
void Emitter::give(const Expr& expr, const Variable* into, Flat value) {
  const Slot& known = variables_[into];
  const bool isReference = into->type->kind == lang::TypeKind::Ref || namesMemory(into);
  const bool isBound = known.ref || llvm::any_of(known.leaves, [](Value leaf) { return bool(leaf); });
  const bool isJump = value.leaves.empty() && !value.ref;
  if (isReference && isBound && !isJump &&
      (known.leaves != value.leaves || !isOnePlace(known.ref.get(), value.ref.get())))
    unsupported(expr, kChosenReference);
  else
    assign(loc(expr), into, std::move(value));
}

void Emitter::emitSequence(llvm::ArrayRef<const Expr*> statements, const Variable* into) {
  for (size_t i = 0; i < statements.size(); ++i) {
    const Expr& statement = *statements[i];
    bool last = i + 1 == statements.size();
    llvm::ArrayRef<const Variable*> escapes = facts_.escapes(statement);
    if (last || escapes.empty()) {
      evaluate(statement, last ? into : nullptr);
      continue;
    }
    if (BodyFacts::alwaysJumps(statement))
      return evaluate(statement, nullptr);
    llvm::ArrayRef<const Expr*> rest = statements.drop_front(i + 1);
    bool divergent = llvm::any_of(escapes, [&](const Variable* flag) { return facts_.isDivergent(flag); });
    if (atBlockLevel() && divergent && !facts_.hasBlock(statements.drop_front(i))) {
      VariableSet assigned = assignedIn(statements.drop_front(i));
      if (into)
        assigned.insert(into);
      return inRegion(loc(statement), assigned, [&] { emitSequence(statements.drop_front(i), into); });
    }
    bool thenJumps = statement.kind == ExprKind::If && BodyFacts::alwaysJumps(*statement.args[1]);
    bool uniformChoice = !atBlockLevel() || facts_.grade(*statement.args[0]) != Grade::Thread;
    if (thenJumps && uniformChoice && !(atBlockLevel() && divergent))
      return emitIfExpr(statement, nullptr, rest, into);
    llvm::SmallVector<const Variable*> flags(escapes.begin(), escapes.end());
    evaluate(statement, nullptr);
    return emitGuarded(loc(*rest.front()), flags, rest, into);
  }
}

void Emitter::emitGuarded(Location loc, llvm::ArrayRef<const Variable*> flags, llvm::ArrayRef<const Expr*> rest,
                          const Variable* into) {
  VariableSet assigned = assignedIn(rest);
  if (into)
    assigned.insert(into);
  if (!atBlockLevel())
    return emitIf(loc, noneSet(loc, flags), assigned, [&] { emitSequence(rest, into); }, [] {});
  llvm::SmallVector<const Variable*> divergent, uniform;
  for (const Variable* flag : flags)
    (facts_.isDivergent(flag) ? divergent : uniform).push_back(flag);
  if (!divergent.empty() && !facts_.hasBlock(rest))
    return inRegion(loc, assigned, [&] { emitGuarded(loc, flags, rest, into); });
  auto guarded = [&] {
    size_t before = predicates_.size();
    predicates_.append(divergent.begin(), divergent.end());
    emitSequence(rest, into);
    predicates_.truncate(before);
  };
  if (uniform.empty())
    return guarded();
  closeRegion();
  emitIf(loc, noneSet(loc, uniform), assigned, guarded, [] {});
}

//===-- declarations ----------------------------------------------------------------------------------------------===//

void Emitter::emitLet(const Expr& expr) {
  const Variable* variable = expr.variable;
  lang::Type type = variable->type;
  if (type->isTensor())
    return emitLetTensor(expr);
  if (type->kind == lang::TypeKind::Ref)
    return assign(loc(expr), variable, eval(*expr.args[0]));
  declare(variable);
  if (!isMemoryArray(type))
    return expr.args.empty() ? void() : evaluate(*expr.args[0], variable);
  meetBefore(expr);
  variables_[variable].leaves = allocate(loc(expr), type, variable->name).leaves;
  variables_[variable].inRegion = false;
  if (!expr.args.empty())
    emitArrayOfTensors(expr);
}

/// The barrier before a shared tensor that takes bytes of others.
void Emitter::meetBefore(const Expr& let) {
  if (!let.isAfterBarrier || !context_.hasThreads)
    return;
  closeRegion();
  b_.create<ir::BarrierOp>(loc(let));
}

void Emitter::emitLetTensor(const Expr& expr) {
  const Variable* variable = expr.variable;
  const Expr* value = expr.args.empty() ? nullptr : expr.args[0];
  if (variables_.count(variable))
    return beginStorage(expr);
  if (!namesMemory(variable)) {
    declare(variable);
    if (!value)
      return;
    if (atBlockLevel())
      closeRegion();
    Flat tiles = evalTiles(*value);
    bindDims(expr, tiles.leaves[0]);
    return assign(loc(expr), variable, std::move(tiles));
  }
  if (value && !value->type->isValue) {  // another name for memory: a parameter or a slice
    Flat view = eval(*value);
    bindDims(expr, view.leaves[0]);
    return assign(loc(expr), variable, std::move(view));
  }
  variables_[variable] = {};
  meetBefore(expr);
  llvm::SmallVector<Value, 1> views = allocate(loc(expr), variable->type, variable->name).leaves;
  variables_[variable].leaves = views;
  if (!value)
    return;
  bool zeros = value->kind == ExprKind::Builtin && value->builtin == lang::Builtin::Zeros;
  bool full = value->kind == ExprKind::Builtin && value->builtin == lang::Builtin::Full;
  const Expr* scalar = full                                                                      ? value->args.front()
                       : value->kind == ExprKind::Broadcast && !value->args[0]->type->isTensor() ? value->args[0]
                                                                                                 : nullptr;
  if (!zeros && !scalar)
    return emitInitialTile(expr, views);
  bool shared = variable->type->space == lang::Space::Shared;
  if (!context_.hasThreads) {
    for (auto [tile, view] : llvm::zip(evalTiles(*value).leaves, views))
      storeTile(loc(expr), tile, view);
    return;
  }
  auto doFill = [&] {
    Flat element = scalar ? eval(*scalar) : Flat();
    for (auto [plane, view] : llvm::enumerate(views))
      fill(loc(expr), view,
           scalar ? element.leaves[plane]
                  : math_.zero(loc(expr), llvm::cast<ir::ViewType>(view.getType()).getElementType()));
  };
  if (!atBlockLevel())
    return doFill();
  inRegion(loc(expr), {}, doFill);
  if (!shared)
    return;
  closeRegion();
  b_.create<ir::BarrierOp>(loc(expr));
}

/// The initial values of an array of tensors in memory: of each thread's own filled ones, or of shared tiles.
void Emitter::emitArrayOfTensors(const Expr& let) {
  Location at = loc(let);
  const Expr& list = *let.args[0];
  lang::Type array = let.variable->type;
  bool isList = list.kind == ExprKind::MakeArray || list.kind == ExprKind::RepeatArray;
  bool shared = array->elem->space == lang::Space::Shared;
  if (!isList) {
    unsupported(list, "an array of tensors in memory initialised with anything but a list of tensors");
    return;
  }
  llvm::SmallVector<Value, 1> all = variables_[let.variable].leaves;
  auto windowsOn = [&](uint64_t number) {
    llvm::SmallVector<Value> windows;
    for (Value source : all) {
      ir::ViewType type = types_.view(array->elem, llvm::cast<ir::ViewType>(source.getType()).getElementType());
      llvm::SmallVector<Value> offsets(type.getRank() + 1, math_.index(at, 0));
      offsets[0] = math_.index(at, number);
      windows.push_back(
          b_.create<ir::SubviewOp>(at, type, source, offsets, mlir::ValueRange(), llvm::ArrayRef<int64_t>{0}));
    }
    return windows;
  };
  for (uint64_t i = 0; i < array->count; ++i) {
    const Expr& value = *list.args[list.kind == ExprKind::MakeArray ? i : 0];
    if (shared || !context_.hasThreads) {
      if (atBlockLevel())
        closeRegion();
      Flat tiles = evalTiles(value);
      for (auto [tile, window] : llvm::zip(tiles.leaves, windowsOn(i)))
        storeTile(at, tile, window);
      continue;
    }
    bool zeros = value.kind == ExprKind::Builtin && value.builtin == lang::Builtin::Zeros;
    bool full = value.kind == ExprKind::Builtin && value.builtin == lang::Builtin::Full;
    if (!zeros && !full) {
      unsupported(value, "an array of each thread initialised with anything but zeros() or full()");
      return;
    }
    auto doFill = [&] {
      Flat element = full ? eval(*value.args[0]) : Flat();
      for (auto [plane, window] : llvm::enumerate(windowsOn(i)))
        fill(at, window,
             full ? element.leaves[plane]
                  : math_.zero(at, llvm::cast<ir::ViewType>(window.getType()).getElementType()));
    };
    atBlockLevel() ? inRegion(at, {}, doFill) : doFill();
  }
  if (shared && context_.hasThreads)
    b_.create<ir::BarrierOp>(at);
}

/// A shared tensor that starts as a tile, or as a staged slice.
void Emitter::emitInitialTile(const Expr& let, llvm::ArrayRef<Value> views) {
  const Expr& value = *let.args[0];
  if (let.variable->type->space != lang::Space::Shared || inThreads_) {
    unsupported(value, "an array of each thread initialised with anything but zeros() or full()");
    return;
  }
  closeRegion();
  if (value.kind == ExprKind::Builtin && value.builtin == lang::Builtin::Stage)
    return emitStage(value, views);
  for (auto [tile, view] : llvm::zip(evalTiles(value).leaves, views))
    storeTile(loc(let), tile, view);
  if (context_.hasThreads)
    b_.create<ir::BarrierOp>(loc(let));
}

/// Some statement relies on how shared tensors are laid out.
static bool verifiesBanks(const Expr& expr) {
  return expr.verifyBanks.isValid() ||
         llvm::any_of(expr.args, [](const Expr* arg) { return arg && verifiesBanks(*arg); });
}

Flat Emitter::allocate(Location loc, lang::Type type, llvm::StringRef name) {
  llvm::SmallVector<mlir::Type> planes;
  types_.flatten(type, planes);
  if (!llvm::cast<ir::ViewType>(planes[0]).hasStaticShape()) {
    context_.failed = true;
    mlir::emitError(loc) << "the shape of `" << name << "` must be known when the kernel is compiled";
  }
  mlir::OpBuilder::InsertionGuard guard(b_);
  if (inThreads_)
    b_.setInsertionPoint(region_->op);
  lang::ElementLayout layout = lang::elementLayout((type->isTensor() ? type : type->elem)->elem);
  mlir::StringAttr spelled = b_.getStringAttr(lang::text(type, context_.function.dimNames()));
  const bool isVerified = context_.function.kernel->verifyBanks.isValid() || verifiesBanks(*context_.function.body);
  Flat views;
  for (auto [plane, leaf] : llvm::zip(planes, layout.leaves)) {
    auto alloc = b_.create<ir::AllocOp>(loc, llvm::cast<ir::ViewType>(plane), b_.getStringAttr(name + leaf.path));
    alloc->setAttr("vx.type", spelled);
    if (isVerified)
      alloc->setAttr("vx.fixed_layout", b_.getUnitAttr());
    views.leaves.push_back(alloc);
  }
  return views;
}

/// Shared memory: the threads of the block take turns; local memory: every thread fills its own.
void Emitter::fill(Location loc, Value view, Value scalar) {
  auto type = llvm::cast<ir::ViewType>(view.getType());
  int64_t count = 1;
  for (int64_t extent : type.getShape())
    count *= extent;
  bool shared = type.getSpace() == ir::Space::Shared;
  Value zero = math_.index(loc, 0), one = math_.index(loc, 1), upper = math_.index(loc, count);
  Value step = one;
  if (shared && inThreads_) {
    step = b_.create<mlir::arith::MulIOp>(loc, blockExtent(0), blockExtent(1));
    step = b_.create<mlir::arith::MulIOp>(loc, step, blockExtent(2));
  }
  emitFor(loc, shared && inThreads_ ? linearId() : zero, upper, step, {}, [&](Value position) {
    llvm::SmallVector<Value> indices(type.getRank());
    for (int64_t dim = type.getRank(); dim-- > 0;) {
      if (dim == 0) {
        indices[0] = position;
        break;
      }
      Value extent = math_.index(loc, type.getShape()[dim]);
      indices[dim] = b_.create<mlir::arith::RemUIOp>(loc, position, extent);
      position = b_.create<mlir::arith::DivUIOp>(loc, position, extent);
    }
    b_.create<ir::StoreOp>(loc, scalar, view, indices, Value(), false);
    noteWrite(view);
  });
}

//===-- assignments -----------------------------------------------------------------------------------------------===//

void Emitter::emitAssign(const Expr& expr) {
  const Expr &target = *expr.args[0], &value = *expr.args[1];
  if (target.kind == ExprKind::Slice || (target.type && stripRef(target.type)->isTensor()))
    return emitAssignTile(expr);
  Location at = loc(expr);
  if (!expr.hasOp) {  // the value first, then the place: as the checks and host code do
    Flat flat = eval(value);
    return store(at, place(target), std::move(flat));
  }
  Value operand = evalScalar(value);
  Place destination = place(target);
  bool isShift = expr.binaryOp == lang::BinaryOp::Shl || expr.binaryOp == lang::BinaryOp::Shr;
  if (isShift)  // the count keeps its own type
    operand = math_.cast(at, operand, scalarOf(value.type), scalarOf(target.type));
  Value old = scalarOrFail(at, load(at, destination));
  store(at, destination, userBinary(expr, expr.binaryOp, scalarOf(target.type), old, operand));
}

void Emitter::emitAssignTile(const Expr& expr) {
  const Expr &target = *expr.args[0], &value = *expr.args[1];
  Location at = loc(expr);
  if (lang::isStructTensor(stripRef(target.type)))
    return emitAssignStructs(expr);
  lang::Scalar kind = wideScalar(scalarOf(target.type));
  auto updated = [&](llvm::function_ref<Value()> old) -> Value {
    if (!expr.hasOp)
      return evalTile(value);
    const Expr* product = &value;  // `(a @ b) as f32` of f32 rounds nothing
    while (product->kind == ExprKind::Cast && scalarOf(product->type) == wideScalar(scalarOf(product->args[0]->type)) &&
           scalarOf(product->type) == scalarOf(product->args[0]->type))
      product = product->args[0];
    if (product->kind == ExprKind::Dot && expr.binaryOp == lang::BinaryOp::Add)
      return evalDot(*product, old());
    Value before = wideTile(at, old(), scalarOf(target.type));
    Value operand = evalTile(value);
    if (!llvm::isa<mlir::RankedTensorType>(operand.getType()))
      operand = broadcastScalar(at, operand, target.type);
    operand = adaptTile(at, operand, llvm::cast<mlir::RankedTensorType>(before.getType()));
    return userBinary(expr, expr.binaryOp, kind, before, operand);
  };
  if (value.kind == ExprKind::Builtin && value.builtin == lang::Builtin::Stage)
    return emitStage(value, evalView(target));
  if (target.kind == ExprKind::Slice && !lang::isFieldOfElements(target))
    return storeSlice(target, updated([&] { return loadSlice(target); }), kind);
  if (target.kind == ExprKind::Var && !namesMemory(target.variable))
    return assign(at, target.variable, updated([&] { return read(at, target.variable).leaves[0]; }));
  if (isTileType(target.type)) {  // through a reference
    Place destination = place(target);
    return store(at, destination, updated([&] { return load(at, destination).leaves[0]; }));
  }
  Value view = evalView(target);
  storeTile(at, updated([&] { return loadTile(at, view, target.type); }), view);
}

/// A tensor of structs, plane by plane.
void Emitter::emitAssignStructs(const Expr& expr) {
  const Expr &target = *expr.args[0], &value = *expr.args[1];
  Location at = loc(expr);
  if (value.kind == ExprKind::Builtin && value.builtin == lang::Builtin::Stage)
    return emitStage(value, evalViews(target));
  Flat tiles = evalTiles(value);
  if (!isTileType(target.type)) {
    for (auto [tile, view] : llvm::zip(tiles.leaves, evalViews(target)))
      storeTile(at, tile, view);
    return;
  }
  Place destination = place(target);
  store(at, destination, std::move(tiles));
}

//===-- calls and jumps -------------------------------------------------------------------------------------------===//

void Emitter::emitInline(const Expr& expr, const Variable* into) {
  Scope scope(*this);
  const JumpFlags& flags = facts_.flags(&expr);
  const Variable* value = into ? flags.value : nullptr;
  for (const Expr* parameter : llvm::ArrayRef(expr.args).drop_back())
    evaluate(*parameter, nullptr);
  if (expr.function && context_.functions.contains(expr.function))
    return emitCall(expr, into);
  const Expr& body = *expr.args.back();
  if (!flags.returned)
    return evaluate(body, into);
  declare(flags.returned);
  setFlag(loc(expr), flags.returned, false);
  if (flags.value)
    declare(flags.value);
  evaluate(body, value);
  if (!into)
    return;
  Slot result = variables_[value];
  variables_[into] = result;  // as it stands: also a value inside the open region
}

void Emitter::emitJump(const Expr& expr) {
  const JumpFlags& flags = facts_.flags(facts_.target(expr));
  bool fromKernel = expr.kind == ExprKind::Return && !facts_.target(expr);
  const Variable* flag = expr.kind == ExprKind::Break      ? flags.broke
                         : expr.kind == ExprKind::Continue ? flags.continued
                                                           : flags.returned;
  if (fromKernel)
    emitKernelReturn(expr);
  else if (!expr.args.empty() && flags.value && variables_.count(flags.value))
    evaluate(*expr.args[0], flags.value);
  else if (!expr.args.empty())
    evaluate(*expr.args[0], nullptr);
  if (variables_.count(flag))
    setFlag(loc(expr), flag, true);
}

}  // namespace vortex::irgen
