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
/// Worst degree of reading a row-major tile row by row and column by column.
/// Stops at `enough`.
unsigned tileDegree(uint64_t rows, uint64_t columns, unsigned bytes, const XorSwizzle& swizzle, unsigned enough) {
  const unsigned phase = bytes <= kBankBytes ? kWarpLanes : kWarpLanes * kBankBytes / bytes;
  unsigned worst = 1;
  auto access = [&](uint64_t first, uint64_t step, uint64_t count) {
    if (worst >= enough)
      return;
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < std::min<uint64_t>(count, phase); ++i)
      offsets.push_back(swizzle.apply(first + i * step) * bytes);
    worst = std::max(worst, countBanks(offsets, bytes).degree);
  };
  constexpr uint64_t kMostRows = 64, kMostColumns = 128;  // longer tiles repeat their pattern within these
  for (uint64_t row = 0; row < std::min(rows, kMostRows); ++row)
    for (uint64_t column = 0; column < std::min(columns, kMostColumns); column += phase)
      access(row * columns + column, 1, columns - column);
  for (uint64_t column = 0; column < std::min(columns, kMostColumns); ++column)
    for (uint64_t row = 0; row < std::min(rows, kMostRows); row += phase)
      access(row * columns + column, columns, rows - row);
  return worst;
}
}  // namespace

XorSwizzle solveTileSwizzle(std::span<const int64_t> shape, unsigned elementBytes) {
  if (shape.size() < 2)
    return {};
  uint64_t rows = 1, columns = static_cast<uint64_t>(shape.back());
  for (int64_t extent : shape.first(shape.size() - 1))
    rows *= static_cast<uint64_t>(extent);
  XorSwizzle best;
  unsigned least = tileDegree(rows, columns, elementBytes, best, ~0u);
  const auto offsetBits = static_cast<unsigned>(std::bit_width(rows * columns));
  constexpr unsigned kMostBits = 5;  // 32 banks
  for (unsigned bits = kMostBits; bits > 0 && least > 1; --bits)
    for (unsigned base = 0; base <= kMostBits && least > 1; ++base)
      for (unsigned shift = base + bits; shift < offsetBits && least > 1; ++shift) {
        const XorSwizzle candidate{shift, (uint64_t(1) << bits) - 1, base};
        if (unsigned degree = tileDegree(rows, columns, elementBytes, candidate, least); degree < least) {
          least = degree;
          best = candidate;
        }
      }
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
