// Threads of one small launch, walked one after the other over the graph with machine integers. What memory holds is not known: a thread ends where
// it would branch on it, and an access whose element depends on it is left out. Two accesses that meet are therefore a race of every such launch.
#pragma once

#include <map>

#include "lang/flow/graph/graph.h"
#include "lang/flow/race/launches.h"

namespace vortex::lang::flow {

/// Two threads that touch one element with nothing between that orders them.
struct Meeting {
  StepId first = kNoStep, second = kNoStep;  ///< in the order of their numbers
  bool firstWrites = false, secondWrites = false;
  std::array<int64_t, 3> firstThread{}, secondThread{}, firstBlock{}, secondBlock{};
  bool acrossBlocks = false, isOfCopy = false;
  std::string element;  ///< "`t[4]`"
  std::string sizes;    ///< "with N = 64"; may be empty
  SampleLaunch launch;
};

/// By the two steps, the first one found.
using Meetings = std::map<std::pair<StepId, StepId>, Meeting>;

/// Adds what meets in the launch. `wanted`: by step, whose accesses are looked at. `budget`: steps that all walks together may take; a walk ends when
/// it is used up.
void walkLaunch(const Graph& graph, const SampleLaunch& launch, const std::vector<bool>& wanted, uint64_t& budget,
                Meetings& meetings);

/// The same of iterations of a loop with a counter, in a kernel that one thread walks: what two of them touch between one entry of the loop and the
/// next. Numbers of threads are those of the counter.
void walkIterations(const Graph& graph, const SampleLaunch& launch, LoopId loop, uint64_t& budget, Meetings& meetings);

/// By step: an access that a walk of such a launch, whatever its numbers are, may come to, and of which it may know the element.
std::vector<bool> toldSteps(const Graph& graph, const SampleLaunch& launch);

bool isAtomicLoad(const Step& step);
/// The scope of an atomic access covers the threads of one block only.
bool isOfBlockScope(const Step& step);

}  // namespace vortex::lang::flow
