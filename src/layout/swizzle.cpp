#include "layout/swizzle.h"

#include "base/check.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace vortex::layout {

LaneAccess accessOf(const Layout& registers, unsigned elements, unsigned elementBytes) {
  return {registers.columns(In::Lane), elements * elementBytes};
}

unsigned bankDegree(const LaneAccess& access, const XorSwizzle& swizzle, unsigned elementBytes) {
  Columns offsets;
  for (Bits lane : access.lanes)
    offsets.push_back(swizzle.apply(lane) * elementBytes);  // linear: a term that does not move is its own image
  return bankDegree(offsets, access.bytes);
}

SwizzleChoice solveXorSwizzle(unsigned rowBits, unsigned columnBits, unsigned vectorBits, unsigned elementBytes,
                              std::span<const LaneAccess> accesses) {
  SwizzleChoice best;
  unsigned bestSum = ~0u;
  auto consider = [&](const XorSwizzle& candidate) {
    std::vector<unsigned> degrees;
    for (const LaneAccess& access : accesses)
      degrees.push_back(bankDegree(access, candidate, elementBytes));
    unsigned sum = std::accumulate(degrees.begin(), degrees.end(), 0u);
    if (sum < bestSum) {
      bestSum = sum;
      best = {candidate, std::move(degrees)};
    }
  };
  consider({});
  for (unsigned maskBits = 1; maskBits + vectorBits <= columnBits && maskBits <= rowBits; ++maskBits)
    for (unsigned base = vectorBits; base + maskBits <= columnBits; ++base)
      for (unsigned shift = columnBits; shift + maskBits <= columnBits + rowBits; ++shift)
        consider({shift, (uint64_t(1) << maskBits) - 1, base});
  return best;
}

namespace {
/// Images of the lane bits of one phase of an access.
Columns phaseLanes(const Layout& layout, unsigned bytes) {
  unsigned lanes = bytes <= kBankBytes ? kWarpLanes : kWarpLanes * kBankBytes / bytes;
  Columns result = layout.columns(In::Lane);
  result.resize(std::min<size_t>(result.size(), static_cast<size_t>(std::countr_zero(lanes))));
  return result;
}

Columns joined(Columns a, std::span<const Bits> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
}  // namespace

SharedLayout solveSharedLayout(const Layout& a, const Layout& b, unsigned elementBytes) {
  VORTEX_CHECK(a.dims() == b.dims(), "layouts of different tensors");
  unsigned bits = a.totalBits();
  Columns vector = intersection(a.columns(In::Register), b.columns(In::Register));
  unsigned vectorBits = 0;
  while (vectorBits < vector.size() && (elementBytes << (vectorBits + 1)) <= 16)
    ++vectorBits;
  vector.resize(vectorBits);
  unsigned bytes = elementBytes << vectorBits;
  Columns free = commonComplement(joined(vector, phaseLanes(a, bytes)), joined(vector, phaseLanes(b, bytes)), bits);
  Columns bank = complement(joined(vector, free), bits);
  size_t wordBits = bytes < kBankBytes ? static_cast<size_t>(std::countr_zero(kBankBytes / bytes)) : 0;
  Columns word(free.begin(), free.begin() + static_cast<ptrdiff_t>(std::min(wordBits, free.size())));
  Columns rest(free.begin() + static_cast<ptrdiff_t>(word.size()), free.end());
  Layout memory(a.dims());
  for (const Columns* part : {&vector, &word, &bank, &rest})
    for (Bits column : *part)
      memory.base(In::Offset, memory.unflat(column));
  VORTEX_CHECK(memory.isInjective() && memory.isSurjective());
  return {std::move(memory), 1u << vectorBits};
}

}  // namespace vortex::layout
