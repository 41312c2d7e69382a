#pragma once

#include "lang/syntax/ast.h"

namespace vortex::lang::syntax {

/// Visits every node below a module, item, statement or expression, parents first, in source order. Override what is needed; a hook
/// that returns false skips the node's children.
class AstWalker {
public:
  virtual ~AstWalker() = default;

  void walk(const Module& module);
  void walk(const Item* item);
  void walk(const Stmt* stmt);
  void walk(const Expr* expr);
  void walk(const Type* type);
  void walk(const Pattern* pattern);

protected:
  virtual bool onItem(const Item*) { return true; }
  virtual bool onStmt(const Stmt*) { return true; }
  virtual bool onExpr(const Expr*) { return true; }
  virtual bool onType(const Type*) { return true; }
  virtual bool onPattern(const Pattern*) { return true; }
  virtual void onAttribute(const Attribute&) {}
  /// The block that belongs to a function, a branch or a loop.
  virtual void onBody(const BlockExpr*) {}

private:
  void walkBody(const BlockExpr* body);
  void walkAttributes(List<Attribute> attributes);
  void walkArgs(List<Arg> args);
  void walkGenericArgs(List<GenericArg> args);
  void walkGenerics(const Generics& generics);
  void walkFunction(const FunctionItem* function);
  void walkOperator(const Expr* expr);
  void walkPostfix(const Expr* expr);
  void walkControl(const Expr* expr);
  template <class T> void walkAll(List<T*> nodes) {
    for (const T* node : nodes)
      walk(node);
  }
};

}  // namespace vortex::lang::syntax
