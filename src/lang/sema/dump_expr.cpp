// Expressions as text.
#include "lang/sema/dump.h"

#include "base/text.h"
#include "lang/sema/integers.h"

#include <cmath>
#include <cstdio>

namespace vortex::lang {
namespace {

std::string floatText(double value) {
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  std::string out = buffer;
  if (out.find_first_of(".en") == std::string::npos)
    out += ".0";
  return out;
}

class Printer {
public:
  Printer(const Function& function, const DumpOptions& options) : options_(options), dims_(function.dimNames()) {}

  std::string text(const Expr* expr) {
    std::string out = plain(expr);
    const bool isStatement = expr->type->kind == TypeKind::Unit || expr->type->kind == TypeKind::Never;
    return options_.types && !isStatement ? "(" + out + ": " + typeText(expr->type) + ")" : out;
  }

private:
  std::string typeText(Type type) { return lang::text(type, dims_); }

  std::string list(const std::vector<Expr*>& exprs, size_t first = 0) {
    std::string out;
    for (size_t i = first; i < exprs.size(); ++i)
      out += (i > first ? ", " : "") + text(exprs[i]);
    return out;
  }

  std::string variable(const Variable* variable) {
    const bool marks = options_.uniformity && variable->uniformity == Uniformity::PerThread;
    return (marks ? "~" : "") + (variable->name.empty() ? base::concat("$", variable->index) : variable->name);
  }

  std::string guard(const Expr* expr) {
    if (expr->guard == Guard::Unchecked)
      return "!";
    return options_.uniformity && expr->guard == Guard::Guarded ? "?" : "";
  }

  static std::string indent(const std::string& body) {
    std::string out = "  ";
    for (char c : body)
      out += c == '\n' ? std::string("\n  ") : std::string(1, c);
    return out;
  }

  std::string block(const Expr* expr) {
    std::string out = "{";
    if (expr->kind != ExprKind::Block)
      return "{\n" + indent(text(expr)) + "\n}";
    for (const Expr* stmt : expr->args)
      out += "\n" + indent(text(stmt));
    return out + "\n}";
  }

  std::string ints(const std::vector<int64_t>& values) {
    return values.empty() ? "" : "<" + base::join(values, ", ") + ">";
  }

  std::string slices(const Expr* expr) {
    std::string out;
    for (const SliceDim& slice : expr->slices) {
      out += out.empty() ? "" : ", ";
      if (slice.kind == SliceDim::Kind::Full)
        out += ":";
      else if (slice.kind == SliceDim::Kind::Index)
        out += text(slice.begin);
      else
        out += (slice.begin ? text(slice.begin) : "") + (slice.endIsLength ? "..+" : "..") +
               (slice.end ? text(slice.end) : "");
    }
    return out;
  }

  std::string call(const Expr* expr) {
    std::string out = expr->function->uniqueName;
    const auto axes = [&](const char* name, const std::vector<Expr*>& exprs) {
      if (!exprs.empty())
        out += base::concat(".", name, "[", list(exprs), "]");
    };
    axes("grid", expr->launch.grid);
    axes("block", expr->launch.block);
    return (expr->kind == ExprKind::Launch ? "launch " : "") + out + "(" + list(expr->args) + ")";
  }

  std::string literal(const Expr* expr) {
    if (expr->kind == ExprKind::String)
      return "\"" + expr->text + "\"";
    std::string out = expr->kind == ExprKind::Float ? floatText(expr->floatValue) : decimal(expr->intValue);
    if (expr->type->kind == TypeKind::Enum)
      return expr->type->decl->name + "#" + out;
    if (expr->type->isScalar(Scalar::Bool))
      return expr->intValue ? "true" : "false";
    return options_.types ? out : out + ": " + typeText(expr->type);
  }

  std::string plain(const Expr* expr);
  std::string control(const Expr* expr);

  DumpOptions options_;
  std::vector<std::string> dims_;
};

constexpr const char* kBinary[] = {"+", "-",  "*",  "/",  "%",  "**", "<<", ">>", "&", "|",
                                   "^", "&&", "||", "==", "!=", "<",  "<=", ">",  ">="};

std::string Printer::plain(const Expr* expr) {
  const auto arg = [&](size_t i) { return text(expr->args[i]); };
  switch (expr->kind) {
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::String: return literal(expr);
  case ExprKind::Unit: return "()";
  case ExprKind::Var: return variable(expr->variable);
  case ExprKind::DimValue: return expr->dim.text(dims_);
  case ExprKind::Unary: return (expr->unaryOp == UnaryOp::Neg ? "-" : "!") + arg(0);
  case ExprKind::Binary: return "(" + arg(0) + " " + kBinary[static_cast<size_t>(expr->binaryOp)] + " " + arg(1) + ")";
  case ExprKind::Cast: return (options_.types ? "cast" : "cast<" + typeText(expr->type) + ">") + "(" + arg(0) + ")";
  case ExprKind::Broadcast: return "broadcast" + ints(expr->ints) + "(" + arg(0) + ")";
  case ExprKind::Dot: return "dot(" + arg(0) + ", " + arg(1) + ")";
  case ExprKind::Builtin: {
    std::string format = expr->text.empty() ? "" : "\"" + expr->text + "\"" + (expr->args.empty() ? "" : ", ");
    return std::string(spelling(expr->builtin)) + ints(expr->ints) + "(" + format + list(expr->args) + ")";
  }
  case ExprKind::Call:
  case ExprKind::Launch: return call(expr);
  case ExprKind::CallClosure: return arg(0) + "(" + list(expr->args, 1) + ")";
  case ExprKind::Closure: {
    std::string params;
    for (const Variable* param : expr->variables)
      params += (params.empty() ? "" : ", ") + variable(param) + ": " + typeText(param->type);
    return "|" + params + "| " + arg(0);
  }
  case ExprKind::Element: return arg(0) + "[" + list(expr->args, 1) + "]" + guard(expr);
  case ExprKind::Slice: return arg(0) + "[" + slices(expr) + "]" + guard(expr);
  case ExprKind::Field:
    return arg(0) + "." +
           (expr->args[0]->type->kind == TypeKind::Struct
                ? expr->args[0]->type->decl->fields[static_cast<size_t>(expr->ints[0])]
                : std::to_string(expr->ints[0]));
  case ExprKind::MakeTuple: return "(" + list(expr->args) + ")";
  case ExprKind::MakeStruct: return typeText(expr->type) + " { " + list(expr->args) + " }";
  case ExprKind::MakeArray: return "[" + list(expr->args) + "]";
  case ExprKind::MakeVec: return "vec![" + list(expr->args) + "]";
  case ExprKind::RepeatArray: return "[" + arg(0) + "; " + arg(1) + "]";
  case ExprKind::RepeatVec: return "vec![" + arg(0) + "; " + arg(1) + "]";
  case ExprKind::Ref: return (expr->type->isMutable ? "&mut " : "&") + arg(0);
  case ExprKind::Deref: return "*" + arg(0);
  case ExprKind::Range: return arg(0) + ".." + arg(1) + (expr->args.size() > 2 ? " step " + arg(2) : "");
  case ExprKind::IntList: {
    std::string out;
    for (__int128 value : expr->intList)
      out += (out.empty() ? "" : ", ") + decimal(value);
    return "list[" + out + "]";
  }
  default: return control(expr);
  }
}

std::string Printer::control(const Expr* expr) {
  const auto arg = [&](size_t i) { return text(expr->args[i]); };
  switch (expr->kind) {
  case ExprKind::Block: return block(expr);
  case ExprKind::Let: {
    std::string out = base::concat(expr->variable->isResultStorage ? "result " : "let ", variable(expr->variable), ": ",
                                   typeText(expr->variable->type));
    return expr->args.empty() ? out : out + " = " + arg(0);
  }
  case ExprKind::Assign:
    return arg(0) + " " + (expr->hasOp ? kBinary[static_cast<size_t>(expr->binaryOp)] : "") + "= " + arg(1);
  case ExprKind::If:
    return "if " + arg(0) + " " + block(expr->args[1]) + (expr->args.size() > 2 ? " else " + block(expr->args[2]) : "");
  case ExprKind::While: return "while " + arg(0) + " " + block(expr->args[1]);
  case ExprKind::Loop: return "loop " + block(expr->args[0]);
  case ExprKind::For:
    return "for " + variable(expr->variable) + (expr->indexVariable ? ", " + variable(expr->indexVariable) : "") +
           " in " + arg(0) + " " + block(expr->args[1]);
  case ExprKind::Break: return expr->args.empty() ? "break" : "break " + arg(0);
  case ExprKind::Continue: return "continue";
  case ExprKind::Return: return expr->args.empty() ? "return" : "return " + arg(0);
  case ExprKind::Inline: {
    std::string out = "inline" + (expr->function ? " " + expr->function->uniqueName : "") + " {";
    for (const Expr* inner : expr->args)
      out += "\n" + indent(text(inner));
    return out + "\n}";
  }
  default: return "<unknown>";
  }
}

}  // namespace

std::string dump(const Expr& expr, const Function& function, const DumpOptions& options) {
  return Printer(function, options).text(&expr);
}

}  // namespace vortex::lang
