// Places of a function: a variable and the way from it to a part of its storage.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lang/sema/program.h"

namespace vortex::lang::ownership {

using LocalId = uint32_t;
inline constexpr LocalId kNoLocal = UINT32_MAX;

struct Projection {
  enum class Kind : uint8_t { Field, Deref, Index } kind = Kind::Field;
  uint32_t field = 0;          ///< Field
  const Expr* expr = nullptr;  ///< Index: the Element or Slice
};

struct Place {
  LocalId root = kNoLocal;
  std::vector<Projection> path;

  bool hasDeref() const { return find(Projection::Kind::Deref); }
  bool hasIndex() const { return find(Projection::Kind::Index); }
  /// Only fields: what a move or an assignment can empty or fill as a whole.
  bool isMovePath() const { return !hasDeref() && !hasIndex(); }
  /// The leading fields.
  std::vector<uint32_t> fields() const;

private:
  bool find(Projection::Kind kind) const;
};

/// Integer expressions as polynomials over immutable variables, to compare indices and slices.
class Indices {
public:
  /// `variable` is immutable and has this value.
  void define(const Variable* variable, const Expr* value) { values_[variable] = value; }

  /// Can the two accesses (Element or Slice of the same tensor, Vec or array) touch one element? True when it is not known.
  bool mayOverlap(const Expr& a, const Expr& b);
  /// The variables that an access's indices depend on.
  void variablesOf(const Expr& access, std::set<const Variable*>& out, uint32_t depth = 0) const;

private:
  struct Range {
    std::optional<DimExpr> begin, end;
  };
  std::vector<Range> rangesOf(const Expr& access);
  std::optional<DimExpr> form(const Expr* expr, uint32_t depth = 0);
  bool isNotPositive(const DimExpr& expr) const;
  bool areUnequal(const Range& a, const Range& b) const;
  DimExpr opaque(const Variable* variable);

  std::map<const Variable*, const Expr*> values_;
  std::map<const Variable*, uint32_t> ids_;
  std::set<uint32_t> signed_;
};

}  // namespace vortex::lang::ownership
