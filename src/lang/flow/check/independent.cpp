#include "lang/flow/check/independent.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "lang/flow/check/surroundings.h"
#include "lang/flow/graph/views.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

class LoopIterations {
public:
  LoopIterations(const Graph& graph, Values& values, LoopId loop) : graph_(graph), values_(values), loop_(loop) {}

  LoopVerdict run() {
    judge();
    verdict_.touchesMemory = !loads_.empty() || !stores_.empty();
    return std::move(verdict_);
  }

private:
  using Kind = LoopVerdict::Kind;

  void judge() {
    const Loop& loop = graph_[loop_];
    verdict_.kind = Kind::Independent;
    for (uint32_t block = indexOf(loop.header); block <= indexOf(loop.last); ++block)
      if (graph_.isInside(BlockId{block}, loop_))
        for (StepId step = graph_.blocks[block].begin; step != graph_.blocks[block].end;
             step = StepId{indexOf(step) + 1})
          visit(graph_[step]);
    const bool leavesEarly = loop.exits.size() != 1 || graph_[loop.exits.front()].predecessors.size() != 1;
    if (!loop.counter || leavesEarly)
      find(Kind::InOrder, "an iteration may end the loop", loop.origin->range);
    else if (graph_[loop.header].phis.size() != 1)
      findCarried();
    else if (loop.counter->kind != Counter::Kind::Range || !graph_.values.isConstant(loop.counter->step) ||
             graph_.values[loop.counter->step].constant() == 0)
      find(Kind::Unproven, "its values are not those of a range with a constant step", loop.origin->range);
    else
      findMeeting();
  }

  /// The gravest counts, and of these the first.
  void find(Kind kind, std::string reason, source::SourceRange at) {
    if (kind <= verdict_.kind)
      return;
    verdict_.kind = kind;
    verdict_.reason = std::move(reason);
    verdict_.at = at;
  }

  void visit(const Step& step) {
    const source::SourceRange at = step.origin ? step.origin->range : graph_[loop_].origin->range;
    switch (step.kind) {
    case StepKind::Load:
    case StepKind::Store:
      for (const Access& access : graph_.accessesOf(step))
        add(access, at);
      break;
    case StepKind::Declare:
    case StepKind::Empty:
    case StepKind::End:
    case StepKind::Bind:
    case StepKind::Item:
    case StepKind::View:
    case StepKind::Compute:
    case StepKind::Assert:
    case StepKind::Jump:
    case StepKind::Branch: break;
    case StepKind::Print: find(Kind::InOrder, "what is printed has an order", at); break;
    case StepKind::Atomic: find(Kind::Unproven, "it works on elements that other iterations may use", at); break;
    default: find(Kind::OfTiles, "this works on whole tensors", at);
    }
  }

  std::string nameOf(const Place& place) const {
    const Variable* variable = place.root == kNoLocal || place.isUnknown() ? nullptr : graph_[place.root].variable;
    return variable && !variable->name.empty() ? base::concat("`", variable->name, "`") : "a tensor";
  }

  /// A variable of one iteration, or an element of a whole tensor.
  void add(const Access& access, source::SourceRange at) {
    const Place& place = graph_[access.place];
    if (place.isUnknown() || place.root == kNoLocal)
      return find(Kind::Unproven, "it is not known which tensor an access is of", at);
    const bool isOfIteration = graph_[place.root].loop != kNoLoop && graph_.isInside(graph_[place.root].loop, loop_);
    const bool isVariable = place.storage == Storage::Variable || place.storage == Storage::Tile;
    if (isOfIteration || (isVariable && access.mode == AccessMode::Read))
      return;
    if (isVariable)
      return find(Kind::InOrder, nameOf(place) + " goes from one iteration to the next", at);
    (access.mode == AccessMode::Read ? loads_ : stores_).push_back({access, at});
  }

  /// A variable from outside that is assigned inside.
  void findCarried() {
    std::set<const Variable*> own;
    const Expr* found = nullptr;
    eachExpr(asFor(*graph_[loop_].origin).body, [&](const Expr& expr) {
      if (expr.kind == ExprKind::Let)
        own.insert(expr.variable);
      if (expr.kind != ExprKind::Assign || found)
        return;
      const Expr* place = &asAssign(expr).place;
      while (place->kind == ExprKind::Field)
        place = &asField(*place).base;
      if (place->kind == ExprKind::Var && !own.contains(place->variable))
        found = place;
    });
    const source::SourceRange at = found ? found->range : graph_[loop_].origin->range;
    find(Kind::InOrder,
         base::concat(found ? base::concat("`", found->variable->name, "`") : "a value",
                      " goes from one iteration to the next"),
         at);
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

  struct ElementUse {
    Access access;
    source::SourceRange at;
  };

  /// Of a tensor that is stored to, an access leaves no dimension that tells iterations apart in all of them.
  void findMeeting() {
    std::map<LocalId, std::set<size_t>> apart;
    for (const ElementUse& store : stores_)
      narrow(apart.try_emplace(graph_[store.access.place].root, dimsOfLoop(store.access)).first->second, store);
    for (const ElementUse& load : loads_)
      if (const auto entry = apart.find(graph_[load.access.place].root); entry != apart.end())
        narrow(entry->second, load);
    if (stores_.empty())
      find(Kind::Unproven, "it stores nothing", graph_[loop_].origin->range);
  }

  void narrow(std::set<size_t>& dims, const ElementUse& use) {
    const std::set<size_t> here = dimsOfLoop(use.access);
    std::erase_if(dims, [&](size_t dim) { return !here.contains(dim); });
    if (dims.empty())
      find(Kind::Unproven, base::concat("iterations may meet in an element of ", nameOf(graph_[use.access.place])),
           use.at);
  }

  const Graph& graph_;
  Values& values_;
  LoopId loop_;
  std::vector<ElementUse> loads_, stores_;
  LoopVerdict verdict_;
};

}  // namespace

std::vector<LoopVerdict> loopVerdicts(Graph& graph, const Structure& structure) {
  std::vector<LoopVerdict> out;
  if (graph.loops.empty())
    return out;
  Values values(graph.values, surroundingsOf(graph, structure, graph.values));
  for (uint32_t i = 0; i < graph.loops.size(); ++i)
    out.push_back(LoopIterations(graph, values, LoopId{i}).run());
  return out;
}

}  // namespace vortex::lang::flow
