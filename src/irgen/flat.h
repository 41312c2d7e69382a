// Values, places and variables while a body is generated.
#pragma once

#include "irgen/type_map.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <memory>

namespace vortex::irgen {

struct Place;

/// A value of the program as the SSA values its type flattens to (TypeMap::flatten). Tiles of narrow floats may still be in f32.
struct Flat {
  llvm::SmallVector<mlir::Value, 1> leaves;
  std::shared_ptr<Place> ref;  ///< references to anything but tensors: what they refer to
  /// Scalars inside the open thread region although the generator is at block level.
  bool inRegion = false;

  Flat() = default;
  Flat(mlir::Value value) : leaves{value} {}
};

/// An array element chosen at run time: `count` of them, their leaves `stride` apart.
struct Choice {
  mlir::Value index;
  uint64_t count = 0;
  uint32_t stride = 0;
};

/// Somewhere a value is read from or stored to: leaves of a variable, elements of memory, or a value.
struct Place {
  lang::Type type = nullptr;
  const lang::Variable* variable = nullptr;
  /// The element at `indices` of each of these: a tensor's planes, those of all tensors of an array with a run-time index.
  llvm::SmallVector<mlir::Value, 1> views;
  // Of the variable's leaves or of the views: leafCount from firstLeaf, moved by the run-time indices.
  uint32_t firstLeaf = 0, leafCount = 0;
  llvm::SmallVector<Choice, 1> choices;
  llvm::SmallVector<mlir::Value, 4> indices;
  mlir::Value mask;      ///< of stores and atomics: threads of the domain
  mlir::Value loadMask;  ///< null where the guard decides, also for surplus threads
  bool guarded = false;
  bool unchecked = false;   ///< `@unchecked(bounds)`
  bool isRaceFree = false;  ///< Expr::isRaceFree
  // … or a value that has no place of its own (a reference to a temporary).
  Flat value;
};

/// What a variable holds now. A null leaf was never assigned and reads as zero.
struct Slot {
  llvm::SmallVector<mlir::Value, 1> leaves;
  std::shared_ptr<Place> ref;
  bool inRegion = false;
};

using VariableSet = llvm::SetVector<const lang::Variable*>;

}  // namespace vortex::irgen
