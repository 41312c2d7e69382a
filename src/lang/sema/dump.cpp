#include "lang/sema/dump.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

std::string bindingText(const Function& function, const DimBinding& dim) {
  if (dim.constant)
    return base::concat(dim.name, " = ", *dim.constant);
  if (!dim.param)
    return dim.name + " = let";
  std::string place = function.params[*dim.param]->name;
  for (uint32_t field : dim.fieldPath)
    place += base::concat(".", field);
  return dim.isScalarValue ? dim.name + " = value of " + place : base::concat(dim.name, " = ", place, "#", dim.dim);
}

std::string checkText(const Function& function, const LaunchCheck& check) {
  const std::string expected = check.expected.text(function.dimNames());
  switch (check.kind) {
  case LaunchCheck::Kind::PowerOfTwo: return expected + " is a power of two";
  case LaunchCheck::Kind::NonZero: return expected + " != 0";
  case LaunchCheck::Kind::NotNegative: return expected + " >= 0";
  case LaunchCheck::Kind::Exact: return base::concat(expected, " % ", check.divisor.text(function.dimNames()), " == 0");
  case LaunchCheck::Kind::ExtentEquals: break;
  }
  std::string place = function.params[check.param]->name;
  for (uint32_t field : check.fieldPath)
    place += base::concat(".", field);
  return base::concat(place, "#", check.dim, " == ", expected);
}

std::string kernelText(const Function& function, const DumpOptions& options) {
  const KernelSpec& spec = *function.kernel;
  const auto list = [&](const std::vector<Expr*>& exprs) {
    std::string out;
    for (const Expr* expr : exprs)
      out += (out.empty() ? "" : ", ") + dump(*expr, function, options);
    return "[" + out + "]";
  };
  std::string out;
  if (!spec.grid.empty())
    out += "  @grid " + list(spec.grid) + "\n";
  if (!spec.block.empty())
    out += "  @block " + list(spec.block) + "\n";
  if (spec.gridKind == GridKind::Domain) {
    std::string extents;
    for (const DimExpr& extent : spec.domain)
      extents += (extents.empty() ? "" : ", ") + extent.text(function.dimNames());
    out += "  @domain [" + extents + "]\n";
  }
  constexpr const char* kReduce[] = {"", "add", "mul", "min", "max", "and", "or", "function"};
  if (spec.reduce != ReduceKind::None)
    out += base::concat("  @reduce ", kReduce[static_cast<size_t>(spec.reduce)], "\n");
  return out;
}

}  // namespace

std::string dump(const Function& function, const DumpOptions& options) {
  const std::vector<std::string> names = function.dimNames();
  std::string out = (function.isKernel ? "kernel " : "fn ") + function.uniqueName + "(";
  for (size_t i = 0; i < function.params.size(); ++i)
    out += (i ? ", " : "") + function.params[i]->name + ": " + text(function.params[i]->type, names);
  out += ")";
  if (function.resultType->kind != TypeKind::Unit)
    out += " -> " + text(function.resultType, names);
  std::string where;
  for (const DimBinding& dim : function.dims)
    where += (where.empty() ? " where " : ", ") + bindingText(function, dim);
  for (const LaunchCheck& check : function.checks)
    where += (where.empty() ? " where " : ", ") + checkText(function, check);
  out += where + " {\n";
  if (function.kernel)
    out += kernelText(function, options);
  if (function.body)
    for (const Expr* stmt :
         function.body->kind == ExprKind::Block ? function.body->args : std::vector<Expr*>{function.body}) {
      std::string line = dump(*stmt, function, options);
      for (size_t at = line.find('\n'); at != std::string::npos; at = line.find('\n', at + 3))
        line.replace(at, 1, "\n  ");
      out += "  " + line + "\n";
    }
  return out + "}\n";
}

std::string dump(const Program& program, const DumpOptions& options) {
  std::string out;
  for (const auto& function : program.functions)
    out += (out.empty() ? "" : "\n") + dump(*function, options);
  return out;
}

}  // namespace vortex::lang
