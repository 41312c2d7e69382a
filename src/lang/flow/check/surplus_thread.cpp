#include "lang/flow/check/surplus_thread.h"

#include <algorithm>
#include <cmath>

#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

using Known = SurplusThread::Known;
using State = Known::State;

Known any() { return {State::Any, 0, 0}; }
Known integer(__int128 value) { return {State::Constant, value, 0}; }

bool isReal(Type type) { return type && type->kind == TypeKind::Scalar && isFloat(type->scalar); }

/// Numbers that the type holds as they are; of others nothing is known.
Known real(double value, Type type) {
  switch (type->scalar) {
  case Scalar::F32: return {State::Constant, 0, static_cast<float>(value)};
  case Scalar::F64: return {State::Constant, 0, value};
  default: return std::abs(value) <= 16 && value == static_cast<int>(value) ? Known{State::Constant, 0, value} : any();
  }
}

Known join(const Known& a, const Known& b) {
  if (a.state == State::Unreached)
    return b;
  return b.state == State::Unreached || a == b ? a : any();
}

Known compared(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Eq: return integer(a == b);
  case BinaryOp::Ne: return integer(a != b);
  case BinaryOp::Lt: return integer(a < b);
  case BinaryOp::Le: return integer(a <= b);
  case BinaryOp::Gt: return integer(a > b);
  case BinaryOp::Ge: return integer(a >= b);
  default: return any();
  }
}

Known binary(BinaryOp op, Type type, const Known& a, const Known& b) {
  if (!isReal(type) || a.state != State::Constant || b.state != State::Constant) {
    const bool isProduct = isReal(type) && (op == BinaryOp::Mul || (op == BinaryOp::Div && a.isZero()));
    return isProduct && (a.isZero() || b.isZero()) ? real(0, type) : any();
  }
  switch (op) {
  case BinaryOp::Add: return real(a.real + b.real, type);
  case BinaryOp::Sub: return real(a.real - b.real, type);
  case BinaryOp::Mul: return real(a.real * b.real, type);
  case BinaryOp::Div: return b.isZero() ? any() : real(a.real / b.real, type);
  default: return compared(op, a.real, b.real);
  }
}

/// Functions of 0: of other arguments nothing is told.
Known ofZero(Builtin builtin, Type type) {
  switch (builtin) {
  case Builtin::Exp:
  case Builtin::Cos: return real(1, type);
  case Builtin::Sqrt:
  case Builtin::Sin:
  case Builtin::Tan:
  case Builtin::Tanh:
  case Builtin::Floor:
  case Builtin::Ceil:
  case Builtin::Round:
  case Builtin::Abs:
  case Builtin::Sign: return real(0, type);
  default: return any();
  }
}

Known function(const Expr& expr, std::span<const Known> uses) {
  if (uses.empty() || !isReal(expr.type)) {
    const bool isCount = expr.kind == ExprKind::Builtin && expr.builtin == Builtin::Popcount;
    return isCount && uses.size() == 1 && uses[0].isZero() ? integer(0) : any();
  }
  switch (expr.builtin) {
  case Builtin::Select:
    if (uses.size() == 3 && uses[0].state == State::Constant)
      return uses[0].integer != 0 ? uses[1] : uses[2];
    return uses.size() == 3 ? join(uses[1], uses[2]) : any();
  case Builtin::Min:
  case Builtin::Max:
    if (uses.size() != 2 || uses[0].state != State::Constant || uses[1].state != State::Constant)
      return any();
    return real(expr.builtin == Builtin::Min ? std::min(uses[0].real, uses[1].real)
                                             : std::max(uses[0].real, uses[1].real),
                expr.type);
  case Builtin::Clamp:
    if (std::any_of(uses.begin(), uses.end(), [](const Known& each) { return each.state != State::Constant; }))
      return any();
    return uses.size() == 3 ? real(std::min(std::max(uses[0].real, uses[1].real), uses[2].real), expr.type) : any();
  case Builtin::Fma:
    if (uses.size() == 3 && (uses[0].isZero() || uses[1].isZero()))
      return uses[2];
    return any();
  default: return uses.size() == 1 && uses[0].isZero() ? ofZero(expr.builtin, expr.type) : any();
  }
}

Known cast(const Expr& expr, const Known& from) {
  const Type source = operandOf(expr).type;
  if (from.state != State::Constant)
    return any();
  if (isReal(source))
    return isReal(expr.type)           ? real(from.real, expr.type)
           : std::abs(from.real) < 256 ? integer(static_cast<int>(from.real))
                                       : any();
  return isReal(expr.type) && from.integer >= -256 && from.integer <= 256
             ? real(static_cast<double>(from.integer), expr.type)
             : any();
}

/// What a step makes of numbers that no node expresses.
Known computed(const Expr& expr, std::span<const Known> uses) {
  if (std::any_of(uses.begin(), uses.end(), [](const Known& each) { return each.state == State::Unreached; }))
    return {};
  switch (expr.kind) {
  case ExprKind::Binary:
    return uses.size() == 2 ? binary(expr.binaryOp, asBinary(expr).lhs.type, uses[0], uses[1]) : any();
  case ExprKind::Assign:
    return uses.size() == 2 ? binary(expr.binaryOp, asAssign(expr).place.type, uses[0], uses[1]) : any();
  case ExprKind::Unary:
    if (uses.size() == 1 && uses[0].state == State::Constant && isReal(expr.type))
      return real(uses[0].isZero() ? 0 : -uses[0].real, expr.type);
    return any();
  case ExprKind::Cast: return uses.size() == 1 ? cast(expr, uses[0]) : any();
  case ExprKind::Builtin: return function(expr, uses);
  default: return any();
  }
}

/// Of a warp of surplus threads alone, which all have the same.
Known ofWarp(Builtin builtin, const Known& each) {
  switch (builtin) {
  case Builtin::ShuffleXor:
  case Builtin::ShuffleUp:
  case Builtin::ShuffleDown:
  case Builtin::ShuffleIndex:
  case Builtin::WarpAny:
  case Builtin::WarpAll:
  case Builtin::WarpMax:
  case Builtin::WarpMin: return each;
  case Builtin::WarpSum:
  case Builtin::WarpBallot: return each.state == State::Unreached || each.isZero() ? each : any();
  default: return any();
  }
}

}  // namespace

SurplusThread::SurplusThread(const Graph& graph, const std::set<const Expr*>& own)
    : graph_(graph), own_(own), values_(graph.values.size()), locals_(graph.locals.size()),
      reached_(graph.blocks.size()), tried_(graph.blocks.size()) {
  reached_[0] = true;
  for (bool changed = true; changed; ++round_) {
    changed = updateValues();
    changed |= updateLocals();
    changed |= updateBlocks();
  }
}

const Expr* SurplusThread::ownLoad(StepId id) const {
  if (id == kNoStep || graph_[id].kind != StepKind::Load)
    return nullptr;
  for (const Access& access : graph_.accessesOf(graph_[id])) {  // none of a list of constants
    const Expr* place = access.origin;
    while (place && place->kind == ExprKind::Field)
      place = &asField(*place).base;
    if (own_.contains(place))
      return place;
  }
  return nullptr;
}

bool SurplusThread::goesTo(BlockId from, size_t side) const {
  if (!reached_[indexOf(from)])
    return false;
  const Step& last = graph_.terminator(from);
  if (last.kind != StepKind::Branch)
    return true;
  const Known decides = of(last.value);
  return decides.state == State::Any || (decides.state == State::Constant && (decides.integer != 0) == (side == 0));
}

bool SurplusThread::comesFrom(BlockId block, size_t predecessor) const {
  const BlockId from = graph_[block].predecessors[predecessor];
  const std::vector<BlockId>& successors = graph_[from].successors;
  for (size_t side = 0; side < successors.size(); ++side)
    if (successors[side] == block && goesTo(from, side))
      return true;
  return false;
}

/// Values stand in the order of the program: with what decides known by then, one round goes through code without loops.
bool SurplusThread::reach(BlockId block) {
  const uint32_t at = indexOf(block);
  if (reached_[at] || tried_[at] == round_)
    return reached_[at];
  tried_[at] = round_;
  for (size_t i = 0; i < graph_[block].predecessors.size() && !reached_[at]; ++i)
    if (const BlockId from = graph_[block].predecessors[i]; indexOf(from) < at && reach(from))
      reached_[at] = comesFrom(block, i);
  return reached_[at];
}

bool SurplusThread::updateBlocks() {
  bool changed = false;
  for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
    for (size_t side = 0; side < graph_.blocks[i].successors.size(); ++side)
      if (const uint32_t to = indexOf(graph_.blocks[i].successors[side]); !reached_[to] && goesTo(BlockId{i}, side))
        reached_[to] = changed = true;
  return changed;
}

bool SurplusThread::updateValues() {
  const auto reached = std::count(reached_.begin(), reached_.end(), true);
  bool changed = false;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].state == State::Any || graph_.values.resolved(ValueId{i}) != ValueId{i})
      continue;
    if (graph_.values[ValueId{i}].kind == NodeKind::Phi)
      for (BlockId from : graph_[graph_.values.phiBlock(ValueId{i})].predecessors)
        reach(from);
    else if (const StepId step = graph_.definition(ValueId{i}); step != kNoStep)
      reach(graph_.blockOf(step));
    const Known now = join(values_[i], compute(ValueId{i}));
    changed |= now != values_[i];
    values_[i] = now;
  }
  return changed || reached != std::count(reached_.begin(), reached_.end(), true);
}

/// Of a thread's own variable that has a place: what is stored there, in whichever part.
bool SurplusThread::updateLocals() {
  bool changed = false;
  const auto add = [&](PlaceId place, const Known& stored) {
    for (LocalId root : graph_[place].roots()) {
      Known& local = locals_[indexOf(root)];
      const Known now = join(local, stored);
      changed |= now != local;
      local = now;
    }
  };
  for (uint32_t i = 0; i < graph_.stepCount(); ++i) {
    const Step& step = graph_[StepId{i}];
    if (!reached_[indexOf(graph_.blockOf(StepId{i}))])
      continue;
    if (step.kind == StepKind::Store && step.place != kNoPlace && step.useCount > 0)
      for (ValueId use : graph_.uses(step))
        add(step.place, of(use));
    else if (step.kind == StepKind::Declare && step.place != kNoPlace && step.index == kBeginsAsZeros)
      add(step.place, integer(0));
    else
      for (const Access& access : graph_.accessesOf(step))
        if (access.mode != AccessMode::Read && access.place != kNoPlace)
          add(access.place, any());
  }
  return changed;
}

Known SurplusThread::compute(ValueId value) const {
  const Node& node = graph_.values[value];
  switch (node.kind) {
  case NodeKind::Constant: return integer(node.constant());
  case NodeKind::Phi: return ofPhi(value);
  case NodeKind::Op: return ofOperation(value);
  case NodeKind::Convert: {
    const Known from = of(graph_.values.operand(value, 0));
    return from.state == State::Constant ? integer(node.type.wrap(from.integer)) : from;
  }
  case NodeKind::Unknown:
    if (const Expr* cause = graph_.values.cause(value); cause && cause->kind == ExprKind::Float)
      return {State::Constant, 0, cause->floatValue};
    [[fallthrough]];
  case NodeKind::Load:
    if (const StepId step = graph_.definition(value); step != kNoStep)
      return ofStep(value, step);
    return any();
  default: return any();
  }
}

Known SurplusThread::ofOperation(ValueId value) const {
  const Node& node = graph_.values[value];
  const Operands operands = graph_.values.operands(value);
  std::array<Known, 3> known;
  for (size_t i = 0; i < operands.size(); ++i)
    known[i] = of(operands.values[i]);
  if (node.op == Op::Select) {
    if (known[0].state != State::Constant)
      return known[0].state == State::Unreached ? Known() : join(known[1], known[2]);
    return known[0].integer != 0 ? known[1] : known[2];
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (known[i].state == State::Unreached)
      return {};
  const bool isProduct = node.op == Op::Mul || node.op == Op::And;
  if (isProduct && (known[0].isZero() || known[1].isZero()))
    return integer(0);
  if (node.op == Op::Or && node.type == kBool)
    for (size_t i = 0; i < 2; ++i)
      if (known[i].state == State::Constant && known[i].integer != 0)
        return integer(known[i].integer);
  if (known[0].state != State::Constant || known[1].state != State::Constant)
    return known[0].isZero() && (node.op == Op::Div || node.op == Op::Rem || node.op == Op::Shl || node.op == Op::Shr)
               ? integer(0)
               : any();
  return integer(applyOp(node.op, graph_.values.type(operands.values[0]), known[0].integer, known[1].integer));
}

std::vector<StepId> SurplusThread::storesOf(const Step& load) const {
  std::vector<StepId> out;
  if (load.kind != StepKind::Load || load.place == kNoPlace || graph_[load.place].isUnknown() ||
      (graph_[load.place].storage != Storage::Variable && graph_[load.place].storage != Storage::Local))
    return out;
  for (uint32_t i = 0; i < graph_.stepCount(); ++i)
    if (const Step& store = graph_[StepId{i}];
        store.kind == StepKind::Store && store.place != kNoPlace && graph_[store.place].root == graph_[load.place].root)
      out.push_back(StepId{i});
  return out;
}

Known SurplusThread::ofPhi(ValueId phi) const {
  const BlockId block = graph_.values.phiBlock(phi);
  const auto operands = graph_.values.phiOperands(phi);
  Known result;
  for (size_t i = 0; i < operands.size(); ++i)
    if (comesFrom(block, i))
      result = join(result, of(operands[i]));
  return result;
}

Known SurplusThread::ofStep(ValueId value, StepId id) const {
  const Step& step = graph_[id];
  if (!reached_[indexOf(graph_.blockOf(id))])
    return {};
  if (ownLoad(id))
    return integer(0);
  if (graph_.values[value].kind == NodeKind::Load) {
    if (step.place == kNoPlace || graph_[step.place].isUnknown())
      return any();
    const Storage storage = graph_[step.place].storage;
    return storage == Storage::Variable || storage == Storage::Local ? locals_[indexOf(graph_[step.place].root)]
                                                                     : any();
  }
  if (step.kind == StepKind::Warp && step.useCount > 0)
    return ofWarp(step.origin->builtin, of(graph_.uses(step)[0]));
  if (step.kind != StepKind::Compute || !step.origin)
    return any();
  std::vector<Known> uses;
  for (ValueId use : graph_.uses(step))
    uses.push_back(of(use));
  return computed(*step.origin, uses);
}

}  // namespace vortex::lang::flow
