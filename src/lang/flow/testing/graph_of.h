// The graph of a kernel from source text.
#pragma once

#include "lang/flow/graph/dump.h"
#include "lang/flow/graph/lower_function.h"
#include "lang/flow/graph/verify.h"
#include "lang/flow/testing/analyzed.h"

#include "gtest/gtest.h"

#include <algorithm>

namespace vortex::lang::flow::testing {

struct GraphOf {
  Analyzed analyzed;
  Graph graph;

  explicit GraphOf(std::string text) : analyzed(std::move(text)) {
    // Some graphs are of programs that read too early or never end.
    const bool isWanted = std::all_of(analyzed.sink.all().begin(), analyzed.sink.all().end(), [](const auto& each) {
      return each.severity != diag::Severity::Error || each.id == "E0525" || each.id == "E0455";
    });
    EXPECT_TRUE(isWanted) << analyzed.messages();
    if (!isWanted)
      return;
    graph = lowerKernel(*analyzed.program->kernels.front());
    EXPECT_EQ(verify(graph), "") << dump();
  }
  std::string dump() const { return flow::dump(graph, analyzed.sources); }
  /// The first step of the kind.
  StepId first(StepKind kind, size_t skipped = 0) const {
    for (uint32_t i = 0; i < graph.stepCount(); ++i)
      if (graph[StepId{i}].kind == kind && skipped-- == 0)
        return StepId{i};
    return kNoStep;
  }
};

}  // namespace vortex::lang::flow::testing
