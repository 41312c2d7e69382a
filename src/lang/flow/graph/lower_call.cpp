// Built-in functions, results, and what has no better rule.
#include "lang/flow/graph/lower.h"

#include "lang/sema/children.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {

static bool isAtomicBuiltin(Builtin builtin) {
  return builtin >= Builtin::AtomicAdd && builtin <= Builtin::AtomicStore;
}

/// Where a thread stands, as the number the machine computes.
std::optional<ValueId> Lowering::position(const Expr& expr) {
  const uint32_t axis = expr.ints.empty() ? 0 : static_cast<uint32_t>(expr.ints[0]);
  const auto at = [&](PositionKind kind) { return values().position(kind, axis); };
  switch (expr.builtin) {
  case Builtin::ThreadId: return at(PositionKind::ThreadId);
  case Builtin::ThreadLocalId: return at(axis ? PositionKind::ThreadId : PositionKind::ThreadLocalId);
  case Builtin::ThreadGlobalId: return at(PositionKind::ThreadGlobalId);
  case Builtin::BlockId: return at(PositionKind::BlockId);
  case Builtin::BlockDim: return at(PositionKind::BlockDim);
  case Builtin::GridDim: return at(PositionKind::GridDim);
  case Builtin::WarpId: return at(PositionKind::WarpId);
  case Builtin::LaneId: return at(PositionKind::LaneId);
  case Builtin::WarpSize: return values().constant(kUsize, 32);
  default: return std::nullopt;
  }
}

/// Functions of integers that nodes express.
std::optional<ValueId> Lowering::integerFunction(const Expr& expr) {
  if (expr.type->kind != TypeKind::Scalar || isFloat(expr.type->scalar) || expr.args.empty())
    return std::nullopt;
  const MachineType type = machineType(expr.type);
  const auto operands = [&] {
    std::vector<ValueId> out;
    for (const Expr* arg : expr.args)
      out.push_back(scalar(*arg));
    return out;
  };
  switch (expr.builtin) {
  case Builtin::Min:
  case Builtin::Max: {
    const auto each = operands();
    return values().op(expr.builtin == Builtin::Min ? Op::Min : Op::Max, type, each[0], each[1]);
  }
  case Builtin::Clamp: {
    const auto each = operands();
    return values().op(Op::Min, type, values().op(Op::Max, type, each[0], each[1]), each[2]);
  }
  case Builtin::Select: {
    const auto each = operands();
    return values().op(Op::Select, type, each[0], each[1], each[2]);
  }
  case Builtin::CeilDiv: {
    if (type.isSigned)
      return std::nullopt;
    const auto each = operands();
    return values().op(Op::CeilDiv, type, each[0], each[1]);
  }
  case Builtin::Abs: {
    const ValueId operand = scalar(subjectOf(expr));
    if (!type.isSigned)
      return operand;
    const ValueId isNegative = values().op(Op::Lt, kBool, operand, values().constant(type, 0));
    return values().op(Op::Select, type, isNegative, values().negate(operand), operand);
  }
  default: return std::nullopt;
  }
}

Lowering::Operand Lowering::builtin(const Expr& expr) {
  const auto scalarIs = [](ValueId value) { return Operand{value, kNoPlace, {}}; };
  if (const auto at = position(expr))
    return scalarIs(values().convert(machineType(expr.type), *at));
  if (isAtomicBuiltin(expr.builtin))
    return scalarIs(atomic(expr));
  std::vector<ValueId> uses;
  const auto evaluate = [&] {
    for (const Expr* arg : expr.args)
      if (arg)
        flatten(value(*arg), uses);
  };
  const auto effect = [&](StepKind kind) {
    evaluate();
    if (isReachable())
      b_.addUses(b_.emit(kind, &expr), uses);
    return Operand();
  };
  switch (expr.builtin) {
  case Builtin::SyncBlock: return effect(StepKind::Barrier);
  case Builtin::SyncGrid:
    if (isReachable())
      b_.emit(StepKind::Barrier, &expr).index = kOfGrid;
    return {};
  case Builtin::SyncWarp: return effect(StepKind::WarpBarrier);
  case Builtin::Print: return effect(StepKind::Print);
  case Builtin::Assert: return effect(StepKind::Assert);
  case Builtin::AsyncStage:
  case Builtin::Stage: {
    const Expr* destination = asStage(expr).destination;
    if (destination) {
      const PlaceId to = materialised(*destination, placeOfBase(*destination));
      stageInto(expr, to, destination);
      return {};
    }
    const Holder holder = temporary(expr.type, expr);
    if (isReachable())
      stageInto(expr, b_.root(holder.local), nullptr);
    return Operand{kNoValue, b_.root(holder.local), {}};
  }
  case Builtin::Extent:
  case Builtin::Len: {
    const Type type = stripRef(subjectOf(expr).type);
    if (type->kind == TypeKind::Array)
      return scalarIs(values().constant(machineType(expr.type), static_cast<__int128>(type->count)));
    if (!type->isTensor())
      break;
    const size_t dim = expr.ints.empty() ? 0 : static_cast<size_t>(expr.ints[0]);
    return scalarIs(values().convert(machineType(expr.type), dimension(type->shape[dim])));
  }
  default: break;
  }
  if (expr.builtin >= Builtin::ShuffleXor && expr.builtin <= Builtin::BlockAll) {
    evaluate();
    if (!isReachable())
      return undefined(expr.type);
    if (isBlockReduction(expr.builtin))
      b_.emit(StepKind::Barrier, &expr);
    Step& step = b_.emit(StepKind::Warp, &expr);
    b_.addUses(step, uses);
    return scalarIs(b_.computed(step, machineType(expr.type)));
  }
  if (isTile(expr.type)) {
    const Holder holder = temporary(expr.type, expr);
    put(holder, expr);
    return read(holder);
  }
  if (const auto made = integerFunction(expr))
    return scalarIs(*made);
  return opaque(expr);
}

ValueId Lowering::atomic(const Expr& expr) {
  const auto [written, operands] = asAtomic(expr);
  std::vector<ValueId> uses;
  for (const Expr* operand : operands)
    uses.push_back(scalar(*operand));
  const Expr* target = &written;
  while (target->kind == ExprKind::Ref || (target->kind == ExprKind::Deref && operandOf(*target).kind == ExprKind::Ref))
    target = &operandOf(*target);
  const PlaceId at = materialised(*target, placeOfBase(*target));
  if (!isReachable())
    return kNoValue;
  Step& step = b_.emit(StepKind::Atomic, &expr);
  step.place = at;
  b_.addUses(step, uses);
  const AccessMode mode = expr.builtin == Builtin::AtomicLoad    ? AccessMode::Read
                          : expr.builtin == Builtin::AtomicStore ? AccessMode::Write
                                                                 : AccessMode::Update;
  b_.addAccess(step, at, mode, target);
  return expr.builtin == Builtin::AtomicStore ? kNoValue : b_.ticket(step, machineType(expr.type));
}

void Lowering::stageInto(const Expr& stage, PlaceId destination, const Expr* written) {
  const Expr* source = &asStage(stage).source;
  const PlaceId from = materialised(*source, placeOfBase(*source));
  if (!isReachable())
    return;
  Step& step = b_.emit(StepKind::Stage, &stage);
  step.place = destination;
  b_.addAccess(step, from, AccessMode::Read, source);
  b_.addAccess(step, destination, AccessMode::Write, written);
}

/// Evaluates the operands; what comes of them is not known. Tensors among them are read.
Lowering::Operand Lowering::opaque(const Expr& expr) {
  TileParts parts;
  forEachChild(expr, [&](const Expr& child) { gather(child, parts); });
  if (!isReachable())
    return expr.type ? undefined(expr.type) : Operand();
  const bool isWork = !parts.reads.empty();
  const auto* leaves = expr.type ? leaves_.of(expr.type) : nullptr;
  if (leaves && leaves->size() == 1 && !(*leaves)[0].isAlias) {
    Step& step = emitTile(isWork ? StepKind::Tile : StepKind::Compute, expr, parts);
    return Operand{b_.computed(step, (*leaves)[0].type), kNoPlace, {}};
  }
  emitTile(isWork ? StepKind::Tile : StepKind::Compute, expr, parts);
  if (leaves)
    return undefined(expr.type);
  return read(temporary(expr.type, expr));
}

//===-- results ---------------------------------------------------------------------------------------------------===//

LocalId Lowering::result(uint32_t number, Type type) {
  auto [found, isNew] = results_.try_emplace(number, kNoLocal);
  if (isNew) {
    found->second = newLocal(type, function_.resultRange, nullptr, Storage::Result);
    graph_.locals[indexOf(found->second)].index = number;
  }
  return found->second;
}

/// What a kernel returns is stored here, not handed over.
void Lowering::output(const Expr& expr) {
  if (!graph_.isKernel)
    return handOut(expr);
  const Type type = function_.resultType;
  if (!function_.isKernel || !type || !hasValue(type)) {
    execute(expr, nullptr);
    return;
  }
  if (type->kind != TypeKind::Tuple)
    return outputOne(expr, 0, type);
  if (expr.kind != ExprKind::MakeTuple) {
    value(expr);
    return;
  }
  for (uint32_t i = 0; i < expr.args.size() && i < type->elems.size(); ++i)
    outputOne(*expr.args[i], i, type->elems[i]);
}

/// A whole tensor or the block's tile of it, an element of each thread, or one number of each block.
void Lowering::outputOne(const Expr& expr, uint32_t number, Type type) {
  if (expr.kind == ExprKind::Var && expr.variable->isResultStorage)
    return;
  TileParts parts;
  gather(expr, parts);
  if (!isReachable())
    return;
  PlaceId to = b_.root(result(number, type));
  if (type->isTensor() && !stripRef(expr.type)->isTensor()) {
    Projection at{.kind = ProjectionKind::At};
    for (uint32_t axis = type->rank(); axis-- > 0;)
      at.dims.push_back({axis < kAxes ? values().position(PositionKind::ThreadGlobalId, axis)
                                      : values().unknown(nullptr, kUsize),  // E0460
                         kNoValue});
    to = b_.extend(to, std::move(at), type->elem);
  } else if (const auto& tile = function_.kernel->tile; tile && type->isTensor() && !tile->offsets.empty()) {
    Projection window{.kind = ProjectionKind::Window};
    const size_t leading = type->rank() - tile->offsets.size();
    for (size_t dim = 0; dim < leading; ++dim) {  // one of each: which, the block's z says
      const ValueId one = b_.undefined(kUsize);
      window.dims.push_back({one, kNoValue});
    }
    for (size_t i = 0; i < tile->offsets.size(); ++i) {
      const Operand offset = read(holderOf(*tile->offsets[i]));
      const ValueId begin = values().convert(kUsize, offset.value == kNoValue ? b_.undefined(kUsize) : offset.value);
      const ValueId extent = values().constant(kUsize, tile->extents[i]);
      window.dims.push_back({begin, values().op(Op::Add, kUsize, begin, extent)});
    }
    to = b_.extend(to, std::move(window), stripRef(expr.type));
  }
  Step& step = emitTile(StepKind::Output, expr, parts);
  step.place = to;
  if (type->isTensor() || function_.kernel->reduce == ReduceKind::None)
    b_.addAccess(step, to, AccessMode::Write, nullptr);
}

}  // namespace vortex::lang::flow
