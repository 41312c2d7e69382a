// Names in expressions: locals, dimensions, constants, enum variants, fields, positions.
#include "lang/sema/check/exprs/name_expr.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/calls/members.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/lookup.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/generic_args.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

#include <algorithm>

namespace vortex::lang {

static Expr* fieldOfElements(BodyState& body, Expr* tensor, size_t field, SourceRange range);
static Expr* structDim(BodyState& body, Expr* base, const syn::Name& name, SourceRange range);

namespace {

struct PositionRow {
  std::string_view base, member;
  Builtin builtin;
  bool hasAxes;
};
constexpr PositionRow kPositions[] = {
    {"thread", "id", Builtin::ThreadId, true},
    {"thread", "local_id", Builtin::ThreadLocalId, false},
    {"thread", "global_id", Builtin::ThreadGlobalId, true},
    {"block", "id", Builtin::BlockId, true},
    {"block", "dim", Builtin::BlockDim, true},
    {"workgroup", "id", Builtin::BlockId, true},
    {"workgroup", "dim", Builtin::BlockDim, true},
    {"grid", "dim", Builtin::GridDim, true},
    {"warp", "id", Builtin::WarpId, false},
    {"warp", "lane_id", Builtin::LaneId, false},
    {"warp", "size", Builtin::WarpSize, false},
};

const PositionRow* findPosition(std::string_view base, std::string_view member) {
  for (const PositionRow& row : kPositions)
    if (row.base == base && row.member == member)
      return &row;
  return nullptr;
}

}  // namespace

bool isPositionBase(std::string_view name) {
  for (const PositionRow& row : kPositions)
    if (row.base == name)
      return true;
  return false;
}

static Expr* genericConst(BodyState& body, const GenericValue& value, SourceRange range) {
  return makeInt(body, value.value, value.type, range);
}

Expr* checkName(BodyState& body, const syn::NameExpr* expr, Type expected) {
  const syn::Name& name = expr->name;
  if (const BodyState::Local* local = findLocal(body, name.text)) {
    if (local->dim)
      return makeDim(body, *local->dim, expr->range);
    return isError(local->variable->type) ? errorExpr(body, expr->range) : makeVar(body, local->variable, expr->range);
  }
  if (const GenericValue* generic = findGeneric(body.generics, name.text)) {
    if (generic->kind == GenericValue::Kind::Const)
      return genericConst(body, *generic, expr->range);
    error(body, "E0201", expr->range, base::concat("`", name.text, "` is a type, not a value"));
    return errorExpr(body, expr->range);
  }
  if (const Symbol* symbol = body.items->find(name.text)) {
    if (symbol->kind == SymbolKind::Const)
      return constUse(body, *symbol, expr->range, expected);
    if (symbol->kind == SymbolKind::Missing)
      return errorExpr(body, expr->range);
    if (symbol->kind == SymbolKind::Function)
      error(body, "E0328", expr->range, base::concat("`", name.text, "` is a function; call it: `", name.text, "(…)`"))
          .help(symbol->item->as<syn::FunctionItem>()->isKernel
                    ? base::concat("its grid follows from the tensors; or `", name.text,
                                   ".launch(grid = [blocks], block = threads)(…)`")
                    : base::concat("to pass it on, write a closure: `|x| ", name.text, "(x)`"));
    else
      error(body, "E0201", expr->range, base::concat("`", name.text, "` is not a value"));
    return errorExpr(body, expr->range);
  }
  if (isPositionBase(name.text)) {
    error(body, "E0321", expr->range, base::concat("`", name.text, "` alone is not a value"))
        .help(base::concat("for example `", name.text,
                           name.text == "warp"   ? ".lane_id`"
                           : name.text == "grid" ? ".dim.x`"
                                                 : ".id.x`"));
    return errorExpr(body, expr->range);
  }
  if (isBuiltinName(name.text))
    error(body, "E0328", expr->range, base::concat("`", name.text, "` is a function; call it: `", name.text, "(…)`"));
  else
    unknownName(body, name);
  return errorExpr(body, expr->range);
}

Expr* enumVariant(BodyState& body, Type type, const syn::Name& name, SourceRange range) {
  for (size_t i = 0; i < type->decl->fields.size(); ++i)
    if (type->decl->fields[i] == name.text)
      return makeInt(body, type->decl->enumValues[i], type, range);
  auto builder =
      error(body, "E0321", name.range, base::concat("`", type->decl->name, "` has no variant `", name.text, "`"));
  diag::suggest(builder, nullptr, name.text, type->decl->fields);
  return errorExpr(body, range);
}

Expr* checkDotName(BodyState& body, const syn::DotNameExpr* expr, Type expected) {
  if (expected && expected->kind == TypeKind::Enum)
    return enumVariant(body, expected, expr->name, expr->range);
  error(body, "E0306", expr->range, base::concat("nothing here says which enum `.", expr->name.text, "` belongs to"))
      .help(base::concat("write the enum's name: `Color.", expr->name.text, "`"));
  return errorExpr(body, expr->range);
}

/// thread.*, block.*, grid.*, warp.*; null if it is none of these
static Expr* position(BodyState& body, const syn::MemberExpr* expr) {
  const syn::MemberExpr* outer = expr;
  std::string_view axis;
  if (auto* inner = expr->base->tryAs<syn::MemberExpr>()) {
    axis = expr->name.text;
    outer = inner;
  }
  auto* base = outer->base->tryAs<syn::NameExpr>();
  if (!base || !isPositionBase(base->name.text) || findLocal(body, base->name.text) ||
      body.items->find(base->name.text))
    return nullptr;
  const PositionRow* row = findPosition(base->name.text, outer->name.text);
  if (!row) {
    std::vector<std::string> members;
    for (const PositionRow& known : kPositions)
      if (known.base == base->name.text)
        members.emplace_back(known.member);
    auto builder = error(body, "E0321", outer->name.range,
                         base::concat("`", base->name.text, "` has no `", outer->name.text, "`"));
    if (!diag::suggest(builder, nullptr, outer->name.text, members))
      builder.help("it has " + base::join(members, ", "));
    return errorExpr(body, expr->range);
  }
  int64_t index = 0;
  if (outer != expr) {
    if (!row->hasAxes || axis.size() != 1 || axis[0] < 'x' || axis[0] > 'z') {
      error(body, "E0321", expr->name.range, base::concat("`", row->base, ".", row->member, "` has no `", axis, "`"))
          .help(row->hasAxes ? "the axes are x, y and z" : "it is one number");
      return errorExpr(body, expr->range);
    }
    index = axis[0] - 'x';
  }
  if (!inKernel(body)) {
    error(body, "E0406", expr->range, base::concat("`", row->base, ".", row->member, "` exists only in kernels"));
    return errorExpr(body, expr->range);
  }
  // `thread.global_id` without an axis is the position along x: the grid's check tells them apart.
  const bool hasAxis = row->hasAxes && (outer != expr || row->builtin != Builtin::ThreadGlobalId);
  return makeBuiltin(body, row->builtin, usize(body), expr->range, {},
                     hasAxis ? std::vector<int64_t>{index} : std::vector<int64_t>{});
}

Expr* checkMember(BodyState& body, const syn::MemberExpr* expr, Type) {
  if (Expr* out = position(body, expr))
    return out;
  if (const Symbol* symbol = findSymbol(body, expr)) {
    if (!checkPublic(body, *symbol, expr->name))
      return errorExpr(body, expr->range);
    if (symbol->kind == SymbolKind::Const)
      return constUse(body, *symbol, expr->range, nullptr);
    error(body, "E0328", expr->range, base::concat("`", body.session.sources.text(expr->range), "` is not a value"));
    return errorExpr(body, expr->range);
  }
  if (const Symbol* base = findSymbol(body, expr->base); base && base->kind == SymbolKind::Missing)
    return errorExpr(body, expr->range);
  if (const Symbol* base = findSymbol(body, expr->base); base && base->kind == SymbolKind::Module) {
    unknownInModule(body, *base, expr->name);
    return errorExpr(body, expr->range);
  }
  if (Type type = typeNamed(body, expr->base)) {
    if (isError(type))
      return errorExpr(body, expr->range);
    if (type->kind == TypeKind::Enum)
      return enumVariant(body, type, expr->name, expr->range);
    if (Expr* constant = associatedConst(body, type, expr->name, expr->range))
      return constant;
    unknownMember(body, type, expr->name, "constant");
    return errorExpr(body, expr->range);
  }
  Expr* base = value(body, expr->base);
  return isError(base) ? errorExpr(body, expr->range) : checkMemberOfValue(body, base, expr->name, expr->range);
}

namespace {

/// Evaluating it does nothing but give its value.
bool isPlainValue(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Var:
  case ExprKind::Int:
  case ExprKind::DimValue: return true;
  case ExprKind::Field:
  case ExprKind::Deref:
  case ExprKind::Ref:
  case ExprKind::Element:
    return std::all_of(expr.args.begin(), expr.args.end(), [](const Expr* arg) { return isPlainValue(*arg); });
  default: return false;
  }
}

}  // namespace

/// In host code what makes the tensor is evaluated, whether or not its extent is known without it.
Expr* extentOf(BodyState& body, Expr* tensor, size_t dim, SourceRange range) {
  const DimExpr& extent = tensor->type->shape[dim];
  if (!extent.hasOpaque() && (inKernel(body) || !body.instance || isPlainValue(*tensor)))
    return makeDim(body, extent, range);
  return makeBuiltin(body, Builtin::Extent, usize(body), range, {tensor}, {static_cast<int64_t>(dim)});
}

Expr* checkMemberOfValue(BodyState& body, Expr* base, const syn::Name& name, SourceRange range) {
  Type type = base->type;
  if (type->kind == TypeKind::Struct) {
    for (size_t i = 0; i < type->decl->fields.size(); ++i)
      if (type->decl->fields[i] == name.text) {
        Expr* field = make(body, ExprKind::Field, type->elems[i], range, {base});
        field->ints = {static_cast<int64_t>(i)};
        return field;
      }
    if (Expr* dim = structDim(body, base, name, range))
      return dim;
  }
  if (type->isTensor() && name.text == "shape") {
    std::vector<Expr*> extents, once;
    if (!inKernel(body) && body.instance && !isPlainValue(*base))
      base = temporary(body, base, once);
    for (size_t i = 0; i < type->rank(); ++i)
      extents.push_back(extentOf(body, base, i, range));
    Expr* shape =
        make(body, ExprKind::MakeArray, body.types.array(usize(body), extents.size()), range, std::move(extents));
    if (once.empty())
      return shape;
    once.push_back(shape);
    return make(body, ExprKind::Block, shape->type, range, std::move(once));
  }
  Type aggregate = type->isTensor() ? type->elem : type;
  const bool hasFields = aggregate->kind == TypeKind::Struct && aggregate->decl;
  if (type->isTensor() && hasFields)
    for (size_t i = 0; i < aggregate->decl->fields.size() && i < aggregate->elems.size(); ++i)
      if (aggregate->decl->fields[i] == name.text)
        return fieldOfElements(body, base, i, range);
  auto builder =
      error(body, "E0321", name.range, base::concat("`", text(body, type), "` has no field `", name.text, "`"));
  if (hasFields && aggregate->decl->range.isValid())
    builder.label(aggregate->decl->range, base::concat("`", aggregate->decl->name, "` is declared here"));
  const char* ours = type->isTensor() ? diag::nameElsewhere(name.text)
                     : hasFields      ? nullptr
                                      : diag::methodElsewhere(name.text);
  if ((hasFields && diag::suggest(builder, nullptr, name.text, aggregate->decl->fields)) ||
      (ours && diag::suggest(builder, ours, name.text, {})))
    return errorExpr(body, range);
  if (isBuiltinMethod(name.text))
    builder.help(base::concat("`", name.text, "` is a method; call it: `.", name.text, "()`"));
  else if (const auto& file = body.session.sources.file(range.file);
           file.lineOf(base->range.end) != file.lineOf(name.range.begin) && !hasFields)
    builder.help(
        "a line that starts with `.` continues the one before; write the type's name before a value of an enum");
  return errorExpr(body, range);
}

/// `particles.x`: a view of one field of all elements, which is a slice that takes every element.
static Expr* fieldOfElements(BodyState& body, Expr* tensor, size_t field, SourceRange range) {
  Type type = tensor->type, elem = type->elem->elems[field];
  Expr* out = make(body, ExprKind::Slice,
                   type->isValue ? body.types.tensorValue(elem, type->shape)
                                 : body.types.tensor(elem, type->shape, type->space, type->layout, type->param),
                   range, {tensor});
  out->slices.resize(type->rank());
  out->ints = {static_cast<int64_t>(field)};
  return out;
}

/// `s.PAGE_SIZE`: the dimension is an extent of one of the fields.
static Expr* structDim(BodyState& body, Expr* base, const syn::Name& name, SourceRange range) {
  const StructInstance* instance = body.session.findStruct(base->type->decl);
  auto* item = instance ? instance->item->tryAs<syn::StructItem>() : nullptr;
  for (size_t i = 0; item && i < item->fields.size(); ++i) {
    const syn::Type* written = item->fields[i].type;
    if (auto* spaced = written->tryAs<syn::SpacedType>())
      written = spaced->inner;
    auto* named = written->tryAs<syn::NamedType>();
    if (!named || named->genericArgs.size() < 2 || !named->genericArgs[1].expr || !base->type->elems[i]->isTensor())
      continue;
    auto* shape = named->genericArgs[1].expr->tryAs<syn::ArrayExpr>();
    for (size_t dim = 0; shape && dim < shape->elems.size() && dim < base->type->elems[i]->rank(); ++dim)
      if (auto* entry = shape->elems[dim]->tryAs<syn::NameExpr>(); entry && entry->name.text == name.text) {
        Expr* field = make(body, ExprKind::Field, base->type->elems[i], range, {base});
        field->ints = {static_cast<int64_t>(i)};
        return extentOf(body, field, dim, range);
      }
  }
  return nullptr;
}

}  // namespace vortex::lang
