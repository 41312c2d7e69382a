// What is wrong with operands: the trace is made without types, so it is found here, also in what nothing needs.
#include "metile/kinds.h"
#include "metile/lower.h"

#include "base/number_text.h"
#include "lang/sema/integers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace vortex::metile {

using lang::Scalar;

namespace {

/// Operands [first, end) of an operation are integers or masks.
struct OperandsOfIntegers {
  std::string_view name;
  size_t first, end;
  const char* what;
  const char* help = "`metile.cast(x, \"i32\")` gives integers";
};

constexpr const char* kMask = "a mask is true, false or an integer";
constexpr const char* kComparison = "a comparison gives a mask: `x != 0`";

constexpr OperandsOfIntegers kIntegers[] = {
    {"and", 0, 2, "`&` takes integers and masks"},
    {"or", 0, 2, "`|` takes integers and masks"},
    {"xor", 0, 2, "`^` takes integers and masks"},
    {"not", 0, 1, "`~` takes integers and masks"},
    {"shl", 0, 2, "`<<` takes integers"},
    {"shr", 0, 2, "`>>` takes integers"},
    {"reverse_bits", 0, 1, "`reverse_bits` takes integers"},
    {"index", 0, 1, "an offset is an integer"},
    {"load", 1, 2, "an offset is an integer"},
    {"store", 1, 2, "an offset is an integer"},
    {"tile_load", 1, 3, "the row and the column of a tile are integers"},
    {"tile_store", 1, 3, "the row and the column of a tile are integers"},
    {"tile_load", 5, 7, "the rows of a matrix are integers"},
    {"tile_store", 6, 8, "the rows of a matrix are integers"},
    {"atomic_add", 1, 2, "an offset is an integer"},
    {"atomic_max", 1, 2, "an offset is an integer"},
    {"atomic_min", 1, 2, "an offset is an integer"},
    {"loop", 1, 4, "bounds and step of tile_range are integers"},
    {"draw", 2, 4, "offset and total of persistent_range are integers"},
    {"simd_shuffle_xor", 1, 2, "the mask of simd_shuffle_xor is an integer"},
    {"simd_broadcast", 1, 2, "the lane of simd_broadcast is an integer"},
    {"load", 2, 3, kMask, kComparison},
    {"store", 3, 4, kMask, kComparison},
    {"atomic_add", 3, 4, kMask, kComparison},
    {"atomic_max", 3, 4, kMask, kComparison},
    {"atomic_min", 3, 4, kMask, kComparison},
    {"where", 0, 1, "the condition of where is a mask or an integer", kComparison},
    {"assert", 1, 2, "the condition of device_assert is a mask or an integer", kComparison},
};

/// The numbers that a literal beside this type may be: of comparisons, choices by size and loops those that it holds, else those of its
/// bits.
bool fits(int64_t number, Dtype dtype, bool isExact) {
  const Scalar type = scalarOf(dtype);
  const auto bits = static_cast<int>(lang::bitWidth(type));
  const bool isUnsigned = lang::isUnsigned(type);
  const int64_t lowest = isExact && isUnsigned ? 0 : -(int64_t(1) << (bits - 1));
  const int64_t highest = (int64_t(1) << (isExact && !isUnsigned ? bits - 1 : bits)) - 1;
  return lowest <= number && number <= highest;
}

bool isAnyOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Checks {
public:
  Checks(const Trace& trace, const std::vector<Kind>& kinds, diag::DiagnosticSink& sink)
      : trace_(trace), sink_(sink), kinds_(kinds), definitions_(static_cast<size_t>(trace.values)) {}

  bool run() {
    for (const Op& op : trace_.ops) {
      if (op.result >= 0)
        definitions_[static_cast<size_t>(op.result)] = &op;
      integers(op);
      literals(op);
    }
    return isRight_;
  }

private:
  Kind kind(const Op& op, size_t index) const { return kindOf(op.operands[index], kinds_); }

  static std::string named(Dtype dtype) {
    return "`" + std::string(lang::name(scalarOf(dtype == Dtype::FloatLiteral ? Dtype::F32 : dtype))) + "`";
  }

  void refuse(const Op& op, const char* id, const std::string& what, const std::string& help,
              const Op* origin = nullptr) {
    auto error = sink_.error(id, op.range, what);
    error.primary("");
    if (origin)
      error.label(origin->range, "a float from here on");
    if (!help.empty())
      error.help(help);
    isRight_ = false;
  }

  /// The operation that made a float of what were integers before.
  const Op* originOf(const Operand& given) const {
    const Op* made = nullptr;
    for (const Op* before = definition(given); before;) {
      made = std::exchange(before, nullptr);
      for (size_t i = 0; i < made->operands.size() && !before; ++i)
        if (isFloat(kind(*made, i).dtype))
          before = definition(made->operands[i]);
    }
    return made;
  }

  const Op* definition(const Operand& given) const {
    return given.kind == Operand::Kind::Value ? definitions_[static_cast<size_t>(given.number)] : nullptr;
  }

  /// What is wrong only for floats.
  void integers(const Op& op) {
    for (const OperandsOfIntegers& row : kIntegers)
      for (size_t i = row.first; row.name == op.name && i < std::min<size_t>(row.end, op.operands.size()); ++i)
        if (const Dtype dtype = kind(op, i).dtype; isFloat(dtype)) {
          const Op* origin = originOf(op.operands[i]);
          isRight_ = false;
          if (!origin || origins_.emplace(origin, row.what).second)  // once for each cause
            refuse(op, "E0303", row.what + std::string(", not ") + named(dtype), row.help, origin);
          break;
        }
    if (!op.name.starts_with("atomic_") || op.result < 0)
      return;
    const Dtype element = kinds_[static_cast<size_t>(op.result)].dtype, given = kind(op, 2).dtype;
    if (!isFloat(element) && isFloat(given))
      refuse(op, "E0303", "`" + op.name + "` on elements of " + named(element) + " takes integers, not " + named(given),
             "`metile.cast(x, \"i32\")` gives integers");
  }

  /// A literal takes the type of the other side, and would lose its value where it does not fit. A float that stands alone is an f32.
  void literals(const Op& op) {
    const bool isAtomic = op.name.starts_with("atomic_");
    const bool isCarried = isAnyOf(op.name, {"carry", "yield"});
    const bool isExact = isCarried || isAnyOf(op.name, {"eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum",
                                                        "where", "div", "rem", "atomic_max", "atomic_min"});
    const bool isMeeting = isAtomic || isExact || isFloatFunction(op.name) ||
                           isAnyOf(op.name, {"add", "sub", "mul", "pow", "and", "or", "xor"});
    const size_t first = op.name == "where" || isCarried ? 1
                         : isAtomic                      ? 2
                                                         : 0,
                 end = isAtomic ? 3 : op.operands.size();
    Dtype meeting = isAtomic    ? kinds_[static_cast<size_t>(op.result)].dtype
                    : isCarried ? kinds_[static_cast<size_t>(op.operands[0].number)].dtype
                                : Dtype::Unknown;
    for (size_t i = first; i < end && isMeeting && !isAtomic && !isCarried; ++i)
      meeting = promote(meeting, kind(op, i).dtype);
    const bool isNarrow = meeting == Dtype::U8 || meeting == Dtype::I32 || meeting == Dtype::U32;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& given = op.operands[i];
      const bool meets = isMeeting && first <= i && i < end;
      if (given.kind == Operand::Kind::Int && meets && isNarrow && !fits(given.number, meeting, isExact))
        tooLarge(op, std::to_string(given.number), meeting, true);
      else if (given.kind == Operand::Kind::Float)
        real(op, given.real, meets && isFloat(meeting) ? meeting : Dtype::F32);
      else if (given.kind == Operand::Kind::Int && meets && isFloat(meeting))
        real(op, static_cast<double>(given.number), meeting);
    }
  }

  void real(const Op& op, double number, Dtype dtype) {
    if (std::isfinite(number) && std::isinf(lang::roundToFloat(scalarOf(dtype), number)))
      tooLarge(op, base::floatText(number), dtype, dtype != Dtype::F32);
  }

  void tooLarge(const Op& op, const std::string& number, Dtype dtype, bool meets) {
    const std::string what = number + " does not fit " + named(dtype);
    if (!meets)
      return refuse(op, "E0302", what, "");
    if (op.name.starts_with("atomic_"))
      return refuse(op, "E0302", what + ", the type of the elements", "");
    if (isAnyOf(op.name, {"carry", "yield"}))
      return refuse(op, "E0302", what + ", the type that the loop carries", "");
    refuse(op, "E0302", what + ", the type of the other side",
           "`metile.cast` of the other side to a type that holds both");
  }

  const Trace& trace_;
  diag::DiagnosticSink& sink_;
  const std::vector<Kind>& kinds_;
  std::vector<const Op*> definitions_;                        ///< by the id of the value, as far as was read
  std::set<std::pair<const Op*, std::string_view>> origins_;  ///< of what was refused
  bool isRight_ = true;
};

}  // namespace

bool check(const Trace& trace, const std::vector<Kind>& kinds, diag::DiagnosticSink& sink) {
  return Checks(trace, kinds, sink).run();
}

}  // namespace vortex::metile
