// Which f32 values reach memory only through a rounding to 16 bits or fewer, by ways that do not amplify a relative error.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <mlir/IR/Value.h>

#include <optional>

namespace vortex::analysis {

struct NarrowUses {
  unsigned bits = 0;  ///< significant bits of the widest format that the value is rounded to: 11 for f16, 8 for bf16
  bool mayFlush =
      true;  ///< all are f16, and nothing on the way makes a value below 2^-126 matter: divisors, factors not known to be at most 1
};

/// Significant bits of a float format.
unsigned significantBits(mlir::Type element);

/// Answers are kept: one object per program, as long as that does not change.
class NarrowAnalysis {
public:
  /// Nothing: `value` (f32, a scalar or tile) may be seen with all its bits, unrounded or after an operation that cancels.
  std::optional<NarrowUses> usesOf(mlir::Value value);

private:
  std::optional<NarrowUses> usesBy(mlir::OpOperand& use);
  std::optional<NarrowUses> ofSum(mlir::Operation* add);

  llvm::DenseMap<mlir::Value, std::optional<NarrowUses>> known_;
};

}  // namespace vortex::analysis
