#include "metile/one_value.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace vortex::metile {

namespace {

using MemoryKey = std::pair<Operand::Kind, int64_t>;

bool isMemory(const Operand& operand) {
  return operand.kind == Operand::Kind::Param || operand.kind == Operand::Kind::Shared;
}

/// What it gives follows from its operands alone.
bool isArithmetic(std::string_view name) {
  constexpr std::string_view kNames[] = {"param", "programs", "index",        "scalar",  "cast",   "add", "sub", "mul",
                                         "div",   "rem",      "and",          "or",      "xor",    "not", "neg", "abs",
                                         "shl",   "shr",      "pow",          "eq",      "ne",     "lt",  "le",  "gt",
                                         "ge",    "where",    "reverse_bits", "minimum", "maximum"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) || isFloatFunction(name);
}

class Finder {
public:
  explicit Finder(const Trace& trace)
      : trace_(trace), values_(static_cast<size_t>(trace.values)), variations_(variationOf(trace)) {
    int64_t depth = 0;
    for (size_t i = 0; i < trace.ops.size(); ++i) {
      const Op& op = trace.ops[i];
      depths_.push_back(depth);
      if (op.name == "loop" || op.name == "draw")
        ++depth;
      if (op.name == "end")
        --depth;
      const bool isOfLoop = op.name == "loop" || op.name == "draw" || op.name == "carry" || op.name == "yield";
      const int64_t id = isOfLoop ? op.operands[0].number : op.result;
      if (id < 0)
        continue;
      Value& value = values_[static_cast<size_t>(id)];
      value.varies = value.varies || variations_[i] != Variation::None;
      value.isFixed = !isOfLoop && depth == 0;
      value.isOfLaunch =
          !isOfLoop && isArithmetic(op.name) &&
          std::all_of(op.operands.begin(), op.operands.end(), [&](const Operand& each) { return isOfLaunch(each); });
    }
  }

  std::map<size_t, Sharers> run(std::span<const source::SourceRange> places) const {
    std::map<size_t, Sharers> found;
    std::map<MemoryKey, Operand> stored;
    std::set<MemoryKey> others = changedByAtomics();
    for (size_t i = 0; i < trace_.ops.size(); ++i) {
      const Op& op = trace_.ops[i];
      if (op.name != "store" || std::find(places.begin(), places.end(), op.range) == places.end())
        continue;
      const std::optional<Sharers> sharers = sharersOf(op, i);
      if (!sharers)
        continue;
      const auto [known, isNew] = stored.try_emplace(keyOf(op.operands[0]), op.operands[2]);
      if (!isNew && !isSame(known->second, op.operands[2]))
        others.insert(known->first);
      found.emplace(i, *sharers);
    }
    std::erase_if(found, [&](const auto& each) { return others.contains(keyOf(trace_.ops[each.first].operands[0])); });
    return found;
  }

private:
  struct Value {
    bool varies = false;      ///< between lanes
    bool isFixed = false;     ///< it is computed once, outside loops
    bool isOfLaunch = false;  ///< it follows from the arguments and the grid
  };

  static MemoryKey keyOf(const Operand& memory) { return {memory.kind, memory.number}; }

  static bool isSame(const Operand& a, const Operand& b) {
    return a.kind == b.kind && a.number == b.number && a.real == b.real;
  }

  bool isOfLaunch(const Operand& operand) const {
    return operand.kind != Operand::Kind::Value || values_[static_cast<size_t>(operand.number)].isOfLaunch;
  }

  std::set<MemoryKey> changedByAtomics() const {
    std::set<MemoryKey> out;
    for (const Op& op : trace_.ops)
      if (op.name == "draw" || op.name.starts_with("atomic_"))
        for (const Operand& operand : op.operands)
          if (isMemory(operand))
            out.insert(keyOf(operand));
    return out;
  }

  std::optional<Sharers> sharersOf(const Op& op, size_t index) const {
    const Operand& value = op.operands[2];
    if (isOfLaunch(value))
      return Sharers::Launch;
    const Value& known = values_[static_cast<size_t>(value.number)];
    if (known.varies || !(known.isFixed || depths_[index] == 0))
      return std::nullopt;
    return Sharers::Instance;
  }

  const Trace& trace_;
  std::vector<Value> values_;
  std::vector<Variation> variations_;
  std::vector<int64_t> depths_;  ///< loops around the operation
};

}  // namespace

std::map<size_t, Sharers> storesOfOneValue(const Trace& trace, std::span<const source::SourceRange> places) {
  return Finder(trace).run(places);
}

}  // namespace vortex::metile
