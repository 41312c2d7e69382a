// What a traced value is: its element type, its extents, and whether some lanes of it may be invalid.
#pragma once

#include "lang/sema/types.h"
#include "metile/trace.h"

#include <optional>

namespace vortex::metile {

/// Ordered as they win over each other. Index: integers that were not loaded or cast, computed in 64 bits. The literals are weak: they take
/// the other side's type, but a float literal makes integers f32.
enum class Dtype : uint8_t { Unknown, IntLiteral, Bool, Index, U8, I32, U32, FloatLiteral, F16, BF16, F32 };

std::optional<Dtype> dtypeNamed(std::string_view name);
lang::Scalar scalarOf(Dtype dtype);
bool isFloat(Dtype dtype);
/// An operation that gives floats whatever it is given, `exp` for example.
bool isFloatFunction(std::string_view name);
/// The type in which two operands meet.
Dtype promote(Dtype a, Dtype b);

struct Kind {
  Dtype dtype = Dtype::Unknown;
  int64_t rows = 0, columns = 0;  ///< of a 2-D tile; 0: one value per thread
  bool mayBeInvalid = false;
  bool operator==(const Kind&) const = default;
  bool isTile() const { return rows != 0; }
  Kind transposed() const { return {dtype, columns, rows, mayBeInvalid}; }
};

/// Kinds of all values by id: loops are followed until what they carry no longer changes.
std::vector<Kind> inferKinds(const Trace& trace);
Kind kindOf(const Operand& operand, const std::vector<Kind>& kinds);
/// Which lanes of a block may do something else than the others, or do it more often.
enum class Variation : uint8_t { None, OfSimdgroups, OfLanes };
/// By the index of the operation.
std::vector<Variation> variationOf(const Trace& trace);

}  // namespace vortex::metile
