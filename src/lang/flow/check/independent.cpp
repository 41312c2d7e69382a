#include "lang/flow/check/independent.h"

#include <algorithm>
#include <map>

#include "lang/flow/check/surroundings.h"

namespace vortex::lang::flow {
namespace {

class LoopIterations {
public:
  LoopIterations(const Graph& graph, Values& values, LoopId loop) : graph_(graph), values_(values), loop_(loop) {}

  bool areIndependent() {
    const Loop& loop = graph_[loop_];
    if (!loop.counter || loop.counter->kind != Counter::Kind::Range || loop.counter->isPosition ||
        !graph_.values.isConstant(loop.counter->step) || graph_.values[loop.counter->step].constant() != 1)
      return false;
    const bool leavesEarly = loop.exits.size() != 1 || graph_[loop.exits.front()].predecessors.size() != 1;
    if (leavesEarly || graph_[loop.header].phis.size() != 1)
      return false;
    for (uint32_t block = indexOf(loop.header); block <= indexOf(loop.last); ++block)
      if (graph_.isInside(BlockId{block}, loop_))
        for (StepId step = graph_.blocks[block].begin; step != graph_.blocks[block].end;
             step = StepId{indexOf(step) + 1})
          if (!mayBeSpread(step))
            return false;
    return storesStayApart();
  }

private:
  bool mayBeSpread(StepId id) {
    const Step& step = graph_[id];
    switch (step.kind) {
    case StepKind::Load:
    case StepKind::Store: break;
    case StepKind::Declare:
    case StepKind::Empty:
    case StepKind::End:
    case StepKind::Bind:
    case StepKind::Item:
    case StepKind::View:
    case StepKind::Compute:
    case StepKind::Assert:
    case StepKind::Jump:
    case StepKind::Branch: return true;
    default: return false;
    }
    for (const Access& access : graph_.accessesOf(step))
      if (!add(access))
        return false;
    return true;
  }

  /// A variable of one iteration, or an element of a whole tensor.
  bool add(const Access& access) {
    const Place& place = graph_[access.place];
    if (place.isUnknown() || place.root == kNoLocal)
      return false;
    const bool isOfIteration = graph_[place.root].loop != kNoLoop && graph_.isInside(graph_[place.root].loop, loop_);
    if (place.storage == Storage::Variable)
      return isOfIteration || access.mode == AccessMode::Read;
    if (place.storage == Storage::Tile)
      return false;
    if (isOfIteration)
      return true;
    (access.mode == AccessMode::Read ? loads_ : stores_).push_back(access);
    return true;
  }

  /// The dimensions whose subscript is in every iteration the loop's variable, as machine integers; none for parts of structs and for views.
  std::set<size_t> dimsOfLoop(const Access& access) {
    const Place& place = graph_[access.place];
    std::set<size_t> out;
    if (place.path.empty() || place.path.front().kind != ProjectionKind::At)
      return out;
    const std::vector<DimRange>& dims = place.path.front().dims;
    const ValueId counter = graph_[loop_].counter->value;
    for (size_t dim = 0; dim < dims.size(); ++dim)
      if (dims[dim].isIndex() && values_.equal(dims[dim].begin, counter, pointOf(access.step)) == Truth::Yes)
        out.insert(dim);
    return out;
  }

  bool storesStayApart() {
    std::map<LocalId, std::set<size_t>> apart;  // by stored tensor: dimensions that tell iterations apart
    for (const Access& store : stores_) {
      const std::set<size_t> here = dimsOfLoop(store);
      auto [entry, isNew] = apart.try_emplace(graph_[store.place].root, here);
      std::erase_if(entry->second, [&](size_t dim) { return !here.contains(dim); });
      if (entry->second.empty())
        return false;
    }
    for (const Access& load : loads_)
      if (const auto entry = apart.find(graph_[load.place].root); entry != apart.end()) {
        const std::set<size_t> here = dimsOfLoop(load);
        std::erase_if(entry->second, [&](size_t dim) { return !here.contains(dim); });
        if (entry->second.empty())
          return false;
      }
    return !stores_.empty();
  }

  const Graph& graph_;
  Values& values_;
  LoopId loop_;
  std::vector<Access> loads_, stores_;
};

}  // namespace

std::set<const Expr*> independentLoops(Graph& graph, const Structure& structure) {
  if (graph.loops.empty())
    return {};
  Values values(graph.values, surroundingsOf(graph, structure, graph.values));
  std::set<const Expr*> out;
  for (uint32_t i = 0; i < graph.loops.size(); ++i)
    if (LoopIterations(graph, values, LoopId{i}).areIndependent())
      out.insert(graph.loops[i].origin);
  return out;
}

}  // namespace vortex::lang::flow
