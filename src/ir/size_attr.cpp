#include "ir/size_attr.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace vortex::ir {

using artifact::SizeExpr;
using llvm::StringRef;
using Op = SizeExpr::Op;

namespace {

struct Spelling {
  StringRef text;
  Op op;
  unsigned operands;
};
constexpr Spelling kOperators[] = {
    {"add", Op::Add, 2},         {"sub", Op::Sub, 2},           {"mul", Op::Mul, 2}, {"floordiv", Op::FloorDiv, 2},
    {"ceildiv", Op::CeilDiv, 2}, {"mod", Op::Mod, 2},           {"min", Op::Min, 2}, {"max", Op::Max, 2},
    {"eq", Op::Equal, 2},        {"lt", Op::Less, 2},           {"and", Op::And, 2}, {"or", Op::Or, 2},
    {"not", Op::Not, 1},         {"pow2", Op::IsPowerOfTwo, 1},
};

const Spelling* findOperator(StringRef text) {
  const auto* found = llvm::find_if(kOperators, [&](const Spelling& entry) { return entry.text == text; });
  return found == std::end(kOperators) ? nullptr : found;
}

const Spelling& spelling(Op op) {
  const auto* found = llvm::find_if(kOperators, [&](const Spelling& entry) { return entry.op == op; });
  VORTEX_CHECK(found != std::end(kOperators));
  return *found;
}

int64_t floorDiv(int64_t lhs, int64_t rhs) {
  if (rhs == 0)
    return 0;
  if (rhs == -1)
    return int64_t(0 - uint64_t(lhs));
  return lhs / rhs - ((lhs % rhs != 0 && (lhs < 0) != (rhs < 0)) ? 1 : 0);
}

int64_t fold(Op op, int64_t lhs, int64_t rhs) {
  auto a = uint64_t(lhs), b = uint64_t(rhs);
  switch (op) {
  case Op::Add: return int64_t(a + b);
  case Op::Sub: return int64_t(a - b);
  case Op::Mul: return int64_t(a * b);
  case Op::FloorDiv: return floorDiv(lhs, rhs);
  case Op::CeilDiv: return int64_t(0 - uint64_t(floorDiv(int64_t(0 - a), rhs)));
  case Op::Mod: return rhs == 0 ? 0 : int64_t(a - uint64_t(floorDiv(lhs, rhs)) * b);
  case Op::Min: return std::min(lhs, rhs);
  case Op::Max: return std::max(lhs, rhs);
  case Op::Equal: return lhs == rhs;
  case Op::Less: return lhs < rhs;
  case Op::And: return lhs != 0 && rhs != 0;
  case Op::Or: return lhs != 0 || rhs != 0;
  default: VORTEX_UNREACHABLE("not a binary size operator");
  }
}

/// "dim(0,1)" → {0, 1}; nothing for another spelling.
std::optional<std::pair<uint32_t, uint32_t>> parseReference(StringRef token, StringRef name, bool hasDim) {
  if (!token.consume_front(name) || !token.consume_front("(") || !token.consume_back(")"))
    return {};
  std::pair<uint32_t, uint32_t> result{0, 0};
  auto [first, second] = token.split(',');
  if (first.getAsInteger(10, result.first) || hasDim != token.contains(','))
    return {};
  if (hasDim && second.getAsInteger(10, result.second))
    return {};
  return result;
}

std::optional<SizeToken> parseOperand(StringRef text) {
  using Kind = SizeToken::Kind;
  SizeToken token;
  if (!text.getAsInteger(10, token.value))
    return token;
  for (auto [name, kind] : {std::pair("dim", Kind::Dim), {"stride", Kind::Stride}, {"scalar", Kind::Scalar}}) {
    auto reference = parseReference(text, name, kind != Kind::Scalar);
    if (!reference)
      continue;
    token.kind = kind;
    std::tie(token.argument, token.dim) = *reference;
    return token;
  }
  return {};
}

SizeAttr makeSize(mlir::MLIRContext* context, const llvm::Twine& program) {
  return SizeAttr::get(context, program.str());
}

}  // namespace

mlir::FailureOr<llvm::SmallVector<SizeToken>>
parseSizeProgram(StringRef program, llvm::function_ref<mlir::InFlightDiagnostic()> emitError) {
  llvm::SmallVector<SizeToken> tokens;
  if (program.empty())
    return tokens;
  llvm::SmallVector<StringRef> texts;
  program.split(texts, ' ');
  size_t depth = 0;
  for (StringRef text : texts) {
    if (std::optional<SizeToken> operand = parseOperand(text)) {
      tokens.push_back(*operand);
      ++depth;
      continue;
    }
    const Spelling* entry = findOperator(text);
    if (!entry)
      return emitError() << "unknown token '" << text << "' in size expression \"" << program << "\"";
    if (depth < entry->operands)
      return emitError() << "'" << text << "' lacks operands in size expression \"" << program << "\"";
    depth -= entry->operands - 1;
    SizeToken token;
    token.kind = SizeToken::Kind::Operator;
    token.op = entry->op;
    tokens.push_back(token);
  }
  if (depth != 1)
    return emitError() << "size expression \"" << program << "\" leaves " << depth << " values instead of one";
  return tokens;
}

SizeAttr sizeConstant(mlir::MLIRContext* context, int64_t value) { return makeSize(context, llvm::Twine(value)); }
SizeAttr sizeDim(mlir::MLIRContext* context, unsigned argument, unsigned dim) {
  return makeSize(context, "dim(" + llvm::Twine(argument) + "," + llvm::Twine(dim) + ")");
}
SizeAttr sizeStride(mlir::MLIRContext* context, unsigned argument, unsigned dim) {
  return makeSize(context, "stride(" + llvm::Twine(argument) + "," + llvm::Twine(dim) + ")");
}
SizeAttr sizeScalar(mlir::MLIRContext* context, unsigned argument) {
  return makeSize(context, "scalar(" + llvm::Twine(argument) + ")");
}

std::optional<int64_t> constantSize(SizeAttr size) {
  if (size.getProgram().empty())
    return 0;
  int64_t value = 0;
  // The combinators below fold, so a constant is one token unless it was written by hand.
  if (!size.getProgram().getAsInteger(10, value))
    return value;
  return {};
}

SizeAttr sizeBinary(Op op, SizeAttr lhs, SizeAttr rhs) {
  mlir::MLIRContext* context = lhs.getContext();
  std::optional<int64_t> a = constantSize(lhs), b = constantSize(rhs);
  if (a && b)
    return sizeConstant(context, fold(op, *a, *b));
  bool unitRhs = b == 1 && (op == Op::Mul || op == Op::FloorDiv || op == Op::CeilDiv);
  bool zeroRhs = b == 0 && (op == Op::Add || op == Op::Sub);
  if (unitRhs || zeroRhs)
    return lhs;
  if ((a == 1 && op == Op::Mul) || (a == 0 && op == Op::Add))
    return rhs;
  auto text = [](SizeAttr size) { return size.getProgram().empty() ? StringRef("0") : size.getProgram(); };
  return makeSize(context, text(lhs) + " " + text(rhs) + " " + spelling(op).text);
}

SizeAttr sizeUnary(Op op, SizeAttr operand) {
  mlir::MLIRContext* context = operand.getContext();
  VORTEX_CHECK(op == Op::Not || op == Op::IsPowerOfTwo);
  if (std::optional<int64_t> value = constantSize(operand)) {
    bool powerOfTwo = *value > 0 && llvm::isPowerOf2_64(uint64_t(*value));
    return sizeConstant(context, op == Op::Not ? *value == 0 : powerOfTwo);
  }
  return makeSize(context, operand.getProgram() + " " + spelling(op).text);
}

llvm::SmallVector<uint32_t> argumentSlots(mlir::TypeRange argumentTypes) {
  llvm::SmallVector<uint32_t> slots{0};
  for (mlir::Type type : argumentTypes) {
    auto view = llvm::dyn_cast<ViewType>(type);
    slots.push_back(slots.back() + (view ? 1 + 2 * uint32_t(view.getRank()) : 1));
  }
  return slots;
}

mlir::FailureOr<SizeExpr> toSizeExpr(SizeAttr size, mlir::TypeRange argumentTypes,
                                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError) {
  auto tokens = parseSizeProgram(size.getProgram(), emitError);
  if (mlir::failed(tokens))
    return mlir::failure();
  llvm::SmallVector<uint32_t> slots = argumentSlots(argumentTypes);
  SizeExpr expr;
  for (const SizeToken& token : *tokens) {
    if (token.kind == SizeToken::Kind::Constant) {
      expr.steps.push_back({Op::Constant, token.value});
      continue;
    }
    if (token.kind == SizeToken::Kind::Operator) {
      expr.steps.push_back({token.op, 0});
      continue;
    }
    if (token.argument >= argumentTypes.size())
      return emitError() << "size expression \"" << size.getProgram() << "\" names argument " << token.argument
                         << " of " << argumentTypes.size();
    auto view = llvm::dyn_cast<ViewType>(argumentTypes[token.argument]);
    bool wantsView = token.kind != SizeToken::Kind::Scalar;
    if (wantsView != bool(view))
      return emitError() << "size expression \"" << size.getProgram() << "\": argument " << token.argument << " is "
                         << (view ? "a view, not a scalar" : "a scalar, not a view");
    if (view && token.dim >= view.getRank())
      return emitError() << "size expression \"" << size.getProgram() << "\" names dimension " << token.dim
                         << " of argument " << token.argument << " of rank " << view.getRank();
    uint32_t inner = !view ? 0 : 1 + token.dim + (token.kind == SizeToken::Kind::Stride ? view.getRank() : 0);
    expr.steps.push_back({Op::Slot, int64_t(slots[token.argument] + inner)});
  }
  return expr;
}

mlir::FailureOr<SizeAttr> fromSizeExpr(mlir::MLIRContext* context, const SizeExpr& expr,
                                       mlir::TypeRange argumentTypes) {
  llvm::SmallVector<uint32_t> slots = argumentSlots(argumentTypes);
  llvm::SmallVector<std::string> words;
  for (const SizeExpr::Step& step : expr.steps) {
    if (step.op == Op::Constant) {
      words.push_back(std::to_string(step.value));
      continue;
    }
    if (step.op != Op::Slot) {
      words.push_back(spelling(step.op).text.str());
      continue;
    }
    if (step.value < 0 || step.value >= int64_t(slots.back()))
      return mlir::failure();
    unsigned argument = unsigned(llvm::upper_bound(slots, uint32_t(step.value)) - slots.begin()) - 1;
    auto view = llvm::dyn_cast<ViewType>(argumentTypes[argument]);
    unsigned inner = unsigned(step.value) - slots[argument];
    if (view && inner == 0)
      return mlir::failure();  // the data pointer
    unsigned rank = view ? unsigned(view.getRank()) : 0;
    SizeAttr reference = !view           ? sizeScalar(context, argument)
                         : inner <= rank ? sizeDim(context, argument, inner - 1)
                                         : sizeStride(context, argument, inner - 1 - rank);
    words.push_back(reference.getProgram().str());
  }
  return SizeAttr::get(context, llvm::join(words, " "));
}

}  // namespace vortex::ir
