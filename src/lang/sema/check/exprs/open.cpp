#include "lang/sema/check/exprs/open.h"

#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/session.h"
#include "lang/sema/expr_parts.h"
#include "lang/sema/integers.h"

#include <algorithm>

namespace vortex::lang {

using Slot = BodyState::Slot;

static constexpr uint32_t kElement = UINT32_MAX;  // in paths: the elements of a list, which have one type
static constexpr uint32_t kMaxDepth = 12;

static bool isNumber(Type type) { return type->kind == TypeKind::Scalar && type->scalar != Scalar::Bool; }
bool isInt(Type type) { return type->kind == TypeKind::Scalar && isInteger(type->scalar); }
bool isFlt(Type type) { return type->kind == TypeKind::Scalar && isFloat(type->scalar); }
static bool isList(Type type) { return type->kind == TypeKind::Array || type->kind == TypeKind::Vec; }

static Type partType(Type whole, uint32_t part) {
  return whole->kind == TypeKind::Tuple ? whole->elems[part] : whole->elem;
}

static Type listOf(BodyState& body, Type like, Type elem) {
  return like->kind == TypeKind::Vec ? body.types.vec(elem) : body.types.array(elem, like->count);
}

bool holds(Type type, const Interval& interval) {
  return interval.low >= lowest(type->scalar) && interval.high <= highest(type->scalar);
}

/// A number of its default type that has no type written.
static bool isPlain(BodyState& body, const Expr* expr) {
  if (!(expr->kind == ExprKind::Int && expr->type->isScalar(Scalar::I32)) &&
      !(expr->kind == ExprKind::Float && expr->type->isScalar(Scalar::F32)))
    return false;
  const std::string_view written = body.session.sources.text(expr->range);
  return !written.ends_with("i32") && !written.ends_with("f32");
}

/// The values that the result of `select`, `min`, `max`, `clamp`, `abs` is one of.
static std::span<Expr* const> choicesOf(const Expr* expr) {
  if (expr->kind != ExprKind::Builtin)
    return {};
  switch (expr->builtin) {
  case Builtin::Select: return std::span(expr->args).subspan(1);
  case Builtin::Min:
  case Builtin::Max:
  case Builtin::Clamp:
  case Builtin::Abs: return expr->args;
  default: return {};
  }
}

std::optional<Interval> literalInterval(BodyState& body, const Expr* expr, uint32_t depth) {
  if (depth > kMaxDepth || !isInt(expr->type))
    return std::nullopt;
  if (expr->kind == ExprKind::Var) {
    auto found = body.flexible.find(expr->variable);
    return found == body.flexible.end() ? std::nullopt : std::optional(found->second);
  }
  if (expr->kind == ExprKind::Int && depth > 0 && isPlain(body, expr))
    return Interval{expr->intValue, expr->intValue};
  if (expr->kind == ExprKind::Block && !expr->args.empty())
    return literalInterval(body, expr->args.back(), depth + 1);
  const bool isIf = expr->kind == ExprKind::If && expr->args.size() == 3;
  if (!isIf && (expr->kind != ExprKind::Binary || expr->binaryOp > BinaryOp::Rem))
    return std::nullopt;
  const auto a = literalInterval(body, expr->args[isIf ? 1 : 0], depth + 1),
             b = literalInterval(body, expr->args[isIf ? 2 : 1], depth + 1);
  if (!a || !b)
    return std::nullopt;
  if (isIf)
    return Interval{std::min(a->low, b->low), std::max(a->high, b->high)};
  Interval out;
  switch (expr->binaryOp) {
  case BinaryOp::Add: out = {a->low + b->low, a->high + b->high}; break;
  case BinaryOp::Sub: out = {a->low - b->high, a->high - b->low}; break;
  case BinaryOp::Mul: {
    const __int128 products[] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
    out = {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
    break;
  }
  case BinaryOp::Div:
    if (a->low < 0 || b->low <= 0)
      return std::nullopt;
    out = {a->low / b->high, a->high / b->low};
    break;
  case BinaryOp::Rem:
    if (a->low < 0 || b->low <= 0)
      return std::nullopt;
    out = {0, std::min(a->high, b->high - 1)};
    break;
  default: return std::nullopt;
  }
  return holds(expr->type, out) ? std::optional(out) : std::nullopt;
}

/// What is open in both.
static Type meet(BodyState& body, Type a, Type b) {
  if (a == b || a->kind == TypeKind::Unit || a->kind != b->kind || a->elems.size() != b->elems.size())
    return a == b ? a : body.types.unit();
  if (a->kind == TypeKind::Scalar)
    return body.types.scalar(Scalar::F32);
  if (isList(a))
    return listOf(body, a, meet(body, a->elem, b->elem));
  std::vector<Type> parts;
  for (size_t i = 0; i < a->elems.size(); ++i)
    parts.push_back(meet(body, a->elems[i], b->elems[i]));
  return body.types.tuple(std::move(parts));
}

static Type openParts(BodyState& body, const syn::Expr* written, Type type) {
  const Type none = body.types.unit();
  if (isNumber(type))
    return isUntyped(body, written) ? body.types.scalar(isUntypedFloat(body, written) ? Scalar::F32 : Scalar::I32)
                                    : none;
  Type all = nullptr;
  const auto add = [&](const syn::Expr* value, Type of) {
    const Type parts = value ? openParts(body, value, of) : none;
    all = all ? meet(body, all, parts) : parts;
  };
  if (auto* tuple = written->tryAs<syn::TupleExpr>();
      tuple && type->kind == TypeKind::Tuple && tuple->elems.size() == type->elems.size()) {
    std::vector<Type> parts;
    for (size_t i = 0; i < type->elems.size(); ++i)
      parts.push_back(openParts(body, tuple->elems[i], type->elems[i]));
    const bool isAny = std::ranges::any_of(parts, [&](Type part) { return part != none; });
    return isAny ? body.types.tuple(std::move(parts)) : none;
  }
  if (auto* list = written->tryAs<syn::ArrayExpr>(); list && isList(type)) {
    if (isError(type->elem))  // `vec![]`
      return type;
    for (size_t i = 0; i < (list->form == syn::ArrayForm::Repeat ? 1 : list->elems.size()); ++i)
      add(list->elems[i], type->elem);
    if (list->form == syn::ArrayForm::Progression)
      add(list->last, type->elem);
    return !all || all == none ? none : listOf(body, type, all);
  }
  for (const syn::Expr* value : sources(body, written))
    add(value, type);
  return all ? all : none;
}

void openPart(BodyState& body, SourceRange root, Type type, Type parts) {
  if (parts->kind != TypeKind::Unit)
    body.open[root.begin] = {type, parts, root};
}

void openNumbers(BodyState& body, SourceRange root, const syn::Expr* written, Type type) {
  openPart(body, root, type, openParts(body, written, type));
}

std::optional<Slot> slotOf(const BodyState& body, const Expr* expr) {
  const auto part = [&](const Expr* of, uint32_t at) {
    auto slot = slotOf(body, of);
    if (slot)
      slot->path.push_back(at);
    return slot;
  };
  switch (expr->kind) {
  case ExprKind::Var: {
    const auto found = body.slots.find(expr->variable);
    return found == body.slots.end() ? std::nullopt : std::optional(found->second);
  }
  case ExprKind::Element: return isList(expr->args[0]->type) ? part(expr->args[0], kElement) : std::nullopt;
  case ExprKind::Field:
    return expr->args[0]->type->kind == TypeKind::Tuple ? part(expr->args[0], asField(*expr).field) : std::nullopt;
  case ExprKind::Deref:
  case ExprKind::Ref: return slotOf(body, expr->args[0]);
  default: return std::nullopt;
  }
}

void aliasSlot(BodyState& body, const Variable* variable, const Expr* value) {
  if (auto slot = slotOf(body, value))
    body.slots[variable] = std::move(*slot);
}

/// A bound of a range whose type may still change: made of plain numbers, and of variables that had one.
static bool isLearnable(BodyState& body, const syn::Expr* written) {
  if (isUntyped(body, written))
    return true;
  if (auto* binary = written->tryAs<syn::BinaryExpr>())
    return binary->op <= syn::BinaryOp::Rem && isLearnable(body, binary->rhs) && isLearnable(body, binary->lhs);
  auto* name = written->tryAs<syn::NameExpr>();
  const BodyState::Local* local = name ? findLocal(body, name->name.text) : nullptr;
  return local && local->variable && (body.flexible.contains(local->variable) || body.slots.contains(local->variable));
}

/// `a..b`, `range(a, b, step)`: what the numbers of a range are made from.
static bool isLearnableRange(BodyState& body, const Expr* over, const syn::Expr* written) {
  if (auto* range = written->tryAs<syn::RangeExpr>())
    return isLearnable(body, range->begin) && isLearnable(body, range->end);
  auto* call = written->tryAs<syn::CallExpr>();
  auto* name = call && over->kind == ExprKind::Range ? call->callee->tryAs<syn::NameExpr>() : nullptr;
  return name && name->name.text == "range" &&
         std::ranges::all_of(call->args, [&](const syn::Arg& each) { return isLearnable(body, each.value); });
}

std::optional<Slot> openElements(BodyState& body, const syn::Pattern* pattern, const Expr* over,
                                 const syn::Expr* written) {
  if (auto slot = slotOf(body, over)) {
    slot->path.push_back(kElement);
    return slot;
  }
  const Type elem = stripRef(over->type)->elem;
  if (over->type->kind == TypeKind::Range)
    openPart(body, pattern->range, elem,
             isLearnableRange(body, over, written) ? body.types.scalar(Scalar::I32) : body.types.unit());
  else if (const Type parts = openParts(body, written, over->type); parts->kind != TypeKind::Unit)
    openPart(body, pattern->range, elem, parts->elem);
  return body.open.contains(pattern->range.begin) ? std::optional(Slot{pattern->range.begin, {}}) : std::nullopt;
}

/// What the type is when its open parts become those of `to`, which are added to `learned`; null if they cannot.
static Type taken(BodyState& body, const Slot& at, Type type, Type parts, Type to, std::set<Slot>& learned) {
  if (type == to)
    return type;
  const bool isVec = parts->kind == TypeKind::Vec && isError(parts->elem);
  if (isVec ? to->kind == TypeKind::Vec && !isError(to->elem) && !to->elem->isTensor()
            : parts->kind == TypeKind::Scalar && isNumber(to) && (isFlt(to) || !isFlt(parts))) {
    const bool isNew = !body.learned.contains(at);
    if (isNew)
      learned.insert(at);
    return isNew ? to : nullptr;
  }
  if (parts->kind != type->kind || type->kind != to->kind || type->elems.size() != to->elems.size() ||
      type->count != to->count || (!isList(type) && type->kind != TypeKind::Tuple))
    return nullptr;
  const auto part = [&](uint32_t i) {
    Slot inner = at;
    inner.path.push_back(i);
    return taken(body, inner, partType(type, i), partType(parts, i), partType(to, i), learned);
  };
  if (isList(type)) {
    const Type elem = part(kElement);
    return elem ? listOf(body, type, elem) : nullptr;
  }
  std::vector<Type> elems;
  for (uint32_t i = 0; i < type->elems.size(); ++i)
    if (elems.push_back(part(i)); !elems.back())
      return nullptr;
  return body.types.tuple(std::move(elems));
}

static Type withPart(BodyState& body, Type whole, std::span<const uint32_t> path, Type part) {
  if (path.empty())
    return part;
  const Type inner = withPart(body, partType(whole, path[0]), path.subspan(1), part);
  if (isList(whole))
    return listOf(body, whole, inner);
  std::vector<Type> elems = whole->elems;
  elems[path[0]] = inner;
  return body.types.tuple(std::move(elems));
}

/// Extents of tensors are new in each attempt: `never` stands for what is not told.
static Type withoutTensors(BodyState& body, Type type) {
  if (type->kind != TypeKind::Tuple)
    return stripRef(type)->isTensor() ? body.types.never() : type;
  std::vector<Type> elems;
  for (Type each : type->elems)
    elems.push_back(withoutTensors(body, each));
  return body.types.tuple(std::move(elems));
}

/// The type there and its open parts; null if nothing there is open.
static std::pair<Type, Type> typesAt(const BodyState& body, const Slot& slot) {
  const auto found = body.open.find(slot.root);
  if (found == body.open.end())
    return {};
  auto [type, parts, range] = found->second;
  for (uint32_t step : slot.path) {
    if (parts->kind == TypeKind::Unit)
      return {};
    type = partType(type, step);
    parts = partType(parts, step);
  }
  return {type, parts};
}

/// What the numbers there would be; null if they cannot, or are so already.
static Type takenBy(BodyState& body, const Slot& slot, Type to, std::set<Slot>& learned) {
  const auto [type, parts] = typesAt(body, slot);
  const Type made = type ? taken(body, slot, type, parts, to, learned) : nullptr;
  return learned.empty() ? nullptr : made;
}

static bool hasOpen(const BodyState& body, const Slot& at, Type parts) {
  if (parts->kind == TypeKind::Scalar)
    return !body.learned.contains(at);
  const auto part = [&](uint32_t i) {
    Slot inner = at;
    inner.path.push_back(i);
    return hasOpen(body, inner, partType(parts, i));
  };
  bool any = isList(parts) && part(kElement);
  for (uint32_t i = 0; i < parts->elems.size(); ++i)
    any = any || part(i);
  return any;
}

static bool learnSlot(BodyState& body, const Slot& slot, Type to) {
  std::set<Slot> learned;
  const Type made = takenBy(body, slot, to, learned);
  if (!made)
    return false;
  const auto whole = body.inferred.try_emplace(slot.root, withoutTensors(body, body.open[slot.root].type)).first;
  for (const Slot& each : learned) {
    Type part = made;
    for (size_t i = slot.path.size(); i < each.path.size(); ++i)
      part = partType(part, each.path[i]);
    whole->second = withPart(body, whole->second, each.path, part);
  }
  body.learned.merge(learned);
  return body.restart = true;
}

bool learnType(BodyState& body, const Expr* expr, Type to, uint32_t depth) {
  if (to->isTensor())
    to = to->elem;
  if (depth > kMaxDepth)
    return false;
  const auto operand = [&](size_t i) { return learnType(body, expr->args[i], to, depth + 1); };
  switch (expr->kind) {
  case ExprKind::Binary: return isNumber(to) && expr->binaryOp <= BinaryOp::BitXor && (operand(0) || operand(1));
  case ExprKind::Unary: return operand(0);
  case ExprKind::Block: return !expr->args.empty() && operand(expr->args.size() - 1);
  case ExprKind::If: return expr->args.size() == 3 && (operand(1) || operand(2));
  default: break;
  }
  if (const auto made = body.madeOf.find(expr->variable); expr->kind == ExprKind::Var && made != body.madeOf.end())
    return learnType(body, made->second, to, depth + 1);
  const auto slot = slotOf(body, expr);
  if (!slot || !learnSlot(body, *slot, to))
    return false;
  if (expr->kind == ExprKind::Var && slot->path.empty())
    expr->variable->type = to;  // the rest of this attempt only looks for more of these
  return true;
}

/// What the target would have to be for the value.
static Type storedAs(BodyState& body, Type to, Expr* value) {
  const Type from = value->type;
  if (from == to || isError(from) || isError(to))
    return to;
  if (isNumber(from) && isNumber(to)) {
    const bool widens = isInt(from) && isInt(to) && isUnsigned(from->scalar) && isUnsigned(to->scalar) &&
                        bitWidth(from->scalar) < bitWidth(to->scalar);
    const auto interval = isInt(to) ? literalInterval(body, value) : std::nullopt;
    return widens || value->kind == ExprKind::Int || (interval && holds(to, *interval)) ? to : from;
  }
  if (from->kind != to->kind || from->elems.size() != to->elems.size() || from->count != to->count)
    return to;
  if (from->kind == TypeKind::Tuple) {
    std::vector<Type> elems;
    const std::vector<Expr*> parts = partsOf(body, value);
    for (size_t i = 0; i < to->elems.size(); ++i)
      elems.push_back(storedAs(body, to->elems[i], parts[i]));
    return body.types.tuple(std::move(elems));
  }
  return isList(from) ? from : to;
}

bool learnFromStore(BodyState& body, const Expr* target, Expr* value) {
  const Type wanted = storedAs(body, target->type, tailOf(value));
  return wanted != target->type && learnType(body, target, wanted);
}

Expr* tailOf(Expr* expr) {
  while (expr->kind == ExprKind::Block && !expr->args.empty())
    expr = expr->args.back();
  return expr;
}

std::vector<Expr*> partsOf(BodyState& body, Expr* expr) {
  if (expr->kind == ExprKind::MakeTuple || expr->kind == ExprKind::MakeArray)
    return expr->args;
  if (expr->kind == ExprKind::RepeatArray)
    return {expr->args[0]};
  std::vector<Expr*> parts;
  if (expr->type->kind == TypeKind::Array && expr->type->count > 0)
    parts = {make(body, ExprKind::Element, expr->type->elem, expr->range, {expr, makeInt(body, 0, usize(body), {})})};
  for (size_t i = 0; expr->type->kind == TypeKind::Tuple && i < expr->type->elems.size(); ++i) {
    parts.push_back(make(body, ExprKind::Field, expr->type->elems[i], expr->range, {expr}));
    parts.back()->ints = {static_cast<int64_t>(i)};
  }
  return parts;
}

/// Arithmetic on plain numbers, whose digits are read in another type.
static std::span<Expr* const> plainOperands(const Expr* expr) {
  const bool isArithmetic = (expr->kind == ExprKind::Binary && expr->binaryOp <= BinaryOp::Pow) ||
                            (expr->kind == ExprKind::Unary && expr->unaryOp == UnaryOp::Neg);
  return isArithmetic ? std::span<Expr* const>(expr->args) : choicesOf(expr);
}

bool isOpen(BodyState& body, Expr* expr) {
  expr = tailOf(expr);
  if (isPlain(body, expr) || literalInterval(body, expr))
    return true;
  if (const auto slot = slotOf(body, expr)) {
    const Type parts = typesAt(body, *slot).second;
    return parts && hasOpen(body, *slot, parts);
  }
  const auto part = [&](Expr* each) { return isOpen(body, each); };
  if (expr->kind == ExprKind::MakeTuple || expr->kind == ExprKind::MakeArray || expr->kind == ExprKind::RepeatArray)
    return std::ranges::any_of(expr->args, part);
  const auto operands = plainOperands(expr);
  return !operands.empty() && std::ranges::all_of(operands, part);
}

bool canTake(BodyState& body, Expr* expr, Type type) {
  expr = tailOf(expr);
  if (expr->type == type || expr->type->kind == TypeKind::Never)
    return true;
  if (expr->kind == ExprKind::If && expr->args.size() == 3)
    return canTake(body, expr->args[1], type) && canTake(body, expr->args[2], type);
  if (std::set<Slot> learned; const auto slot = slotOf(body, expr))
    if (takenBy(body, *slot, type, learned))
      return true;
  if (expr->type->kind == TypeKind::Tuple || expr->type->kind == TypeKind::Array) {
    if (expr->type->kind != type->kind || expr->type->elems.size() != type->elems.size() ||
        expr->type->count != type->count)
      return false;
    const std::vector<Expr*> parts = partsOf(body, expr);
    for (uint32_t i = 0; i < parts.size(); ++i)
      if (!canTake(body, parts[i], partType(type, i)))
        return false;
    return true;
  }
  if (!isNumber(type))
    return false;
  if (const auto interval = literalInterval(body, expr); interval && isInt(type))
    return holds(type, *interval);
  if (isPlain(body, expr)) {
    if (expr->kind == ExprKind::Float)
      return isFlt(type) && (type->isScalar(Scalar::F32) || writtenInF64(body, expr));
    return isFlt(type) || expr->intValue >= 0 || !isUnsigned(type->scalar);
  }
  const auto operands = plainOperands(expr);
  return !operands.empty() && std::ranges::all_of(operands, [&](Expr* each) { return canTake(body, each, type); });
}

void adapt(BodyState& body, Expr*& expr, Type type) {
  if (expr->type == type || expr->type->kind == TypeKind::Never)
    return;
  if (expr->kind == ExprKind::Block && !expr->args.empty()) {
    adapt(body, expr->args.back(), type);
  } else if (expr->kind == ExprKind::If && expr->args.size() == 3) {
    adapt(body, expr->args[1], type);
    adapt(body, expr->args[2], type);
  } else if (expr->kind == ExprKind::MakeTuple || expr->kind == ExprKind::MakeArray) {
    for (uint32_t i = 0; i < expr->args.size(); ++i)
      adapt(body, expr->args[i], partType(type, i));
  } else if (expr->kind == ExprKind::RepeatArray) {
    adapt(body, expr->args[0], type->elem);
  } else if (isPlain(body, expr)) {
    expr = adaptLiteral(body, expr, type);
    return;
  } else if (literalInterval(body, expr) && isInt(type)) {
    expr = cast(body, expr, type);
    return;
  } else if (learnType(body, expr, type)) {
    return;
  } else if (!plainOperands(expr).empty()) {
    for (size_t i = expr->args.size() - plainOperands(expr).size(); i < expr->args.size(); ++i)
      adapt(body, expr->args[i], type);
  }
  expr->type = type;
}

}  // namespace vortex::lang
