// Memory that holds a tile, and accesses of one element or a run of neighbours by one thread.
#pragma once

#include "target/gpu/lowering.h"

namespace vortex::target::gpu::tiles {

/// Index of the elements along one dimension: `base`, base + step, …
struct Index {
  Value base;
  int64_t step = 0;
  bool masked = false;  ///< exists only where the position's mask holds
};

/// Which elements of a tile this thread works on: `lanes` of them at once.
struct At {
  llvm::SmallVector<Index> index;
  unsigned lanes = 1;
  Value mask =
      {};  ///< i1; null: true. Where it is false nothing may be read at masked indices, and the value does not matter

  bool isUniform() const {
    return llvm::all_of(index, [](const Index& i) { return i.step == 0; });
  }
  bool isMasked() const {
    return llvm::any_of(index, [](const Index& i) { return i.masked; });
  }
  /// What has to hold for a read; null: nothing.
  Value condition() const { return isMasked() ? mask : Value(); }
  /// The position of one lane.
  At lane(Lowering& l, unsigned number) const;
  bool equals(Lowering& l, const At& other) const;
};

bool sameValue(Lowering& l, Value a, Value b);

/// Where the elements of a tile lie.
struct Place {
  View view;
  Values offsets;                ///< index per dimension; empty: zeros
  bool guarded = false;          ///< elements may lie outside the view: reads give `other`, writes nothing
  bool startsInside = true;      ///< guarded: no offset is negative
  Value other;                   ///< scalar; null: zero
  const void* base = nullptr;    ///< equal for places that may overlap
  const void* window = nullptr;  ///< equal, with equal offsets, for places with the same elements at the same index
  const void* key = nullptr;     ///< the access: one per load, store or buffer
  bool aligned = false;          ///< the runs that are asked for are aligned pieces of memory
};

/// Run-time facts that the wide version of a nest relies on: collected while it is emitted, checked before it runs.
class Requirements {
public:
  explicit Requirements(Lowering& l) : l_(l) {}
  /// Runs start where those of `reference` are aligned in each of its rows, not at multiples of their length (rows of any length): only places
  /// whose rows lie alike, at the same indices, are accessed in runs. `lanes`: elements of a run; `row`: indices of the row that is worked on.
  Requirements(Lowering& l, Place reference, unsigned lanes, const llvm::SmallVector<Index>& row)
      : l_(l), reference_(std::move(reference)), referenceLanes_(lanes), row_(&row) {}
  bool isPeeled() const { return reference_.has_value(); }
  /// Peeled: places of that tensor are accessed element by element.
  void apart(const void* base) { apart_.insert(base); }
  /// The lanes, neighbours along `dim`, are one aligned piece of memory. False when it is known not to be.
  bool wide(const Place& place, const At& at, unsigned dim);
  void inside(const Place& place, llvm::ArrayRef<Value> extents);
  void multiple(Value value, int64_t of);
  void positive(Value value);
  void equal(Value value, int64_t to);
  /// Emits their conjunction; null: always true. All values must dominate the insertion point.
  Value emit();

private:
  struct Wide {
    Place place;
    unsigned dim, lanes;
  };
  void require(Value& all, Value condition);
  void requireSamePhase(Value& all, const Wide& access);
  bool isInRow(const At& at, unsigned dim);
  Value isMultiple(Value value, int64_t of);

  Lowering& l_;
  std::optional<Place> reference_;
  unsigned referenceLanes_ = 1;
  const llvm::SmallVector<Index>* row_ = nullptr;
  llvm::DenseSet<const void*> apart_;
  std::vector<Wide> wide_;
  std::vector<std::pair<Place, Values>> inside_;
  llvm::SmallVector<std::pair<Value, int64_t>> multiples_;
  Values positive_;
  llvm::SmallVector<std::pair<Value, int64_t>> equals_;
};

/// Elements of the value's type: a scalar when lanes == 1, else a vector. `wide`: null in code that makes no assumptions; there runs are
/// accessed element by element.
Value loadElements(Lowering& l, const Place& place, const At& at, Requirements* wide);
void storeElements(Lowering& l, const Place& place, const At& at, Value value, Value mask, Requirements* wide,
                   bool streaming);

/// Unsigned comparison and choice of scalars or vectors by an i1; constants fold.
Value isLess(Lowering& l, Value x, Value y);
Value choose(Lowering& l, Value condition, Value x, Value y);
Value isEqual(Lowering& l, Value x, Value y);

mlir::Type valueType(mlir::Type element, unsigned lanes);
Value splat(Lowering& l, Value scalar, unsigned lanes);
Value extract(Lowering& l, Value vector, unsigned lane);
Value gather(Lowering& l, llvm::ArrayRef<Value> lanes);

}  // namespace vortex::target::gpu::tiles
