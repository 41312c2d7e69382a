#include "lang/sema/kernel/order_jumps.h"
#include "lang/sema/kernel/inline_calls.h"
#include "lang/sema/kernel/roots.h"

#include <span>

namespace vortex::lang {
namespace {

/// Jumps to what is around an expression.
enum Jumps : unsigned { kNone = 0, kOfLoop = 1, kOfCall = 2 };

/// Names memory by its first part, and evaluates the others.
bool isPath(const Expr& expr) {
  return expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice || expr.kind == ExprKind::Field ||
         expr.kind == ExprKind::Ref || expr.kind == ExprKind::Deref;
}

class JumpOrder {
public:
  JumpOrder(Program& program, Function& function) : program_(program), function_(function) {}
  void run() { order(function_.body); }

private:
  unsigned order(Expr*& expr) {
    switch (expr->kind) {
    case ExprKind::Closure: return kNone;
    case ExprKind::Block:
    case ExprKind::Let: return orderAll(expr->args);
    case ExprKind::If: {
      const unsigned branches = orderAll(std::span(expr->args).subspan(1));
      return branches | orderParts(expr, {&expr->args[0]});
    }
    case ExprKind::While: return orderWhile(expr);
    case ExprKind::Loop: return order(expr->args[0]) & ~kOfLoop;
    case ExprKind::For: {
      const unsigned body = order(expr->args[1]) & ~kOfLoop;
      return body | orderParts(expr, partsOf(*expr->args[0]));
    }
    case ExprKind::Inline: return orderInline(expr);
    case ExprKind::Break:
    case ExprKind::Continue: return orderParts(expr, partsOf(*expr)) | kOfLoop;
    case ExprKind::Return: return orderParts(expr, partsOf(*expr)) | kOfCall;
    case ExprKind::Assign: return orderParts(expr, {&expr->args[1], &expr->args[0]}, 1);
    case ExprKind::Binary:
      if (expr->binaryOp == BinaryOp::And || expr->binaryOp == BinaryOp::Or) {
        const unsigned second = order(expr->args[1]);
        return second | orderParts(expr, {&expr->args[0]});
      }
      break;
    default: break;
    }
    const bool works = expr->kind == ExprKind::Builtin && isAtomic(expr->builtin);
    return orderParts(expr, partsOf(*expr), works || isPath(*expr) ? 0 : kNoPath);
  }

  /// Of `while c { … }` whose condition leaves: `loop { if !c { break }; … }`.
  unsigned orderWhile(Expr*& expr) {
    const unsigned body = order(expr->args[1]) & ~kOfLoop, condition = order(expr->args[0]);
    if (condition == kNone)
      return body;
    auto* test = newExpr(ExprKind::Unary, expr->args[0]->type, *expr, {expr->args[0]});
    test->unaryOp = UnaryOp::Not;
    auto* leave = newExpr(ExprKind::Break, program_.types.never(), *expr, {});
    auto* choice = newExpr(ExprKind::If, program_.types.unit(), *expr,
                           {test, newExpr(ExprKind::Block, program_.types.unit(), *expr, {leave})});
    order(choice);
    expr->kind = ExprKind::Loop;
    expr->args = {newExpr(ExprKind::Block, program_.types.unit(), *expr, {choice, expr->args[1]})};
    return body | condition;
  }

  Expr* newExpr(ExprKind kind, Type type, const Expr& at, std::vector<Expr*> args) {
    Expr* made = program_.newExpr(kind, type, at.range);
    made->args = std::move(args);
    return made;
  }

  unsigned orderAll(std::span<Expr*> exprs) {
    unsigned jumps = kNone;
    for (Expr*& each : exprs)
      jumps |= each ? order(each) : kNone;
    return jumps;
  }

  /// Its parameters are variables in any case.
  unsigned orderInline(Expr*& expr) {
    unsigned jumps = kNone;
    size_t first = 0;
    for (size_t i = 0; i + 1 < expr->args.size(); ++i)
      if (const unsigned here = order(expr->args[i])) {
        jumps |= here;
        first = i + 1;
      }
    const unsigned body = order(expr->args.back()) & ~kOfCall;
    std::vector<Expr*> before(expr->args.begin(), expr->args.begin() + static_cast<ptrdiff_t>(first));
    expr->args.erase(expr->args.begin(), expr->args.begin() + static_cast<ptrdiff_t>(first));
    precede(expr, std::move(before));
    return jumps | body;
  }

  static constexpr size_t kNoPath = SIZE_MAX;

  static std::vector<Expr**> partsOf(Expr& expr) {
    std::vector<Expr**> parts;
    for (Expr*& arg : expr.args)
      if (arg)
        parts.push_back(&arg);
    for (SliceDim& slice : expr.slices)
      for (Expr** part : {&slice.begin, &slice.end})
        if (*part)
          parts.push_back(part);
    return parts;
  }

  /// The parts of `expr` in the order of their evaluation; that of number `path` names memory and stays where it is.
  unsigned orderParts(Expr*& expr, const std::vector<Expr**>& parts, size_t path = kNoPath) {
    std::vector<Expr*> before;
    const auto [jumps, ends] = takeOut(parts, path, before);
    precede(expr, std::move(before), ends);
    return jumps;
  }

  struct Taken {
    unsigned jumps = kNone;
    bool ends = false;  ///< a part never has a value
  };

  Taken takeOut(const std::vector<Expr**>& parts, size_t path, std::vector<Expr*>& before) {
    std::vector<std::vector<Expr*>> ofPath(parts.size());
    std::vector<Taken> taken(parts.size());
    size_t last = 0;
    Taken all;
    for (size_t i = 0; i < parts.size(); ++i) {
      Expr*& part = *parts[i];
      const bool names = i == path || isPath(*part);
      taken[i] = names && isPath(*part) ? takeOut(partsOf(*part), 0, ofPath[i]) : Taken{order(part), false};
      taken[i].ends |= part->type && part->type->kind == TypeKind::Never;
      all.jumps |= taken[i].jumps;
      if (taken[i].jumps)
        last = i + 1;
    }
    for (size_t i = 0; i < last; ++i) {
      Expr*& part = *parts[i];
      before.insert(before.end(), ofPath[i].begin(), ofPath[i].end());
      if (taken[i].ends) {
        if (ofPath[i].empty())
          before.push_back(part);
        all.ends = true;
        return all;
      }
      const bool isConstant =
          part->kind == ExprKind::Int || part->kind == ExprKind::Float || part->kind == ExprKind::DimValue;
      const bool isTaken = ofPath[i].empty() && taken[i].jumps && i != path;
      if (isTaken || (i != path && !isConstant && part->type->kind != TypeKind::Unit && isPlainValue(part->type)))
        part = named(part, before);
    }
    return all;
  }

  Expr* named(Expr* value, std::vector<Expr*>& before) {
    auto variable = std::make_unique<Variable>();
    variable->type = value->type;
    variable->range = value->range;
    variable->isVar = value->type->isTensor();
    variable->index = static_cast<uint32_t>(function_.variables.size());
    before.push_back(newExpr(ExprKind::Let, program_.types.unit(), *value, {value}));
    before.back()->variable = variable.get();
    Expr* use = newExpr(ExprKind::Var, value->type, *value, {});
    use->variable = variable.get();
    function_.variables.push_back(std::move(variable));
    return use;
  }

  /// `{ before; expr }`, or only what is before where that never ends.
  void precede(Expr*& expr, std::vector<Expr*> before, bool ends = false) {
    if (before.empty())
      return;
    if (!ends)
      before.push_back(expr);
    expr = newExpr(ExprKind::Block, ends ? program_.types.never() : expr->type, *expr, std::move(before));
  }

  Program& program_;
  Function& function_;
};

}  // namespace

void orderJumps(Program& program, Function& function) { JumpOrder(program, function).run(); }

}  // namespace vortex::lang
