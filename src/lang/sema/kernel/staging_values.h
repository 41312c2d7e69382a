#pragma once

#include "lang/sema/index_values.h"
#include "lang/sema/kernel/roots.h"

#include <map>
#include <optional>

namespace vortex::lang::staging {

/// A simulated run of a loop.
struct Run {
  const Expr* expr = nullptr;
  int64_t iteration = 0, trips = 0;
};

/// The integers a simulation of loops knows: constants, loop variables, indices of `.enumerate()`, and what is computed from them.
class Values {
public:
  Values(const Function& kernel, const Roots& roots) : roots_(roots), indices_(kernel, roots) {}

  /// Divisors up to this are followed; results of larger ones, and quotients, repeat too late.
  int64_t buffers = 1;
  std::vector<Run> runs;  ///< enclosing loops, outermost first

  std::optional<int64_t> valueOf(const Expr* expr, int depth = 0) const;
  /// Is `k + c * step < end` true: is there an iteration that far ahead in an enclosing run?
  std::optional<bool> truth(const Expr& condition) const;
  /// The exact number of iterations, where it is constant.
  std::optional<int64_t> tripCount(const Expr& over) const;
  /// The loop's variables choose among the tensors of an array.
  bool choosesBuffers(const Expr& loop, const Expr& body) const;
  void setIteration(const Expr& loop, int64_t iteration);
  void forget(const Variable* variable) { known_.erase(variable); }

private:
  std::optional<int64_t> distanceFrom(const Expr& expr, const Variable* variable) const;
  bool isSameLimit(const Expr& a, const Expr& b) const;
  bool mentions(const Expr& expr, const Variable* variable, int depth = 0) const;

  const Roots& roots_;
  mutable IndexValues indices_;  ///< remembers what it answers
  std::map<const Variable*, int64_t> known_;
};

}  // namespace vortex::lang::staging
