// What generation needs to know about a body beyond sema's annotations.
#pragma once

#include "irgen/flat.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>

namespace vortex::irgen {

/// Where Break, Continue and Return of one target record that they happened. Null: the target has no such jump.
struct JumpFlags {
  const lang::Variable* broke = nullptr;
  const lang::Variable* continued = nullptr;
  const lang::Variable* returned = nullptr;
  const lang::Variable* value = nullptr;  ///< of a Loop's Break or an Inline's Return
};

/// How a statement is generated when the generator stands at block level.
enum class Grade : uint8_t {
  Uniform,  ///< scalar code of the block; may be placed before the open thread region
  Thread,   ///< joins a thread region whole
  Block,    ///< must be at block level itself and ends the region before it
};

class BodyFacts {
public:
  /// `hasThreads`: the kernel has thread regions (not a whole-tensor kernel).
  BodyFacts(const lang::Function& kernel, bool hasThreads);

  /// Resolves the jumps of a body that becomes part of this kernel's code. `target` receives its Returns.
  void addBody(const lang::Expr& body, const lang::Expr* target);

  /// Likewise for a function whose body is generated in place; its Returns assign `value`.
  void addFunction(const lang::Function& function, const lang::Variable* value);

  Grade grade(const lang::Expr& expr) const { return facts(expr).grade; }
  /// Without its operands.
  Grade ownGrade(const lang::Expr& expr) const;
  static Grade returnGrade(const lang::Expr& value, lang::Type result);
  bool hasBlock(llvm::ArrayRef<const lang::Expr*> statements) const;
  /// Flags that jumps inside the expression set for a target outside of it.
  llvm::ArrayRef<const lang::Variable*> escapes(const lang::Expr& expr) const { return facts(expr).escapes; }
  /// Every path through the statement ends in a jump.
  static bool alwaysJumps(const lang::Expr& expr);
  /// The flags of a loop or Inline; the kernel itself has the null target.
  const JumpFlags& flags(const lang::Expr* target) const;
  const lang::Expr* target(const lang::Expr& jump) const { return targets_.lookup(&jump); }
  bool isDivergent(const lang::Variable* flag) const { return flag->uniformity == lang::Uniformity::PerThread; }

  /// Variables (and flags) the expression may assign. References assigned through are included themselves.
  void collectAssigned(const lang::Expr& expr, VariableSet& set) const;
  /// Variables read or written, and whether memory is read; for deciding if code may move before a thread region.
  struct Uses {
    VariableSet variables;
    VariableSet loadedFrom;  ///< base variables of loads
    bool unknownLoads = false;
    bool output = false;  ///< print, assert
  };
  void collectUses(const lang::Expr& expr, Uses& uses) const;

  /// A variable of generated code. Owned here.
  const lang::Variable* newVariable(std::string name, lang::Type type, lang::Uniformity uniformity);
  lang::Type boolean() const { return &boolean_; }
  lang::Type index() const { return &index_; }
  /// The type in which a value of `type` is held between expressions: tiles of narrow floats in f32.
  lang::Type wide(lang::Type type);

private:
  struct ExprFacts {
    Grade grade = Grade::Uniform;
    llvm::SmallVector<const lang::Variable*, 2> escapes;
  };
  const ExprFacts& facts(const lang::Expr& expr) const;
  ExprFacts compute(const lang::Expr& expr) const;
  const lang::Variable* jumpFlag(const lang::Expr& jump) const;

  struct JumpContext;
  /// True when jumps that only some threads take leave `expr` for a target outside.
  bool resolve(const lang::Expr& expr, JumpContext& context, bool divergent);
  bool resolveJump(const lang::Expr& jump, JumpContext& context, bool divergent);
  bool resolveLoop(const lang::Expr& loop, JumpContext& context, bool divergent);
  void declareFlag(const lang::Variable*& flag, const char* name, bool divergent);

  const lang::Function& kernel_;
  bool hasThreads_;
  std::deque<lang::Variable> owned_;
  std::deque<lang::TypeNode> types_;
  lang::TypeNode boolean_, index_, f32_;
  llvm::DenseMap<const lang::Expr*, const lang::Expr*> targets_;
  std::map<const lang::Expr*, JumpFlags> flags_;
  mutable llvm::DenseMap<const lang::Expr*, std::unique_ptr<ExprFacts>> cache_;
};

/// The direct operands of an expression, slices' bounds included, without nulls.
llvm::SmallVector<const lang::Expr*, 4> children(const lang::Expr& expr);
/// The variable a place is part of, through fields, array elements and dereferences; null for memory.
const lang::Variable* assignedRoot(const lang::Expr& place);

}  // namespace vortex::irgen
