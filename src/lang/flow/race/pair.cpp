#include "lang/flow/race/pair.h"

#include <algorithm>

namespace vortex::lang::flow {
namespace {

/// Numbers of Argument nodes that stand for leaves of pairs; those of the program are smaller.
constexpr uint32_t kFirstOwn = 1u << 24;

bool areContrary(const std::vector<Condition>& conditions) {
  for (size_t i = 0; i < conditions.size(); ++i)
    for (size_t j = i + 1; j < conditions.size(); ++j)
      if (conditions[i].value == conditions[j].value && conditions[i].holds != conditions[j].holds)
        return true;
  return false;
}

}  // namespace

Pair::Pair(KernelView& view, Scope scope, const AccessInterval* interval)
    : view_(view), scope_(scope), interval_(interval) {}

ValueId Pair::fresh(MachineType type, ValueId origin) {
  const ValueId made = view_.nodes.argument(kFirstOwn + next_++, type);
  origins_[indexOf(made)] = origin;
  return made;
}

ValueId Pair::blockDim(uint32_t axis) {
  const ValueId given = view_.launch.blockDim[axis];
  return given != kNoValue ? given : view_.nodes.position(PositionKind::BlockDim, axis);
}

void Pair::makeAxes() {
  NodeTable& nodes = view_.nodes;
  for (uint32_t axis = 3; axis-- > 0;)
    if (view_.grid[axis] == 1) {
      first_.block[axis] = second_.block[axis] = nodes.constant(kUsize, 0);
    } else if (scope_ == Scope::Grid) {
      for (Env* env : {&first_, &second_}) {
        env->block[axis] = fresh(kUsize, nodes.position(PositionKind::BlockId, axis));
        const ValueId blocks =
            view_.grid[axis] ? nodes.constant(kUsize, *view_.grid[axis]) : nodes.position(PositionKind::GridDim, axis);
        assume(nodes.op(Op::Lt, kBool, env->block[axis], blocks));
        assume(nodes.op(Op::Lt, kBool, env->block[axis], nodes.constant(kUsize, kMostBlocksOfAxis)));
      }
      axes_.push_back({first_.block[axis], second_.block[axis]});
    } else {
      first_.block[axis] = second_.block[axis] = nodes.position(PositionKind::BlockId, axis);
    }
  decisive_ = axes_.size();
  for (uint32_t axis = 3; axis-- > 0;) {
    if (view_.shape[axis] == 1) {
      first_.thread[axis] = second_.thread[axis] = nodes.constant(kUsize, 0);
      continue;
    }
    for (Env* env : {&first_, &second_}) {
      env->thread[axis] = fresh(kUsize, nodes.position(PositionKind::ThreadId, axis));
      assume(nodes.op(Op::Lt, kBool, env->thread[axis], blockDim(axis)));
    }
    if (!view_.shape[axis] && view_.launch.blockDim[axis] != kNoValue)  // no launch has more, whatever number it is
      assume(nodes.op(Op::Le, kBool, blockDim(axis), nodes.constant(kUsize, kMostThreadsOfBlock)));
    axes_.push_back({first_.thread[axis], second_.thread[axis]});
  }
  if (scope_ != Scope::Grid)
    decisive_ = axes_.size();
}

/// Different threads differ in one of them, of one block or not.
void Pair::makeWholeAxes() {
  NodeTable& nodes = view_.nodes;
  for (uint32_t axis = 3; axis-- > 0;) {
    const __int128 most = __int128(view_.grid[axis].value_or(kMostBlocksOfAxis)) *
                          __int128(view_.shape[axis].value_or(kMostThreadsOfBlock));
    for (Env* env : {&first_, &second_}) {
      env->thread[axis] =
          most == 1 ? nodes.constant(kUsize, 0) : fresh(kUsize, nodes.position(PositionKind::ThreadGlobalId, axis));
      if (most != 1)
        assume(nodes.op(Op::Lt, kBool, env->thread[axis], nodes.constant(kUsize, most)));
    }
    if (most != 1)
      axes_.push_back({first_.thread[axis], second_.thread[axis]});
  }
  decisive_ = axes_.size();
}

void Pair::set(const Side& first, const Side& second) {
  sides_ = {first, second};
  setParts();
}

void Pair::setParts() {
  isWhole_ = hasOpenCounters_ = false;
  build(view_.values, kNoPoint);
}

bool Pair::setWhole() {
  if ((scope_ != Scope::Block && scope_ != Scope::Grid) || sides_[0].isBlockCode || sides_[1].isBlockCode)
    return false;
  isWhole_ = true;
  asksForParts_ = false;
  build(view_.values, kNoPoint);
  return !asksForParts_;
}

void Pair::build(Values& counters, PointId point) {
  const auto& [first, second] = sides_;
  counters_ = &counters;
  counted_ = point;
  conditions_.clear();
  coordinates_.clear();
  axes_.clear();
  origins_.clear();
  shared_.clear();
  lists_.clear();
  definitions_.clear();
  passed_.clear();
  first_ = {};
  second_ = {};
  next_ = 0;
  areApart_ = false;
  first_.reach = first.reach;
  second_.reach = second.reach;
  first_.at = view_.graph.blockOf(first.access.step);
  second_.at = view_.graph.blockOf(second.access.step);
  mayBeSame_ = scope_ != Scope::Grid && (first.isBlockCode || second.isBlockCode);
  if (isWhole_)
    makeWholeAxes();
  else
    makeAxes();
  if (scope_ == Scope::SameWarp || scope_ == Scope::OtherWarps) {
    const Node warp = view_.nodes[view_.nodes.position(PositionKind::WarpId)];
    assume(view_.nodes.op(Op::Eq, kBool, clonePosition(first_, warp), clonePosition(second_, warp)),
           scope_ == Scope::SameWarp);
  }
  const auto begin = static_cast<std::ptrdiff_t>(conditions_.size());
  addCoordinates(first, second);
  const auto end = static_cast<std::ptrdiff_t>(conditions_.size());
  addConditions(first_, first.access.step);
  addConditions(second_, second.access.step);
  if (interval_) {
    addSides(first_);
    addSides(second_);
  }
  // That subscripts are inside is learnt last: what they are as integers follows from the other conditions.
  std::rotate(conditions_.begin() + begin, conditions_.begin() + end, conditions_.end());
  const size_t written = coordinates_.size();
  addWithoutCommon();
  addCleared();
  addUnmasked(written);
  joinDigits();
  contradicts_ = areContrary(conditions_);
  dropUnrelated();
}

//===-- values ----------------------------------------------------------------------------------------------------===//

ValueId Pair::clone(Env& env, ValueId value, unsigned depth) {
  value = view_.nodes.resolved(value);
  if (auto found = env.known.find(indexOf(value)); found != env.known.end())
    return found->second;
  NodeTable& nodes = view_.nodes;
  const Node node = nodes[value];
  ValueId made = value;
  if (depth > 500) {
    made = fresh(node.type, value);
  } else {
    const bool isMade = node.kind == NodeKind::Phi || node.kind == NodeKind::Load || node.kind == NodeKind::Ticket ||
                        node.kind == NodeKind::Unknown;
    if (isMade && env.outer)
      return env.known[indexOf(value)] = cloneInIteration(env, value, depth + 1);
    switch (node.kind) {
    case NodeKind::Constant:
    case NodeKind::Extent:
    case NodeKind::Argument: break;
    case NodeKind::Position: made = clonePosition(env, node); break;
    case NodeKind::Phi: made = clonePhi(env, value, depth + 1); break;
    case NodeKind::Convert: made = nodes.convert(node.type, clone(env, nodes.operand(value, 0), depth + 1)); break;
    case NodeKind::Op: {
      std::array<ValueId, 3> parts{kNoValue, kNoValue, kNoValue};
      for (size_t i = 0; i < operandCount(node.op); ++i)
        parts[i] = clone(env, nodes.operand(value, i), depth + 1);
      made = nodes.op(node.op, node.type, parts[0], parts[1], parts[2]);
      break;
    }
    case NodeKind::Load:
    case NodeKind::Ticket:
    case NodeKind::Unknown: {
      const StepId step = view_.graph.definition(value);
      made = cloneLeaf(env, value, step == kNoStep ? kNoLoop : view_.graph[view_.graph.blockOf(step)].loop);
      break;
    }
    }
  }
  env.known[indexOf(value)] = made;
  return made;
}

ValueId Pair::clonePosition(Env& env, const Node& node) {
  NodeTable& nodes = view_.nodes;
  const auto op = [&](Op kind, ValueId a, ValueId b) { return nodes.op(kind, kUsize, a, b); };
  const auto linear = [&] {
    ValueId sum = env.thread[2];
    for (const uint32_t axis : {1u, 0u})
      sum = op(Op::Add, op(Op::Mul, sum, blockDim(axis)), env.thread[axis]);
    return sum;
  };
  const uint32_t axis = node.axis();
  if (isWhole_ && node.position() == PositionKind::ThreadGlobalId)
    return env.thread[axis];
  if (isWhole_ && node.position() != PositionKind::BlockDim && node.position() != PositionKind::GridDim) {
    asksForParts_ = true;
    return fresh(kUsize, kNoValue);
  }
  switch (node.position()) {
  case PositionKind::ThreadId: return env.thread[axis];
  case PositionKind::ThreadLocalId: return linear();
  case PositionKind::ThreadGlobalId: return op(Op::Add, op(Op::Mul, env.block[axis], blockDim(axis)), env.thread[axis]);
  case PositionKind::BlockId: return env.block[axis];
  case PositionKind::BlockDim: return blockDim(axis);
  case PositionKind::GridDim: return nodes.position(PositionKind::GridDim, axis);
  case PositionKind::WarpId: return op(Op::Div, linear(), nodes.constant(kUsize, 32));
  case PositionKind::LaneId: return op(Op::Rem, linear(), nodes.constant(kUsize, 32));
  }
  VORTEX_UNREACHABLE();
}

/// Which iteration of the loop the step is in, as seen from the start of the interval. Of a loop that was left before, its last one: any.
Pair::Instance Pair::iterationOf(const Env& env, LoopId loop) const {
  const Reach& reach = env.reach;
  const bool isPassed = reach.passed != kNoLoop && view_.graph.isInside(loop, reach.passed);
  if (view_.graph.isInside(interval_->block, loop) && !isPassed)
    return Instance::Same;
  if (loop == reach.passed)
    return reach.isRepeated ? Instance::Own : Instance::Next;
  const bool isLater = std::find(reach.later.begin(), reach.later.end(), loop) != reach.later.end();
  return isLater || !view_.graph.isInside(env.at, loop) ? Instance::Own : Instance::First;
}

/// Which run of a value defined directly in the loop is meant: its own if any loop around it is in an iteration of its own.
Pair::Instance Pair::instanceOf(const Env& env, LoopId loop) const {
  if (!interval_)
    return Instance::Own;
  if (loop == kNoLoop)
    return Instance::Same;
  for (LoopId around = view_.graph[loop].parent; around != kNoLoop; around = view_.graph[around].parent)
    if (iterationOf(env, around) == Instance::Own)
      return Instance::Own;
  return iterationOf(env, loop);
}

/// One value for both sides. Which barriers were left out says nothing of the iterations.
ValueId Pair::shared(ValueId leaf, Reach reach) {
  reach.sides.clear();
  auto [found, isNew] = shared_.try_emplace({indexOf(leaf), reach}, kNoValue);
  if (isNew)
    found->second = reach == Reach{} ? leaf : fresh(view_.nodes.type(leaf), leaf);
  return found->second;
}

ValueId Pair::cloneLeaf(Env& env, ValueId leaf, LoopId loop) {
  const Graph& graph = view_.graph;
  bool isShared = isOne(leaf);
  const StepId step = graph.definition(leaf);
  if (step == kNoStep && view_.nodes[leaf].kind == NodeKind::Unknown)
    isShared = false;  // counts the iterations of a loop, which are the side's own
  if (isShared && step != kNoStep)
    for (const Access& access : graph.accessesOf(graph[step])) {
      const Place& place = graph[access.place];
      isShared &= !place.isUnknown() && place.root != kNoLocal &&
                  (!view_.writtenRoots[indexOf(place.root)] || (scope_ != Scope::Grid && view_.cells->isSteady(step)));
    }
  const Instance instance = instanceOf(env, loop);
  const ValueId made = !isShared || instance == Instance::Own ? fresh(view_.nodes.type(leaf), leaf)
                       : instance == Instance::Same           ? shared(leaf, {})
                       : instance == Instance::Next           ? shared(leaf, {.passed = loop, .later = {}, .sides = {}})
                                                              : shared(leaf, env.reach);
  if (made != leaf) {
    NodeTable& nodes = view_.nodes;
    const MachineType type = nodes.type(leaf);
    const Interval range = counters_->range(leaf, counted_);
    if (range.low > type.lowest())
      assume(nodes.op(Op::Le, kBool, nodes.constant(type, range.low), made));
    if (range.high < type.highest())
      assume(nodes.op(Op::Le, kBool, made, nodes.constant(type, range.high)));
  }
  return made;
}

/// A counter in an iteration of its own: any that the loop has.
ValueId Pair::ownCounter(Env& env, ValueId phi, unsigned depth) {
  const Graph& graph = view_.graph;
  NodeTable& nodes = view_.nodes;
  const Loop& loop = graph[graph[nodes.phiBlock(phi)].loop];
  const Counter& counter = *loop.counter;
  const MachineType type = nodes.type(phi);
  const ValueId made = fresh(type, phi);
  env.known[indexOf(phi)] = made;
  if (counter.isPosition) {
    assume(nodes.op(Op::Lt, kBool, made, clone(env, counter.trips, depth)));
    // The variable stays in its range, which the product of a position and the step does not tell.
    if (counter.kind == Counter::Kind::Range)
      assumeInRange(env, counter, clone(env, counter.value, depth), depth);
    return made;
  }
  assumeInRange(env, counter, made, depth);
  return made;
}

/// From begin on, and before end, where it is known which way the counter goes.
void Pair::assumeInRange(Env& env, const Counter& counter, ValueId value, unsigned depth) {
  NodeTable& nodes = view_.nodes;
  const Interval step = counter.step == kNoValue ? Interval{1, 1} : view_.values.range(counter.step, kNoPoint);
  const bool isDown = step.high < 0;
  if (!isDown && step.low <= 0)
    return;
  const ValueId begin = clone(env, counter.begin, depth), end = clone(env, counter.end, depth);
  assume(nodes.op(Op::Le, kBool, isDown ? value : begin, isDown ? begin : value));
  assume(nodes.op(Op::Lt, kBool, isDown ? end : value, isDown ? value : end));
}

/// begin + step · count, where the values of the graph say so: the count is the side's own.
ValueId Pair::ownInduction(Env& env, ValueId phi, unsigned depth) {
  NodeTable& nodes = view_.nodes;
  const Form form = counters_->form(phi, counted_);
  hasOpenCounters_ = hasOpenCounters_ || !form.isExact;
  if (!form.isExact || form.polynomial.mentions(phi))
    return kNoValue;
  Polynomial sum = Polynomial::constant(form.polynomial.constantPart());
  for (const auto& [monomial, coefficient] : form.polynomial.terms()) {
    std::optional<Polynomial> product = Polynomial::constant(coefficient);
    for (ValueId leaf : monomial) {
      const ValueId made = nodes[leaf].kind == NodeKind::Phi ? kNoValue : clone(env, leaf, depth);
      if (made == kNoValue ||
          (made != leaf && (nodes[made].kind == NodeKind::Op || nodes[made].kind == NodeKind::Convert)))
        return kNoValue;
      product = Polynomial::product(*product, nodes.isConstant(made) ? Polynomial::constant(nodes[made].constant())
                                                                     : Polynomial::leaf(made));
      if (!product)
        return kNoValue;
    }
    const auto next = monomial.empty() ? sum : Polynomial::sum(sum, *product);
    if (!next)
      return kNoValue;
    sum = *next;
  }
  const ValueId made = fresh(nodes.type(phi), phi);
  definitions_.push_back({made, sum});
  return made;
}

/// What the iteration of the start leaves to the next one, or what the loop is entered with. kNoValue: it depends on the way.
ValueId Pair::cloneCarried(Env& env, ValueId phi, bool isNext, unsigned depth) {
  const Graph& graph = view_.graph;
  const BlockId block = view_.nodes.phiBlock(phi);
  ValueId made = kNoValue;
  for (size_t i = 0; i < graph[block].predecessors.size(); ++i) {
    if (graph.isInside(graph[block].predecessors[i], graph[block].loop) != isNext)
      continue;
    Env before = at(env, graph[block].predecessors[i]);
    const ValueId next = clone(isNext ? before : env, view_.nodes.phiOperands(phi)[i], depth);
    if (made != kNoValue && made != next)
      return kNoValue;
    made = next;
  }
  return made == phi ? kNoValue : made;
}

/// Behind a loop that is left by its header after a known number of iterations: what its variable has come to. `for b in 0..6 { m = m << 1 | bit }`.
ValueId Pair::cloneBehind(Env& env, LoopId loop, ValueId phi, unsigned depth) {
  constexpr unsigned kMostUnrolled = 64;
  const Graph& graph = view_.graph;
  NodeTable& nodes = view_.nodes;
  const auto& [header, before, latches, exits, last, parent, nesting, origin, counter] = graph[loop];
  const Step& branch = graph.terminator(header);
  const auto& sides = graph[header].successors;
  const bool staysIfTrue = branch.kind == StepKind::Branch && graph.isInside(sides[0], loop);
  if (branch.kind != StepKind::Branch || latches.size() != 1 || staysIfTrue == graph.isInside(sides[1], loop))
    return kNoValue;
  std::vector<ValueId> lost;
  Env iteration = env;
  iteration.known.clear();
  iteration.outer = &env;
  iteration.unrolled = loop;
  iteration.lost = &lost;
  for (unsigned i = 0; i < kMostUnrolled; ++i) {
    const auto& predecessors = graph[header].predecessors;
    const size_t edge = predecessors[0] == (i == 0 ? before : latches.front()) ? 0 : 1;
    std::unordered_map<uint32_t, ValueId> next;
    for (ValueId each : graph[header].phis)
      if (nodes.resolved(each) == each)
        next[indexOf(each)] = clone(iteration, nodes.phiOperands(each)[edge], depth);
    iteration.known = std::move(next);
    const ValueId condition = clone(iteration, branch.value, depth);
    if (!nodes.isConstant(condition))
      return kNoValue;
    if ((nodes[condition].constant() != 0) == staysIfTrue)
      continue;
    std::vector<ValueId> leaves;
    leavesOf(clone(iteration, phi, depth), leaves);
    const bool isKnown = std::none_of(leaves.begin(), leaves.end(), [&](ValueId leaf) {
      return std::find(lost.begin(), lost.end(), leaf) != lost.end();
    });
    return isKnown ? clone(iteration, phi, depth) : kNoValue;
  }
  return kNoValue;
}

/// Of an iteration that is unrolled: what is made before the loop is the side's, what a step of the loop makes is not known.
ValueId Pair::cloneInIteration(Env& env, ValueId leaf, unsigned depth) {
  const Graph& graph = view_.graph;
  const StepId step = graph.definition(leaf);
  const bool isPhi = view_.nodes[leaf].kind == NodeKind::Phi;
  if ((isPhi || step != kNoStep) &&
      !graph.isInside(isPhi ? view_.nodes.phiBlock(leaf) : graph.blockOf(step), env.unrolled))
    return clone(*env.outer, leaf, depth);
  return env.lost->emplace_back(fresh(view_.nodes.type(leaf), leaf));
}

ValueId Pair::clonePhi(Env& env, ValueId phi, unsigned depth) {
  const Graph& graph = view_.graph;
  NodeTable& nodes = view_.nodes;
  const BlockId block = nodes.phiBlock(phi);
  const LoopId loop = graph[block].loop;
  const bool isHeader = loop != kNoLoop && graph[loop].header == block;
  if (const auto& predecessors = graph[block].predecessors; predecessors.size() == 1)
    if (const LoopId left = graph[predecessors[0]].loop;
        left != kNoLoop && left != loop && graph[left].header == predecessors[0] && graph[left].exits.size() == 1)
      if (const ValueId made = cloneBehind(env, left, nodes.resolved(nodes.phiOperands(phi)[0]), depth);
          made != kNoValue)
        return made;
  const Instance instance = instanceOf(env, loop);
  const bool isCounter = isHeader && graph[loop].counter && nodes.resolved(graph[loop].counter->phi) == phi;
  const bool isBlock = isOne(phi);
  const bool isPower = isHeader && view_.values.isPowerOrZero(phi);
  // Twice a number may wrap: where nothing is of the round before, the next one's number is as good as any.
  const bool isAlone =
      isPower && instanceOf(first_, loop) == Instance::Next && instanceOf(second_, loop) == Instance::Next;
  const bool isSkipped = isHeader && loop == env.skipped, isNext = instance == Instance::Next && !isSkipped;
  if (isHeader && (isSkipped || instance == Instance::First || (isNext && isBlock && !isAlone)))
    if (const ValueId made = cloneCarried(env, phi, isNext, depth); made != kNoValue || isSkipped)
      return made != kNoValue ? made : fresh(nodes.type(phi), phi);
  if (isCounter && (instance == Instance::Own || !isBlock))
    return ownCounter(env, phi, depth);
  if (isHeader && (instance == Instance::Own || !isBlock))
    if (const ValueId made = ownInduction(env, phi, depth); made != kNoValue)
      return made;
  const ValueId made = cloneLeaf(env, phi, loop);
  if (made != phi) {
    if (const std::vector<__int128>& list = view_.values.listOf(phi); !list.empty())
      lists_[indexOf(made)] = list;
  }
  if (isHeader) {
    addExchanged(env, phi, made, depth);
    if (isPower) {
      const ValueId one = nodes.constant(nodes.type(made), 1), zero = nodes.constant(nodes.type(made), 0);
      const ValueId less = nodes.op(Op::Sub, nodes.type(made), made, one);
      assume(nodes.op(Op::Eq, kBool, nodes.op(Op::And, nodes.type(made), made, less), zero));
    }
  }
  return made;
}

//===-- conditions ------------------------------------------------------------------------------------------------===//

/// Branches and assertions on every way to the step: a thread whose assertion fails does not get there, but for surplus threads, which have no say.
void Pair::addConditions(Env& env, StepId step) {
  const Graph& graph = view_.graph;
  for (const Condition& condition : conditionsAt(graph, view_.structure, step))
    assume(clone(env, condition.value), condition.holds);
  const BlockId to = graph.blockOf(step);
  for (BlockId at = to; at != kNoBlock; at = view_.structure.dominator(at))
    for (uint32_t s = indexOf(graph[at].begin); s < indexOf(at == to ? step : graph[at].end); ++s)
      if (const Step& assertion = graph[StepId{s}];
          assertion.kind == StepKind::Assert && graph.isInside(to, graph[at].loop))
        if (const ValueId holds = graph.uses(assertion).front();
            graph.function->kernel->gridKind != GridKind::Domain || view_.uniformity.ofValue(holds) == Level::Block)
          assume(clone(env, holds));
}

/// What branches on the way say: around barriers, and of loops that were left.
void Pair::addSides(const Env& env) {
  const Graph& graph = view_.graph;
  for (const Reach::Side& side : env.reach.sides) {
    Env there = at(env, side.branch);
    there.reach.passed = side.passed;
    if (!side.isOfStart)
      there.reach = env.reach;
    const LoopId loop = graph[side.branch].loop;
    if (loop != kNoLoop && graph[loop].header == side.branch && there.reach.passed != loop &&
        !graph.isInside(graph[side.branch].successors[side.holds ? 0 : 1], loop))
      there.skipped = loop;
    assume(clone(there, graph.terminator(side.branch).value), side.holds);
    passed_.push_back(conditions_.back());
  }
}

}  // namespace vortex::lang::flow
