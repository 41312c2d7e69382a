// Three passes over a row become two: the loop that finds a maximum also collects the sum of exponentials below it.
#pragma once

#include "metile/kinds.h"

#include <string>
#include <vector>

namespace vortex::metile {

/// A rewrite that was done, or the reason why it was not.
struct Remark {
  bool isDone = false;
  std::string message;
  source::SourceRange sum, maximum;  ///< the loops of the sum and of the maximum
};

/// Wherever one loop carries `m = maximum(m, x)`, and a later one beside it, over the same range, only sums exp(x - M) of the same values with a
/// bound M of every lane's m, the sums move into the first loop (base/maximum_sum.h has the algebra and its error). Pairs of loops in which a
/// sum of exponentials depends on a maximum, but not in this way, stay as they are and are told with the reason. Expects a pruned trace; the kinds become those of the rewritten one.
std::vector<Remark> collectSumsWithMaxima(Trace& trace, std::vector<Kind>& kinds);

}  // namespace vortex::metile
