// Elementwise functions on scalars and tensors.
#include "lang/sema/builtin/math.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/builtin/tensor.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>
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
      if (isError(args[i]))
        return false;
      if (!hint || args[i]->type->isTensor())
        hint = args[i]->type;
    }
  if (!hint && !expected && count <= call.placed.size())
    hint = defaultOf(call.body, std::span(call.placed).first(count));
  for (size_t i = 0; i < count; ++i)
    if (!args[i]) {
      args[i] = call.arg(i, hint ? hint : expected);
      if (isError(args[i]))
        return false;
    }
  const bool isFloat = call.row.check == checkFloatMath || call.row.check == checkFloatTest;
  const bool isInteger = call.row.check == checkIntegerMath;
  const BuiltinTrait needed = isFloat ? BuiltinTrait::Float : isInteger ? BuiltinTrait::Integer : BuiltinTrait::Numeric;
  for (Expr* arg : args) {
    if (!grants(call.body, arg->type, {needed}, call.nameRange, base::concat("`", call.row.name, "`")))
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
      if (!unify(call.body, args[i - 1], args[i], call.row.name, call.range()))
        return false;
  bool anyTensor = false;
  for (const Expr* arg : args)
    anyTensor = anyTensor || arg->type->isTensor();
  if (!anyTensor)
    return true;
  if (!inKernel(call.body)) {
    hostTensorArithmetic(call.body, call.range());
    return false;
  }
  return broadcast(call.body, args, call.row.name, call.range());
}

Expr* finish(BuiltinCall& call, std::vector<Expr*> args, Type elem = nullptr) {
  Type type = valueOf(call.body, args.back()->type);
  if (elem)
    type = withElem(call.body, type, elem);
  return makeBuiltin(call.body, call.row.id, type, call.range(), std::move(args));
}

size_t argCount(const BuiltinCall& call) { return std::max(call.placed.size(), call.receiver ? size_t{1} : size_t{0}); }

}  // namespace

Expr* checkFloatMath(BuiltinCall& call) {
  BodyState& body = call.body;
  std::vector<Expr*> args;
  Type f32 = body.types.scalar(Scalar::F32);
  bool allFree = true;
  for (size_t i = 0; i < argCount(call); ++i)
    allFree = allFree && call.isUntyped(i);
  Type hint =
      call.expected && (call.expected->isTensor() || call.expected->kind == TypeKind::Scalar) ? call.expected : nullptr;
  if (allFree && !(hint && elementOf(make(body, ExprKind::Unit, hint, call.range())) &&
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
      arg = cast(body, arg, withElem(body, arg->type, floatType ? floatType : f32));
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
  if (args[0]->type->isTensor() && !inKernel(call.body)) {
    hostTensorArithmetic(call.body, call.range());
    return call.failed();
  }
  return finish(call, std::move(args), call.body.types.boolean());
}

namespace {

/// The unsigned integer of a float's width.
Type bitsOf(BodyState& body, Scalar type) {
  constexpr Scalar kBits[] = {Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64};
  return body.types.scalar(kBits[std::countr_zero(bitWidth(type)) - 3]);
}

/// In a generic definition the width of a float is not known.
bool hasWidth(BuiltinCall& call, Type type) {
  if (!type->param)
    return true;
  error(call.body, "E0350", call.nameRange, base::concat("`", call.row.name, "` needs a float type, not a parameter"))
      .help("the number of bits follows from the type: `f32`, `f64`");
  return false;
}

}  // namespace

Expr* checkToBits(BuiltinCall& call) {
  std::vector<Expr*> args{call.arg(0)};
  const Type elem = isError(args[0]) ? nullptr : elementOf(args[0]);
  if (!elem || !isFloat(elem->scalar))
    return call.wrongArg(args[0], "a float");
  return hasWidth(call, elem) && unifyAll(call, args) ? finish(call, std::move(args), bitsOf(call.body, elem->scalar))
                                                      : call.failed();
}

/// `f32.from_bits(n)`: the expected type is the one in front.
Expr* checkFromBits(BuiltinCall& call) {
  BodyState& body = call.body;
  Type to = call.expected && call.expected->isTensor() ? call.expected->elem : call.expected;
  if (call.generics.size() == 1 && call.generics[0].type)
    to = resolveType(body, call.generics[0].type, DimPolicy::Known);
  if (to && isError(to))
    return call.failed();
  if (!to || to->kind != TypeKind::Scalar || !isFloat(to->scalar)) {
    error(body, "E0306", call.nameRange, "nothing here says which float the bits are")
        .help("write the type in front: `f32.from_bits(n)`");
    return call.failed();
  }
  if (!hasWidth(call, to))
    return call.failed();
  const Type bits = bitsOf(body, to->scalar);
  Expr* value = call.arg(0, bits);
  if (isError(value))
    return call.failed();
  if (!elementOf(value) || !isInteger(elementOf(value)->scalar))
    return call.wrongArg(value, base::concat("`", text(body, bits), "`"));
  value = value->type->isTensor() ? value : convert(body, value, bits, Site::Argument);
  if (isError(value))
    return call.failed();
  if (elementOf(value) != bits)
    return call.wrongArg(value, base::concat("elements of `", text(body, bits), "`"));
  std::vector<Expr*> args{value};
  return unifyAll(call, args) ? finish(call, std::move(args), to) : call.failed();
}

Expr* checkMinMax(BuiltinCall& call) {
  if (!call.has(1))
    return checkReduction(call);
  if (call.has(2) || call.has(3)) {
    error(call.body, "E0308", call.range(),
          base::concat("`", call.row.name, "` compares with a value, or reduces along `dim = …`"));
    return call.failed();
  }
  std::vector<Expr*> args;
  if (!uniformArgs(call, 2, call.expected, args))
    return call.failed();
  // Dimensions are constants: such a number could be one, as it is in `x.sum(0)`.
  const syn::Arg& other = call.call->args.back();
  const bool isConstant = call.isUntyped(1) ? !isUntypedFloat(call.body, other.value) : args[1]->kind == ExprKind::Int;
  if (call.receiver && args[0]->type->isTensor() && isConstant && !other.name.isPresent()) {
    const auto name = call.row.name, number = call.body.session.sources.text(other.value->range);
    error(call.body, "E0309", other.value->range,
          base::concat("is `", number, "` a dimension, or a number that each element is compared with?"))
        .help(base::concat("along a dimension: `.", name, "(dim = ", number, ")`; element by element: `", name, "(…, ",
                           number, ")`"));
    return call.failed();
  }
  if (!unifyAll(call, args))
    return call.failed();
  if (elementOf(args[0])->scalar == Scalar::Bool)
    return call.wrongArg(args[0], "numbers");
  return finish(call, std::move(args));
}

Expr* checkSelect(BuiltinCall& call) {
  BodyState& body = call.body;
  Expr* condition = call.arg(0);
  if (isError(condition) || !elementOf(condition) || elementOf(condition)->scalar != Scalar::Bool)
    return call.wrongArg(condition, "a condition");
  const bool swap = call.isUntyped(1) && !call.isUntyped(2);
  const Type plain = call.expected ? call.expected : defaultOf(body, std::span(call.placed).subspan(1));
  Expr* first = call.arg(swap ? 2 : 1, plain);
  if (isError(first))
    return call.failed();
  Expr* second = call.arg(swap ? 1 : 2, call.isUntyped(swap ? 1 : 2) ? first->type : call.expected);
  if (isError(second))
    return call.failed();
  std::vector<Expr*> args{condition, swap ? second : first, swap ? first : second};
  if (!elementOf(args[1]) || !elementOf(args[2]))
    return call.wrongArg(elementOf(args[1]) ? args[2] : args[1], "numbers");
  if (!unify(body, args[1], args[2], "select", call.range()))
    return call.failed();
  bool anyTensor = false;
  for (const Expr* arg : args)
    anyTensor = anyTensor || arg->type->isTensor();
  if (anyTensor && !inKernel(body)) {
    hostTensorArithmetic(body, call.range());
    return call.failed();
  }
  if (anyTensor && !broadcast(body, args, "select", call.range()))
    return call.failed();
  return finish(call, std::move(args));
}

}  // namespace vortex::lang
