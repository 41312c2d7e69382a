#include "lang/flow/graph/dump.h"

#include <array>

#include "base/text.h"

namespace vortex::lang::flow {
namespace {

constexpr std::array<std::string_view, 30> kSteps = {
    "declare", "empty",        "end",    "bind",   "load", "store",     "atomic", "item",   "view", "compute",
    "barrier", "warp_barrier", "warp",   "stage",  "tile", "assert",    "print",  "output", "use",  "copy",
    "move",    "move_out",     "mutate", "borrow", "flow", "flow_more", "keep",   "result", "jump", "branch"};
constexpr std::array<std::string_view, 17> kOps = {"+", "-", "*",   "/",   "%",  "ceil_div", "<<", ">>",    "&",
                                                   "|", "^", "min", "max", "==", "<",        "<=", "select"};
constexpr std::array<std::string_view, 8> kPositions = {
    "thread.id", "thread.local_id", "thread.global_id", "block.id", "block.dim", "grid.dim", "warp.id", "warp.lane_id"};

std::string numberText(__int128 value) {
  if (value < 0)
    return "-" + numberText(-value);
  std::string digits;
  do
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
  while ((value /= 10) != 0);
  return digits;
}

class Dump {
public:
  Dump(const Graph& graph, const source::SourceManager& sources) : graph_(graph), sources_(sources) {}

  std::string run() {
    out_ = base::concat(graph_.isKernel ? "kernel " : "fn ", graph_.function->uniqueName, "\n");
    for (size_t i = 0; i < graph_.loops.size(); ++i)
      loop(i);
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
      block(BlockId{i});
    return std::move(out_);
  }

private:
  static std::string name(BlockId block) { return "b" + std::to_string(indexOf(block)); }
  template <typename List> std::string names(const List& blocks) {
    std::vector<std::string> all;
    for (BlockId each : blocks)
      all.push_back(name(each));
    return base::join(all, " ");
  }

  void loop(size_t number) {
    const Loop& loop = graph_.loops[number];
    out_ += base::concat("  loop ", number, ": header ", name(loop.header), ", back from ", names(loop.latches),
                         ", exits ", names(loop.exits));
    if (loop.counter) {
      const Counter& counter = *loop.counter;
      out_ += ", counts " + value(counter.phi);
      if (counter.kind == Counter::Kind::Range)
        out_ += base::concat(" from ", value(counter.begin), " to ", value(counter.end), " by ", value(counter.step));
      if (counter.isPosition)
        out_ += " below " + value(counter.trips);
    }
    out_ += "\n";
  }

  void block(BlockId id) {
    const Block& block = graph_[id];
    out_ += base::concat(name(id), block.predecessors.empty() ? "" : " from ", names(block.predecessors));
    if (block.loop != kNoLoop)
      out_ += base::concat(" in loop ", indexOf(block.loop));
    out_ += ":\n";
    for (ValueId phi : block.phis) {
      std::vector<std::string> operands;
      for (ValueId operand : graph_.values.phiOperands(phi))
        operands.push_back(value(operand));
      line("", base::concat(value(phi), " = phi ", base::join(operands, ", ")), nullptr);
    }
    for (uint32_t i = indexOf(block.begin); i < indexOf(block.end); ++i)
      step(StepId{i}, block);
  }

  void line(std::string number, std::string text, const Expr* origin) {
    std::string out = "  " + std::move(number);
    out.resize(std::max<size_t>(out.size(), 7), ' ');
    out += text;
    if (origin && origin->range.isValid()) {
      out.resize(std::max<size_t>(out.size() + 2, 64), ' ');
      const source::LineColumn at = sources_.lineColumn(origin->range);
      out += base::concat("# ", at.line, ":", at.column);
    }
    out_ += out + "\n";
  }

  void step(StepId id, const Block& block) {
    const Step& step = graph_[id];
    std::string text;
    const bool isDefinition = step.value != kNoValue && graph_.definition(step.value) == id;
    if (isDefinition)
      text = value(step.value) + " = ";
    text += step.kind == StepKind::Return ? "return" : kSteps[static_cast<size_t>(step.kind)];
    if (step.kind == StepKind::Compute || step.kind == StepKind::Warp || step.kind == StepKind::Atomic)
      if (step.origin && step.origin->kind == ExprKind::Builtin)
        text += base::concat(" ", spelling(step.origin->builtin));
    if (step.kind == StepKind::Bind)
      text += base::concat(" ", graph_.function->dims[step.index].name);
    if (step.place != kNoPlace)
      text += " " + place(step.place);
    if (step.value != kNoValue && !isDefinition)
      text += base::concat(step.place != kNoPlace ? " = " : " ", value(step.value));
    if (step.useCount > 0 && step.kind != StepKind::Store) {
      std::vector<std::string> uses;
      for (ValueId use : graph_.uses(step))
        uses.push_back(value(use));
      text += base::concat("(", base::join(uses, ", "), ")");
    }
    if (step.kind == StepKind::Tile || step.kind == StepKind::Stage || step.kind == StepKind::Output)
      for (const Access& access : graph_.accessesOf(step))
        if (access.mode == AccessMode::Read)
          text += " reads " + place(access.place);
    if (!block.successors.empty() && pointOf(id) == PointId{indexOf(block.end) - 1})
      text += base::concat(step.kind == StepKind::Branch ? " ? " : " ", name(block.successors[0]),
                           step.kind == StepKind::Branch ? " : " + name(block.successors[1]) : "");
    line(std::to_string(indexOf(id)), std::move(text), step.origin);
  }

  std::string place(PlaceId id) {
    const Place& place = graph_[id];
    std::string out;
    if (place.isUnknown()) {
      std::vector<std::string> all;
      for (LocalId local : place.candidates)
        all.push_back(this->local(local));
      out = base::concat("{", base::join(all, " | "), "}");
    } else {
      out = local(place.root);
    }
    for (const Projection& each : place.path) {
      switch (each.kind) {
      case ProjectionKind::Field: out += base::concat(".", each.field); break;
      case ProjectionKind::Deref: out += ".*"; break;
      case ProjectionKind::Slot: out += base::concat("#", value(each.index)); break;
      case ProjectionKind::At:
      case ProjectionKind::Window: out += dims(each.dims); break;
      }
    }
    return out;
  }

  std::string dims(const std::vector<DimRange>& dims) {
    std::vector<std::string> all;
    for (const DimRange& dim : dims)
      all.push_back(dim.isIndex() ? value(dim.begin) : base::concat(value(dim.begin), "..", value(dim.end)));
    return base::concat("[", base::join(all, ", "), "]");
  }

  std::string local(LocalId id) {
    const Local& local = graph_[id];
    if (local.storage == Storage::Result && !local.variable)
      return base::concat("result", local.index);
    if (!local.variable || local.variable->name.empty())
      return base::concat("t", indexOf(id));
    return local.variable->name;
  }

  /// Expressions are written out, down to what a step or a phi made.
  std::string value(ValueId id, unsigned depth = 0) {
    id = graph_.values.resolved(id);
    const Node& node = graph_.values[id];
    const std::string own = "v" + std::to_string(indexOf(id));
    switch (node.kind) {
    case NodeKind::Constant: return numberText(node.constant());
    case NodeKind::Extent: {
      const auto& all = graph_.function->dims;
      return node.number() < all.size() ? all[node.number()].name : own;
    }
    case NodeKind::Argument: {
      const Argument& argument = graph_.arguments[node.number()];
      return argument.variable->name + (argument.leaf ? "." + std::to_string(argument.leaf) : "");
    }
    case NodeKind::Position:
      return std::string(kPositions[static_cast<size_t>(node.position())]) +
             (node.axis() ? std::string(".") + "xyz"[node.axis()] : "");
    case NodeKind::Phi:
    case NodeKind::Load:
    case NodeKind::Ticket: return own;
    case NodeKind::Unknown: return graph_.definition(id) == kNoStep ? own + "?" : own;
    case NodeKind::Convert:
      return base::concat(node.type.isSigned ? "i" : "u", static_cast<int>(node.type.width), "(",
                          value(node.args[0], depth + 1), ")");
    case NodeKind::Op: break;
    }
    if (depth > 8)
      return own;
    const auto operand = [&](size_t i) { return value(node.args[i], depth + 1); };
    const std::string_view spelled = kOps[static_cast<size_t>(node.op)];
    if (node.op == Op::Select)
      return base::concat("select(", operand(0), ", ", operand(1), ", ", operand(2), ")");
    if (node.op == Op::Min || node.op == Op::Max || node.op == Op::CeilDiv)
      return base::concat(spelled, "(", operand(0), ", ", operand(1), ")");
    return base::concat("(", operand(0), " ", spelled, " ", operand(1), ")");
  }

  const Graph& graph_;
  const source::SourceManager& sources_;
  std::string out_;
};

}  // namespace

std::string dump(const Graph& graph, const source::SourceManager& sources) { return Dump(graph, sources).run(); }

}  // namespace vortex::lang::flow
