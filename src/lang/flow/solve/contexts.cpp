#include "lang/flow/solve/contexts.h"

#include <algorithm>
#include <numeric>

namespace vortex::lang::flow {

constexpr size_t kMostNested = 2;
/// Steps this small take longer than any launch to wrap 64 bits.
constexpr __int128 kSmallStep = 1 << 16;

Contexts::Contexts(const Graph& graph, uint32_t prologue, uint32_t modulus, bool follows)
    : graph_(graph), prologue_(prologue), modulus_(modulus), counters_(graph.loops.size()),
      followed_(graph.blocks.size()), counts_(graph.blocks.size(), 1) {
  std::vector<size_t> depth(graph.loops.size());  // followed loops around it, itself included
  for (size_t i = 0; follows && i < graph.loops.size(); ++i) {
    const Loop& loop = graph.loops[i];
    const size_t around = loop.parent == kNoLoop ? 0 : depth[indexOf(loop.parent)];
    depth[i] = around;
    if (around >= kMostNested)
      continue;
    counters_[i] = exactCounter(loop);
    if (!counters_[i])
      continue;
    ++depth[i];
    loopOfPhi_[indexOf(counters_[i]->phi)] = LoopId{static_cast<uint32_t>(i)};
  }
  for (size_t i = 0; i < graph.blocks.size(); ++i) {
    for (LoopId loop = graph.blocks[i].loop; loop != kNoLoop; loop = graph[loop].parent)
      if (isFollowed(loop))
        followed_[i].insert(followed_[i].begin(), loop);
    for (size_t k = 0; k < followed_[i].size(); ++k)
      counts_[i] *= classes();
  }
}

//===-- counters --------------------------------------------------------------------------------------------------===//

std::optional<Contexts::Exact> Contexts::exactCounter(const Loop& loop) const {
  const LoopId id{static_cast<uint32_t>(&loop - graph_.loops.data())};
  if (loop.counter) {
    const Counter& counter = *loop.counter;
    Exact out{counter.phi, counter.begin, 1, std::nullopt};
    if (counter.isPosition) {
      out.begin = graph_.values.phiOperands(counter.phi)[0];
      if (graph_.values.isConstant(counter.trips))
        out.trips = graph_.values[counter.trips].constant();
    } else {
      out.step = graph_.values[counter.step].constant();
    }
    return isUsed(id, out.phi) ? std::optional(out) : std::nullopt;
  }
  for (ValueId phi : graph_[loop.header].phis)
    if (auto found = exactPhi(loop, phi); found && isUsed(id, phi))
      return found;
  return std::nullopt;
}

/// A variable that goes up by a constant in every iteration and cannot wrap: of 64 bits, or below what the header compares it with.
std::optional<Contexts::Exact> Contexts::exactPhi(const Loop& loop, ValueId phi) const {
  const auto operands = graph_.values.phiOperands(phi);
  if (operands.size() < 2)
    return std::nullopt;
  Exact out{phi, operands[0], 0, std::nullopt};
  for (ValueId operand : operands.subspan(1)) {
    const Node& node = graph_.values[operand];
    if (node.kind != NodeKind::Op || (node.op != Op::Add && node.op != Op::Sub))
      return std::nullopt;
    const bool isSecond = graph_.values.operand(operand, 1) == phi;
    if (!isSecond && graph_.values.operand(operand, 0) != phi)
      return std::nullopt;
    const ValueId by = graph_.values.operand(operand, isSecond ? 0 : 1);
    if (!graph_.values.isConstant(by) || (node.op == Op::Sub && isSecond))
      return std::nullopt;
    const __int128 step = node.op == Op::Sub ? -graph_.values[by].constant() : graph_.values[by].constant();
    if (step == 0 || (out.step != 0 && step != out.step))
      return std::nullopt;
    out.step = step;
  }
  const Step& test = graph_.terminator(loop.header);
  if (test.kind == StepKind::Branch && out.step == 1) {
    const Node& node = graph_.values[test.value];
    if (node.kind == NodeKind::Op && node.op == Op::Lt && graph_.values.operand(test.value, 0) == phi &&
        graph_.isInside(graph_[loop.header].successors[0], LoopId{static_cast<uint32_t>(&loop - graph_.loops.data())}))
      return out;
  }
  const MachineType type = graph_.values.type(phi);
  const bool isUp = out.step > 0 && out.step <= kSmallStep;
  const bool beginsSmall = graph_.values.isConstant(out.begin) && graph_.values[out.begin].constant() <= kSmallStep;
  return type.width == 64 && isUp && beginsSmall ? std::optional(out) : std::nullopt;
}

/// The counter decides a branch in the loop, other than whether the loop goes on, or which of an array is meant.
bool Contexts::isUsed(LoopId loop, ValueId phi) const {
  std::unordered_map<uint32_t, bool> known{{indexOf(phi), true}};
  const auto depends = [&](ValueId value) {
    std::vector<ValueId> pending{graph_.values.resolved(value)};
    while (!pending.empty()) {
      const ValueId at = pending.back();
      if (known.contains(indexOf(at))) {
        pending.pop_back();
        continue;
      }
      const Node& node = graph_.values[at];
      const size_t count = node.kind == NodeKind::Op ? operandCount(node.op) : node.kind == NodeKind::Convert ? 1 : 0;
      bool isReady = true, does = false;
      for (size_t i = 0; i < count; ++i) {
        const ValueId operand = graph_.values.operand(at, i);
        auto found = known.find(indexOf(operand));
        if (found == known.end()) {
          pending.push_back(operand);
          isReady = false;
        } else {
          does = does || found->second;
        }
      }
      if (!isReady)
        continue;
      known[indexOf(at)] = does;
      pending.pop_back();
    }
    return known.at(indexOf(graph_.values.resolved(value)));
  };
  const auto choosesSlot = [&](PlaceId id) {
    for (const Projection& each : graph_[id].path)
      if (each.kind == ProjectionKind::Slot && depends(each.index))
        return true;
    return false;
  };
  for (uint32_t i = 0; i < graph_.blocks.size(); ++i) {
    const BlockId block{i};
    if (!graph_.isInside(block, loop))
      continue;
    if (const Step& last = graph_.terminator(block);
        last.kind == StepKind::Branch && block != graph_[loop].header && depends(last.value))
      return true;
    for (uint32_t step = indexOf(graph_[block].begin); step < indexOf(graph_[block].end); ++step)
      for (const Access& access : graph_.accessesOf(graph_[StepId{step}]))
        if (choosesSlot(access.place))
          return true;
  }
  return false;
}

//===-- edges -----------------------------------------------------------------------------------------------------===//

uint32_t Contexts::nextClass(uint32_t number) const {
  if (number + 1 < prologue_)
    return number + 1;
  const uint32_t iteration = number < prologue_ ? number + 1 : number - prologue_ + 1;
  return prologue_ + iteration % modulus_;
}

uint32_t Contexts::iteration(LoopId loop, BlockId at, Context context) const {
  uint32_t rest = static_cast<uint32_t>(context);
  for (LoopId each : followed_[indexOf(at)]) {
    if (each == loop)
      return rest % classes();
    rest /= classes();
  }
  return 0;
}

Context Contexts::contextIn(BlockId block, const std::vector<std::pair<LoopId, uint32_t>>& classes) const {
  uint32_t out = 0, factor = 1;
  for (LoopId loop : followed_[indexOf(block)]) {
    auto found = std::find_if(classes.begin(), classes.end(), [&](const auto& each) { return each.first == loop; });
    // A loop that is entered begins with its first iteration.
    const uint32_t first = prologue_ > 0 ? 0 : prologue_;
    out += factor * (found == classes.end() ? first : found->second);
    factor *= this->classes();
  }
  return Context{out};
}

std::optional<Context> Contexts::follow(BlockId from, Context context, uint32_t successor) const {
  const Block& block = graph_[from];
  const BlockId to = block.successors[successor];
  if (!followed_[indexOf(from)].empty())
    if (const Step& last = graph_.terminator(from); last.kind == StepKind::Branch)
      if (const auto decided = known(last.value, from, context).number();
          decided && (*decided != 0) != (successor == 0))
        return std::nullopt;
  std::vector<std::pair<LoopId, uint32_t>> classes;
  for (LoopId loop : followed_[indexOf(from)]) {
    const uint32_t now = iteration(loop, from, context);
    classes.emplace_back(loop, graph_[loop].header == to ? nextClass(now) : now);
  }
  return contextIn(to, classes);
}

//===-- values ----------------------------------------------------------------------------------------------------===//

static Known number(__int128 value) { return {value, value, 1, 0}; }

static Known anyOf(MachineType type) { return {type.lowest(), type.highest(), 1, 0}; }

static __int128 residueOf(__int128 value, __int128 modulus) { return ((value % modulus) + modulus) % modulus; }

static __int128 commonDivisor(__int128 a, __int128 b) {
  while (b != 0)
    std::tie(a, b) = std::pair(b, a % b);
  return a < 0 ? -a : a;
}

/// A number is its own residue, whatever the modulus.
static __int128 modulusOf(const Known& known) { return known.number() ? 0 : known.modulus; }
static __int128 valueModulo(const Known& known) { return known.number() ? known.low : known.residue; }

static Known made(__int128 low, __int128 high, __int128 modulus, __int128 residue, MachineType type) {
  if (low < type.lowest() || high > type.highest())
    return anyOf(type);
  if (low == high)
    return number(low);
  return {low, high, std::max<__int128>(modulus, 1), modulus > 0 ? residueOf(residue, modulus) : 0};
}

/// Of a counter in this visit.
std::optional<Known> Contexts::counterValue(ValueId phi, const Asked& asked) const {
  auto found = loopOfPhi_.find(indexOf(phi));
  if (found == loopOfPhi_.end() || !graph_.isInside(asked.at, found->second))
    return std::nullopt;
  const Exact& exact = *counters_[indexOf(found->second)];
  if (!graph_.values.isConstant(exact.begin))
    return std::nullopt;
  const __int128 begin = graph_.values[exact.begin].constant();
  const uint32_t iterations = iteration(found->second, asked.at, asked.context);
  if (iterations < prologue_)
    return number(begin + exact.step * iterations);
  const uint32_t residue = iterations - prologue_;
  const uint32_t first =
      prologue_ + static_cast<uint32_t>(residueOf(static_cast<__int128>(residue) - prologue_, modulus_));
  const MachineType type = graph_.values.type(phi);
  __int128 low = begin + exact.step * first;
  __int128 high = exact.trips ? begin + exact.step * *exact.trips : exact.step > 0 ? type.highest() : type.lowest();
  if (low > high)
    std::swap(low, high);
  const __int128 modulus = (exact.step < 0 ? -exact.step : exact.step) * modulus_;
  return made(low, std::max(low, high), modulus, begin + exact.step * first, type);
}

/// Comparisons with what the counter began with, where that is no number.
std::optional<bool> Contexts::againstBegin(const Node& node, const Asked& asked) const {
  if (node.op != Op::Eq && node.op != Op::Lt && node.op != Op::Le)
    return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    const ValueId phi = graph_.values.resolved(node.args[side]), other = graph_.values.resolved(node.args[1 - side]);
    auto found = loopOfPhi_.find(indexOf(phi));
    if (found == loopOfPhi_.end() || !graph_.isInside(asked.at, found->second))
      continue;
    const Exact& exact = *counters_[indexOf(found->second)];
    if (graph_.values.resolved(exact.begin) != other || prologue_ == 0)
      continue;
    const bool isFirst = iteration(found->second, asked.at, asked.context) == 0;
    if (isFirst)
      return node.op != Op::Lt;
    const bool isAbove = exact.step > 0;
    return node.op != Op::Eq && isAbove == (side == 1);
  }
  return std::nullopt;
}

Known Contexts::known(ValueId value, BlockId at, Context context) const {
  Asked asked{at, context, {}};
  return ask(value, asked);
}

Known Contexts::ask(ValueId value, Asked& asked) const {
  const ValueId id = graph_.values.resolved(value);
  if (auto found = asked.found.find(indexOf(id)); found != asked.found.end())
    return found->second;
  const Known out = compute(id, asked);
  asked.found[indexOf(id)] = out;
  return out;
}

static Known remainder(const Known& a, __int128 by, MachineType type) {
  if (a.low < 0 || by <= 0)
    return anyOf(type);
  if (modulusOf(a) % by == 0)
    return number(residueOf(valueModulo(a), by));
  if (a.high < by)
    return a;
  return made(0, by - 1, commonDivisor(a.modulus, by), a.residue, type);
}

static Known compared(Op op, const Known& a, const Known& b) {
  if (op == Op::Lt || op == Op::Le) {
    const bool isStrict = op == Op::Lt;
    if (isStrict ? a.high < b.low : a.high <= b.low)
      return number(1);
    if (isStrict ? a.low >= b.high : a.low > b.high)
      return number(0);
    return {0, 1, 1, 0};
  }
  if (a.number() && b.number())
    return number(*a.number() == *b.number());
  const __int128 common = commonDivisor(modulusOf(a), modulusOf(b));
  const bool differ = common > 1 && residueOf(valueModulo(a) - valueModulo(b), common) != 0;
  return differ || a.high < b.low || b.high < a.low ? number(0) : Known{0, 1, 1, 0};
}

Known Contexts::compute(ValueId value, Asked& asked) const {
  const Node& node = graph_.values[value];
  const MachineType type = node.type;
  if (node.kind == NodeKind::Constant)
    return number(node.constant());
  if (node.kind == NodeKind::Phi)
    return counterValue(value, asked).value_or(anyOf(type));
  if (node.kind == NodeKind::Convert) {
    const Known a = ask(node.args[0], asked);
    if (const auto known = a.number())
      return number(type.wrap(*known));
    return made(a.low, a.high, a.modulus, a.residue, type);
  }
  if (node.kind != NodeKind::Op)
    return anyOf(type);
  if (const auto decided = againstBegin(node, asked))
    return number(*decided);
  const Known a = ask(node.args[0], asked), b = ask(node.args[1], asked);
  if (node.op == Op::Select)
    return !a.number() ? anyOf(type) : *a.number() != 0 ? b : ask(node.args[2], asked);
  if (a.number() && b.number())
    return number(applyOp(node.op, type, *a.number(), *b.number()));
  const bool isBool = type == kBool;
  switch (node.op) {
  case Op::Add:
    return made(a.low + b.low, a.high + b.high, commonDivisor(modulusOf(a), modulusOf(b)),
                valueModulo(a) + valueModulo(b), type);
  case Op::Sub:
    return made(a.low - b.high, a.high - b.low, commonDivisor(modulusOf(a), modulusOf(b)),
                valueModulo(a) - valueModulo(b), type);
  case Op::Mul: {
    const auto by = a.number() ? a.number() : b.number();
    const Known& other = a.number() ? b : a;
    constexpr __int128 kMost = static_cast<__int128>(1) << 62;
    if (!by || *by < 0 || *by > kMost || other.high > kMost || other.low < -kMost)
      return anyOf(type);
    return made(other.low * *by, other.high * *by, other.modulus * *by, other.residue * *by, type);
  }
  case Op::Rem: return b.number() ? remainder(a, *b.number(), type) : anyOf(type);
  case Op::And:
    if (isBool)
      return a.high == 0 || b.high == 0 ? number(0) : anyOf(type);
    for (const auto& [mask, other] : {std::pair(a, b), std::pair(b, a)})
      if (mask.number() && *mask.number() > 0 && (*mask.number() & (*mask.number() + 1)) == 0)
        return remainder(other, *mask.number() + 1, type);
    return anyOf(type);
  case Op::Or: return isBool && (a.low == 1 || b.low == 1) ? number(1) : anyOf(type);
  case Op::Eq:
  case Op::Lt:
  case Op::Le: return compared(node.op, a, b);
  default: return anyOf(type);
  }
}

}  // namespace vortex::lang::flow
