// The operands of an expression by name. What reads a typed tree in the order of evaluation uses these instead of positions.
#pragma once

#include <span>

#include "lang/sema/program.h"

namespace vortex::lang {

using ExprList = std::span<Expr* const>;

namespace parts {
inline Expr* optional(const Expr& expr, size_t at) { return at < expr.args.size() ? expr.args[at] : nullptr; }
inline ExprList from(const Expr& expr, size_t first) { return ExprList(expr.args).subspan(first); }
}  // namespace parts

/// Unary, Cast, Broadcast, Ref, Deref: the one operand.
inline Expr& operandOf(const Expr& expr) { return *expr.args[0]; }

struct BinaryParts {
  Expr &lhs, &rhs;
};
/// Binary, Dot.
inline BinaryParts asBinary(const Expr& expr) { return {*expr.args[0], *expr.args[1]}; }

struct ElementParts {
  Expr& base;
  ExprList indices;
};
inline ElementParts asElement(const Expr& expr) { return {*expr.args[0], parts::from(expr, 1)}; }

struct SliceParts {
  Expr& base;
  const std::vector<SliceDim>& dims;
  std::span<const int64_t> field;  ///< at most one: of the elements
};
inline SliceParts asSlice(const Expr& expr) { return {*expr.args[0], expr.slices, expr.ints}; }

struct FieldParts {
  Expr& base;
  uint32_t field;
};
inline FieldParts asField(const Expr& expr) { return {*expr.args[0], static_cast<uint32_t>(expr.ints[0])}; }

/// RepeatArray, RepeatVec: the element that is repeated.
inline Expr& repeatedOf(const Expr& expr) { return *expr.args[0]; }

struct RangeParts {
  Expr &begin, &end;
  Expr* step;  ///< null: 1
};
inline RangeParts asRange(const Expr& expr) { return {*expr.args[0], *expr.args[1], parts::optional(expr, 2)}; }

struct LetParts {
  Variable* variable;
  Expr* value;  ///< null: declared without one
};
inline LetParts asLet(const Expr& expr) { return {expr.variable, parts::optional(expr, 0)}; }

struct AssignParts {
  Expr &place, &value;
};
inline AssignParts asAssign(const Expr& expr) { return {*expr.args[0], *expr.args[1]}; }

struct IfParts {
  Expr &condition, &then;
  Expr* otherwise;
};
inline IfParts asIf(const Expr& expr) { return {*expr.args[0], *expr.args[1], parts::optional(expr, 2)}; }

struct LoopParts {
  Expr* condition;  ///< null: Loop
  Expr& body;
};
/// While, Loop.
inline LoopParts asLoop(const Expr& expr) {
  return {expr.kind == ExprKind::While ? expr.args[0] : nullptr, *expr.args.back()};
}

struct ForParts {
  Expr &list, &body;
  Variable *variable, *index;  ///< index: null without `.enumerate()`
};
inline ForParts asFor(const Expr& expr) { return {*expr.args[0], *expr.args[1], expr.variable, expr.indexVariable}; }

/// Break, Return: what is handed over; null if nothing.
inline Expr* jumpValueOf(const Expr& expr) { return parts::optional(expr, 0); }

struct InlineParts {
  ExprList params;  ///< a Let of each
  Expr& body;
};
inline InlineParts asInline(const Expr& expr) {
  return {ExprList(expr.args).first(expr.args.size() - 1), *expr.args.back()};
}

struct ClosureCallParts {
  Expr& closure;
  ExprList operands;
};
inline ClosureCallParts asClosureCall(const Expr& expr) { return {*expr.args[0], parts::from(expr, 1)}; }
/// Closure: the body.
inline Expr& closureBodyOf(const Expr& expr) { return *expr.args[0]; }

struct AtomicParts {
  Expr& place;
  ExprList operands;
};
inline AtomicParts asAtomic(const Expr& expr) { return {*expr.args[0], parts::from(expr, 1)}; }

struct StageParts {
  Expr& source;
  Expr* destination;  ///< AsyncStage; null: what the value is assigned to
};
inline StageParts asStage(const Expr& expr) { return {*expr.args[0], parts::optional(expr, 1)}; }

/// Built-in functions of one tensor, Vec or number: Extent, Len, reductions, Push, Pop, FromHost, …
inline Expr& subjectOf(const Expr& expr) { return *expr.args[0]; }
/// What Push adds to its Vec.
inline Expr& pushedOf(const Expr& expr) { return *expr.args[1]; }

}  // namespace vortex::lang
