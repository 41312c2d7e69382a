// Follows a kernel's per-thread code and writes down every access of an element of a tensor in shared, global or constant memory, with its place
// as a node of a graph over the lane, the warp's number and unknown uniform values.
#pragma once

#include "lang/sema/access/graph.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"
#include "layout/swizzle.h"

namespace vortex::lang::access {

/// A condition under which code runs.
struct Condition {
  NodeId node;  ///< 0 or 1
  bool sense;
  bool isBound;  ///< compares by order: holds for whole warps but the last ones
  const Expr* expr;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Access {
  const Expr* element = nullptr;
  const Variable* root = nullptr;  ///< who owns the storage
  Type tensor = nullptr;           ///< of the storage: space, layout, element
  NodeId offset = 0;               ///< in elements from the start of the storage, before any swizzle
  uint32_t firstLeaf = 0;          ///< of a struct's scalars (elementLayout), the ones that are accessed: from here on
  uint32_t leafCount = 1;
  std::vector<Condition> conditions;
  std::vector<std::pair<NodeId, Wide>> bounds;  ///< indices and constant extents: lanes outside do not take part
  std::vector<const Expr*> loops;               ///< enclosing ones, outermost first
  std::vector<SymbolId> counters;               ///< of these loops; ones without a plain counter are left out
  source::SourceRange verify;                   ///< of the `@verify_no_bank_conflicts` that covers it; invalid: none
  bool isQuiet = false;                         ///< `@unchecked(coalescing)`
};

/// Threads of a block per axis; nothing where only the launch knows.
using BlockShape = std::array<std::optional<int64_t>, 3>;

struct Trace {
  Graph graph;
  std::vector<Access> accesses;
  /// Whole tensors in shared memory that a verified statement reads or writes: by which threads, the compiler decides.
  std::vector<std::pair<source::SourceRange, const Expr*>> verifiedTiles;
  /// Every `@verify_no_bank_conflicts` of the kernel.
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> verified;
  std::vector<source::SourceRange> verifications;
  std::map<Type, layout::XorSwizzle> swizzles;  ///< of the types with a swizzle that were asked for
};

Trace traceKernel(const Function& kernel, const Roots& roots, const BlockShape& block);

}  // namespace vortex::lang::access
