// Which control flow around whole tensors the launch runs, and what it computes for it. Inside the folder.
#pragma once

#include "passes/plan/axes.h"
#include "passes/plan/launch_control.h"
#include "passes/spread_loops.h"
#include "size/bounds.h"

namespace vortex::passes {

/// On control flow that blocks may have no room for and that the launch cannot run: why, for the back end's error.
inline constexpr llvm::StringLiteral kStaysAttribute = "vx.stays_in_block";

/// A loop or branch of the kernel that becomes a step.
struct LaunchControl {
  llvm::SmallVector<mlir::Value>
      read;  ///< bounds or a condition that only phases know, each a let before those of the round
  llvm::SmallVector<unsigned> lets;  ///< carried values that the launch computes, by number; the others are temporaries
  std::optional<ir::LaunchBuilder::Round> round;  ///< of a loop
  ir::SizeAttr condition;                         ///< of a branch
  std::optional<SpreadLoops> spread{};            ///< no control of the launch, but a phase
  /// Of a loop: phases compute in every round whether it goes on. The first let of the round says so.
  bool asks = false;
};

class LaunchPlaces {
public:
  LaunchPlaces(ir::KernelOp kernel, const TensorSchedule& schedule) : schedule_(schedule), axes_(kernel) {}

  /// What is carried through control flow, of each kind: initial values, arguments of the body, yields and results correspond.
  struct Carried {
    mlir::ValueRange initial, arguments, yields, results;
  };
  static Carried carriedBy(mlir::Operation* op);
  /// The block that is one round of a loop.
  static mlir::Block* bodyOf(mlir::Operation* loop);
  /// Nothing: its ends are not known before the launch.
  static std::optional<size::Bounds> counterBounds(mlir::scf::ForOp loop, SizeLeaf leaf = nullptr);

  /// Nothing: it stays in a piece. `firstLet`: the number of the argument that its first let is going to be.
  std::optional<LaunchControl> plan(mlir::Operation* op, unsigned firstLet) const;

private:
  bool fitsBlock(mlir::Value tile, const AxisSet& whole) const;
  bool fitsBlock(mlir::Operation* op) const;
  bool hasKnownExtents(mlir::Operation* op) const;
  std::optional<LaunchControl> planSpread(mlir::Operation* op) const;
  bool holdsWhatDoesNotFit(mlir::Operation* op) const;
  static bool holdsStoredValues(mlir::Operation* op);
  bool isAroundSpreadLoops(mlir::Operation* op) const;
  std::optional<LaunchControl> planLoop(mlir::Operation* op, unsigned firstLet) const;

  const TensorSchedule& schedule_;
  Axes axes_;
};

}  // namespace vortex::passes
