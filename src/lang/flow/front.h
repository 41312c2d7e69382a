// The front end as a whole: types a program, then checks it on its graphs.
#pragma once

#include "lang/flow/race/policy.h"
#include "lang/flow/race/races.h"
#include "lang/sema/analyze.h"

namespace vortex::lang::flow {

struct CheckOptions {
  RacePolicy races = RacePolicy::Report;
};

/// As lang::analyze; then each kernel is checked, if it has no errors so far. Never null.
std::unique_ptr<Program> analyze(source::FileId root, source::SourceManager& sources, diag::DiagnosticSink& sink,
                                 const AnalyzeOptions& options = {}, const CheckOptions& checks = {});

/// Blocks and grids that the kernel is launched with: its own, else those of launches in the program.
LaunchShapes launchShapes(const Function& kernel, const Program& program);

}  // namespace vortex::lang::flow
