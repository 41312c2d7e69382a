// Syntax of types → types.
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_dim.h"
#include "lang/sema/check/types/spaces.h"
#include "lang/sema/element.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

namespace vortex::lang {

static Type resolveTensor(BodyState& body, const syn::NamedType* type, DimPolicy policy);
static Type resolveSpaced(BodyState& body, const syn::SpacedType* type, DimPolicy policy);

std::optional<Scalar> scalarNamed(std::string_view text) {
  for (uint32_t i = 0; i <= static_cast<uint32_t>(Scalar::F64); ++i)
    if (name(static_cast<Scalar>(i)) == text)
      return static_cast<Scalar>(i);
  return std::nullopt;
}

const std::vector<std::string>& builtinTypeNames() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"Tensor", "Vec", "String", "Self"};
    for (uint32_t i = 0; i <= static_cast<uint32_t>(Scalar::F64); ++i)
      names.emplace_back(name(static_cast<Scalar>(i)));
    return names;
  }();
  return kNames;
}

bool writesSpace(const syn::Type* type) {
  if (type->is<syn::SpacedType>())
    return true;
  if (auto* ref = type->tryAs<syn::RefType>())
    return writesSpace(ref->inner);
  if (auto* array = type->tryAs<syn::ArrayType>())
    return writesSpace(array->elem);
  if (auto* named = type->tryAs<syn::NamedType>())
    return named->path.back().text != "Tensor" || named->genericArgs.size() > 2;
  return type->is<syn::AssociatedType>();
}

namespace {

/// What a type of CUDA C++, C, Python or Rust is here; null if it is none that we know.
// Types are written out in names and messages, and those of types used twice in each other grow exponentially.
constexpr size_t kMaxTypeSize = 500;
bool fitsBudget(Type type, size_t& budget) {
  if (budget == 0)
    return false;
  --budget;
  if (type->elem && !fitsBudget(type->elem, budget))
    return false;
  for (Type elem : type->elems)
    if (!fitsBudget(elem, budget))
      return false;
  return true;
}

}  // namespace

bool checkSize(BodyState& body, Type type, SourceRange range) {
  size_t budget = kMaxTypeSize;
  if (fitsBudget(type, budget))
    return true;
  error(body, "E0335", range, base::concat("this type has more than ", kMaxTypeSize, " parts"));
  return false;
}

Type resolveType(BodyState& body, const syn::Type* type, DimPolicy policy) {
  switch (type->kind) {
  case syn::TypeKind::Error: return body.types.error();
  case syn::TypeKind::Named: return resolveNamed(body, type->as<syn::NamedType>(), policy);
  case syn::TypeKind::Associated: {
    auto* associated = type->as<syn::AssociatedType>();
    return associatedType(body, resolveType(body, associated->base, policy), associated->name, type->range);
  }
  case syn::TypeKind::Array: {
    auto* array = type->as<syn::ArrayType>();
    Type elem = resolveType(body, array->elem, policy);
    auto count = constantInt(body, array->count, usize(body), "an array's length");
    if (isError(elem) || !count)
      return body.types.error();
    return body.types.array(elem, static_cast<uint64_t>(*count));
  }
  case syn::TypeKind::Tuple: {
    std::vector<Type> elems;
    for (const syn::Type* elem : type->as<syn::TupleType>()->elems) {
      elems.push_back(resolveType(body, elem, policy));
      if (isError(elems.back()))
        return elems.back();
    }
    Type tuple = elems.empty() ? body.types.unit() : body.types.tuple(std::move(elems));
    return checkSize(body, tuple, type->range) ? tuple : body.types.error();
  }
  case syn::TypeKind::Ref: {
    auto* ref = type->as<syn::RefType>();
    Type inner = resolveType(body, ref->inner, policy);
    return isError(inner) ? inner : body.types.ref(inner, ref->isMutable);
  }
  case syn::TypeKind::Spaced: return resolveSpaced(body, type->as<syn::SpacedType>(), policy);
  case syn::TypeKind::Function: {
    auto* function = type->as<syn::FunctionType>();
    std::vector<Type> params;
    for (const syn::Type* param : function->params)
      params.push_back(resolveType(body, param, policy));
    Type result = function->result ? resolveType(body, function->result, policy) : body.types.unit();
    return body.types.closure(std::move(params), result);
  }
  case syn::TypeKind::Infer:
    error(body, "E0306", type->range, "the type cannot be inferred here").help("write the type instead of `_`");
    return body.types.error();
  }
  return body.types.error();
}

Type resolveNamed(BodyState& body, const syn::NamedType* type, DimPolicy policy) {
  const syn::Name& last = type->path.back();
  if (type->path.size() == 1) {
    if (const GenericValue* generic = findGeneric(body.generics, last.text)) {
      if (generic->kind == GenericValue::Kind::Type)
        return generic->type;
      if (generic->kind != GenericValue::Kind::None)
        error(body, "E0329", type->range, base::concat("`", last.text, "` is not a type"))
            .primary("a type is needed here");
      return body.types.error();
    }
    if (last.text == "Self" && body.selfType)
      return body.selfType;
  } else {
    bool isPath = false;
    if (Type associated = pathType(body, type, policy, isPath); isPath)
      return associated;
  }
  const Symbol* symbol = body.items->find(type->path.front().text);
  if (symbol && symbol->kind == SymbolKind::Missing)
    return body.types.error();
  for (size_t i = 1; symbol && i < type->path.size(); ++i) {
    if (symbol->kind != SymbolKind::Module)
      return symbol = nullptr, body.types.error();
    auto found = symbol->scope->symbols.find(type->path[i].text);
    symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
  }
  if (!symbol && type->path.size() == 1) {
    if (auto scalar = scalarNamed(last.text))
      return body.types.scalar(*scalar);
    if (last.text == "Tensor")
      return resolveTensor(body, type, policy);
    if (last.text == "String")
      return body.types.string();
    if (last.text == "Vec") {
      if (type->genericArgs.size() != 1 || !type->genericArgs[0].type) {
        error(body, "E0329", type->range, "`Vec` takes one type").help("write the element type: `Vec<f32>`");
        return body.types.error();
      }
      Type elem = resolveType(body, type->genericArgs[0].type, policy);
      return isError(elem) ? elem : body.types.vec(elem);
    }
  }
  if (!symbol) {
    std::vector<std::string> candidates = builtinTypeNames();
    for (const ItemScope* scope = body.items; scope; scope = scope->parent)
      for (const auto& [name, other] : scope->symbols)
        if (other.kind == SymbolKind::Struct || other.kind == SymbolKind::Enum || other.kind == SymbolKind::Alias)
          candidates.emplace_back(name);
    auto builder = error(body, "E0210", type->range,
                         base::concat("there is no type `", body.session.sources.text(type->range), "`"));
    diag::suggest(builder, diag::typeElsewhere(last.text), last.text, candidates);
    return body.types.error();
  }
  switch (symbol->kind) {
  case SymbolKind::Enum:
    return body.types.enumeration(body.session.structInstance(symbol->item, symbol->scope, {})->decl);
  case SymbolKind::Struct: {
    auto* item = symbol->item->as<syn::StructItem>();
    GenericEnv env = genericEnv(item->generics);
    if (!bindExplicitGenerics(body, env, 0, type->genericArgs, type->range, policy))
      return body.types.error();
    for (const GenericBinding& binding : env)
      if (!binding.value.isBound()) {
        error(body, "E0306", type->range,
              base::concat("`", item->name.text, "` needs its generic argument `", binding.name, "`"));
        return body.types.error();
      }
    if (!checkBounds(body, item->generics, env, type->range))
      return body.types.error();
    return structType(body, body.session.structInstance(item, symbol->scope, std::move(env)), policy);
  }
  case SymbolKind::Alias:
    return aliasType(body, symbol->item->as<syn::TypeAliasItem>(), symbol->scope, type->genericArgs, type->range,
                     policy);
  default:
    error(body, "E0329", type->range, base::concat("`", body.session.sources.text(type->range), "` is not a type"));
    return body.types.error();
  }
}

/// Elements are scalars, or structs, tuples and arrays whose scalars are stored one by one.
bool checkElement(BodyState& body, Type elem, SourceRange range) {
  if (elem->kind == TypeKind::Scalar || (elem->kind == TypeKind::Struct && elem->param))
    return true;
  const bool isAggregate =
      elem->kind == TypeKind::Struct || elem->kind == TypeKind::Tuple || elem->kind == TypeKind::Array;
  auto report = [&](std::string label) {
    auto builder = error(body, "E0329", range, "a tensor of `" + text(body, elem) + "` does not exist");
    builder.primary(std::move(label));
    if (elem->kind == TypeKind::Struct)
      builder.label(elem->decl->range, "this struct");
    return builder;
  };
  if (!isAggregate) {
    report("elements are scalars, and structs, tuples and arrays of these");
    return false;
  }
  if (auto [part, path] = unstorablePart(elem); part) {
    auto builder = report(base::concat("`", path.empty() ? text(body, part) : path, "` of an element would be a `",
                                       text(body, part), "`"));
    if (part->isTensor())
      builder.help("make a struct of tensors instead, or keep the values themselves in an array `[T; N]`");
    else
      builder.help("elements hold scalars, enums, and structs, tuples and arrays of these");
    return false;
  }
  const uint64_t scalars = scalarCount(elem);
  if (scalars == 0 || scalars > kMaxElementLeaves) {
    report(scalars == 0 ? "an element would hold nothing"
                        : base::concat("an element has ", scalars, " scalars; at most ", kMaxElementLeaves,
                                       " are stored as planes"))
        .help(scalars == 0 ? "give it a field" : "make what is repeated a dimension of the tensor");
    return false;
  }
  return true;
}

static Type resolveTensor(BodyState& body, const syn::NamedType* type, DimPolicy policy) {
  syn::List<syn::GenericArg> args = type->genericArgs;
  if (args.size() < 2 || args.size() > 3 || !args[0].type) {
    error(body, "E0329", type->range, "`Tensor` takes an element type, a shape and optionally a memory space")
        .help("for example `Tensor<f32, [M, N]>` or `Tensor<f32, [N], Shared>`");
    return body.types.error();
  }
  Type elem = resolveType(body, args[0].type, policy);
  bool ok = true;
  std::vector<DimExpr> shape = resolveShape(body, args[1], policy, ok);
  Space space = Space::Global;
  const TypeParam* param = nullptr;
  if (args.size() == 3) {
    auto* named = args[2].type ? args[2].type->tryAs<syn::NamedType>() : nullptr;
    std::optional<Space> found = named && named->path.size() == 1 ? spaceNamed(body, named->path[0]) : std::nullopt;
    if (!found) {
      error(body, "E0337", args[2].range,
            base::concat("`", body.session.sources.text(args[2].range), "` is not a memory space"))
          .help("the spaces are Global, Shared, Local and Constant");
      return body.types.error();
    }
    space = *found;
    if (const GenericValue* generic = findGeneric(body.generics, named->path[0].text))
      param = generic->param;
  }
  if (isError(elem) || !ok)
    return body.types.error();
  if (!checkElement(body, elem, args[0].range))
    return body.types.error();
  return body.types.tensor(elem, std::move(shape), space, SharedLayout::RowMajor, param);
}

static Type resolveSpaced(BodyState& body, const syn::SpacedType* type, DimPolicy policy) {
  Type inner = resolveType(body, type->inner, policy);
  if (isError(inner))
    return inner;
  const std::optional<Space> space = spaceNamed(body, type->space.name);
  if (!space) {
    error(body, "E0337", type->space.range, base::concat("`@", type->space.name.text, "` is not a memory space"))
        .help("the spaces are @global, @shared, @local and @constant");
    return body.types.error();
  }
  if (!inner->isTensor()) {
    error(body, "E0337", type->space.range, "only tensors have a memory space, not `" + text(body, inner) + "`");
    return body.types.error();
  }
  SharedLayout layout = SharedLayout::RowMajor;
  for (const syn::Arg& arg : type->space.args) {
    auto* value = arg.value ? arg.value->tryAs<syn::DotNameExpr>() : nullptr;
    if (arg.name.text != "layout" || !value || *space != Space::Shared) {
      error(body, "E0208", arg.range, "a memory space takes only `layout = …`, and only @shared does");
      return body.types.error();
    }
    if (value->name.text == "bank_conflict_free")
      layout = SharedLayout::BankConflictFree;
    else if (value->name.text == "column_major")
      layout = SharedLayout::ColumnMajor;
    else if (value->name.text != "row_major") {
      error(body, "E0208", value->range, base::concat("there is no layout `.", value->name.text, "`"))
          .help("the layouts are .row_major, .column_major and .bank_conflict_free");
      return body.types.error();
    }
  }
  const GenericValue* generic = findGeneric(body.generics, type->space.name.text);
  return body.types.tensor(inner->elem, inner->shape, *space, layout, generic ? generic->param : nullptr);
}

}  // namespace vortex::lang
