// Loads, stores and products of tiles.
#include "metile/emitter.h"

namespace vortex::metile {

using lang::Scalar;

Emitter::Variable* Emitter::memory(const Operand& pointer) {
  return pointer.kind == Operand::Kind::Param ? params_[static_cast<size_t>(pointer.number)]
                                              : values_[static_cast<size_t>(pointer.number)].variable;
}

/// Tiles in shared memory are counted row by row too.
Emitter::Expr* Emitter::element(Variable* of, Expr* at) {
  const lang::Type type = lang::stripRef(of->type);
  if (type->rank() == 1)
    return b_.element(of, at);
  const int64_t columns = *type->shape[1].asConstant();
  Variable* number = b_.let("e" + std::to_string(names_++), at);
  const auto part = [&](lang::BinaryOp which) {
    return b_.binary(which, b_.read(number), b_.integer(Scalar::I64, columns));
  };
  return b_.element(of, {part(lang::BinaryOp::Div), part(lang::BinaryOp::Rem)});
}

/// Lanes that are masked off touch no memory, hold 0 and are invalid; so are those whose mask or offset is.
void Emitter::load(const Op& op) {
  Variable* from = memory(op.operands[0]);
  Expr* at = index(op, 1);
  Validity valid = validOf(op.operands[1]);
  if (!has(op, 2))
    return define(op, element(from, at), std::move(valid));
  Variable* mask = b_.let("mask" + std::to_string(op.result), operand(op, 2, {Dtype::Bool}));
  Variable* value = b_.let("v" + std::to_string(op.result), constant(resultKind(op).dtype, 0), true);
  b_.openIf(b_.read(mask));
  b_.assign(b_.read(value), element(from, at));
  b_.close();
  merge(valid, validOf(op.operands[2]));
  merge(valid, {mask});
  values_[static_cast<size_t>(op.result)] = {value, std::move(valid)};
}

/// What is the same for all lanes of a simdgroup is stored by its first.
void Emitter::store(const Op& op) {
  const bool isOfSimdgroup = variation(op) == Variation::OfSimdgroups;
  if (isOfSimdgroup)
    b_.openIf(b_.binary(lang::BinaryOp::Eq, position(lang::Builtin::LaneId), b_.integer(Scalar::I64, 0)));
  storeOfLanes(op);
  if (isOfSimdgroup)
    b_.close();
}

void Emitter::storeOfLanes(const Op& op) {
  Variable* to = memory(op.operands[0]);
  Expr* target = element(to, index(op, 1));
  const Scalar element = target->type->scalar;
  const Operand& given = op.operands[2];
  Expr* value = given.kind == Operand::Kind::Value
                    ? b_.cast(b_.read(values_[static_cast<size_t>(given.number)].variable), element)
                    : literal(given, *dtypeNamed(lang::name(element)));
  if (!has(op, 3))
    return put(op, target, value);
  b_.openIf(operand(op, 3, {Dtype::Bool}));
  put(op, target, value);
  b_.close();
}

/// Atomics are of threads: what is the same for all lanes is stored by the first.
void Emitter::put(const Op& op, Expr* target, Expr* value) {
  const auto sharers = additions_.ofOneValue.find(static_cast<size_t>(&op - trace_.ops.data()));
  if (sharers == additions_.ofOneValue.end())
    return b_.assign(target, value);
  const bool isOfFirst = variation(op) == Variation::None;
  if (isOfFirst)
    b_.openIf(b_.binary(lang::BinaryOp::Eq, position(lang::Builtin::ThreadLocalId), b_.integer(Scalar::I64, 0)));
  b_.run(b_.atomicStore(target, value, sharers->second == Sharers::Launch));
  if (isOfFirst)
    b_.close();
}

/// The matrix of a tile: all of its memory, or the rows that the operands from `first` on say.
Emitter::Expr* Emitter::matrix(const Op& op, size_t first) {
  Expr* all = b_.whole(memory(op.operands[0]));
  return has(op, first) ? b_.rowsOf(all, index(op, first), index(op, first + 1)) : all;
}

/// Operands: matrix, row, column, rows, columns, and first row and number of rows where the matrix is a part of its memory. Elements outside
/// the matrix are 0.
void Emitter::tileLoad(const Op& op) {
  define(op, b_.window(matrix(op, 5), index(op, 1), op.operands[3].number, index(op, 2), op.operands[4].number));
}

/// Operands: matrix, row, column, value, rows, columns, and those of the matrix.
void Emitter::tileStore(const Op& op) {
  const int64_t rows = op.operands[4].number, columns = op.operands[5].number;
  Expr* target = b_.window(matrix(op, 6), index(op, 1), rows, index(op, 2), columns);
  Kind kind = this->kind(op, 3);
  kind.rows = rows, kind.columns = columns;
  b_.assign(target, b_.cast(operand(op, 3, kind), lang::scalarOf(target->type)));
}

/// 0, 1, 2, … along a dimension. Operands: dimension, extent.
void Emitter::positions(const Op& op) {
  const lang::Type column = b_.types().tensorValue(
      b_.types().scalar(Scalar::I64), {lang::DimExpr::constant(op.operands[1].number), lang::DimExpr::constant(1)});
  Expr* numbers = b_.builtin(lang::Builtin::Arange, column, {});
  define(op, op.operands[0].number == 0 ? numbers : b_.transpose(numbers));
}

/// The element of a tile of one, for all lanes: through shared memory.
void Emitter::only(const Op& op) {
  const Kind result = resultKind(op);
  const bool isMask = result.dtype == Dtype::Bool;
  Variable* cell = b_.shared("only" + std::to_string(op.result), scalarOf(isMask ? Dtype::I32 : result.dtype), {1, 1});
  const auto zero = [this] { return b_.integer(Scalar::I64, 0); };
  barrier();
  b_.assign(b_.window(b_.whole(cell), zero(), 1, zero(), 1),
            operand(op, 0, {isMask ? Dtype::I32 : result.dtype, 1, 1}));
  barrier();
  Expr* value = b_.element(cell, {zero(), zero()});
  define(op, isMask ? b_.binary(lang::BinaryOp::Ne, value, constant(Dtype::I32, 0)) : value);
}

/// Products and sums are in f32, whatever the operands are.
void Emitter::dot(const Op& op) {
  const Kind kind = resultKind(op);
  Dtype meeting = promote(this->kind(op, 0).dtype, this->kind(op, 1).dtype);
  if (!isFloat(meeting))
    meeting = Dtype::F32;
  Expr *lhs = operand(op, 0, {meeting}), *rhs = operand(op, 1, {meeting});
  Kind sum = kind;
  sum.dtype = Dtype::F32;
  Variable* acc = b_.let("acc" + std::to_string(op.result), operand(op, 2, sum), true);
  b_.addAssign(b_.read(acc), b_.dot(lhs, rhs, Scalar::F32));
  define(op, b_.cast(b_.read(acc), scalarOf(kind.dtype)));
}

/// Of the rows or the columns of a tile. Operands: tile, dimension.
void Emitter::tileReduce(const Op& op) {
  const Kind result = resultKind(op);
  const bool isSum = op.name == "tile_sum", isMask = result.dtype == Dtype::Bool;
  Kind input = kind(op, 0);
  input.dtype = isMask                                                                 ? Dtype::I32
                : isSum && (result.dtype == Dtype::F16 || result.dtype == Dtype::BF16) ? Dtype::F32  // rounded once
                                                                                       : result.dtype;
  Expr* value = b_.read(b_.let("in" + std::to_string(op.result), operand(op, 0, input)));
  Expr* reduced = b_.reduce(isSum                   ? lang::Builtin::ReduceSum
                            : op.name == "tile_max" ? lang::Builtin::ReduceMax
                                                    : lang::Builtin::ReduceMin,
                            value, op.operands[1].number);
  if (!isMask)
    return define(op, b_.cast(reduced, scalarOf(result.dtype)));
  Expr* total = b_.read(b_.let("total" + std::to_string(op.result), reduced));
  define(op, b_.binary(lang::BinaryOp::Ne, total, b_.zeros(Scalar::I32, result.rows, result.columns)));
}

/// Operands: memory, offset, value, mask. What is the same for all lanes of the block is done once, by its first lane.
void Emitter::atomic(const Op& op) {
  const Kind result = resultKind(op);
  const lang::Builtin builtin = op.name == "atomic_add"   ? lang::Builtin::AtomicAdd
                                : op.name == "atomic_max" ? lang::Builtin::AtomicMax
                                                          : lang::Builtin::AtomicMin;
  const bool isOnce = variation(op) == Variation::None;
  const std::string suffix = std::to_string(op.result);
  Expr* at = b_.read(b_.let("at" + suffix, index(op, 1)));
  Expr* added = b_.read(b_.let("with" + suffix, operand(op, 2, {result.dtype})));
  Validity valid = validOf(op.operands[1]);
  Expr* condition = nullptr;
  if (has(op, 3)) {
    Variable* mask = b_.let("mask" + suffix, operand(op, 3, {Dtype::Bool}));
    merge(valid, validOf(op.operands[3]));
    merge(valid, {mask});
    condition = b_.read(mask);
  }
  if (isOnce) {
    Expr* isFirst = b_.binary(lang::BinaryOp::Eq, position(lang::Builtin::ThreadLocalId), b_.integer(Scalar::I64, 0));
    condition = condition ? b_.binary(lang::BinaryOp::And, isFirst, condition) : isFirst;
  }
  Variable* before = b_.let("v" + suffix, constant(result.dtype, 0), true);
  if (condition)
    b_.openIf(condition);
  b_.assign(b_.read(before), b_.atomic(builtin, element(memory(op.operands[0]), at), added));
  if (condition)
    b_.close();
  if (isOnce && trace_.threads > 1 && isUsed(op.result)) {  // the others have it from the first lane
    Variable* cell = b_.shared("before" + suffix, scalarOf(result.dtype), {1});
    const auto place = [&] { return b_.element(cell, b_.integer(Scalar::I64, 0)); };
    b_.openIf(b_.binary(lang::BinaryOp::Eq, position(lang::Builtin::ThreadLocalId), b_.integer(Scalar::I64, 0)));
    b_.assign(place(), b_.read(before));
    b_.close();
    barrier();
    b_.assign(b_.read(before), place());
    barrier();
  }
  values_[static_cast<size_t>(op.result)] = {before, std::move(valid)};
}

bool Emitter::isUsed(int64_t id) const {
  for (const Op& op : trace_.ops)
    for (const Operand& operand : op.operands)
      if (operand.kind == Operand::Kind::Value && operand.number == id)
        return true;
  return false;
}

}  // namespace vortex::metile
