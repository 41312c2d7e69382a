// Arithmetic and elementwise functions.
#include "metile/emitter.h"

#include <array>
#include <optional>

namespace vortex::metile {

using lang::BinaryOp;
using lang::Builtin;
using lang::Scalar;

static std::optional<BinaryOp> operatorNamed(std::string_view name) {
  constexpr std::pair<std::string_view, BinaryOp> kOperators[] = {
      {"add", BinaryOp::Add}, {"sub", BinaryOp::Sub},    {"mul", BinaryOp::Mul},  {"div", BinaryOp::Div},
      {"rem", BinaryOp::Rem}, {"and", BinaryOp::BitAnd}, {"or", BinaryOp::BitOr}, {"xor", BinaryOp::BitXor},
      {"shl", BinaryOp::Shl}, {"shr", BinaryOp::Shr},    {"eq", BinaryOp::Eq},    {"ne", BinaryOp::Ne},
      {"lt", BinaryOp::Lt},   {"le", BinaryOp::Le},      {"gt", BinaryOp::Gt},    {"ge", BinaryOp::Ge},
      {"pow", BinaryOp::Pow}};
  for (const auto& [known, op] : kOperators)
    if (known == name)
      return op;
  return std::nullopt;
}

/// As in C: hashes and index arithmetic rely on it.
Emitter::Expr* Emitter::wrapping(Expr* value) {
  value->mayWrap = true;
  return value;
}

Emitter::Expr* Emitter::position(Builtin builtin, std::vector<int64_t> ints) {
  return b_.cast(b_.builtin(builtin, b_.types().scalar(Scalar::Usize), {}, std::move(ints)), Scalar::I64);
}

Emitter::Expr* Emitter::binary(const Op& op) {
  const std::optional<BinaryOp> known = operatorNamed(op.name);
  if (!known)
    return nullptr;
  BinaryOp operation = *known;
  Kind meeting = resultKind(op);
  if (meeting.dtype == Dtype::Bool && operation >= BinaryOp::Eq) {  // a comparison of what its sides have in common
    meeting.dtype = promote(kind(op, 0).dtype, kind(op, 1).dtype);
    if (meeting.dtype == Dtype::Bool)
      meeting.dtype = Dtype::I32;
  }
  Expr *lhs = operand(op, 0, meeting), *rhs = operand(op, 1, meeting);
  if (operation == BinaryOp::Pow && isFloat(meeting.dtype))
    return b_.elementwise(Builtin::Pow, {lhs, rhs});
  if (meeting.dtype == Dtype::Bool) {
    if (operation == BinaryOp::BitXor)
      return b_.binary(BinaryOp::Ne, lhs, rhs);
    operation = operation == BinaryOp::BitAnd ? BinaryOp::And : operation == BinaryOp::BitOr ? BinaryOp::Or : operation;
  }
  return wrapping(b_.binary(operation, lhs, rhs));
}

Emitter::Expr* Emitter::function(const Op& op) {
  const Kind kind = resultKind(op);
  const std::string& name = op.name;
  const auto call = [&](Builtin builtin) {
    std::vector<Expr*> args;
    for (size_t i = 0; i < op.operands.size(); ++i)
      args.push_back(operand(op, i, kind));
    return b_.elementwise(builtin, std::move(args));
  };
  constexpr std::pair<std::string_view, Builtin> kFunctions[] = {
#define VORTEX_FLOAT_NAME(id, name, ...) {name, Builtin::id},
      VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_NAME)
#undef VORTEX_FLOAT_NAME
          {"abs", Builtin::Abs},
      {"maximum", Builtin::Max},
      {"minimum", Builtin::Min}};
  for (const auto& [known, builtin] : kFunctions)
    if (known == name)
      return call(builtin);
  if (name == "neg")
    return wrapping(b_.unary(lang::UnaryOp::Neg, operand(op, 0, kind)));
  if (name == "not")
    return b_.unary(lang::UnaryOp::Not, operand(op, 0, kind));
  if (name == "reverse_bits")
    return reverseBits(operand(op, 0, {Dtype::U32, kind.rows, kind.columns}), kind);
  sink_.error("E0713", op.range, "`" + name + "` is no operation of metile");
  return constant(kind.dtype, 0);
}

/// Neighbouring bits, pairs, nibbles, bytes and halves change places.
Emitter::Expr* Emitter::reverseBits(Expr* value, const Kind& like) {
  constexpr std::array<std::pair<uint32_t, uint32_t>, 5> kSteps = {
      {{1, 0x55555555}, {2, 0x33333333}, {4, 0x0f0f0f0f}, {8, 0x00ff00ff}, {16, 0x0000ffff}}};
  const auto number = [&](uint32_t bits) {
    Expr* constant = b_.integer(Scalar::U32, bits);
    return like.isTile() ? b_.broadcast(constant, like.rows, like.columns) : constant;
  };
  for (const auto& [distance, mask] : kSteps) {
    Variable* bits = b_.let("bits" + std::to_string(names_++), value);
    Expr* up = b_.binary(BinaryOp::Shl, b_.binary(BinaryOp::BitAnd, b_.read(bits), number(mask)), number(distance));
    Expr* down = b_.binary(BinaryOp::BitAnd, b_.binary(BinaryOp::Shr, b_.read(bits), number(distance)), number(mask));
    value = b_.binary(BinaryOp::BitOr, up, down);
  }
  return value;
}

/// A lane is as valid as the side that it takes.
void Emitter::where(const Op& op) {
  const Kind kind = resultKind(op);
  const Kind choice{Dtype::Bool, kind.rows, kind.columns};
  Expr* condition = operand(op, 0, choice);
  Validity valid = validOf(op.operands[0]);
  const Validity &then = validOf(op.operands[1]), &otherwise = validOf(op.operands[2]);
  if (then == otherwise)
    merge(valid, then);
  else
    valid.push_back(b_.let("valid" + std::to_string(op.result),
                           b_.select(operand(op, 0, {Dtype::Bool}), allOf(then), allOf(otherwise))));
  define(op, b_.select(condition, operand(op, 1, kind), operand(op, 2, kind)), std::move(valid));
}

}  // namespace vortex::metile
