// Dispatch over expression kinds, and the small ones.
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/calls/calls.h"
#include "lang/sema/check/calls/members.h"
#include "lang/sema/check/exprs/assign.h"
#include "lang/sema/check/exprs/control.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/exprs/match.h"
#include "lang/sema/check/exprs/name_expr.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/exprs/structs.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static Expr* checkString(BodyState& body, const syn::StringExpr* expr);
static Expr* checkTuple(BodyState& body, const syn::TupleExpr* expr, Type expected);
static Expr* checkTupleMember(BodyState& body, const syn::TupleMemberExpr* expr);
static Expr* checkRef(BodyState& body, const syn::RefExpr* expr, Type expected);
static Expr* checkRange(BodyState& body, const syn::RangeExpr* expr, Type expected);
static Expr* checkCast(BodyState& body, const syn::CastExpr* expr);

Expr* check(BodyState& body, const syn::Expr* expr, Type expected) {
  const bool isStatement = expected && expected->kind == TypeKind::Unit;
  if (isStatement || (expected && isError(expected)))
    switch (expr->kind) {
    case syn::ExprKind::Block:
    case syn::ExprKind::If:
    case syn::ExprKind::Match:
    case syn::ExprKind::Loop: break;  // their parts must know that the value is not wanted
    case syn::ExprKind::Call:
      if (isStatement)
        expected = nullptr;
      break;  // what makes a value of the wanted type must know that it was wrong
    default: expected = nullptr;
    }
  switch (expr->kind) {
  case syn::ExprKind::Error: return errorExpr(body, expr->range);
  case syn::ExprKind::Int: return checkInt(body, expr->as<syn::IntExpr>(), expected, false);
  case syn::ExprKind::Float: return checkFloat(body, expr->as<syn::FloatExpr>(), expected, false);
  case syn::ExprKind::Bool: return makeInt(body, expr->as<syn::BoolExpr>()->value, body.types.boolean(), expr->range);
  case syn::ExprKind::String: return checkString(body, expr->as<syn::StringExpr>());
  case syn::ExprKind::Name: return checkName(body, expr->as<syn::NameExpr>(), expected);
  case syn::ExprKind::DotName: return checkDotName(body, expr->as<syn::DotNameExpr>(), expected);
  case syn::ExprKind::FullSlice: break;  // stands in an index only
  case syn::ExprKind::Array: return checkArray(body, expr->as<syn::ArrayExpr>(), expected);
  case syn::ExprKind::Tuple: return checkTuple(body, expr->as<syn::TupleExpr>(), expected);
  case syn::ExprKind::Struct: return checkStruct(body, expr->as<syn::StructExpr>(), expected);
  case syn::ExprKind::Unary: return checkUnary(body, expr->as<syn::UnaryExpr>(), expected);
  case syn::ExprKind::Binary: return checkBinary(body, expr->as<syn::BinaryExpr>(), expected);
  case syn::ExprKind::Assign: return checkAssign(body, expr->as<syn::AssignExpr>());
  case syn::ExprKind::Range: return checkRange(body, expr->as<syn::RangeExpr>(), expected);
  case syn::ExprKind::Ref: return checkRef(body, expr->as<syn::RefExpr>(), expected);
  case syn::ExprKind::Cast: return checkCast(body, expr->as<syn::CastExpr>());
  case syn::ExprKind::Call: return checkCall(body, expr->as<syn::CallExpr>(), expected);
  case syn::ExprKind::Index: return checkIndex(body, expr->as<syn::IndexExpr>());
  case syn::ExprKind::Member: return checkMember(body, expr->as<syn::MemberExpr>(), expected);
  case syn::ExprKind::TupleMember: return checkTupleMember(body, expr->as<syn::TupleMemberExpr>());
  case syn::ExprKind::Block: return checkBlock(body, expr->as<syn::BlockExpr>(), expected);
  case syn::ExprKind::If: return checkIf(body, expr->as<syn::IfExpr>(), expected);
  case syn::ExprKind::Match: return checkMatch(body, expr->as<syn::MatchExpr>(), expected);
  case syn::ExprKind::While: return checkWhile(body, expr->as<syn::WhileExpr>());
  case syn::ExprKind::Loop: return checkLoop(body, expr->as<syn::LoopExpr>(), expected);
  case syn::ExprKind::For: return checkFor(body, expr->as<syn::ForExpr>());
  case syn::ExprKind::Break: return checkBreak(body, expr->as<syn::BreakExpr>());
  case syn::ExprKind::Continue: return checkContinue(body, expr->as<syn::ContinueExpr>());
  case syn::ExprKind::Return: return checkReturn(body, expr->as<syn::ReturnExpr>());
  case syn::ExprKind::Closure: return checkClosure(body, expr->as<syn::ClosureExpr>(), expected);
  }
  return errorExpr(body, expr->range);
}

static Expr* checkString(BodyState& body, const syn::StringExpr* expr) {
  Expr* out = make(body, ExprKind::String, body.types.string(), expr->range);
  out->text = std::string(expr->value);
  return out;
}

Expr* deref(BodyState& body, Expr* expr) {
  while (expr->type->kind == TypeKind::Ref)
    expr = make(body, ExprKind::Deref, expr->type->elem, expr->range, {expr});
  return expr;
}

Expr* value(BodyState& body, const syn::Expr* expr, Type expected) {
  Expr* out = deref(body, check(body, expr, expected));
  return spaceGrants(body, out->type, BuiltinTrait::Readable, expr->range, "reading a tensor")
             ? out
             : errorExpr(body, expr->range);
}

static Expr* checkTuple(BodyState& body, const syn::TupleExpr* expr, Type expected) {
  if (expr->elems.empty())
    return unitExpr(body, expr->range);
  const bool hasHint = expected && expected->kind == TypeKind::Tuple && expected->elems.size() == expr->elems.size();
  std::vector<Expr*> elems;
  std::vector<Type> elemTypes;
  for (size_t i = 0; i < expr->elems.size(); ++i) {
    const bool isTold = hasHint && expected->elems[i]->kind != TypeKind::Never;  // see learnType
    Expr* elem = check(body, expr->elems[i], isTold ? expected->elems[i] : nullptr);
    if (isError(elem))
      return errorExpr(body, expr->range);
    elems.push_back(elem);
    elemTypes.push_back(elem->type);
  }
  Type type = body.types.tuple(std::move(elemTypes));
  if (!checkSize(body, type, expr->range))
    return errorExpr(body, expr->range);
  return make(body, ExprKind::MakeTuple, type, expr->range, std::move(elems));
}

static Expr* checkTupleMember(BodyState& body, const syn::TupleMemberExpr* expr) {
  Expr* base = value(body, expr->base);
  if (isError(base))
    return errorExpr(body, expr->range);
  if (base->type->kind != TypeKind::Tuple) {
    error(body, "E0321", expr->indexRange, base::concat("`", text(body, base->type), "` is not a tuple"));
    return errorExpr(body, expr->range);
  }
  if (expr->index >= base->type->elems.size()) {
    error(body, "E0321", expr->indexRange,
          base::concat("this tuple has ", base->type->elems.size(), " elements; there is no `.", expr->index, "`"));
    return errorExpr(body, expr->range);
  }
  Expr* field = make(body, ExprKind::Field, base->type->elems[expr->index], expr->range, {base});
  field->ints = {static_cast<int64_t>(expr->index)};
  return field;
}

static Expr* checkRef(BodyState& body, const syn::RefExpr* expr, Type expected) {
  Type hint = expected && expected->kind == TypeKind::Ref ? expected->elem : expected;
  Expr* operand = check(body, expr->operand, hint);
  if (isError(operand))
    return operand;
  operand = deref(body, operand);
  if (expr->isMutable && !checkWritable(body, operand, expr->range, "borrowed with `&mut`"))
    return errorExpr(body, expr->range);
  return make(body, ExprKind::Ref, body.types.ref(operand->type, expr->isMutable), expr->range, {operand});
}

static Expr* checkRange(BodyState& body, const syn::RangeExpr* expr, Type expected) {
  if (!expr->begin || !expr->end)
    return errorExpr(body, expr->range);  // the parser has said so
  Type hint = expected && expected->kind == TypeKind::Range ? expected->elem : nullptr;
  Expr *begin = nullptr, *end = nullptr;
  if (isUntyped(body, expr->begin) && !isUntyped(body, expr->end)) {
    end = value(body, expr->end, hint);
    begin = value(body, expr->begin, end->type);
  } else {
    begin = value(body, expr->begin, hint);
    end = value(body, expr->end, isUntyped(body, expr->end) ? begin->type : hint);
  }
  return rangeOf(body, begin, end, expr->endIsLength, expr->range);
}

Expr* rangeOf(BodyState& body, Expr* begin, Expr* end, bool endIsLength, SourceRange range) {
  if (isError(begin) || isError(end) || !unify(body, begin, end, "..", range))
    return errorExpr(body, range);
  if (begin->type->kind != TypeKind::Scalar || !isInteger(begin->type->scalar)) {
    error(body, "E0303", range, "a range of `" + text(body, begin->type) + "` does not exist")
        .help("the ends of a range are integers");
    return errorExpr(body, range);
  }
  if (endIsLength)
    end = binary(body, BinaryOp::Add, begin, end, range, range);
  return make(body, ExprKind::Range, body.types.range(begin->type), range, {begin, end});
}

/// Shifts and `& | ^`, which floats do not have, among plain numbers.
static bool hasBitOperation(const syn::Expr* expr) {
  if (expr->is<syn::IfExpr>() || expr->is<syn::MatchExpr>())
    return true;  // what is chosen has a value before it is converted
  if (auto* unary = expr->tryAs<syn::UnaryExpr>())
    return hasBitOperation(unary->operand);
  auto* binary = expr->tryAs<syn::BinaryExpr>();
  return binary && (binary->op > syn::BinaryOp::Pow || hasBitOperation(binary->rhs) || hasBitOperation(binary->lhs));
}

/// `n as Color`: an assertion that n is one of the enum's values, then the value.
static Expr* checkedEnum(BodyState& body, Expr* number, Type to, SourceRange range) {
  const std::vector<int64_t>& all = to->decl->enumValues;
  std::vector<Expr*> parts;
  Variable* variable = temporary(body, number, parts)->variable;
  const auto compare = [&](BinaryOp op, int64_t value) {
    Expr* test = make(body, ExprKind::Binary, body.types.boolean(), range,
                      {makeVar(body, variable, range), makeInt(body, value, number->type, range)});
    test->binaryOp = op;
    return test;
  };
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  const bool isDense = !all.empty() && *high - *low + 1 == static_cast<int64_t>(all.size());
  const bool isU = isUnsigned(number->type->scalar);
  const uint32_t width = std::min(bitWidth(number->type->scalar) - (isU ? 0 : 1), uint32_t{62});
  const int64_t least = isU ? 0 : -(int64_t{1} << width), most = (int64_t{1} << width) - 1;
  Expr* test = nullptr;
  if (isDense && *low <= most && *high >= least) {
    if (*low > least || bitWidth(number->type->scalar) == 64)
      test = compare(BinaryOp::Ge, std::max(*low, least));
    if (*high < most)
      test = conjunction(body, test, compare(BinaryOp::Le, *high));
    test = test ? test : makeInt(body, 1, body.types.boolean(), range);
  } else {
    for (int64_t value : all)
      if (value >= least && value <= most) {
        Expr* equal = compare(BinaryOp::Eq, value);
        Expr* either = test ? make(body, ExprKind::Binary, body.types.boolean(), range, {test, equal}) : equal;
        either->binaryOp = test ? BinaryOp::Or : BinaryOp::Eq;
        test = either;
      }
  }
  if (!test)
    test = makeInt(body, 0, body.types.boolean(), range);
  Expr* check = makeBuiltin(body, Builtin::Assert, body.types.unit(), range, {test, makeVar(body, variable, range)});
  check->text = base::concat("{} is no value of `", to->decl->name, "`");
  parts.push_back(check);
  parts.push_back(make(body, ExprKind::Cast, to, range, {makeVar(body, variable, range)}));
  return make(body, ExprKind::Block, to, range, std::move(parts));
}

static Expr* checkCast(BodyState& body, const syn::CastExpr* expr) {
  Type to = resolveType(body, expr->type, DimPolicy::Known);
  if (isError(to)) {
    check(body, expr->operand);
    return errorExpr(body, expr->range);
  }
  // A literal is written in the target type at once: `200 as u8`, but `300 as u8` wraps like a value.
  const bool isFloatTarget = to->kind == TypeKind::Scalar && isFloat(to->scalar);
  auto* literal = expr->operand->tryAs<syn::IntExpr>();
  const bool fitsTarget = literal && to->kind == TypeKind::Scalar && to->scalar != Scalar::Bool && literal->fits128 &&
                          literal->value >> (bitWidth(to->scalar) - (isUnsigned(to->scalar) ? 0 : 1)) == 0;
  const bool isFloatNumber = isFloatTarget && isUntyped(body, expr->operand) && !hasBitOperation(expr->operand);
  Expr* operand = value(body, expr->operand, isFloatNumber || fitsTarget ? to : nullptr);
  if (isError(operand))
    return errorExpr(body, expr->range);
  Type from = operand->type;
  if (from->isTensor() && to->kind == TypeKind::Scalar)
    to = body.types.tensorValue(to, from->shape);
  else if (from->isTensor() && to->isTensor() && sameShape(body, from, to))
    to = body.types.tensorValue(to->elem, from->shape);
  const auto isNumber = [](Type type) { return type->kind == TypeKind::Scalar || type->kind == TypeKind::Enum; };
  const bool fits = (isNumber(from) && to->kind == TypeKind::Scalar) ||
                    (from->isTensor() && to->isTensor() && from->elem->kind == TypeKind::Scalar &&
                     to->elem->kind == TypeKind::Scalar);
  for (Type side : {from, to})
    if (!grants(body, side, {BuiltinTrait::Numeric}, expr->range, "`as`"))
      return errorExpr(body, expr->range);
  if (to->kind == TypeKind::Enum && from->kind == TypeKind::Scalar && isInteger(from->scalar))
    return checkedEnum(body, operand, to, expr->range);
  if (!fits) {
    error(body, "E0318", expr->range, "`" + text(body, from) + "` cannot be converted to `" + text(body, to) + "`")
        .primary("`as` converts between numbers, and tensors element by element");
    return errorExpr(body, expr->range);
  }
  if (from->isTensor() && !inKernel(body) && body.instance) {
    hostTensorArithmetic(body, expr->range);
    return errorExpr(body, expr->range);
  }
  // What is computed in a wider type is rounded where that is written, also to its own type.
  const bool isRounded =
      operand->type == to && to->isTensor() && to->elem->kind == TypeKind::Scalar &&
      ((isFloat(to->elem->scalar) && bitWidth(to->elem->scalar) < 32) || beforeReshape(operand)->kind == ExprKind::Dot);
  if (!isRounded && (operand->type == to || accumulateIn(body, operand, to)))
    return operand;
  return make(body, ExprKind::Cast, to, expr->range, {operand});
}

}  // namespace vortex::lang
