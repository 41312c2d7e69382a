// Dispatch over expression kinds, and the small ones.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {

Expr* Checker::check(const syn::Expr* expr, Type expected) {
  const bool isStatement = expected && expected->kind == TypeKind::Unit;
  if (isStatement || (expected && isError(expected)))
    switch (expr->kind) {
    case syn::ExprKind::Block:
    case syn::ExprKind::If:
    case syn::ExprKind::Match:
    case syn::ExprKind::Loop: break;  // their parts must know that the value is not wanted
    default: expected = nullptr;
    }
  switch (expr->kind) {
  case syn::ExprKind::Error: return errorExpr(expr->range);
  case syn::ExprKind::Int: return checkInt(expr->as<syn::IntExpr>(), expected, false);
  case syn::ExprKind::Float: return checkFloat(expr->as<syn::FloatExpr>(), expected, false);
  case syn::ExprKind::Bool: return makeInt(expr->as<syn::BoolExpr>()->value, types.boolean(), expr->range);
  case syn::ExprKind::String: return checkString(expr->as<syn::StringExpr>());
  case syn::ExprKind::Name: return checkName(expr->as<syn::NameExpr>(), expected);
  case syn::ExprKind::DotName: return checkDotName(expr->as<syn::DotNameExpr>(), expected);
  case syn::ExprKind::FullSlice: return misplaced(expr->range, "a lone `:`");
  case syn::ExprKind::Array: return checkArray(expr->as<syn::ArrayExpr>(), expected);
  case syn::ExprKind::Tuple: return checkTuple(expr->as<syn::TupleExpr>(), expected);
  case syn::ExprKind::Struct: return checkStruct(expr->as<syn::StructExpr>(), expected);
  case syn::ExprKind::Unary: return checkUnary(expr->as<syn::UnaryExpr>(), expected);
  case syn::ExprKind::Binary: return checkBinary(expr->as<syn::BinaryExpr>(), expected);
  case syn::ExprKind::Assign: return checkAssign(expr->as<syn::AssignExpr>());
  case syn::ExprKind::Range: return checkRange(expr->as<syn::RangeExpr>(), expected);
  case syn::ExprKind::Ref: return checkRef(expr->as<syn::RefExpr>(), expected);
  case syn::ExprKind::Cast: return checkCast(expr->as<syn::CastExpr>());
  case syn::ExprKind::Call: return checkCall(expr->as<syn::CallExpr>(), expected);
  case syn::ExprKind::Index: return checkIndex(expr->as<syn::IndexExpr>());
  case syn::ExprKind::Member: return checkMember(expr->as<syn::MemberExpr>(), expected);
  case syn::ExprKind::TupleMember: return checkTupleMember(expr->as<syn::TupleMemberExpr>());
  case syn::ExprKind::Block: return checkBlock(expr->as<syn::BlockExpr>(), expected);
  case syn::ExprKind::If: return checkIf(expr->as<syn::IfExpr>(), expected);
  case syn::ExprKind::Match: return checkMatch(expr->as<syn::MatchExpr>(), expected);
  case syn::ExprKind::While: return checkWhile(expr->as<syn::WhileExpr>());
  case syn::ExprKind::Loop: return checkLoop(expr->as<syn::LoopExpr>(), expected);
  case syn::ExprKind::For: return checkFor(expr->as<syn::ForExpr>());
  case syn::ExprKind::Break: return checkBreak(expr->as<syn::BreakExpr>());
  case syn::ExprKind::Continue: return checkContinue(expr->as<syn::ContinueExpr>());
  case syn::ExprKind::Return: return checkReturn(expr->as<syn::ReturnExpr>());
  case syn::ExprKind::Closure: return checkClosure(expr->as<syn::ClosureExpr>(), expected);
  }
  return errorExpr(expr->range);
}

Expr* Checker::misplaced(SourceRange range, std::string_view what) {
  error("E0316", range, std::string(what) + " has no meaning here");
  return errorExpr(range);
}

Expr* Checker::checkString(const syn::StringExpr* expr) {
  Expr* out = make(ExprKind::String, types.string(), expr->range);
  out->text = std::string(expr->value);
  return out;
}

Expr* Checker::deref(Expr* expr) {
  while (expr->type->kind == TypeKind::Ref)
    expr = make(ExprKind::Deref, expr->type->elem, expr->range, {expr});
  return expr;
}

Expr* Checker::value(const syn::Expr* expr, Type expected) {
  Expr* out = deref(check(expr, expected));
  return spaceGrants(out->type, BuiltinTrait::Readable, expr->range, "reading a tensor") ? out : errorExpr(expr->range);
}

Expr* Checker::checkTuple(const syn::TupleExpr* expr, Type expected) {
  if (expr->elems.empty())
    return unitExpr(expr->range);
  const bool hasHint = expected && expected->kind == TypeKind::Tuple && expected->elems.size() == expr->elems.size();
  std::vector<Expr*> elems;
  std::vector<Type> elemTypes;
  for (size_t i = 0; i < expr->elems.size(); ++i) {
    Expr* elem = check(expr->elems[i], hasHint ? expected->elems[i] : nullptr);
    if (isError(elem))
      return errorExpr(expr->range);
    elems.push_back(elem);
    elemTypes.push_back(elem->type);
  }
  Type type = types.tuple(std::move(elemTypes));
  if (!checkSize(type, expr->range))
    return errorExpr(expr->range);
  return make(ExprKind::MakeTuple, type, expr->range, std::move(elems));
}

Expr* Checker::checkTupleMember(const syn::TupleMemberExpr* expr) {
  Expr* base = value(expr->base);
  if (isError(base))
    return errorExpr(expr->range);
  if (base->type->kind != TypeKind::Tuple) {
    error("E0321", expr->indexRange, base::concat("`", text(base->type), "` is not a tuple"));
    return errorExpr(expr->range);
  }
  if (expr->index >= base->type->elems.size()) {
    error("E0321", expr->indexRange,
          base::concat("this tuple has ", base->type->elems.size(), " elements; there is no `.", expr->index, "`"));
    return errorExpr(expr->range);
  }
  Expr* field = make(ExprKind::Field, base->type->elems[expr->index], expr->range, {base});
  field->ints = {static_cast<int64_t>(expr->index)};
  return field;
}

Expr* Checker::checkRef(const syn::RefExpr* expr, Type expected) {
  Type hint = expected && expected->kind == TypeKind::Ref ? expected->elem : expected;
  Expr* operand = check(expr->operand, hint);
  if (isError(operand))
    return operand;
  operand = deref(operand);
  if (expr->isMutable && !checkWritable(operand, expr->range, "borrowed with `&mut`"))
    return errorExpr(expr->range);
  return make(ExprKind::Ref, types.ref(operand->type, expr->isMutable), expr->range, {operand});
}

Expr* Checker::checkRange(const syn::RangeExpr* expr, Type expected) {
  if (!expr->begin || !expr->end)
    return misplaced(expr->range, "a range without both ends");
  Type hint = expected && expected->kind == TypeKind::Range ? expected->elem : nullptr;
  Expr *begin = nullptr, *end = nullptr;
  if (isUntyped(expr->begin) && !isUntyped(expr->end)) {
    end = value(expr->end, hint);
    begin = value(expr->begin, end->type);
  } else {
    begin = value(expr->begin, hint);
    end = value(expr->end, isUntyped(expr->end) ? begin->type : hint);
  }
  return rangeOf(begin, end, expr->endIsLength, expr->range);
}

Expr* Checker::rangeOf(Expr* begin, Expr* end, bool endIsLength, SourceRange range) {
  if (isError(begin) || isError(end) || !unify(begin, end, "..", range))
    return errorExpr(range);
  if (begin->type->kind != TypeKind::Scalar || !isInteger(begin->type->scalar)) {
    error("E0303", range, "a range of `" + text(begin->type) + "` does not exist")
        .help("the ends of a range are integers");
    return errorExpr(range);
  }
  if (endIsLength)
    end = binary(BinaryOp::Add, begin, end, range, range);
  return make(ExprKind::Range, types.range(begin->type), range, {begin, end});
}

/// Shifts and `& | ^`, which floats do not have, among plain numbers.
static bool hasBitOperation(const syn::Expr* expr) {
  if (auto* unary = expr->tryAs<syn::UnaryExpr>())
    return hasBitOperation(unary->operand);
  auto* binary = expr->tryAs<syn::BinaryExpr>();
  return binary && (binary->op > syn::BinaryOp::Pow || hasBitOperation(binary->rhs) || hasBitOperation(binary->lhs));
}

/// `n as Color`: an assertion that n is one of the enum's values, then the value.
Expr* Checker::checkedEnum(Expr* number, Type to, SourceRange range) {
  const std::vector<int64_t>& all = to->decl->enumValues;
  std::vector<Expr*> parts;
  Variable* variable = temporary(number, parts)->variable;
  const auto compare = [&](BinaryOp op, int64_t value) {
    Expr* test =
        make(ExprKind::Binary, types.boolean(), range, {makeVar(variable, range), makeInt(value, number->type, range)});
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
      test = conjunction(test, compare(BinaryOp::Le, *high));
    test = test ? test : makeInt(1, types.boolean(), range);
  } else {
    for (int64_t value : all)
      if (value >= least && value <= most) {
        Expr* equal = compare(BinaryOp::Eq, value);
        Expr* either = test ? make(ExprKind::Binary, types.boolean(), range, {test, equal}) : equal;
        either->binaryOp = test ? BinaryOp::Or : BinaryOp::Eq;
        test = either;
      }
  }
  if (!test)
    test = makeInt(0, types.boolean(), range);
  Expr* check = makeBuiltin(Builtin::Assert, types.unit(), range, {test, makeVar(variable, range)});
  check->text = base::concat("{} is no value of `", to->decl->name, "`");
  parts.push_back(check);
  parts.push_back(make(ExprKind::Cast, to, range, {makeVar(variable, range)}));
  return make(ExprKind::Block, to, range, std::move(parts));
}

Expr* Checker::checkCast(const syn::CastExpr* expr) {
  Type to = resolveType(expr->type, DimPolicy::Known);
  if (isError(to)) {
    check(expr->operand);
    return errorExpr(expr->range);
  }
  // A literal is written in the target type at once: `200 as u8`, but `300 as u8` wraps like a value.
  const bool isFloatTarget = to->kind == TypeKind::Scalar && isFloat(to->scalar);
  auto* literal = expr->operand->tryAs<syn::IntExpr>();
  const bool fitsTarget = literal && to->kind == TypeKind::Scalar && to->scalar != Scalar::Bool && literal->fits128 &&
                          literal->value >> (bitWidth(to->scalar) - (isUnsigned(to->scalar) ? 0 : 1)) == 0;
  const bool isFloatNumber = isFloatTarget && isUntyped(expr->operand) && !hasBitOperation(expr->operand);
  Expr* operand = value(expr->operand, isFloatNumber || fitsTarget ? to : nullptr);
  if (isError(operand))
    return errorExpr(expr->range);
  Type from = operand->type;
  if (from->isTensor() && to->kind == TypeKind::Scalar)
    to = types.tensorValue(to, from->shape);
  else if (from->isTensor() && to->isTensor() && sameShape(from, to))
    to = types.tensorValue(to->elem, from->shape);
  const auto isNumber = [](Type type) { return type->kind == TypeKind::Scalar || type->kind == TypeKind::Enum; };
  const bool fits = (isNumber(from) && to->kind == TypeKind::Scalar) ||
                    (from->isTensor() && to->isTensor() && from->elem->kind == TypeKind::Scalar &&
                     to->elem->kind == TypeKind::Scalar);
  for (Type side : {from, to})
    if (!grants(side, {BuiltinTrait::Numeric}, expr->range, "`as`"))
      return errorExpr(expr->range);
  if (to->kind == TypeKind::Enum && from->kind == TypeKind::Scalar && isInteger(from->scalar))
    return checkedEnum(operand, to, expr->range);
  if (!fits) {
    error("E0318", expr->range, "`" + text(from) + "` cannot be converted to `" + text(to) + "`")
        .primary("`as` converts between numbers, and tensors element by element");
    return errorExpr(expr->range);
  }
  if (from->isTensor() && !inKernel() && instance) {
    hostTensorArithmetic(expr->range);
    return errorExpr(expr->range);
  }
  if (operand->type == to)
    return operand;
  if (from->isTensor() && operand->kind == ExprKind::Dot && mayAccumulateIn(from->elem, to->elem)) {
    operand->type = to;  // the product is accumulated in the wider type
    return operand;
  }
  return make(ExprKind::Cast, to, expr->range, {operand});
}

}  // namespace vortex::lang
