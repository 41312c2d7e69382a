// Which locals that may hold borrows are used again.
#pragma once

#include "lang/sema/ownership/bits.h"
#include "lang/sema/ownership/flow.h"

namespace vortex::lang::ownership {

class Liveness {
public:
  explicit Liveness(const Graph& graph);

  /// For each statement of the block, what is live after it.
  std::vector<Bits> afterEach(uint32_t block) const;
  const Bits& atEntry(uint32_t block) const { return entry_[block]; }
  /// The first use of the local after the statement; an invalid range if it is not found.
  SourceRange nextUse(uint32_t block, size_t statement, LocalId local) const;

private:
  void step(const Statement& statement, Bits& live) const;
  bool uses(const Statement& statement, LocalId local) const;
  static bool defines(const Statement& statement, LocalId local);

  const Graph& graph_;
  std::vector<Bits> entry_;
};

}  // namespace vortex::lang::ownership
