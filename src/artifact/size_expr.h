// Integer expressions over launch arguments: grid sizes, result shapes, scratch sizes, launch constraints.
// They travel inside artifacts, so the runtime evaluates them without the compiler and C headers print them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vortex::artifact {

/// Postfix program over signed 64-bit integers. An empty program is the constant 0.
/// Arithmetic wraps; floorDiv, ceilDiv and mod by zero yield 0 (the language's rule).
struct SizeExpr {
  enum class Op : uint8_t {
    Constant,  ///< push `value`
    Slot,      ///< push launch slot number `value` (see Param: pointers, extents, strides, scalars), as i64
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
    Equal,
    Less,
    And,
    Or,
    Not,           ///< 0 or 1
    IsPowerOfTwo,  ///< 1 if the operand is a positive power of two
  };
  struct Step {
    Op op;
    int64_t value = 0;
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;

  static SizeExpr constant(int64_t value) { return {{{Op::Constant, value}}}; }
  static SizeExpr slot(int64_t index) { return {{{Op::Slot, index}}}; }
  static SizeExpr binary(Op op, const SizeExpr& lhs, const SizeExpr& rhs);
  static SizeExpr unary(Op op, const SizeExpr& operand);

  /// Value for the given launch slots. Slots beyond the span read as 0.
  int64_t evaluate(std::span<const uint64_t> slots) const;
  /// Nothing if a sum, difference or product on the way does not fit 64 bits: for extents, which must not wrap.
  std::optional<int64_t> evaluateExactly(std::span<const uint64_t> slots) const;
  /// C expression over `slot_names[i]`, fully parenthesised, of type int64_t.
  std::string toC(std::span<const std::string> slotNames) const;
  /// True if every operator has its operands and exactly one value remains. Anything else evaluates to 0 or to its last value.
  bool isWellFormed() const;
  bool operator==(const SizeExpr&) const = default;
};

/// How many operands an operator takes: 0 (Constant, Slot), 1 or 2.
uint32_t arity(SizeExpr::Op op);

}  // namespace vortex::artifact
