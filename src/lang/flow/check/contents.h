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

/// The entries in Contents of a tensor, or of an array of them.
struct Units {
  uint32_t first = 0, count = 0;
  bool isShared = false;
};

/// Shared, local and tile variables that are declared without a value; none that copies are staged into.
class Tensors {
public:
  explicit Tensors(const Graph& graph);

  size_t count() const { return count_; }
  Units of(LocalId local) const { return units_[indexOf(local)]; }
  /// What an access of the place may touch.
  std::vector<Units> touched(const Place& place) const;

private:
  void add(LocalId id);

  const Graph& graph_;
  std::vector<Units> units_;  ///< by local
  uint32_t count_ = 0;
};

}  // namespace vortex::lang::flow
