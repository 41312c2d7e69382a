#include "lang/kernel/test_bound.h"

namespace vortex::lang {
namespace {

class BoundTests {
public:
  BoundTests(Program& program, const Function& kernel, const std::set<const Expr*>& around,
             std::set<const Expr*>& tested)
      : program_(program), kernel_(kernel), around_(around), tested_(tested) {}

  void rewrite(Expr& expr) {
    for (Expr* arg : expr.args)
      if (arg)
        rewrite(*arg);
    if (!around_.contains(&expr))
      return;
    Expr* tested = made(expr.kind, expr.type, expr);
    *tested = expr;
    setTested(*tested);
    Expr* choice = made(ExprKind::If, expr.type, expr);
    choice->args = {isInside(expr), made(ExprKind::Block, expr.type, expr, {tested})};
    if (expr.type->kind != TypeKind::Unit)
      choice->args.push_back(made(ExprKind::Block, expr.type, expr, {zeros(expr.type, expr)}));
    if (expr.kind == ExprKind::Inline) {  // all threads compute what they give it
      std::vector<Expr*> all(expr.args.begin(), expr.args.end() - 1);
      all.push_back(choice);
      tested->args = {expr.args.back()};
      choice = made(ExprKind::Block, expr.type, expr, std::move(all));
    }
    expr = Expr(*choice);
  }

private:
  Expr* made(ExprKind kind, Type type, const Expr& at, std::vector<Expr*> args = {}) {
    Expr* out = program_.newExpr(kind, type, at.range);
    out->args = std::move(args);
    return out;
  }

  Expr* binary(BinaryOp op, const Expr& at, Expr* a, Expr* b) {
    Expr* out = made(ExprKind::Binary, program_.types.boolean(), at, {a, b});
    out->binaryOp = op;
    return out;
  }

  /// The thread has an element.
  Expr* isInside(const Expr& at) {
    const Type usize = program_.types.scalar(Scalar::Usize);
    Expr* all = nullptr;
    for (size_t axis = 0; axis < kernel_.kernel->domain.size(); ++axis) {
      Expr* id = made(ExprKind::Builtin, usize, at);
      id->builtin = Builtin::ThreadGlobalId;
      id->ints = {static_cast<int64_t>(axis)};
      Expr* extent = made(ExprKind::DimValue, usize, at);
      extent->dim = kernel_.kernel->domain[axis];
      Expr* below = binary(BinaryOp::Lt, at, id, extent);
      all = all ? binary(BinaryOp::And, at, all, below) : below;
    }
    return all;
  }

  Expr* zeros(Type type, const Expr& at) {
    switch (type->kind) {
    case TypeKind::Unit: return made(ExprKind::Unit, type, at);
    case TypeKind::Array: {
      Expr* count = made(ExprKind::Int, program_.types.scalar(Scalar::Usize), at);
      count->intValue = type->count;
      return made(ExprKind::RepeatArray, type, at, {zeros(type->elem, at), count});
    }
    case TypeKind::Tuple:
    case TypeKind::Struct: {
      std::vector<Expr*> parts;
      for (Type part : type->elems)
        parts.push_back(zeros(part, at));
      return made(type->kind == TypeKind::Tuple ? ExprKind::MakeTuple : ExprKind::MakeStruct, type, at, parts);
    }
    case TypeKind::Scalar: return made(isFloat(type->scalar) ? ExprKind::Float : ExprKind::Int, type, at);
    default: return made(ExprKind::Int, type, at);  // of an enum
    }
  }

  void setTested(const Expr& expr) {
    tested_.insert(&expr);
    for (const Expr* arg : expr.args)
      if (arg)
        setTested(*arg);
  }

  Program& program_;
  const Function& kernel_;
  const std::set<const Expr*>& around_;
  std::set<const Expr*>& tested_;
};

}  // namespace

void testBound(Program& program, Function& kernel, const std::set<const Expr*>& around, std::set<const Expr*>& tested) {
  if (!around.empty())
    BoundTests(program, kernel, around, tested).rewrite(*kernel.body);
}

}  // namespace vortex::lang
