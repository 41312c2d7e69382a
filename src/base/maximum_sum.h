// Sums of exponentials of differences to a maximum, collected while the maximum still grows.
//
// Softmax needs s = Σ exp(x - m) with m = max x: two passes over the data, since m is known after the first. A pair (m, s) of any bound m of
// the elements so far and their sum s = Σ exp(x - m) can be extended instead:
//   no elements         (m, 0) for any m
//   add x               h = max(m, x), (h, s·exp(m - h) + exp(x - h))
//   to a bound M >= m   (M, s·exp(m - M))
// In exact arithmetic the order of the elements does not matter, nor how they are shared between lanes. A rewrite of two passes into one may
// use it when
//   1. every summand is exp(x - M), of the same elements x whose maximum the first pass takes: then no x exceeds m;
//   2. M is a bound of every lane's m: s·exp(m - M) is at most the number of elements, while exp(x - M) of a smaller M may be finite where
//      exp(x - m) is 0;
//   3. everything is f32 or wider: each step rounds s.
// Against the sum in two passes the error grows by four roundings per element: |s' - s| <= 4·n·ε·s + n·(smallest normal number) for n
// elements of a lane.
//
// A chunk of elements at once keeps its scale in one number per chunk: with h = max(m, max x), (h, s·exp(m - h) + Σ exp(x - h)), where an h
// of -∞ counts as 0 in the differences (shift): elements of -∞ then add nothing. A product Σ exp(x - M)·v of each element with something is
// carried like the sum, and rescaled with it. The error: two roundings per chunk beside those of the chunk's own sum.
//
// Infinities: equal ones have the difference 0 here (exp(-∞ - -∞) would be NaN, and elements of -∞ come before larger ones). total() leaves
// that out, so that sums in which M itself is infinite are what two passes make of them: NaN.
#pragma once

#include <limits>

namespace vortex::base {

/// `Ops` computes: a type Value and sub, mul, add, exp, abs, neg, equal, less, select(condition, then, otherwise), number(double).
template <typename Ops> class MaximumSum {
public:
  using Value = typename Ops::Value;
  explicit MaximumSum(Ops& ops) : ops_(ops) {}

  /// The sum after x, for the maximum max(maximum, x). One exponential: either the sum or the summand keeps its scale.
  Value add(Value maximum, Value sum, Value x) {
    const Value one = ops_.number(1);
    const Value apart = ops_.exp(ops_.neg(ops_.abs(ops_.sub(x, maximum))));
    const Value scale = ops_.select(ops_.equal(x, maximum), one, apart);
    return ops_.select(ops_.less(maximum, x), ops_.add(ops_.mul(sum, scale), one), ops_.add(sum, scale));
  }
  /// exp(x - bound) of one element, or of a maximum that moves up to a bound.
  Value scale(Value x, Value bound) {
    return ops_.select(ops_.equal(x, bound), ops_.number(1), ops_.exp(ops_.sub(x, bound)));
  }
  /// Σ exp(x - bound) of all elements. Without elements 0, whatever the bound is.
  Value total(Value maximum, Value sum, Value bound) {
    const Value scaled = ops_.mul(sum, ops_.exp(ops_.sub(maximum, bound)));
    return ops_.select(ops_.equal(sum, ops_.number(0)), sum, scaled);
  }
  /// What elements and maxima are compared with in chunks, for a bound of them.
  Value shift(Value bound) {
    return ops_.select(ops_.equal(bound, ops_.number(-std::numeric_limits<double>::infinity())), ops_.number(0), bound);
  }
  /// exp(x - bound) in chunks, of an element or a maximum so far.
  Value shifted(Value x, Value shift) { return ops_.exp(ops_.sub(x, shift)); }
  /// Σ exp(x - maximum) of all chunks: NaN where two passes make that of an infinite maximum.
  Value closed(Value maximum, Value sum) { return ops_.add(sum, ops_.sub(maximum, maximum)); }

private:
  Ops& ops_;
};

}  // namespace vortex::base
