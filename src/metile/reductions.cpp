// Reductions over the block and operations of a simdgroup.
#include "metile/emitter.h"

#include "base/check.h"

#include <cmath>
#include <limits>

namespace vortex::metile {

using lang::BinaryOp;
using lang::Builtin;
using lang::Scalar;

void Emitter::barrier() { b_.run(b_.builtin(Builtin::SyncBlock, b_.types().unit(), {})); }

Emitter::Expr* Emitter::combine(const std::string& name, Expr* lhs, Expr* rhs) {
  if (name == "sum")
    return wrapping(b_.binary(BinaryOp::Add, lhs, rhs));
  return b_.elementwise(name == "max" ? Builtin::Max : Builtin::Min, {lhs, rhs});
}

Emitter::Expr* Emitter::identity(const std::string& name, Dtype dtype) {
  if (name == "sum")
    return constant(dtype, 0);
  if (isFloat(dtype))
    return constant(dtype,
                    name == "max" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  const Scalar type = scalarOf(dtype);
  const auto bits = static_cast<int>(lang::bitWidth(type));
  const bool isUnsigned = lang::isUnsigned(type);
  const __int128 highest = (static_cast<__int128>(1) << (isUnsigned ? bits : bits - 1)) - 1;
  return b_.integer(type, name == "min" ? highest : isUnsigned ? 0 : -highest - 1);
}

/// Each simdgroup reduces what its lanes hold, its first lane stores that, and after a barrier the block reads all of these in order. Blocks
/// that are no multiple of 32 store every lane's value instead.
void Emitter::blockReduce(const Op& op) {
  const std::string& name = op.name;
  const Kind result = resultKind(op);
  if (result.isTile()) {
    sink_.error("E0713", op.range, "`" + name + "` reduces one value of each thread, not a 2-D tile")
        .primary("of a tile");
    return define(op, operand(op, 0, result), {});
  }
  const bool isMask = result.dtype == Dtype::Bool;
  const Dtype dtype = isMask                                                      ? Dtype::I32
                      : result.dtype == Dtype::F16 || result.dtype == Dtype::BF16 ? Dtype::F32  // rounded once
                                                                                  : result.dtype;
  const auto ofResult = [&](Expr* reduced) {
    return isMask ? b_.binary(BinaryOp::Ne, reduced, constant(dtype, 0)) : b_.cast(reduced, scalarOf(result.dtype));
  };
  const auto ofNone = [&] { return isMask ? constant(dtype, name == "min") : identity(name, dtype); };
  Expr* value = operand(op, 0, {dtype});
  if (const Validity& valid = validOf(op.operands[0]); !valid.empty())
    value = b_.select(allOf(valid), value, ofNone());
  if (trace_.threads == 1)
    return define(op, ofResult(value), {});
  const bool byWarps = trace_.threads % 32 == 0 && dtype != Dtype::U8 && dtype != Dtype::Index;
  const int64_t parts = byWarps ? trace_.threads / 32 : trace_.threads;
  const std::string suffix = std::to_string(names_++);
  Variable* memory = b_.shared("parts" + suffix, scalarOf(dtype), {parts});
  if (byWarps) {
    const Builtin builtin = name == "sum" ? Builtin::WarpSum : name == "max" ? Builtin::WarpMax : Builtin::WarpMin;
    Variable* part = b_.let("part" + suffix, b_.builtin(builtin, value->type, {value}));
    b_.openIf(b_.binary(BinaryOp::Eq, position(Builtin::LaneId), b_.integer(Scalar::I64, 0)));
    b_.assign(b_.element(memory, position(Builtin::WarpId)), b_.read(part));
    b_.close();
  } else {
    b_.assign(b_.element(memory, position(Builtin::ThreadLocalId)), value);
  }
  barrier();
  Variable* total = b_.let("total" + suffix, ofNone(), true);
  const auto number = [&](int64_t count) { return b_.integer(Scalar::I64, count); };
  Variable* at = b_.openFor("p" + suffix, number(0), number(parts), number(1));
  b_.assign(b_.read(total), combine(name, b_.read(total), b_.element(memory, b_.read(at))));
  b_.close();
  barrier();
  define(op, ofResult(b_.read(total)), {});
}

void Emitter::warp(const Op& op) {
  const Kind result = resultKind(op);
  const bool isNarrow = result.dtype == Dtype::F16 || result.dtype == Dtype::BF16;
  Expr* value = operand(op, 0, {isNarrow ? Dtype::F32 : result.dtype});
  const std::string name = op.name.substr(5);
  std::vector<Expr*> args;
  if (name == "sum" || name == "max") {
    if (const Validity& valid = validOf(op.operands[0]); !valid.empty())
      value = b_.select(allOf(valid), value, identity(name, isNarrow ? Dtype::F32 : result.dtype));
    args = {value};
  } else {
    args = {value, operand(op, 1, {Dtype::U32})};
  }
  const Builtin builtin = name == "sum"           ? Builtin::WarpSum
                          : name == "max"         ? Builtin::WarpMax
                          : name == "shuffle_xor" ? Builtin::ShuffleXor
                                                  : Builtin::ShuffleIndex;
  const lang::Type type = value->type;
  define(op, b_.cast(b_.builtin(builtin, type, std::move(args)), scalarOf(result.dtype)),
         name == "sum" || name == "max" ? Validity{} : validOf(op));
}

}  // namespace vortex::metile
