#include "size/text.h"

#include "base/check.h"
#include "base/text.h"

#include <charconv>
#include <limits>

namespace vortex::size {

using base::concat;

namespace {

struct Spelling {
  Op op;
  std::string_view text;
  int precedence;  ///< of an infix or prefix operator, the higher binds tighter; 0: a function
};
constexpr Spelling kSpellings[] = {
    {Op::Dim, "dim", 0},
    {Op::Stride, "stride", 0},
    {Op::Address, "address", 0},
    {Op::Scalar, "scalar", 0},
    {Op::LaunchGrid, "launch_grid", 0},
    {Op::Device, "device", 0},
    {Op::FloorDiv, "floordiv", 0},
    {Op::CeilDiv, "ceildiv", 0},
    {Op::Mod, "mod", 0},
    {Op::Min, "min", 0},
    {Op::Max, "max", 0},
    {Op::IsPowerOfTwo, "pow2", 0},
    {Op::Select, "select", 0},
    {Op::Or, "|", 1},
    {Op::And, "&", 2},
    {Op::Equal, "==", 3},
    {Op::Less, "<", 3},
    {Op::Add, "+", 4},
    {Op::Sub, "-", 4},
    {Op::Mul, "*", 5},
    {Op::Not, "!", 6},
};
constexpr std::string_view kWorkers = "workers", kClusters = "clusters";
constexpr int kPrefix = 6, kAtom = 7;
/// Of nested parentheses and functions in text; what the compiler makes has a few.
constexpr unsigned kMostDepth = 1000;

const Spelling& spelling(Op op) {
  for (const Spelling& each : kSpellings)
    if (each.op == op)
      return each;
  VORTEX_UNREACHABLE("size operator %d", static_cast<int>(op));
}

struct Printed {
  std::string text;
  int precedence = kAtom;
};

std::string within(const Printed& operand, bool parenthesised) {
  return parenthesised ? concat("(", operand.text, ")") : operand.text;
}

Printed printNode(const Node& node, const std::array<Printed, 3>& operands) {
  if (node.op == Op::Constant)
    return {std::to_string(node.value), kAtom};
  const auto& [op, name, precedence] = spelling(node.op);
  if (op == Op::Device)
    return {node.argument == 1 ? concat(name, "(", kWorkers, ")") : concat(name, "(", kClusters, node.argument, ")"),
            kAtom};
  if (arity(op) == 0) {
    const bool hasDim = op == Op::Dim || op == Op::Stride;
    return {concat(name, "(", node.argument, hasDim ? concat(",", node.dim) : std::string(), ")"), kAtom};
  }
  if (op == Op::Not)
    return {concat("!", within(operands[0], operands[0].precedence < kPrefix)), kPrefix};
  if (precedence != 0)  // chains group to the left
    return {concat(within(operands[0], operands[0].precedence < precedence), " ", name, " ",
                   within(operands[1], operands[1].precedence <= precedence)),
            precedence};
  std::string text = concat(name, "(", operands[0].text);
  for (uint32_t i = 1; i < arity(op); ++i)
    text += ", " + operands[i].text;
  return {text + ")", kAtom};
}

class Parser {
public:
  Parser(Arena& arena, std::string_view text) : arena_(arena), text_(text), rest_(text) {}

  Result<Expr> run() {
    Expr expr = parseChain(1);
    if (expr && !rest_.empty())
      expected("an operator or the end");
    if (error_.empty())
      return expr;
    return Error{error_};
  }

private:
  Expr expected(std::string_view what) {
    if (error_.empty())
      error_ = concat("expected ", what, " at character ", text_.size() - rest_.size() + 1,
                      " of the size expression \"", text_, "\"");
    return {};
  }

  void skipSpace() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  bool consume(std::string_view token) {
    if (!rest_.starts_with(token))
      return false;
    rest_.remove_prefix(token.size());
    skipSpace();
    return true;
  }

  const Spelling* consumeOperator(int precedence) {
    for (const Spelling& each : kSpellings)
      if (each.precedence == precedence && consume(each.text))
        return &each;
    return nullptr;
  }

  /// Operators of this precedence and above.
  Expr parseChain(int precedence) {
    if (precedence == kPrefix)
      return parsePrefix();
    Expr left = parseChain(precedence + 1);
    while (left) {
      const Spelling* infix = consumeOperator(precedence);
      if (!infix)
        break;
      Expr right = parseChain(precedence + 1);
      left = right ? arena_.make(infix->op, left, right) : Expr();
    }
    return left;
  }

  Expr parsePrefix() {
    if (++depth_ > kMostDepth)
      return expected("less nesting");
    Expr result;
    if (consume("!")) {
      Expr operand = parsePrefix();
      result = operand ? arena_.make(Op::Not, operand) : Expr();
    } else if (consume("(")) {
      result = parseChain(1);
      if (result && !consume(")"))
        result = expected("`)`");
    } else {
      result = parseAtom();
    }
    --depth_;
    return result;
  }

  template <typename T> bool consumeNumber(T& value) {
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc())
      return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skipSpace();
    return true;
  }

  Expr parseAtom() {
    if (int64_t value = 0; consumeNumber(value))
      return arena_.constant(value);
    size_t length = 0;
    while (length < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[length])) != 0 || rest_[length] == '_'))
      ++length;
    for (const Spelling& each : kSpellings)
      if (each.precedence == 0 && each.text == rest_.substr(0, length)) {
        rest_.remove_prefix(length);
        skipSpace();
        return arity(each.op) == 0 ? parseArgument(each.op) : parseFunction(each.op);
      }
    return expected("a number, an argument or a function");
  }

  Expr parseArgument(Op op) {
    uint32_t argument = 0, dim = 0;
    if (op == Op::Device)
      return parseDevice();
    const bool hasDim = op == Op::Dim || op == Op::Stride;
    if (!consume("(") || !consumeNumber(argument) || (hasDim && (!consume(",") || !consumeNumber(dim))) ||
        !consume(")"))
      return expected(hasDim ? "`(argument,dimension)`" : "`(argument)`");
    if (op == Op::LaunchGrid && argument > 2)
      return expected("an axis below 3 before");
    return arena_.leaf(op, argument, dim);
  }

  Expr parseDevice() {
    uint32_t blocks = 1;
    const bool isRead = consume("(") && (consume(kWorkers) || (consume(kClusters) && consumeNumber(blocks))) &&
                        blocks - 1 < kMaxClusterBlocks && consume(")");
    return isRead ? arena_.clusters(blocks) : expected("`(workers)`, or `(clusters2)` to `(clusters8)`,");
  }

  Expr parseFunction(Op op) {
    std::array<Expr, 3> operands;
    for (uint32_t i = 0; i < arity(op); ++i) {
      if (!consume(i == 0 ? "(" : ","))
        return expected(i == 0 ? "`(`" : "`,`");
      if (operands[i] = parseChain(1); !operands[i])
        return {};
    }
    if (!consume(")"))
      return expected("`)`");
    return arena_.make(op, operands[0], operands[1], operands[2]);
  }

  Arena& arena_;
  std::string_view text_, rest_;
  std::string error_;
  unsigned depth_ = 0;
};

std::string constantToC(int64_t value) {
  // The literal 9223372036854775808 has no signed type, so the minimum cannot be written directly.
  if (value == std::numeric_limits<int64_t>::min())
    return "(-INT64_C(9223372036854775807) - 1)";
  if (value < 0)
    return concat("(-INT64_C(", -value, "))");
  return concat("INT64_C(", value, ")");
}

/// Of FloorDiv, CeilDiv and Mod.
std::string divisionToC(Op op, const std::string& l, const std::string& r) {
  const std::string quotient = concat("(", l, " / ", r, ")"), rest = concat("(", l, " % ", r, ")");
  // Division by a positive constant is by far the most frequent and needs no guards.
  if (r.starts_with("INT64_C(") && r != "INT64_C(0)") {
    if (op == Op::Mod)
      return concat("(", rest, " + (", rest, " < 0 ? ", r, " : INT64_C(0)))");
    return op == Op::FloorDiv ? concat("(", quotient, " - (", rest, " < 0))")
                              : concat("(", quotient, " + (", rest, " > 0))");
  }
  const std::string differ = concat("((", l, " < 0) != (", r, " < 0))");
  std::string special = concat("((int64_t)(0 - (uint64_t)", l, "))"), usual;
  if (op == Op::Mod) {
    special = "INT64_C(0)";
    usual = concat("(", rest, " != 0 && ((", rest, " < 0) != (", r, " < 0)) ? ", rest, " + ", r, " : ", rest, ")");
  } else {
    usual = op == Op::FloorDiv ? concat("(", quotient, " - (", rest, " != 0 && ", differ, "))")
                               : concat("(", quotient, " + (", rest, " != 0 && !", differ, "))");
  }
  return concat("(", r, " == 0 ? INT64_C(0) : ", r, " == -1 ? ", special, " : ", usual, ")");
}

}  // namespace

std::string print(Expr expr) { return fold<Printed>(expr, printNode).text; }

Result<Expr> parse(Arena& arena, std::string_view text) { return Parser(arena, text).run(); }

std::string toC(const Row& row, const std::array<std::string, 3>& operands) {
  const auto& [l, r, otherwise] = operands;
  const auto wrapping = [&](const char* symbol) {
    return concat("((int64_t)((uint64_t)", l, symbol, "(uint64_t)", r, "))");
  };
  switch (row.op) {
  case Op::Constant: return constantToC(row.value);
  case Op::Dim:
  case Op::Stride:
  case Op::Address:
  case Op::Scalar:
  case Op::LaunchGrid:
  case Op::Device: return l;
  case Op::Add: return wrapping(" + ");
  case Op::Sub: return wrapping(" - ");
  case Op::Mul: return wrapping(" * ");
  case Op::FloorDiv:
  case Op::CeilDiv:
  case Op::Mod: return divisionToC(row.op, l, r);
  case Op::Min: return concat("(", l, " < ", r, " ? ", l, " : ", r, ")");
  case Op::Max: return concat("(", l, " < ", r, " ? ", r, " : ", l, ")");
  case Op::Equal: return concat("((int64_t)(", l, " == ", r, "))");
  case Op::Less: return concat("((int64_t)(", l, " < ", r, "))");
  case Op::And: return concat("((int64_t)(", l, " != 0 && ", r, " != 0))");
  case Op::Or: return concat("((int64_t)(", l, " != 0 || ", r, " != 0))");
  case Op::Not: return concat("((int64_t)(", l, " == 0))");
  case Op::IsPowerOfTwo: return concat("((int64_t)(", l, " > 0 && (", l, " & (", l, " - 1)) == 0))");
  case Op::Select: return concat("(", l, " != 0 ? ", r, " : ", otherwise, ")");
  }
  VORTEX_UNREACHABLE("size operator %d", static_cast<int>(row.op));
}

}  // namespace vortex::size
