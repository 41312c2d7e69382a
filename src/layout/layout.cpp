#include "layout/layout.h"

#include "base/check.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace vortex::layout {

namespace {
constexpr std::array<In, kInputs> kAllInputs = {In::Register, In::Lane, In::Warp, In::Block, In::Offset};
}

Bits& Index::operator[](In in) {
  switch (in) {
  case In::Register: return reg;
  case In::Lane: return lane;
  case In::Warp: return warp;
  case In::Block: return block;
  case In::Offset: return offset;
  }
  VORTEX_UNREACHABLE();
}

Bits Index::operator[](In in) const { return const_cast<Index&>(*this)[in]; }

Layout::Layout(std::vector<unsigned> bits) : bits_(std::move(bits)) { VORTEX_CHECK(totalBits() <= 64); }

unsigned Layout::totalBits() const { return std::accumulate(bits_.begin(), bits_.end(), 0u); }

unsigned Layout::shiftOf(unsigned dim) const { return std::accumulate(bits_.begin() + dim + 1, bits_.end(), 0u); }

Layout& Layout::unit(In in, unsigned dim, unsigned count, unsigned from) {
  VORTEX_CHECK(dim < rank() && from + count <= bits_[dim], "%u bits from %u exceed dimension %u", count, from, dim);
  for (unsigned i = 0; i < count; ++i)
    columns_[static_cast<size_t>(in)].push_back(Bits(1) << (shiftOf(dim) + from + i));
  return *this;
}

Layout& Layout::base(In in, std::span<const Bits> coordinate) {
  columns_[static_cast<size_t>(in)].push_back(flat(coordinate));
  return *this;
}

Layout& Layout::repeat(In in, unsigned count) {
  columns_[static_cast<size_t>(in)].insert(columns_[static_cast<size_t>(in)].end(), count, Bits(0));
  return *this;
}

Columns Layout::allColumns() const {
  Columns all;
  for (const Columns& some : columns_)
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

Bits Layout::flat(std::span<const Bits> coordinate) const {
  VORTEX_CHECK(coordinate.size() == bits_.size());
  Bits result = 0;
  for (size_t dim = 0; dim < bits_.size(); ++dim) {
    VORTEX_CHECK(bits_[dim] == 64 || coordinate[dim] >> bits_[dim] == 0, "coordinate outside dimension %zu", dim);
    result = bits_[dim] == 64 ? coordinate[dim] : (result << bits_[dim]) | coordinate[dim];
  }
  return result;
}

std::vector<Bits> Layout::unflat(Bits flat) const {
  std::vector<Bits> result(bits_.size());
  for (size_t dim = bits_.size(); dim-- > 0;) {
    result[dim] = bits_[dim] == 64 ? flat : flat & ((Bits(1) << bits_[dim]) - 1);
    flat = bits_[dim] == 64 ? 0 : flat >> bits_[dim];
  }
  return result;
}

Bits Layout::applyFlat(const Index& index) const {
  Bits result = 0;
  for (In in : kAllInputs)
    result ^= applyColumns(columns(in), index[in]);
  return result;
}

bool Layout::isInjective() const {
  Columns all = allColumns();
  return layout::rank(all) == all.size();
}

std::vector<Index> Layout::inverse() const {
  VORTEX_CHECK(isSurjective(), "only a surjective layout has an inverse: %s", str().c_str());
  Span span;
  std::vector<std::pair<In, unsigned>> given;
  for (In in : kAllInputs)
    for (unsigned bit = 0; bit < inBits(in); ++bit) {
      // Only vectors that add something are given, so that the combinations use no copies.
      if (span.contains(columns(in)[bit]))
        continue;
      span.insert(columns(in)[bit]);
      given.emplace_back(in, bit);
    }
  std::vector<Index> result;
  for (unsigned bit = 0; bit < totalBits(); ++bit) {
    Bits made = *span.combination(Bits(1) << bit);
    Index index;
    for (; made != 0; made &= made - 1) {
      auto [in, inBit] = given[static_cast<size_t>(std::countr_zero(made))];
      index[in] ^= Bits(1) << inBit;
    }
    result.push_back(index);
  }
  return result;
}

namespace {
Index combine(std::span<const Index> columns, Bits input) {
  Index result;
  for (; input != 0; input &= input - 1) {
    const Index& column = columns[static_cast<size_t>(std::countr_zero(input))];
    for (In in : kAllInputs)
      result[in] ^= column[in];
  }
  return result;
}
}  // namespace

Index Layout::findFlat(Bits flat) const { return combine(inverse(), flat); }

Index Layout::find(std::span<const Bits> coordinate) const { return findFlat(flat(coordinate)); }

Layout product(const Layout& inner, const Layout& outer) {
  VORTEX_CHECK(inner.rank() == outer.rank());
  Layout result(inner.rank());
  for (unsigned dim = 0; dim < inner.rank(); ++dim)
    result.bits_[dim] = inner.bits_[dim] + outer.bits_[dim];
  for (In in : kAllInputs) {
    for (Bits column : inner.columns(in))
      result.base(in, inner.unflat(column));
    for (Bits column : outer.columns(in)) {
      auto coordinate = outer.unflat(column);
      for (unsigned dim = 0; dim < inner.rank(); ++dim)
        coordinate[dim] = inner.bits_[dim] == 64 ? 0 : coordinate[dim] << inner.bits_[dim];
      result.base(in, coordinate);
    }
  }
  return result;
}

std::optional<Layout> quotient(const Layout& layout, const Layout& inner) {
  if (layout.rank() != inner.rank())
    return std::nullopt;
  Layout result(layout.rank());
  for (unsigned dim = 0; dim < layout.rank(); ++dim) {
    if (layout.bits_[dim] < inner.bits_[dim])
      return std::nullopt;
    result.bits_[dim] = layout.bits_[dim] - inner.bits_[dim];
  }
  for (In in : kAllInputs) {
    if (layout.inBits(in) < inner.inBits(in))
      return std::nullopt;
    for (unsigned bit = 0; bit < layout.inBits(in); ++bit) {
      auto coordinate = layout.unflat(layout.columns(in)[bit]);
      if (bit < inner.inBits(in)) {
        if (coordinate != inner.unflat(inner.columns(in)[bit]))
          return std::nullopt;
        continue;
      }
      for (unsigned dim = 0; dim < layout.rank(); ++dim) {
        if (std::countr_zero(coordinate[dim]) < static_cast<int>(inner.bits_[dim]) && coordinate[dim] != 0)
          return std::nullopt;
        coordinate[dim] = inner.bits_[dim] == 64 ? 0 : coordinate[dim] >> inner.bits_[dim];
      }
      result.base(in, coordinate);
    }
  }
  return result;
}

Layout transpose(const Layout& layout, std::span<const unsigned> permutation) {
  VORTEX_CHECK(permutation.size() == layout.rank());
  Layout result(layout.rank());
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    result.bits_[dim] = layout.bits_[permutation[dim]];
  for (In in : kAllInputs)
    for (Bits column : layout.columns(in)) {
      auto from = layout.unflat(column);
      std::vector<Bits> to(from.size());
      for (unsigned dim = 0; dim < layout.rank(); ++dim)
        to[dim] = from[permutation[dim]];
      result.base(in, to);
    }
  return result;
}

std::string Layout::str() const {
  static constexpr const char* kNames[kInputs] = {"register", "lane", "warp", "block", "offset"};
  std::string result;
  for (In in : kAllInputs) {
    if (columns(in).empty())
      continue;
    result += (result.empty() ? "" : "; ") + std::string(kNames[static_cast<size_t>(in)]) + ":";
    for (Bits column : columns(in)) {
      std::string text;
      for (Bits coordinate : unflat(column))
        text += (text.empty() ? "" : ",") + std::to_string(coordinate);
      result += " (" + text + ")";
    }
  }
  return result;
}

Index Transfer::apply(const Index& index) const {
  Index result;
  for (In in : kAllInputs) {
    Index part = combine(columns[static_cast<size_t>(in)], index[in]);
    for (In out : kAllInputs)
      result[out] ^= part[out];
  }
  return result;
}

Transfer compose(const Layout& to, const Layout& from) {
  VORTEX_CHECK(to.dims() == from.dims(), "layouts of different tensors");
  std::vector<Index> inverse = to.inverse();
  Transfer result;
  for (In in : kAllInputs)
    for (Bits column : from.columns(in))
      result.columns[static_cast<size_t>(in)].push_back(combine(inverse, column));
  return result;
}

}  // namespace vortex::layout
