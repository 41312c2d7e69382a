#include "lang/flow/check/surroundings.h"

#include <algorithm>

#include "lang/flow/race/launches.h"

namespace vortex::lang::flow {

std::vector<Condition> conditionsAt(const Graph& graph, const Structure& structure, StepId step) {
  std::vector<Condition> result;
  const BlockId block = graph.blockOf(step);
  for (BlockId at = structure.dominator(block); at != kNoBlock; at = structure.dominator(at)) {
    const Step& branch = graph.terminator(at);
    if (branch.kind != StepKind::Branch)
      continue;
    // Behind a loop its counter has left the range that is known of it.
    if (const LoopId loop = graph[at].loop;
        loop != kNoLoop && graph[loop].header == at && graph[loop].counter && !graph.isInside(block, loop))
      continue;
    for (size_t side = 0; side < 2; ++side) {
      const BlockId to = graph[at].successors[side];
      if (graph[to].predecessors.size() == 1 && structure.dominates(to, block))
        result.push_back({branch.value, side == 0});
    }
    if (const LoopId loop = graph[at].loop; loop != kNoLoop && graph[loop].header == at && graph[loop].counter)
      if (const ValueId isWithin = graph[loop].counter->isWithin; isWithin != kNoValue)
        result.push_back({isWithin, true});
  }
  return result;
}

static std::optional<Op> operatorOf(DimAtom::Kind kind) {
  switch (kind) {
  case DimAtom::Kind::Div: return Op::Div;
  case DimAtom::Kind::CeilDiv: return Op::CeilDiv;
  case DimAtom::Kind::Mod: return Op::Rem;
  case DimAtom::Kind::Min: return Op::Min;
  case DimAtom::Kind::Max: return Op::Max;
  case DimAtom::Kind::Variable:
  case DimAtom::Kind::Opaque: break;
  }
  return std::nullopt;
}

static ValueId atomValue(const DimAtom& atom, const Function& function, NodeTable& nodes) {
  if (atom.kind == DimAtom::Kind::Variable && atom.id < function.dims.size()) {
    const DimBinding& binding = function.dims[atom.id];
    if (binding.constant)
      return nodes.constant(kUsize, *binding.constant);
    return binding.param && !binding.isScalarValue ? nodes.extent(atom.id) : kNoValue;
  }
  const auto op = operatorOf(atom.kind);
  if (!op)
    return kNoValue;
  const ValueId a = dimensionValue(atom.operands.front(), function, nodes);
  const ValueId b = dimensionValue(atom.operands.back(), function, nodes);
  return a == kNoValue || b == kNoValue ? kNoValue : nodes.op(*op, kUsize, a, b);
}

ValueId dimensionValue(const DimExpr& expr, const Function& function, NodeTable& nodes) {
  ValueId sum = nodes.constant(kUsize, 0);
  for (const auto& [monomial, coefficient] : expr.terms()) {
    ValueId product = nodes.constant(kUsize, coefficient);
    for (const DimAtom& atom : monomial) {
      const ValueId factor = atomValue(atom, function, nodes);
      if (factor == kNoValue)
        return kNoValue;
      product = nodes.op(Op::Mul, kUsize, product, factor);
    }
    sum = nodes.op(Op::Add, kUsize, sum, product);
  }
  return sum;
}

/// What launches are refused without.
static std::vector<Condition> launchConditions(const Function& function, NodeTable& nodes) {
  std::vector<Condition> conditions;
  for (const LaunchCheck& check : function.checks)
    if (check.isOfValue())
      if (const ValueId value = dimensionValue(check.expected, function, nodes); value != kNoValue)
        conditions.push_back({nodes.op(Op::Lt, kBool, nodes.constant(kUsize, 0), value), true});
  return conditions;
}

static std::optional<LoopCounter> counterOf(const Graph& graph, ValueId phi, ValueId zero, ValueId one) {
  if (graph.values[phi].kind != NodeKind::Phi)
    return std::nullopt;
  const BlockId block = graph.values.phiBlock(phi);
  const LoopId loop = graph[block].loop;
  if (loop == kNoLoop || graph[loop].header != block || !graph[loop].counter)
    return std::nullopt;
  const Counter& counter = *graph[loop].counter;
  if (graph.values.resolved(counter.phi) != phi)
    return std::nullopt;
  LoopCounter result;
  if (counter.isPosition) {
    result.begin = zero;
    result.end = counter.trips;
    result.step = one;
    return result;
  }
  result.begin = counter.begin;
  result.end = counter.end;
  result.step = counter.step;
  return result;
}

Surroundings surroundingsOf(const Graph& graph, const Structure& structure, NodeTable& nodes) {
  const ValueId zero = nodes.constant(kUsize, 0), one = nodes.constant(kUsize, 1);
  Surroundings result;
  result.conditions = [&graph, &structure, launched = launchConditions(*graph.function, nodes)](PointId point) {
    std::vector<Condition> conditions = launched;
    const std::vector<Condition> local = conditionsAt(graph, structure, stepAt(point));
    conditions.insert(conditions.end(), local.begin(), local.end());
    return conditions;
  };
  result.counter = [&graph, zero, one](ValueId phi) { return counterOf(graph, phi, zero, one); };
  const auto edge = [&graph](ValueId phi, size_t operand, bool isBack) -> std::optional<PointId> {
    const BlockId block = graph.values.phiBlock(phi);
    const BlockId from = graph[block].predecessors[operand];
    const LoopId loop = graph[block].loop;
    if (loop == kNoLoop || graph[loop].header != block || graph.isInside(from, loop) != isBack)
      return std::nullopt;
    return PointId{indexOf(graph[from].end) - 1};
  };
  result.backEdge = [edge](ValueId phi, size_t operand) { return edge(phi, operand, true); };
  result.entry = [edge](ValueId phi, size_t operand) { return edge(phi, operand, false); };
  result.begin = [&graph](ValueId phi) { return pointOf(graph[graph.values.phiBlock(phi)].begin); };
  return result;
}

static std::optional<Op> operatorOf(const Expr& expr) {
  if (expr.kind == ExprKind::Builtin)
    switch (expr.builtin) {
    case Builtin::CeilDiv: return Op::CeilDiv;
    case Builtin::Min: return Op::Min;
    case Builtin::Max: return Op::Max;
    default: return std::nullopt;
    }
  if (expr.kind == ExprKind::Binary)
    switch (expr.binaryOp) {
    case BinaryOp::Add: return Op::Add;
    case BinaryOp::Sub: return Op::Sub;
    case BinaryOp::Mul: return Op::Mul;
    case BinaryOp::Div: return Op::Div;
    case BinaryOp::Rem: return Op::Rem;
    default: return std::nullopt;
    }
  return std::nullopt;
}

/// A size of the launch as written, in machine arithmetic: of a launch that runs it is the number of blocks or threads.
static ValueId sizeValue(const Expr& expr, const Function& kernel, NodeTable& nodes) {
  if (const auto number = evaluateSize(expr, {}))
    return nodes.constant(kUsize, *number);
  if (expr.kind == ExprKind::DimValue)
    return dimensionValue(expr.dim, kernel, nodes);
  if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::Extent)
    return dimensionValue(stripRef(expr.args.front()->type)->shape[static_cast<size_t>(expr.ints.front())], kernel,
                          nodes);
  const bool isWide = expr.type && expr.type->kind == TypeKind::Scalar && machineType(expr.type) == kUsize;
  if ((expr.kind == ExprKind::Cast || (expr.kind == ExprKind::Block && expr.args.size() == 1)) && isWide) {
    const Type from = expr.args.front()->type;
    return from && machineType(from) == kUsize ? sizeValue(*expr.args.front(), kernel, nodes) : kNoValue;
  }
  const auto op = operatorOf(expr);
  if (!op || !isWide || expr.args.size() != 2)
    return kNoValue;
  const ValueId a = sizeValue(*expr.args.front(), kernel, nodes), b = sizeValue(*expr.args.back(), kernel, nodes);
  return a == kNoValue || b == kNoValue ? kNoValue : nodes.op(*op, kUsize, a, b);
}

/// The elements of a tensor are at most so many: no product of its extents wraps.
static void addProducts(Type type, const Function& kernel, NodeTable& nodes, LaunchFacts& facts) {
  if (!type->isTensor()) {
    for (Type part : type->elems)
      addProducts(stripRef(part), kernel, nodes, facts);
    return;
  }
  LaunchFacts::Product product{{}, kMostElements};
  for (const DimExpr& extent : type->shape) {
    if (extent.terms().size() != 1 || extent.terms().begin()->second < 1)
      continue;
    const auto& [monomial, coefficient] = *extent.terms().begin();
    product.limit /= coefficient;
    for (const DimAtom& atom : monomial)
      if (const ValueId value = atomValue(atom, kernel, nodes); value != kNoValue && !nodes.isConstant(value))
        product.factors.push_back(value);
  }
  std::sort(product.factors.begin(), product.factors.end());
  if (product.factors.size() > 1)
    facts.products.push_back(std::move(product));
}

LaunchFacts launchFacts(const Function& kernel, const LaunchSizes& sizes, NodeTable& nodes) {
  LaunchFacts facts;
  const std::vector<Expr*>& block = kernel.kernel->block;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (sizes.block[axis])
      facts.blockDim[axis] = nodes.constant(kUsize, *sizes.block[axis]);
    else if (sizes.usesOwnBlock && !block.empty())
      facts.blockDim[axis] = axis < block.size() ? sizeValue(*block[axis], kernel, nodes) : nodes.constant(kUsize, 1);
    if (sizes.grid[axis])
      facts.gridDim[axis] = nodes.constant(kUsize, *sizes.grid[axis]);
    else if (sizes.usesOwnGrid && axis < kernel.kernel->grid.size())
      facts.gridDim[axis] = sizeValue(*kernel.kernel->grid[axis], kernel, nodes);
  }
  for (const Variable* param : kernel.params)
    addProducts(stripRef(param->type), kernel, nodes, facts);
  if (kernel.resultType)
    addProducts(kernel.resultType, kernel, nodes, facts);
  return facts;
}

}  // namespace vortex::lang::flow
