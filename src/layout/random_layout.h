// Random layouts for property tests.
#pragma once

#include "layout/layout.h"

#include <algorithm>
#include <random>

namespace vortex::layout {

inline Columns randomBasis(std::mt19937_64& random, unsigned bits) {
  Columns result;
  Span span;
  while (result.size() < bits) {
    Bits vector = random() & ((Bits(1) << bits) - 1);
    if (!span.contains(vector)) {
      span.insert(vector);
      result.push_back(vector);
    }
  }
  return result;
}

/// A bijection from `registers` + `lanes` + `warps` bits to a tensor of two random extents; `simple`: images are unit vectors.
inline Layout randomLayout(std::mt19937_64& random, std::vector<unsigned> dims, unsigned registers, unsigned lanes,
                           bool simple) {
  Layout result(dims);
  unsigned bits = result.totalBits();
  Columns basis = randomBasis(random, bits);
  if (simple) {
    for (unsigned bit = 0; bit < bits; ++bit)
      basis[bit] = Bits(1) << bit;
    std::shuffle(basis.begin(), basis.end(), random);
  }
  for (unsigned bit = 0; bit < bits; ++bit)
    result.base(bit < registers           ? In::Register
                : bit < registers + lanes ? In::Lane
                                          : In::Warp,
                result.unflat(basis[bit]));
  return result;
}

}  // namespace vortex::layout
