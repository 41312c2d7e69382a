// Positions, warp operations, atomics, print and assert.
#include "irgen/emitter.h"

namespace vortex::irgen {

using lang::Builtin;
using lang::Expr;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

static constexpr int64_t kWarpSize = 32;

Flat Emitter::evalBuiltin(const Expr& expr) {
  Location at = loc(expr);
  if (std::optional<Flat> position = evalPosition(expr))
    return *position;
  if (std::optional<Flat> warp = evalWarp(expr))
    return *warp;
  if (expr.builtin >= Builtin::AtomicAdd && expr.builtin <= Builtin::AtomicStore)
    return evalAtomic(expr);
  switch (expr.builtin) {
  case Builtin::Print: return evalPrint(expr);
  case Builtin::Assert: return evalAssert(expr);
  case Builtin::SyncBlock:
  case Builtin::SyncGrid: emitBarrier(expr); return {};
  case Builtin::AsyncStage: emitStage(expr, evalViews(*expr.args[1])); return {};
  case Builtin::Extent: {
    lang::Type tensor = stripRef(expr.args[0]->type);
    return math_.fromIndex(at, dimValue(at, tensor->shape[expr.ints.empty() ? 0 : expr.ints[0]]), scalarOf(expr.type));
  }
  case Builtin::Len: {
    lang::Type type = stripRef(expr.args[0]->type);
    if (type->kind == lang::TypeKind::Array)
      return math_.integer(at, types_.scalar(scalarOf(expr.type)), type->count);
    return math_.fromIndex(at, dimValue(at, type->shape[0]), scalarOf(expr.type));
  }
  case Builtin::ReduceSum:
  case Builtin::ReduceProd:
  case Builtin::ReduceMax:
  case Builtin::ReduceMin:
  case Builtin::ReduceMean: {
    Value scalar = evalReduction(expr);  // of everything: a scalar, rounded to its type
    lang::Scalar kind = scalarOf(expr.type);
    return math_.cast(at, scalar, wideScalar(kind), kind);
  }
  default: break;
  }
  if (!expr.type || isTileType(expr.type) || expr.builtin >= Builtin::Zeros)
    return unsupported(expr, llvm::Twine("`") + std::string(spelling(expr.builtin)) + "` in a kernel");
  llvm::SmallVector<Value> args;
  for (const Expr* arg : expr.args)
    args.push_back(evalScalar(*arg));
  if (expr.builtin == Builtin::ToBits || expr.builtin == Builtin::FromBits)
    return math_.reinterpret(at, args[0], scalarOf(expr.type));
  lang::Scalar kind = scalarOf(expr.args[expr.builtin == Builtin::Select ? 1 : 0]->type);
  Value result = math_.call(at, expr.builtin, kind, args);
  VORTEX_CHECK(result, "`%s` is not elementwise", std::string(spelling(expr.builtin)).c_str());
  bool predicate = expr.builtin == Builtin::IsNan || expr.builtin == Builtin::IsInf;
  return predicate ? result : math_.cast(at, result, kind, scalarOf(expr.type));
}

std::optional<Flat> Emitter::evalPosition(const Expr& expr) {
  Location at = loc(expr);
  unsigned axis = expr.ints.empty() ? 0 : expr.ints[0];
  auto axisAttr = static_cast<ir::Axis>(axis);
  Value value;
  switch (expr.builtin) {
  case Builtin::ThreadId: value = threadId(axis); break;
  case Builtin::ThreadLocalId: value = axis ? threadId(axis) : linearId(); break;
  case Builtin::ThreadGlobalId: value = globalId(axis); break;
  case Builtin::BlockId: value = b_.create<ir::BlockIdOp>(at, axisAttr); break;
  case Builtin::GridDim: value = b_.create<ir::GridDimOp>(at, axisAttr); break;
  case Builtin::BlockDim: value = blockExtent(axis); break;
  case Builtin::WarpId: value = b_.create<arith::DivUIOp>(at, linearId(), math_.index(at, kWarpSize)); break;
  case Builtin::LaneId: value = b_.create<arith::RemUIOp>(at, linearId(), math_.index(at, kWarpSize)); break;
  case Builtin::WarpSize: value = math_.index(at, kWarpSize); break;
  default: return std::nullopt;
  }
  return Flat(math_.fromIndex(at, value, scalarOf(expr.type)));
}

std::optional<Flat> Emitter::evalWarp(const Expr& expr) {
  Location at = loc(expr);
  auto shuffle = [&](ir::ShuffleKind kind) -> Flat {
    Value value = evalScalar(*expr.args[0]);
    Value lane = math_.cast(at, evalScalar(*expr.args[1]), scalarOf(expr.args[1]->type), lang::Scalar::I32);
    // Modulo 32, as PTX does by itself: one meaning of `-1` and 33 on every target.
    Value last = b_.create<arith::ConstantIntOp>(at, kWarpSize - 1, 32);
    lane = b_.create<arith::AndIOp>(at, lane, last);
    return Value(b_.create<ir::WarpShuffleOp>(at, kind, value, lane));
  };
  auto reduce = [&](ir::Combine kind) -> Flat {
    return Value(b_.create<ir::WarpReduceOp>(at, kind, evalScalar(*expr.args[0])));
  };
  auto vote = [&](ir::VoteKind kind, mlir::Type type) -> Value {
    return b_.create<ir::WarpVoteOp>(at, type, kind, evalScalar(*expr.args[0]));
  };
  auto kind = [&] { return scalarOf(expr.args[0]->type); };
  switch (expr.builtin) {
  case Builtin::SyncWarp: b_.create<ir::WarpBarrierOp>(at); return Flat();
  case Builtin::ShuffleXor: return shuffle(ir::ShuffleKind::Xor);
  case Builtin::ShuffleUp: return shuffle(ir::ShuffleKind::Up);
  case Builtin::ShuffleDown: return shuffle(ir::ShuffleKind::Down);
  case Builtin::ShuffleIndex: return shuffle(ir::ShuffleKind::Index);
  case Builtin::WarpSum: return reduce(addCombine(kind()));
  case Builtin::WarpMax: return reduce(maxCombine(kind()));
  case Builtin::WarpMin: return reduce(minCombine(kind()));
  case Builtin::WarpAny: return Flat(vote(ir::VoteKind::Any, b_.getI1Type()));
  case Builtin::WarpAll: return Flat(vote(ir::VoteKind::All, b_.getI1Type()));
  case Builtin::WarpBallot:
    return Flat(math_.cast(at, vote(ir::VoteKind::Ballot, b_.getI32Type()), lang::Scalar::U32, scalarOf(expr.type)));
  default: return std::nullopt;
  }
}

/// At block level: what the threads have is a tile of the block, which is combined behind a barrier of the program.
Flat Emitter::evalBlockReduction(const Expr& expr) {
  Location at = loc(expr);
  const Expr& operand = *expr.args[0];
  const lang::Scalar stored = scalarOf(operand.type), kind = wideScalar(stored);
  const Variable* threads = facts_.newVariable("reduced", operand.type, lang::Uniformity::PerThread);
  declare(threads);
  evaluate(operand, threads);
  closeRegion();
  Value held = coerceLeaf(at, variables_[threads].leaves[0], types_.scalar(stored), /*perThread=*/true);
  Value tile = math_.cast(at, held, stored, kind);
  emitBarrier(expr);
  ir::Combine combine = ir::Combine::Or;
  switch (expr.builtin) {
  case Builtin::BlockSum: combine = addCombine(kind); break;
  case Builtin::BlockMax: combine = maxCombine(kind); break;
  case Builtin::BlockMin: combine = minCombine(kind); break;
  case Builtin::BlockAll: combine = ir::Combine::And; break;
  default: break;
  }
  Value result = b_.create<ir::ReduceOp>(at, types_.scalar(kind), combine, tile, llvm::ArrayRef<int64_t>{0});
  return math_.cast(at, result, kind, stored);
}

//===-- atomics ---------------------------------------------------------------------------------------------------===//

static ir::Combine atomicKind(Builtin builtin, lang::Scalar kind) {
  switch (builtin) {
  case Builtin::AtomicAdd: return addCombine(kind);
  case Builtin::AtomicMin: return minCombine(kind);
  case Builtin::AtomicMax: return maxCombine(kind);
  case Builtin::AtomicAnd: return ir::Combine::And;
  case Builtin::AtomicOr: return ir::Combine::Or;
  case Builtin::AtomicXor: return ir::Combine::Xor;
  default: return ir::Combine::Exchange;
  }
}

Flat Emitter::evalAtomic(const Expr& expr) {
  Location at = loc(expr);
  const Expr* target = expr.args[0];
  while (target->kind == lang::ExprKind::Ref || target->kind == lang::ExprKind::Deref)
    target = target->args[0];
  Place element = place(*target);
  VORTEX_CHECK(!element.views.empty() && element.leafCount == 1, "an atomic operation needs an element in memory");
  llvm::SmallVector<Value> operands;
  for (const Expr* operand : llvm::ArrayRef(expr.args).drop_front())
    operands.push_back(evalScalar(*operand));
  Value result;
  forEachChoice(at, element, 0, [&](uint32_t leaf, Value chosen) {
    Value old = emitAtomic(expr, element, element.views[leaf], both(at, element.mask, chosen), operands);
    if (old)
      result = result ? Value(b_.create<arith::SelectOp>(at, chosen, old, result)) : old;
  });
  return result ? Flat(result) : Flat();
}

/// Null: the operation has no result.
Value Emitter::emitAtomic(const Expr& expr, const Place& element, Value view, Value mask,
                          llvm::ArrayRef<Value> operands) {
  Location at = loc(expr);
  auto order = static_cast<ir::Order>(!expr.ints.empty() ? expr.ints[0] : 0);
  auto scope = static_cast<ir::Scope>(expr.ints.size() > 1 ? expr.ints[1] : 1);
  mlir::Type type = llvm::cast<ir::ViewType>(view.getType()).getElementType();
  llvm::SmallVector<Value> indices = indicesIn(at, view, element.indices);
  if (expr.builtin == Builtin::AtomicLoad)
    return b_.create<ir::AtomicLoadOp>(at, type, view, indices, mask, order, scope, element.guarded);
  noteWrite(view);
  if (expr.builtin == Builtin::AtomicStore) {
    b_.create<ir::AtomicStoreOp>(at, operands[0], view, indices, mask, order, scope, element.guarded);
    return {};
  }
  if (expr.builtin == Builtin::AtomicCompareExchange)
    return b_.create<ir::AtomicCasOp>(at, operands[0], operands[1], view, indices, mask, order, scope, element.guarded);
  ir::Combine kind = atomicKind(expr.builtin, scalarOf(expr.args[1]->type));
  return b_.create<ir::AtomicRmwOp>(at, kind, operands[0], view, indices, mask, order, scope, element.guarded);
}

//===-- output ----------------------------------------------------------------------------------------------------===//

static std::string withDoubledBraces(llvm::StringRef text) {
  std::string out;
  for (const char c : text)
    out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

/// The arguments from `first` on, as a print shows them; nothing where kernels cannot.
std::optional<ShownValues> Emitter::evalShown(const Expr& expr, size_t first) {
  ShownValues out;
  llvm::SmallVector<std::string> parts;  // texts as they stand, a hole for each number
  for (const Expr* arg : llvm::ArrayRef(expr.args).drop_front(first)) {
    parts.push_back(arg->kind == lang::ExprKind::String ? arg->text : "{}");
    if (arg->kind == lang::ExprKind::String)
      continue;
    if (arg->type->kind != lang::TypeKind::Scalar && arg->type->kind != lang::TypeKind::Enum) {
      unsupported(*arg, "printing anything but scalars in a kernel");
      return std::nullopt;
    }
    out.values.push_back(evalScalar(*arg));
    out.isUnsigned.push_back(lang::isUnsigned(scalarOf(arg->type)));
  }
  const bool isFormat = !out.values.empty();  // in which braces are doubled
  if (isFormat)
    for (auto [arg, part] : llvm::zip(llvm::ArrayRef(expr.args).drop_front(first), parts))
      if (arg->kind == lang::ExprKind::String)
        part = withDoubledBraces(part);
  if (expr.text.empty()) {
    out.format = llvm::join(parts, " ");
    return out;
  }
  const std::string& text = expr.text;
  for (size_t i = 0, next = 0; i < text.size(); ++i) {
    const bool isBrace = text[i] == '{' || text[i] == '}', isDoubled = i + 1 < text.size() && text[i + 1] == text[i];
    if (text[i] == '{' && !isDoubled) {
      out.format += next < parts.size() ? parts[next++] : "";
      i = std::min(text.find('}', i), text.size());
      continue;
    }
    out.format.append(isBrace && isFormat ? 2 : 1, text[i]);
    i += isBrace && isDoubled;
  }
  return out;
}

Flat Emitter::evalPrint(const Expr& expr) {
  Location at = loc(expr);
  const std::optional<ShownValues> shown = evalShown(expr, 0);
  if (!shown)
    return {};
  if (region_ && inThreads_)
    region_->hasOutput = true;
  auto print = [&](mlir::OpBuilder& b) { b.create<ir::PrintOp>(at, shown->format, shown->values, shown->isUnsigned); };
  Value inside = inThreads_ && !context_.domain.empty() ? insideDomain() : Value();
  if (!inside)
    return print(b_), Flat();
  auto branch = b_.create<mlir::scf::IfOp>(at, inside, /*withElseRegion=*/false);
  mlir::OpBuilder body = branch.getThenBodyBuilder();
  print(body);
  return {};
}

Flat Emitter::evalAssert(const Expr& expr) {
  Location at = loc(expr);
  Value condition = evalScalar(*expr.args[0]);
  std::optional<ShownValues> shown = evalShown(expr, 1);
  if (!shown)
    return {};
  if (shown->format.empty())
    shown->format = "assertion failed: " + std::string(context_.locations.text(expr.args[0]->range));
  emitAssert(at, condition, "E0704", *shown);
  return {};
}

/// Threads outside the domain have no say.
void Emitter::emitAssert(Location at, Value condition, llvm::StringRef id, const ShownValues& shown) {
  if (inThreads_ && !context_.domain.empty())
    if (Value inside = insideDomain()) {
      Value outside = b_.create<arith::XOrIOp>(at, inside, math_.integer(at, b_.getI1Type(), 1));
      condition = b_.create<arith::OrIOp>(at, condition, outside);
    }
  if (region_ && inThreads_)
    region_->hasOutput = true;
  b_.create<ir::AssertOp>(at, condition, shown.format, id, shown.values, shown.isUnsigned);
}

}  // namespace vortex::irgen
