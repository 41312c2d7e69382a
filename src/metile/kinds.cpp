#include "metile/kinds.h"

#include "base/check.h"
#include "base/float_functions.h"

#include <algorithm>

namespace vortex::metile {

std::optional<Dtype> dtypeNamed(std::string_view name) {
  constexpr std::pair<std::string_view, Dtype> kNames[] = {
      {"bool", Dtype::Bool}, {"u8", Dtype::U8},     {"i32", Dtype::I32}, {"u32", Dtype::U32},
      {"f16", Dtype::F16},   {"bf16", Dtype::BF16}, {"f32", Dtype::F32}};
  for (const auto& [known, dtype] : kNames)
    if (known == name)
      return dtype;
  return std::nullopt;
}

lang::Scalar scalarOf(Dtype dtype) {
  using lang::Scalar;
  switch (dtype) {
  case Dtype::Bool: return Scalar::Bool;
  case Dtype::Unknown:
  case Dtype::IntLiteral:
  case Dtype::Index: return Scalar::I64;
  case Dtype::U8: return Scalar::U8;
  case Dtype::I32: return Scalar::I32;
  case Dtype::U32: return Scalar::U32;
  case Dtype::F16: return Scalar::F16;
  case Dtype::BF16: return Scalar::BF16;
  case Dtype::FloatLiteral:
  case Dtype::F32: return Scalar::F32;
  }
  VORTEX_UNREACHABLE();
}

bool isFloat(Dtype dtype) { return dtype >= Dtype::FloatLiteral; }

Dtype promote(Dtype a, Dtype b) {
  if (a > b)
    std::swap(a, b);
  if (a == b)
    return a;
  if (b == Dtype::FloatLiteral)
    return a == Dtype::Unknown || a == Dtype::IntLiteral ? Dtype::FloatLiteral : Dtype::F32;
  if (b == Dtype::Bool && a == Dtype::IntLiteral)
    return Dtype::Index;
  if (b == Dtype::U8 && a == Dtype::Index)
    return Dtype::I32;  // ids and arguments are i32; bytes would hold no more than 255 of them
  return b;
}

Kind kindOf(const Operand& operand, const std::vector<Kind>& kinds) {
  switch (operand.kind) {
  case Operand::Kind::Value: return kinds[static_cast<size_t>(operand.number)];
  case Operand::Kind::Int: return {Dtype::IntLiteral};
  case Operand::Kind::Float: return {Dtype::FloatLiteral};
  default: return {};
  }
}

namespace {

Kind join(const Kind& a, const Kind& b) {
  return {promote(a.dtype, b.dtype), std::max(a.rows, b.rows), std::max(a.columns, b.columns),
          a.mayBeInvalid || b.mayBeInvalid};
}

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Arithmetic on masks counts them.
Dtype arithmetic(Dtype dtype) { return dtype == Dtype::Bool ? Dtype::I32 : dtype; }

class Inference {
public:
  explicit Inference(const Trace& trace) : trace_(trace), kinds_(static_cast<size_t>(trace.values)) {}

  std::vector<Kind> run() {
    do {
      changed_ = false;
      for (const Op& op : trace_.ops)
        visit(op);
    } while (changed_);
    return std::move(kinds_);
  }

private:
  void visit(const Op& op) {
    if (op.name == "carry" || op.name == "yield") {
      Kind carried = kind(op, 0), value = kind(op, 1);
      value.dtype = strong(value.dtype);  // a sum that starts from 0.0 is kept in f32
      value.mayBeInvalid =
          value.mayBeInvalid && op.name == "carry";  // what a lane has not computed leaves the old value
      return set(op.operands[0].number, join(carried, value));
    }
    if (op.name == "loop" || op.name == "draw") {
      Kind counter{Dtype::Index};
      for (size_t i = 1; i < op.operands.size(); ++i)
        counter.mayBeInvalid = counter.mayBeInvalid || kind(op, i).mayBeInvalid;
      return set(op.operands[0].number, counter);
    }
    if (op.result >= 0)
      set(op.result, resultOf(op));
  }

  Kind resultOf(const Op& op) {
    if (isOneOf(op.name, {"pid", "programs", "tid", "lane"}))
      return {Dtype::Index};
    if (op.name == "param")
      return {trace_.params[static_cast<size_t>(op.operands[0].number)].kind == Param::Kind::Int ? Dtype::Index
                                                                                                 : Dtype::F32};
    if (op.name == "cast" || op.name == "scalar") {
      Kind out = kind(op, 0);
      out.dtype = *dtypeNamed(op.operands[1].word);
      return out;
    }
    if (op.name == "index") {
      Kind out = kind(op, 0);
      out.dtype = Dtype::Index;
      return out;
    }
    if (op.name == "load")
      return {elementOf(op.operands[0]), 0, 0, op.operands[2].kind != Operand::Kind::None || kind(op, 1).mayBeInvalid};
    if (op.name == "tile_load")
      return {elementOf(op.operands[0]), op.operands[3].number, op.operands[4].number};
    if (op.name == "positions")
      return op.operands[0].number == 0 ? Kind{Dtype::Index, op.operands[1].number, 1}
                                        : Kind{Dtype::Index, 1, op.operands[1].number};
    if (op.name == "zeros")
      return {*dtypeNamed(op.operands[2].word), op.operands[0].number, op.operands[1].number};
    if (op.name.starts_with("atomic_"))
      return {elementOf(op.operands[0]), 0, 0, op.operands[3].kind != Operand::Kind::None || kind(op, 1).mayBeInvalid};
    if (op.name == "only")
      return {strong(kind(op, 0).dtype)};
    if (op.name == "transpose")
      return kind(op, 0).transposed();
    if (op.name.starts_with("tile_"))
      return reduced(op);
    if (op.name == "dot")
      return {kind(op, 2).dtype, kind(op, 0).rows, kind(op, 1).columns};
    return elementwise(op);
  }

  Kind elementwise(const Op& op) {
    Kind out = kind(op, op.name == "where" ? 1 : 0);
    for (size_t i = 0; i < op.operands.size(); ++i) {
      Kind operand = kind(op, i);
      if (op.name == "where" && i == 0)
        operand.dtype = Dtype::Unknown;
      out = join(out, operand);
    }
    if (isOneOf(op.name, {"eq", "ne", "lt", "le", "gt", "ge"}))
      out.dtype = Dtype::Bool;
    else if (isFloatFunction(op.name))
      out.dtype = isFloat(out.dtype) ? strong(out.dtype) : Dtype::F32;
    else if (op.name == "reverse_bits")
      out.dtype = Dtype::U32;
    else if (isOneOf(op.name, {"add", "sub", "mul", "div", "rem", "pow", "neg", "abs", "shl", "shr"}))
      out.dtype = strong(arithmetic(out.dtype));
    else if (isOneOf(op.name, {"sum", "simd_sum"}))
      out.dtype = strong(arithmetic(out.dtype));
    else
      out.dtype = strong(out.dtype);
    if (isOneOf(op.name, {"sum", "max", "min"}))
      out.mayBeInvalid = false;
    return out;
  }

  /// Of a tile along one dimension, which stays with extent 1.
  Kind reduced(const Op& op) const {
    Kind out = kind(op, 0);
    (op.operands[1].number == 0 ? out.rows : out.columns) = 1;
    out.dtype = strong(op.name == "tile_sum" ? arithmetic(out.dtype) : out.dtype);
    return out;
  }

  /// What is computed from literals alone has the type that they would have alone.
  static Dtype strong(Dtype dtype) {
    return dtype == Dtype::IntLiteral ? Dtype::Index : dtype == Dtype::FloatLiteral ? Dtype::F32 : dtype;
  }

  Dtype elementOf(const Operand& pointer) const {
    if (pointer.kind == Operand::Kind::Param)
      return *dtypeNamed(trace_.params[static_cast<size_t>(pointer.number)].element);
    for (const Op& op : trace_.ops)
      if (op.name == "shared" && op.result == pointer.number)
        return *dtypeNamed(op.operands[1].word);
    VORTEX_UNREACHABLE("shared memory that is not declared");
  }

  Kind kind(const Op& op, size_t index) const { return kindOf(op.operands[index], kinds_); }

  void set(int64_t id, const Kind& kind) {
    Kind& known = kinds_[static_cast<size_t>(id)];
    changed_ = changed_ || !(known == kind);
    known = kind;
  }

  const Trace& trace_;
  std::vector<Kind> kinds_;
  bool changed_ = false;
};

}  // namespace

bool isFloatFunction(std::string_view name) {
#define VORTEX_FLOAT_NAME(id, text, ...) text,
  return isOneOf(name, {VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_NAME)});
#undef VORTEX_FLOAT_NAME
}

std::vector<Kind> inferKinds(const Trace& trace) { return Inference(trace).run(); }

/// `op` makes the number of the simdgroup of that of the lane: `thread_id() // 32`, or a part of it.
static bool isOfSimdgroup(const Op& op, const std::vector<bool>& areLanes) {
  if (op.operands.size() != 2 || op.operands[0].kind != Operand::Kind::Value ||
      op.operands[1].kind != Operand::Kind::Int || !areLanes[static_cast<size_t>(op.operands[0].number)])
    return false;
  const int64_t by = op.operands[1].number;
  return op.name == "div" ? by > 0 && by % 32 == 0 : op.name == "shr" && by >= 5 && by < 32;
}

/// Apart from what its operands are and the loops that it stands in.
static Variation ownVariation(const Op& op, int64_t threads) {
  const bool isWhole = threads % 32 == 0;  // a lane that is missing has no value for the others
  if (op.name == "simd_sum" || op.name == "simd_max" || (op.name == "simd_broadcast" && isWhole))
    return Variation::OfSimdgroups;
  return isOneOf(op.name, {"tid", "lane"}) || op.name.starts_with("simd_") ? Variation::OfLanes : Variation::None;
}

std::vector<Variation> variationOf(const Trace& trace) {
  std::vector<Variation> values(static_cast<size_t>(trace.values)), ops(trace.ops.size());
  std::vector<bool> areLanes(static_cast<size_t>(trace.values));  // numbers of lanes as they are
  bool changed = true;
  const auto mark = [&](Variation& known, Variation found) {
    changed = changed || found > known;
    known = std::max(known, found);
  };
  while (changed) {
    changed = false;
    std::vector<Variation> loops = {Variation::None};  // those around, outermost first
    for (size_t i = 0; i < trace.ops.size(); ++i) {
      const Op& op = trace.ops[i];
      const bool isLoop = op.name == "loop", definesFirst = isLoop || isOneOf(op.name, {"draw", "carry", "yield"});
      Variation variation = std::max(ownVariation(op, trace.threads), loops.back());
      Variation ofOperands = Variation::None;
      for (size_t k = op.name == "simd_broadcast" || definesFirst ? 1 : 0; k < op.operands.size(); ++k)
        if (op.operands[k].kind == Operand::Kind::Value)
          ofOperands = std::max(ofOperands, values[static_cast<size_t>(op.operands[k].number)]);
      if (op.name == "simd_sum" || op.name == "simd_max" || isOfSimdgroup(op, areLanes))
        ofOperands = std::min(ofOperands, Variation::OfSimdgroups);
      variation = std::max(variation, ofOperands);
      if (isOneOf(op.name, {"sum", "max", "min", "only"}))
        variation = Variation::None;
      if (isLoop || op.name == "draw")
        loops.push_back(std::max(variation, loops.back()));
      if (op.name == "end")
        loops.pop_back();
      mark(ops[i], variation);
      if (definesFirst)
        mark(values[static_cast<size_t>(op.operands[0].number)], variation);
      if (op.result >= 0) {
        mark(values[static_cast<size_t>(op.result)], variation);
        areLanes[static_cast<size_t>(op.result)] = op.name == "tid";
      }
    }
  }
  return ops;
}

}  // namespace vortex::metile
