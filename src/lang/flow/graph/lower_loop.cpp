// Loops.
#include "lang/flow/graph/lower.h"

namespace vortex::lang::flow {

/// Slots that the loop writes, of variables that exist before it.
std::vector<SlotId> Lowering::assignedSlots(const Expr& loop) {
  std::vector<SlotId> out;
  auto assigned = uses_.assignedIn.find(&loop);
  if (assigned == uses_.assignedIn.end())
    return out;
  for (const Variable* variable : assigned->second) {
    auto holder = holders_.find(variable);
    if (holder == holders_.end() || !holder->second.slot)
      continue;
    for (uint32_t i = 0; i < leaves_.count(holder->second.type); ++i)
      out.push_back(*holder->second.slot + i);
  }
  widenAliases(loop);
  return out;
}

/// A reference that the loop binds anew may name at its header whatever it is ever bound to.
void Lowering::widenAliases(const Expr& loop) {
  for (const Variable* variable : uses_.assignedIn.at(&loop)) {
    auto holder = holders_.find(variable);
    if (holder == holders_.end() || !holder->second.slot)
      continue;
    Referents found;
    for (uint32_t i = 0; i < leaves_.count(holder->second.type); ++i) {
      const SlotId slot = *holder->second.slot + i;
      if (!b_.isAlias(slot))
        continue;
      if (found.seen.insert(variable).second)
        for (const Expr* each : uses_.referencesTo.at(variable))
          findReferents(*each, found);
      const LocalId holds = holder->second.local;
      b_.writeAlias(slot, b_.merge(b_.alias(slot), oneOf(found, stripRef(variable->type), holds)));
    }
  }
}

/// What a reference that is computed so may refer to.
void Lowering::findReferents(const Expr& expr, Referents& out) {
  switch (expr.kind) {
  case ExprKind::Var: return findReferentsOf(*expr.variable, out);
  case ExprKind::Inline:
    out.areWhole = false;
    for (const Expr* param : asInline(expr).params)
      if (const Expr* passed = asLet(*param).value)
        findReferents(*passed, out);
    return findReferents(asInline(expr).body, out);
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::DimValue: return;
  default:
    out.areWhole = out.areWhole && (expr.kind == ExprKind::Ref || expr.kind == ExprKind::Deref ||
                                    expr.kind == ExprKind::MakeArray || expr.kind == ExprKind::MakeTuple);
    for (const Expr* part : expr.args)
      if (part)
        findReferents(*part, out);
  }
}

void Lowering::findReferentsOf(const Variable& variable, Referents& out) {
  const auto holder = holders_.find(&variable);
  const bool isHeld = holder != holders_.end();
  Type held = variable.type;
  while (held->kind == TypeKind::Array)
    held = held->elem;
  const auto values = uses_.referencesTo.find(&variable);
  const bool isReference = values != uses_.referencesTo.end() && !values->second.empty();
  if (isHeld && !holder->second.slot && !(isReference && held->kind == TypeKind::Ref))
    out.locals.insert(holder->second.local);
  if (isReference) {
    if (out.seen.insert(&variable).second)
      for (const Expr* each : values->second)
        findReferents(*each, out);
    return;
  }
  if (!isHeld || !holder->second.slot)
    return;
  // A parameter or a view.
  const SlotId slot = *holder->second.slot;
  const PlaceId named = b_.isAlias(slot) ? b_.alias(slot) : kNoPlace;
  if (named == kNoPlace) {
    out.locals.insert(holder->second.local);
    return;
  }
  const Place& place = graph_[named];
  out.areWhole = out.areWhole && place.path.empty() && (place.isWhole || !place.isUnknown());
  out.locals.insert(place.roots().begin(), place.roots().end());
}

/// `holder`: of the reference, where nothing is known of it: it may then be to any memory of the kind.
PlaceId Lowering::oneOf(Referents found, Type type, LocalId holder) {
  const Storage storage = storageOf(type);
  if (found.locals.empty() && isSharedStorage(storage)) {
    found.areWhole = false;
    for (uint32_t i = 0; i < graph_.locals.size(); ++i)
      if (const Storage other = graph_.locals[i].storage;
          isSharedStorage(other) && (other == Storage::Shared) == (storage == Storage::Shared))
        found.locals.insert(LocalId{i});
  }
  if (found.locals.empty())
    found.locals.insert(holder);
  return b_.unknown({found.locals.begin(), found.locals.end()}, type, found.areWhole);
}

/// Behind the loop: its own end and `break` lead there by different blocks.
void Lowering::leaveAt(Label& exit, Label& broke, Label& after, const Expr& expr) {
  if (exit.edges.empty()) {
    b_.start(broke);
    return;
  }
  b_.start(exit);
  const BlockId before = graph_[exit.exitOf].before;
  expr.kind == ExprKind::For ? choose(asFor(expr).list, "not assigned if this is empty", before)
                             : choose(*asLoop(expr).condition, "not assigned if this is false at once", before);
  if (broke.edges.empty())
    return;
  b_.jump(after, &expr);
  b_.start(broke);
  b_.jump(after, &expr);
  b_.start(after);
}

void Lowering::loop(const Expr& expr, const Holder* into) {
  Label exit = b_.label(), broke = b_.label(), after = b_.label();
  OpenLoop open = b_.openLoop(&expr, assignedSlots(expr));
  exit.exitOf = broke.exitOf = open.loop;
  if (const Expr* decides = asLoop(expr).condition) {
    Label body = b_.label();
    condition(*decides, body, exit);
    b_.start(body);
  }
  loopBody(expr, open, broke, into, nullptr);
  leaveAt(exit, broke, after, expr);
}

void Lowering::loopBody(const Expr& expr, OpenLoop& open, Label& broke, const Holder* into, const Trips* trips) {
  Label next = b_.label();
  loops_.push_back({&next, &broke, into, scopes_.size()});
  pushScope();
  if (trips)
    bindLoopVariables(expr, open, *trips);
  execute(expr.kind == ExprKind::For ? asFor(expr).body : asLoop(expr).body, nullptr);
  popScope(expr);
  loops_.pop_back();
  if (!next.edges.empty()) {
    b_.jump(next, &expr);
    b_.start(next);
  }
  if (isReachable() && trips)
    nextTrip(*trips);
  b_.repeat(open, &expr);
  b_.closeLoop(open);
}

/// 0, 1, 2, …
ValueId Lowering::tripNumber(const Trips& trips) {
  const ValueId at = b_.value(trips.slot);
  if (trips.counter.isPosition)
    return at;
  const MachineType type = b_.type(trips.slot);
  const bool isUp = values()[trips.counter.step].constant() > 0;
  const ValueId begin = trips.counter.begin;
  const ValueId passed = values().op(Op::Sub, type, isUp ? at : begin, isUp ? begin : at);
  return values().convert(kUsize, values().convert({type.width, false}, passed));
}

void Lowering::bindLoopVariables(const Expr& expr, OpenLoop& open, const Trips& trips) {
  const auto [list, body, variable, position] = asFor(expr);
  Operand element{trips.counter.value, kNoPlace, {}};
  if (!graph_.isKernel && trips.counter.kind == Counter::Kind::Array) {
    element = undefined(variable->type);
    b_.loopOf(open).counter->value = element.value;
  }
  if (trips.array) {
    const Projection slot{.kind = ProjectionKind::Slot, .index = b_.value(trips.slot)};
    element = load(b_.extend(*trips.array, slot, variable->type), variable->type, list);
    if (element.value != kNoValue)  // else references, which are no numbers
      b_.loopOf(open).counter->value = element.value;
  }
  const Holder holder = declare(*variable, true);
  bindLoopVariable(holder, element, expr);
  if (graph_[holder.local].holdsBorrows && isReachable()) {
    const bool holdsNone = trips.held == kNoLocal || (trips.ownsElements && !mayHoldBorrows(variable->type));
    flow(holder.local, std::span(&trips.held, holdsNone ? 0 : 1), expr);
  }
  if (!position)
    return;
  const Holder counted = declare(*position, false);
  const ValueId count = values().convert(machineType(position->type), tripNumber(trips));
  bindLoopVariable(counted, Operand{count, kNoPlace, {}}, expr);
}

void Lowering::bindLoopVariable(const Holder& holder, const Operand& element, const Expr& loop) {
  if (!holder.slot || !graph_.isKernel)
    begin(holder.local, loop, StepKind::Declare);
  if (graph_.isKernel || holder.slot)
    store(b_.root(holder.local), holder.type, element, loop, nullptr);
  if (graph_[holder.local].isView)
    graph_.locals[indexOf(holder.local)].isElement = true;
}

//===-- for -------------------------------------------------------------------------------------------------------===//

void Lowering::nextTrip(const Trips& trips) {
  const MachineType type = b_.type(trips.slot);
  const ValueId step = trips.counter.isPosition ? values().constant(kUsize, 1) : trips.counter.step;
  b_.write(trips.slot, values().op(Op::Add, type, b_.value(trips.slot), step));
}

/// How often begin, begin + step, … stays before the end; 0 for a step of 0.
ValueId Lowering::tripCount(MachineType type, ValueId begin, ValueId end, ValueId step) {
  NodeTable& table = values();
  const auto wide = [&](ValueId value) { return table.convert(kUsize, value); };
  const ValueId zero = table.constant(kUsize, 0);
  const auto counted = [&](ValueId from, ValueId to, ValueId by) {
    const ValueId length = table.op(Op::Select, kUsize, table.op(Op::Lt, kBool, from, to),
                                    table.op(Op::Sub, kUsize, wide(to), wide(from)), zero);
    return table.op(Op::CeilDiv, kUsize, length, by);
  };
  const ValueId up = counted(begin, end, wide(step));
  if (!type.isSigned || (table.isConstant(step) && table[step].constant() > 0))
    return up;
  const ValueId down = counted(end, begin, table.negate(wide(step)));
  return table.op(Op::Select, kUsize, table.op(Op::Lt, kBool, table.constant(type, 0), step), up, down);
}

Lowering::Trips Lowering::rangeTrips(const Expr& list) {
  const Operand range = value(list, own(MoveReason::Binding));
  Trips out;
  out.counter.kind = Counter::Kind::Range;
  const MachineType type = machineType(stripRef(list.type)->elem);
  const auto part = [&](size_t i) {
    return i < range.parts.size() && range.parts[i].value != kNoValue ? range.parts[i].value : unknown(type);
  };
  out.counter.begin = part(0), out.counter.end = part(1), out.counter.step = part(2);
  const ValueId step = out.counter.step;
  const __int128 by = values().isConstant(step) ? values()[step].constant() : 0;
  out.counter.isPosition = by != 1 && by != -1;
  if (out.counter.isPosition)
    out.counter.trips = tripCount(type, out.counter.begin, out.counter.end, step);
  out.slot = b_.newSlot(out.counter.isPosition ? kUsize : type);
  b_.write(out.slot, out.counter.isPosition ? values().constant(kUsize, 0) : out.counter.begin);
  return out;
}

Lowering::Trips Lowering::positionTrips(uint64_t count) {
  Trips out;
  out.counter.isPosition = true;
  out.counter.trips = values().constant(kUsize, count);
  out.slot = b_.newSlot(kUsize);
  b_.write(out.slot, values().constant(kUsize, 0));
  return out;
}

/// Arithmetic progressions, doubling and halving have a formula; other lists are looked up.
ValueId Lowering::listValue(const Expr& list, ValueId position, MachineType type) {
  const std::vector<__int128>& all = list.intList;
  if (all.empty())
    return b_.undefined(type);
  const __int128 step = all.size() > 1 ? all[1] - all[0] : 0;
  bool isArithmetic = true, isDoubling = true, isHalving = true;
  for (size_t i = 1; i < all.size(); ++i) {
    isArithmetic = isArithmetic && all[i] - all[i - 1] == step;
    isDoubling = isDoubling && all[i - 1] > 0 && all[i] == 2 * all[i - 1];
    isHalving = isHalving && all[i] > 0 && all[i - 1] == 2 * all[i];
  }
  NodeTable& table = values();
  const ValueId first = table.constant(type, all[0]), at = table.convert(type, position);
  if (isArithmetic)
    return table.op(Op::Add, type, first, table.op(Op::Mul, type, at, table.constant(type, step)));
  if (isDoubling || isHalving)
    return table.op(isDoubling ? Op::Shl : Op::Shr, type, first, at);
  Step& item = b_.emit(StepKind::Item, &list);
  b_.addUses(item, {&position, 1});
  return b_.loaded(item, type);
}

/// In every iteration; what the number of iterations says of the variable only where no wrap stands in the way.
ValueId Lowering::isWithin(const Counter& counter) {
  const auto both = [&](ValueId low, ValueId middle, ValueId high, Op first, Op second) {
    return values().op(Op::And, kBool, values().op(first, kBool, low, middle),
                       values().op(second, kBool, middle, high));
  };
  const bool isConstant = values().isConstant(counter.step);
  if (!values().type(counter.step).isSigned || (isConstant && values()[counter.step].constant() > 0))
    return both(counter.begin, counter.value, counter.end, Op::Le, Op::Lt);
  return isConstant ? both(counter.end, counter.value, counter.begin, Op::Lt, Op::Le) : kNoValue;
}

/// A few integers that are written where they are walked: `for i in [t, t + 64]`.
static bool isShortList(const Expr& list) {
  constexpr size_t kMostChosen = 8;
  const Type element = list.kind == ExprKind::MakeArray ? stripRef(stripRef(list.type)->elem) : nullptr;
  return element && element->kind == TypeKind::Scalar && !isFloat(element->scalar) && !list.args.empty() &&
         list.args.size() <= kMostChosen && stripRef(list.type)->kind == TypeKind::Array;
}

ValueId Lowering::chosen(std::span<const ValueId> elements, ValueId position) {
  NodeTable& table = values();
  ValueId out = elements.back();
  for (size_t i = elements.size() - 1; i-- > 0;) {
    const ValueId isThis =
        table.op(Op::Eq, kBool, position, table.constant(table.type(position), static_cast<__int128>(i)));
    out = table.op(Op::Select, table.type(out), isThis, elements[i], out);
  }
  return out;
}

void Lowering::forLoop(const Expr& expr) {
  const auto [list, body, variable, position] = asFor(expr);
  const Type type = stripRef(list.type);
  Trips trips;
  if (!graph_.isKernel) {
    trips = listTrips(list);
  } else if (list.kind == ExprKind::IntList) {
    trips = positionTrips(list.intList.size());
    trips.counter.kind = Counter::Kind::List;
    trips.counter.list = &list;
  } else if (type->kind == TypeKind::Range) {
    trips = rangeTrips(list);
  } else if (isShortList(list)) {
    trips = positionTrips(list.args.size());
    for (const Expr* element : list.args)
      trips.elements.push_back(scalar(*element));
    trips.counter.kind = Counter::Kind::Array;
    trips.counter.list = &list;
  } else {
    const PlaceId array = materialised(list, placeOfBase(list));
    const bool isSized = type->kind == TypeKind::Array;
    trips = positionTrips(isSized ? type->count : 0);
    if (!isSized)
      trips.counter.trips = b_.undefined(kUsize);
    trips.array = array;
    trips.counter.kind = Counter::Kind::Array;
    trips.counter.list = &list;
  }
  if (!isReachable())
    return;
  Label exit = b_.label(), broke = b_.label(), after = b_.label();
  std::vector<SlotId> assigned = assignedSlots(expr);
  assigned.push_back(trips.slot);
  OpenLoop open = b_.openLoop(&expr, assigned);
  exit.exitOf = broke.exitOf = open.loop;
  if (trips.held != kNoLocal)
    keep({&trips.held, 1}, list);
  Counter& counter = trips.counter;
  counter.phi = b_.value(trips.slot);
  ValueId low = counter.phi, high = counter.isPosition ? counter.trips : counter.end;
  if (!counter.isPosition && values()[counter.step].constant() < 0)
    std::swap(low, high);
  const ValueId goesOn = values().op(Op::Lt, kBool, low, high);
  Label inside = b_.label();
  b_.branch(goesOn, inside, exit, &list);
  b_.start(inside);
  counter.value = counter.phi;
  if (!trips.elements.empty())
    counter.value = chosen(trips.elements, counter.phi);
  else if (counter.kind == Counter::Kind::List)
    counter.value = listValue(list, counter.phi, machineType(variable->type));
  else if (counter.kind == Counter::Kind::Range && counter.isPosition)
    counter.value = values().op(Op::Add, machineType(variable->type), counter.begin,
                                values().op(Op::Mul, machineType(variable->type),
                                            values().convert(machineType(variable->type), counter.phi), counter.step));
  if (counter.kind == Counter::Kind::Range && counter.isPosition)
    counter.isWithin = isWithin(counter);
  b_.loopOf(open).counter = counter;
  loopBody(expr, open, broke, nullptr, &trips);
  leaveAt(exit, broke, after, expr);
}

}  // namespace vortex::lang::flow
