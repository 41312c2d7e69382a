#include "lang/syntax/ast_walk.h"

namespace vortex::lang::syntax {

void AstWalker::walk(const Module& module) { walkAll(module.items); }

void AstWalker::walkBody(const BlockExpr* body) {
  if (!body)
    return;
  onBody(body);
  walk(body);
}

void AstWalker::walkArgs(List<Arg> args) {
  for (const Arg& arg : args) {
    walk(arg.value);
    walkAll(arg.strategies);
  }
}

void AstWalker::walkAttributes(List<Attribute> attributes) {
  for (const Attribute& attribute : attributes) {
    onAttribute(attribute);
    walkArgs(attribute.args);
  }
}

void AstWalker::walkGenericArgs(List<GenericArg> args) {
  for (const GenericArg& arg : args) {
    walk(arg.type);
    walk(arg.expr);
  }
}

void AstWalker::walkGenerics(const Generics& generics) {
  for (const GenericParam& param : generics.params) {
    walkAll(param.bounds);
    walk(param.constType);
    walk(param.defaultValue.type);
    walk(param.defaultValue.expr);
  }
}

void AstWalker::walkFunction(const FunctionItem* function) {
  walkGenerics(function->generics);
  for (const Param& param : function->params) {
    walkAttributes(param.attributes);
    walk(param.type);
  }
  walk(function->resultType);
  walk(function->reduceOp);
  for (const WherePredicate& predicate : function->generics.where) {
    walk(predicate.subject);
    walkAll(predicate.bounds);
  }
  walkBody(function->body);
}

void AstWalker::walk(const Item* item) {
  if (!item || !onItem(item))
    return;
  walkAttributes(item->attributes);
  switch (item->kind) {
  case ItemKind::Function: return walkFunction(item->as<FunctionItem>());
  case ItemKind::Struct: {
    const auto* structure = item->as<StructItem>();
    walkGenerics(structure->generics);
    walkAll(structure->traits);
    for (const Field& field : structure->fields) {
      walkAttributes(field.attributes);
      walk(field.type);
    }
    return;
  }
  case ItemKind::Enum:
    for (const EnumVariant& variant : item->as<EnumItem>()->variants)
      walk(variant.value);
    return;
  case ItemKind::Trait:
    walkGenerics(item->as<TraitItem>()->generics);
    walkAll(item->as<TraitItem>()->supertraits);
    return walkAll(item->as<TraitItem>()->members);
  case ItemKind::Impl:
    walkGenerics(item->as<ImplItem>()->generics);
    walk(item->as<ImplItem>()->trait);
    walk(item->as<ImplItem>()->selfType);
    return walkAll(item->as<ImplItem>()->members);
  case ItemKind::TypeAlias:
    walkGenerics(item->as<TypeAliasItem>()->generics);
    walkAll(item->as<TypeAliasItem>()->bounds);
    return walk(item->as<TypeAliasItem>()->aliased);
  case ItemKind::Const: walk(item->as<ConstItem>()->type); return walk(item->as<ConstItem>()->value);
  case ItemKind::Import: return;
  }
}

void AstWalker::walk(const Stmt* stmt) {
  if (!stmt || !onStmt(stmt))
    return;
  walkAttributes(stmt->attributes);
  if (const auto* let = stmt->tryAs<LetStmt>()) {
    walk(let->pattern);
    walk(let->type);
    walk(let->init);
  } else if (const auto* expr = stmt->tryAs<ExprStmt>()) {
    walk(expr->expr);
  } else {
    walk(stmt->as<ItemStmt>()->item);
  }
}

void AstWalker::walkOperator(const Expr* expr) {
  if (const auto* unary = expr->tryAs<UnaryExpr>()) {
    walk(unary->operand);
  } else if (const auto* binary = expr->tryAs<BinaryExpr>()) {
    walk(binary->lhs);
    walk(binary->rhs);
  } else if (const auto* assign = expr->tryAs<AssignExpr>()) {
    walk(assign->target);
    walk(assign->value);
  } else if (const auto* range = expr->tryAs<RangeExpr>()) {
    walk(range->begin);
    walk(range->end);
  } else if (const auto* ref = expr->tryAs<RefExpr>()) {
    walk(ref->operand);
  } else {
    walk(expr->as<CastExpr>()->operand);
    walk(expr->as<CastExpr>()->type);
  }
}

void AstWalker::walkPostfix(const Expr* expr) {
  if (const auto* call = expr->tryAs<CallExpr>()) {
    walk(call->callee);
    walkArgs(call->args);
  } else if (const auto* index = expr->tryAs<IndexExpr>()) {
    walk(index->base);
    walkAll(index->indices);
  } else if (const auto* member = expr->tryAs<MemberExpr>()) {
    walk(member->base);
    walkGenericArgs(member->genericArgs);
  } else if (const auto* tuple = expr->tryAs<TupleMemberExpr>()) {
    walk(tuple->base);
  } else {
    const auto* literal = expr->as<StructExpr>();
    walk(literal->type);
    for (const FieldInit& field : literal->fields)
      walk(field.value);
  }
}

void AstWalker::walkControl(const Expr* expr) {
  if (const auto* branchy = expr->tryAs<IfExpr>()) {
    for (const IfBranch& branch : branchy->branches) {
      walk(branch.condition);
      walkBody(branch.body);
    }
    walkBody(branchy->elseBody);
  } else if (const auto* match = expr->tryAs<MatchExpr>()) {
    walk(match->subject);
    for (const MatchArm& arm : match->arms) {
      walk(arm.pattern);
      walk(arm.guard);
      walk(arm.body);
    }
  } else if (const auto* whileLoop = expr->tryAs<WhileExpr>()) {
    walk(whileLoop->condition);
    walkBody(whileLoop->body);
  } else if (const auto* loop = expr->tryAs<LoopExpr>()) {
    walkBody(loop->body);
  } else {
    const auto* forLoop = expr->as<ForExpr>();
    walk(forLoop->pattern);
    walk(forLoop->iterable);
    walkBody(forLoop->body);
  }
}

void AstWalker::walk(const Expr* expr) {
  if (!expr || !onExpr(expr))
    return;
  switch (expr->kind) {
  case ExprKind::Error:
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::Bool:
  case ExprKind::String:
  case ExprKind::DotName:
  case ExprKind::FullSlice:
  case ExprKind::Continue: return;
  case ExprKind::Name: return walkGenericArgs(expr->as<NameExpr>()->genericArgs);
  case ExprKind::Array:
    walkAll(expr->as<ArrayExpr>()->elems);
    walk(expr->as<ArrayExpr>()->count);
    return walk(expr->as<ArrayExpr>()->last);
  case ExprKind::Tuple: return walkAll(expr->as<TupleExpr>()->elems);
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Assign:
  case ExprKind::Range:
  case ExprKind::Ref:
  case ExprKind::Cast: return walkOperator(expr);
  case ExprKind::Call:
  case ExprKind::Index:
  case ExprKind::Member:
  case ExprKind::TupleMember:
  case ExprKind::Struct: return walkPostfix(expr);
  case ExprKind::Block: return walkAll(expr->as<BlockExpr>()->stmts);
  case ExprKind::If:
  case ExprKind::Match:
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::For: return walkControl(expr);
  case ExprKind::Break: return walk(expr->as<BreakExpr>()->value);
  case ExprKind::Return: return walk(expr->as<ReturnExpr>()->value);
  case ExprKind::Closure:
    for (const ClosureParam& param : expr->as<ClosureExpr>()->params) {
      walk(param.pattern);
      walk(param.type);
    }
    walk(expr->as<ClosureExpr>()->resultType);
    return walk(expr->as<ClosureExpr>()->body);
  }
}

void AstWalker::walk(const Type* type) {
  if (!type || !onType(type))
    return;
  switch (type->kind) {
  case TypeKind::Error:
  case TypeKind::Infer: return;
  case TypeKind::Named: return walkGenericArgs(type->as<NamedType>()->genericArgs);
  case TypeKind::Associated: return walk(type->as<AssociatedType>()->base);
  case TypeKind::Array: walk(type->as<ArrayType>()->elem); return walk(type->as<ArrayType>()->count);
  case TypeKind::Tuple: return walkAll(type->as<TupleType>()->elems);
  case TypeKind::Ref: return walk(type->as<RefType>()->inner);
  case TypeKind::Spaced:
    walk(type->as<SpacedType>()->inner);
    onAttribute(type->as<SpacedType>()->space);
    return walkArgs(type->as<SpacedType>()->space.args);
  case TypeKind::Function: walkAll(type->as<FunctionType>()->params); return walk(type->as<FunctionType>()->result);
  }
}

void AstWalker::walk(const Pattern* pattern) {
  if (!pattern || !onPattern(pattern))
    return;
  switch (pattern->kind) {
  case PatternKind::Literal: return walk(pattern->as<LiteralPattern>()->value);
  case PatternKind::Range: walk(pattern->as<RangePattern>()->begin); return walk(pattern->as<RangePattern>()->end);
  case PatternKind::Tuple: return walkAll(pattern->as<TuplePattern>()->elems);
  case PatternKind::Struct:
    for (const FieldPattern& field : pattern->as<StructPattern>()->fields)
      walk(field.pattern);
    return;
  case PatternKind::Or: return walkAll(pattern->as<OrPattern>()->alternatives);
  default: return;
  }
}

}  // namespace vortex::lang::syntax
