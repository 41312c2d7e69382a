#include "irgen/entry.h"

#include "lang/sema/element.h"
#include "size/machine.h"

namespace vortex::irgen {

using lang::DimAtom;
using lang::TypeKind;

mlir::Location Locations::operator()(source::SourceRange range) const {
  if (!range.isValid())
    return mlir::UnknownLoc::get(context_);
  source::LineColumn at = sources_.lineColumn(range);
  return mlir::FileLineColLoc::get(context_, sources_.file(range.file).name(), at.line, at.column);
}

Entry::Entry(const lang::Function& kernel, const TypeMap& types, const lang::Roots& roots)
    : kernel_(kernel), types_(types), roots_(roots) {
  for (const lang::Variable* param : kernel.params) {
    firstOfParam_.push_back(arguments_.size());
    addLeaves(stripRef(param->type), param->name, param->range);
  }
  addResult(kernel.resultType);
}

static std::string elementTypeName(lang::Scalar scalar) {
  return std::string(scalar == lang::Scalar::Usize ? "u64" : lang::name(scalar));
}

/// One argument per scalar of an element, `common` but for the name, the type and the place in the struct.
void Entry::addPlanes(lang::Type tensor, const EntryArgument& common) {
  lang::ElementLayout layout = lang::elementLayout(tensor->elem);
  for (const lang::ElementLeaf& leaf : layout.leaves) {
    EntryArgument argument = common;
    argument.name += leaf.path;
    argument.type = types_.view(tensor, types_.scalar(leaf.scalar));
    argument.elementType = elementTypeName(leaf.scalar);
    if (layout.isInterleaved) {
      argument.structBytes = layout.bytes;
      argument.fieldOffset = leaf.offset;
    }
    arguments_.push_back(std::move(argument));
  }
}

void Entry::addLeaves(lang::Type type, std::string name, source::SourceRange range) {
  switch (type->kind) {
  case TypeKind::Ref: return addLeaves(type->elem, std::move(name), range);
  case TypeKind::Struct:
  case TypeKind::Tuple:
    for (size_t i = 0; i < type->elems.size(); ++i)
      addLeaves(type->elems[i],
                name + "." + (type->kind == TypeKind::Struct ? type->decl->fields[i] : std::to_string(i)), range);
    return;
  case TypeKind::Array:
    for (uint64_t i = 0; i < type->count; ++i)
      addLeaves(type->elem, name + "." + std::to_string(i), range);
    return;
  default: break;
  }
  EntryArgument argument{std::move(name), ir::Role::Param, {}, {}, false, range};
  if (type->isTensor())
    return addPlanes(type, argument);
  llvm::SmallVector<mlir::Type> leaves;
  types_.flatten(type, leaves);
  VORTEX_CHECK(leaves.size() == 1, "a parameter of type kind %d is passed", int(type->kind));
  argument.type = leaves[0];
  if (type->kind == TypeKind::Scalar)
    argument.elementType = elementTypeName(type->scalar);
  if (type->kind == TypeKind::Enum)
    argument.enumeration = type;
  arguments_.push_back(std::move(argument));
}

void Entry::addResult(lang::Type type) {
  if (!type || type->kind == TypeKind::Unit || type->kind == TypeKind::Never)
    return;
  if (type->kind == TypeKind::Tuple) {
    for (lang::Type elem : type->elems)
      addResult(elem);
    return;
  }
  EntryArgument argument;
  argument.name = results_.empty() ? "result" : "result" + std::to_string(results_.size());
  argument.role = ir::Role::Result;
  argument.range = kernel_.resultRange;
  results_.push_back(type);
  firstOfResult_.push_back(arguments_.size());
  if (type->isTensor()) {
    argument.extents = sizes(type->shape);
    argument.zero = true;
    return addPlanes(type, argument);
  }
  scalarResults_.push_back(arguments_.size());
  argument.type = ir::ViewType::get(types_.context(), {1}, types_.scalar(scalarOf(type)), ir::Space::Global, {});
  argument.extents = {constant(1)};
  if (type->kind == TypeKind::Scalar)
    argument.elementType = elementTypeName(type->scalar);
  arguments_.push_back(std::move(argument));
}

uint32_t Entry::addTemporary(std::string name, mlir::Type type, llvm::SmallVector<ir::SizeAttr> extents) {
  arguments_.push_back({std::move(name), ir::Role::Temp, type, std::move(extents), false, kernel_.nameRange});
  return arguments_.size() - 1;
}

std::optional<uint32_t> Entry::addTemporary(const lang::Variable& tensor) {
  EntryArgument argument;
  argument.name = tensor.name;
  argument.role = ir::Role::Temp;
  argument.range = tensor.range;
  for (const lang::DimExpr& dim : tensor.type->shape) {
    argument.extents.push_back(size(dim));
    if (!argument.extents.back())
      return std::nullopt;
  }
  const uint32_t first = arguments_.size();
  addPlanes(tensor.type, argument);
  return first;
}

llvm::SmallVector<mlir::Type> Entry::argumentTypes() const {
  llvm::SmallVector<mlir::Type> types;
  for (const EntryArgument& argument : arguments_)
    types.push_back(argument.type);
  return types;
}

uint32_t Entry::argumentOf(uint32_t param, llvm::ArrayRef<uint32_t> fieldPath) const {
  lang::Type type = stripRef(kernel_.params[param]->type);
  uint32_t argument = firstOfParam_[param];
  for (uint32_t field : fieldPath) {
    argument += types_.fieldOffset(type, field);
    type = stripRef(lang::partOf(type, field));
  }
  return argument;
}

/// As TypeMap::flatten, for types that kernels take.
static uint32_t argumentCount(lang::Type type) {
  type = stripRef(type);
  uint32_t count = 0;
  switch (type->kind) {
  case TypeKind::Tensor: return static_cast<uint32_t>(lang::scalarCount(type->elem));
  case TypeKind::Array: return static_cast<uint32_t>(type->count) * argumentCount(type->elem);
  case TypeKind::Struct:
  case TypeKind::Tuple:
    for (lang::Type elem : type->elems)
      count += argumentCount(elem);
    return count;
  default: return 1;
  }
}

uint32_t launchArgument(const lang::Function& kernel, uint32_t param, const std::vector<uint32_t>& fieldPath) {
  uint32_t argument = 0;
  for (uint32_t i = 0; i < param; ++i)
    argument += argumentCount(kernel.params[i]->type);
  lang::Type type = stripRef(kernel.params[param]->type);
  for (uint32_t field : fieldPath) {
    for (uint32_t i = 0; i < field; ++i)
      argument += argumentCount(lang::partOf(type, i));
    type = stripRef(lang::partOf(type, field));
  }
  return argument;
}

static void collectPlanes(lang::Type type, uint32_t& next, llvm::SmallVectorImpl<Planes>& planes) {
  type = stripRef(type);
  if (lang::isStructTensor(type))
    planes.push_back({next, argumentCount(type), type->rank()});
  bool isArray = type->kind == TypeKind::Array;
  if (!isArray && type->kind != TypeKind::Struct && type->kind != TypeKind::Tuple) {
    next += argumentCount(type);
    return;
  }
  for (uint32_t i = 0; i < (isArray ? type->count : type->elems.size()); ++i)
    collectPlanes(lang::partOf(type, i), next, planes);
}

llvm::SmallVector<Planes> planesOfParams(const Entry& entry) {
  llvm::SmallVector<Planes> planes;
  uint32_t next = 0;
  for (const lang::Variable* param : entry.kernel().params)
    collectPlanes(param->type, next, planes);
  return planes;
}

//===-- sizes -----------------------------------------------------------------------------------------------------===//

bool Entry::isBound(lang::DimVarId dim) const {
  const lang::DimBinding& binding = kernel_.dims[dim];
  return binding.param.has_value() || binding.constant.has_value();
}

ir::SizeAttr Entry::variable(lang::DimVarId dim) const {
  const lang::DimBinding& binding = kernel_.dims[dim];
  if (binding.constant)
    return constant(*binding.constant);
  if (!binding.param)
    return {};
  uint32_t argument = argumentOf(*binding.param, binding.fieldPath);
  if (llvm::isa<ir::ViewType>(arguments_[argument].type)) {
    ir::SizeAttr extent = ir::sizeDim(types_.context(), argument, binding.dim);
    return binding.factor ? ir::sizeBinary(size::Op::FloorDiv, extent, size(*binding.factor)) : extent;
  }
  return ir::sizeScalar(types_.context(), argument);
}

/// `/` drops the fraction and `%` has the sign of the dividend, where FloorDiv rounds down and Mod has the sign of the divisor.
static ir::SizeAttr quotient(bool isRest, ir::SizeAttr a, ir::SizeAttr b) {
  if (a.getExpr().isNotNegative() && b.getExpr().isNotNegative())
    return ir::sizeBinary(isRest ? size::Op::Mod : size::Op::FloorDiv, a, b);
  const size::Expr x = a.getExpr(), y = b.getExpr();
  const size::Expr isPositive =
      size::make(size::Op::Equal, size::make(size::Op::Less, x, 0), size::make(size::Op::Less, y, 0));
  const size::Expr whole = size::make(size::Op::Select, isPositive, size::make(size::Op::FloorDiv, x, y),
                                      size::make(size::Op::CeilDiv, x, y));
  if (!isRest)
    return ir::SizeAttr::get(a.getContext(), whole);
  const size::Expr rest = size::make(size::Op::Sub, x, size::make(size::Op::Mul, whole, y));
  const size::Expr zero = x.arena().constant(0);
  return ir::SizeAttr::get(a.getContext(),
                           size::make(size::Op::Select, size::make(size::Op::Equal, y, zero), zero, rest));
}

static std::optional<size::Op> sizeOperator(DimAtom::Kind kind) {
  switch (kind) {
  case DimAtom::Kind::CeilDiv: return size::Op::CeilDiv;
  case DimAtom::Kind::Min: return size::Op::Min;
  case DimAtom::Kind::Max: return size::Op::Max;
  case DimAtom::Kind::Div:
  case DimAtom::Kind::Mod:
  case DimAtom::Kind::Variable:
  case DimAtom::Kind::Opaque: return std::nullopt;
  }
  return std::nullopt;
}

ir::SizeAttr Entry::named(uint32_t opaque) const {
  auto found = kernel_.extentVariables.find(opaque);
  auto param =
      found == kernel_.extentVariables.end() ? kernel_.params.end() : llvm::find(kernel_.params, found->second);
  if (param == kernel_.params.end() || roots_.isAssigned(*param))
    return {};
  return ir::sizeScalar(types_.context(), firstOfParam_[static_cast<size_t>(param - kernel_.params.begin())]);
}

ir::SizeAttr Entry::atom(const DimAtom& atom) const {
  if (atom.kind == DimAtom::Kind::Variable)
    return variable(atom.id);
  if (atom.kind == DimAtom::Kind::Opaque)
    return named(atom.id);
  ir::SizeAttr lhs = size(atom.operands[0]), rhs = size(atom.operands[1]);
  if (!lhs || !rhs)
    return {};
  std::optional<size::Op> op = sizeOperator(atom.kind);
  return op ? ir::sizeBinary(*op, lhs, rhs) : quotient(atom.kind == DimAtom::Kind::Mod, lhs, rhs);
}

ir::SizeAttr Entry::size(const lang::DimExpr& unfixed) const {
  lang::DimExpr expr = types_.fix(unfixed);
  ir::SizeAttr sum;
  for (const auto& [monomial, coefficient] : expr.terms()) {
    ir::SizeAttr product;
    for (const DimAtom& factor : monomial) {
      ir::SizeAttr value = atom(factor);
      if (!value)
        return {};
      product = product ? ir::sizeBinary(size::Op::Mul, product, value) : value;
    }
    if (!product)
      product = constant(coefficient);
    else if (coefficient != 1)
      product = ir::sizeBinary(size::Op::Mul, product, constant(coefficient));
    sum = sum ? ir::sizeBinary(size::Op::Add, sum, product) : product;
  }
  return sum ? sum : constant(0);
}

llvm::SmallVector<ir::SizeAttr> Entry::sizes(llvm::ArrayRef<lang::DimExpr> shape) const {
  llvm::SmallVector<ir::SizeAttr> result;
  for (const lang::DimExpr& dim : shape) {
    ir::SizeAttr extent = size(dim);
    VORTEX_CHECK(extent, "an extent of `%s` is not determined by its parameters", kernel_.name.c_str());
    result.push_back(extent);
  }
  return result;
}

static std::optional<size::Op> sizeOperator(lang::BinaryOp op) {
  switch (op) {
  case lang::BinaryOp::Add: return size::Op::Add;
  case lang::BinaryOp::Sub: return size::Op::Sub;
  case lang::BinaryOp::Mul: return size::Op::Mul;
  default: return std::nullopt;
  }
}

/// Grids are computed in the types of their expressions; floats are no sizes.
static ir::SizeAttr inType(ir::SizeAttr value, lang::Type from, lang::Type type) {
  const auto isInteger = [](lang::Type each) {
    return each->kind == TypeKind::Scalar && lang::isInteger(each->scalar);
  };
  if (!value || !isInteger(from) || !isInteger(type))
    return {};
  return ir::SizeAttr::get(value.getContext(), size::wrapped(value.getExpr(), lang::bitWidth(type->scalar),
                                                             !lang::isUnsigned(type->scalar)));
}

ir::SizeAttr Entry::size(const lang::Expr& expr) const {
  auto binary = [&](size::Op op) -> ir::SizeAttr {
    ir::SizeAttr lhs = size(*expr.args[0]), rhs = size(*expr.args[1]);
    return lhs && rhs ? inType(ir::sizeBinary(op, lhs, rhs), expr.type, expr.type) : ir::SizeAttr();
  };
  switch (expr.kind) {
  case lang::ExprKind::Int: return constant(static_cast<int64_t>(expr.intValue));
  case lang::ExprKind::DimValue: return size(expr.dim);
  case lang::ExprKind::Cast: return inType(size(*expr.args[0]), expr.args[0]->type, expr.type);
  case lang::ExprKind::Block: return expr.args.size() == 1 ? size(*expr.args[0]) : ir::SizeAttr();
  case lang::ExprKind::Binary:
    if (std::optional<size::Op> op = sizeOperator(expr.binaryOp))
      return binary(*op);
    if (expr.binaryOp == lang::BinaryOp::Div || expr.binaryOp == lang::BinaryOp::Rem)
      if (ir::SizeAttr lhs = size(*expr.args[0]), rhs = size(*expr.args[1]); lhs && rhs)
        return inType(quotient(expr.binaryOp == lang::BinaryOp::Rem, lhs, rhs), expr.type, expr.type);
    return {};
  case lang::ExprKind::Builtin:
    switch (expr.builtin) {
    case lang::Builtin::CeilDiv: return binary(size::Op::CeilDiv);
    case lang::Builtin::Min: return binary(size::Op::Min);
    case lang::Builtin::Max: return binary(size::Op::Max);
    case lang::Builtin::Extent: return size(stripRef(expr.args[0]->type)->shape[expr.ints[0]]);
    default: return {};
    }
  case lang::ExprKind::Var:
    for (size_t i = 0; i < kernel_.params.size(); ++i)
      if (kernel_.params[i] == expr.variable && expr.variable->type->kind == TypeKind::Scalar)
        return roots_.isAssigned(expr.variable) ? ir::SizeAttr() : ir::sizeScalar(types_.context(), firstOfParam_[i]);
    if (const lang::Expr* value = roots_.soleValue(expr.variable))
      return size(*value);
    return {};
  default: return {};
  }
}

}  // namespace vortex::irgen
