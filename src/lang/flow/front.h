// The front end as a whole: types a program, then checks it on its graphs.
#pragma once

#include "lang/flow/race/policy.h"
#include "lang/flow/race/races.h"
#include "lang/sema/analyze.h"

namespace vortex::lang::flow {

/// What one check of one kernel took.
struct CheckTime {
  std::string kernel;
  std::string_view check;
  double milliseconds = 0;
  std::string counts;  ///< of races: pairs of accesses by what decided them
};

struct CheckOptions {
  RacePolicy races = RacePolicy::Report;
  std::vector<CheckTime>* times = nullptr;  ///< filled if given
};

/// As lang::analyze; then checks kernels, if there are no errors so far. Never null.
std::unique_ptr<Program> analyze(source::FileId root, source::SourceManager& sources, diag::DiagnosticSink& sink,
                                 const AnalyzeOptions& options = {}, const CheckOptions& checks = {});

/// Kernel analysis on a type-checked program, in place: inlines calls in kernels (recursion is an error), infers grids, finds who agrees on what and
/// which accesses are inside, and reports what is wrong; then, without errors so far, what the graphs say. Called by `analyze`.
void checkKernels(Program& program, diag::DiagnosticSink& sink, LaunchGrids launchGrids = LaunchGrids::OfProgram,
                  const CheckOptions& checks = {});

}  // namespace vortex::lang::flow
