#include "irgen/facts.h"

#include "lang/sema/children.h"
#include "lang/sema/element.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::irgen {

using lang::Builtin;
using lang::Expr;
using lang::ExprKind;
using lang::TypeKind;
using lang::Uniformity;
using lang::Variable;

llvm::SmallVector<const Expr*, 4> children(const Expr& expr) {
  llvm::SmallVector<const Expr*, 4> result;
  lang::forEachChild(expr, [&](const Expr& child) { result.push_back(&child); });
  return result;
}

const Variable* assignedRoot(const Expr& place) {
  switch (place.kind) {
  case ExprKind::Var: return place.variable;
  case ExprKind::Field: return assignedRoot(*place.args[0]);
  case ExprKind::Deref: return assignedRoot(*place.args[0]);
  case ExprKind::Element: return stripRef(place.args[0]->type)->isTensor() ? nullptr : assignedRoot(*place.args[0]);
  default: return nullptr;
  }
}

BodyFacts::BodyFacts(const lang::Function& kernel, bool hasThreads) : kernel_(kernel), hasThreads_(hasThreads) {
  boolean_.kind = TypeKind::Scalar;
  boolean_.scalar = lang::Scalar::Bool;
  index_.kind = TypeKind::Scalar;
  index_.scalar = lang::Scalar::Usize;
  f32_.kind = TypeKind::Scalar;
  f32_.scalar = lang::Scalar::F32;
}

const Variable* BodyFacts::newVariable(std::string name, lang::Type type, Uniformity uniformity) {
  Variable& variable = owned_.emplace_back();
  variable.name = std::move(name);
  variable.type = type;
  variable.isVar = true;
  variable.uniformity = hasThreads_ ? uniformity : Uniformity::Uniform;
  return &variable;
}

lang::Type BodyFacts::wide(lang::Type type) {
  if (!isTileType(type) || lang::isStructTensor(type) || !isNarrowFloat(scalarOf(type)))
    return type;
  lang::TypeNode& node = types_.emplace_back(*type);
  node.elem = &f32_;
  return &node;
}

//===-- grades ----------------------------------------------------------------------------------------------------===//

static bool isLocalTensor(lang::Type type) {
  type = stripRef(type);
  return type->isTensor() && !type->isValue && type->space == lang::Space::Local;
}

Grade BodyFacts::ownGrade(const Expr& expr) const {
  if (!hasThreads_)
    return Grade::Uniform;
  switch (expr.kind) {
  case ExprKind::Let: {
    lang::Type type = expr.variable->type;
    if (expr.isAfterBarrier)
      return Grade::Block;
    if (isMemoryTensor(type) && type->kind == TypeKind::Tensor && !expr.args.empty() && expr.args[0]->type->isValue)
      return isLocalTensor(type) ? Grade::Thread : Grade::Block;  // a filled shared tensor ends with a barrier
    return expr.variable->uniformity == Uniformity::PerThread && !isMemoryTensor(type) ? Grade::Thread : Grade::Uniform;
  }
  case ExprKind::Var:
    return expr.variable->uniformity == Uniformity::PerThread && !isMemoryTensor(expr.variable->type) ? Grade::Thread
                                                                                                      : Grade::Uniform;
  case ExprKind::Element: return isLocalTensor(expr.args[0]->type) ? Grade::Thread : Grade::Uniform;
  case ExprKind::Assign:
    if (const Variable* root = assignedRoot(*expr.args[0]); root && root->type->kind != TypeKind::Ref)
      return root->uniformity == Uniformity::PerThread ? Grade::Thread : Grade::Uniform;
    if (const Expr* element = lang::tensorElement(*expr.args[0]); element && isLocalTensor(element->args[0]->type))
      return Grade::Thread;
    if (expr.args[0]->kind == ExprKind::Slice || (expr.args[0]->type && expr.args[0]->type->isTensor()))
      return Grade::Block;
    return expr.needsBlock ? Grade::Block : Grade::Uniform;
  case ExprKind::Return: {
    if (targets_.lookup(&expr) || expr.args.empty())
      return Grade::Uniform;
    return returnGrade(*expr.args[0], kernel_.resultType);
  }
  case ExprKind::Builtin:
    if (expr.builtin == Builtin::SyncBlock || expr.builtin == Builtin::SyncGrid || expr.builtin == Builtin::Stage ||
        expr.builtin == Builtin::AsyncStage || lang::isBlockReduction(expr.builtin))
      return Grade::Block;
    if (expr.builtin >= Builtin::Zeros && expr.builtin <= Builtin::MaskUpperTriangle)
      return Grade::Block;
    if (expr.builtin == Builtin::Print || expr.builtin == Builtin::Assert)
      return expr.needsBlock ? Grade::Block : Grade::Uniform;
    if (expr.uniformity == Uniformity::PerThread)
      return Grade::Thread;
    if (expr.builtin >= Builtin::SyncWarp && expr.builtin <= Builtin::WarpAll && expr.builtin != Builtin::WarpSize)
      return Grade::Thread;
    return isTileType(expr.type) || (!expr.args.empty() && isTileType(expr.args[0]->type)) ? Grade::Block
                                                                                           : Grade::Uniform;
  case ExprKind::Dot: return Grade::Block;
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast:
  case ExprKind::Broadcast:
  case ExprKind::Slice: return isTileType(expr.type) ? Grade::Block : Grade::Uniform;
  case ExprKind::Break:
  case ExprKind::Continue: return Grade::Uniform;
  default: return Grade::Uniform;
  }
}

/// An element of each thread, the result's own storage, or something of the block; of several results the highest.
Grade BodyFacts::returnGrade(const Expr& value, lang::Type result) {
  if (result && result->kind == TypeKind::Tuple && value.kind == ExprKind::MakeTuple &&
      value.args.size() == result->elems.size()) {
    Grade grade = Grade::Uniform;
    for (auto [part, type] : llvm::zip(value.args, result->elems))
      grade = std::max(grade, returnGrade(*part, type));
    return grade;
  }
  if (result && result->isTensor() && !stripRef(value.type)->isTensor())
    return Grade::Thread;
  const bool isStorage = value.kind == ExprKind::Var && value.variable->isResultStorage;
  return isStorage ? Grade::Uniform : Grade::Block;
}

/// The value that a local tensor has everywhere at first, which each thread stores itself; null: another start, or none.
static const Expr* filling(const Expr& expr) {
  if (expr.kind != ExprKind::Let || expr.args.empty() || !isLocalTensor(expr.variable->type))
    return nullptr;
  const Expr* value = expr.args[0];
  const bool isConstant =
      value->kind == ExprKind::Builtin && (value->builtin == Builtin::Zeros || value->builtin == Builtin::Full);
  const bool isScalar = value->kind == ExprKind::Broadcast && !value->args[0]->type->isTensor();
  return isConstant || isScalar ? value : nullptr;
}

BodyFacts::ExprFacts BodyFacts::compute(const Expr& expr) const {
  ExprFacts result;
  result.grade = ownGrade(expr);
  llvm::SmallVector<const Variable*, 2> escapes;
  const Expr* filled = hasThreads_ ? filling(expr) : nullptr;
  for (const Expr* child : filled ? children(*filled) : children(expr)) {
    const ExprFacts& inner = facts(*child);
    result.grade = std::max(result.grade, inner.grade);
    escapes.append(inner.escapes.begin(), inner.escapes.end());
  }
  if (const Variable* flag = jumpFlag(expr)) {
    escapes.push_back(flag);
    if (isDivergent(flag))
      result.grade = std::max(result.grade, Grade::Thread);
  }
  auto own = flags_.find(&expr);
  for (const Variable* flag : escapes) {
    bool ends = own != flags_.end() &&
                (flag == own->second.broke || flag == own->second.continued || flag == own->second.returned);
    if (!ends && !llvm::is_contained(result.escapes, flag))
      result.escapes.push_back(flag);
  }
  if (expr.hasPerThread && hasThreads_)
    result.grade = std::max(result.grade, Grade::Thread);
  return result;
}

const BodyFacts::ExprFacts& BodyFacts::facts(const Expr& expr) const {
  if (auto found = cache_.find(&expr); found != cache_.end())
    return *found->second;
  auto computed = std::make_unique<ExprFacts>(compute(expr));
  return *(cache_[&expr] = std::move(computed));
}

bool BodyFacts::hasBlock(llvm::ArrayRef<const Expr*> statements) const {
  return llvm::any_of(statements, [&](const Expr* statement) { return grade(*statement) == Grade::Block; });
}

bool BodyFacts::alwaysJumps(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return: return true;
  case ExprKind::Block: return llvm::any_of(expr.args, [](const Expr* arg) { return alwaysJumps(*arg); });
  case ExprKind::If:
    return expr.args.size() > 2 && expr.args[2] && alwaysJumps(*expr.args[1]) && alwaysJumps(*expr.args[2]);
  default: return false;
  }
}

//===-- assignments and uses --------------------------------------------------------------------------------------===//

void BodyFacts::collectAssigned(const Expr& expr, VariableSet& set) const {
  if (expr.kind == ExprKind::Assign)
    if (const Variable* root = assignedRoot(*expr.args[0]))
      set.insert(root);
  if (expr.kind == ExprKind::Ref && expr.type->isMutable)
    if (const Variable* root = assignedRoot(*expr.args[0]))
      set.insert(root);
  // A reference handed on as it is, such as the receiver of a method that is called on one.
  if (expr.kind == ExprKind::Let && !expr.args.empty() && expr.variable->type->kind == TypeKind::Ref &&
      expr.variable->type->isMutable)
    if (const Variable* root = assignedRoot(*expr.args[0]))
      set.insert(root);
  if (const Variable* flag = jumpFlag(expr)) {
    set.insert(flag);
    if (const Variable* value = flags(target(expr)).value)
      set.insert(value);
  }
  for (const Expr* child : children(expr))
    collectAssigned(*child, set);
}

void BodyFacts::collectUses(const Expr& expr, Uses& uses) const {
  if (expr.kind == ExprKind::Var || expr.kind == ExprKind::Let)
    uses.variables.insert(expr.variable);
  if (expr.kind == ExprKind::Inline)
    uses.variables.insert(expr.variables.begin(), expr.variables.end());
  if (expr.kind == ExprKind::Element && isMemoryTensor(expr.args[0]->type)) {
    const Expr* base = expr.args[0];
    while (base->kind == ExprKind::Deref || base->kind == ExprKind::Ref || base->kind == ExprKind::Slice ||
           base->kind == ExprKind::Field)
      base = base->args[0];
    if (base->kind == ExprKind::Var)
      uses.loadedFrom.insert(base->variable);
    else
      uses.unknownLoads = true;
  }
  if (expr.kind == ExprKind::Builtin && (expr.builtin == Builtin::Print || expr.builtin == Builtin::Assert))
    uses.output = true;
  if (const Variable* flag = jumpFlag(expr))
    uses.variables.insert(flag);
  for (const Expr* child : children(expr))
    collectUses(*child, uses);
}

}  // namespace vortex::irgen
