#include "irgen/type_map.h"

#include "lang/sema/element.h"

namespace vortex::irgen {

using lang::Scalar;
using lang::TypeKind;

bool isNarrowFloat(Scalar scalar) {
  return scalar == Scalar::F16 || scalar == Scalar::BF16 || scalar == Scalar::F8E4M3 || scalar == Scalar::F8E5M2;
}

Scalar wideScalar(Scalar scalar) { return isNarrowFloat(scalar) ? Scalar::F32 : scalar; }

Scalar scalarOf(lang::Type type) {
  type = stripRef(type);
  if (type->kind == TypeKind::Tensor || type->kind == TypeKind::Range)
    return scalarOf(type->elem);
  if (type->kind == TypeKind::Enum)
    return Scalar::I32;
  VORTEX_CHECK(type->kind == TypeKind::Scalar, "type kind %d has no scalar", int(type->kind));
  return type->scalar;
}

bool isMemoryTensor(lang::Type type) {
  type = stripRef(type);
  return type->isTensor() && !type->isValue;
}

bool isMemoryArray(lang::Type type) {
  return type->kind == TypeKind::Array && type->elem->isTensor() && !type->elem->isValue &&
         (type->elem->space == lang::Space::Shared || type->elem->space == lang::Space::Local);
}

bool isTileType(lang::Type type) { return type->isTensor() && type->isValue; }

TypeMap::TypeMap(mlir::MLIRContext* context, const std::vector<std::optional<int64_t>>& fixedDims) : context_(context) {
  bool any = false;
  for (const std::optional<int64_t>& dim : fixedDims) {
    fixed_.push_back(dim ? std::optional(lang::DimExpr::constant(*dim)) : std::nullopt);
    any |= dim.has_value();
  }
  if (!any)
    fixed_.clear();
}

mlir::Type TypeMap::scalar(Scalar scalar) const {
  switch (scalar) {
  case Scalar::Bool: return mlir::IntegerType::get(context_, 1);
  case Scalar::U8:
  case Scalar::I8: return mlir::IntegerType::get(context_, 8);
  case Scalar::U16:
  case Scalar::I16: return mlir::IntegerType::get(context_, 16);
  case Scalar::U32:
  case Scalar::I32: return mlir::IntegerType::get(context_, 32);
  case Scalar::U64:
  case Scalar::I64: return mlir::IntegerType::get(context_, 64);
  case Scalar::Usize: return mlir::IndexType::get(context_);
  case Scalar::F8E4M3: return mlir::Float8E4M3FNType::get(context_);
  case Scalar::F8E5M2: return mlir::Float8E5M2Type::get(context_);
  case Scalar::F16: return mlir::Float16Type::get(context_);
  case Scalar::BF16: return mlir::BFloat16Type::get(context_);
  case Scalar::F32: return mlir::Float32Type::get(context_);
  case Scalar::F64: return mlir::Float64Type::get(context_);
  }
  VORTEX_UNREACHABLE("scalar type");
}

int64_t TypeMap::extent(const lang::DimExpr& expr) const {
  return fix(expr).asConstant().value_or(mlir::ShapedType::kDynamic);
}

mlir::RankedTensorType TypeMap::tile(lang::Type type, mlir::Type element) const {
  llvm::SmallVector<int64_t> shape;
  for (const lang::DimExpr& dim : stripRef(type)->shape)
    shape.push_back(extent(dim));
  return mlir::RankedTensorType::get(shape, element);
}

ir::ViewType TypeMap::view(lang::Type type, mlir::Type element) const {
  type = stripRef(type);
  llvm::SmallVector<int64_t> shape;
  for (const lang::DimExpr& dim : type->shape)
    shape.push_back(extent(dim));
  auto space = static_cast<ir::Space>(type->space);
  mlir::Attribute layout;
  if (space == ir::Space::Shared && type->layout == lang::SharedLayout::BankConflictFree)
    layout = swizzle(shape, element.isIndex() ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  if (space == ir::Space::Shared && type->layout == lang::SharedLayout::ColumnMajor)
    layout = ir::viewLayout(context_, true);
  return ir::ViewType::get(context_, shape, element, space, layout);
}

/// Null where none is needed. Extents that are not known yet are refused where the tensor is allocated.
ir::SwizzleAttr TypeMap::swizzle(llvm::ArrayRef<int64_t> shape, unsigned elementBytes) const {
  if (mlir::ShapedType::isDynamicShape(shape))
    return {};
  auto [found, isNew] = swizzles_.try_emplace({std::vector<int64_t>(shape.begin(), shape.end()), elementBytes});
  if (isNew)
    found->second = layout::solveTileSwizzle(shape, elementBytes);
  const layout::XorSwizzle& solved = found->second;
  if (solved.mask == 0)
    return {};
  return ir::SwizzleAttr::get(context_, solved.shift, static_cast<int64_t>(solved.mask), solved.base);
}

ir::ViewType TypeMap::arrayView(lang::Type array, mlir::Type element) const {
  ir::ViewType one = view(array->elem, element);
  llvm::SmallVector<int64_t> shape = {static_cast<int64_t>(array->count)};
  shape.append(one.getShape().begin(), one.getShape().end());
  return ir::ViewType::get(context_, shape, element, one.getSpace(), one.getLayout());
}

static void collectScalars(lang::Type type, llvm::SmallVectorImpl<Scalar>& scalars) {
  switch (type->kind) {
  case TypeKind::Array:
    for (uint64_t i = 0; i < type->count; ++i)
      collectScalars(type->elem, scalars);
    return;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (lang::Type elem : type->elems)
      collectScalars(elem, scalars);
    return;
  default: scalars.push_back(scalarOf(type)); return;
  }
}

llvm::SmallVector<Scalar, 1> TypeMap::planes(lang::Type tensor) const {
  llvm::SmallVector<Scalar, 1> scalars;
  collectScalars(stripRef(tensor)->elem, scalars);
  return scalars;
}

mlir::RankedTensorType TypeMap::perThread(mlir::Type scalar) const {
  return mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, scalar);
}

void TypeMap::flatten(lang::Type type, llvm::SmallVectorImpl<mlir::Type>& leaves) const {
  switch (type->kind) {
  case TypeKind::Scalar: leaves.push_back(scalar(type->scalar)); return;
  case TypeKind::Enum: leaves.push_back(scalar(Scalar::I32)); return;
  case TypeKind::Tensor:
    for (Scalar plane : planes(type)) {
      mlir::Type element = scalar(plane);
      leaves.push_back(type->isValue ? mlir::Type(tile(type, element)) : mlir::Type(view(type, element)));
    }
    return;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (lang::Type elem : type->elems)
      flatten(elem, leaves);
    return;
  case TypeKind::Array:
    if (isMemoryArray(type)) {
      for (Scalar plane : planes(type->elem))
        leaves.push_back(arrayView(type, scalar(plane)));
      return;
    }
    for (uint64_t i = 0; i < type->count; ++i)
      flatten(type->elem, leaves);
    return;
  case TypeKind::Range: leaves.append(3, scalar(scalarOf(type->elem))); return;
  case TypeKind::Ref:
    if (isMemoryTensor(type))
      flatten(stripRef(type), leaves);
    else if (stripRef(type)->kind == TypeKind::Struct)  // a borrowed struct parameter is its fields
      flatten(stripRef(type), leaves);
    return;
  case TypeKind::Error:
  case TypeKind::Unit:
  case TypeKind::Never:
  case TypeKind::String:
  case TypeKind::Vec:
  case TypeKind::Closure: return;
  }
}

uint32_t TypeMap::leafCount(lang::Type type) const {
  llvm::SmallVector<mlir::Type> leaves;
  flatten(type, leaves);
  return leaves.size();
}

lang::Type TypeMap::tensorOf(lang::Type type, uint32_t leaf) const {
  type = stripRef(type);
  if (type->isTensor())
    return type;
  if (type->kind == TypeKind::Array)
    return tensorOf(type->elem, isMemoryArray(type) ? leaf : leaf % leafCount(type->elem));
  uint32_t field = 0;
  while (leaf >= fieldOffset(type, field + 1))
    ++field;
  return tensorOf(type->elems[field], leaf - fieldOffset(type, field));
}

uint32_t TypeMap::fieldOffset(lang::Type type, uint32_t field) const {
  if (type->kind == TypeKind::Array)
    return field * leafCount(type->elem);
  uint32_t offset = 0;
  for (uint32_t i = 0; i < field; ++i)
    offset += leafCount(type->elems[i]);
  return offset;
}

bool TypeMap::hasStaticShape(lang::Type type) const {
  for (const lang::DimExpr& dim : stripRef(type)->shape)
    if (!fix(dim).asConstant())
      return false;
  return true;
}

}  // namespace vortex::irgen
