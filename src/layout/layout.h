// Linear layouts: maps from index bits (which register, lane, warp, block; or which place in memory) to the bits of a tensor coordinate,
// linear over F2. Source: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2" (arXiv 2505.23819).
#pragma once

#include "layout/f2.h"

#include <array>
#include <initializer_list>
#include <string>

namespace vortex::layout {

/// Kinds of input. Memory layouts have only Offset: the element's place.
enum class In : uint8_t { Register, Lane, Warp, Block, Offset };
inline constexpr size_t kInputs = 5;

/// One number per kind of input.
struct Index {
  Bits reg = 0, lane = 0, warp = 0, block = 0, offset = 0;
  Bits& operator[](In in);
  Bits operator[](In in) const;
  friend bool operator==(const Index&, const Index&) = default;
};

class Layout {
public:
  /// The only place of a rank-`rank` tensor of one element.
  explicit Layout(unsigned rank = 0) : bits_(rank, 0) {}
  /// Log2 of the extents per dimension; no inputs yet.
  explicit Layout(std::vector<unsigned> bits);

  /// Bit i of `in` moves i-th along dimension `dim`: adds `count` unit vectors, starting at bit `from` of the dimension.
  Layout& unit(In in, unsigned dim, unsigned count, unsigned from = 0);
  /// Appends input bits whose images are given as coordinates.
  Layout& base(In in, std::span<const Bits> coordinate);
  Layout& base(In in, std::initializer_list<Bits> coordinate) { return base(in, std::span(coordinate)); }
  /// Appends input bits that change nothing: copies of the same element.
  Layout& repeat(In in, unsigned count);

  unsigned rank() const { return static_cast<unsigned>(bits_.size()); }
  unsigned dimBits(unsigned dim) const { return bits_[dim]; }
  const std::vector<unsigned>& dims() const { return bits_; }
  unsigned totalBits() const;
  unsigned inBits(In in) const { return static_cast<unsigned>(columns(in).size()); }
  /// Images of the bits of one input as flat vectors (see `flat`).
  const Columns& columns(In in) const { return columns_[static_cast<size_t>(in)]; }
  /// All inputs, in the order of In.
  Columns allColumns() const;

  /// Coordinates as one number: the last dimension in the lowest bits (row-major order of the padded tensor).
  Bits flat(std::span<const Bits> coordinate) const;
  std::vector<Bits> unflat(Bits flat) const;
  Bits applyFlat(const Index& index) const;
  std::vector<Bits> apply(const Index& index) const { return unflat(applyFlat(index)); }

  bool isSurjective() const { return layout::rank(allColumns()) == totalBits(); }
  bool isInjective() const;
  /// Where an element is: the least index by (offset, block, warp, lane, register) places chosen greedily; requires surjectivity.
  Index find(std::span<const Bits> coordinate) const;
  Index findFlat(Bits flat) const;
  /// Images, as indices, of the flat coordinate bits under a right inverse: apply(inverse) is the identity. Requires surjectivity.
  std::vector<Index> inverse() const;

  /// `this` after `inner`'s lower bits: inner repeated along each dimension and input; inner's bits are the low ones of both.
  friend Layout product(const Layout& inner, const Layout& outer);
  /// `outer` with product(inner, outer) == layout, if there is one.
  friend std::optional<Layout> quotient(const Layout& layout, const Layout& inner);
  /// Inputs of `inner`, then the dimension permutation: result dimension i is dimension permutation[i].
  friend Layout transpose(const Layout& layout, std::span<const unsigned> permutation);
  friend bool operator==(const Layout&, const Layout&) = default;

  /// "register: (0,1) (8,0); lane: …", for messages.
  std::string str() const;

private:
  unsigned shiftOf(unsigned dim) const;

  std::vector<unsigned> bits_;
  std::array<Columns, kInputs> columns_;
};

/// The map x ↦ to⁻¹(from(x)) on indices: which place of `to` holds what `from` has at x. Where `to` holds copies, the least place.
/// Both layouts cover the same tensor; `to` is surjective. Columns are indexed like `from`'s.
struct Transfer {
  std::array<std::vector<Index>, kInputs> columns;
  Index apply(const Index& index) const;
};
Transfer compose(const Layout& to, const Layout& from);

}  // namespace vortex::layout
