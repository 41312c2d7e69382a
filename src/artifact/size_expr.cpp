#include "artifact/size_expr.h"

#include <algorithm>
#include <array>
#include <limits>

namespace vortex::artifact {

namespace {

using Op = SizeExpr::Op;

int64_t wrap(uint64_t bits) { return static_cast<int64_t>(bits); }

/// INT64_MIN / -1 wraps to INT64_MIN; the hardware instruction would trap.
int64_t floorDiv(int64_t lhs, int64_t rhs) {
  if (rhs == 0)
    return 0;
  if (rhs == -1)
    return wrap(-static_cast<uint64_t>(lhs));
  const int64_t quotient = lhs / rhs;
  return quotient - ((lhs % rhs != 0 && (lhs < 0) != (rhs < 0)) ? 1 : 0);
}

int64_t ceilDiv(int64_t lhs, int64_t rhs) {
  if (rhs == 0)
    return 0;
  if (rhs == -1)
    return wrap(-static_cast<uint64_t>(lhs));
  const int64_t quotient = lhs / rhs;
  return quotient + ((lhs % rhs != 0 && (lhs < 0) == (rhs < 0)) ? 1 : 0);
}

/// lhs - rhs * floorDiv(lhs, rhs): the sign of the divisor.
int64_t floorMod(int64_t lhs, int64_t rhs) {
  if (rhs == 0 || rhs == -1)
    return 0;
  const int64_t rest = lhs % rhs;
  return rest != 0 && (rest < 0) != (rhs < 0) ? rest + rhs : rest;
}

int64_t apply(Op op, int64_t lhs, int64_t rhs) {
  const auto l = static_cast<uint64_t>(lhs), r = static_cast<uint64_t>(rhs);
  switch (op) {
  case Op::Add: return wrap(l + r);
  case Op::Sub: return wrap(l - r);
  case Op::Mul: return wrap(l * r);
  case Op::FloorDiv: return floorDiv(lhs, rhs);
  case Op::CeilDiv: return ceilDiv(lhs, rhs);
  case Op::Mod: return floorMod(lhs, rhs);
  case Op::Min: return std::min(lhs, rhs);
  case Op::Max: return std::max(lhs, rhs);
  case Op::Equal: return lhs == rhs;
  case Op::Less: return lhs < rhs;
  case Op::And: return lhs != 0 && rhs != 0;
  case Op::Or: return lhs != 0 || rhs != 0;
  case Op::Not: return rhs == 0;
  case Op::IsPowerOfTwo: return rhs > 0 && (rhs & (rhs - 1)) == 0;
  case Op::Constant:
  case Op::Slot: break;
  }
  return 0;
}

bool wraps(Op op, int64_t lhs, int64_t rhs) {
  int64_t exact = 0;
  switch (op) {
  case Op::Add: return __builtin_add_overflow(lhs, rhs, &exact);
  case Op::Sub: return __builtin_sub_overflow(lhs, rhs, &exact);
  case Op::Mul: return __builtin_mul_overflow(lhs, rhs, &exact);
  default: return false;
  }
}

int64_t load(const SizeExpr::Step& step, std::span<const uint64_t> slots) {
  if (step.op == Op::Constant)
    return step.value;
  const auto index = static_cast<uint64_t>(step.value);
  return index < slots.size() ? wrap(slots[index]) : 0;
}

/// Runs a well-formed program on `stack`, which has room for every step. `wrapped` becomes true where 64 bits do not hold a step's result.
int64_t run(std::span<const SizeExpr::Step> steps, std::span<const uint64_t> slots, int64_t* stack, bool& wrapped) {
  size_t depth = 0;
  for (const SizeExpr::Step& step : steps) {
    if (const uint32_t inputs = arity(step.op); inputs == 0) {
      stack[depth++] = load(step, slots);
    } else {
      if (depth < inputs)
        return 0;
      const int64_t rhs = stack[depth - 1];
      depth -= inputs;
      const int64_t lhs = inputs == 2 ? stack[depth] : 0;
      wrapped |= wraps(step.op, lhs, rhs);
      stack[depth] = apply(step.op, lhs, rhs);
      ++depth;
    }
  }
  return depth == 0 ? 0 : stack[depth - 1];
}

std::string constantToC(int64_t value) {
  // The literal 9223372036854775808 has no signed type, so the minimum cannot be written directly.
  if (value == std::numeric_limits<int64_t>::min())
    return "(-INT64_C(9223372036854775807) - 1)";
  if (value < 0)
    return "(-INT64_C(" + std::to_string(-value) + "))";
  return "INT64_C(" + std::to_string(value) + ")";
}

std::string combineToC(Op op, const std::string& l, const std::string& r) {
  const auto wrapping = [&](const char* symbol) {
    return "((int64_t)((uint64_t)" + l + symbol + "(uint64_t)" + r + "))";
  };
  // A division is guarded so that the expression never traps; operands have no side effects, so repeating them is safe.
  const auto divided = [&](const std::string& special, const std::string& usual) {
    return "(" + r + " == 0 ? INT64_C(0) : " + r + " == -1 ? " + special + " : " + usual + ")";
  };
  // Division by a positive constant is by far the most frequent and needs no guards.
  const bool byConstant = r.starts_with("INT64_C(") && r != "INT64_C(0)";
  const std::string negated = "((int64_t)(0 - (uint64_t)" + l + "))";
  const std::string quotient = "(" + l + " / " + r + ")", rest = "(" + l + " % " + r + ")";
  const std::string differ = "((" + l + " < 0) != (" + r + " < 0))";
  switch (op) {
  case Op::Add: return wrapping(" + ");
  case Op::Sub: return wrapping(" - ");
  case Op::Mul: return wrapping(" * ");
  case Op::FloorDiv:
    return byConstant ? "(" + quotient + " - (" + rest + " < 0))"
                      : divided(negated, "(" + quotient + " - (" + rest + " != 0 && " + differ + "))");
  case Op::CeilDiv:
    return byConstant ? "(" + quotient + " + (" + rest + " > 0))"
                      : divided(negated, "(" + quotient + " + (" + rest + " != 0 && !" + differ + "))");
  case Op::Mod:
    return byConstant ? "(" + rest + " + (" + rest + " < 0 ? " + r + " : INT64_C(0)))"
                      : divided("INT64_C(0)", "(" + rest + " != 0 && ((" + rest + " < 0) != (" + r + " < 0)) ? " +
                                                  rest + " + " + r + " : " + rest + ")");
  case Op::Min: return "(" + l + " < " + r + " ? " + l + " : " + r + ")";
  case Op::Max: return "(" + l + " < " + r + " ? " + r + " : " + l + ")";
  case Op::Equal: return "((int64_t)(" + l + " == " + r + "))";
  case Op::Less: return "((int64_t)(" + l + " < " + r + "))";
  case Op::And: return "((int64_t)(" + l + " != 0 && " + r + " != 0))";
  case Op::Or: return "((int64_t)(" + l + " != 0 || " + r + " != 0))";
  case Op::Not: return "((int64_t)(" + r + " == 0))";
  case Op::IsPowerOfTwo: return "((int64_t)(" + r + " > 0 && (" + r + " & (" + r + " - 1)) == 0))";
  case Op::Constant:
  case Op::Slot: break;
  }
  return "INT64_C(0)";
}

}  // namespace

uint32_t arity(SizeExpr::Op op) {
  switch (op) {
  case Op::Constant:
  case Op::Slot: return 0;
  case Op::Not:
  case Op::IsPowerOfTwo: return 1;
  default: return 2;
  }
}

SizeExpr SizeExpr::binary(Op op, const SizeExpr& lhs, const SizeExpr& rhs) {
  SizeExpr result = lhs.steps.empty() ? constant(0) : lhs;
  const SizeExpr& right = rhs.steps.empty() ? constant(0) : rhs;
  const bool folds = result.steps.size() == 1 && right.steps.size() == 1 && result.steps[0].op == Op::Constant &&
                     right.steps[0].op == Op::Constant;
  if (folds)
    return constant(apply(op, result.steps[0].value, right.steps[0].value));
  result.steps.insert(result.steps.end(), right.steps.begin(), right.steps.end());
  result.steps.push_back({op, 0});
  return result;
}

SizeExpr SizeExpr::unary(Op op, const SizeExpr& operand) {
  SizeExpr result = operand.steps.empty() ? constant(0) : operand;
  if (result.steps.size() == 1 && result.steps[0].op == Op::Constant)
    return constant(apply(op, 0, result.steps[0].value));
  result.steps.push_back({op, 0});
  return result;
}

bool SizeExpr::isWellFormed() const {
  size_t depth = 0;
  for (const Step& step : steps) {
    if (step.op > Op::IsPowerOfTwo)
      return false;
    const uint32_t inputs = arity(step.op);
    if (depth < inputs)
      return false;
    depth = depth - inputs + 1;
  }
  return steps.empty() || depth == 1;
}

static int64_t runAll(const std::vector<SizeExpr::Step>& steps, std::span<const uint64_t> slots, bool& wrapped) {
  if (steps.empty())
    return 0;
  if (steps.size() == 1)
    return arity(steps[0].op) == 0 ? load(steps[0], slots) : 0;
  // The stack is never deeper than the program; nearly all programs fit the array, so a launch allocates nothing.
  std::array<int64_t, 128> small;
  if (steps.size() <= small.size())
    return run(steps, slots, small.data(), wrapped);
  std::vector<int64_t> large(steps.size());
  return run(steps, slots, large.data(), wrapped);
}

int64_t SizeExpr::evaluate(std::span<const uint64_t> slots) const {
  bool wrapped = false;
  return runAll(steps, slots, wrapped);
}

std::optional<int64_t> SizeExpr::evaluateExactly(std::span<const uint64_t> slots) const {
  bool wrapped = false;
  const int64_t value = runAll(steps, slots, wrapped);
  return wrapped ? std::nullopt : std::optional(value);
}

std::string SizeExpr::toC(std::span<const std::string> slotNames) const {
  std::vector<std::string> stack;
  for (const Step& step : steps) {
    const uint32_t inputs = arity(step.op);
    if (step.op == Op::Constant) {
      stack.push_back(constantToC(step.value));
    } else if (step.op == Op::Slot) {
      const auto index = static_cast<uint64_t>(step.value);
      stack.push_back(index < slotNames.size() ? "((int64_t)" + slotNames[index] + ")" : "INT64_C(0)");
    } else if (stack.size() >= inputs) {
      const std::string rhs = std::move(stack.back());
      stack.pop_back();
      std::string lhs;
      if (inputs == 2) {
        lhs = std::move(stack.back());
        stack.pop_back();
      }
      stack.push_back(combineToC(step.op, lhs, rhs));
    } else {
      return "INT64_C(0)";
    }
  }
  return stack.empty() ? "INT64_C(0)" : stack.back();
}

}  // namespace vortex::artifact
