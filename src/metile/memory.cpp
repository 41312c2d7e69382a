// Loads, stores and products of tiles.
#include "metile/emitter.h"

namespace vortex::metile {

using lang::Scalar;

Emitter::Variable* Emitter::memory(const Operand& pointer) {
  return pointer.kind == Operand::Kind::Param ? params_[static_cast<size_t>(pointer.number)]
                                              : values_[static_cast<size_t>(pointer.number)].variable;
}

/// Lanes that are masked off touch no memory, hold 0 and are invalid.
void Emitter::load(const Op& op) {
  Variable* from = memory(op.operands[0]);
  Expr* at = index(op, 1);
  Validity valid = validOf(op.operands[1]);
  if (!has(op, 2))
    return define(op, b_.element(from, at), std::move(valid));
  Variable* mask = b_.let("mask" + std::to_string(op.result), operand(op, 2, {Dtype::Bool}));
  Variable* value = b_.let("v" + std::to_string(op.result), constant(resultKind(op).dtype, 0), true);
  b_.openIf(b_.read(mask));
  b_.assign(b_.read(value), b_.element(from, at));
  b_.close();
  merge(valid, {mask});
  values_[static_cast<size_t>(op.result)] = {value, std::move(valid)};
}

void Emitter::store(const Op& op) {
  Variable* to = memory(op.operands[0]);
  Expr* target = b_.element(to, index(op, 1));
  const Scalar element = target->type->scalar;
  Expr* value = has(op, 2) && op.operands[2].kind == Operand::Kind::Value
                    ? b_.cast(b_.read(values_[static_cast<size_t>(op.operands[2].number)].variable), element)
                    : nullptr;
  if (!value)
    value = lang::isFloat(element) ? b_.real(element, op.operands[2].kind == Operand::Kind::Float
                                                          ? op.operands[2].real
                                                          : static_cast<double>(op.operands[2].number))
                                   : b_.integer(element, op.operands[2].kind == Operand::Kind::Float
                                                             ? static_cast<int64_t>(op.operands[2].real)
                                                             : op.operands[2].number);
  if (!has(op, 3))
    return b_.assign(target, value);
  b_.openIf(operand(op, 3, {Dtype::Bool}));
  b_.assign(target, value);
  b_.close();
}

/// Operands: matrix, row, column, rows, columns. Elements outside the matrix are 0.
void Emitter::tileLoad(const Op& op) {
  define(op,
         b_.window(memory(op.operands[0]), index(op, 1), op.operands[3].number, index(op, 2), op.operands[4].number));
}

/// Operands: matrix, row, column, value, rows, columns.
void Emitter::tileStore(const Op& op) {
  const int64_t rows = op.operands[4].number, columns = op.operands[5].number;
  Expr* target = b_.window(memory(op.operands[0]), index(op, 1), rows, index(op, 2), columns);
  Kind kind = this->kind(op, 3);
  kind.rows = rows, kind.columns = columns;
  b_.assign(target, b_.cast(operand(op, 3, kind), lang::scalarOf(target->type)));
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

}  // namespace vortex::metile
