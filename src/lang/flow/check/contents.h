// What the tensors of a kernel may hold at a point, for check/initialised.
#pragma once

#include <optional>
#include <vector>

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// A condition that held.
struct Guard {
  ValueId value = kNoValue;
  bool holds = true;
  bool operator==(const Guard&) const = default;
};

/// Of one tensor. Neither: no way gets here.
struct Content {
  bool isUnwritten = false, isWritten = false;
  std::vector<Guard> under = {};  ///< by value; what held on every way on which it is unwritten
  bool operator==(const Content&) const = default;

  void write() { *this = {.isWritten = true}; }
  /// It is unwritten only where the condition holds: nowhere, if the opposite is known. `condition` is resolved.
  void require(ValueId condition, bool holds);
  void remember(Guard guard);
  std::optional<bool> known(ValueId condition) const;
  void merge(const Content& other);
};

using Contents = std::vector<Content>;

/// Null: no way gets here.
void merge(std::optional<Contents>& into, const std::optional<Contents>& other);

/// Entries in Contents of which an access touches one, it is not known which: a write counts for all, a read for the best of them.
struct Part {
  std::vector<uint32_t> units;
  bool isShared = false;
};

/// Shared, local and tile variables that are declared without a value; none that copies are staged into as a whole. Every field of every tensor of
/// an array has an entry of its own.
class Tensors {
public:
  explicit Tensors(const Graph& graph);

  size_t count() const { return count_; }
  /// What an access of the place touches.
  const std::vector<Part>& touched(PlaceId place) const { return touched_[indexOf(place)]; }
  /// The entries of a local: `first` … `end` - 1.
  std::pair<uint32_t, uint32_t> of(LocalId local) const {
    const Units& units = units_[indexOf(local)];
    return {units.first, units.first + units.slots * units.leaves};
  }
  bool hasFields(LocalId local) const { return units_[indexOf(local)].leaves > 1; }
  uint32_t fieldOf(LocalId local, uint32_t unit) const {
    return (unit - units_[indexOf(local)].first) % units_[indexOf(local)].leaves;
  }

private:
  struct Units {
    uint32_t first = 0, slots = 0, leaves = 1;
    bool isShared = false;
  };
  void add(LocalId id);
  std::vector<Part> partsOf(const Place& place, LocalId root) const;

  const Graph& graph_;
  std::vector<Units> units_;                ///< by local
  std::vector<std::vector<Part>> touched_;  ///< by place
  uint32_t count_ = 0;
};

}  // namespace vortex::lang::flow
