// Levels against a run: who gets to a step together, and who agrees on what it reads, is at least who the levels say.
#pragma once

#include "lang/flow/check/uniform.h"
#include "lang/flow/testing/thread_machine.h"

namespace vortex::lang::flow::testing {

/// What the levels claim too much of at a step that these threads of the machine do together; empty: nothing.
std::string excessOfLevels(const Graph& graph, const Uniformity& levels, ThreadMachine& machine, StepId step,
                           const std::vector<ThreadMachine::Thread*>& together);

}  // namespace vortex::lang::flow::testing
