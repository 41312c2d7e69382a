#include "lang/flow/check/shared_bytes.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "lang/flow/solve/solve.h"
#include "lang/sema/byte_sizes.h"

namespace vortex::lang::flow {
namespace {

/// Forward: the tensors in shared memory that are in scope.
struct SharedScopes {
  using State = std::set<const Variable*>;
  static constexpr Direction kDirection = Direction::Forward;

  State start() const { return {}; }
  void step(StepId, const Step& step, State& state) const {
    if (step.kind != StepKind::Declare && step.kind != StepKind::End)
      return;
    const Local& local = graph[graph[step.place].root];
    if (!local.variable || local.storage != Storage::Shared)
      return;
    if (step.kind == StepKind::Declare)
      state.insert(local.variable);
    else
      state.erase(local.variable);
  }
  bool edge(BlockId, uint32_t, State&) const { return true; }
  void join(State& into, const State& other, bool) const { into.insert(other.begin(), other.end()); }

  const Graph& graph;
};

/// The tensors alive where they take most.
struct SharedPeak {
  std::set<const Variable*> tensors;
  base::WideBytes bytes = 0;
};

SharedPeak peakOf(const Graph& graph) {
  SharedPeak peak;
  solve(graph, SharedScopes{graph}, Contexts::plain(graph)).forEach([&](StepId, const auto& alive, Context) {
    base::WideBytes bytes = 0;
    for (const Variable* tensor : alive)
      bytes = base::addBytes(bytes, bytesOf(tensor->type));
    if (bytes > peak.bytes)
      peak = {alive, bytes};
  });
  return peak;
}

}  // namespace

void checkSharedBytes(const Graph& graph, uint64_t limit, const std::string& target, bool isAdvice,
                      diag::DiagnosticSink& sink) {
  const Function& kernel = *graph.function;
  const SharedPeak peak = peakOf(graph);
  if (peak.bytes <= limit || peak.tensors.empty())
    return;
  std::vector<const Variable*> tensors(peak.tensors.begin(), peak.tensors.end());
  std::sort(tensors.begin(), tensors.end(), [](const Variable* a, const Variable* b) {
    return std::pair(bytesOf(b->type), a->index) < std::pair(bytesOf(a->type), b->index);
  });
  const bool runsOnCpu = isAdvice && peak.bytes <= base::kMostSharedBytes;
  std::string message = base::concat("`", kernel.name, "` needs ", base::showBytes(peak.bytes),
                                     " bytes of shared memory, ", target, " has ", limit, " per block");
  if (isAdvice && !runsOnCpu)
    message += base::concat(" and the CPU ", base::kMostSharedBytes);
  auto builder = runsOnCpu ? sink.warning("W0552", tensors[0]->range, message + " and no GPU more")
                           : sink.error("E0552", tensors[0]->range, message);
  builder.primary(
      base::concat("`", tensors[0]->name, "` takes ", base::showBytes(bytesOf(tensors[0]->type)), " bytes"));
  for (size_t i = 1; i < tensors.size(); ++i)
    builder.label(tensors[i]->range, base::concat("`", tensors[i]->name, "` takes ",
                                                  base::showBytes(bytesOf(tensors[i]->type)), " bytes"));
  if (tensors.size() == 1)
    builder.label(kernel.nameRange, "in this kernel");
  builder.help("make the tiles smaller, or put tensors that are not needed together into blocks `{ … }` of their own");
}

}  // namespace vortex::lang::flow
