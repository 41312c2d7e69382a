// Two views share a byte if sum(c_k * x_k) = d has a solution with every x_k in its interval: x_k runs over an index of one
// view, c_k is the stride, one more variable of coefficient 1 stands for the bytes inside elements. The terms are tried from
// the largest coefficient down; the interval that the remaining terms can still reach leaves one or two values of x_k in
// views of a common array, so the search is a few steps. In general the problem is NP-hard, hence the work limit.
#include "runtime/hal/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace vortex::hal {

namespace {

using Wide = __int128;
constexpr int kWorkLimit = 20000;

struct Term {
  Wide coefficient;  ///< positive
  Wide low, high;    ///< the variable's interval
};

Wide floorDiv(Wide lhs, Wide rhs) { return lhs / rhs - (lhs % rhs != 0 && lhs < 0); }  // rhs > 0
Wide ceilDiv(Wide lhs, Wide rhs) { return lhs / rhs + (lhs % rhs != 0 && lhs > 0); }

class Search {
public:
  void add(Wide coefficient, Wide low, Wide high) {
    if (coefficient < 0) {
      coefficient = -coefficient;
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    if (coefficient == 0 || (low == 0 && high == 0))
      return;
    for (Term& term : terms_)
      if (term.coefficient == coefficient) {
        term.low += low;
        term.high += high;
        return;
      }
    terms_.push_back({coefficient, low, high});
  }

  /// True if a solution exists or the limit was reached.
  bool run(Wide target) {
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& lhs, const Term& rhs) { return lhs.coefficient > rhs.coefficient; });
    rest_.assign(terms_.size() + 1, {0, 0, 0});
    for (size_t k = terms_.size(); k-- > 0;)
      rest_[k] = {gcd(terms_[k].coefficient, rest_[k + 1].coefficient),
                  rest_[k + 1].low + terms_[k].coefficient * terms_[k].low,
                  rest_[k + 1].high + terms_[k].coefficient * terms_[k].high};
    work_ = kWorkLimit;
    return solve(0, target);
  }

private:
  static Wide gcd(Wide lhs, Wide rhs) {
    while (rhs != 0)
      lhs = std::exchange(rhs, lhs % rhs);
    return lhs;
  }

  bool solve(size_t k, Wide target) {
    if (--work_ < 0)
      return true;
    if (target < rest_[k].low || target > rest_[k].high)
      return false;
    if (k == terms_.size())
      return true;
    if (target % rest_[k].coefficient != 0)
      return false;
    const Term& term = terms_[k];
    const Wide first = std::max(term.low, ceilDiv(target - rest_[k + 1].high, term.coefficient));
    const Wide last = std::min(term.high, floorDiv(target - rest_[k + 1].low, term.coefficient));
    for (Wide x = first; x <= last; ++x)
      if (solve(k + 1, target - x * term.coefficient))
        return true;
    return false;
  }

  std::vector<Term> terms_;
  std::vector<Term> rest_;  ///< of the terms from k on: common divisor and reachable interval
  int work_ = 0;
};

struct Interval {
  Wide first, last;
};

bool isEmpty(const Footprint& view) {
  return std::find(view.extents.begin(), view.extents.end(), 0) != view.extents.end();
}

Interval bytesOf(const Footprint& view) {
  Interval bytes{view.address, Wide{view.address} + view.elementBytes - 1};
  for (size_t k = 0; k < view.extents.size(); ++k) {
    const Wide reach = Wide{view.byteStrides[k]} * (view.extents[k] - 1);
    (reach < 0 ? bytes.first : bytes.last) += reach;
  }
  return bytes;
}

}  // namespace

bool mayOverlap(const Footprint& lhs, const Footprint& rhs) {
  if (isEmpty(lhs) || isEmpty(rhs))
    return false;
  const Interval left = bytesOf(lhs), right = bytesOf(rhs);
  if (left.last < right.first || right.last < left.first)
    return false;
  Search search;
  for (size_t k = 0; k < lhs.extents.size(); ++k)
    search.add(lhs.byteStrides[k], 0, lhs.extents[k] - 1);
  for (size_t k = 0; k < rhs.extents.size(); ++k)
    search.add(rhs.byteStrides[k], -(Wide{rhs.extents[k]} - 1), 0);
  search.add(1, -(Wide{rhs.elementBytes} - 1), Wide{lhs.elementBytes} - 1);
  return search.run(Wide{rhs.address} - Wide{lhs.address});
}

bool mayOverlapItself(const Footprint& view) {
  if (isEmpty(view))
    return false;
  // Nested strides, the ordinary case: each dimension steps over everything that the smaller ones cover.
  std::vector<std::pair<Wide, Wide>> dims;  // stride, extent
  for (size_t k = 0; k < view.extents.size(); ++k)
    if (view.extents[k] > 1)
      dims.push_back(
          {view.byteStrides[k] < 0 ? -Wide{view.byteStrides[k]} : Wide{view.byteStrides[k]}, view.extents[k]});
  std::sort(dims.begin(), dims.end());
  Wide covered = view.elementBytes;
  bool nested = true;
  for (const auto& [stride, extent] : dims) {
    if (stride == 0)
      return true;
    nested &= stride >= covered;
    covered += stride * (extent - 1);
  }
  if (nested)
    return false;
  // Two different indices: some difference is at least 1 (the pair may be swapped, so its sign is free).
  for (size_t chosen = 0; chosen < dims.size(); ++chosen) {
    Search search;
    for (size_t k = 0; k < dims.size(); ++k)
      if (k != chosen)
        search.add(dims[k].first, -(dims[k].second - 1), dims[k].second - 1);
    search.add(1, -(Wide{view.elementBytes} - 1), Wide{view.elementBytes} - 1);
    // x in [1, extent - 1] becomes 1 + x' with x' in [0, extent - 2].
    search.add(dims[chosen].first, 0, dims[chosen].second - 2);
    if (search.run(-dims[chosen].first))
      return true;
  }
  return false;
}

}  // namespace vortex::hal
