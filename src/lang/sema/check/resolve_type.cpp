// Syntax of types → types.
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"
#include "lang/sema/element.h"

#include "base/text.h"

namespace vortex::lang {

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
const char* typeElsewhere(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"float", "f32"},     {"float32", "f32"},   {"double", "f64"}, {"float64", "f64"},  {"half", "f16"},
      {"float16", "f16"},   {"bfloat16", "bf16"}, {"int", "i32"},    {"uint", "u32"},     {"long", "i64"},
      {"short", "i16"},     {"char", "u8"},       {"byte", "u8"},    {"int8", "i8"},      {"uint8", "u8"},
      {"int16", "i16"},     {"uint16", "u16"},    {"int32", "i32"},  {"uint32", "u32"},   {"int64", "i64"},
      {"uint64", "u64"},    {"size_t", "usize"},  {"isize", "i64"},  {"boolean", "bool"}, {"str", "String"},
      {"string", "String"},
  };
  for (const auto& [other, ours] : kNames)
    if (other == name)
      return ours;
  return nullptr;
}

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

// Names in a type are looked up where it was written.
class Elsewhere {
public:
  Elsewhere(Checker& checker, ItemScope* items, GenericEnv generics, Type selfType)
      : checker_(checker), items_(checker.items), generics_(std::move(checker.generics)), selfType_(checker.selfType) {
    checker.items = items;
    checker.generics = std::move(generics);
    checker.selfType = selfType;
  }
  ~Elsewhere() {
    checker_.items = items_;
    checker_.generics = std::move(generics_);
    checker_.selfType = selfType_;
  }

private:
  Checker& checker_;
  ItemScope* items_;
  GenericEnv generics_;
  Type selfType_;
};
}  // namespace

bool Checker::checkSize(Type type, SourceRange range) {
  size_t budget = kMaxTypeSize;
  if (fitsBudget(type, budget))
    return true;
  error("E0335", range, base::concat("this type has more than ", kMaxTypeSize, " parts"));
  return false;
}

/// The definition of `name` is entered; false if it is being resolved already.
bool Checker::enterDefinition(const void* definition, const syn::Name& name, SourceRange range) {
  constexpr size_t kMaxDepth = 100;
  const bool isCycle = std::find(resolving_.begin(), resolving_.end(), definition) != resolving_.end();
  if (!isCycle && resolving_.size() < kMaxDepth) {
    resolving_.push_back(definition);
    return true;
  }
  if (isCycle)
    error("E0335", range, base::concat("`", name.text, "` is defined through itself"))
        .help("keep the values in one `Vec` and let them name each other by index");
  else
    error("E0335", range, base::concat("the definition of `", name.text, "` is more than ", kMaxDepth, " types deep"));
  return false;
}

Type Checker::resolveType(const syn::Type* type, DimPolicy policy) {
  switch (type->kind) {
  case syn::TypeKind::Error: return types.error();
  case syn::TypeKind::Named: return resolveNamed(type->as<syn::NamedType>(), policy);
  case syn::TypeKind::Associated: {
    auto* associated = type->as<syn::AssociatedType>();
    return associatedType(resolveType(associated->base, policy), associated->name, type->range);
  }
  case syn::TypeKind::Array: {
    auto* array = type->as<syn::ArrayType>();
    Type elem = resolveType(array->elem, policy);
    auto count = constantInt(array->count, usize(), "an array's length");
    if (isError(elem) || !count)
      return types.error();
    return types.array(elem, static_cast<uint64_t>(*count));
  }
  case syn::TypeKind::Tuple: {
    std::vector<Type> elems;
    for (const syn::Type* elem : type->as<syn::TupleType>()->elems) {
      elems.push_back(resolveType(elem, policy));
      if (isError(elems.back()))
        return elems.back();
    }
    Type tuple = elems.empty() ? types.unit() : types.tuple(std::move(elems));
    return checkSize(tuple, type->range) ? tuple : types.error();
  }
  case syn::TypeKind::Ref: {
    auto* ref = type->as<syn::RefType>();
    Type inner = resolveType(ref->inner, policy);
    return isError(inner) ? inner : types.ref(inner, ref->isMutable);
  }
  case syn::TypeKind::Spaced: return resolveSpaced(type->as<syn::SpacedType>(), policy);
  case syn::TypeKind::Function: {
    auto* function = type->as<syn::FunctionType>();
    std::vector<Type> params;
    for (const syn::Type* param : function->params)
      params.push_back(resolveType(param, policy));
    Type result = function->result ? resolveType(function->result, policy) : types.unit();
    return types.closure(std::move(params), result);
  }
  case syn::TypeKind::Infer:
    error("E0306", type->range, "the type cannot be inferred here").help("write the type instead of `_`");
    return types.error();
  }
  return types.error();
}

Type Checker::resolveNamed(const syn::NamedType* type, DimPolicy policy) {
  const syn::Name& last = type->path.back();
  if (type->path.size() == 1) {
    if (const GenericValue* generic = findGeneric(generics, last.text)) {
      if (generic->kind == GenericValue::Kind::Type)
        return generic->type;
      if (generic->kind != GenericValue::Kind::None)
        error("E0329", type->range, base::concat("`", last.text, "` is not a type")).primary("a type is needed here");
      return types.error();
    }
    if (last.text == "Self" && selfType)
      return selfType;
  } else {
    bool isPath = false;
    if (Type associated = pathType(type, policy, isPath); isPath)
      return associated;
  }
  const Symbol* symbol = items->find(type->path.front().text);
  if (symbol && symbol->kind == SymbolKind::Missing)
    return types.error();
  for (size_t i = 1; symbol && i < type->path.size(); ++i) {
    if (symbol->kind != SymbolKind::Module)
      return symbol = nullptr, types.error();
    auto found = symbol->scope->symbols.find(type->path[i].text);
    symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
  }
  if (!symbol && type->path.size() == 1) {
    if (auto scalar = scalarNamed(last.text))
      return types.scalar(*scalar);
    if (last.text == "Tensor")
      return resolveTensor(type, policy);
    if (last.text == "String")
      return types.string();
    if (last.text == "Vec") {
      if (type->genericArgs.size() != 1 || !type->genericArgs[0].type) {
        error("E0329", type->range, "`Vec` takes one type").help("write the element type: `Vec<f32>`");
        return types.error();
      }
      Type elem = resolveType(type->genericArgs[0].type, policy);
      return isError(elem) ? elem : types.vec(elem);
    }
  }
  if (!symbol) {
    std::vector<std::string> candidates = builtinTypeNames();
    for (const ItemScope* scope = items; scope; scope = scope->parent)
      for (const auto& [name, other] : scope->symbols)
        if (other.kind == SymbolKind::Struct || other.kind == SymbolKind::Enum || other.kind == SymbolKind::Alias)
          candidates.emplace_back(name);
    auto builder =
        error("E0210", type->range, base::concat("there is no type `", session.sources.text(type->range), "`"));
    if (const char* ours = typeElsewhere(last.text))
      builder.help(base::concat("here this is `", ours, "`"));
    else if (std::string close = nearest(last.text, candidates); !close.empty())
      builder.help("did you mean `" + close + "`?");
    return types.error();
  }
  switch (symbol->kind) {
  case SymbolKind::Enum: return types.enumeration(session.structInstance(symbol->item, symbol->scope, {})->decl);
  case SymbolKind::Struct: {
    auto* item = symbol->item->as<syn::StructItem>();
    GenericEnv env = genericEnv(item->generics);
    if (!bindExplicitGenerics(env, 0, type->genericArgs, type->range, policy))
      return types.error();
    for (const GenericBinding& binding : env)
      if (!binding.value.isBound()) {
        error("E0306", type->range,
              base::concat("`", item->name.text, "` needs its generic argument `", binding.name, "`"));
        return types.error();
      }
    if (!checkBounds(item->generics, env, type->range))
      return types.error();
    return structType(session.structInstance(item, symbol->scope, std::move(env)), policy);
  }
  case SymbolKind::Alias:
    return aliasType(symbol->item->as<syn::TypeAliasItem>(), symbol->scope, type->genericArgs, type->range, policy);
  default:
    error("E0329", type->range, base::concat("`", session.sources.text(type->range), "` is not a type"));
    return types.error();
  }
}

Type Checker::aliasType(const syn::TypeAliasItem* item, ItemScope* scope, syn::List<syn::GenericArg> args,
                        SourceRange range, DimPolicy policy) {
  GenericEnv env = genericEnv(item->generics);
  if (!item->aliased || !bindExplicitGenerics(env, 0, args, range, policy))
    return types.error();
  if (!enterDefinition(item, item->name, range))
    return types.error();
  Elsewhere there(*this, scope, std::move(env), nullptr);
  Type out = resolveType(item->aliased, policy);
  resolving_.pop_back();
  return out;
}

/// Elements are scalars, or structs, tuples and arrays whose scalars are stored one by one.
bool Checker::checkElement(Type elem, SourceRange range) {
  if (elem->kind == TypeKind::Scalar || (elem->kind == TypeKind::Struct && elem->param))
    return true;
  const bool isAggregate =
      elem->kind == TypeKind::Struct || elem->kind == TypeKind::Tuple || elem->kind == TypeKind::Array;
  auto report = [&](std::string label) {
    auto builder = error("E0329", range, "a tensor of `" + text(elem) + "` does not exist");
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
    auto builder =
        report(base::concat("`", path.empty() ? text(part) : path, "` of an element would be a `", text(part), "`"));
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

Type Checker::resolveTensor(const syn::NamedType* type, DimPolicy policy) {
  syn::List<syn::GenericArg> args = type->genericArgs;
  if (args.size() < 2 || args.size() > 3 || !args[0].type) {
    error("E0329", type->range, "`Tensor` takes an element type, a shape and optionally a memory space")
        .help("for example `Tensor<f32, [M, N]>` or `Tensor<f32, [N], Shared>`");
    return types.error();
  }
  Type elem = resolveType(args[0].type, policy);
  bool ok = true;
  std::vector<DimExpr> shape = resolveShape(args[1], policy, ok);
  Space space = Space::Global;
  const TypeParam* param = nullptr;
  if (args.size() == 3) {
    auto* named = args[2].type ? args[2].type->tryAs<syn::NamedType>() : nullptr;
    std::optional<Space> found = named && named->path.size() == 1 ? spaceNamed(named->path[0]) : std::nullopt;
    if (!found) {
      error("E0337", args[2].range, base::concat("`", session.sources.text(args[2].range), "` is not a memory space"))
          .help("the spaces are Global, Shared, Local and Constant");
      return types.error();
    }
    space = *found;
    if (const GenericValue* generic = findGeneric(generics, named->path[0].text))
      param = generic->param;
  }
  if (isError(elem) || !ok)
    return types.error();
  if (!checkElement(elem, args[0].range))
    return types.error();
  return types.tensor(elem, std::move(shape), space, SharedLayout::RowMajor, param);
}

std::optional<Space> Checker::spaceNamed(const syn::Name& name) {
  if (const GenericValue* generic = findGeneric(generics, name.text))
    return generic->kind == GenericValue::Kind::Space ? std::optional(generic->space) : std::nullopt;
  if (name.text == "Global" || name.text == "global")
    return Space::Global;
  if (name.text == "Shared" || name.text == "shared")
    return Space::Shared;
  if (name.text == "Local" || name.text == "local")
    return Space::Local;
  if (name.text == "Constant" || name.text == "constant")
    return Space::Constant;
  return std::nullopt;
}

Type Checker::resolveSpaced(const syn::SpacedType* type, DimPolicy policy) {
  Type inner = resolveType(type->inner, policy);
  if (isError(inner))
    return inner;
  const std::optional<Space> space = spaceNamed(type->space.name);
  if (!space) {
    error("E0337", type->space.range, base::concat("`@", type->space.name.text, "` is not a memory space"))
        .help("the spaces are @global, @shared, @local and @constant");
    return types.error();
  }
  if (!inner->isTensor()) {
    error("E0337", type->space.range, "only tensors have a memory space, not `" + text(inner) + "`");
    return types.error();
  }
  SharedLayout layout = SharedLayout::RowMajor;
  for (const syn::Arg& arg : type->space.args) {
    auto* value = arg.value ? arg.value->tryAs<syn::DotNameExpr>() : nullptr;
    if (arg.name.text != "layout" || !value || *space != Space::Shared) {
      error("E0208", arg.range, "a memory space takes only `layout = …`, and only @shared does");
      return types.error();
    }
    if (value->name.text == "bank_conflict_free")
      layout = SharedLayout::BankConflictFree;
    else if (value->name.text == "column_major")
      layout = SharedLayout::ColumnMajor;
    else if (value->name.text != "row_major") {
      error("E0208", value->range, base::concat("there is no layout `.", value->name.text, "`"))
          .help("the layouts are .row_major, .column_major and .bank_conflict_free");
      return types.error();
    }
  }
  const GenericValue* generic = findGeneric(generics, type->space.name.text);
  return types.tensor(inner->elem, inner->shape, *space, layout, generic ? generic->param : nullptr);
}

static bool holdsReference(Type type) {
  switch (type->kind) {
  case TypeKind::Ref: return true;
  case TypeKind::Vec:
  case TypeKind::Array: return holdsReference(type->elem);
  case TypeKind::Tuple: return std::any_of(type->elems.begin(), type->elems.end(), holdsReference);
  default: return false;
  }
}

Type Checker::structType(const StructInstance* instance, DimPolicy policy) {
  if (instance->decl->isEnum)
    return types.enumeration(instance->decl);
  auto* item = instance->item->as<syn::StructItem>();
  if (!enterDefinition(instance, item->name, item->name.range))
    return types.error();
  Elsewhere there(*this, instance->scope, instance->generics, nullptr);
  std::vector<Type> fields;
  bool ok = true;
  for (size_t i = 0; i < item->fields.size() && ok; ++i) {
    fields.push_back(resolveType(item->fields[i].type, policy == DimPolicy::Known ? DimPolicy::Fresh : policy));
    ok = !isError(fields.back()) && checkFieldSpace(fields.back(), item->fields[i], item->name);
    if (ok && holdsReference(fields.back()))
      error("E0524", item->fields[i].type->range,
            base::concat("the field `", item->fields[i].name.text, "` holds a reference: structs own what they hold"))
          .primary("a reference")
          .label(item->name.range, "in this struct")
          .help("hold the value itself, or an index into a list");
  }
  resolving_.pop_back();
  Type type = ok ? types.structure(instance->decl, std::move(fields)) : types.error();
  return ok && checkSize(type, item->name.range) ? type : types.error();
}

GenericEnv Checker::genericEnv(const syn::Generics& params, GenericEnv outer) {
  for (const syn::GenericParam& param : params.params)
    outer.push_back({param.name.text, &param, {}});
  return outer;
}

std::optional<GenericValue> Checker::genericArg(const syn::GenericArg& arg, const syn::GenericParam& param,
                                                DimPolicy policy) {
  GenericValue value;
  if (param.isConst) {
    Type type = param.constType ? resolveType(param.constType, DimPolicy::Known) : usize();
    if (isError(type))
      return std::nullopt;
    value.kind = GenericValue::Kind::Const;
    value.type = type;
    if (arg.expr) {
      Expr* literal = constant(arg.expr, type, "a generic argument");
      if (!literal)
        return std::nullopt;
      value.value = literal->intValue;
      return value;
    }
    // A lone name is parsed as a type.
    auto* named = arg.type->tryAs<syn::NamedType>();
    if (named && named->path.size() == 1)
      if (auto dim = dimNamed(named->path[0], DimPolicy::Known)) {
        if (auto constant = dim->asConstant()) {
          value.value = *constant;
          return value;
        }
        error("E0310", arg.range, "a generic argument must be known at compile time");
      }
    return std::nullopt;
  }
  if (arg.expr) {
    bool ok = true;
    value.shape = resolveShape(arg, policy, ok);
    value.kind = GenericValue::Kind::Shape;
    return ok ? std::optional(value) : std::nullopt;
  }
  if (auto* named = arg.type->tryAs<syn::NamedType>(); named && named->path.size() == 1) {
    if (const GenericValue* outer = findGeneric(generics, named->path[0].text);
        outer && outer->kind != GenericValue::Kind::Type)
      return *outer;
    if (!items->find(named->path[0].text) && std::isupper(static_cast<unsigned char>(named->path[0].text[0])))
      if (auto space = spaceNamed(named->path[0])) {
        value.kind = GenericValue::Kind::Space;
        value.space = *space;
        return value;
      }
  }
  value.kind = GenericValue::Kind::Type;
  value.type = resolveType(arg.type, policy);
  return isError(value.type) ? std::nullopt : std::optional(value);
}

bool Checker::bindExplicitGenerics(GenericEnv& env, size_t first, syn::List<syn::GenericArg> args, SourceRange range,
                                   DimPolicy policy) {
  const size_t count = env.size() - first;
  if (args.size() > count) {
    error(
        "E0329", range,
        base::concat("expected at most ", count, " generic argument", count == 1 ? "" : "s", ", found ", args.size()));
    return false;
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name.isPresent()) {
      error("E0329", args[i].range, base::concat("only the bound of a trait says what `", args[i].name.text, "` is"))
          .primary("not a generic argument");
      return false;
    }
    if (args[i].type && args[i].type->is<syn::InferType>())
      continue;
    auto value = genericArg(args[i], *env[first + i].param, policy);
    if (!value)
      return false;
    env[first + i].value = *value;
  }
  return true;
}

}  // namespace vortex::lang
