// Names in expressions: locals, dimensions, constants, enum variants, fields, positions.
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

#include "base/text.h"

namespace vortex::lang {
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

std::vector<std::string> Checker::visibleNames() const {
  std::vector<std::string> names;
  for (const Local& local : locals)
    names.emplace_back(local.name);
  for (const GenericBinding& binding : generics)
    names.emplace_back(binding.name);
  for (const ItemScope* scope = items; scope; scope = scope->parent)
    for (const auto& [name, symbol] : scope->symbols)
      names.emplace_back(name);
  for (const char* name : {"thread", "block", "warp", "grid"})
    names.emplace_back(name);
  addBuiltinNames(names);
  return names;
}

/// What a name of CUDA C++, C or Rust is here; null if it is none that we know.
static const char* knownElsewhere(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"threadIdx", "`thread.id`, over the whole grid `thread.global_id`"},
      {"blockIdx", "`block.id`"},
      {"blockDim", "`block.dim`"},
      {"gridDim", "`grid.dim`"},
      {"warpSize", "`warp.size`"},
      {"__syncthreads", "`sync_block()`"},
      {"syncthreads", "`sync_block()`"},
      {"__syncwarp", "`sync_warp()`"},
      {"__shfl_xor_sync", "`warp.shuffle_xor(value, mask)`"},
      {"__shfl_down_sync", "`warp.shuffle_down(value, distance)`"},
      {"__shfl_up_sync", "`warp.shuffle_up(value, distance)`"},
      {"__shfl_sync", "`warp.broadcast(value, lane)`"},
      {"__ballot_sync", "`warp.ballot(condition)`"},
      {"atomicAdd", "`atomic_add(&mut t[i], value)`"},
      {"atomicMin", "`atomic_min(&mut t[i], value)`"},
      {"atomicMax", "`atomic_max(&mut t[i], value)`"},
      {"atomicExch", "`atomic_exchange(&mut t[i], value)`"},
      {"atomicCAS", "`atomic_compare_exchange(&mut t[i], expected, value)`"},
      {"expf", "`exp`, for floats of every width"},
      {"sqrtf", "`sqrt`, for floats of every width"},
      {"fabs", "`abs`"},
      {"fabsf", "`abs`"},
      {"fmaxf", "`max`"},
      {"fminf", "`min`"},
      {"println", "`print`"},
      {"printf", "`print`"},
      {"True", "`true`"},
      {"False", "`false`"},
      {"INFINITY", "`inf`"},
  };
  for (const auto& [other, ours] : kNames)
    if (other == name)
      return ours;
  return nullptr;
}

void Checker::unknownName(const syn::Name& name) {
  auto builder = error("E0201", name.range, base::concat("there is no `", name.text, "` in scope"));
  if (const char* ours = knownElsewhere(name.text))
    builder.help(base::concat("here this is ", ours));
  else if (std::string close = nearest(name.text, visibleNames()); !close.empty())
    builder.help("did you mean `" + close + "`?");
  else if (name.text == "block_m" || name.text == "block_n")
    builder.help("`block_m` and `block_n` exist in kernels with `@tile`");
}

Expr* Checker::genericConst(const GenericValue& value, SourceRange range) {
  return makeInt(value.value, value.type, range);
}

Expr* Checker::checkName(const syn::NameExpr* expr, Type expected) {
  const syn::Name& name = expr->name;
  if (const Local* local = findLocal(name.text)) {
    if (local->dim)
      return makeDim(*local->dim, expr->range);
    return isError(local->variable->type) ? errorExpr(expr->range) : makeVar(local->variable, expr->range);
  }
  if (const GenericValue* generic = findGeneric(generics, name.text)) {
    if (generic->kind == GenericValue::Kind::Const)
      return genericConst(*generic, expr->range);
    error("E0201", expr->range, base::concat("`", name.text, "` is a type, not a value"));
    return errorExpr(expr->range);
  }
  if (const Symbol* symbol = items->find(name.text)) {
    if (symbol->kind == SymbolKind::Const)
      return constUse(*symbol, expr->range, expected);
    if (symbol->kind == SymbolKind::Missing)
      return errorExpr(expr->range);
    if (symbol->kind == SymbolKind::Function)
      error("E0328", expr->range, base::concat("`", name.text, "` is a function; call it: `", name.text, "(…)`"))
          .help("to pass it on, write a closure: `|x| " + std::string(name.text) + "(x)`");
    else
      error("E0201", expr->range, base::concat("`", name.text, "` is not a value"));
    return errorExpr(expr->range);
  }
  if (isPositionBase(name.text)) {
    error("E0321", expr->range, base::concat("`", name.text, "` alone is not a value"))
        .help(base::concat("for example `", name.text,
                           name.text == "warp"   ? ".lane_id`"
                           : name.text == "grid" ? ".dim.x`"
                                                 : ".id.x`"));
    return errorExpr(expr->range);
  }
  if (isBuiltinName(name.text))
    error("E0328", expr->range, base::concat("`", name.text, "` is a function; call it: `", name.text, "(…)`"));
  else
    unknownName(name);
  return errorExpr(expr->range);
}

const Symbol* Checker::findSymbol(const syn::Expr* expr) {
  if (auto* name = expr->tryAs<syn::NameExpr>())
    return findLocal(name->name.text) || findGeneric(generics, name->name.text) ? nullptr
                                                                                : items->find(name->name.text);
  auto* member = expr->tryAs<syn::MemberExpr>();
  const Symbol* base = member ? findSymbol(member->base) : nullptr;
  if (!base || base->kind != SymbolKind::Module)
    return nullptr;
  auto found = base->scope->symbols.find(member->name.text);
  return found == base->scope->symbols.end() ? nullptr : &found->second;
}

/// Is it made of names only?
static bool mayNameType(const syn::Expr* expr) {
  while (auto* member = expr->tryAs<syn::MemberExpr>())
    expr = member->base;
  return expr->is<syn::NameExpr>();
}

Type Checker::typeNamed(const syn::Expr* expr) {
  auto* name = expr->tryAs<syn::NameExpr>();
  if (name && !findLocal(name->name.text)) {
    if (const GenericValue* generic = findGeneric(generics, name->name.text))
      return generic->kind == GenericValue::Kind::Type ? generic->type : nullptr;
    if (name->name.text == "Self" && selfType)
      return selfType;
  }
  const Symbol* symbol = findSymbol(expr);
  if (!symbol) {
    if (auto scalar = name && !findLocal(name->name.text) ? scalarNamed(name->name.text) : std::nullopt)
      return types.scalar(*scalar);
    // `T.Item` in `T.Item.zero()`.
    auto* member = expr->tryAs<syn::MemberExpr>();
    Type base = member && mayNameType(member->base) ? typeNamed(member->base) : nullptr;
    if (!base || isError(base) || associatedCandidates(canonicalSelf(base), member->name.text).empty())
      return nullptr;
    return associatedType(base, member->name, expr->range);
  }
  if (symbol->kind == SymbolKind::Alias) {
    auto* alias = symbol->item->tryAs<syn::TypeAliasItem>();
    syn::List<syn::GenericArg> args = name ? name->genericArgs : expr->as<syn::MemberExpr>()->genericArgs;
    return alias && alias->aliased && alias->generics.params.size() == args.size()
               ? aliasType(alias, symbol->scope, args, expr->range, DimPolicy::Fresh)
               : nullptr;
  }
  if (symbol->kind == SymbolKind::Enum)
    return types.enumeration(session.structInstance(symbol->item, symbol->scope, {})->decl);
  if (symbol->kind != SymbolKind::Struct)
    return nullptr;
  auto* item = symbol->item->as<syn::StructItem>();
  syn::List<syn::GenericArg> args = name ? name->genericArgs : expr->as<syn::MemberExpr>()->genericArgs;
  GenericEnv env = genericEnv(item->generics);
  if (!bindExplicitGenerics(env, 0, args, expr->range))
    return types.error();
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound())
      return nullptr;
  return structType(session.structInstance(item, symbol->scope, std::move(env)), DimPolicy::Fresh);
}

Expr* Checker::enumVariant(Type type, const syn::Name& name, SourceRange range) {
  for (size_t i = 0; i < type->decl->fields.size(); ++i)
    if (type->decl->fields[i] == name.text)
      return makeInt(type->decl->enumValues[i], type, range);
  auto builder = error("E0321", name.range, base::concat("`", type->decl->name, "` has no variant `", name.text, "`"));
  if (std::string close = nearest(name.text, type->decl->fields); !close.empty())
    builder.help("did you mean `" + close + "`?");
  return errorExpr(range);
}

Expr* Checker::checkDotName(const syn::DotNameExpr* expr, Type expected) {
  if (expected && expected->kind == TypeKind::Enum)
    return enumVariant(expected, expr->name, expr->range);
  error("E0306", expr->range, base::concat("nothing here says which enum `.", expr->name.text, "` belongs to"))
      .help(base::concat("write the enum's name: `Color.", expr->name.text, "`"));
  return errorExpr(expr->range);
}

Expr* Checker::position(const syn::MemberExpr* expr) {
  const syn::MemberExpr* outer = expr;
  std::string_view axis;
  if (auto* inner = expr->base->tryAs<syn::MemberExpr>()) {
    axis = expr->name.text;
    outer = inner;
  }
  auto* base = outer->base->tryAs<syn::NameExpr>();
  if (!base || !isPositionBase(base->name.text) || findLocal(base->name.text) || items->find(base->name.text))
    return nullptr;
  const PositionRow* row = findPosition(base->name.text, outer->name.text);
  if (!row) {
    std::vector<std::string> members;
    for (const PositionRow& known : kPositions)
      if (known.base == base->name.text)
        members.emplace_back(known.member);
    error("E0321", outer->name.range, base::concat("`", base->name.text, "` has no `", outer->name.text, "`"))
        .help("it has " + base::join(members, ", "));
    return errorExpr(expr->range);
  }
  int64_t index = 0;
  if (outer != expr) {
    if (!row->hasAxes || axis.size() != 1 || axis[0] < 'x' || axis[0] > 'z') {
      error("E0321", expr->name.range, base::concat("`", row->base, ".", row->member, "` has no `", axis, "`"))
          .help(row->hasAxes ? "the axes are x, y and z" : "it is one number");
      return errorExpr(expr->range);
    }
    index = axis[0] - 'x';
  }
  if (!inKernel()) {
    error("E0406", expr->range, base::concat("`", row->base, ".", row->member, "` exists only in kernels"));
    return errorExpr(expr->range);
  }
  // `thread.global_id` without an axis is the position along x: the grid's check tells them apart.
  const bool hasAxis = row->hasAxes && (outer != expr || row->builtin != Builtin::ThreadGlobalId);
  return makeBuiltin(row->builtin, usize(), expr->range, {},
                     hasAxis ? std::vector<int64_t>{index} : std::vector<int64_t>{});
}

Expr* Checker::checkMember(const syn::MemberExpr* expr, Type) {
  if (Expr* out = position(expr))
    return out;
  if (const Symbol* symbol = findSymbol(expr)) {
    if (!checkPublic(*symbol, expr->name))
      return errorExpr(expr->range);
    if (symbol->kind == SymbolKind::Const)
      return constUse(*symbol, expr->range, nullptr);
    error("E0328", expr->range, base::concat("`", session.sources.text(expr->range), "` is not a value"));
    return errorExpr(expr->range);
  }
  if (const Symbol* base = findSymbol(expr->base); base && base->kind == SymbolKind::Missing)
    return errorExpr(expr->range);
  if (const Symbol* base = findSymbol(expr->base); base && base->kind == SymbolKind::Module) {
    unknownInModule(*base, expr->name);
    return errorExpr(expr->range);
  }
  if (Type type = typeNamed(expr->base)) {
    if (isError(type))
      return errorExpr(expr->range);
    if (type->kind == TypeKind::Enum)
      return enumVariant(type, expr->name, expr->range);
    if (Expr* constant = associatedConst(type, expr->name, expr->range))
      return constant;
    unknownMember(type, expr->name, "constant");
    return errorExpr(expr->range);
  }
  Expr* base = value(expr->base);
  return isError(base) ? errorExpr(expr->range) : checkMemberOfValue(base, expr->name, expr->range);
}

bool Checker::checkPublic(const Symbol& symbol, const syn::Name& name) {
  const ItemScope* here = items;
  while (here->parent)
    here = here->parent;
  if (symbol.isPublic || symbol.scope == here || symbol.kind == SymbolKind::Module)
    return true;
  error("E0205", name.range, base::concat("`", name.text, "` is not public"))
      .primary("used here")
      .label(symbol.nameRange, "defined here without `pub`");
  return false;
}

void Checker::unknownInModule(const Symbol& module, const syn::Name& name) {
  std::vector<std::string> names;
  for (const auto& [known, symbol] : module.scope->symbols)
    names.emplace_back(known);
  auto builder =
      error("E0204", name.range, base::concat("`", name.text, "` is not in `", module.scope->moduleName, "`"));
  if (std::string close = nearest(name.text, names); !close.empty())
    builder.help("did you mean `" + close + "`?");
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
Expr* Checker::extentOf(Expr* tensor, size_t dim, SourceRange range) {
  const DimExpr& extent = tensor->type->shape[dim];
  if (!extent.hasOpaque() && (inKernel() || !instance || isPlainValue(*tensor)))
    return makeDim(extent, range);
  return makeBuiltin(Builtin::Extent, usize(), range, {tensor}, {static_cast<int64_t>(dim)});
}

Expr* Checker::checkMemberOfValue(Expr* base, const syn::Name& name, SourceRange range) {
  Type type = base->type;
  if (type->kind == TypeKind::Struct) {
    for (size_t i = 0; i < type->decl->fields.size(); ++i)
      if (type->decl->fields[i] == name.text) {
        Expr* field = make(ExprKind::Field, type->elems[i], range, {base});
        field->ints = {static_cast<int64_t>(i)};
        return field;
      }
    if (Expr* dim = structDim(base, name, range))
      return dim;
  }
  if (type->isTensor() && name.text == "shape") {
    std::vector<Expr*> extents, once;
    if (!inKernel() && instance && !isPlainValue(*base))
      base = temporary(base, once);
    for (size_t i = 0; i < type->rank(); ++i)
      extents.push_back(extentOf(base, i, range));
    Expr* shape = make(ExprKind::MakeArray, types.array(usize(), extents.size()), range, std::move(extents));
    if (once.empty())
      return shape;
    once.push_back(shape);
    return make(ExprKind::Block, shape->type, range, std::move(once));
  }
  Type aggregate = type->isTensor() ? type->elem : type;
  const bool hasFields = aggregate->kind == TypeKind::Struct && aggregate->decl;
  if (type->isTensor() && hasFields)
    for (size_t i = 0; i < aggregate->decl->fields.size() && i < aggregate->elems.size(); ++i)
      if (aggregate->decl->fields[i] == name.text)
        return fieldOfElements(base, i, range);
  auto builder = error("E0321", name.range, base::concat("`", text(type), "` has no field `", name.text, "`"));
  if (hasFields && aggregate->decl->range.isValid())
    builder.label(aggregate->decl->range, base::concat("`", aggregate->decl->name, "` is declared here"));
  std::string close = hasFields ? nearest(name.text, aggregate->decl->fields) : "";
  if (!close.empty())
    builder.help("did you mean `" + close + "`?");
  else if (isBuiltinMethod(name.text))
    builder.help(base::concat("`", name.text, "` is a method; call it: `.", name.text, "()`"));
  return errorExpr(range);
}

/// `particles.x`: a view of one field of all elements, which is a slice that takes every element.
Expr* Checker::fieldOfElements(Expr* tensor, size_t field, SourceRange range) {
  Type type = tensor->type, elem = type->elem->elems[field];
  Expr* out = make(ExprKind::Slice,
                   type->isValue ? types.tensorValue(elem, type->shape)
                                 : types.tensor(elem, type->shape, type->space, type->layout, type->param),
                   range, {tensor});
  out->slices.resize(type->rank());
  out->ints = {static_cast<int64_t>(field)};
  return out;
}

/// `s.PAGE_SIZE`: the dimension is an extent of one of the fields.
Expr* Checker::structDim(Expr* base, const syn::Name& name, SourceRange range) {
  const StructInstance* instance = session.findStruct(base->type->decl);
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
        Expr* field = make(ExprKind::Field, base->type->elems[i], range, {base});
        field->ints = {static_cast<int64_t>(i)};
        return extentOf(field, dim, range);
      }
  }
  return nullptr;
}

}  // namespace vortex::lang
