// Memory that holds a tile, and the access of one vector of its elements.
#pragma once

#include "ir/root_view.h"
#include "target/cpu/emit/emitter.h"
#include "target/cpu/emit/lane.h"

namespace vortex::target::cpu::tiles {

using emit::Emitter;
using emit::Lane;
using emit::LaneMath;
using emit::TileBuffer;
using emit::Values;
using emit::View;

/// Which elements of a tile: one index per dimension (i64), `lanes` of them at once.
struct At {
  llvm::SmallVector<Lane> index;
  unsigned lanes = 1;
  llvm::Value* mask = nullptr;  ///< <lanes x i1>, lanes that exist; null: all. Never set when lanes == 1

  bool isUniform() const;
  bool operator==(const At& other) const;
};

/// Where the elements of a tile lie.
struct Place {
  View view;
  Values offsets;                ///< i64 per dimension; empty: zeros
  bool guarded = false;          ///< elements may lie outside the view: reads give `other`, writes nothing
  llvm::Value* other = nullptr;  ///< scalar in value form; null: zero
  bool padded = false;           ///< a cache line after the last element may be read
  const void* base = nullptr;    ///< equal for places that may overlap: the view's origin, or the buffer's pointer
  const void* window = nullptr;  ///< equal, with equal offsets, for places with the same elements at the same index
};

Place placeOf(Emitter& e, const TileBuffer& buffer);

using ir::rootView;

/// Every element is inside the view, for a tile with these extents; i1.
llvm::Value* emitIsInside(Emitter& e, const Place& place, llvm::ArrayRef<llvm::Value*> extents);

/// Elements in value form, a scalar when lanes == 1; lanes that do not exist give anything. `inside`: the place's guard is known to hold.
/// `condition`: i1 or <lanes x i1>, where it is false nothing is read and the value does not matter; null: true.
llvm::Value* loadElements(Emitter& e, const Place& place, const At& at, bool inside, llvm::Value* condition = nullptr);

/// `streamLanes` > 0: bypasses the caches; needs neighbouring elements, no mask and an address aligned to so many elements.
void storeElements(Emitter& e, const Place& place, const At& at, llvm::Value* value, bool inside,
                   unsigned streamLanes = 0);

/// Asks for the cache lines of neighbouring elements, which need not exist; does nothing for elements that are not neighbours.
/// `values[k]` has what stands k elements behind the places of `at`, which are as far apart as there are values: all of it lies together.
void storeTogether(Emitter& e, const Place& place, const At& at, llvm::ArrayRef<llvm::Value*> values);
void prefetchElements(Emitter& e, const Place& place, const At& at);

/// i < count for lanes i, <lanes x i1>.
llvm::Value* firstLanes(llvm::IRBuilder<>& ir, unsigned lanes, llvm::Value* count);

}  // namespace vortex::target::cpu::tiles
