#include "metile/loops.h"

#include "base/text.h"

#include <algorithm>
#include <bit>

namespace vortex::metile {

static bool writes(const Op& op) {
  return op.name == "store" || op.name == "tile_store" || op.name.starts_with("atomic_");
}

static bool opensLoop(const Op& op) { return op.name == "loop" || op.name == "draw"; }

std::vector<Loop> loopsOf(const Trace& trace) {
  std::vector<Loop> loops;
  std::vector<int32_t> open;
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    if (opensLoop(trace.ops[i])) {
      Loop loop{.carries = i, .begin = i, .parent = open.empty() ? -1 : open.back()};
      while (loop.carries > 0 && trace.ops[loop.carries - 1].name == "carry")
        --loop.carries;
      open.push_back(static_cast<int32_t>(loops.size()));
      loops.push_back(loop);
    } else if (trace.ops[i].name == "end") {
      Loop& loop = loops[static_cast<size_t>(open.back())];
      loop.end = loop.yields = i;
      while (trace.ops[loop.yields - 1].name == "yield")
        --loop.yields;
      open.pop_back();
    }
  }
  return loops;
}

std::vector<Carried> carriedBy(const Trace& trace, const Loop& loop) {
  std::vector<Carried> out;
  for (size_t i = loop.carries; i < loop.begin; ++i)
    out.push_back({trace.ops[i].operands[0].number, trace.ops[i].operands[1], {}});
  for (size_t i = loop.yields; i < loop.end; ++i)
    for (Carried& carried : out)
      if (carried.id == trace.ops[i].operands[0].number)
        carried.next = trace.ops[i].operands[1];
  return out;
}

ValueNumbers::ValueNumbers(const Trace& trace, const std::vector<Loop>& loops, int64_t counter, int64_t sameCounter)
    : trace_(trace), numbers_(static_cast<size_t>(trace.values), -1) {
  const int64_t both = next_++;
  std::vector<const Loop*> open;
  size_t nextLoop = 0;
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    if (opensLoop(op)) {
      open.push_back(&loops[nextLoop++]);
      for (size_t k = 1; k < op.operands.size(); ++k)
        ranges_[i] += spelled(op.operands[k]) + " ";
      forgetStoresIn(*open.back());
      const int64_t id = op.operands[0].number;
      numbers_[static_cast<size_t>(id)] = id == counter || id == sameCounter ? both : next_++;
    } else if (op.name == "carry") {
      numbers_[static_cast<size_t>(op.operands[0].number)] = next_++;
    } else if (op.name == "end") {
      for (const Carried& carried : carriedBy(trace, *open.back()))
        numbers_[static_cast<size_t>(carried.id)] = next_++;
      forgetStoresIn(*open.back());
      open.pop_back();
    } else {
      visit(op, i);
    }
  }
}

void ValueNumbers::visit(const Op& op, size_t index) {
  if (writes(op))
    stored(op.operands[0]);
  if (op.result < 0)
    return;
  const bool isItself = op.name == "shared" || op.name == "carry" || writes(op);
  const std::string spelling = isItself ? base::concat("#", index) : spelled(op);
  const auto [at, isNew] = known_.try_emplace(spelling, next_);
  next_ += isNew ? 1 : 0;
  numbers_[static_cast<size_t>(op.result)] = at->second;
}

/// What an iteration stores, the next one reads.
void ValueNumbers::forgetStoresIn(const Loop& loop) {
  for (size_t i = loop.begin; i < loop.end; ++i) {
    const Op& op = trace_.ops[i];
    if (writes(op))
      stored(op.operands[0]);
    else if (op.name == "draw")
      stored(op.operands[1]);
  }
}

std::string ValueNumbers::key(const Operand& memory) {
  return base::concat(memory.kind == Operand::Kind::Param ? "p" : "t", memory.number);
}

std::string ValueNumbers::spelled(const Operand& operand) const {
  switch (operand.kind) {
  case Operand::Kind::Value: return base::concat("%", numbers_[static_cast<size_t>(operand.number)]);
  case Operand::Kind::Int: return base::concat("i", operand.number);
  case Operand::Kind::Float: return base::concat("f", std::bit_cast<int64_t>(operand.real));
  case Operand::Kind::Word: return "s" + operand.word;
  case Operand::Kind::Param:
  case Operand::Kind::Shared: return key(operand);
  case Operand::Kind::None: return "-";
  }
  return {};
}

std::string ValueNumbers::spelled(const Op& op) const {
  constexpr std::string_view kCommutative[] = {"add", "mul", "and", "or", "xor", "eq", "ne", "maximum", "minimum"};
  std::vector<std::string> parts;
  for (const Operand& operand : op.operands)
    parts.push_back(spelled(operand));
  if (std::find(std::begin(kCommutative), std::end(kCommutative), op.name) != std::end(kCommutative))
    std::sort(parts.begin(), parts.end());
  std::string out = op.name;
  for (const std::string& part : parts)
    out += " " + part;
  if (op.name == "load" || op.name == "tile_load") {
    const auto version = versions_.find(key(op.operands[0]));
    out += base::concat(" after ", version == versions_.end() ? 0 : version->second);
  }
  return out;
}

}  // namespace vortex::metile
