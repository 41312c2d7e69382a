// Runs the trace with the numbers of lanes, all lanes at once, and marks what is stored. Only what offsets, masks and bounds of loops are made of is
// computed, and only integers; arguments, elements of memory and what loops carry are not known. A loop whose bounds are not known runs once, for its
// loads: what it stores counts within it, where all lanes run it, and no longer after it.
#include "metile/unwritten.h"

#include "lang/sema/integers.h"

#include <algorithm>
#include <map>
#include <optional>

namespace vortex::metile {

namespace {

/// One for each lane.
using Numbers = std::vector<int64_t>;

constexpr int64_t kMostWork =
    int64_t(1) << 23;  ///< numbers that are computed: some 20 ms. What takes longer counts as not known

struct Memory {
  int64_t columns = 0;  ///< 0: it is no tile
  std::vector<bool> isWritten;
  size_t missing = 0;

  void write(int64_t at) {
    if (0 <= at && at < static_cast<int64_t>(isWritten.size()) && !isWritten[static_cast<size_t>(at)]) {
      isWritten[static_cast<size_t>(at)] = true;
      --missing;
    }
  }
  /// Outside there is nothing to read.
  bool has(int64_t at) const {
    return at < 0 || at >= static_cast<int64_t>(isWritten.size()) || isWritten[static_cast<size_t>(at)];
  }
};

int64_t wrapping(std::string_view name, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(name == "add" ? x + y : name == "sub" ? x - y : x * y);
}

/// Of the 32 low bits.
int64_t reversed(int64_t number) {
  uint32_t out = 0;
  for (int bit = 0; bit < 32; ++bit)
    out |= (static_cast<uint32_t>(number) >> bit & 1) << (31 - bit);
  return out;
}

std::optional<int64_t> compute(std::string_view name, int64_t a, int64_t b, int64_t bits) {
  if (name == "add" || name == "sub" || name == "mul")
    return wrapping(name, a, b);
  if (name == "div" || name == "rem") {
    if (b == 0)
      return 0;
    if (b == -1)
      return name == "div" ? wrapping("sub", 0, a) : 0;
    return name == "div" ? a / b : a % b;
  }
  if (name == "and")
    return a & b;
  if (name == "or")
    return a | b;
  if (name == "xor")
    return a ^ b;
  if (name == "shl")
    return static_cast<int64_t>(static_cast<uint64_t>(a) << (b & (bits - 1)));
  if (name == "shr")
    return a >> (b & (bits - 1));
  if (name == "minimum")
    return std::min(a, b);
  if (name == "maximum")
    return std::max(a, b);
  if (name == "eq")
    return a == b;
  if (name == "ne")
    return a != b;
  if (name == "lt")
    return a < b;
  if (name == "le")
    return a <= b;
  if (name == "gt")
    return a > b;
  return name == "ge" ? std::optional<int64_t>(a >= b) : std::nullopt;
}

class Coverage {
public:
  Coverage(const Trace& trace, const std::vector<Kind>& kinds)
      : trace_(trace), kinds_(kinds), variations_(variationOf(trace)), ends_(trace.ops.size()),
        lanes_(static_cast<size_t>(trace.threads)), values_(static_cast<size_t>(trace.values)),
        isNeeded_(static_cast<size_t>(trace.values)) {}

  std::set<int32_t> run() {
    for (const Op& op : trace_.ops)
      if (op.name == "shared") {
        const auto size = static_cast<size_t>(op.operands[0].number);
        memories_[op.result] = {op.operands[2].number, std::vector<bool>(size), size};
      }
    if (memories_.empty())
      return {};
    findLoops();
    findNeeded();
    run(0, trace_.ops.size(), Numbers(lanes_, 1));
    return std::move(found_);
  }

private:
  void findLoops() {
    std::vector<size_t> open;
    for (size_t i = 0; i < trace_.ops.size(); ++i) {
      if (trace_.ops[i].name == "loop" || trace_.ops[i].name == "draw")
        open.push_back(i);
      if (trace_.ops[i].name == "end") {
        ends_[open.back()] = i;
        open.pop_back();
      }
    }
  }

  /// Of accesses offset and mask, of loops the bounds, and what these are made of.
  void findNeeded() {
    for (auto op = trace_.ops.rbegin(); op != trace_.ops.rend(); ++op) {
      const bool isSide = op->name == "loop" || accessed(*op);
      for (size_t i = 0; i < op->operands.size(); ++i)
        if (op->operands[i].kind == Operand::Kind::Value &&
            (isSide || (op->result >= 0 && isNeeded_[static_cast<size_t>(op->result)])))
          isNeeded_[static_cast<size_t>(op->operands[i].number)] = true;
    }
  }

  /// What it accesses, if that is shared memory.
  static const Operand* accessed(const Op& op) {
    const auto found = std::find_if(op.operands.begin(), op.operands.end(),
                                    [](const Operand& each) { return each.kind == Operand::Kind::Shared; });
    return found == op.operands.end() ? nullptr : &*found;
  }

  void run(size_t first, size_t end, const Numbers& active) {
    for (size_t i = first; i < end; ++i) {
      const Op& op = trace_.ops[i];
      if (op.name == "loop" || op.name == "draw") {
        loop(i, active);
        i = ends_[i];
      } else if (const Operand* memory = accessed(op)) {
        access(op, static_cast<int32_t>(memory->number), active);
      } else if (op.result >= 0 && isNeeded_[static_cast<size_t>(op.result)]) {
        values_[static_cast<size_t>(op.result)] = valueOf(op);
      }
    }
  }

  std::optional<Numbers> known(const Operand& operand) const {
    if (operand.kind == Operand::Kind::Int)
      return Numbers(lanes_, operand.number);
    return operand.kind == Operand::Kind::Value ? values_[static_cast<size_t>(operand.number)] : std::nullopt;
  }

  bool spend() {
    work_ += static_cast<int64_t>(lanes_);
    return work_ <= kMostWork;
  }

  static bool isInteger(const Kind& kind) {
    return !kind.isTile() && kind.dtype != Dtype::Unknown && !isFloat(kind.dtype);
  }

  static int64_t as(Dtype dtype, int64_t number) {
    return dtype == Dtype::Bool ? number != 0 : static_cast<int64_t>(lang::wrapInteger(scalarOf(dtype), number));
  }

  /// As Emitter::binary() and its neighbours compute it.
  std::optional<Numbers> valueOf(const Op& op) {
    const Dtype result = kinds_[static_cast<size_t>(op.result)].dtype;
    if (!isInteger(kinds_[static_cast<size_t>(op.result)]) || !spend())
      return std::nullopt;
    if (op.name == "tid" || op.name == "lane") {
      Numbers out(lanes_);
      for (size_t lane = 0; lane < lanes_; ++lane)
        out[lane] = static_cast<int64_t>(op.name == "tid" ? lane : lane % 32);
      return out;
    }
    const bool isCast = op.name == "cast" || op.name == "scalar" || op.name == "index", isChoice = op.name == "where";
    const size_t count = isCast ? 1 : op.operands.size();
    std::vector<Numbers> given;
    Dtype meeting = result;
    for (size_t i = 0; i < count; ++i) {
      std::optional<Numbers> operand = known(op.operands[i]);
      const Kind kind = kindOf(op.operands[i], kinds_);
      if (!operand || !isInteger(kind))
        return std::nullopt;
      if (result == Dtype::Bool && !isCast && !isChoice)
        meeting = promote(meeting, kind.dtype);
      given.push_back(*std::move(operand));
    }
    const int64_t bits = static_cast<int64_t>(lang::bitWidth(scalarOf(meeting)));
    Numbers out(lanes_);
    for (size_t lane = 0; lane < lanes_; ++lane) {
      const auto operand = [&](size_t i) { return as(meeting, given[i][lane]); };
      std::optional<int64_t> number;
      if (isCast)
        number = given[0][lane];
      else if (isChoice && count == 3)
        number = operand(given[0][lane] != 0 ? 1 : 2);
      else if (op.name == "not" && count == 1)
        number = result == Dtype::Bool ? operand(0) == 0 : ~operand(0);
      else if (op.name == "neg" && count == 1)
        number = wrapping("sub", 0, operand(0));
      else if (op.name == "reverse_bits" && count == 1)
        number = reversed(given[0][lane]);
      else if (count == 2)
        number = compute(op.name, operand(0), operand(1), bits);
      if (!number)
        return std::nullopt;
      out[lane] = as(result, *number);
    }
    return out;
  }

  void loop(size_t begin, const Numbers& active) {
    const Op& op = trace_.ops[begin];
    const bool counts = op.name == "loop";
    const auto counter = static_cast<size_t>(op.operands[0].number);
    const std::optional<Numbers> start = counts ? known(op.operands[1]) : std::nullopt,
                                 end = counts ? known(op.operands[2]) : std::nullopt,
                                 step = counts ? known(op.operands[3]) : std::nullopt;
    if (start && end && step && runKnown(begin, counter, *start, *end, *step, active))
      return;
    // What was written before the loop is written in it; what it writes itself may not have been, after it.
    const std::map<int32_t, Memory> before = memories_;
    values_[counter].reset();
    const bool isOfAll = variations_[begin] == Variation::None;
    run(begin + 1, ends_[begin], isOfAll ? active : Numbers(lanes_, kMaybe));
    memories_ = before;
    forget(begin);
  }

  /// The rounds one by one; false: too many, and nothing that they stored counts.
  bool runKnown(size_t begin, size_t counter, Numbers number, const Numbers& end, const Numbers& step,
                const Numbers& active) {
    const std::map<int32_t, Memory> before = memories_;
    while (true) {
      Numbers runs(lanes_);
      bool hasAny = false;
      for (size_t lane = 0; lane < lanes_; ++lane) {
        const bool isInside = step[lane] > 0   ? number[lane] < end[lane]
                              : step[lane] < 0 ? number[lane] > end[lane]
                                               : false;
        runs[lane] = isInside ? active[lane] : kOff;
        hasAny = hasAny || runs[lane] != kOff;
      }
      if (!hasAny)
        break;
      if (!spend()) {
        memories_ = before;
        return false;
      }
      values_[counter] = number;
      run(begin + 1, ends_[begin], runs);
      for (size_t lane = 0; lane < lanes_; ++lane)
        number[lane] = wrapping("add", number[lane], step[lane]);
    }
    forget(begin);
    return true;
  }

  /// Values of the body and what the loop carries.
  void forget(size_t begin) {
    for (size_t i = begin; i < ends_[begin]; ++i)
      if (trace_.ops[i].result >= 0)
        values_[static_cast<size_t>(trace_.ops[i].result)].reset();
  }

  void access(const Op& op, int32_t id, const Numbers& active) {
    Memory& memory = memories_.at(id);
    if (memory.missing == 0)
      return;
    const bool isAtomic = op.name.starts_with("atomic_");
    if (op.name == "tile_store" || op.name == "tile_load")
      return accessTile(op, id, memory, active);
    if (op.name != "store" && op.name != "load" && !isAtomic) {
      found_.insert(id);
      return;
    }
    const size_t masked = op.name == "load" ? 2 : 3;
    const bool hasMask = masked < op.operands.size() && op.operands[masked].kind != Operand::Kind::None;
    const std::optional<Numbers> offsets = spend() ? known(op.operands[1]) : std::nullopt;
    const std::optional<Numbers> mask = hasMask ? known(op.operands[masked]) : Numbers(lanes_, 1);
    if (op.name != "store" && !isRead(memory, offsets, mask, active))
      found_.insert(id);
    if (op.name == "load" || !offsets || !mask)
      return;
    for (size_t lane = 0; lane < lanes_; ++lane)
      if (active[lane] == kOn && (*mask)[lane] != 0)
        memory.write((*offsets)[lane]);
  }

  /// All that it may read has been written.
  bool isRead(const Memory& memory, const std::optional<Numbers>& offsets, const std::optional<Numbers>& mask,
              const Numbers& active) const {
    for (size_t lane = 0; lane < lanes_; ++lane)
      if (active[lane] != kOff && (!mask || (*mask)[lane] != 0) && (!offsets || !memory.has((*offsets)[lane])))
        return false;
    return true;
  }

  /// All lanes do it together.
  void accessTile(const Op& op, int32_t id, Memory& memory, const Numbers& active) {
    const bool isStore = op.name == "tile_store";
    const size_t extents = isStore ? 4 : 3;
    const std::optional<Numbers> row = known(op.operands[1]), column = known(op.operands[2]);
    const bool isPlain = op.operands.size() <= extents + 2 || op.operands[extents + 2].kind == Operand::Kind::None;
    if (!row || !column || !isPlain || memory.columns == 0 || active[0] == kOff || !spend()) {
      if (!isStore)
        found_.insert(id);
      return;
    }
    const int64_t rows = static_cast<int64_t>(memory.isWritten.size()) / memory.columns;
    for (int64_t i = std::max<int64_t>((*row)[0], 0); i < std::min((*row)[0] + op.operands[extents].number, rows); ++i)
      for (int64_t j = std::max<int64_t>((*column)[0], 0);
           j < std::min((*column)[0] + op.operands[extents + 1].number, memory.columns); ++j) {
        if (isStore && active[0] == kOn)
          memory.write(i * memory.columns + j);
        else if (!isStore && !memory.has(i * memory.columns + j))
          found_.insert(id);
      }
  }

  /// Whether a lane runs what stands in a loop.
  static constexpr int64_t kOff = 0, kOn = 1, kMaybe = 2;

  const Trace& trace_;
  const std::vector<Kind>& kinds_;
  std::vector<Variation> variations_;
  std::vector<size_t> ends_;  ///< by the index of what begins a loop
  size_t lanes_;
  std::vector<std::optional<Numbers>> values_;
  std::vector<bool> isNeeded_;
  std::map<int32_t, Memory> memories_;
  std::set<int32_t> found_;
  int64_t work_ = 0;
};

}  // namespace

std::set<int32_t> readUnwritten(const Trace& trace, const std::vector<Kind>& kinds) {
  return Coverage(trace, kinds).run();
}

}  // namespace vortex::metile
