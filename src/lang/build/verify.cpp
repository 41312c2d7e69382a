#include "lang/build/verify.h"

#include "lang/sema/children.h"

#include <set>

namespace vortex::lang {

namespace {

bool isError(Type type) { return type->kind == TypeKind::Error; }

/// Scalars by their element, tiles too: memory and values of one element type may meet.
Type elementOf(Type type) {
  type = stripRef(type);
  return type->isTensor() ? type->elem : type;
}

class Verifier {
public:
  explicit Verifier(const Function& kernel) : kernel_(kernel) {
    for (const Variable* param : kernel.params)
      declared_.insert(param);
  }

  std::vector<Violation> run() {
    if (kernel_.body)
      visit(*kernel_.body);
    return std::move(violations_);
  }

private:
  void expect(bool holds, const Expr& expr, const char* rule) {
    if (!holds)
      violations_.push_back({expr.range, rule});
  }

  void visit(const Expr& expr) {
    if (!expr.type)
      return expect(false, expr, "an expression without a type");
    const bool opensScope = expr.kind == ExprKind::Block || expr.kind == ExprKind::For || expr.kind == ExprKind::Inline;
    const std::set<const Variable*> outer = opensScope ? declared_ : std::set<const Variable*>();
    if (expr.kind == ExprKind::For)
      visitFor(expr);
    else
      forEachChild(expr, [&](const Expr& child) { visit(child); });
    check(expr);
    if (opensScope)
      declared_ = outer;
  }

  void visitFor(const Expr& expr) {
    visit(*expr.args[0]);
    expect(expr.variable != nullptr, expr, "a loop without a variable");
    declared_.insert(expr.variable);
    if (expr.indexVariable)
      declared_.insert(expr.indexVariable);
    visit(*expr.args[1]);
  }

  void check(const Expr& expr) {
    switch (expr.kind) {
    case ExprKind::Var:
      return expect(declared_.contains(expr.variable) || (expr.variable && expr.variable->isResultStorage), expr,
                    "a variable that is not declared here");
    case ExprKind::Unary:
      return expect(elementOf(expr.type) == elementOf(expr.args[0]->type), expr,
                    "a unary operation that changes the type");
    case ExprKind::Binary: return checkBinary(expr);
    case ExprKind::If:
    case ExprKind::While:
      return expect(expr.args[0]->type->isScalar(Scalar::Bool), expr, "a condition that is no bool");
    case ExprKind::Element: return checkElement(expr);
    case ExprKind::Let:
      declared_.insert(expr.variable);
      if (!expr.args.empty())
        expect(elementOf(expr.variable->type) == elementOf(expr.args[0]->type) ||
                   expr.args[0]->type->kind == TypeKind::Never,
               expr, "a variable of another type than its value");
      return;
    case ExprKind::Assign: return checkAssign(expr);
    case ExprKind::Deref:
      return expect(expr.args[0]->type->kind == TypeKind::Ref, expr, "a dereference of no reference");
    case ExprKind::Dot:
      return expect(expr.args[0]->type->isTensor() && expr.args[1]->type->isTensor(), expr,
                    "a product of what are no tiles");
    default: return;
    }
  }

  void checkBinary(const Expr& expr) {
    const Type lhs = elementOf(expr.args[0]->type), rhs = elementOf(expr.args[1]->type);
    if (isError(lhs) || isError(rhs))
      return;
    expect(lhs == rhs, expr, "operands of two types");
    const bool isComparison = expr.binaryOp >= BinaryOp::Eq && expr.binaryOp <= BinaryOp::Ge;
    expect(elementOf(expr.type)->isScalar(Scalar::Bool) || !isComparison, expr, "a comparison that gives no bool");
    expect(isComparison || elementOf(expr.type) == lhs, expr, "an operation with a result of another type");
  }

  void checkElement(const Expr& expr) {
    const Type base = stripRef(expr.args[0]->type);
    if (base->isTensor())
      expect(expr.args.size() == base->shape.size() + 1, expr, "another number of subscripts than dimensions");
    for (size_t i = 1; i < expr.args.size(); ++i) {
      const Type index = stripRef(expr.args[i]->type);
      expect(index->kind == TypeKind::Scalar && isInteger(index->scalar), *expr.args[i],
             "a subscript that is no integer");
    }
  }

  void checkAssign(const Expr& expr) {
    const Expr& place = *expr.args[0];
    const bool isPlace = place.kind == ExprKind::Var || place.kind == ExprKind::Element ||
                         place.kind == ExprKind::Slice || place.kind == ExprKind::Field ||
                         place.kind == ExprKind::Deref;
    expect(isPlace, expr, "an assignment to what is no place");
    if (!expr.hasOp)
      expect(elementOf(place.type) == elementOf(expr.args[1]->type), expr, "a value of another type is assigned");
  }

  const Function& kernel_;
  std::set<const Variable*> declared_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> verify(const Function& kernel) { return Verifier(kernel).run(); }

}  // namespace vortex::lang
