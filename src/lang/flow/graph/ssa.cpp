// Slots, labels and phis.
#include "lang/flow/graph/builder.h"

#include <algorithm>

#include "base/check.h"

namespace vortex::lang::flow {

constexpr LoopId kUnasked{UINT32_MAX - 1};

/// Room for a function of average size: without it a fifth of the time goes into growing.
GraphBuilder::GraphBuilder(Graph& graph) : graph_(graph) {
  graph_.steps_.reserve(128);
  graph_.stepBlocks_.reserve(128);
  graph_.blocks.reserve(16);
  graph_.locals.reserve(32);
  graph_.places.reserve(32);
  roots_.reserve(32);
  slots_.reserve(32);
  seen_.reserve(32);
  column_.reserve(32);
}

SlotId GraphBuilder::newSlot(MachineType type) {
  slots_.push_back({.type = type});
  seen_.push_back(0);
  column_.push_back(0);
  return static_cast<SlotId>(slots_.size() - 1);
}

SlotId GraphBuilder::newAliasSlot() {
  const SlotId slot = newSlot({});
  slots_[slot].isAlias = true;
  return slot;
}

/// Only the first change since the last label matters to it, and none of slots made since.
void GraphBuilder::write(SlotId slot, uint32_t now) {
  Slot& entry = slots_[slot];
  if (slot < slotsAtMark_ && entry.loggedAt <= lastMark_) {
    trail_.push_back({slot, entry.now, entry.loggedAt});
    entry.loggedAt = static_cast<uint32_t>(trail_.size());
  }
  entry.now = now;
}

void GraphBuilder::rewind(size_t mark) {
  while (trail_.size() > mark) {
    const Undo& undo = trail_.back();
    slots_[undo.slot].now = undo.before;
    slots_[undo.slot].loggedAt = undo.loggedBefore;
    trail_.pop_back();
  }
}

void GraphBuilder::note() {
  lastMark_ = trail_.size();
  slotsAtMark_ = static_cast<SlotId>(slots_.size());
}

//===-- blocks ----------------------------------------------------------------------------------------------------===//

BlockId GraphBuilder::newBlock(LoopId loop) {
  Block& block = graph_.blocks.emplace_back();
  block.begin = nextStep();
  block.loop = loop;
  at_ = BlockId{static_cast<uint32_t>(graph_.blocks.size() - 1)};
  loop_ = loop;
  return at_;
}

void GraphBuilder::startEntry() { newBlock(kNoLoop); }

Label GraphBuilder::label(LoopId exitOf) {
  note();
  Label out;
  out.mark = trail_.size();
  out.slots = static_cast<SlotId>(slots_.size());
  out.exitOf = exitOf;
  out.loop = exitOf == kNoLoop ? loop_ : graph_[exitOf].parent;
  return out;
}

Label::Edge GraphBuilder::edge(const Label& to, uint32_t successor) {
  Label::Edge out{at_, successor, {}};
  ++stamp_;
  for (size_t i = to.mark; i < trail_.size(); ++i) {
    const SlotId slot = trail_[i].slot;
    if (slot < to.slots && seen_[slot] != stamp_) {
      seen_[slot] = stamp_;
      out.changes.emplace_back(slot, slots_[slot].now);
    }
  }
  return out;
}

/// The terminator has been emitted.
void GraphBuilder::endBlock(uint32_t successors) {
  Block& block = graph_.blocks[indexOf(at_)];
  block.end = nextStep();
  block.successors.assign(successors, kNoBlock);
  at_ = kNoBlock;
}

void GraphBuilder::jump(Label& to, const Expr* origin) {
  if (!isReachable())
    return;
  landOutside(to, origin);
  emit(StepKind::Jump, origin);
  to.edges.push_back(edge(to, 0));
  endBlock(1);
}

/// Blocks of their own on a way out of several loops, so that each loop's exits have predecessors in it only.
void GraphBuilder::landOutside(Label& to, const Expr* origin) {
  while (loop_ != to.loop && loop_ != to.exitOf) {
    const LoopId left = loop_;
    Label landing;
    landing.mark = to.mark;
    landing.slots = to.slots;
    landing.loop = graph_[left].parent;
    landing.exitOf = left;
    emit(StepKind::Jump, origin);
    landing.edges.push_back(edge(landing, 0));
    endBlock(1);
    // Variables of the scopes that are left stay readable: an `Output` may follow. Only the label's slots can change here.
    const BlockId block = newBlock(landing.loop);
    join(landing, block);
  }
}

void GraphBuilder::branch(ValueId condition, Label& then, Label& otherwise, const Expr* origin) {
  if (!isReachable())
    return;
  emit(StepKind::Branch, origin).value = condition;
  then.edges.push_back(edge(then, 0));
  otherwise.edges.push_back(edge(otherwise, 1));
  endBlock(2);
}

bool GraphBuilder::start(Label& label) {
  VORTEX_CHECK(!isReachable(), "the block before is not ended");
  rewind(label.mark);
  if (label.edges.empty()) {
    loop_ = label.loop;
    note();
    return false;
  }
  const BlockId block = newBlock(label.loop);
  note();
  join(label, block);
  return true;
}

Step& GraphBuilder::leave(const Expr* origin) {
  const StepId step = nextStep();
  emit(StepKind::Return, origin);
  endBlock(0);
  return graph_[step];
}

//===-- joins -----------------------------------------------------------------------------------------------------===//

void GraphBuilder::join(Label& label, BlockId block) {
  const size_t count = label.edges.size();
  for (const Label::Edge& each : label.edges) {
    graph_.blocks[indexOf(block)].predecessors.push_back(each.from);
    graph_.blocks[indexOf(each.from)].successors[each.successor] = block;
  }
  if (label.exitOf != kNoLoop)
    graph_.loops[indexOf(label.exitOf)].exits.push_back(block);
  std::vector<SlotId> changed;
  std::vector<uint32_t> operands;  // a row of `count` for each changed slot
  ++stamp_;
  for (size_t i = 0; i < count; ++i)
    for (const auto& [slot, now] : label.edges[i].changes) {
      if (seen_[slot] != stamp_) {
        seen_[slot] = stamp_;
        column_[slot] = static_cast<uint32_t>(changed.size());
        changed.push_back(slot);
        operands.insert(operands.end(), count, slots_[slot].now);
      }
      operands[column_[slot] * count + i] = now;
    }
  for (size_t i = 0; i < changed.size(); ++i) {
    const std::span<const uint32_t> row(operands.data() + i * count, count);
    const SlotId slot = changed[i];
    if (!slots_[slot].isAlias) {
      write(slot, joinValues(block, row, label.exitOf, slots_[slot].type));
      continue;
    }
    PlaceId place{row[0]};
    for (uint32_t other : row)
      place = merge(place, PlaceId{other});
    writeAlias(slot, label.exitOf == kNoLoop ? place : outside(place, label.exitOf));
  }
}

ValueId GraphBuilder::joinValues(BlockId block, std::span<const uint32_t> row, LoopId exitOf, MachineType type) {
  const bool isOne = std::all_of(row.begin(), row.end(), [&](uint32_t other) { return other == row[0]; });
  const ValueId first{row[0]};
  if (isOne && (first == kNoValue || exitOf == kNoLoop || !graph_.isInside(loopOf(first), exitOf)))
    return first;
  std::vector<ValueId> operands;
  for (uint32_t each : row)
    operands.push_back(ValueId{each} == kNoValue ? undefined(type) : ValueId{each});
  const ValueId phi = graph_.values.phi(type, block);
  graph_.values.setPhiOperands(phi, std::move(operands));
  graph_.blocks[indexOf(block)].phis.push_back(phi);
  return phi;
}

/// The innermost loop that the value is computed in.
LoopId GraphBuilder::loopOf(ValueId value) {
  valueLoops_.resize(graph_.values.size(), kUnasked);
  std::vector<ValueId> pending{value};
  while (!pending.empty()) {
    const ValueId at = pending.back();
    if (valueLoops_[indexOf(at)] != kUnasked) {
      pending.pop_back();
      continue;
    }
    LoopId out = kNoLoop;
    bool isReady = true;
    if (graph_.values[at].kind == NodeKind::Phi) {
      out = graph_[graph_.values.phiBlock(graph_.values.resolved(at))].loop;
    } else if (const StepId step = graph_.definition(at); step != kNoStep) {
      out = graph_[graph_.blockOf(step)].loop;
    } else {
      for (ValueId operand : graph_.values.operands(at)) {
        if (valueLoops_[indexOf(operand)] == kUnasked) {
          pending.push_back(operand);
          isReady = false;
        } else if (const LoopId inner = valueLoops_[indexOf(operand)];
                   inner != kNoLoop && (out == kNoLoop || graph_.isInside(inner, out))) {
          out = inner;
        }
      }
    }
    if (!isReady)
      continue;
    valueLoops_[indexOf(at)] = out;
    pending.pop_back();
  }
  return valueLoops_[indexOf(value)];
}

//===-- loops -----------------------------------------------------------------------------------------------------===//

OpenLoop GraphBuilder::openLoop(const Expr* origin, const std::vector<SlotId>& assigned) {
  OpenLoop out;
  out.loop = LoopId{static_cast<uint32_t>(graph_.loops.size())};
  Loop& loop = graph_.loops.emplace_back();
  loop.origin = origin;
  loop.parent = loop_;
  loop.depth = loop_ == kNoLoop ? 1 : graph_[loop_].depth + 1;
  loop.before = at_;
  emit(StepKind::Jump, origin);
  const BlockId before = at_;
  endBlock(1);
  const BlockId header = newBlock(out.loop);
  graph_.loops[indexOf(out.loop)].header = header;
  graph_.blocks[indexOf(before)].successors[0] = header;
  graph_.blocks[indexOf(header)].predecessors.push_back(before);
  for (SlotId slot : assigned) {
    if (slots_[slot].isAlias)
      continue;
    const ValueId initial = value(slot) == kNoValue ? undefined(slots_[slot].type) : value(slot);
    const ValueId phi = graph_.values.phi(slots_[slot].type, header);
    graph_.blocks[indexOf(header)].phis.push_back(phi);
    out.slots.push_back(slot);
    out.phis.push_back(phi);
    out.operands.push_back({initial});
    write(slot, phi);
  }
  return out;
}

void GraphBuilder::repeat(OpenLoop& loop, const Expr* origin) {
  if (!isReachable())
    return;
  const BlockId from = at_, header = graph_[loop.loop].header;
  emit(StepKind::Jump, origin);
  endBlock(1);
  graph_.blocks[indexOf(from)].successors[0] = header;
  graph_.blocks[indexOf(header)].predecessors.push_back(from);
  graph_.loops[indexOf(loop.loop)].latches.push_back(from);
  for (size_t i = 0; i < loop.slots.size(); ++i)
    loop.operands[i].push_back(value(loop.slots[i]) == kNoValue ? undefined(type(loop.slots[i]))
                                                                : value(loop.slots[i]));
}

void GraphBuilder::closeLoop(const OpenLoop& loop) {
  VORTEX_CHECK(!isReachable(), "the loop's body is not ended");
  for (size_t i = 0; i < loop.phis.size(); ++i)
    graph_.values.setPhiOperands(loop.phis[i], loop.operands[i]);
  graph_.loops[indexOf(loop.loop)].last = BlockId{static_cast<uint32_t>(graph_.blocks.size() - 1)};
}

//===-- the end ---------------------------------------------------------------------------------------------------===//

/// A phi of itself and one other value is that value, unless it carries it out of a loop.
bool GraphBuilder::simplifyPhis() {
  std::vector<LoopId> exitOf(graph_.blocks.size(), kNoLoop);
  for (const Loop& loop : graph_.loops)
    for (BlockId exit : loop.exits)
      exitOf[indexOf(exit)] = LoopId{static_cast<uint32_t>(&loop - graph_.loops.data())};
  bool changed = false;
  for (size_t block = 0; block < graph_.blocks.size(); ++block)
    std::erase_if(graph_.blocks[block].phis, [&](ValueId phi) {
      const ValueId only = soleOperand(phi);
      if (only == kNoValue || (exitOf[block] != kNoLoop && graph_.isInside(loopOf(only), exitOf[block])))
        return false;
      graph_.values.replacePhi(phi, only);
      changed = true;
      return true;
    });
  return changed;
}

ValueId GraphBuilder::soleOperand(ValueId phi) const {
  ValueId only = kNoValue;
  for (ValueId operand : graph_.values.phiOperands(phi)) {
    const ValueId value = graph_.values.resolved(operand);
    if (value == phi || value == only)
      continue;
    if (only != kNoValue)
      return kNoValue;
    only = value;
  }
  return only;
}

void GraphBuilder::resolveAll() {
  const auto resolve = [&](ValueId& value) {
    if (value != kNoValue)
      value = graph_.values.resolved(value);
  };
  for (Step& step : graph_.steps_)
    resolve(step.value);
  for (ValueId& use : graph_.uses_)
    resolve(use);
  const auto resolveDims = [&](std::vector<DimRange>& dims) {
    for (DimRange& dim : dims) {
      resolve(dim.begin);
      resolve(dim.end);
    }
  };
  for (Place& place : graph_.places) {
    resolveDims(place.dims);
    for (Projection& each : place.path) {
      resolve(each.index);
      resolveDims(each.dims);
    }
  }
  for (Subscript& subscript : graph_.subscripts)
    for (Subscript::Part& part : subscript.parts)
      for (ValueId* value : {&part.begin, &part.length, &part.extent})
        resolve(*value);
  for (Loop& loop : graph_.loops)
    if (loop.counter)
      for (ValueId* value : {&loop.counter->phi, &loop.counter->value, &loop.counter->begin, &loop.counter->end,
                             &loop.counter->step, &loop.counter->trips, &loop.counter->isWithin})
        resolve(*value);
  for (const Block& block : graph_.blocks)
    for (ValueId phi : block.phis) {
      std::vector<ValueId> operands(graph_.values.phiOperands(phi).begin(), graph_.values.phiOperands(phi).end());
      for (ValueId& operand : operands)
        resolve(operand);
      graph_.values.setPhiOperands(phi, std::move(operands));
    }
}

void GraphBuilder::finish() {
  do
    valueLoops_.clear();
  while (simplifyPhis());
  resolveAll();
}

//===-- steps -----------------------------------------------------------------------------------------------------===//

Step& GraphBuilder::emit(StepKind kind, const Expr* origin) {
  VORTEX_CHECK(isReachable(), "a step that nothing reaches");
  Step& step = graph_.steps_.emplace_back();
  step.kind = kind;
  step.origin = origin;
  step.frame = frame;
  step.firstUse = static_cast<uint32_t>(graph_.uses_.size());
  step.firstAccess = static_cast<uint32_t>(graph_.accesses.size());
  graph_.stepBlocks_.push_back(at_);
  return step;
}

void GraphBuilder::addUses(Step& step, std::span<const ValueId> uses) {
  graph_.uses_.insert(graph_.uses_.end(), uses.begin(), uses.end());
  step.useCount = static_cast<uint16_t>(step.useCount + uses.size());
}

void GraphBuilder::addAccess(Step& step, PlaceId place, AccessMode mode, const Expr* origin) {
  const StepId id{static_cast<uint32_t>(&step - graph_.steps_.data())};
  graph_.accesses.push_back({id, place, mode, origin});
  ++step.accessCount;
}

static StepId idOf(const Step& step, const std::vector<Step>& steps) {
  return StepId{static_cast<uint32_t>(&step - steps.data())};
}

ValueId GraphBuilder::loaded(Step& step, MachineType type) {
  return step.value = graph_.values.load(idOf(step, graph_.steps_), type);
}

ValueId GraphBuilder::ticket(Step& step, MachineType type) {
  return step.value = graph_.values.ticket(idOf(step, graph_.steps_), type);
}

ValueId GraphBuilder::computed(Step& step, MachineType type) {
  step.value = graph_.values.unknown(nullptr, type);
  graph_.definitions_.resize(graph_.values.size(), kNoStep);
  graph_.definitions_[indexOf(step.value)] = idOf(step, graph_.steps_);
  return step.value;
}

}  // namespace vortex::lang::flow
