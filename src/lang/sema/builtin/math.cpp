// Elementwise functions on scalars and tensors.
#include "lang/sema/builtin/table.h"

#include "base/text.h"

#include <bit>

namespace vortex::lang {
namespace {

Type elementOf(const Expr* expr) {
  Type elem = expr->type->isTensor() ? expr->type->elem : expr->type;
  return elem->kind == TypeKind::Scalar ? elem : nullptr;
}

/// All arguments with one element type: those with a type of their own decide for plain numbers. False after an error.
bool uniformArgs(BuiltinCall& call, size_t count, Type expected, std::vector<Expr*>& args) {
  args.assign(count, nullptr);
  Type hint = nullptr;
  for (size_t i = 0; i < count; ++i)
    if (!call.isUntyped(i)) {
      args[i] = call.arg(i, expected);
      if (Checker::isError(args[i]))
        return false;
      if (!hint || args[i]->type->isTensor())
        hint = args[i]->type;
    }
  for (size_t i = 0; i < count; ++i)
    if (!args[i]) {
      args[i] = call.arg(i, hint ? hint : expected);
      if (Checker::isError(args[i]))
        return false;
    }
  const bool isFloat = call.row.check == checkFloatMath || call.row.check == checkFloatTest;
  const bool isInteger = call.row.check == checkIntegerMath;
  const BuiltinTrait needed = isFloat ? BuiltinTrait::Float : isInteger ? BuiltinTrait::Integer : BuiltinTrait::Numeric;
  for (Expr* arg : args) {
    if (!call.c.grants(arg->type, {needed}, call.nameRange, base::concat("`", call.row.name, "`")))
      return false;
    if (!elementOf(arg)) {
      call.wrongArg(arg, "numbers");
      return false;
    }
  }
  return true;
}

bool unifyAll(BuiltinCall& call, std::vector<Expr*>& args) {
  // Twice: a later argument may widen an earlier one.
  for (int pass = 0; pass < 2; ++pass)
    for (size_t i = 1; i < args.size(); ++i)
      if (!call.c.unify(args[i - 1], args[i], call.row.name, call.range()))
        return false;
  bool anyTensor = false;
  for (const Expr* arg : args)
    anyTensor = anyTensor || arg->type->isTensor();
  if (!anyTensor)
    return true;
  if (!call.c.inKernel()) {
    call.c.hostTensorArithmetic(call.range());
    return false;
  }
  return call.c.broadcast(args, call.row.name, call.range());
}

Expr* finish(BuiltinCall& call, std::vector<Expr*> args, Type elem = nullptr) {
  Type type = call.c.valueOf(args.back()->type);
  if (elem)
    type = call.c.withElem(type, elem);
  return call.c.makeBuiltin(call.row.id, type, call.range(), std::move(args));
}

size_t argCount(const BuiltinCall& call) { return std::max(call.placed.size(), call.receiver ? size_t{1} : size_t{0}); }

}  // namespace

Expr* checkFloatMath(BuiltinCall& call) {
  Checker& c = call.c;
  std::vector<Expr*> args;
  Type f32 = c.types.scalar(Scalar::F32);
  bool allFree = true;
  for (size_t i = 0; i < argCount(call); ++i)
    allFree = allFree && call.isUntyped(i);
  Type hint =
      call.expected && (call.expected->isTensor() || call.expected->kind == TypeKind::Scalar) ? call.expected : nullptr;
  if (allFree && !(hint && elementOf(c.make(ExprKind::Unit, hint, call.range())) &&
                   isFloat((hint->isTensor() ? hint->elem : hint)->scalar)))
    hint = f32;
  if (!uniformArgs(call, argCount(call), hint, args))
    return call.failed();
  // Functions of integers compute in f32, unless a float decides.
  Type floatType = nullptr;
  for (const Expr* arg : args)
    if (isFloat(elementOf(arg)->scalar) && (!floatType || arg->type->isTensor()))
      floatType = elementOf(arg);
  for (Expr*& arg : args) {
    if (elementOf(arg)->scalar == Scalar::Bool)
      return call.wrongArg(arg, "numbers");
    if (isInteger(elementOf(arg)->scalar))
      arg = c.cast(arg, c.withElem(arg->type, floatType ? floatType : f32));
  }
  return unifyAll(call, args) ? finish(call, std::move(args)) : call.failed();
}

Expr* checkNumericMath(BuiltinCall& call) {
  std::vector<Expr*> args;
  if (!uniformArgs(call, argCount(call), call.expected, args) || !unifyAll(call, args))
    return call.failed();
  if (elementOf(args[0])->scalar == Scalar::Bool)
    return call.wrongArg(args[0], "numbers");
  return finish(call, std::move(args));
}

Expr* checkIntegerMath(BuiltinCall& call) {
  std::vector<Expr*> args;
  if (!uniformArgs(call, argCount(call), call.expected, args) || !unifyAll(call, args))
    return call.failed();
  for (const Expr* arg : args)
    if (!isInteger(elementOf(arg)->scalar))
      return call.wrongArg(arg, "integers");
  return finish(call, std::move(args));
}

Expr* checkFloatTest(BuiltinCall& call) {
  std::vector<Expr*> args;
  if (!uniformArgs(call, 1, nullptr, args) || !unifyAll(call, args))
    return call.failed();
  if (!isFloat(elementOf(args[0])->scalar))
    return call.wrongArg(args[0], "a float");
  if (args[0]->type->isTensor() && !call.c.inKernel()) {
    call.c.hostTensorArithmetic(call.range());
    return call.failed();
  }
  return finish(call, std::move(args), call.c.types.boolean());
}

namespace {

/// The unsigned integer of a float's width.
Type bitsOf(Checker& c, Scalar type) {
  constexpr Scalar kBits[] = {Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64};
  return c.types.scalar(kBits[std::countr_zero(bitWidth(type)) - 3]);
}

/// In a generic definition the width of a float is not known.
bool hasWidth(BuiltinCall& call, Type type) {
  if (!type->param)
    return true;
  call.c.error("E0350", call.nameRange, base::concat("`", call.row.name, "` needs a float type, not a parameter"))
      .help("the number of bits follows from the type: `f32`, `f64`");
  return false;
}

}  // namespace

Expr* checkToBits(BuiltinCall& call) {
  std::vector<Expr*> args{call.arg(0)};
  const Type elem = Checker::isError(args[0]) ? nullptr : elementOf(args[0]);
  if (!elem || !isFloat(elem->scalar))
    return call.wrongArg(args[0], "a float");
  return hasWidth(call, elem) && unifyAll(call, args) ? finish(call, std::move(args), bitsOf(call.c, elem->scalar))
                                                      : call.failed();
}

/// `f32.from_bits(n)`: the expected type is the one in front.
Expr* checkFromBits(BuiltinCall& call) {
  Checker& c = call.c;
  Type to = call.expected && call.expected->isTensor() ? call.expected->elem : call.expected;
  if (call.generics.size() == 1 && call.generics[0].type)
    to = c.resolveType(call.generics[0].type, DimPolicy::Known);
  if (to && Checker::isError(to))
    return call.failed();
  if (!to || to->kind != TypeKind::Scalar || !isFloat(to->scalar)) {
    c.error("E0306", call.nameRange, "nothing here says which float the bits are")
        .help("write the type in front: `f32.from_bits(n)`");
    return call.failed();
  }
  if (!hasWidth(call, to))
    return call.failed();
  const Type bits = bitsOf(c, to->scalar);
  Expr* value = call.arg(0, bits);
  if (Checker::isError(value))
    return call.failed();
  if (!elementOf(value) || !isInteger(elementOf(value)->scalar))
    return call.wrongArg(value, base::concat("`", c.text(bits), "`"));
  value = value->type->isTensor() ? value : c.convert(value, bits, Site::Argument);
  if (Checker::isError(value))
    return call.failed();
  if (elementOf(value) != bits)
    return call.wrongArg(value, base::concat("elements of `", c.text(bits), "`"));
  std::vector<Expr*> args{value};
  return unifyAll(call, args) ? finish(call, std::move(args), to) : call.failed();
}

Expr* checkMinMax(BuiltinCall& call) {
  if (!call.has(1))
    return checkReduction(call);
  if (call.has(2) || call.has(3)) {
    call.c.error("E0308", call.range(), base::concat("`", call.row.name, "` of two values takes no `dim`"));
    return call.failed();
  }
  std::vector<Expr*> args;
  if (!uniformArgs(call, 2, call.expected, args) || !unifyAll(call, args))
    return call.failed();
  if (elementOf(args[0])->scalar == Scalar::Bool)
    return call.wrongArg(args[0], "numbers");
  return finish(call, std::move(args));
}

Expr* checkSelect(BuiltinCall& call) {
  Checker& c = call.c;
  Expr* condition = call.arg(0);
  if (Checker::isError(condition) || !elementOf(condition) || elementOf(condition)->scalar != Scalar::Bool)
    return call.wrongArg(condition, "a condition");
  const bool swap = call.isUntyped(1) && !call.isUntyped(2);
  Expr* first = call.arg(swap ? 2 : 1, call.expected);
  if (Checker::isError(first))
    return call.failed();
  Expr* second = call.arg(swap ? 1 : 2, call.isUntyped(swap ? 1 : 2) ? first->type : call.expected);
  if (Checker::isError(second))
    return call.failed();
  std::vector<Expr*> args{condition, swap ? second : first, swap ? first : second};
  if (!elementOf(args[1]) || !elementOf(args[2]))
    return call.wrongArg(elementOf(args[1]) ? args[2] : args[1], "numbers");
  if (!c.unify(args[1], args[2], "select", call.range()))
    return call.failed();
  bool anyTensor = false;
  for (const Expr* arg : args)
    anyTensor = anyTensor || arg->type->isTensor();
  if (anyTensor && !c.inKernel()) {
    c.hostTensorArithmetic(call.range());
    return call.failed();
  }
  if (anyTensor && !c.broadcast(args, "select", call.range()))
    return call.failed();
  return finish(call, std::move(args));
}

}  // namespace vortex::lang
