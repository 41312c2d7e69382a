// Variables: which are values and which are places, and how they begin.
#include "lang/flow/graph/lower.h"
#include "lang/sema/children.h"
#include "lang/sema/element.h"

namespace vortex::lang::flow {

/// More scalars than this stay together in a place.
constexpr size_t kMostLeaves = 64;

//===-- before the walk -------------------------------------------------------------------------------------------===//

namespace {

class UseFinder {
public:
  explicit UseFinder(VariableUses& out) : out_(out) {}

  void visit(const Expr& expr) {
    const bool isLoop = expr.kind == ExprKind::While || expr.kind == ExprKind::Loop || expr.kind == ExprKind::For;
    if (isLoop)
      loops_.push_back(&expr);
    if (expr.kind == ExprKind::Assign)
      assign(asAssign(expr));
    if (expr.kind == ExprKind::Let && asLet(expr).value)
      let(*expr.variable, *asLet(expr).value);
    if (expr.kind == ExprKind::Ref && expr.type->isMutable && &expr != named_)
      if (const Variable* variable = ownedBy(operandOf(expr)))
        out_.lentMutably.insert(variable);
    forEachChild(expr, [&](const Expr& child) { visit(child); });
    if (isLoop)
      loops_.pop_back();
  }

private:
  /// The variable whose own value the place is a part of; null behind references that are not known and for elements of tensors.
  const Variable* ownedBy(const Expr& place) const {
    switch (place.kind) {
    case ExprKind::Var: return place.variable;
    case ExprKind::Field: return ownedBy(asField(place).base);
    case ExprKind::Element: {
      const Expr& base = asElement(place).base;
      return base.type->kind == TypeKind::Array || base.type->kind == TypeKind::Vec ? ownedBy(base) : nullptr;
    }
    case ExprKind::Deref: {
      const Expr& reference = operandOf(place);
      if (reference.kind == ExprKind::Ref)
        return ownedBy(operandOf(reference));
      auto known = reference.kind == ExprKind::Var ? referred_.find(reference.variable) : referred_.end();
      return known == referred_.end() ? nullptr : known->second;
    }
    default: return nullptr;
    }
  }

  /// `let p = &mut x`, or a parameter of an inlined call: another name for x, which stays a value.
  void let(const Variable& variable, const Expr& value) {
    bind(variable, value);
    if (variable.isVar || variable.type->kind != TypeKind::Ref)
      return;
    const Variable* owner = nullptr;
    if (value.kind == ExprKind::Ref)
      owner = ownedBy(operandOf(value));
    else if (auto known = value.kind == ExprKind::Var ? referred_.find(value.variable) : referred_.end();
             known != referred_.end())
      owner = known->second;
    if (!owner)
      return;
    referred_[&variable] = owner;
    if (value.kind == ExprKind::Ref)
      named_ = &value;
  }

  void assign(const AssignParts& parts) {
    const Variable* variable = ownedBy(parts.place);
    if (!variable || variable->type->isTensor())  // a view stays what it is: its elements are assigned
      return;
    for (const Expr* loop : loops_)
      if (assigned_.insert({loop, variable}).second)
        out_.assignedIn[loop].push_back(variable);
    bind(*variable, parts.value);
  }
  void bind(const Variable& variable, const Expr& value) {
    if (variable.type->kind != TypeKind::Scalar)
      out_.referencesTo[&variable].push_back(&value);
  }

  VariableUses& out_;
  std::vector<const Expr*> loops_;
  std::set<std::pair<const Expr*, const Variable*>> assigned_;
  std::unordered_map<const Variable*, const Variable*> referred_;  ///< by references that are never bound anew
  const Expr* named_ = nullptr;                                    ///< the `&mut` of the last such binding
};

}  // namespace

VariableUses findVariableUses(const Expr& body) {
  VariableUses out;
  UseFinder(out).visit(body);
  return out;
}

bool Leaves::collect(Type type, std::vector<Leaf>& out) {
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum: out.push_back({machineType(type), false}); break;
  case TypeKind::Ref: out.push_back({{}, true}); break;
  case TypeKind::Tensor:
    if (type->isValue)
      return false;
    out.push_back({{}, true});
    break;
  case TypeKind::Range:
    for (int i = 0; i < 3; ++i)
      out.push_back({machineType(type->elem), false});
    break;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (Type each : type->elems)
      if (!collect(each, out))
        return false;
    break;
  case TypeKind::Array:
  case TypeKind::Vec: return false;
  default: break;
  }
  return out.size() <= kMostLeaves;
}

const std::vector<Leaves::Leaf>* Leaves::of(Type type) {
  auto [found, isNew] = known_.try_emplace(type);
  if (isNew) {
    std::vector<Leaf> leaves;
    if (collect(type, leaves))
      found->second = std::move(leaves);
  }
  return found->second ? &*found->second : nullptr;
}

uint32_t Leaves::before(Type type, uint32_t field) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < field; ++i)
    out += count(type->kind == TypeKind::Range ? type->elem : type->elems[i]);
  return out;
}

//===-- declarations ----------------------------------------------------------------------------------------------===//

LocalId Lowering::newLocal(Type type, source::SourceRange range, const Variable* variable, Storage storage) {
  Local local;
  local.variable = variable;
  local.type = type;
  local.range = range;
  local.storage = storage;
  local.loop = b_.loop();
  local.frame = b_.frame;
  if (!graph_.isKernel) {
    local.isView = variable && views_.views.contains(variable);
    local.holdsBorrows = local.isView || mayHoldBorrows(type) || (!variable && type->kind != TypeKind::Scalar);
    local.closure = closures_;
  }
  graph_.locals.push_back(local);
  slots_.emplace_back();
  return LocalId{static_cast<uint32_t>(graph_.locals.size() - 1)};
}

const Lowering::Holder& Lowering::declare(const Variable& variable, bool isAlias) {
  Holder holder;
  holder.type = variable.type;
  const Storage storage = variable.isResultStorage && !isAlias ? Storage::Result : storageOf(variable.type);
  holder.local = newLocal(variable.type, variable.range, &variable, storage);
  const bool ownsMemory = variable.type->isTensor() && !isAlias;
  const bool isUnknown = !graph_.isKernel && (variable.isVar || graph_[holder.local].isView);
  const bool isPlace = ownsMemory || isUnknown || uses_.lentMutably.contains(&variable);
  if (const auto* leaves = isPlace ? nullptr : leaves_.of(variable.type)) {
    for (const Leaves::Leaf& leaf : *leaves) {
      const SlotId slot = leaf.isAlias ? b_.newAliasSlot() : b_.newSlot(leaf.type);
      if (!holder.slot)
        holder.slot = slot;
    }
    if (!holder.slot)
      holder.slot = 0;
    slots_[indexOf(holder.local)] = holder.slot;
  }
  return holders_[&variable] = holder;
}

const Lowering::Holder& Lowering::holderOf(const Variable& variable) {
  auto found = holders_.find(&variable);
  return found != holders_.end() ? found->second : declare(variable, false);
}

/// What holds the value of a construct until it is used.
Lowering::Holder Lowering::temporary(Type type, const Expr& at) {
  Holder holder;
  holder.type = type;
  if (!graph_.isKernel)
    holder.local = newLocal(type, at.range, nullptr, storageOf(type));
  if (const auto* leaves = leaves_.of(type)) {
    holder.slot = 0;
    bool isFirst = true;
    for (const Leaves::Leaf& leaf : *leaves) {
      const SlotId slot = leaf.isAlias ? b_.newAliasSlot() : b_.newSlot(leaf.type);
      if (isFirst)
        holder.slot = slot;
      isFirst = false;
    }
    return holder;
  }
  if (graph_.isKernel) {
    holder.local = newLocal(type, at.range, nullptr, storageOf(type));
    temporaries_[holder.local] = &at;
    begin(holder.local, at, StepKind::Declare);
  }
  return holder;
}

void Lowering::begin(LocalId local, const Expr& at, StepKind kind) {
  if (!isReachable())
    return;
  b_.emit(StepKind::Declare, &at).place = b_.root(local);
  if (kind == StepKind::Empty)
    b_.emit(StepKind::Empty, &at).place = b_.root(local);
  if (!scopes_.empty())
    scopes_.back().push_back(local);
}

Lowering::Operand Lowering::read(const Holder& holder) {
  Operand out;
  if (holder.slot)
    out = readSlots(*holder.slot, holder.type);
  else
    out.place = b_.root(holder.local);
  if (!graph_.isKernel && graph_[holder.local].holdsBorrows)
    out.holds = holder.local;
  return out;
}

/// Evaluates the expression and leaves its value in the holder.
void Lowering::put(const Holder& holder, const Expr& expr) {
  if (holder.slot || !graph_.isKernel) {
    const Operand operand = value(expr, holder.purpose);
    if (holder.slot && isReachable())
      writeSlots(*holder.slot, holder.type, operand);
    if (!graph_.isKernel && graph_[holder.local].holdsBorrows)
      flow(holder.local, {&operand.holds, 1}, expr);
    return;
  }
  const PlaceId to = b_.root(holder.local);
  if (isTile(holder.type))
    return tileInto(expr, to, expr, nullptr);
  if (holder.type->kind == TypeKind::Array)
    return fillArray(to, holder.type, expr);
  const Operand operand = value(expr);
  if (isReachable())
    store(to, holder.type, operand, expr, nullptr);
}

//===-- let -------------------------------------------------------------------------------------------------------===//

void Lowering::let(const Expr& expr) {
  if (!graph_.isKernel)
    return writtenLet(expr);
  const auto [variable, init] = asLet(expr);
  if (variable->type->isTensor())
    return letTensor(expr);
  if (variable->type->kind == TypeKind::Array)
    return letArray(expr);
  if (init && leaves_.of(variable->type) && !uses_.lentMutably.contains(variable)) {
    const Operand operand = value(*init);
    const Holder& holder = declare(*variable, true);
    if (isReachable())
      writeSlots(*holder.slot, holder.type, operand);
    return;
  }
  const Operand operand = init ? value(*init) : Operand();
  const Holder holder = declare(*variable, false);
  if (holder.slot || !isReachable())
    return;
  begin(holder.local, expr, init ? StepKind::Declare : StepKind::Empty);
  if (init)
    store(b_.root(holder.local), holder.type, operand, expr, nullptr);
}

static bool isFill(const Expr& value) {
  return value.kind == ExprKind::Builtin && (value.builtin == Builtin::Zeros || value.builtin == Builtin::Full);
}

void Lowering::letTensor(const Expr& expr) {
  const auto [variable, init] = asLet(expr);
  if (init && isMemory(variable->type) && isMemory(stripRef(init->type)) &&
      !variable->isStoredValue) {  // another name for memory
    const Operand operand = value(*init);
    const Holder& holder = declare(*variable, true);
    if (!isReachable())
      return;
    writeSlots(*holder.slot, holder.type, operand);
    return bindDimensions(expr);
  }
  const Holder holder = declare(*variable, false);
  if (!isReachable())
    return;
  begin(holder.local, expr, init ? StepKind::Declare : StepKind::Empty);
  const PlaceId to = b_.root(holder.local);
  if (!init)
    return;
  if (variable->isResultStorage && isFill(*init) && init->builtin == Builtin::Zeros)
    graph_[StepId{indexOf(b_.nextStep()) - 1}].index = kBeginsAsZeros;
  else if (graph_[holder.local].storage == Storage::Local && isFill(*init))
    fillArray(to, variable->type, *init);
  else if (init->kind == ExprKind::Builtin && init->builtin == Builtin::Stage)
    stageInto(*init, to, nullptr);
  else
    tileInto(*init, to, expr, nullptr);
  endAtBarrier(holder.local);
  bindDimensions(expr);
}

void Lowering::letArray(const Expr& expr) {
  const auto [variable, init] = asLet(expr);
  const Holder holder = declare(*variable, false);
  if (!isReachable())
    return;
  begin(holder.local, expr, init ? StepKind::Declare : StepKind::Empty);
  if (init)
    fillArray(b_.root(holder.local), variable->type, *init);
  endAtBarrier(holder.local);
}

/// The block gives shared tensors their first values together, and waits; copies are waited for where they are read.
void Lowering::endAtBarrier(LocalId local) {
  if (!isReachable() || graph_[local].storage != Storage::Shared)
    return;
  Step& last = graph_[StepId{indexOf(b_.nextStep()) - 1}];
  if ((last.kind == StepKind::Tile || last.kind == StepKind::Store) && graph_[last.place].root == local)
    last.index = kBeforeBarrier;
}

/// Stores the values of an array, or of one value everywhere.
void Lowering::fillArray(PlaceId to, Type type, const Expr& expr) {
  if (expr.kind == ExprKind::MakeArray && type->kind == TypeKind::Array) {
    for (size_t i = 0; i < expr.args.size(); ++i) {
      const Projection slot{.kind = ProjectionKind::Slot, .index = values().constant(kUsize, static_cast<__int128>(i))};
      const PlaceId at = b_.extend(to, slot, type->elem);
      fillArray(at, type->elem, *expr.args[i]);
    }
    return;
  }
  if (expr.kind == ExprKind::RepeatArray && type->kind == TypeKind::Array)
    return fillArray(to, type->elem, repeatedOf(expr));
  if (isFill(expr) && isMemory(type)) {
    const Type scalarType = type->elem;
    const ValueId filled = expr.builtin == Builtin::Full && !expr.args.empty() ? scalar(subjectOf(expr))
                           : scalarType->kind == TypeKind::Scalar && isFloat(scalarType->scalar)
                               ? b_.undefined(machineType(scalarType))
                               : values().constant(machineType(scalarType), 0);
    if (isReachable())
      storeScalar(to, filled, expr, nullptr);
    return;
  }
  if (type->isTensor())
    return tileInto(expr, to, expr, nullptr);
  const Operand operand = value(expr);
  if (isReachable())
    store(to, type, operand, expr, nullptr);
}

//===-- parameters ------------------------------------------------------------------------------------------------===//

/// A parameter's scalars are Arguments; what it refers to is a place of its own.
Lowering::Operand Lowering::parameter(const Variable& variable, LocalId local, Type type, PlaceId place,
                                      uint32_t& leaf) {
  Operand out;
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum:
    graph_.arguments.push_back({&variable, leaf++});
    out.value = values().argument(static_cast<uint32_t>(graph_.arguments.size() - 1), machineType(type));
    return out;
  case TypeKind::Range:
    for (int i = 0; i < 3; ++i)
      out.parts.push_back(parameter(variable, local, type->elem, place, leaf));
    return out;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (uint32_t i = 0; i < type->elems.size(); ++i) {
      const PlaceId part = b_.extend(place, {.kind = ProjectionKind::Field, .field = i}, stripRef(type->elems[i]));
      out.parts.push_back(parameter(variable, local, type->elems[i], part, leaf));
    }
    return out;
  default: out.place = place; return out;
  }
}

void Lowering::lowerParams() {
  for (const Variable* variable : function_.params) {
    const Type pointee = stripRef(variable->type);
    const bool isValueReference = variable->type->kind == TypeKind::Ref && leaves_.of(pointee) &&
                                  !pointee->isTensor() && !variable->type->isMutable;
    uint32_t leaf = 0;
    // A reference to scalars is the scalars: what it refers to is a local of its own.
    const Holder holder = declare(*variable, true);
    graph_.params.push_back(holder.local);
    graph_.locals[indexOf(holder.local)].type = pointee;
    if (!holder.slot)
      continue;
    const PlaceId place = b_.root(holder.local);
    if (isValueReference) {
      Holder referred = temporary(pointee, *function_.body);
      slots_[indexOf(holder.local)] = referred.slot;
      writeSlots(*referred.slot, pointee, parameter(*variable, holder.local, pointee, place, leaf));
      b_.writeAlias(*holder.slot, place);
      continue;
    }
    if (variable->type->kind == TypeKind::Ref)
      slots_[indexOf(holder.local)].reset();  // the local is what the reference leads to
    writeSlots(*holder.slot, variable->type, parameter(*variable, holder.local, variable->type, place, leaf));
  }
}

}  // namespace vortex::lang::flow
