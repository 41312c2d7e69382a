// Programs as the frontier engine's kernels (frontier.vx) take them.
#pragma once

#include "hvm/eval/term.h"
#include "hvm/syntax/program.h"

namespace vortex::hvm::frontier {

// Terms that exist only here; numbers as in words.vx.
inline constexpr uint32_t kDupNode = 6, kLink = 7;

/// Regions of 1 << shift words; region r belongs to block r % blocks.
struct Sharding {
  uint32_t blocks = 1;
  uint32_t shift = 12;

  uint64_t regionWords() const { return uint64_t(1) << shift; }
  Loc locationOf(uint64_t word, uint32_t block) const {
    return ((word >> shift) * blocks + block) << shift | (word & (regionWords() - 1));
  }
  uint32_t ownerOf(Loc loc) const { return static_cast<uint32_t>((loc >> shift) % blocks); }
};

struct Net {
  std::vector<Term> book;             // cells of all definitions; a SUB bit says: relative to the definition's first
  std::vector<uint64_t> definitions;  // of each: first word in `book`, number of words (0xffffffff: not defined), root
  std::vector<Term> heap;             // with the term to normalize in cell 0
  std::vector<uint64_t> next;         // by block: words in use
  bool forks = true;                  // operators may reduce both operands at once: nothing drops a value that waits
};

/// @main as it is, the definitions that it reaches as templates. Errors: a construct that the engine has no rules for, by name; regions too
/// small for a node or a definition.
Result<Net> buildNet(const Program& program, uint32_t definition, const Sharding& sharding);

/// As a .npy file.
Result<void> writeNumbers(const std::vector<uint64_t>& numbers, const std::string& path);

/// Writes the net for passes.vx: eight words (blocks, shift, entries of a block, cells, forks, and the sizes of the first three parts), then heap,
/// book, definitions and `next`, as a .npy file.
Result<void> writeNet(const Net& net, const Sharding& sharding, const std::string& path);

/// Fields of a term; those of matches on numbers include the literal.
uint32_t fieldsOf(Term term);

}  // namespace vortex::hvm::frontier
