#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/random_kernel.h"

#include <filesystem>

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;

/// Its functions as written have whole ones too.
size_t verifyKernelsOf(const std::filesystem::path& path) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  auto file = sources.addFile(path.string());
  if (!file)
    return 0;
  AnalyzeOptions options;
  options.importPaths = {"std"};
  const auto program = flow::analyze(*file, sources, sink, options);
  if (sink.hasErrors())
    return 0;
  for (const auto& function : program->functions)
    if (!function->inKernel && function->body) {
      const Graph graph =
          lowerWritten(*function, [](const Function& callee) { return Summary(callee.params.size(), true); });
      EXPECT_EQ(verify(graph), "") << path << "\n" << dump(graph, sources);
    }
  for (const Function* kernel : program->kernels) {
    const Graph graph = lowerKernel(*kernel);
    EXPECT_EQ(verify(graph), "") << path << "\n" << dump(graph, sources);
    EXPECT_LE(graph.stepCount(), 10'000u) << path << " " << kernel->name;
  }
  return program->kernels.size();
}

TEST(Graph, EveryKernelOfTheRepositoryHasAWholeOne) {
  size_t kernels = 0;
  for (const char* folder : {"examples", "std", "tests/language", "tests/soundness"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
      if (file.path().extension() == ".vx")
        kernels += verifyKernelsOf(file.path());
  EXPECT_GT(kernels, 80u);
}

TEST(Graph, RandomKernelsHaveAWholeOne) {
  for (uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    const testing::RandomKernel kernel = testing::randomKernel(seed);
    GraphOf made(kernel.text);
    EXPECT_GT(made.graph.stepCount(), 3u) << kernel.text;
  }
}

TEST(Graph, ViewsAndReferencesAreFollowedToTheirTensor) {
  GraphOf made(R"(
fn add(v: &mut Tensor<f32, [N]>, i: usize) { v[i + 1] += 1.0 }
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<f32, [256]>) {
  let half = &mut x[64..128]
  add(half, thread.local_id)
})");
  const Graph& graph = made.graph;
  const Place& place = graph[graph[made.first(StepKind::Store)].place];
  ASSERT_EQ(place.path.size(), 2u) << made.dump();
  EXPECT_EQ(graph[place.root].variable->name, "x");
  EXPECT_EQ(place.storage, Storage::Global);
  const ValueId expected = [&] {
    NodeTable& values = made.graph.values;
    const ValueId local = values.position(PositionKind::ThreadLocalId);
    return values.op(Op::Add, kUsize, values.constant(kUsize, 64),
                     values.op(Op::Add, kUsize, local, values.constant(kUsize, 1)));
  }();
  EXPECT_EQ(place.dims[0].begin, expected) << made.dump();
  EXPECT_EQ(graph[graph[made.first(StepKind::Store)].frame].callee, "add");
}

TEST(Graph, WhatALoopComputesIsReadBehindItThroughAPhiAtItsExit) {
  GraphOf made(R"(
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<u32, [32]>, n: u32) {
  var at = 0u32
  while at < n { at += 3 }
  x[thread.local_id] = at
})");
  const Graph& graph = made.graph;
  const ValueId stored = graph[made.first(StepKind::Store)].value;
  ASSERT_EQ(graph.values[stored].kind, NodeKind::Phi) << made.dump();
  EXPECT_EQ(graph.values.phiBlock(stored), graph.loops[0].exits[0]);
  EXPECT_EQ(graph[graph.values.phiBlock(stored)].loop, kNoLoop);
}

TEST(Graph, AVariableAssignedOnlyOnTheWayOutHasNoPhiAtTheHeader) {
  GraphOf made(R"(
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<u32, [32]>, n: u32) {
  var found = 7u32
  for i in 0..n { if x[thread.local_id] == i { found = i; break } }
  x[thread.local_id] = found
})");
  EXPECT_EQ(made.graph[made.graph.loops[0].header].phis.size(), 1u) << made.dump();
}

TEST(Graph, AReturnInsideTwoLoopsLeavesThemOneByOne) {
  GraphOf made(R"(
fn search(x: &Tensor<u32, [N]>, n: u32) -> u32 {
  for i in 0..n { for j in 0..i { if x[j as usize] == i { return j } } }
  return 99
}
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<u32, [32]>, n: u32) { x[thread.local_id] = search(x, n) })");
  EXPECT_EQ(made.graph.loops[1].exits.size(), 2u) << made.dump();
  EXPECT_EQ(made.graph.loops[0].exits.size(), 2u);
}

TEST(Graph, BothOperandsOfAConditionAreBranches) {
  GraphOf made(R"(
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<u32, [32]>, n: u32) {
  let t = thread.local_id
  if n > 3 && x[t] < n { x[t] = 1 }
})");
  size_t branches = 0;
  for (uint32_t i = 0; i < made.graph.stepCount(); ++i)
    branches += made.graph[StepId{i}].kind == StepKind::Branch;
  EXPECT_EQ(branches, 2u) << made.dump();
}

TEST(Graph, AVariableLentToACallStaysAValue) {
  GraphOf made(R"(
fn next(state: &mut u32, rounds: u32) -> u32 {
  for i in 0u32..rounds { *state ^= *state << 13 }
  return *state
}
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<u32, [32]>, n: u32) {
  var state = n
  for i in 0..4 { x[thread.local_id] += next(&mut state, n) }
})");
  for (uint32_t i = 0; i < made.graph.stepCount(); ++i)
    for (const Access& access : made.graph.accessesOf(made.graph[StepId{i}]))
      EXPECT_EQ(made.graph[access.place].storage, Storage::Global) << made.dump();
}

}  // namespace
}  // namespace vortex::lang::flow
