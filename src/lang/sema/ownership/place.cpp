#include "lang/sema/ownership/place.h"

#include <algorithm>

namespace vortex::lang::ownership {
namespace {

constexpr uint32_t kMaxDepth = 16;

bool isIntegerType(Type type) { return type && type->kind == TypeKind::Scalar && isInteger(type->scalar); }

/// Opaque numbers of variables; those of the checker count from 0.
constexpr uint32_t kFirstId = 1u << 30;

}  // namespace

bool Place::find(Projection::Kind kind) const {
  return std::any_of(path.begin(), path.end(), [&](const Projection& each) { return each.kind == kind; });
}

std::vector<uint32_t> Place::fields() const {
  std::vector<uint32_t> out;
  for (const Projection& each : path) {
    if (each.kind != Projection::Kind::Field)
      break;
    out.push_back(each.field);
  }
  return out;
}

DimExpr Indices::opaque(const Variable* variable) {
  auto [found, isNew] = ids_.try_emplace(variable, kFirstId + static_cast<uint32_t>(ids_.size()));
  if (isNew && !isUnsigned(variable->type->scalar))
    signed_.insert(found->second);
  return DimExpr::opaque(found->second);
}

std::optional<DimExpr> Indices::form(const Expr* expr, uint32_t depth) {
  if (!expr || depth > kMaxDepth || !isIntegerType(expr->type))
    return std::nullopt;
  switch (expr->kind) {
  case ExprKind::Int: return DimExpr::constant(static_cast<int64_t>(expr->intValue));
  case ExprKind::DimValue: return expr->dim;
  case ExprKind::Cast: return form(expr->args[0], depth + 1);
  case ExprKind::Var: {
    if (expr->variable->isVar)
      return std::nullopt;
    if (auto found = values_.find(expr->variable); found != values_.end())
      if (auto value = form(found->second, depth + 1))
        return value;
    return opaque(expr->variable);
  }
  case ExprKind::Binary: {
    auto a = form(expr->args[0], depth + 1), b = form(expr->args[1], depth + 1);
    if (!a || !b)
      return std::nullopt;
    switch (expr->binaryOp) {
    case BinaryOp::Add: return DimExpr::add(*a, *b);
    case BinaryOp::Sub: return DimExpr::sub(*a, *b);
    case BinaryOp::Mul: return DimExpr::mul(*a, *b);
    case BinaryOp::Div: return DimExpr::apply(DimAtom::Kind::FloorDiv, *a, *b);
    case BinaryOp::Rem: return DimExpr::apply(DimAtom::Kind::Mod, *a, *b);
    default: return std::nullopt;
    }
  }
  default: return std::nullopt;
  }
}

std::vector<Indices::Range> Indices::rangesOf(const Expr& access) {
  std::vector<Range> out;
  const auto one = DimExpr::constant(1);
  const auto index = [&](const Expr* at) {
    Range range{form(at), std::nullopt};
    if (range.begin)
      range.end = DimExpr::add(*range.begin, one);
    out.push_back(range);
  };
  if (access.kind == ExprKind::Element) {
    for (size_t i = 1; i < access.args.size(); ++i)
      index(access.args[i]);
    return out;
  }
  for (const SliceDim& slice : access.slices) {
    if (slice.kind == SliceDim::Kind::Index) {
      index(slice.begin);
      continue;
    }
    Range range;
    range.begin = slice.begin ? form(slice.begin) : DimExpr::constant(0);
    if (slice.end) {
      range.end = form(slice.end);
      if (range.end && slice.endIsLength)
        range.end = range.begin ? std::optional(DimExpr::add(*range.begin, *range.end)) : std::nullopt;
    }
    out.push_back(range);
  }
  return out;
}

/// Never above 0, whatever the extents and unsigned variables are.
bool Indices::isNotPositive(const DimExpr& expr) const {
  for (const auto& [monomial, coefficient] : expr.terms()) {
    if (coefficient > 0)
      return false;
    for (const DimAtom& atom : monomial)
      if (atom.kind == DimAtom::Kind::Opaque && signed_.contains(atom.id))
        return false;
  }
  return true;
}

/// Two single indices that differ for every value: `s % 2` and `(s + 1) % 2`.
bool Indices::areUnequal(const Range& a, const Range& b) const {
  if (!a.begin || !b.begin)
    return false;
  if (auto difference = DimExpr::sub(*a.begin, *b.begin).asConstant())
    return *difference != 0;
  const auto mod = [](const DimExpr& expr) -> const DimAtom* {
    if (expr.terms().size() != 1)
      return nullptr;
    const auto& [monomial, coefficient] = *expr.terms().begin();
    return coefficient == 1 && monomial.size() == 1 && monomial[0].kind == DimAtom::Kind::Mod ? monomial.data()
                                                                                              : nullptr;
  };
  const DimAtom *x = mod(*a.begin), *y = mod(*b.begin);
  if (!x || !y || !(x->operands[1] == y->operands[1]))
    return false;
  const auto modulus = x->operands[1].asConstant();
  const auto difference = DimExpr::sub(x->operands[0], y->operands[0]).asConstant();
  return modulus && *modulus > 1 && difference && *difference % *modulus != 0;
}

bool Indices::mayOverlap(const Expr& a, const Expr& b) {
  const std::vector<Range> first = rangesOf(a), second = rangesOf(b);
  const auto before = [&](const Range& x, const Range& y) {
    return x.end && y.begin && isNotPositive(DimExpr::sub(*x.end, *y.begin));
  };
  const auto isIndex = [](const Expr& access, size_t dim) {
    return access.kind == ExprKind::Element || access.slices[dim].kind == SliceDim::Kind::Index;
  };
  for (size_t dim = 0; dim < std::min(first.size(), second.size()); ++dim) {
    if (before(first[dim], second[dim]) || before(second[dim], first[dim]))
      return false;
    if (isIndex(a, dim) && isIndex(b, dim) && areUnequal(first[dim], second[dim]))
      return false;
  }
  return true;
}

void Indices::variablesOf(const Expr& access, std::set<const Variable*>& out, uint32_t depth) const {
  if (depth > kMaxDepth)
    return;
  const auto visit = [&](const auto& self, const Expr* expr, uint32_t level) -> void {
    if (!expr || level > kMaxDepth)
      return;
    if (expr->kind == ExprKind::Var) {
      out.insert(expr->variable);
      if (auto found = values_.find(expr->variable); found != values_.end())
        self(self, found->second, level + 1);
    }
    for (const Expr* arg : expr->args)
      self(self, arg, level + 1);
  };
  if (access.kind == ExprKind::Element)
    for (size_t i = 1; i < access.args.size(); ++i)
      visit(visit, access.args[i], depth);
  for (const SliceDim& slice : access.slices) {
    visit(visit, slice.begin, depth);
    visit(visit, slice.end, depth);
  }
}

}  // namespace vortex::lang::ownership
