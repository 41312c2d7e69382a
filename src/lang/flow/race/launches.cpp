#include "lang/flow/race/launches.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "lang/flow/graph/graph.h"
#include "lang/sema/children.h"
#include "lang/sema/integers.h"
#include "lang/sema/kernel/default_block.h"
#include "lang/sema/kernel/specialised_dims.h"

namespace vortex::lang::flow {
namespace {

using Dims = std::vector<std::optional<int64_t>>;

std::optional<int64_t> evaluateAtom(const DimAtom& atom, const Dims& dims) {
  if (atom.kind == DimAtom::Kind::Variable)
    return atom.id < dims.size() ? dims[atom.id] : std::nullopt;
  if (atom.kind == DimAtom::Kind::Opaque)
    return std::nullopt;
  const auto a = evaluateDim(atom.operands[0], dims), b = evaluateDim(atom.operands[1], dims);
  return a && b ? std::optional(applyToExtents(atom.kind, *a, *b)) : std::nullopt;
}

bool satisfies(const Function& kernel, const Dims& dims) {
  for (const LaunchCheck& check : kernel.checks) {
    const auto value = evaluateDim(check.expected, dims);
    if (check.kind == LaunchCheck::Kind::ExtentEquals)
      continue;  // the tensor is made with the expected extent
    if (check.kind == LaunchCheck::Kind::NotNegative) {
      if (!value || *value < 0)
        return false;
      continue;
    }
    if (check.kind == LaunchCheck::Kind::Exact) {
      const auto divisor = evaluateDim(check.divisor, dims);
      if (!value || !divisor || *divisor == 0 || *value % *divisor != 0)
        return false;
      continue;
    }
    if (!value || *value == 0 || (check.kind == LaunchCheck::Kind::PowerOfTwo && (*value & (*value - 1)) != 0))
      return false;
  }
  return true;
}

/// Blocks along an axis that only the launch knows: more than one only if the kernel tells them apart.
int64_t blocksGivenAtLaunch(const Expr& expr, size_t axis) {
  int64_t most = expr.kind == ExprKind::Builtin &&
                         (expr.builtin == Builtin::BlockId || expr.builtin == Builtin::ThreadGlobalId) &&
                         (expr.ints.empty() ? 0 : expr.ints.front()) == static_cast<int64_t>(axis)
                     ? 2
                     : 1;
  forEachChild(expr, [&](const Expr& child) { most = std::max(most, blocksGivenAtLaunch(child, axis)); });
  return most;
}

/// Grid and block of the launch; false where one is unknown, too large or zero.
bool place(const Function& kernel, const BlockShape& shape, const BlockShape& grid, SampleLaunch& launch) {
  const KernelSpec& spec = *kernel.kernel;
  std::vector<std::optional<DimExpr>> known(launch.dims.size());  // what code is made for
  for (const DimVarId dim : specialisedDims(kernel))
    if (dim < known.size() && launch.dims[dim])
      known[dim] = DimExpr::constant(*launch.dims[dim]);
  std::vector<DimExpr> fixed;
  for (const DimExpr& extent : spec.domain)
    fixed.push_back(extent.substitute(known));
  const std::array<int64_t, 3> usual =
      spec.gridKind == GridKind::Domain ? defaultBlock(spec, fixed) : std::array<int64_t, 3>{1, 1, 1};
  for (size_t axis = 0; axis < 3; ++axis) {
    std::optional<int64_t> size = shape[axis] ? shape[axis] : usual[axis];
    if (!shape[axis] && !spec.block.empty())
      size = axis < spec.block.size() ? evaluateSize(*spec.block[axis], launch.dims) : 1;
    if (!size || *size < 1 || *size > 1024)
      return false;
    launch.block[axis] = *size;
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    std::optional<int64_t> size = 1;
    if (!spec.grid.empty())
      size = axis < spec.grid.size()
                 ? evaluateSize(*spec.grid[axis], launch.dims).value_or(blocksGivenAtLaunch(*kernel.body, axis))
                 : 1;
    else if (spec.gridKind == GridKind::Domain && axis < spec.domain.size()) {
      const auto extent = evaluateDim(spec.domain[axis], launch.dims);
      size = extent ? std::optional(applyToExtents(DimAtom::Kind::CeilDiv, *extent, launch.block[axis])) : std::nullopt;
    } else if (spec.gridKind == GridKind::Explicit)
      size = grid[axis].value_or(axis == 0 ? 2 : 1);  // given at the call
    if (!size || *size < 1 || *size > 64)
      return false;
    launch.grid[axis] = *size;
  }
  return launch.threads() <= 1024;
}

}  // namespace

std::optional<int64_t> evaluateSize(const Expr& expr, const Dims& dims) {
  if (expr.kind == ExprKind::Int)
    return static_cast<int64_t>(expr.intValue);
  if (expr.kind == ExprKind::DimValue)
    return evaluateDim(expr.dim, dims);
  if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::Extent) {
    return evaluateDim(stripRef(expr.args.front()->type)->shape[static_cast<size_t>(expr.ints.front())], dims);
  }
  if (expr.kind == ExprKind::Block && expr.args.size() == 1)
    return evaluateSize(*expr.args.front(), dims);
  if (!expr.type || expr.type->kind != TypeKind::Scalar || !isInteger(expr.type->scalar) || expr.args.empty())
    return std::nullopt;
  std::vector<__int128> operands;
  for (const Expr* arg : expr.args) {
    const auto value = arg ? evaluateSize(*arg, dims) : std::nullopt;
    if (!value)
      return std::nullopt;
    operands.push_back(*value);
  }
  const Scalar type = expr.type->scalar;
  std::optional<__int128> value;
  if (expr.kind == ExprKind::Cast)
    value = wrapInteger(type, operands[0]);
  else if (expr.kind == ExprKind::Builtin && operands.size() == 2)
    value = integerBuiltin(expr.builtin, type, operands);
  else if (expr.kind == ExprKind::Binary && expr.binaryOp <= BinaryOp::Rem)
    if (const IntegerResult result = integerBinary(expr.binaryOp, type, operands[0], operands[1]); result.fits)
      value = result.value;
  return value && *value >= INT64_MIN && *value <= INT64_MAX ? std::optional(static_cast<int64_t>(*value))
                                                             : std::nullopt;
}

std::optional<int64_t> evaluateDim(const DimExpr& expr, const Dims& dims) {
  __int128 sum = 0;
  for (const auto& [monomial, coefficient] : expr.terms()) {
    __int128 product = coefficient;
    for (const DimAtom& atom : monomial) {
      const auto value = evaluateAtom(atom, dims);
      if (!value)
        return std::nullopt;
      product *= *value;
    }
    sum += product;
    if (sum > (__int128(1) << 47) || sum < -(__int128(1) << 47))
      return std::nullopt;
  }
  return static_cast<int64_t>(sum);
}

std::string SampleLaunch::describe(const Function& kernel) const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < kernel.dims.size() && i < dims.size(); ++i)
    if (dims[i] && !kernel.dims[i].constant)
      parts.push_back(base::concat(kernel.dims[i].name, " = ", *dims[i]));
  for (const auto& [scalar, number] : scalars)
    if (std::none_of(kernel.dims.begin(), kernel.dims.end(),
                     [&](const DimBinding& dim) { return dim.name == scalar->name; }))
      parts.push_back(
          base::concat(scalar->name, " = ",
                       machineType(scalar->type) == kBool ? number != 0 ? "true" : "false" : std::to_string(number)));
  return parts.empty() ? "" : "with " + base::join(parts, ", ");
}

std::vector<SampleLaunch> sampleLaunches(const Function& kernel, const std::vector<BlockShape>& shapes,
                                         const BlockShape& grid, size_t limit) {
  std::vector<SampleLaunch> result;
  static constexpr std::array<int64_t, 11> kSizes = {1, 2, 3, 5, 8, 32, 33, 64, 130, 257, 600};
  SampleLaunch base;
  base.dims.resize(kernel.dims.size());
  std::vector<size_t> free;
  for (size_t i = 0; i < kernel.dims.size(); ++i) {
    const DimBinding& binding = kernel.dims[i];
    if (binding.constant)
      base.dims[i] = *binding.constant;
    else if (binding.param)
      free.push_back(i);
  }
  const std::vector<BlockShape> blocks = shapes.empty() ? std::vector<BlockShape>(1) : shapes;
  // Equal sizes for all first, then sizes that differ: 7 rows of 33 tell rows from columns, and so do 33 of 7.
  static constexpr std::array<std::array<int64_t, 2>, 8> kPairs = {
      {{2, 3}, {3, 2}, {1, 8}, {8, 1}, {7, 33}, {33, 7}, {5, 64}, {64, 5}}};
  std::vector<std::array<int64_t, 2>> sizes;
  for (int64_t size : kSizes)
    sizes.push_back({size, size});
  if (free.size() > 1)
    sizes.insert(sizes.end(), kPairs.begin(), kPairs.end());
  for (const auto& size : sizes)
    for (const BlockShape& shape : blocks) {
      SampleLaunch launch = base;
      for (size_t i = 0; i < free.size(); ++i)
        launch.dims[free[i]] = size[i % 2];
      for (size_t i = 0; i < free.size(); ++i)
        if (const DimBinding& dim = kernel.dims[free[i]]; dim.isScalarValue)
          launch.scalars.emplace_back(kernel.params[*dim.param], *launch.dims[free[i]]);
      if (result.size() < limit && satisfies(kernel, launch.dims) && place(kernel, shape, grid, launch))
        result.push_back(std::move(launch));
    }
  std::sort(result.begin(), result.end(), [](const SampleLaunch& a, const SampleLaunch& b) {
    return std::tuple(a.threads() * a.blocks(), a.dims) < std::tuple(b.threads() * b.blocks(), b.dims);
  });
  return result;
}

/// Numbers for scalars: equal ones first, as for extents, then some that tell two scalars apart.
static std::vector<std::array<int64_t, 2>> scalarChoices(bool areSeveral) {
  std::vector<std::array<int64_t, 2>> choices;
  for (int64_t number : {2, 3, 1, 5, 0, 8, 64, -1})
    choices.push_back({number, number});
  if (areSeveral)
    for (const std::array<int64_t, 2>& each : {std::array<int64_t, 2>{1, 2}, {2, 1}, {0, 3}, {3, 0}, {8, 1}, {1, 8}})
      choices.push_back(each);
  return choices;
}

std::vector<SampleLaunch> withScalars(const Function& kernel, const SampleLaunch& launch) {
  std::vector<const Variable*> numbers, bools;
  for (const Variable* param : kernel.params)
    if (param->type->kind == TypeKind::Scalar && !isFloat(param->type->scalar) &&
        std::none_of(launch.scalars.begin(), launch.scalars.end(),
                     [&](const auto& each) { return each.first == param; }))
      (machineType(param->type) == kBool ? bools : numbers).push_back(param);
  std::vector<SampleLaunch> result;
  if (numbers.empty() && bools.empty())
    return result;
  // A grid that is given by arguments is the caller's.
  const auto isUnknown = [&](const Expr* size) { return !evaluateSize(*size, launch.dims); };
  const KernelSpec& spec = *kernel.kernel;
  if (std::any_of(spec.grid.begin(), spec.grid.end(), isUnknown) ||
      std::any_of(spec.block.begin(), spec.block.end(), isUnknown))
    return result;
  std::vector<std::array<int64_t, 2>> choices = scalarChoices(numbers.size() > 1);
  if (numbers.empty())
    choices.resize(1);
  for (const std::array<int64_t, 2>& choice : choices)
    for (unsigned truths = 0; truths < (bools.empty() ? 1u : bools.size() == 1 ? 2u : 4u); ++truths) {
      SampleLaunch made = launch;
      bool fits = true;
      for (size_t i = 0; i < numbers.size(); ++i) {
        fits = fits && machineType(numbers[i]->type).contains(choice[i % 2]);
        made.scalars.emplace_back(numbers[i], choice[i % 2]);
      }
      for (size_t i = 0; i < bools.size(); ++i)
        made.scalars.emplace_back(bools[i], truths >> (i % 2) & 1);
      if (fits)
        result.push_back(std::move(made));
    }
  return result;
}

}  // namespace vortex::lang::flow
