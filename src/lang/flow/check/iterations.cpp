// A loop is entered again while some polynomial of integers is at least 0, which falls by the same amount in every iteration: end - k - 1 by the step. A branch
// that asks whether that polynomial, lowered d times, is at least 0 asks for the iteration d later.
#include "lang/flow/check/iterations.h"

#include <algorithm>

#include "lang/flow/check/surroundings.h"

namespace vortex::lang::flow {
namespace {

constexpr __int128 kMostDistance = 8;
constexpr __int128 kManyTrips = static_cast<__int128>(1) << 62;

/// The loop goes on while `room` >= 0.
struct Test {
  Polynomial room;
  __int128 fall = 1;
};

class Iterations {
public:
  Iterations(Graph& graph, const Structure& structure)
      : graph_(graph), nodes_(graph.values), values_(graph.values, surroundingsOf(graph, structure, graph.values)) {}

  LoopFacts run() {
    tests_.resize(graph_.loops.size());
    for (uint32_t i = 0; i < graph_.loops.size(); ++i) {
      findTests(LoopId{i});
      findTrips(LoopId{i});
    }
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
      if (graph_.terminator(BlockId{i}).kind == StepKind::Branch)
        findAhead(BlockId{i});
    return std::move(facts_);
  }

private:
  PointId at(BlockId block) const { return pointOf(graph_[block].begin); }

  /// b - a, less 1 where a must be below b.
  std::optional<Polynomial> room(ValueId a, ValueId b, bool isStrict, PointId point) {
    return Polynomial::sum(
        values_.integer(b, point),
        Polynomial::sum(values_.integer(a, point), Polynomial::constant(isStrict)).value_or(Polynomial()), -1);
  }

  /// What is at least 0 where the condition holds; nothing for other conditions than comparisons.
  std::optional<Polynomial> roomOf(ValueId condition, bool holds, PointId point) {
    const Node node = nodes_[condition];
    if (node.kind != NodeKind::Op)
      return std::nullopt;
    const ValueId a = nodes_.operand(condition, 0), b = nodes_.operand(condition, 1);
    if ((node.op == Op::Sub || node.op == Op::Xor) && node.type == kBool)
      for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)})
        if (nodes_.isConstant(one) && nodes_[one].constant() == 1)
          return roomOf(other, !holds, point);
    if (node.op != Op::Lt && node.op != Op::Le)
      return std::nullopt;
    const bool isStrict = node.op == Op::Lt;
    return holds ? room(a, b, isStrict, point) : room(b, a, !isStrict, point);
  }

  void add(LoopId loop, const std::optional<Polynomial>& room, __int128 fall) {
    if (room && fall > 0)
      tests_[indexOf(loop)].push_back({*room, fall});
  }

  void findTests(LoopId id) {
    const Loop& loop = graph_[id];
    if (!loop.counter)
      return findTestOfVariable(id);
    const PointId point = at(graph_[loop.header].successors[0]);
    const Counter& counter = *loop.counter;
    if (counter.isPosition)
      add(id, room(counter.phi, counter.trips, true, point), 1);
    if (counter.kind != Counter::Kind::Range || !nodes_.isConstant(counter.step))
      return;
    const __int128 step = nodes_[counter.step].constant();
    add(id, step > 0 ? room(counter.value, counter.end, true, point) : room(counter.end, counter.value, true, point),
        step > 0 ? step : -step);
  }

  void findTestOfVariable(LoopId id) {
    const Loop& loop = graph_[id];
    const Step& branch = graph_.terminator(loop.header);
    if (branch.kind != StepKind::Branch)
      return;
    const bool goesOn = graph_.isInside(graph_[loop.header].successors[0], id);
    const auto room = roomOf(branch.value, goesOn, at(loop.header));
    for (ValueId phi : graph_[loop.header].phis)
      if (const auto change = room ? changeOf(loop, phi) : std::nullopt)
        for (const __int128 sign : {1, -1})
          if (isFixed(Polynomial::sum(*room, values_.integer(phi, at(loop.header)), sign), id))
            add(id, room, sign * *change);
  }

  /// What every way round adds to the variable, as integers.
  std::optional<__int128> changeOf(const Loop& loop, ValueId phi) {
    std::optional<__int128> change;
    const std::vector<ValueId> operands(nodes_.phiOperands(phi).begin(), nodes_.phiOperands(phi).end());
    for (size_t i = 0; i < operands.size(); ++i) {
      const BlockId from = graph_[loop.header].predecessors[i];
      if (from == loop.before)
        continue;
      const PointId point{indexOf(graph_[from].end) - 1};
      const auto by = Polynomial::sum(values_.integer(operands[i], point), values_.integer(phi, point), -1);
      const auto number = by ? by->asConstant() : std::nullopt;
      if (!number || (change && *change != *number))
        return std::nullopt;
      change = number;
    }
    return change;
  }

  bool isFixed(const std::optional<Polynomial>& polynomial, LoopId loop) const {
    return polynomial && std::none_of(polynomial->terms().begin(), polynomial->terms().end(), [&](const auto& term) {
             return std::any_of(term.first.begin(), term.first.end(),
                                [&](ValueId leaf) { return graph_.changesIn(leaf, loop); });
           });
  }

  void findTrips(LoopId id) {
    const Loop& loop = graph_[id];
    if (!loop.counter)
      return;
    const Counter& counter = *loop.counter;
    const PointId point = at(loop.before);
    __int128 most = 0;
    if (counter.isPosition) {
      most = values_.range(counter.trips, point).high;
    } else {
      const bool isUp = nodes_[counter.step].constant() > 0;
      most = values_.range(isUp ? counter.end : counter.begin, point).high -
             values_.range(isUp ? counter.begin : counter.end, point).low;
    }
    if (most < kManyTrips)
      facts_.mostTrips[indexOf(id)] = std::max<__int128>(most, 0);
  }

  void findAhead(BlockId block) {
    for (LoopId loop = graph_[block].loop; loop != kNoLoop; loop = graph_[loop].parent)
      for (const Test& test : tests_[indexOf(loop)])
        for (bool holds : {true, false}) {
          if (block == graph_[loop].header)
            continue;
          const auto asked = roomOf(graph_.terminator(block).value, holds, at(block));
          const auto lower = asked ? Polynomial::sum(test.room, *asked, -1) : std::nullopt;
          const auto number = lower ? lower->asConstant() : std::nullopt;
          if (!number || *number % test.fall != 0)
            continue;
          const __int128 distance = *number / test.fall;
          if (distance < 0 || distance > kMostDistance)
            continue;
          facts_.ahead[indexOf(block)] = {loop, static_cast<uint32_t>(distance), holds};
          return;
        }
    for (LoopId loop = graph_[block].loop; loop != kNoLoop; loop = graph_[loop].parent)
      for (const Test& test : tests_[indexOf(loop)])
        if (const auto distance = provenDistance(block, loop, test)) {
          facts_.ahead[indexOf(block)] = {loop, *distance, true};
          return;
        }
  }

  /// The branch says the same as the test does so much later, though in other words: `(k + 2) * 8 < n` in a loop to ceil_div(n, 8).
  std::optional<uint32_t> provenDistance(BlockId block, LoopId loop, const Test& test) {
    const ValueId condition = graph_.terminator(block).value;
    const auto asked = block == graph_[loop].header ? std::nullopt : roomOf(condition, true, at(block));
    if (!asked || isFixed(asked, loop))
      return std::nullopt;
    const PointId holds = values_.assume(at(block), {{condition, true}});
    const PointId fails = values_.assume(at(block), {{condition, false}});
    for (__int128 distance = 1; distance <= kMostDistance; ++distance) {
      const auto later = Polynomial::sum(test.room, Polynomial::constant(distance * test.fall), -1);
      const auto over = later ? Polynomial::sum(Polynomial::constant(-1), *later, -1) : std::nullopt;
      if (!over || !values_.isAtLeastZero(*later, holds))
        return std::nullopt;
      if (values_.isAtLeastZero(*over, fails))
        return static_cast<uint32_t>(distance);
    }
    return std::nullopt;
  }

  const Graph& graph_;
  NodeTable& nodes_;
  Values values_;
  std::vector<std::vector<Test>> tests_;  ///< by loop
  LoopFacts facts_;
};

}  // namespace

LoopFacts loopFacts(Graph& graph, const Structure& structure) { return Iterations(graph, structure).run(); }

}  // namespace vortex::lang::flow
