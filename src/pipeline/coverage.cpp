// Every size of the kernel is built again over what the launches have in common: extents that are known are constants, those of rows that fill
// 16 bytes are multiples, strides are products of extents. What simplifies to a constant then is decided for all of these launches; that
// the ranges and divisors of src/size hold for all values makes it sound.
#include "pipeline/coverage.h"

#include "artifact/scalar_type.h"
#include "base/text.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace vortex::pipeline {

using artifact::Kernel;
using artifact::Param;
using base::concat;
using size::Expr;
using size::Op;

namespace {

constexpr int64_t kRowBytes = 16;

/// Elements between neighbours of the last dimension.
int64_t pitchOf(const Param& param) {
  return param.structBytes ? param.structBytes / artifact::byteSize(param.type) : 1;
}

/// Of how many elements rows are multiples.
int64_t rowMultiple(const Param& param) {
  return kRowBytes / std::gcd<int64_t>(kRowBytes, artifact::byteSize(param.type) * pitchOf(param));
}

class Cover {
public:
  Cover(const Kernel& kernel, const Coverage& wanted) : kernel_(kernel), wanted_(wanted) {
    for (const artifact::Constraint& constraint : kernel.constraints)
      learn(constraint.condition);
    for (const Coverage::Extent& extent : wanted.extents)
      classOf(extent.argument, extent.dim).value = extent.value;
    for (uint32_t i = 0; wanted.isUsual && i < kernel.params.size(); ++i)
      if (const Param& param = kernel.params[i]; param.isTensor && param.rank)
        if (Class& last = classOf(i, param.rank - 1); last.multiple < rowMultiple(param))
          last.multiple = rowMultiple(param);
  }

  std::set<std::string> run() {
    take(kernel_.steps);
    return std::move(reached_);
  }

private:
  using Dim = std::pair<uint32_t, uint32_t>;
  /// Extents that every launch has alike.
  struct Class {
    Dim first;
    int64_t multiple = 1;
    std::optional<int64_t> value;
  };

  Class& classOf(uint32_t argument, uint32_t dim) {
    const Dim key{argument, dim};
    if (auto known = numbers_.find(key); known != numbers_.end())
      return classes_[known->second];
    numbers_[key] = classes_.size();
    return classes_.emplace_back(Class{key, 1, {}});
  }

  /// Extents that a launch is refused without.
  void learn(size::Id condition) {
    const std::vector<size::Row>& rows = kernel_.sizes.rows();
    const size::Row& row = rows[condition.index];
    if (row.op == Op::And) {
      learn({row.operands[0]});
      learn({row.operands[1]});
    }
    if (row.op != Op::Equal)
      return;
    const size::Row *a = &rows[row.operands[0]], *b = &rows[row.operands[1]];
    if (a->op != Op::Dim)
      std::swap(a, b);
    if (a->op != Op::Dim)
      return;
    Class& left = classOf(a->operands[0], a->operands[1]);
    if (b->op == Op::Constant)
      left.value = b->value;
    if (b->op != Op::Dim)
      return;
    const size_t from = numberOf(b->operands[0], b->operands[1]), to = numberOf(a->operands[0], a->operands[1]);
    if (!classes_[to].value)
      classes_[to].value = classes_[from].value;
    for (auto& [dim, number] : numbers_)
      if (number == from)
        number = to;
  }

  size_t numberOf(uint32_t argument, uint32_t dim) {
    classOf(argument, dim);
    return numbers_.at({argument, dim});
  }

  bool isParameter(uint32_t argument) const { return argument < kernel_.params.size(); }

  Expr extent(uint32_t argument, uint32_t dim) {
    const Param& param = *artifact::findArgument(kernel_, argument);
    if (!isParameter(argument))
      return rebuilt(param.extents[dim]);
    const Class known = classOf(argument, dim);
    if (known.value)
      return arena_.constant(*known.value);
    Expr leaf = arena_.dim(known.first.first, known.first.second);
    if (wanted_.isUsual)  // tensors with elements
      leaf = size::make(Op::Max, leaf, 1);
    return known.multiple == 1 ? leaf : size::make(Op::Mul, leaf, known.multiple);
  }

  /// Row-major, as launches allocate: temporaries that stand for a parameter lie as that one does where nothing writes them.
  bool liesInRows(uint32_t argument) const {
    const Param& param = *artifact::findArgument(kernel_, argument);
    const bool isTemporary = argument >= kernel_.params.size() + kernel_.results.size() + kernel_.lets.size();
    return wanted_.isUsual || (isTemporary && param.original == Param::kNoOriginal);
  }

  Expr leaf(const size::Row& row) {
    const uint32_t argument = row.operands[0];
    if (row.op == Op::Dim)
      return extent(argument, row.operands[1]);
    if (row.op == Op::Scalar || !size::isArgument(row.op) || !liesInRows(argument))
      return arena_.leaf(row.op, argument, size::operandCount(row.op) == 2 ? row.operands[1] : 0);
    const Param& param = *artifact::findArgument(kernel_, argument);
    if (row.op == Op::Address)  // of fields of structs, only the first lies so
      return param.structBytes ? arena_.address(argument) : size::make(Op::Mul, arena_.address(argument), kRowBytes);
    Expr stride = arena_.constant(pitchOf(param));
    for (uint32_t dim = row.operands[1] + 1; dim < param.rank; ++dim)
      stride = size::make(Op::Mul, stride, extent(argument, dim));
    return stride;
  }

  Expr rebuilt(size::Id id) {
    if (auto known = known_.find(id.index); known != known_.end())
      return known->second;
    const size::Row& row = kernel_.sizes.rows()[id.index];
    Expr expr;
    if (row.op == Op::Constant) {
      expr = arena_.constant(row.value);
    } else if (size::arity(row.op) == 0) {
      expr = leaf(row);
    } else {
      std::array<Expr, 3> operands;
      for (uint32_t i = 0; i < size::arity(row.op); ++i)
        operands[i] = rebuilt({row.operands[i]});
      expr = arena_.make(row.op, operands[0], operands[1], operands[2]);
    }
    return known_.emplace(id.index, expr).first->second;
  }

  static void addConditions(Expr expr, std::set<const size::Node*>& all) {
    if (expr.op() != Op::And) {
      all.insert(&expr.node());
      return;
    }
    addConditions(expr.operand(0), all);
    addConditions(expr.operand(1), all);
  }
  /// Among what the first asks for is all that the second does.
  static bool implies(Expr first, Expr second) {
    std::set<const size::Node*> given, wanted;
    addConditions(first, given);
    addConditions(second, wanted);
    return std::ranges::includes(given, wanted);
  }

  bool isNever(size::Id id) { return rebuilt(id).constant() == 0; }
  bool isAlways(size::Id id) { return rebuilt(id).constant().value_or(0) != 0; }

  void take(const std::vector<artifact::Step>& steps) {
    for (const artifact::Step& step : steps) {
      if (const auto* run = std::get_if<artifact::Run>(&step.what))
        take(kernel_.phases[run->phase]);
      if (const auto* loop = std::get_if<artifact::Loop>(&step.what))
        take(loop->steps);
      const auto* choose = std::get_if<artifact::Choose>(&step.what);
      for (size_t i = 0; choose && i < choose->cases.size(); ++i) {
        const artifact::Case& each = choose->cases[i];
        if (isNever(each.needs) || isNever(each.when))
          continue;
        take(each.steps);
        if (isAlways(each.needs) && isAlways(each.when))
          break;
      }
    }
  }

  void take(const artifact::Phase& phase) {
    for (size::Id blocks : phase.grid)
      if (isNever(blocks))
        return;
    std::vector<Expr> before;
    for (const artifact::Version& version : phase.versions) {
      const Expr when = rebuilt(version.when);
      if (isNever(version.when) || std::ranges::any_of(before, [&](Expr earlier) { return implies(when, earlier); }))
        continue;
      reached_.insert(version.symbol);
      if (isAlways(version.when))
        return;
      before.push_back(when);
    }
    reached_.insert(phase.symbol);
  }

  const Kernel& kernel_;
  const Coverage& wanted_;
  size::Arena arena_;
  std::vector<Class> classes_;
  std::map<Dim, size_t> numbers_;
  std::map<uint32_t, Expr> known_;
  std::set<std::string> reached_;
};

/// What a launch must have, in words.
class Conditions {
public:
  explicit Conditions(Kernel& kernel) : kernel_(kernel) {}

  void addExtent(const Coverage::Extent& extent) {
    const Expr value = arena_.dim(extent.argument, extent.dim);
    add(size::make(Op::Equal, value, extent.value),
        concat(nameOf(extent.argument), " has extent {0} in dimension ", extent.dim, ", not ", extent.value), {value});
  }

  void addUsual(uint32_t number, const Param& param) {
    const int64_t bytes = artifact::byteSize(param.type);
    Expr stride = arena_.constant(pitchOf(param)), count = arena_.constant(1);
    for (uint32_t dim = param.rank; dim-- > 0;) {
      const Expr given = arena_.stride(number, dim), extent = arena_.dim(number, dim);
      add(size::make(Op::Equal, given, stride),
          concat(nameOf(number), " has stride {0} in dimension ", dim, ", not {1}"), {given, stride});
      stride = size::make(Op::Mul, stride, size::make(Op::Max, extent, 1));
      count = size::make(Op::Mul, count, extent);
    }
    add(size::make(Op::Less, arena_.constant(0), count), concat(nameOf(number), " has no elements"), {});
    const Expr row = size::make(Op::Mul, arena_.dim(number, param.rank - 1), bytes * pitchOf(param));
    add(isMultiple(row), concat(nameOf(number), " has rows of {0} bytes, no multiple of ", kRowBytes), {row});
    if (!param.structBytes)
      add(isMultiple(arena_.address(number)),
          concat(nameOf(number), " begins {0} bytes after a multiple of ", kRowBytes),
          {size::make(Op::Mod, arena_.address(number), kRowBytes)});
  }

private:
  static Expr isMultiple(Expr value) { return size::make(Op::Equal, size::make(Op::Mod, value, kRowBytes), 0); }

  std::string nameOf(uint32_t number) const {
    const bool isResult = number >= kernel_.params.size();
    const std::string& name = artifact::findArgument(kernel_, number)->name;
    return name.empty() ? isResult ? "the result" : concat("argument ", number)
                        : concat(isResult ? "result '" : "argument '", name, "'");
  }

  void add(Expr condition, std::string message, std::initializer_list<Expr> operands) {
    artifact::Constraint added{kernel_.sizes.add(condition), std::move(message), {}};
    for (const Expr operand : operands)
      added.operands.push_back(kernel_.sizes.add(operand));
    kernel_.coverage.push_back(std::move(added));
  }

  Kernel& kernel_;
  size::Arena arena_;
};

}  // namespace

std::set<std::string> coverEntries(Kernel& kernel, const Coverage& wanted) {
  std::set<std::string> reached = Cover(kernel, wanted).run();
  Conditions conditions(kernel);
  for (const Coverage::Extent& extent : wanted.extents)
    conditions.addExtent(extent);
  const size_t tensors = kernel.params.size() + kernel.results.size();
  for (uint32_t i = 0; wanted.isUsual && i < tensors; ++i)
    if (const Param& param = *artifact::findArgument(kernel, i); param.isTensor && param.rank)
      conditions.addUsual(i, param);
  return reached;
}

}  // namespace vortex::pipeline
