#include "lang/sema/ownership/liveness.h"

#include <algorithm>
#include <deque>

namespace vortex::lang::ownership {

bool Liveness::uses(const Statement& statement, LocalId local) const {
  if (std::find(statement.sources.begin(), statement.sources.end(), local) != statement.sources.end())
    return true;
  if (statement.op == Op::Flow && statement.isWeak && statement.local == local)
    return false;  // adding to what it holds is not a use
  if (statement.place.root != local)
    return false;
  switch (statement.op) {
  case Op::Declare:
  case Op::Empty:
  case Op::Dead: return false;
  case Op::Assign: return !statement.place.path.empty();
  case Op::Borrow: return !graph_.loans[statement.index].param;
  default: return true;
  }
}

bool Liveness::defines(const Statement& statement, LocalId local) {
  switch (statement.op) {
  case Op::Declare:
  case Op::Empty:
  case Op::Dead: return statement.place.root == local;
  case Op::Assign: return statement.place.root == local && statement.place.path.empty();
  case Op::Borrow: return statement.local == local;
  case Op::Flow: return statement.local == local && !statement.isWeak;
  default: return false;
  }
}

void Liveness::step(const Statement& statement, Bits& live) const {
  if (statement.local != kNoLocal && defines(statement, statement.local))
    live.reset(statement.local);
  if (statement.place.root != kNoLocal) {
    if (defines(statement, statement.place.root))
      live.reset(statement.place.root);
    if (uses(statement, statement.place.root))
      live.set(statement.place.root);
  }
  for (LocalId source : statement.sources)
    live.set(source);
}

Liveness::Liveness(const Graph& graph) : graph_(graph), entry_(graph.blocks.size(), Bits(graph.locals.size())) {
  std::vector<std::vector<uint32_t>> predecessors(graph.blocks.size());
  for (uint32_t block = 0; block < graph.blocks.size(); ++block)
    for (uint32_t next : graph.blocks[block].successors)
      predecessors[next].push_back(block);
  std::deque<uint32_t> work;
  for (uint32_t block = static_cast<uint32_t>(graph.blocks.size()); block-- > 0;)
    work.push_back(block);
  while (!work.empty()) {
    const uint32_t block = work.front();
    work.pop_front();
    Bits live(graph.locals.size());
    for (uint32_t next : graph.blocks[block].successors)
      live.add(entry_[next]);
    const std::vector<Statement>& statements = graph.blocks[block].statements;
    for (size_t i = statements.size(); i-- > 0;)
      step(statements[i], live);
    if (entry_[block].add(live))
      work.insert(work.end(), predecessors[block].begin(), predecessors[block].end());
  }
}

std::vector<Bits> Liveness::afterEach(uint32_t block) const {
  const std::vector<Statement>& statements = graph_.blocks[block].statements;
  std::vector<Bits> out(statements.size());
  Bits live(graph_.locals.size());
  for (uint32_t next : graph_.blocks[block].successors)
    live.add(entry_[next]);
  for (size_t i = statements.size(); i-- > 0;) {
    out[i] = live;
    step(statements[i], live);
  }
  return out;
}

SourceRange Liveness::nextUse(uint32_t block, size_t statement, LocalId local) const {
  std::vector<bool> seen(graph_.blocks.size());
  std::deque<std::pair<uint32_t, size_t>> work{{block, statement + 1}};
  while (!work.empty()) {
    auto [at, first] = work.front();
    work.pop_front();
    const std::vector<Statement>& statements = graph_.blocks[at].statements;
    bool ends = false;
    for (size_t i = first; i < statements.size() && !ends; ++i) {
      if (uses(statements[i], local)) {
        // A temporary that only hands its borrows on: what counts is where they end up.
        const bool handsOn = statements[i].op == Op::Flow && statements[i].local != kNoLocal;
        return handsOn ? nextUse(at, i, statements[i].local) : statements[i].range;
      }
      ends = defines(statements[i], local);
    }
    if (ends)
      continue;
    for (uint32_t next : graph_.blocks[at].successors)
      if (!seen[next]) {
        seen[next] = true;
        work.emplace_back(next, 0);
      }
  }
  return {};
}

}  // namespace vortex::lang::ownership
