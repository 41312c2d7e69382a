#include "lang/sema/dim.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace vortex::lang {
namespace {

// Extents are small; a product that leaves int64 saturates, which keeps it unequal to every real extent.
int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : out;
}
int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? (a < 0 ? INT64_MIN : INT64_MAX) : out;
}

// x / c when every coefficient divides by c.
std::optional<DimExpr> exactQuotient(const DimExpr& value, int64_t divisor) {
  if (divisor == 0 || divisor == -1)  // INT64_MIN / -1 traps
    return std::nullopt;
  DimExpr out;
  for (const auto& [monomial, coefficient] : value.terms()) {
    if (coefficient % divisor != 0)
      return std::nullopt;
    DimExpr term = DimExpr::constant(coefficient / divisor);
    for (const DimAtom& atom : monomial)
      term = DimExpr::mul(term, DimExpr::ofAtom(atom));
    out = DimExpr::add(out, term);
  }
  return out;
}

std::string_view atomName(DimAtom::Kind kind) {
  switch (kind) {
  case DimAtom::Kind::CeilDiv: return "ceil_div";
  case DimAtom::Kind::Min: return "min";
  case DimAtom::Kind::Max: return "max";
  default: return "";
  }
}

std::string atomText(const DimAtom& atom, const std::vector<std::string>& names) {
  switch (atom.kind) {
  case DimAtom::Kind::Variable: return atom.id < names.size() ? names[atom.id] : "?";
  case DimAtom::Kind::Opaque: return "_";
  case DimAtom::Kind::Div:
  case DimAtom::Kind::Mod: {
    const auto operand = [&](const DimExpr& value) {
      const std::string text = value.text(names);
      const bool simple = value.asConstant() || value.asVariable() || value.terms().size() < 2;
      return simple ? text : "(" + text + ")";
    };
    return operand(atom.operands[0]) + (atom.kind == DimAtom::Kind::Mod ? " % " : " / ") + operand(atom.operands[1]);
  }
  default:
    return std::string(atomName(atom.kind)) + "(" + atom.operands[0].text(names) + ", " + atom.operands[1].text(names) +
           ")";
  }
}

}  // namespace

int64_t applyToExtents(DimAtom::Kind op, int64_t a, int64_t b) {
  const bool isSimple = b != 0 && b != -1;  // INT64_MIN / -1 wraps to INT64_MIN; the instruction traps
  const int64_t quotient = isSimple ? a / b : b == 0 ? 0 : static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t rest = isSimple ? a % b : 0;
  switch (op) {
  case DimAtom::Kind::Div: return quotient;
  case DimAtom::Kind::CeilDiv: return quotient + (rest != 0 && (a < 0) == (b < 0) ? 1 : 0);
  case DimAtom::Kind::Mod: return rest;
  case DimAtom::Kind::Min: return std::min(a, b);
  case DimAtom::Kind::Max: return std::max(a, b);
  default: return 0;
  }
}

bool DimAtom::operator<(const DimAtom& other) const {
  return std::tie(kind, id, operands) < std::tie(other.kind, other.id, other.operands);
}
bool DimAtom::operator==(const DimAtom& other) const {
  return kind == other.kind && id == other.id && operands == other.operands;
}

DimExpr DimExpr::constant(int64_t value) {
  DimExpr out;
  if (value != 0)
    out.terms_[{}] = value;
  return out;
}
DimExpr DimExpr::variable(DimVarId id) {
  DimAtom atom;
  atom.id = id;
  return ofAtom(std::move(atom));
}
DimExpr DimExpr::opaque(uint32_t id) {
  DimAtom atom;
  atom.kind = DimAtom::Kind::Opaque;
  atom.id = id;
  return ofAtom(std::move(atom));
}
DimExpr DimExpr::ofAtom(DimAtom atom) {
  DimExpr out;
  out.terms_[{std::move(atom)}] = 1;
  return out;
}

DimExpr DimExpr::add(const DimExpr& lhs, const DimExpr& rhs) {
  DimExpr out = lhs;
  for (const auto& [monomial, coefficient] : rhs.terms_) {
    int64_t& sum = out.terms_[monomial];
    sum = saturatingAdd(sum, coefficient);
    if (sum == 0)
      out.terms_.erase(monomial);
  }
  return out;
}
DimExpr DimExpr::sub(const DimExpr& lhs, const DimExpr& rhs) { return add(lhs, mul(constant(-1), rhs)); }
DimExpr DimExpr::mul(const DimExpr& lhs, const DimExpr& rhs) {
  DimExpr out;
  for (const auto& [a, ca] : lhs.terms_)
    for (const auto& [b, cb] : rhs.terms_) {
      Monomial product = a;
      product.insert(product.end(), b.begin(), b.end());
      std::sort(product.begin(), product.end());
      int64_t& sum = out.terms_[product];
      sum = saturatingAdd(sum, saturatingMul(ca, cb));
      if (sum == 0)
        out.terms_.erase(product);
    }
  return out;
}

DimExpr DimExpr::apply(DimAtom::Kind op, const DimExpr& lhs, const DimExpr& rhs) {
  const auto a = lhs.asConstant(), b = rhs.asConstant();
  if (a && b)
    return constant(applyToExtents(op, *a, *b));
  if ((op == DimAtom::Kind::Min || op == DimAtom::Kind::Max) && lhs == rhs)
    return lhs;
  if (b && *b != 0 && (op == DimAtom::Kind::Div || op == DimAtom::Kind::CeilDiv))
    if (auto quotient = exactQuotient(lhs, *b))
      return *quotient;
  if (b && *b != 0 && op == DimAtom::Kind::Mod && exactQuotient(lhs, *b))
    return constant(0);
  DimAtom atom;
  atom.kind = op;
  const bool swap = (op == DimAtom::Kind::Min || op == DimAtom::Kind::Max) && rhs < lhs;
  atom.operands = swap ? std::vector<DimExpr>{rhs, lhs} : std::vector<DimExpr>{lhs, rhs};
  return ofAtom(std::move(atom));
}

std::optional<int64_t> DimExpr::asConstant() const {
  if (terms_.empty())
    return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty())
    return terms_.begin()->second;
  return std::nullopt;
}
std::optional<DimVarId> DimExpr::asVariable() const {
  if (terms_.size() != 1)
    return std::nullopt;
  const auto& [monomial, coefficient] = *terms_.begin();
  if (coefficient != 1 || monomial.size() != 1 || monomial[0].kind != DimAtom::Kind::Variable)
    return std::nullopt;
  return monomial[0].id;
}
bool DimExpr::hasOpaque() const {
  for (const auto& [monomial, coefficient] : terms_)
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Opaque)
        return true;
      for (const DimExpr& operand : atom.operands)
        if (operand.hasOpaque())
          return true;
    }
  return false;
}

namespace {

size_t depthOf(const DimExpr& expr);
size_t depthOf(const DimAtom& atom) {
  size_t depth = 0;
  for (const DimExpr& operand : atom.operands)
    depth = std::max(depth, depthOf(operand) + 1);
  return depth;
}
size_t depthOf(const DimExpr& expr) {
  size_t depth = 0;
  for (const auto& [monomial, coefficient] : expr.terms())
    for (const DimAtom& atom : monomial)
      depth = std::max(depth, depthOf(atom));
  return depth;
}

bool isQuotient(const DimAtom& atom) {
  return atom.kind == DimAtom::Kind::Div || atom.kind == DimAtom::Kind::CeilDiv || atom.kind == DimAtom::Kind::Mod;
}

DimExpr power(const DimExpr& base, size_t exponent) {
  DimExpr out = DimExpr::constant(1);
  while (exponent-- > 0)
    out = DimExpr::mul(out, base);
  return out;
}

/// Where x / y is exact, `expr` times a power of y, without that quotient.
DimExpr withoutQuotient(const DimExpr& expr, const DimAtom& quotient) {
  size_t most = 0;
  for (const auto& [monomial, coefficient] : expr.terms())
    most = std::max<size_t>(most, static_cast<size_t>(std::count(monomial.begin(), monomial.end(), quotient)));
  DimExpr out;
  for (const auto& [monomial, coefficient] : expr.terms()) {
    const auto times = static_cast<size_t>(std::count(monomial.begin(), monomial.end(), quotient));
    if (quotient.kind == DimAtom::Kind::Mod && times > 0)
      continue;  // no remainder
    DimExpr term = DimExpr::constant(coefficient);
    for (const DimAtom& atom : monomial)
      if (!(atom == quotient))
        term = DimExpr::mul(term, DimExpr::ofAtom(atom));
    if (quotient.kind != DimAtom::Kind::Mod)
      term = DimExpr::mul(DimExpr::mul(term, power(quotient.operands[0], times)),
                          power(quotient.operands[1], most - times));
    out = DimExpr::add(out, term);
  }
  return out;
}

}  // namespace

std::optional<std::vector<ExactQuotient>> quotientsOfZero(const DimExpr& expr) {
  constexpr size_t kMostQuotients = 16, kMostTerms = 256;
  std::vector<ExactQuotient> quotients;
  DimExpr rest = expr;
  while (rest.asConstant() != 0) {
    const DimAtom* deepest = nullptr;  // its operands bring only what is less deep
    for (const auto& [monomial, coefficient] : rest.terms())
      for (const DimAtom& atom : monomial)
        if (isQuotient(atom) && (!deepest || depthOf(atom) > depthOf(*deepest)))
          deepest = &atom;
    if (!deepest || deepest->operands[1].asConstant() == 0 || quotients.size() == kMostQuotients ||
        rest.terms().size() > kMostTerms || expr.hasOpaque())
      return std::nullopt;
    const DimAtom quotient = *deepest;
    rest = withoutQuotient(rest, quotient);
    const ExactQuotient needed{quotient.operands[0], quotient.operands[1]};
    if (std::find(quotients.begin(), quotients.end(), needed) == quotients.end())
      quotients.push_back(needed);
  }
  return quotients;
}

DimExpr DimExpr::substitute(const std::vector<std::optional<DimExpr>>& values) const {
  DimExpr out;
  for (const auto& [monomial, coefficient] : terms_) {
    DimExpr term = constant(coefficient);
    for (const DimAtom& atom : monomial) {
      DimExpr factor;
      if (atom.kind == DimAtom::Kind::Variable)
        factor = atom.id < values.size() && values[atom.id] ? *values[atom.id] : variable(atom.id);
      else if (atom.kind == DimAtom::Kind::Opaque)
        factor = opaque(atom.id);
      else
        factor = apply(atom.kind, atom.operands[0].substitute(values), atom.operands[1].substitute(values));
      term = mul(term, factor);
    }
    out = add(out, term);
  }
  return out;
}

std::string DimExpr::text(const std::vector<std::string>& names) const {
  if (terms_.empty())
    return "0";
  // Products first, the constant last: "3*D + 1".
  std::vector<std::pair<const Monomial*, int64_t>> ordered;
  for (const auto& [monomial, coefficient] : terms_)
    if (!monomial.empty())
      ordered.emplace_back(&monomial, coefficient);
  if (auto found = terms_.find({}); found != terms_.end())
    ordered.emplace_back(&found->first, found->second);
  std::string out;
  for (const auto& [monomial, coefficient] : ordered) {
    int64_t shown = coefficient;
    if (!out.empty()) {
      out += coefficient < 0 ? " - " : " + ";
      shown = coefficient < 0 ? -coefficient : coefficient;
    }
    if (monomial->empty()) {
      out += std::to_string(shown);
      continue;
    }
    if (shown == -1)
      out += "-";
    else if (shown != 1)
      out += std::to_string(shown) + "*";
    for (size_t i = 0; i < monomial->size(); ++i) {
      const DimAtom& atom = (*monomial)[i];
      const bool infix = atom.kind == DimAtom::Kind::Div || atom.kind == DimAtom::Kind::Mod;
      const bool alone = monomial->size() == 1 && shown == 1 && ordered.size() == 1;
      if (i > 0)
        out += "*";
      out += infix && !alone ? "(" + atomText(atom, names) + ")" : atomText(atom, names);
    }
  }
  return out;
}

}  // namespace vortex::lang
