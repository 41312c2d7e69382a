// Integer arithmetic of the language: total (x / 0 and x % 0 are 0, shift counts are modulo the width), exact, then wrapped. One copy
// for constants and for host code; kernels compute by instructions.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "lang/sema/builtins.h"
#include "lang/sema/expr.h"

namespace vortex::lang {

__int128 lowest(Scalar integer);
__int128 highest(Scalar integer);
std::string decimal(__int128 value);
/// The low bits of the value, read as the type; bool is 1 bit.
__int128 wrapInteger(Scalar type, __int128 value);
/// Toward zero, saturating, NaN to 0.
__int128 saturateToInteger(Scalar to, double value);
/// The number rounded once to a float type, and a float rounded to one: as casts of the running program do it.
double toFloat(Scalar to, __int128 value);
double roundToFloat(Scalar to, double value);

struct IntegerResult {
  __int128 value = 0;  ///< wrapped to the type
  bool fits = true;    ///< nothing was lost; shifts and bit operations always fit
};
/// An operation on two numbers of the type, other than a comparison. `x ** y` with y < 0 is the whole part of the quotient.
IntegerResult integerBinary(BinaryOp op, Scalar type, __int128 lhs, __int128 rhs);
/// The six comparisons; null for other operations.
template <typename Number> std::optional<bool> compare(BinaryOp op, Number lhs, Number rhs) {
  switch (op) {
  case BinaryOp::Eq: return lhs == rhs;
  case BinaryOp::Ne: return lhs != rhs;
  case BinaryOp::Lt: return lhs < rhs;
  case BinaryOp::Le: return lhs <= rhs;
  case BinaryOp::Gt: return lhs > rhs;
  case BinaryOp::Ge: return lhs >= rhs;
  default: return std::nullopt;
  }
}
/// Built-in functions of integers, wrapped to the type; null for others.
std::optional<__int128> integerBuiltin(Builtin builtin, Scalar type, std::span<const __int128> args);

}  // namespace vortex::lang
