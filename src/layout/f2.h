// Linear algebra over F2. A vector is 64 bits; a map is the list of its columns: the images of input bits 0, 1, 2, …
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vortex::layout {

using Bits = uint64_t;
using Columns = std::vector<Bits>;

/// XOR of the columns selected by the bits of `input`.
Bits applyColumns(std::span<const Bits> columns, Bits input);

/// A subspace that grows one vector at a time and remembers how each member is made of the vectors given to it.
class Span {
public:
  Span() = default;
  explicit Span(std::span<const Bits> vectors);

  /// False if the vector was a member already. At most 64 vectors may be given.
  bool insert(Bits vector);
  bool contains(Bits vector) const { return reduce(vector).rest == 0; }
  unsigned dim() const { return static_cast<unsigned>(rows_.size()); }
  /// Which of the inserted vectors (bit i: the i-th call of insert) XOR to `vector`; none if it is not a member.
  std::optional<Bits> combination(Bits vector) const;

private:
  struct Row {
    Bits vector, made;
  };
  struct Reduced {
    Bits rest, made;
  };
  Reduced reduce(Bits vector) const;

  std::vector<Row> rows_;  ///< distinct highest bits, largest first
  unsigned given_ = 0;
};

unsigned rank(std::span<const Bits> vectors);
/// A basis of the intersection of two spans.
Columns intersection(std::span<const Bits> a, std::span<const Bits> b);
/// Unit vectors of the first `bits` bits that complete `vectors` to a basis of the whole space.
Columns complement(std::span<const Bits> vectors, unsigned bits);
/// Vectors that complete both spans to the whole space of `bits` bits as far as their dimensions allow: a largest subspace that meets neither
/// span outside zero. It always has bits - max(dim a, dim b) dimensions. (arXiv 2505.23819: pair what a has and b lacks with what b has
/// and a lacks; each sum is in neither.)
Columns commonComplement(std::span<const Bits> a, std::span<const Bits> b, unsigned bits);

}  // namespace vortex::layout
