// Races of a kernel, decided while compiling: every two accesses that no barrier orders are proven apart, or shown to meet in a launch (E0630), or
// stay unknown (W0631).
#pragma once

#include <map>
#include <set>

#include "diag/diagnostic.h"
#include "lang/flow/launch_shapes.h"
#include "lang/flow/race/deciders.h"
#include "lang/flow/race/policy.h"
#include "lang/flow/race/walk.h"

namespace vortex::lang::flow {

struct RaceVerdict {
  Decider decider = Decider::None;
  /// None: what stands in the way of a proof; an expression of the program, or null.
  const Expr* cause = nullptr;
  /// Witness. None: they meet in a launch with scalars that subscripts follow from, which callers may never give.
  std::optional<Meeting> meeting;
  LocalId counter = kNoLocal;       ///< Tickets
  uint32_t limits = 0;              ///< Launch: bits, by number
  bool isOpenAcrossBlocks = false;  ///< None, Witness: blocks are not proven apart
  bool areBlocksApart = false;      ///< proven of different blocks
};

struct RaceReport {
  /// By the steps of two accesses that no barrier orders.
  std::map<std::pair<StepId, StepId>, RaceVerdict> pairs;
  std::map<Decider, uint32_t> counts;
  bool isCut = false;  ///< there are too many pairs to ask for all
  std::map<LocalId, int64_t>
      mostThreads;  ///< by counter: what is proven by its tickets holds for launches of so many threads
  std::vector<LaunchLimit> limits;
  /// Numbers of blocks that launches may change, and without which less would be proven.
  struct GridLimit {
    LaunchLimit limit;
    bool isAcrossBlocks = false;  ///< only of pairs of different blocks
  };
  std::vector<GridLimit> gridLimits;
};

/// Of a kernel that is not a whole-tensor kernel. `graph` gains values.
RaceReport findRaces(Graph& graph, const Structure& structure, const LaunchShapes& shapes);

/// What must be so of a launch for what is proven to hold.
std::vector<LaunchLimit> launchLimits(const Graph& graph, const RaceReport& report);

/// Subscripts whose accesses were all proven free, in every launch that gives neither another block nor another grid than the program does.
std::set<const Expr*> raceFreeAccesses(const Graph& graph, const RaceReport& report);

/// What `@unchecked(races)` covers.
std::set<const Expr*> quietParts(const Graph& graph);

/// Reports what is found, a finding per pair of source places.
void reportRaces(const Graph& graph, const RaceReport& report, RacePolicy policy, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
