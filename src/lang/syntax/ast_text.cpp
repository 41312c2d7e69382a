#include "lang/syntax/ast_text.h"

namespace vortex::lang::syntax {
namespace {

template <class T, class Print> std::string joined(List<T> values, const char* separator, Print print) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i)
    out += (i ? separator : "") + print(values[i]);
  return out;
}
template <class T> std::string trees(List<T*> values, const char* separator) {
  return joined(values, separator, [](const T* value) { return printTree(value); });
}
std::string orBlank(const Expr* expr) { return expr ? printTree(expr) : "_"; }
std::string optional(const char* prefix, const Expr* expr) { return expr ? prefix + printTree(expr) : ""; }

std::string printArg(const Arg& arg) {
  const std::string name = arg.name.isPresent() ? std::string(arg.name.text) + "=" : "";
  return name + printTree(arg.value) + (arg.strategies.empty() ? "" : ":" + trees(arg.strategies, ","));
}

std::string printGenericArgs(List<GenericArg> args) {
  return "<" +
         joined(args, ", ",
                [](const GenericArg& arg) {
                  return (arg.name.isPresent() ? std::string(arg.name.text) + " = " : "") +
                         (arg.type ? printTree(arg.type) : printTree(arg.expr));
                }) +
         ">";
}

std::string printAttribute(const Attribute& attribute) {
  return "@" + std::string(attribute.name.text) +
         (attribute.hasParens ? "(" + joined(attribute.args, " ", printArg) + ")" : "");
}

std::string printPath(List<Name> path) {
  return joined(path, ".", [](const Name& name) { return std::string(name.text); });
}

std::string printInt(const IntExpr* literal) {
  std::string digits;
  unsigned __int128 value = literal->value;
  for (; value > 0 || digits.empty(); value /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
  return (literal->fits128 ? digits : std::string(literal->digits)) + std::string(literal->suffix.text);
}

std::string printArray(const ArrayExpr* array) {
  return std::string(array->isVec ? "vec![" : "[") + trees(array->elems, " ") + optional("; ", array->count) +
         optional(" ... ", array->last) + "]";
}

std::string printIf(const IfExpr* expr) {
  return "(if " +
         joined(expr->branches, " ",
                [](const IfBranch& branch) { return printTree(branch.condition) + " " + printTree(branch.body); }) +
         optional(" ", expr->elseBody) + ")";
}

std::string printMatch(const MatchExpr* match) {
  return "(match " + printTree(match->subject) + " " +
         joined(match->arms, " ",
                [](const MatchArm& arm) {
                  return printTree(arm.pattern) + optional(" if ", arm.guard) + "=>" + printTree(arm.body);
                }) +
         ")";
}

std::string printClosure(const ClosureExpr* closure) {
  std::string out = "(closure ";
  for (const ClosureParam& param : closure->params)
    out += printTree(param.pattern) + (param.type ? ":" + printTree(param.type) : "") + " ";
  return out + (closure->resultType ? "-> " + printTree(closure->resultType) + " " : "") + printTree(closure->body) +
         ")";
}

std::string printOperator(const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Unary: {
    const auto* unary = expr->as<UnaryExpr>();
    return "(" + std::string(spelling(unary->op)) + " " + printTree(unary->operand) + ")";
  }
  case ExprKind::Binary: {
    const auto* binary = expr->as<BinaryExpr>();
    return "(" + std::string(spelling(binary->op)) + " " + printTree(binary->lhs) + " " + printTree(binary->rhs) + ")";
  }
  case ExprKind::Assign: {
    const auto* assign = expr->as<AssignExpr>();
    const std::string op = assign->isCompound ? std::string(spelling(assign->op)) + "=" : "=";
    return "(" + op + " " + printTree(assign->target) + " " + printTree(assign->value) + ")";
  }
  case ExprKind::Range: {
    const auto* range = expr->as<RangeExpr>();
    return std::string(range->endIsLength ? "(..+ " : "(.. ") + orBlank(range->begin) + " " + orBlank(range->end) + ")";
  }
  case ExprKind::Ref:
    return std::string(expr->as<RefExpr>()->isMutable ? "(&mut " : "(& ") + printTree(expr->as<RefExpr>()->operand) +
           ")";
  default: return "(as " + printTree(expr->as<CastExpr>()->operand) + " " + printTree(expr->as<CastExpr>()->type) + ")";
  }
}

std::string printPostfix(const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Call: {
    const auto* call = expr->as<CallExpr>();
    return "(call " + printTree(call->callee) + (call->args.empty() ? "" : " ") + joined(call->args, " ", printArg) +
           ")";
  }
  case ExprKind::Index:
    return "(index " + printTree(expr->as<IndexExpr>()->base) + " " + trees(expr->as<IndexExpr>()->indices, " ") + ")";
  case ExprKind::Member: {
    const auto* member = expr->as<MemberExpr>();
    return "(. " + printTree(member->base) + " " + std::string(member->name.text) +
           (member->hasGenericArgs ? "::" + printGenericArgs(member->genericArgs) : "") + ")";
  }
  case ExprKind::TupleMember:
    return "(. " + printTree(expr->as<TupleMemberExpr>()->base) + " " +
           std::to_string(expr->as<TupleMemberExpr>()->index) + ")";
  default: {
    const auto* literal = expr->as<StructExpr>();
    return "(struct " + printTree(literal->type) + " " +
           joined(literal->fields, " ",
                  [](const FieldInit& field) { return std::string(field.name.text) + ":" + printTree(field.value); }) +
           ")";
  }
  }
}

std::string printControl(const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::If: return printIf(expr->as<IfExpr>());
  case ExprKind::Match: return printMatch(expr->as<MatchExpr>());
  case ExprKind::While:
    return "(while " + printTree(expr->as<WhileExpr>()->condition) + " " + printTree(expr->as<WhileExpr>()->body) + ")";
  case ExprKind::Loop: return "(loop " + printTree(expr->as<LoopExpr>()->body) + ")";
  case ExprKind::For: {
    const auto* loop = expr->as<ForExpr>();
    return "(for " + printTree(loop->pattern) + " " + printTree(loop->iterable) + " " + printTree(loop->body) + ")";
  }
  case ExprKind::Break: return "(break" + optional(" ", expr->as<BreakExpr>()->value) + ")";
  case ExprKind::Continue: return "(continue)";
  case ExprKind::Return: return "(return" + optional(" ", expr->as<ReturnExpr>()->value) + ")";
  default: return printClosure(expr->as<ClosureExpr>());
  }
}

std::string printLeaf(const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Int: return printInt(expr->as<IntExpr>());
  case ExprKind::Float:
    return std::string(expr->as<FloatExpr>()->digits) + std::string(expr->as<FloatExpr>()->suffix.text);
  case ExprKind::Bool: return expr->as<BoolExpr>()->value ? "true" : "false";
  case ExprKind::String: return "\"" + std::string(expr->as<StringExpr>()->value) + "\"";
  case ExprKind::Name: {
    const auto* name = expr->as<NameExpr>();
    return std::string(name->name.text) + (name->hasGenericArgs ? "::" + printGenericArgs(name->genericArgs) : "");
  }
  case ExprKind::DotName: return "." + std::string(expr->as<DotNameExpr>()->name.text);
  case ExprKind::FullSlice: return ":";
  case ExprKind::Array: return printArray(expr->as<ArrayExpr>());
  case ExprKind::Tuple:
    return "(tuple" + std::string(expr->as<TupleExpr>()->elems.empty() ? "" : " ") +
           trees(expr->as<TupleExpr>()->elems, " ") + ")";
  case ExprKind::Block: return "{" + trees(expr->as<BlockExpr>()->stmts, " ") + "}";
  default: return "<error>";
  }
}

}  // namespace

std::string printTree(const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Assign:
  case ExprKind::Range:
  case ExprKind::Ref:
  case ExprKind::Cast: return printOperator(expr);
  case ExprKind::Call:
  case ExprKind::Index:
  case ExprKind::Member:
  case ExprKind::TupleMember:
  case ExprKind::Struct: return printPostfix(expr);
  case ExprKind::If:
  case ExprKind::Match:
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::For:
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return:
  case ExprKind::Closure: return printControl(expr);
  default: return printLeaf(expr);
  }
}

std::string printTree(const Type* type) {
  switch (type->kind) {
  case TypeKind::Error: return "<error>";
  case TypeKind::Named: {
    const auto* named = type->as<NamedType>();
    return printPath(named->path) + (named->hasGenericArgs ? printGenericArgs(named->genericArgs) : "");
  }
  case TypeKind::Associated:
    return printTree(type->as<AssociatedType>()->base) + "." + std::string(type->as<AssociatedType>()->name.text);
  case TypeKind::Array:
    return "[" + printTree(type->as<ArrayType>()->elem) + "; " + printTree(type->as<ArrayType>()->count) + "]";
  case TypeKind::Tuple: return "(" + trees(type->as<TupleType>()->elems, ", ") + ")";
  case TypeKind::Ref:
    return std::string(type->as<RefType>()->isMutable ? "&mut " : "&") + printTree(type->as<RefType>()->inner);
  case TypeKind::Spaced:
    return printTree(type->as<SpacedType>()->inner) + " " + printAttribute(type->as<SpacedType>()->space);
  case TypeKind::Function: {
    const auto* function = type->as<FunctionType>();
    return "fn(" + trees(function->params, ", ") + ")" + (function->result ? " -> " + printTree(function->result) : "");
  }
  case TypeKind::Infer: return "_";
  }
  VORTEX_UNREACHABLE();
}

std::string printTree(const Pattern* pattern) {
  switch (pattern->kind) {
  case PatternKind::Error: return "<error>";
  case PatternKind::Wildcard: return "_";
  case PatternKind::Name: return std::string(pattern->as<NamePattern>()->name.text);
  case PatternKind::Path:
    return (pattern->as<PathPattern>()->isDot ? "." : "") + printPath(pattern->as<PathPattern>()->path);
  case PatternKind::Literal: {
    const Expr* value = pattern->as<LiteralPattern>()->value;
    const auto* negated = value->tryAs<UnaryExpr>();
    return negated ? "-" + printTree(negated->operand) : printTree(value);
  }
  case PatternKind::Range: {
    const auto* range = pattern->as<RangePattern>();
    const auto print = [](const Expr* value) -> std::string {
      if (!value)
        return "";
      const auto* negated = value->tryAs<UnaryExpr>();
      return negated ? "-" + printTree(negated->operand) : printTree(value);
    };
    return print(range->begin) + ".." + print(range->end);
  }
  case PatternKind::Tuple: return "(" + trees(pattern->as<TuplePattern>()->elems, ", ") + ")";
  case PatternKind::Struct: {
    const auto* structure = pattern->as<StructPattern>();
    return printPath(structure->path) + "{" +
           joined(structure->fields, ", ",
                  [](const FieldPattern& field) {
                    return std::string(field.name.text) + ": " + printTree(field.pattern);
                  }) +
           "}";
  }
  case PatternKind::Or: return trees(pattern->as<OrPattern>()->alternatives, "|");
  }
  VORTEX_UNREACHABLE();
}

std::string printTree(const Stmt* stmt) {
  const std::string attributes =
      joined(stmt->attributes, "", [](const Attribute& attribute) { return printAttribute(attribute) + " "; });
  if (const auto* let = stmt->tryAs<LetStmt>())
    return attributes + (let->isVar ? "(var " : "(let ") + printTree(let->pattern) +
           (let->type ? " :" + printTree(let->type) : "") + optional(" = ", let->init) + ")";
  if (const auto* expr = stmt->tryAs<ExprStmt>())
    return attributes + printTree(expr->expr) + (expr->hasSemicolon ? ";" : "");
  return "(item " + std::string(stmt->as<ItemStmt>()->item->name.text) + ")";
}

}  // namespace vortex::lang::syntax
