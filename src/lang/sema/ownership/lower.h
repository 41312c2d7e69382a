// Cuts a function into the graph of flow.h. Order of evaluation is that of the evaluator: operands from left to right, the right side
// of an assignment before its place, what a call borrows mutably reserved first and changed last.
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/ownership/flow.h"
#include "lang/sema/ownership/views.h"

namespace vortex::lang::ownership {

/// Which parameters' borrows the result of a function may hold (by position).
using Summary = std::vector<bool>;

class Lowering {
public:
  /// `summaryOf` is asked for callees whose results may hold borrows. Reports moves that no order of events could make right.
  Lowering(Function& function, diag::DiagnosticSink& sink, std::function<Summary(const Function&)> summaryOf);
  Graph run();

private:
  /// What a value is wanted for.
  enum class Want : uint8_t {
    Look,    ///< looked at
    Own,     ///< to be kept: copied or moved
    View,    ///< bound by `let`: a slice stays a view
    Lend,    ///< an argument: storage of kernels and launches is lent
    Return,  ///< left to the caller
  };
  struct Purpose {
    Want want = Want::Look;
    MoveReason reason = MoveReason::Binding;
    const Function* callee = nullptr;
    const Expr* call = nullptr;
    const Expr* writer = nullptr;  ///< View: what writes through it
  };
  static Purpose look() { return {}; }
  static Purpose own(MoveReason reason) { return {Want::Own, reason, nullptr, nullptr, nullptr}; }

  struct Loop {
    uint32_t next = 0, exit = 0;
    size_t scope = 0;
    LocalId result = kNoLocal;
    Purpose purpose;
  };
  struct Capture {
    bool isWritten = false;
    SourceRange range;
  };

  // lower.cpp: graph, statements, control
  LocalId value(Expr& expr, const Purpose& purpose);
  Purpose tailOf(const Expr& expr, const Purpose& purpose) const;
  LocalId block(Expr& expr, const Purpose& purpose);
  void let(Expr& expr);
  void assign(Expr& expr);
  LocalId branches(Expr& expr, const Purpose& purpose);
  LocalId shortCircuit(Expr& expr);
  void condition(Expr& expr, uint32_t whenTrue, uint32_t whenFalse);
  LocalId loop(Expr& expr, const Purpose& purpose);
  void forLoop(Expr& expr);
  void loopVariable(Expr& expr, LocalId held, bool ownsElements);
  void leaveLoop(Expr& expr);
  void leaveFunction(Expr& expr);
  void pushScope() { scopes_.emplace_back(); }
  void popScope(SourceRange end);
  void endScopes(size_t from, SourceRange end);

  // lower_place.cpp
  Place place(Expr& expr);
  Place placeOfBase(Expr& expr);
  LocalId usePlace(Expr& expr, const Purpose& purpose);
  LocalId moveOut(Expr& expr, Place from, const Purpose& purpose);
  LocalId lend(Expr& expr, Place from, LoanKind kind, const Purpose& purpose, bool isView);
  void reportMoveOutOfBorrow(const Expr& expr, const Place& from, const Purpose& purpose);

  // lower_call.cpp
  LocalId builtin(Expr& expr);
  LocalId otherBuiltin(Expr& expr);
  LocalId call(Expr& expr);
  LocalId callClosure(Expr& expr);
  LocalId closure(Expr& expr);
  void capture(const Variable* variable, const Capture& how, LocalId into);
  LocalId aggregate(Expr& expr, const Purpose& purpose);
  LocalId reference(Expr& expr, const Expr* call);
  LocalId reserve(Expr& arg, Type wanted, const Expr& call);

  LocalId newLocal(Type type, SourceRange range, const Variable* variable = nullptr);
  LocalId localOf(const Variable* variable);
  LocalId temporary(const Expr& expr) { return newLocal(expr.type, expr.range); }
  uint32_t newBlock();
  void choose(uint32_t block, const Expr& by, std::string_view label);
  void jump(uint32_t to);
  void start(uint32_t block) { at_ = block; }
  Statement& emit(Op op, SourceRange range);
  void read(Place from, SourceRange range);
  void flow(LocalId to, std::vector<LocalId> from, bool weak, SourceRange range);
  void borrow(LocalId to, Loan loan);

  Function& function_;
  diag::DiagnosticSink& sink_;
  std::function<Summary(const Function&)> summaryOf_;
  Views views_;
  Graph graph_;
  std::map<const Variable*, LocalId> locals_;
  std::map<const Variable*, Place> aliases_;  ///< the checker's own names for places
  std::vector<std::vector<LocalId>> scopes_;
  std::vector<Loop> loops_;
  struct ClosureFrame {
    uint32_t end = 0;
    size_t loops = 0;
  };
  std::vector<ClosureFrame> closures_;
  std::vector<uint32_t> loopPath_{0};
  uint32_t at_ = 0;
};

}  // namespace vortex::lang::ownership
