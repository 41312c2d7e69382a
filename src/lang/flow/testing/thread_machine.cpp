#include "lang/flow/testing/thread_machine.h"

#include "lang/sema/kernel/roots.h"

#include <algorithm>

namespace vortex::lang::flow::testing {

constexpr int64_t kWarp = 32;

//===-- values ----------------------------------------------------------------------------------------------------===//

__int128 wrapped(MachineType type, __int128 value) {
  unsigned __int128 bits = static_cast<unsigned __int128>(value);
  const unsigned unused = 128u - type.width;
  bits <<= unused;
  return type.isSigned ? static_cast<__int128>(bits) >> unused : static_cast<__int128>(bits >> unused);
}

Number applyNode(Op op, MachineType type, __int128 a, __int128 b) {
  const auto count = static_cast<unsigned>(static_cast<unsigned __int128>(b) & static_cast<unsigned>(type.width - 1));
  using Wide = unsigned __int128;
  switch (op) {
  case Op::Add: return wrapped(type, a + b);
  case Op::Sub: return wrapped(type, a - b);
  case Op::Mul: return wrapped(type, static_cast<__int128>(static_cast<Wide>(a) * static_cast<Wide>(b)));
  case Op::Div: return b == 0 ? 0 : wrapped(type, a / b);
  case Op::Rem: return b == 0 ? 0 : wrapped(type, a % b);
  case Op::CeilDiv: return b == 0 ? 0 : wrapped(type, (a + b - 1) / b);
  case Op::Shl: return wrapped(type, static_cast<__int128>(static_cast<Wide>(a) << count));
  case Op::Shr: return wrapped(type, a >> count);
  case Op::And: return wrapped(type, a & b);
  case Op::Or: return wrapped(type, a | b);
  case Op::Xor: return wrapped(type, a ^ b);
  case Op::Min: return a < b ? a : b;
  case Op::Max: return a < b ? b : a;
  case Op::Eq: return a == b ? 1 : 0;
  case Op::Lt: return a < b ? 1 : 0;
  case Op::Le: return a <= b ? 1 : 0;
  case Op::Select: break;
  }
  return std::nullopt;
}

Number ThreadMachine::position(const Thread& thread, const Node& node) const {
  const uint32_t axis = node.axis();
  switch (node.position()) {
  case PositionKind::ThreadId: return thread.id[axis];
  case PositionKind::ThreadLocalId: return thread.linear;
  case PositionKind::ThreadGlobalId: return block_[axis] * launch_.block[axis] + thread.id[axis];
  case PositionKind::BlockId: return block_[axis];
  case PositionKind::BlockDim: return launch_.block[axis];
  case PositionKind::GridDim: return launch_.grid[axis];
  case PositionKind::WarpId: return thread.linear / kWarp;
  case PositionKind::LaneId: return thread.linear % kWarp;
  }
  return std::nullopt;
}

Number ThreadMachine::evaluate(Thread& thread, const Node& node) {
  switch (node.kind) {
  case NodeKind::Constant: return node.constant();
  case NodeKind::Extent: {
    auto found = launch_.dims.find(node.number());
    return found == launch_.dims.end() ? std::nullopt : Number(found->second);
  }
  case NodeKind::Argument: {
    const Argument& argument = graph_.arguments[node.number()];
    auto found = launch_.scalars.find(argument.variable);
    return found == launch_.scalars.end() || argument.leaf ? std::nullopt : Number(wrapped(node.type, found->second));
  }
  case NodeKind::Position: return position(thread, node);
  case NodeKind::Convert: {
    const Number a = value(thread, node.args[0]);
    return a ? Number(wrapped(node.type, *a)) : std::nullopt;
  }
  case NodeKind::Op: {
    const Number a = value(thread, node.args[0]);
    if (node.op == Op::Select)
      return a ? value(thread, node.args[*a != 0 ? 1 : 2]) : std::nullopt;
    const Number b = value(thread, node.args[1]);
    const bool isBool = node.type == kBool;
    if (isBool && node.op == Op::And && (a == 0 || b == 0))
      return 0;
    if (isBool && node.op == Op::Or && (a == 1 || b == 1))
      return 1;
    return a && b ? applyNode(node.op, node.type, *a, *b) : std::nullopt;
  }
  default: return std::nullopt;
  }
}

Number ThreadMachine::value(Thread& thread, ValueId id) {
  const size_t key = indexOf(graph_.values.resolved(id));
  if (const Known& known = thread.known[key]; known.epoch == kDefined || known.epoch == thread.epoch)
    return known.number;
  const Number out = evaluate(thread, graph_.values[id]);
  thread.known[key] = {out, thread.epoch};
  return out;
}

void ThreadMachine::define(Thread& thread, ValueId value, Number number) {
  thread.known[indexOf(graph_.values.resolved(value))] = {number, kDefined};
  ++thread.epoch;
}

//===-- steps -----------------------------------------------------------------------------------------------------===//

void ThreadMachine::follow(Thread& thread, uint32_t successor) {
  const BlockId from = thread.block, to = graph_[from].successors[successor];
  const Block& block = graph_[to];
  const auto edge = std::find(block.predecessors.begin(), block.predecessors.end(), from) - block.predecessors.begin();
  std::vector<Number> taken;
  for (ValueId phi : block.phis)
    taken.push_back(value(thread, graph_.values.phiOperands(phi)[static_cast<size_t>(edge)]));
  for (size_t i = 0; i < taken.size(); ++i)
    define(thread, block.phis[i], taken[i]);
  thread.block = to;
  thread.at = block.begin;
}

/// Everything at the place becomes poison.
void ThreadMachine::spoil(Thread& thread, PlaceId id) {
  const Place& place = graph_[id];
  const std::vector<LocalId> roots = place.isUnknown() ? place.candidates : std::vector{place.root};
  for (LocalId root : roots) {
    Region& spoiled = region(thread, Place{.root = root, .type = nullptr, .storage = graph_[root].storage});
    spoiled.cells.clear();
    spoiled.fills = {{Key{}, std::nullopt}};
  }
}

void ThreadMachine::access(Thread& thread, StepId, const Step& step) {
  const auto at = cell(thread, step.place);
  if (step.kind == StepKind::Load) {
    if (!at)
      return define(thread, step.value, std::nullopt);
    return define(thread, step.value, !at->region ? Number(0) : read(*at->region, at->key));
  }
  const Number stored = step.useCount == 1 ? value(thread, graph_.uses(step)[0]) : std::nullopt;
  if (!at)
    return spoil(thread, step.place);
  if (!at->region)
    return;
  const Type type = graph_[step.place].type;
  if (type->kind == TypeKind::Scalar || type->kind == TypeKind::Enum) {
    at->region->cells[at->key] = stored;
    return;
  }
  std::erase_if(at->region->cells, [&](const auto& each) {
    return each.first.size() >= at->key.size() && std::equal(at->key.begin(), at->key.end(), each.first.begin());
  });
  // One scalar fills it; of an array as a whole nothing is known.
  const StepId source = graph_.definition(step.value);
  const bool isCopy =
      source != kNoStep && graph_[source].kind == StepKind::Load && graph_[graph_[source].place].type == type;
  at->region->fills.emplace_back(at->key, isCopy ? std::nullopt : stored);
}

void ThreadMachine::atomic(Thread& thread, StepId, const Step& step) {
  const auto at = cell(thread, step.place);
  const Builtin builtin = step.origin->builtin;
  if (step.value != kNoValue)
    define(thread, step.value, std::nullopt);
  if (!at)
    return spoil(thread, step.place);
  if (!at->region || builtin == Builtin::AtomicLoad)
    return;
  const MachineType type = machineType(graph_[step.place].type);
  const Number old = read(*at->region, at->key), operand = value(thread, graph_.uses(step)[0]);
  Number out;
  if (builtin == Builtin::AtomicStore)
    out = operand;
  else if (old && operand && graph_[step.place].type->kind == TypeKind::Scalar &&
           !isFloat(graph_[step.place].type->scalar))
    out = builtin == Builtin::AtomicAdd   ? applyNode(Op::Add, type, *old, *operand)
          : builtin == Builtin::AtomicMin ? applyNode(Op::Min, type, *old, *operand)
          : builtin == Builtin::AtomicMax ? applyNode(Op::Max, type, *old, *operand)
          : builtin == Builtin::AtomicAnd ? applyNode(Op::And, type, *old, *operand)
          : builtin == Builtin::AtomicOr  ? applyNode(Op::Or, type, *old, *operand)
          : builtin == Builtin::AtomicXor ? applyNode(Op::Xor, type, *old, *operand)
                                          : std::nullopt;
  if (launch_.givesTickets && builtin == Builtin::AtomicAdd && step.value != kNoValue)
    define(thread, step.value, old);
  at->region->cells[at->key] = out;
}

static int bitsSet(unsigned __int128 value) {
  int out = 0;
  for (; value != 0; value &= value - 1)
    ++out;
  return out;
}

Number ThreadMachine::compute(Thread& thread, const Step& step) {
  const Expr& origin = *step.origin;
  std::vector<__int128> operands;
  for (ValueId use : graph_.uses(step)) {
    const Number operand = value(thread, use);
    if (!operand)
      return std::nullopt;
    operands.push_back(*operand);
  }
  const auto isInteger = [](Type type) { return type->kind == TypeKind::Scalar && !isFloat(type->scalar); };
  if (operands.empty() || !isInteger(origin.type))
    return std::nullopt;
  const MachineType type = machineType(origin.type);
  const auto bits =
      static_cast<unsigned __int128>(operands[0]) & ((static_cast<unsigned __int128>(1) << type.width) - 1);
  const bool isPower =
      (origin.kind == ExprKind::Binary || origin.kind == ExprKind::Assign) && origin.binaryOp == BinaryOp::Pow;
  if (isPower) {
    if (operands[1] < 0)
      return std::nullopt;
    __int128 out = 1;
    for (__int128 i = 0; i < std::min<__int128>(operands[1], 4096); ++i)
      out = wrapped(type, static_cast<__int128>(static_cast<unsigned __int128>(out) *
                                                static_cast<unsigned __int128>(operands[0])));
    return operands[1] > 4096 ? std::nullopt : Number(out);
  }
  if (origin.kind != ExprKind::Builtin)
    return std::nullopt;
  switch (origin.builtin) {
  case Builtin::Popcount: return bitsSet(bits);
  case Builtin::Clz: {
    int out = 0;
    for (int bit = type.width; bit-- > 0 && !((bits >> bit) & 1);)
      ++out;
    return out;
  }
  case Builtin::Ctz: {
    int out = 0;
    while (out < type.width && !((bits >> out) & 1))
      ++out;
    return out;
  }
  case Builtin::MulHi: return wrapped(type, (operands[0] * operands[1]) >> type.width);
  case Builtin::Sign: return operands[0] > 0 ? 1 : operands[0] < 0 ? -1 : 0;
  default: return std::nullopt;
  }
}

Number ThreadMachine::warp(Thread& self, const std::vector<Thread*>& group, const Step& step) {
  const Builtin builtin = step.origin->builtin;
  const bool isOfBlock = isBlockReduction(builtin);
  const auto inWarp = [&](const Thread* other) { return isOfBlock || other->linear / kWarp == self.linear / kWarp; };
  const MachineType type = machineType(step.origin->type);
  const auto operand = [&](Thread* thread, size_t i) { return value(*thread, graph_.uses(step)[i]); };
  Thread* own = &self;
  if (graph_.uses(step).size() > 1) {  // shuffles
    const Number lane = operand(own, 1);
    if (!lane)
      return std::nullopt;
    const int64_t here = self.linear % kWarp, by = static_cast<int64_t>(wrapped({32, true}, *lane)) & (kWarp - 1);
    const int64_t from = builtin == Builtin::ShuffleXor    ? here ^ by
                         : builtin == Builtin::ShuffleUp   ? here - by
                         : builtin == Builtin::ShuffleDown ? here + by
                                                           : by;
    for (Thread* other : group)
      if (inWarp(other) && other->linear % kWarp == from)
        return operand(other, 0);
    return operand(own, 0);
  }
  Number out;
  __int128 ballot = 0;
  bool any = false, all = true;
  for (Thread* other : group) {
    if (!inWarp(other))
      continue;
    const Number number = operand(other, 0);
    if (!number)
      return std::nullopt;
    any = any || *number != 0;
    all = all && *number != 0;
    ballot |= *number != 0 ? static_cast<__int128>(1) << (other->linear % kWarp) : 0;
    if (!out)
      out = number;
    else
      out = applyNode(builtin == Builtin::WarpMax || builtin == Builtin::BlockMax   ? Op::Max
                      : builtin == Builtin::WarpMin || builtin == Builtin::BlockMin ? Op::Min
                                                                                    : Op::Add,
                      type, *out, *number);
  }
  switch (builtin) {
  case Builtin::WarpBallot: return ballot;
  case Builtin::BlockAny:
  case Builtin::WarpAny: return any ? 1 : 0;
  case Builtin::BlockAll:
  case Builtin::WarpAll: return all ? 1 : 0;
  default:
    if (step.origin->type->kind != TypeKind::Scalar || isFloat(step.origin->type->scalar))
      return std::nullopt;
    return out;
  }
}

Outcome ThreadMachine::step(const std::vector<Thread*>& group, StepId id) {
  const Step& step = graph_[id];
  std::vector<Number> results;
  if (step.kind == StepKind::Warp)
    for (Thread* thread : group)
      results.push_back(warp(*thread, group, step));
  for (size_t i = 0; i < group.size(); ++i) {
    Thread& thread = *group[i];
    thread.at = StepId{indexOf(id) + 1};
    switch (step.kind) {
    case StepKind::Jump: follow(thread, 0); break;
    case StepKind::Branch: {
      const Number decided = value(thread, step.value);
      if (!decided)
        return Outcome::Undecided;
      follow(thread, *decided != 0 ? 0 : 1);
      break;
    }
    case StepKind::Return: thread.isDone = true; break;
    case StepKind::Declare: {
      Region& begun = region(thread, graph_[step.place]);
      if (i > 0 && graph_[graph_[step.place].root].storage != Storage::Local &&
          graph_[graph_[step.place].root].storage != Storage::Variable)
        break;
      begun = {};
      if (step.index == kBeginsAsZeros)
        begun.fills.emplace_back(Key{}, 0);
      break;
    }
    case StepKind::Load:
    case StepKind::Store: access(thread, id, step); break;
    case StepKind::Atomic: atomic(thread, id, step); break;
    case StepKind::Item: {
      const Number at = value(thread, graph_.uses(step)[0]);
      const auto& list = step.origin->intList;
      define(thread, step.value,
             at && *at < static_cast<__int128>(list.size())
                 ? Number(wrapped(graph_.values.type(step.value), list[static_cast<size_t>(*at)]))
                 : std::nullopt);
      break;
    }
    case StepKind::Compute: define(thread, step.value, compute(thread, step)); break;
    case StepKind::Warp: define(thread, step.value, results[i]); break;
    case StepKind::Stage:
    case StepKind::Tile:
      if (step.value != kNoValue)
        define(thread, step.value, std::nullopt);
      for (const Access& access : graph_.accessesOf(step))
        if (access.mode != AccessMode::Read)
          spoil(thread, access.place);
      break;
    case StepKind::Output: {
      const bool isElement =
          !graph_[step.place].path.empty() && graph_[step.place].path.back().kind == ProjectionKind::At;
      const auto at = isElement && step.useCount == 1 ? cell(thread, step.place) : std::nullopt;
      if (!at)
        spoil(thread, step.place);
      else if (at->region)
        at->region->cells[at->key] = value(thread, graph_.uses(step)[0]);
      break;
    }
    case StepKind::Bind:
      if (const Number bound = value(thread, step.value))
        launch_.dims[step.index] = static_cast<int64_t>(*bound);
      break;
    default: break;
    }
  }
  return Outcome::Done;
}

Outcome ThreadMachine::runBlock() {
  threads_.clear();
  for (int64_t z = 0; z < launch_.block[2]; ++z)
    for (int64_t y = 0; y < launch_.block[1]; ++y)
      for (int64_t x = 0; x < launch_.block[0]; ++x) {
        Thread& thread = threads_.emplace_back();
        thread.id = {x, y, z};
        thread.known.resize(graph_.values.size());
        thread.linear = static_cast<int64_t>(threads_.size()) - 1;
      }
  std::vector<Thread*> group;
  while (true) {
    group.clear();
    bool anyDone = false;
    for (Thread& thread : threads_) {
      anyDone = anyDone || thread.isDone;
      if (thread.isDone || (!group.empty() && indexOf(thread.at) > indexOf(group[0]->at)))
        continue;
      if (!group.empty() && indexOf(thread.at) < indexOf(group[0]->at))
        group.clear();
      group.push_back(&thread);
    }
    if (group.empty())
      return Outcome::Done;
    const StepId id = group[0]->at;
    if (graph_[id].kind == StepKind::Barrier && group.size() != threads_.size())
      return Outcome::Stuck;
    steps_ += group.size();
    if (steps_ > launch_.maxSteps)
      return Outcome::TooLong;
    if (watch_)
      watch_(id, group);
    if (const Outcome outcome = step(group, id); outcome != Outcome::Done)
      return outcome;
  }
}

Outcome ThreadMachine::run() {
  for (block_[2] = 0; block_[2] < launch_.grid[2]; ++block_[2])
    for (block_[1] = 0; block_[1] < launch_.grid[1]; ++block_[1])
      for (block_[0] = 0; block_[0] < launch_.grid[0]; ++block_[0])
        if (const Outcome outcome = runBlock(); outcome != Outcome::Done)
          return outcome;
  return Outcome::Done;
}

}  // namespace vortex::lang::flow::testing
