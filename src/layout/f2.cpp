#include "layout/f2.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace vortex::layout {

Bits applyColumns(std::span<const Bits> columns, Bits input) {
  VORTEX_CHECK(columns.size() == 64 || input >> columns.size() == 0, "input has more bits than the map");
  Bits result = 0;
  for (; input != 0; input &= input - 1)
    result ^= columns[static_cast<size_t>(std::countr_zero(input))];
  return result;
}

Span::Span(std::span<const Bits> vectors) {
  for (Bits vector : vectors)
    insert(vector);
}

Span::Reduced Span::reduce(Bits vector) const {
  Reduced state{vector, 0};
  for (const Row& row : rows_)
    if ((state.rest ^ row.vector) < state.rest)
      state = {state.rest ^ row.vector, state.made ^ row.made};
  return state;
}

bool Span::insert(Bits vector) {
  VORTEX_CHECK(given_ < 64, "too many vectors");
  Bits self = Bits(1) << given_++;
  Reduced reduced = reduce(vector);
  if (reduced.rest == 0)
    return false;
  Row row{reduced.rest, reduced.made ^ self};
  auto smaller = [&](const Row& other) { return other.vector < row.vector; };
  rows_.insert(std::find_if(rows_.begin(), rows_.end(), smaller), row);
  return true;
}

std::optional<Bits> Span::combination(Bits vector) const {
  Reduced reduced = reduce(vector);
  if (reduced.rest != 0)
    return std::nullopt;
  return reduced.made;
}

unsigned rank(std::span<const Bits> vectors) { return Span(vectors).dim(); }

Columns intersection(std::span<const Bits> a, std::span<const Bits> b) {
  // A dependence of the joined list is a member of a equal to a member of b.
  Span joined(a);
  Span independent;
  Columns result;
  for (Bits vector : b) {
    auto made = joined.combination(vector);
    joined.insert(vector);
    if (!made)
      continue;
    Bits member = applyColumns(a, *made & (a.size() == 64 ? ~Bits(0) : (Bits(1) << a.size()) - 1));
    if (independent.insert(member))
      result.push_back(member);
  }
  return result;
}

Columns complement(std::span<const Bits> vectors, unsigned bits) {
  Span all(vectors);
  Columns result;
  for (unsigned bit = 0; bit < bits; ++bit)
    if (all.insert(Bits(1) << bit))
      result.push_back(Bits(1) << bit);
  return result;
}

Columns commonComplement(std::span<const Bits> a, std::span<const Bits> b, unsigned bits) {
  Columns both = intersection(a, b);
  auto onlyIn = [&](std::span<const Bits> vectors) {
    Span span(both);
    Columns result;
    for (Bits vector : vectors)
      if (span.insert(vector))
        result.push_back(vector);
    return result;
  };
  Columns onlyA = onlyIn(a), onlyB = onlyIn(b), result;
  for (size_t i = 0; i < std::min(onlyA.size(), onlyB.size()); ++i)
    result.push_back(onlyA[i] ^ onlyB[i]);
  Columns joined(a.begin(), a.end());
  joined.insert(joined.end(), b.begin(), b.end());
  Columns outside = complement(joined, bits);
  result.insert(result.end(), outside.begin(), outside.end());
  return result;
}

}  // namespace vortex::layout
