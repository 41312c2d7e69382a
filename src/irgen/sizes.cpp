// Symbolic extents as index values.
#include "irgen/emitter.h"

#include "ir/tile_sizes.h"

namespace vortex::irgen {

using lang::DimAtom;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

Value Emitter::dimVariable(Location loc, lang::DimVarId id) {
  const lang::DimBinding& binding = context_.function.dims[id];
  if (binding.constant)
    return math_.index(loc, *binding.constant);
  auto found = dims_.find(id);
  VORTEX_CHECK(found != dims_.end(), "dimension `%s` has no value here", binding.name.c_str());
  return found->second;
}

/// An argument or a `let` that all threads agree on.
Value Emitter::extentNamed(Location loc, uint32_t opaque) {
  auto found = context_.function.extentVariables.find(opaque);
  const Variable* variable = found == context_.function.extentVariables.end() ? nullptr : found->second;
  if (variable && variables_.count(variable) &&
      (inThreads_ || variable->uniformity == lang::Uniformity::Uniform || !context_.hasThreads))
    return math_.toIndex(loc, readScalar(loc, variable), scalarOf(variable->type));
  if (!context_.failed)
    mlir::emitError(loc) << "not supported yet: an extent that is not a number, a dimension, an argument of the "
                            "kernel, a `let` outside of called "
                            "functions that all threads agree on, or the length of a slice before";
  context_.failed = true;
  return math_.index(loc, 1);
}

Value Emitter::dimAtom(Location loc, const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::Variable)
    return dimVariable(loc, atom.id);
  if (atom.kind == DimAtom::Kind::Opaque) {
    if (auto found = extents_.find(lang::DimExpr::opaque(atom.id)); found != extents_.end())
      return found->second;
    return extentNamed(loc, atom.id);
  }
  Value lhs = dimNumber(loc, atom.operands[0]), rhs = dimNumber(loc, atom.operands[1]);
  // As Entry::size says it: both must come to the same numbers.
  const bool isPlain = llvm::all_of(atom.operands, [&](const lang::DimExpr& operand) {
    const ir::SizeAttr size = context_.entry.size(operand);
    return size && size.getExpr().isNotNegative();
  });
  auto total = [&](ir::IntKind kind) -> Value { return b_.create<ir::IntOp>(loc, lhs.getType(), kind, lhs, rhs); };
  switch (atom.kind) {
  case DimAtom::Kind::Div: return total(isPlain ? ir::IntKind::DivU : ir::IntKind::DivS);
  case DimAtom::Kind::CeilDiv:
    return isPlain ? total(ir::IntKind::CeilDivU) : math_.call(loc, Builtin::CeilDiv, Scalar::I64, {lhs, rhs});
  case DimAtom::Kind::Mod: return total(isPlain ? ir::IntKind::RemU : ir::IntKind::RemS);
  case DimAtom::Kind::Min: return b_.create<arith::MinSIOp>(loc, lhs, rhs);
  case DimAtom::Kind::Max: return b_.create<arith::MaxSIOp>(loc, lhs, rhs);
  case DimAtom::Kind::Variable:
  case DimAtom::Kind::Opaque: break;
  }
  VORTEX_UNREACHABLE("extent atom");
}

/// A slice that ends before it begins has no elements: `N - 2` of N = 1 is the extent 0, and the number -1 in `(N - 2) / 2 + 4`.
Value Emitter::dimValue(Location loc, const lang::DimExpr& unfixed) {
  const lang::DimExpr expr = types_.fix(unfixed);
  Value number = dimNumber(loc, expr);
  if (expr.asConstant() || extents_.count(expr) || isNotNegative(expr))
    return number;
  return b_.create<arith::MaxSIOp>(loc, number, math_.index(loc, 0));
}

bool Emitter::isNotNegative(const lang::DimExpr& expr) const {
  if (const ir::SizeAttr size = context_.entry.size(expr))
    return size.getExpr().isNotNegative();
  // Of what the body binds: the extents of tensors.
  return llvm::all_of(expr.terms(), [](const auto& term) {
    return term.second > 0 &&
           llvm::all_of(term.first, [](const DimAtom& atom) { return atom.kind == DimAtom::Kind::Variable; });
  });
}

Value Emitter::dimNumber(Location loc, const lang::DimExpr& unfixed) {
  lang::DimExpr expr = types_.fix(unfixed);
  if (std::optional<int64_t> constant = expr.asConstant())
    return math_.index(loc, *constant);
  if (auto known = extents_.find(expr); known != extents_.end())
    return known->second;
  Value sum;
  for (const auto& [monomial, coefficient] : expr.terms()) {
    Value product;
    for (const DimAtom& factor : monomial) {
      Value value = dimAtom(loc, factor);
      product = product ? Value(b_.create<arith::MulIOp>(loc, product, value)) : value;
    }
    if (!product)
      product = math_.index(loc, coefficient);
    else if (coefficient != 1)
      product = b_.create<arith::MulIOp>(loc, product, math_.index(loc, coefficient));
    sum = sum ? Value(b_.create<arith::AddIOp>(loc, sum, product)) : product;
  }
  return sum;
}

/// `let x: Tensor<f32, [P]> = …` gives P a value.
void Emitter::bindDims(const lang::Expr& let, Value value) {
  llvm::SmallVector<Value> sizes;
  for (auto [dim, extent] : llvm::enumerate(let.variable->type->shape)) {
    std::optional<lang::DimVarId> variable = extent.asVariable();
    if (!variable || context_.entry.isBound(*variable) || dims_.count(*variable))
      continue;
    if (llvm::isa<ir::ViewType>(value.getType())) {
      dims_[*variable] = extentOf(loc(let), value, static_cast<unsigned>(dim));
      continue;
    }
    if (sizes.empty())
      sizes = ir::tileSizeValues(b_, loc(let), value);
    dims_[*variable] = sizes[dim];
  }
}

}  // namespace vortex::irgen
