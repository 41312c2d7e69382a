// Emission of one trace through the builder.
#pragma once

#include "diag/diagnostic.h"
#include "lang/build/kernel_builder.h"
#include "metile/lower.h"

#include <functional>

namespace vortex::metile {

class Emitter {
public:
  Emitter(const Trace& trace, std::vector<Kind> kinds, lang::Program& program, diag::DiagnosticSink& sink,
          const Additions& additions);
  void run();

private:
  using Expr = lang::Expr;
  using Variable = lang::Variable;
  /// Lanes count where all of these hold.
  using Validity = std::vector<Variable*>;
  struct Value {
    Variable* variable = nullptr;
    Validity valid;
  };

  void visit(const Op& op);
  bool visitStatement(const Op& op);
  bool checkScopes();
  void declareParams();
  void declareShared();
  void fillWithZeros();

  Expr* param(size_t index);

  // operands
  Kind kind(const Op& op, size_t index) const { return kindOf(op.operands[index], kinds_); }
  const Kind& resultKind(const Op& op) const { return kinds_[static_cast<size_t>(op.result)]; }
  Variation variation(const Op& op) const { return variations_[static_cast<size_t>(&op - trace_.ops.data())]; }
  bool has(const Op& op, size_t index) const;
  /// The operand as this type, and as a tile if `like` is one.
  Expr* operand(const Op& op, size_t index, const Kind& like);
  Expr* plain(const Op& op, size_t index) { return operand(op, index, {kind(op, index).dtype}); }
  Expr* literal(const Operand& operand, Dtype dtype);
  Expr* constant(Dtype dtype, double value);
  Expr* index(const Op& op, size_t position) { return operand(op, position, {Dtype::Index}); }
  void define(const Op& op, Expr* value);
  void define(const Op& op, Expr* value, Validity valid);
  const Validity& validOf(const Operand& operand) const;
  Validity validOf(const Op& op) const;
  Expr* allOf(const Validity& valid);
  static void merge(Validity& into, const Validity& from);

  // values (values.cpp)
  Expr* position(lang::Builtin builtin, std::vector<int64_t> ints = {});
  static Expr* wrapping(Expr* value);
  Expr* binary(const Op& op);
  Expr* function(const Op& op);
  Expr* reverseBits(Expr* value, const Kind& like);
  void where(const Op& op);
  Expr* power(Expr* base, Expr* exponent);

  // memory (memory.cpp)
  Variable* memory(const Operand& pointer);
  Expr* element(Variable* of, Expr* at);
  Expr* matrix(const Op& op, size_t first);
  void load(const Op& op);
  void store(const Op& op);
  void storeOfLanes(const Op& op);
  void put(const Op& op, Expr* target, Expr* value);
  void tileLoad(const Op& op);
  void tileStore(const Op& op);
  void positions(const Op& op);
  void only(const Op& op);
  void dot(const Op& op);
  void tileReduce(const Op& op);
  void atomic(const Op& op);
  bool isUsed(int64_t id) const;

  // threads (reductions.cpp)
  void blockReduce(const Op& op);
  Expr* combine(const std::string& name, Expr* lhs, Expr* rhs);
  Expr* identity(const std::string& name, Dtype dtype);
  void warp(const Op& op);
  void barrier();

  // loops (lower.cpp)
  void loop(const Op& op);
  void drawLoop(const Op& op);
  void endLoop();
  void carry(const Op& op);
  void yield(const Op& op);
  void print(const Op& op);

  const Trace& trace_;
  diag::DiagnosticSink& sink_;
  const Additions& additions_;
  std::vector<Kind> kinds_;
  std::vector<Variation> variations_;  ///< by the index of the operation
  lang::KernelBuilder b_;
  std::vector<Variable*> params_;
  std::vector<Value> values_;
  std::vector<std::pair<Variable*, Expr*>> yields_;  ///< of the innermost loop, assigned together at its end
  /// Of the open loops: what draws the next number; nothing for counted ones.
  std::vector<std::function<void()>> draws_;
  uint32_t names_ = 0;
};

}  // namespace vortex::metile
