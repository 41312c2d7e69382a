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

/// Somewhere a value is read from or stored to.
struct Place {
  lang::Type type = nullptr;
  // A range of leaves of a variable …
  const lang::Variable* variable = nullptr;
  uint32_t firstLeaf = 0, leafCount = 0;
  /// … of an array element chosen at run time: leaf groups of `leafCount` from firstLeaf, `arrayCount` of them.
  mlir::Value arrayIndex;
  uint64_t arrayCount = 0;
  // … or an element of memory.
  mlir::Value view;
  llvm::SmallVector<mlir::Value, 4> indices;
  mlir::Value mask;
  bool guarded = false;
  bool unchecked = false;  ///< `@unchecked(bounds)`
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
