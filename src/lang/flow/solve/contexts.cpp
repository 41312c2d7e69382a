#include "lang/flow/solve/contexts.h"

#include <algorithm>
#include <numeric>

#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {

constexpr size_t kMostNested = 2;
/// Steps this small take longer than any launch to wrap 64 bits.
constexpr __int128 kSmallStep = 1 << 16;
constexpr __int128 kNeverReached = static_cast<__int128>(1) << 62;

Contexts::Contexts(const Graph& graph, uint32_t prologue, uint32_t modulus, bool follows, LoopFacts facts)
    : graph_(graph), prologue_(prologue), modulus_(modulus), facts_(std::move(facts)), carried_(graph.loops.size()),
      lefts_(graph.loops.size(), 1), followed_(graph.blocks.size()), counts_(graph.blocks.size(), 1) {
  std::vector<size_t> depth(graph.loops.size());  // followed loops around it, itself included
  for (size_t i = 0; follows && i < graph.loops.size(); ++i) {
    const Loop& loop = graph.loops[i];
    const size_t around = loop.parent == kNoLoop ? 0 : depth[indexOf(loop.parent)];
    depth[i] = around;
    if (around >= kMostNested)
      continue;
    carried_[i] = carriedBy(loop);
    depth[i] += carried_[i].empty() ? 0 : 1;
    for (const Carried& each : carried_[i])
      loopOfPhi_[indexOf(each.phi)] = LoopId{static_cast<uint32_t>(i)};
  }
  for (const auto& [block, ahead] : facts_.ahead)
    if (isFollowed(ahead.loop))
      lefts_[indexOf(ahead.loop)] = std::max(lefts_[indexOf(ahead.loop)], ahead.distance + 2);
  for (size_t i = 0; i < graph.blocks.size(); ++i) {
    for (LoopId loop = graph.blocks[i].loop; loop != kNoLoop; loop = graph[loop].parent)
      if (isFollowed(loop))
        followed_[i].insert(followed_[i].begin(), loop);
    for (LoopId loop : followed_[i])
      counts_[i] *= classes() * lefts_[indexOf(loop)];
  }
}

//===-- what loops carry --------------------------------------------------------------------------------------------===//

std::vector<Contexts::Carried> Contexts::carriedBy(const Loop& loop) const {
  const LoopId id{static_cast<uint32_t>(&loop - graph_.loops.data())};
  std::vector<Carried> out;
  const auto add = [&](std::optional<Carried> found) {
    if (found && isUsed(id, found->phi))
      out.push_back(std::move(*found));
  };
  if (loop.counter && !loop.latches.empty())  // without a second iteration the counter is its begin, no phi
    add(counterOf(loop));
  for (ValueId phi : graph_[loop.header].phis) {
    if (loop.counter && phi == loop.counter->phi)
      continue;
    auto exact = exactPhi(loop, phi);
    add(exact ? std::move(exact) : repeatedPhi(phi));
  }
  return out;
}

std::optional<Contexts::Carried> Contexts::counterOf(const Loop& loop) const {
  const Counter& counter = *loop.counter;
  Carried out{counter.phi, counter.begin, 1};
  if (counter.isPosition)
    out.begin = graph_.values.phiOperands(counter.phi)[0];
  else
    out.step = graph_.values[counter.step].constant();
  return out;
}

/// A variable that goes up by a constant in every iteration and cannot wrap: of 64 bits, or below what the header compares it with.
std::optional<Contexts::Carried> Contexts::exactPhi(const Loop& loop, ValueId phi) const {
  const auto operands = graph_.values.phiOperands(phi);
  if (operands.size() < 2)
    return std::nullopt;
  Carried out{phi, operands[0], 0};
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
  // Of `loop` the header may end in an `if` of its body: only where the loop is left does the phi reach its bound.
  const Step& test = graph_.terminator(loop.header);
  if (test.kind == StepKind::Branch && out.step == 1) {
    const LoopId id{static_cast<uint32_t>(&loop - graph_.loops.data())};
    const std::vector<BlockId>& sides = graph_[loop.header].successors;
    const Node& node = graph_.values[test.value];
    if (node.kind == NodeKind::Op && node.op == Op::Lt && graph_.values.operand(test.value, 0) == phi &&
        graph_.isInside(sides[0], id) && !graph_.isInside(sides[1], id))
      return out;
  }
  const MachineType type = graph_.values.type(phi);
  const bool isUp = out.step > 0 && out.step <= kSmallStep;
  const bool beginsSmall = graph_.values.isConstant(out.begin) && graph_.values[out.begin].constant() <= kSmallStep;
  return type.width == 64 && isUp && beginsSmall ? std::optional(out) : std::nullopt;
}

/// `s = (s + 1) % 3`, `s = 1 - s`: after the prologue it repeats as the classes of iterations do.
std::optional<Contexts::Carried> Contexts::repeatedPhi(ValueId phi) const {
  const auto operands = graph_.values.phiOperands(phi);
  if (operands.size() < 2 || !graph_.values.isConstant(operands[0]))
    return std::nullopt;
  Carried out{phi, operands[0], 0};
  __int128 number = graph_.values[operands[0]].constant();
  for (uint32_t i = 0; i <= classes(); ++i) {
    out.numbers.push_back(number);
    std::optional<__int128> next;
    const std::pair<ValueId, __int128> now[] = {{phi, number}};
    for (ValueId operand : operands.subspan(1)) {
      const auto found = evaluate(graph_.values, operand, now);
      if (!found || (next && *next != *found))
        return std::nullopt;
      next = found;
    }
    number = *next;
  }
  return out.numbers[classes()] == out.numbers[prologue_] ? std::optional(out) : std::nullopt;
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
      bool isReady = true, does = false;
      for (ValueId operand : graph_.values.operands(at)) {
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

std::vector<Contexts::Visit> Contexts::visitsOf(BlockId block, Context context) const {
  std::vector<Visit> out;
  uint32_t rest = static_cast<uint32_t>(context);
  for (LoopId loop : followed_[indexOf(block)]) {
    const uint32_t lefts = lefts_[indexOf(loop)];
    out.push_back({loop, rest / lefts % classes(), rest % lefts});
    rest /= classes() * lefts;
  }
  return out;
}

uint32_t Contexts::iteration(LoopId loop, BlockId at, Context context) const {
  for (const Visit& visit : visitsOf(at, context))
    if (visit.loop == loop)
      return visit.number;
  return 0;
}

/// How many iterations may be left where the edge leads.
std::vector<uint32_t> Contexts::leftsOf(LoopId loop, const Visit* before, bool isAgain) const {
  const uint32_t most = lefts_[indexOf(loop)] - 1;
  if (most == 0)
    return {0};
  if (before && !isAgain)
    return {before->left};
  if (before)
    return before->left < most ? std::vector<uint32_t>{before->left - 1} : std::vector<uint32_t>{most - 1, most};
  const auto known = facts_.mostTrips.find(indexOf(loop));
  const bool isFew = known != facts_.mostTrips.end() && known->second < most;
  std::vector<uint32_t> all(isFew ? static_cast<uint32_t>(std::max<__int128>(known->second, 0)) + 1 : most + 1);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool Contexts::isClosed(BlockId from, Context context, const std::vector<Visit>& visits, uint32_t successor) const {
  const Step& last = graph_.terminator(from);
  if (last.kind != StepKind::Branch)
    return false;
  const auto ahead = facts_.ahead.find(indexOf(from));
  for (const Visit& visit : visits) {
    if (lefts_[indexOf(visit.loop)] == 1)
      continue;
    const bool goesIn = graph_.isInside(graph_[from].successors[successor], visit.loop);
    if (graph_[visit.loop].header == from && goesIn == (visit.left == 0))
      return true;
    if (ahead != facts_.ahead.end() && ahead->second.loop == visit.loop &&
        (visit.left > ahead->second.distance) != ((successor == 0) == ahead->second.holds))
      return true;
  }
  const auto decided = known(last.value, from, context).number();
  return decided && (*decided != 0) != (successor == 0);
}

std::vector<Context> Contexts::follow(BlockId from, Context context, uint32_t successor) const {
  const BlockId to = graph_[from].successors[successor];
  if (followed_[indexOf(from)].empty() && followed_[indexOf(to)].empty())
    return {Context{0}};
  const std::vector<Visit> visits = visitsOf(from, context);
  if (!visits.empty() && isClosed(from, context, visits, successor))
    return {};
  std::vector<uint32_t> out{0};
  uint32_t factor = 1;
  for (LoopId loop : followed_[indexOf(to)]) {
    const auto found = std::find_if(visits.begin(), visits.end(), [&](const Visit& each) { return each.loop == loop; });
    const Visit* before = found == visits.end() ? nullptr : &*found;
    const bool isAgain = before && graph_[loop].header == to;
    // A loop that is entered begins with its first iteration.
    const uint32_t number = !before ? 0 : isAgain ? nextClass(before->number) : before->number;
    std::vector<uint32_t> next;
    for (uint32_t left : leftsOf(loop, before, isAgain))
      for (uint32_t each : out)
        next.push_back(each + factor * (number * lefts_[indexOf(loop)] + left));
    out = std::move(next);
    factor *= classes() * lefts_[indexOf(loop)];
  }
  std::vector<Context> contexts;
  for (uint32_t each : out)
    contexts.push_back(Context{each});
  return contexts;
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

/// The loop around the place asked about that carries the phi.
const Contexts::Carried* Contexts::find(ValueId phi, const Asked& asked, LoopId& loop) const {
  auto found = loopOfPhi_.find(indexOf(phi));
  if (found == loopOfPhi_.end() || !graph_.isInside(asked.at, found->second))
    return nullptr;
  loop = found->second;
  for (const Carried& each : carried_[indexOf(loop)])
    if (each.phi == phi)
      return &each;
  return nullptr;
}

std::optional<Known> Contexts::carriedValue(ValueId phi, const Asked& asked) const {
  LoopId loop = kNoLoop;
  const Carried* carried = find(phi, asked, loop);
  if (!carried || !graph_.values.isConstant(carried->begin))
    return std::nullopt;
  const __int128 begin = graph_.values[carried->begin].constant();
  const uint32_t iterations = iteration(loop, asked.at, asked.context);
  const uint32_t first = iterations < prologue_
                             ? iterations
                             : prologue_ + (iterations - prologue_ + modulus_ - prologue_ % modulus_) % modulus_;
  if (!carried->numbers.empty())
    return number(carried->numbers[first]);
  if (iterations < prologue_)
    return number(begin + carried->step * iterations);
  const MachineType type = graph_.values.type(phi);
  const bool isUp = carried->step > 0;
  const __int128 low = begin + carried->step * first;
  __int128 high = isUp ? std::min(type.highest(), kNeverReached) : type.lowest();
  if (auto most = facts_.mostTrips.find(indexOf(loop)); most != facts_.mostTrips.end()) {
    // The last iteration of this class; at the header the counter has one value more.
    const __int128 last = most->second - (graph_[loop].header == asked.at ? 0 : 1);
    const __int128 more = last > first ? (last - first) / modulus_ * modulus_ : 0;
    const __int128 reached = begin + carried->step * (first + more);
    high = isUp ? std::min(high, reached) : std::max(high, reached);
  }
  const __int128 modulus = (isUp ? carried->step : -carried->step) * modulus_;
  return made(std::min(low, high), std::max(low, high), modulus, low, type);
}

/// Comparisons with what the counter began with, where that is no number.
std::optional<bool> Contexts::againstBegin(const Node& node, const Asked& asked) const {
  if (node.op != Op::Eq && node.op != Op::Lt && node.op != Op::Le)
    return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    const ValueId phi = graph_.values.resolved(node.args[side]), other = graph_.values.resolved(node.args[1 - side]);
    LoopId loop = kNoLoop;
    const Carried* carried = find(phi, asked, loop);
    if (!carried || !carried->numbers.empty() || graph_.values.resolved(carried->begin) != other || prologue_ == 0)
      continue;
    const bool isFirst = iteration(loop, asked.at, asked.context) == 0;
    if (isFirst)
      return node.op != Op::Lt;
    const bool isAbove = carried->step > 0;
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

/// Of a = m·q + r with r < m it is m / c · q + r / c where c divides m.
static Known quotient(const Known& a, __int128 by, MachineType type) {
  if (a.low < 0 || by <= 0)
    return anyOf(type);
  const bool divides = a.modulus % by == 0;
  return made(a.low / by, a.high / by, divides ? a.modulus / by : 1, divides ? a.residue / by : 0, type);
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
    return carriedValue(value, asked).value_or(anyOf(type));
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
  case Op::Div: return b.number() ? quotient(a, *b.number(), type) : anyOf(type);
  case Op::Shr:
    return b.number() && *b.number() >= 0 && *b.number() < type.width
               ? quotient(a, static_cast<__int128>(1) << static_cast<unsigned>(*b.number()), type)
               : anyOf(type);
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
