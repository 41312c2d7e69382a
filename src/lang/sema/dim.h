// Symbolic extents: polynomials with integer coefficients over atoms, in a normal form that makes equality structural.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vortex::lang {

/// Index into the owning Function's `dims` (kernels, functions) — the dimension variables of one instance.
using DimVarId = uint32_t;

/// A term that is not a polynomial of dimension variables, kept by structure: ceil_div(N, 32), N / 2, N % 2, min(M, N), or an
/// unknown of the host program (every Opaque is different from every other).
class DimExpr;
struct DimAtom {
  enum class Kind : uint8_t { Variable, Div, CeilDiv, Mod, Min, Max, Opaque };
  Kind kind = Kind::Variable;
  uint32_t id = 0;                ///< Variable: DimVarId; Opaque: unique number
  std::vector<DimExpr> operands;  ///< two for the operators
  bool operator<(const DimAtom& other) const;
  bool operator==(const DimAtom& other) const;
};

/// `/`, `%`, `ceil_div`, `min` and `max` of two extents: extents are signed 64-bit numbers, `/` drops the fraction, x / 0 is 0.
int64_t applyToExtents(DimAtom::Kind op, int64_t a, int64_t b);

/// Sum of coefficient × product of atoms. The monomial {} is the constant.
class DimExpr {
public:
  using Monomial = std::vector<DimAtom>;  // sorted; repeated atoms are powers
  DimExpr() = default;
  static DimExpr constant(int64_t value);
  static DimExpr variable(DimVarId id);
  static DimExpr opaque(uint32_t id);
  static DimExpr ofAtom(DimAtom atom);
  static DimExpr add(const DimExpr& lhs, const DimExpr& rhs);
  static DimExpr sub(const DimExpr& lhs, const DimExpr& rhs);
  static DimExpr mul(const DimExpr& lhs, const DimExpr& rhs);
  static DimExpr apply(DimAtom::Kind op, const DimExpr& lhs,
                       const DimExpr& rhs);  ///< folds constants and exact division

  const std::map<Monomial, int64_t>& terms() const { return terms_; }
  std::optional<int64_t> asConstant() const;
  std::optional<DimVarId> asVariable() const;
  bool hasOpaque() const;
  /// Replaces variables; ids beyond the vector stay.
  DimExpr substitute(const std::vector<std::optional<DimExpr>>& values) const;
  /// In the user's names: "3*D", "ceil_div(N, 32)".
  std::string text(const std::vector<std::string>& names) const;
  bool operator==(const DimExpr& other) const { return terms_ == other.terms_; }
  bool operator!=(const DimExpr& other) const { return terms_ != other.terms_; }
  bool operator<(const DimExpr& other) const { return terms_ < other.terms_; }

private:
  std::map<Monomial, int64_t> terms_;  // no zero coefficients
};

/// `dividend` has to be a multiple of `divisor`, which is not 0.
struct ExactQuotient {
  DimExpr dividend, divisor;
  bool operator==(const ExactQuotient& other) const = default;
};
/// What makes `expr` zero: that these quotients leave no remainder. None where it is not zero then, or where terms are opaque.
std::optional<std::vector<ExactQuotient>> quotientsOfZero(const DimExpr& expr);

/// Are two extents equal: for every value of the variables (Yes), for none that can be seen (No: the difference is a non-zero
/// constant, or both are different named variables and the context is a kernel), or only known at launch (Unknown).
enum class DimEqual : uint8_t { Yes, No, Unknown };

}  // namespace vortex::lang
