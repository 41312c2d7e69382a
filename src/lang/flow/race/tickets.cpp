#include "lang/flow/race/tickets.h"

#include <algorithm>

#include "lang/flow/check/surroundings.h"
#include "lang/flow/race/suppositions.h"
#include "lang/flow/race/walk.h"

namespace vortex::lang::flow {

/// No launch adds so much in so many steps to 64 bits: 2^47 threads, or years of them where a loop's trips are not known.
constexpr __int128 kMostAdded = 256;
constexpr unsigned kMostQueues = 4;  ///< of a counter; half of its numbers are for their bounds
constexpr __int128 kMostRounds = __int128(1) << 40;
constexpr __int128 kFewNumbers = 1 << 20;  ///< launches are not held to bounds as small as this

std::optional<Ticket> Tickets::ofValue(ValueId value, Scope scope) {
  Ticket out;
  std::set<ValueId> seen;
  if (!collect(graph_.values.resolved(value), scope, out, seen) || out.drawn.empty())
    return std::nullopt;
  const Counter& counter = counterOf(out.counter);
  if (!counter.isValid || (scope == Scope::Grid && counter.isOfBlocks))
    return std::nullopt;
  out.least = values_.range(graph_.uses(graph_[out.drawn.front()])[0], kNoPoint).low;
  for (StepId step : out.drawn)
    out.least = std::min(out.least, values_.range(graph_.uses(graph_[step])[0], kNoPoint).low);
  return out;
}

/// A phi of tickets is one of them, and so is what one thread of a block tells the others: of two blocks they are different.
bool Tickets::collect(ValueId value, Scope scope, Ticket& into, std::set<ValueId>& seen) const {
  if (!seen.insert(value).second)
    return true;
  const Node& node = graph_.values[value];
  if (node.kind == NodeKind::Phi) {
    for (ValueId operand : graph_.values.phiOperands(value))
      if (!collect(graph_.values.resolved(operand), scope, into, seen))
        return false;
    return true;
  }
  const StepId step = graph_.definition(value);
  if (node.kind == NodeKind::Load && scope == Scope::Grid) {
    const std::vector<Cells::Source> sources = cells_.sourcesOf(step);
    return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Cells::Source& source) {
      const ValueId ticket = handed(source.store);
      return ticket != kNoValue && collect(ticket, scope, into, seen);
    });
  }
  if (node.kind != NodeKind::Ticket)
    return false;
  const LocalId root = graph_[graph_[step].place].root;
  if (into.counter != kNoLocal && into.counter != root)
    return false;
  into.counter = root;
  into.drawn.push_back(step);
  return true;
}

/// The ticket that the thread which stores it has drawn just before; kNoValue: it is none.
ValueId Tickets::handed(StepId store) const {
  const NodeTable& nodes = graph_.values;
  ValueId value = nodes.resolved(graph_[store].value);
  while (nodes[value].kind == NodeKind::Convert && !nodes.type(nodes.operand(value, 0)).isSigned &&
         nodes.type(nodes.operand(value, 0)).width <= nodes.type(value).width)
    value = nodes.operand(value, 0);
  return nodes[value].kind == NodeKind::Ticket && graph_.blockOf(nodes[value].step()) == graph_.blockOf(store)
             ? value
             : kNoValue;
}

const Tickets::Counter& Tickets::counterOf(LocalId root) {
  auto [found, isNew] = counters_.try_emplace(root);
  if (isNew)
    found->second = findCounter(root);
  return found->second;
}

/// The same element for all threads, whenever it is asked.
bool Tickets::isFixed(const Place& place) const {
  const auto isConstant = [&](ValueId value) {
    const NodeKind kind = graph_.values[graph_.values.resolved(value)].kind;
    return kind == NodeKind::Constant || kind == NodeKind::Extent || kind == NodeKind::Argument;
  };
  const std::vector<ValueId> subscripts = place.subscripts();
  return !place.isUnknown() && std::all_of(subscripts.begin(), subscripts.end(), isConstant);
}

Tickets::Counter Tickets::findCounter(LocalId root) {
  Counter out;
  const Storage storage = graph_[root].storage;
  if (storage != Storage::Global && storage != Storage::Shared)
    return out;
  out.isOfBlocks = storage == Storage::Shared;
  std::vector<StepId> writes;
  PlaceId place = kNoPlace;
  for (const Access& access : graph_.accesses) {
    const Place& here = graph_[access.place];
    const bool mayBeHere =
        here.root == root || std::find(here.candidates.begin(), here.candidates.end(), root) != here.candidates.end();
    if (!mayBeHere || access.mode == AccessMode::Read)
      continue;
    if (access.mode == AccessMode::Write && storage == Storage::Shared) {
      writes.push_back(access.step);
      continue;
    }
    if (!isFixed(here) || (place != kNoPlace && !(graph_[place] == here)) || !addStep(access.step, out))
      return {};
    place = access.place;
  }
  if (out.queues > 0)
    *out.mostThreads /= 2;
  out.isValid = std::all_of(writes.begin(), writes.end(), [&](StepId write) { return isReset(write, out.steps); });
  return out;
}

/// Adds to what all threads of a launch add; false where numbers may come twice.
bool Tickets::addStep(StepId id, Counter& counter) {
  const Step& step = graph_[id];
  const Type type = graph_[step.place].type;
  if (step.kind != StepKind::Atomic || step.origin->builtin != Builtin::AtomicAdd || step.value == kNoValue ||
      type->kind != TypeKind::Scalar || isFloat(type->scalar) ||
      (!counter.isOfBlocks && (isOfBlockScope(step) || !isOfElements(id))) || !isInside(id))
    return false;
  counter.steps.push_back(id);
  const Interval amount = values_.range(graph_.uses(step)[0], kNoPoint);
  if (amount.low < 1)
    return false;
  const MachineType machine = machineType(type);
  if (machine.width >= 64)
    return amount.high <= kMostAdded;
  const auto rounds = roundsOf(id);
  const __int128 each = rounds ? std::max<__int128>(rounds->each, 1) : 1, numbers = __int128(1) << machine.width;
  if (each > kMostRounds || amount.high > numbers)
    return false;
  const __int128 mostOfQueue = numbers / 2 / kMostQueues / (each * amount.high);
  if (rounds ? rounds->bound != kNoValue && !addBound(rounds->bound, mostOfQueue, counter)
             : !addQueue(id, mostOfQueue, counter))
    return false;
  // Shares of the counter's numbers: each step has the same. In a queue the first and the last number of a thread need not lie below the bound.
  const __int128 most = numbers / ((rounds ? each : 2) * amount.high);
  counter.mostThreads =
      counter.mostThreads ? *counter.mostThreads * most / std::max<__int128>(*counter.mostThreads + most, 1) : most;
  return true;
}

/// No surplus thread draws: it adds nothing, and its number is 0.
bool Tickets::isOfElements(StepId step) {
  NodeTable& nodes = values_.nodes();
  const std::vector<DimExpr>& domain = graph_.function->kernel->domain;
  for (uint32_t axis = 0; axis < std::min<size_t>(domain.size(), kAxes); ++axis) {
    const ValueId extent = dimensionValue(domain[axis], *graph_.function, nodes),
                  id = nodes.position(PositionKind::ThreadGlobalId, axis);
    if (extent == kNoValue || values_.less(id, extent, pointOf(step)) != Truth::Yes)
      return false;
  }
  return true;
}

/// Outside of its tensor no counter is: what is drawn there is 0.
bool Tickets::isInside(StepId step) {
  NodeTable& nodes = values_.nodes();
  const Place& place = graph_[graph_[step].place];
  const auto isBelow = [&](ValueId at, ValueId end) {
    return end != kNoValue && values_.less(at, end, pointOf(step)) == Truth::Yes;
  };
  Type type = stripRef(graph_[place.root].type);
  std::vector<std::vector<ValueId>> ends;  // by dimension: of the tensor and of windows on it
  for (const Projection& each : place.path) {
    if (each.kind == ProjectionKind::Slot) {
      if (type->kind != TypeKind::Array ||
          !isBelow(each.index, nodes.constant(kUsize, static_cast<__int128>(type->count))))
        return false;
      type = stripRef(type->elem);
    } else if (each.kind == ProjectionKind::Field) {
      type = type->isTensor() ? type : stripRef(type->elems[each.field]);
    } else {
      for (size_t d = 0; ends.empty() && d < type->shape.size(); ++d)
        ends.push_back({dimensionValue(type->shape[d], *graph_.function, nodes)});
      std::vector<std::vector<ValueId>> kept;
      for (size_t d = 0; d < each.dims.size(); ++d) {
        const auto [begin, end] = each.dims[d];
        if (d >= ends.size() || !std::all_of(ends[d].begin(), ends[d].end(),
                                             [&, begin = begin](ValueId limit) { return isBelow(begin, limit); }))
          return false;
        if (each.dims[d].isIndex())
          continue;
        if (!values_.isNotLess(end, begin, pointOf(step)))
          return false;
        for (ValueId& outer : ends[d])
          outer = nodes.op(Op::Sub, kUsize, outer, begin);
        kept.push_back(ends[d]);
        kept.back().push_back(nodes.op(Op::Sub, kUsize, end, begin));
      }
      ends = std::move(kept);
      type = ends.empty() ? stripRef(type->elem) : type;
    }
  }
  return true;
}

/// All threads together draw as many numbers as the bound says, which is at most this in launches that are not refused.
bool Tickets::addQueue(StepId step, __int128 most, Counter& counter) {
  const LoopId loop = graph_[graph_.blockOf(step)].loop;
  const ValueId bound = graph_[loop].parent == kNoLoop ? boundOf(loop, graph_[graph_[step].place].root) : kNoValue;
  return bound != kNoValue && addBound(bound, most, counter);
}

bool Tickets::addBound(ValueId bound, __int128 most, Counter& counter) {
  if (++counter.queues > kMostQueues)
    return false;
  if (values_.range(bound, kNoPoint).high <= most)
    return true;
  const NodeTable& nodes = graph_.values;
  while (nodes[bound].kind == NodeKind::Convert && nodes.type(bound).contains(most))
    bound = nodes.operand(bound, 0);
  auto limit = nodes.type(bound).isSigned || most < kFewNumbers ? std::nullopt : limitOf(graph_, {&bound, 1}, most);
  if (limit)
    limit->ofTickets = true;
  if (limit && std::find(counter.limits.begin(), counter.limits.end(), *limit) == counter.limits.end())
    counter.limits.push_back(*limit);
  return limit.has_value();
}

/// Whoever begins another round has a number below it that nobody else has.
ValueId Tickets::boundOf(LoopId loop, LocalId counter) const {
  ValueId bound = kNoValue;
  for (BlockId latch : graph_[loop].latches) {
    ValueId here = kNoValue;
    for (const auto& [value, holds] : conditionsAt(graph_, structure_, StepId{indexOf(graph_[latch].end) - 1})) {
      const Node& node = graph_.values[value];
      const Operands sides = graph_.values.operands(value);
      if (node.kind == NodeKind::Op && node.op == (holds ? Op::Lt : Op::Le) &&
          isDrawnAnew(sides.values[!holds], loop, counter) && !graph_.changesIn(sides.values[holds], loop))
        here = sides.values[holds];
    }
    if (here == kNoValue || (bound != kNoValue && bound != here))
      return kNoValue;
    bound = here;
  }
  return bound;
}

/// A ticket of this round, or of the one before.
bool Tickets::isDrawnAnew(ValueId value, LoopId loop, LocalId counter) const {
  const NodeTable& nodes = graph_.values;
  const Node& node = nodes[value];
  if (node.type.isSigned)
    return false;  // numbers below 0 are below any bound
  if (node.kind == NodeKind::Convert)
    return nodes.type(nodes.operand(value, 0)).width <= node.type.width &&
           isDrawnAnew(nodes.operand(value, 0), loop, counter);
  if (node.kind == NodeKind::Ticket)
    return graph_[graph_[node.step()].place].root == counter && graph_.isInside(graph_.blockOf(node.step()), loop);
  if (node.kind == NodeKind::Load) {
    const auto isAnew = [&](const Cells::Source& source) {
      const ValueId ticket = handed(source.store);
      return ticket != kNoValue && isDrawnAnew(ticket, loop, counter);
    };
    const std::vector<Cells::Source> sources = cells_.sourcesOf(node.step());
    const auto isOfLoop = [&](StepId step) { return graph_.isInside(graph_.blockOf(step), loop); };
    return isOfLoop(node.step()) &&
           std::any_of(sources.begin(), sources.end(),
                       [&](const Cells::Source& each) { return each.isBefore && isAnew(each); }) &&
           std::all_of(sources.begin(), sources.end(),
                       [&](const Cells::Source& each) { return !isOfLoop(each.store) || isAnew(each); });
  }
  if (node.kind != NodeKind::Phi || nodes.phiBlock(value) != graph_[loop].header)
    return false;
  for (size_t i = 0; i < nodes.phiOperands(value).size(); ++i)
    if (const ValueId each = nodes.resolved(nodes.phiOperands(value)[i]);
        graph_.isInside(graph_[graph_[loop].header].predecessors[i], loop) &&
        ((nodes[each].kind != NodeKind::Ticket && nodes[each].kind != NodeKind::Load) ||
         !isDrawnAnew(each, loop, counter)))
      return false;
  return true;
}

/// Nothing where it is not known.
std::optional<Tickets::Rounds> Tickets::roundsOf(StepId step) {
  Rounds out;
  for (LoopId loop = graph_[graph_.blockOf(step)].loop; loop != kNoLoop; loop = graph_[loop].parent) {
    if (const auto number = trips(loop))
      out.each = std::min(out.each * *number, kMostRounds + 1);
    else if (const ValueId bound = out.bound == kNoValue ? strideBound(loop) : kNoValue; bound != kNoValue)
      out.bound = bound;
    else
      return std::nullopt;
  }
  return out;
}

std::optional<__int128> Tickets::trips(LoopId loop) const {
  const NodeTable& nodes = graph_.values;
  const auto& counter = graph_[loop].counter;
  if (!counter)
    return std::nullopt;
  __int128 number = 0;
  if (counter->isPosition) {
    if (!nodes.isConstant(counter->trips))
      return std::nullopt;
    number = nodes[counter->trips].constant();
  } else {
    if (!nodes.isConstant(counter->begin) || !nodes.isConstant(counter->end))
      return std::nullopt;
    number = nodes[counter->end].constant() - nodes[counter->begin].constant();
  }
  return std::min(number < 0 ? -number : number, kMostRounds + 1);
}

/// What a counter stays below that begins at 0 or above and goes on by no less than the threads of a launch: none of them comes round more often than
/// the bound divided by their number, and once more.
ValueId Tickets::strideBound(LoopId id) {
  const Loop& loop = graph_[id];
  const PointId before = pointOf(StepId{indexOf(graph_[loop.before].end) - 1});
  const auto isNotNegative = [&](ValueId value) {
    return !graph_.values.type(value).isSigned || values_.range(value, before).low >= 0;
  };
  if (loop.counter) {
    const auto& counter = *loop.counter;
    const bool isAhead = counter.kind == flow::Counter::Kind::Range && isNotNegative(counter.begin) &&
                         isStride(values_.integer(counter.step, before), before);
    return isAhead ? counter.end : kNoValue;
  }
  const Step& branch = graph_.terminator(loop.header);
  if (branch.kind != StepKind::Branch || !graph_.isInside(graph_[loop.header].successors[0], id) ||
      graph_.isInside(graph_[loop.header].successors[1], id))
    return kNoValue;
  const Node condition = graph_.values[branch.value];
  if (condition.kind != NodeKind::Op || condition.op != Op::Lt)
    return kNoValue;
  const ValueId phi = graph_.values.operand(branch.value, 0), end = graph_.values.operand(branch.value, 1);
  if (graph_.values[phi].kind != NodeKind::Phi || graph_.values.phiBlock(phi) != loop.header ||
      graph_.changesIn(end, id))
    return kNoValue;
  const std::vector<ValueId> operands(graph_.values.phiOperands(phi).begin(), graph_.values.phiOperands(phi).end());
  for (size_t i = 0; i < operands.size(); ++i) {
    const BlockId from = graph_[loop.header].predecessors[i];
    const PointId point = pointOf(StepId{indexOf(graph_[from].end) - 1});
    const bool isAhead =
        from == loop.before
            ? isNotNegative(operands[i])
            : isStride(Polynomial::sum(values_.integer(operands[i], point), values_.integer(phi, point), -1), point);
    if (!isAhead)
      return kNoValue;
  }
  return end;
}

bool Tickets::isStride(const std::optional<Polynomial>& step, PointId point) {
  NodeTable& nodes = values_.nodes();
  std::optional<Polynomial> threads = Polynomial::constant(1);
  for (uint32_t axis = 0; axis < kAxes; ++axis)
    for (const PositionKind kind : {PositionKind::GridDim, PositionKind::BlockDim})
      threads =
          threads ? Polynomial::product(*threads, values_.integer(nodes.position(kind, axis), point)) : std::nullopt;
  const auto more = step && threads ? Polynomial::sum(*step, *threads, -1) : std::nullopt;
  return more && values_.isAtLeastZero(*more, point);
}

/// Shared memory begins as it was left: a store before all tickets, outside of loops, and a barrier between.
bool Tickets::isReset(StepId write, const std::vector<StepId>& draws) const {
  if (graph_[write].kind != StepKind::Store || graph_[graph_.blockOf(write)].loop != kNoLoop)
    return false;
  return std::none_of(draws.begin(), draws.end(), [&](StepId draw) {
    return indexOf(draw) < indexOf(write) ||
           std::any_of(
               intervals_.begin(), intervals_.end(),
               [&](const AccessInterval& interval) {
                 const auto holds = [&](StepId step) {
                   return std::any_of(interval.steps.begin(), interval.steps.end(),
                                      [&](const auto& each) { return each.first == step; });
                 };
                 return holds(write) && holds(draw);
               });
  });
}

}  // namespace vortex::lang::flow
