// Which reductions of a whole-tensor kernel can be computed in one pass over the axis they share.
#pragma once

#include "passes/plan/axes.h"

#include <string>
#include <variant>

namespace vortex::passes {

/// Reductions and products along one axis `t`, which is the last dimension of the scores:
///   1. every exponential is exp(scores - maximum), and sums and products are linear in them; factors that vary along t depend on none of
///      these results, and those of products that depend on them are constant along t;
///   2. the scores are elementwise over one product that contracts another axis, loads, iota and constants; no other root reads a tile with t;
///   3. nothing is `@strict`: sums are formed in another order, and weights are rounded before they are divided.
struct Stream {
  ir::ReduceOp maximum;
  mlir::Value scores;
  unsigned dim = 0;  ///< of t in the scores
  Axis axis{};
  bool isBase2 = false;
  llvm::SmallVector<mlir::Operation*> exponentials;  ///< all the same value
  llvm::SmallVector<ir::ReduceOp> sums;
  llvm::SmallVector<ir::DotOp> dots;
  /// Where the loop can stand: the last root of all.
  mlir::Operation* last = nullptr;
};

/// What a value linear in the exponentials is multiplied by.
struct Linear {
  /// From the operation nearest to the exponential on; each has one operand (`through`) that is linear.
  struct Step {
    mlir::Operation* op;
    unsigned through;
    bool isOutside;  ///< constant along t: applied after the sum
  };
  llvm::SmallVector<Step> steps;
};

/// What a repeated value repeats: broadcasts, and dimensions of extent 1 added and dropped.
mlir::Value withoutRepetition(mlir::Value value);

class StreamMatcher {
public:
  StreamMatcher(ir::KernelOp kernel, const Axes& axes);

  /// The stream of this maximum, or why there is none ("": nothing resembles one).
  std::variant<Stream, std::string> match(ir::ReduceOp maximum);
  /// `isProduct`: factors that are constant along t are outside. Nothing: not linear.
  std::optional<Linear> linear(const Stream& stream, mlir::Value value, bool isProduct) const;
  /// Constant along the last dimension in a way that can be written for another last dimension.
  static bool isRowwise(mlir::Value value);
  bool hasAxis(mlir::Value value, Axis axis) const { return llvm::is_contained(axes_.of(value), axis); }
  /// Whether `value` is computed from one of `sources`.
  static bool dependsOn(mlir::Value value, const llvm::DenseSet<mlir::Value>& sources);

private:
  std::string findExponentials(Stream& stream);
  std::string findRoots(Stream& stream);
  std::string checkScores(const Stream& stream);
  std::string checkLinear(const Stream& stream);
  std::string checkOrder(Stream& stream);
  /// "" if a piece of `value` along the axis can be computed alone; counts products in it.
  std::string checkPiece(mlir::Value value, Axis axis, unsigned& products);
  bool isRepeatedMaximum(const Stream& stream, mlir::Value value) const;
  llvm::DenseSet<mlir::Value> results(const Stream& stream) const;

  ir::KernelOp kernel_;
  const Axes& axes_;
  llvm::DenseSet<mlir::Value> written_;  ///< views
};

}  // namespace vortex::passes
