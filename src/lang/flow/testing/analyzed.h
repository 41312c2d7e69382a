#pragma once

#include "lang/flow/front.h"
#include "lang/sema/testing/analyzed.h"

namespace vortex::lang::flow::testing {

/// A source text with what typing and the checks of kernels made of it, races aside.
struct Analyzed : lang::testing::Analyzed {
  explicit Analyzed(std::string source, const AnalyzeOptions& options = {}) {
    program = flow::analyze(sources.addText("test.vx", std::move(source)), sources, sink, options,
                            {.races = RacePolicy::Allow});
  }
};

/// Races are judged, too.
struct WithRaces : lang::testing::Analyzed {
  explicit WithRaces(std::string source) {
    program = flow::analyze(sources.addText("test.vx", std::move(source)), sources, sink, {}, {});
  }
};

}  // namespace vortex::lang::flow::testing
