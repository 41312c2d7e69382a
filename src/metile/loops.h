// The loops of a trace, and which values of it are equal.
#pragma once

#include "metile/trace.h"

#include <map>
#include <string>
#include <vector>

namespace vortex::metile {

/// Indices of operations. `begin` is the operation `loop` or `draw`; those that carry variables stand directly before it, their `yield`
/// directly before `end`.
struct Loop {
  size_t carries = 0, begin = 0, yields = 0, end = 0;
  int32_t parent = -1;  ///< index of the loop around it
};

std::vector<Loop> loopsOf(const Trace& trace);

/// What a loop carries: the variable, its value before the loop and after an iteration.
struct Carried {
  int64_t id = 0;
  Operand initial, next;
};
std::vector<Carried> carriedBy(const Trace& trace, const Loop& loop);

/// Numbers of values by the operations that they come from: equal numbers are equal values. Loads are equal while nothing is stored to their
/// memory in between; variables of loops have another number after the loop than in it.
class ValueNumbers {
public:
  /// The counters of the two loops, which are ids, count as one value.
  ValueNumbers(const Trace& trace, const std::vector<Loop>& loops, int64_t counter, int64_t sameCounter);
  /// Of the result of an operation.
  int64_t ofResult(int64_t id) const { return numbers_[static_cast<size_t>(id)]; }
  /// The loops count from the same to the same by the same step.
  bool haveOneRange(const Loop& a, const Loop& b) const { return ranges_.at(a.begin) == ranges_.at(b.begin); }

private:
  std::string spelled(const Operand& operand) const;
  std::string spelled(const Op& op) const;
  void visit(const Op& op, size_t index);
  void forgetStoresIn(const Loop& loop);
  void stored(const Operand& memory) { ++versions_[key(memory)]; }
  static std::string key(const Operand& memory);

  const Trace& trace_;
  std::vector<int64_t> numbers_;
  std::map<std::string, int64_t> known_;
  std::map<std::string, int64_t> versions_;  ///< of memory: how often it was stored to
  std::map<size_t, std::string> ranges_;     ///< by the index of `loop`
  int64_t next_ = 0;
};

}  // namespace vortex::metile
