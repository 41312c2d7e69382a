#include "lang/sema/types.h"

#include <deque>
#include <map>
#include <tuple>

namespace vortex::lang {

bool isFloat(Scalar scalar) { return scalar >= Scalar::F8E4M3; }
bool isInteger(Scalar scalar) { return scalar >= Scalar::U8 && scalar <= Scalar::Usize; }
bool isUnsigned(Scalar scalar) { return (scalar >= Scalar::U8 && scalar <= Scalar::U64) || scalar == Scalar::Usize; }
uint32_t bitWidth(Scalar scalar) {
  switch (scalar) {
  case Scalar::Bool: return 1;
  case Scalar::U8:
  case Scalar::I8:
  case Scalar::F8E4M3:
  case Scalar::F8E5M2: return 8;
  case Scalar::U16:
  case Scalar::I16:
  case Scalar::F16:
  case Scalar::BF16: return 16;
  case Scalar::U32:
  case Scalar::I32:
  case Scalar::F32: return 32;
  default: return 64;
  }
}
std::string_view name(Scalar scalar) {
  constexpr std::string_view kNames[] = {"bool", "u8",    "u16",    "u32",    "u64", "i8",   "i16", "i32",
                                         "i64",  "usize", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<size_t>(scalar)];
}

namespace {
auto key(const TypeNode& node) {
  return std::tie(node.kind, node.scalar, node.elem, node.shape, node.space, node.layout, node.isValue, node.count,
                  node.elems, node.decl, node.isMutable, node.param);
}
struct Less {
  bool operator()(const TypeNode* a, const TypeNode* b) const { return key(*a) < key(*b); }
};
TypeNode simple(TypeKind kind, Type elem = nullptr, std::vector<Type> elems = {}) {
  TypeNode node;
  node.kind = kind;
  node.elem = elem;
  node.elems = std::move(elems);
  return node;
}
}  // namespace

struct TypeContext::Storage {
  std::deque<TypeNode> nodes;
  std::map<const TypeNode*, Type, Less> interned;
};

TypeContext::TypeContext() : storage_(new Storage) {}
TypeContext::~TypeContext() { delete storage_; }

Type TypeContext::intern(TypeNode node) {
  if (auto found = storage_->interned.find(&node); found != storage_->interned.end())
    return found->second;
  storage_->nodes.push_back(std::move(node));
  Type made = &storage_->nodes.back();
  storage_->interned.emplace(made, made);
  return made;
}

Type TypeContext::error() { return intern(simple(TypeKind::Error)); }
Type TypeContext::unit() { return intern(simple(TypeKind::Unit)); }
Type TypeContext::never() { return intern(simple(TypeKind::Never)); }
Type TypeContext::string() { return intern(simple(TypeKind::String)); }
Type TypeContext::scalar(Scalar scalar) { return paramScalar(scalar, nullptr); }
Type TypeContext::paramScalar(Scalar scalar, const TypeParam* param) {
  TypeNode node = simple(TypeKind::Scalar);
  node.scalar = scalar;
  node.param = param;
  return intern(std::move(node));
}
Type TypeContext::paramStruct(const StructDecl* decl, const TypeParam* param) {
  TypeNode node = simple(TypeKind::Struct);
  node.decl = decl;
  node.param = param;
  return intern(std::move(node));
}
Type TypeContext::tensor(Type elem, std::vector<DimExpr> shape, Space space, SharedLayout layout,
                         const TypeParam* spaceParam) {
  TypeNode node = simple(TypeKind::Tensor, elem);
  node.shape = std::move(shape);
  node.space = space;
  node.layout = layout;
  node.param = spaceParam;
  return intern(std::move(node));
}
Type TypeContext::tensorValue(Type elem, std::vector<DimExpr> shape) {
  TypeNode node = simple(TypeKind::Tensor, elem);
  node.shape = std::move(shape);
  node.isValue = true;
  return intern(std::move(node));
}
Type TypeContext::vec(Type elem) { return intern(simple(TypeKind::Vec, elem)); }
Type TypeContext::array(Type elem, uint64_t count) {
  TypeNode node = simple(TypeKind::Array, elem);
  node.count = count;
  return intern(std::move(node));
}
Type TypeContext::tuple(std::vector<Type> elems) { return intern(simple(TypeKind::Tuple, nullptr, std::move(elems))); }
Type TypeContext::structure(const StructDecl* decl, std::vector<Type> fieldTypes) {
  TypeNode node = simple(TypeKind::Struct, nullptr, std::move(fieldTypes));
  node.decl = decl;
  return intern(std::move(node));
}
Type TypeContext::enumeration(const StructDecl* decl) {
  TypeNode node = simple(TypeKind::Enum);
  node.decl = decl;
  return intern(std::move(node));
}
Type TypeContext::ref(Type elem, bool isMutable) {
  TypeNode node = simple(TypeKind::Ref, elem);
  node.isMutable = isMutable;
  return intern(std::move(node));
}
Type TypeContext::range(Type elem) { return intern(simple(TypeKind::Range, elem)); }
Type TypeContext::closure(std::vector<Type> params, Type result) {
  return intern(simple(TypeKind::Closure, result, std::move(params)));
}

static std::vector<Type> substituteAll(const std::vector<Type>& types, TypeContext& context,
                                       const std::vector<std::optional<DimExpr>>& dims) {
  std::vector<Type> result;
  result.reserve(types.size());
  for (Type type : types)
    result.push_back(substituteDims(type, context, dims));
  return result;
}

Type substituteDims(Type type, TypeContext& types, const std::vector<std::optional<DimExpr>>& dims) {
  if (!type || dims.empty() || (type->param && !type->isTensor()))
    return type;
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& dim : type->shape)
      shape.push_back(dim.substitute(dims));
    Type elem = substituteDims(type->elem, types, dims);
    return type->isValue ? types.tensorValue(elem, std::move(shape))
                         : types.tensor(elem, std::move(shape), type->space, type->layout, type->param);
  }
  case TypeKind::Vec: return types.vec(substituteDims(type->elem, types, dims));
  case TypeKind::Array: return types.array(substituteDims(type->elem, types, dims), type->count);
  case TypeKind::Tuple: return types.tuple(substituteAll(type->elems, types, dims));
  case TypeKind::Struct: return types.structure(type->decl, substituteAll(type->elems, types, dims));
  case TypeKind::Ref: return types.ref(substituteDims(type->elem, types, dims), type->isMutable);
  case TypeKind::Range: return types.range(substituteDims(type->elem, types, dims));
  case TypeKind::Closure:
    return types.closure(substituteAll(type->elems, types, dims), substituteDims(type->elem, types, dims));
  default: return type;
  }
}

Type stripRef(Type type) {
  while (type && type->kind == TypeKind::Ref)
    type = type->elem;
  return type;
}

namespace {
std::string list(const std::vector<Type>& types, const std::vector<std::string>& dimNames) {
  std::string out;
  for (Type type : types)
    out += (out.empty() ? "" : ", ") + text(type, dimNames);
  return out;
}
std::string tensorText(Type type, const std::vector<std::string>& dimNames) {
  std::string out = "Tensor<" + text(type->elem, dimNames) + ", [";
  for (size_t i = 0; i < type->shape.size(); ++i)
    out += (i ? ", " : "") + type->shape[i].text(dimNames);
  if (type->param)
    return out + "], " + type->param->name + ">";
  out += "]>";
  if (type->isValue)
    return out;
  switch (type->space) {
  case Space::Global: break;
  case Space::Shared: out += " @shared"; break;
  case Space::Local: out += " @local"; break;
  case Space::Constant: out += " @constant"; break;
  }
  if (type->layout == SharedLayout::ColumnMajor)
    out += "(layout = .column_major)";
  if (type->layout == SharedLayout::BankConflictFree)
    out += "(layout = .bank_conflict_free)";
  return out;
}
}  // namespace

std::string text(Type type, const std::vector<std::string>& dimNames) {
  switch (type->kind) {
  case TypeKind::Error: return "?";
  case TypeKind::Unit: return "()";
  case TypeKind::Never: return "!";
  case TypeKind::Scalar: return type->param ? type->param->name : std::string(name(type->scalar));
  case TypeKind::String: return "String";
  case TypeKind::Tensor: return tensorText(type, dimNames);
  case TypeKind::Vec: return "Vec<" + text(type->elem, dimNames) + ">";
  case TypeKind::Array: return "[" + text(type->elem, dimNames) + "; " + std::to_string(type->count) + "]";
  case TypeKind::Tuple: return "(" + list(type->elems, dimNames) + (type->elems.size() == 1 ? ",)" : ")");
  case TypeKind::Struct:
  case TypeKind::Enum: return type->param ? type->param->name : type->decl->name;
  case TypeKind::Ref: return (type->isMutable ? "&mut " : "&") + text(type->elem, dimNames);
  case TypeKind::Range: return "Range<" + text(type->elem, dimNames) + ">";
  case TypeKind::Closure:
    return "fn(" + list(type->elems, dimNames) + ")" +
           (type->elem->kind == TypeKind::Unit ? "" : " -> " + text(type->elem, dimNames));
  }
  return "?";
}

}  // namespace vortex::lang
