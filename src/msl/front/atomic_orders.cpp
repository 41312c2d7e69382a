// Metal's atomic functions are relaxed, and those of the shim ignore the order that they are given. Calls of templates are looked at in their instances,
// where an order that is a parameter of the template is known.
#include "msl/front/atomic_orders.h"

#include "msl/front/kernels.h"

#include <clang/AST/Expr.h>
#include <clang/AST/RecursiveASTVisitor.h>

namespace vortex::msl::front {

namespace {

class OrderChecker : public clang::RecursiveASTVisitor<OrderChecker> {
public:
  OrderChecker(clang::ASTContext& context, Unit& unit) : context_(context), unit_(unit) {}

  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitCallExpr(clang::CallExpr* call) {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    if (!callee || !isAtomic(*callee))
      return true;
    for (unsigned i = 0; i < call->getNumArgs() && i < callee->getNumParams(); ++i)
      if (const clang::Expr* order = call->getArg(i); isOrder(callee->getParamDecl(i)->getType()) && !isRelaxed(order))
        refuse(order->getBeginLoc());
    return true;
  }

private:
  /// One of the shim's.
  bool isAtomic(const clang::FunctionDecl& callee) const {
    return callee.getDeclName().isIdentifier() && callee.getName().starts_with("atomic_") &&
           callee.getName().ends_with("_explicit") &&
           !isOfSources(callee.getLocation(), context_.getSourceManager(), *unit_.files);
  }

  static bool isOrder(clang::QualType type) {
    const auto* named = type->getAs<clang::EnumType>();
    return named && named->getDecl()->getName() == "memory_order";
  }

  bool isRelaxed(const clang::Expr* order) const {
    clang::Expr::EvalResult value;
    return order->isValueDependent() || (order->EvaluateAsInt(value, context_) && value.Val.getInt() == 0);
  }

  void refuse(clang::SourceLocation at) {
    Problem made{"E0902", "atomic functions take memory_order_relaxed, which is known when the kernel is compiled",
                 {},      0,
                 0,       {}};
    setPlace(made, at, context_.getSourceManager(), *unit_.files);
    const bool isNew = llvm::none_of(unit_.problems, [&](const Problem& each) {
      return each.file == made.file && each.begin == made.begin;  // instances of a template
    });
    if (isNew)
      unit_.problems.push_back(std::move(made));
  }

  clang::ASTContext& context_;
  Unit& unit_;
};

}  // namespace

void checkAtomicOrders(clang::ASTContext& context, Unit& unit) { OrderChecker(context, unit).TraverseAST(context); }

}  // namespace vortex::msl::front
