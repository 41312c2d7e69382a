#include "irgen/entry.h"

namespace vortex::irgen {

using artifact::SizeExpr;
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
    addLeaves(stripRef(param->type), param->name, ir::Role::Param, param->range);
  }
  firstResult_ = arguments_.size();
  addResult(kernel.resultType);
}

static std::string elementTypeName(lang::Type type) {
  lang::Type elem = type->isTensor() ? type->elem : type;
  if (elem->kind != TypeKind::Scalar)
    return {};
  return std::string(elem->scalar == lang::Scalar::Usize ? "u64" : lang::name(elem->scalar));
}

void Entry::addLeaves(lang::Type type, std::string name, ir::Role role, source::SourceRange range) {
  if (type->kind == TypeKind::Ref)
    return addLeaves(type->elem, std::move(name), role, range);
  if (type->kind == TypeKind::Struct || type->kind == TypeKind::Tuple) {
    for (size_t i = 0; i < type->elems.size(); ++i) {
      std::string field = type->kind == TypeKind::Struct ? type->decl->fields[i] : std::to_string(i);
      addLeaves(type->elems[i], name + "." + field, role, range);
    }
    return;
  }
  llvm::SmallVector<mlir::Type> leaves;
  if (type->isTensor())
    leaves.push_back(types_.view(type));
  else
    types_.flatten(type, leaves);
  for (size_t i = 0; i < leaves.size(); ++i)
    arguments_.push_back({leaves.size() == 1 ? name : name + "." + std::to_string(i),
                          role,
                          leaves[i],
                          {},
                          false,
                          range,
                          elementTypeName(type)});
}

void Entry::addResult(lang::Type type) {
  if (!type || type->kind == TypeKind::Unit || type->kind == TypeKind::Never)
    return;
  if (type->kind == TypeKind::Tuple) {
    for (lang::Type elem : type->elems)
      addResult(elem);
    return;
  }
  bool scalar = !type->isTensor();
  if (scalar)
    scalarResults_.push_back(arguments_.size());
  EntryArgument argument;
  argument.name = results_.empty() ? "result" : "result" + std::to_string(results_.size());
  argument.role = ir::Role::Result;
  argument.range = kernel_.resultRange;
  argument.elementType = elementTypeName(type);
  if (scalar) {
    argument.type = ir::ViewType::get(types_.context(), {1}, types_.scalar(scalarOf(type)), ir::Space::Global, {});
    argument.extents = {constant(1)};
  } else {
    llvm::SmallVector<int64_t> shape;
    for (const lang::DimExpr& dim : type->shape)
      shape.push_back(types_.extent(dim));
    argument.type = ir::ViewType::get(types_.context(), shape, types_.scalar(scalarOf(type)), ir::Space::Global, {});
    argument.extents = sizes(type->shape);
    argument.zero = true;
  }
  results_.push_back(type);
  arguments_.push_back(std::move(argument));
}

uint32_t Entry::addTemporary(std::string name, mlir::Type type, llvm::SmallVector<ir::SizeAttr> extents) {
  arguments_.push_back({std::move(name), ir::Role::Temp, type, std::move(extents), false, kernel_.nameRange});
  return arguments_.size() - 1;
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
    type = stripRef(type->elems[field]);
  }
  return argument;
}

/// As TypeMap::flatten, for types that kernels take.
static uint32_t argumentCount(lang::Type type) {
  type = stripRef(type);
  uint32_t count = 0;
  switch (type->kind) {
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
      argument += argumentCount(type->elems[i]);
    type = stripRef(type->elems[field]);
  }
  return argument;
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
  if (llvm::isa<ir::ViewType>(arguments_[argument].type))
    return ir::sizeDim(types_.context(), argument, binding.dim);
  return ir::sizeScalar(types_.context(), argument);
}

static std::optional<SizeExpr::Op> sizeOperator(DimAtom::Kind kind) {
  switch (kind) {
  case DimAtom::Kind::FloorDiv: return SizeExpr::Op::FloorDiv;
  case DimAtom::Kind::CeilDiv: return SizeExpr::Op::CeilDiv;
  case DimAtom::Kind::Mod: return SizeExpr::Op::Mod;
  case DimAtom::Kind::Min: return SizeExpr::Op::Min;
  case DimAtom::Kind::Max: return SizeExpr::Op::Max;
  case DimAtom::Kind::Variable:
  case DimAtom::Kind::Opaque: return std::nullopt;
  }
  return std::nullopt;
}

ir::SizeAttr Entry::atom(const DimAtom& atom) const {
  if (atom.kind == DimAtom::Kind::Variable)
    return variable(atom.id);
  std::optional<SizeExpr::Op> op = sizeOperator(atom.kind);
  if (!op)
    return {};
  ir::SizeAttr lhs = size(atom.operands[0]), rhs = size(atom.operands[1]);
  return lhs && rhs ? ir::sizeBinary(*op, lhs, rhs) : ir::SizeAttr();
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
      product = product ? ir::sizeBinary(SizeExpr::Op::Mul, product, value) : value;
    }
    if (!product)
      product = constant(coefficient);
    else if (coefficient != 1)
      product = ir::sizeBinary(SizeExpr::Op::Mul, product, constant(coefficient));
    sum = sum ? ir::sizeBinary(SizeExpr::Op::Add, sum, product) : product;
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

static std::optional<SizeExpr::Op> sizeOperator(lang::BinaryOp op) {
  switch (op) {
  case lang::BinaryOp::Add: return SizeExpr::Op::Add;
  case lang::BinaryOp::Sub: return SizeExpr::Op::Sub;
  case lang::BinaryOp::Mul: return SizeExpr::Op::Mul;
  case lang::BinaryOp::Div: return SizeExpr::Op::FloorDiv;
  case lang::BinaryOp::Rem: return SizeExpr::Op::Mod;
  default: return std::nullopt;
  }
}

ir::SizeAttr Entry::size(const lang::Expr& expr) const {
  auto binary = [&](SizeExpr::Op op) -> ir::SizeAttr {
    ir::SizeAttr lhs = size(*expr.args[0]), rhs = size(*expr.args[1]);
    return lhs && rhs ? ir::sizeBinary(op, lhs, rhs) : ir::SizeAttr();
  };
  switch (expr.kind) {
  case lang::ExprKind::Int: return constant(static_cast<int64_t>(expr.intValue));
  case lang::ExprKind::DimValue: return size(expr.dim);
  case lang::ExprKind::Cast: return size(*expr.args[0]);
  case lang::ExprKind::Block: return expr.args.size() == 1 ? size(*expr.args[0]) : ir::SizeAttr();
  case lang::ExprKind::Binary:
    if (std::optional<SizeExpr::Op> op = sizeOperator(expr.binaryOp))
      return binary(*op);
    return {};
  case lang::ExprKind::Builtin:
    switch (expr.builtin) {
    case lang::Builtin::CeilDiv: return binary(SizeExpr::Op::CeilDiv);
    case lang::Builtin::Min: return binary(SizeExpr::Op::Min);
    case lang::Builtin::Max: return binary(SizeExpr::Op::Max);
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
