#include "lang/sema/access/values.h"

#include "lang/sema/element.h"

#include <utility>

namespace vortex::lang::access {

constexpr Wide kWarp = kLanes;
constexpr size_t kMostValues = 256;
// What a launch can have and a tensor can hold.
constexpr Wide kMostThreadsOfBlock = 65536, kMostBlocks = INT32_MAX, kLargestExtent = Wide(1) << 47;

Values::Values(const Function& kernel, const Roots& roots, const BlockShape& block, Trace& trace)
    : kernel_(kernel), roots_(roots), block_(block), graph_(trace.graph) {
  Wide warps = kMostThreadsOfBlock / kWarp - 1;
  if (block_[0] && block_[1] && block_[2])
    warps = (*block_[0] * *block_[1] * *block_[2] + kWarp - 1) / kWarp - 1;
  warp_ = graph_.symbol({"warp.id", 0, warps, {}, false, true});
  linear_ = graph_.make(Op::Add, graph_.make(Op::Mul, warp_, graph_.constant(kWarp)), graph_.lane());
}

NodeId Values::named(const std::string& name, Symbol symbol) {
  auto [found, isNew] = named_.try_emplace(name, 0);
  if (isNew)
    found->second = graph_.symbol(std::move(symbol));
  return found->second;
}

static std::optional<Machine> machineOf(Type type) {
  type = stripRef(type);
  if (!type || type->kind != TypeKind::Scalar || (!isInteger(type->scalar) && type->scalar != Scalar::Bool))
    return std::nullopt;
  const bool isBool = type->scalar == Scalar::Bool;
  return Machine{isBool ? 1 : bitWidth(type->scalar), !isBool && !isUnsigned(type->scalar)};
}

/// Something all lanes agree on.
NodeId Values::uniform(Type type, std::string name) {
  Symbol symbol{std::move(name), std::nullopt, std::nullopt, {}, false, true};
  if (const auto machine = machineOf(type)) {
    symbol.lowest = machine->lowest();
    symbol.highest = machine->highest();
  }
  return graph_.symbol(std::move(symbol));
}

NodeId Values::exact(const Expr& expr) {
  const auto machine = machineOf(expr.type);
  return machine ? graph_.fit(of(expr), *machine) : of(expr);
}

NodeId Values::index(const Expr& expr) {
  const auto machine = machineOf(expr.type);
  return machine ? graph_.fit(of(expr), *machine, Op::Index) : of(expr);
}

//===-- positions -------------------------------------------------------------------------------------------------===//

NodeId Values::threadAxis(size_t axis, const Expr& expr) {
  const bool isLine = block_[1] == 1 && block_[2] == 1;
  if (axis == 0 && isLine)
    return linear_;
  if (axis > 0 && block_[axis] == 1)
    return graph_.constant(0);
  if (!block_[0] || (axis > 0 && !block_[1]))
    return graph_.unknown(&expr);
  if (axis == 0)
    return graph_.make(Op::Rem, linear_, graph_.constant(*block_[0]));
  NodeId rest = graph_.make(Op::Div, linear_, graph_.constant(*block_[0]));
  if (axis == 1)
    return block_[2] == 1 ? rest : graph_.make(Op::Rem, rest, graph_.constant(*block_[1]));
  return graph_.make(Op::Div, rest, graph_.constant(*block_[1]));
}

static constexpr const char* kAxes[] = {"x", "y", "z"};

NodeId Values::position(Builtin builtin, size_t axis, const Expr& expr) {
  auto sized = [&](const char* name, Wide highest = kMostBlocks) {
    const std::string full = std::string(name) + "." + kAxes[axis];
    return named(full, {full, 0, highest, {}, false, true});
  };
  switch (builtin) {
  case Builtin::ThreadId: return threadAxis(axis, expr);
  case Builtin::ThreadLocalId: return linear_;
  case Builtin::BlockId: return sized("block.id", kMostBlocks - 1);
  case Builtin::GridDim: return sized("grid.dim");
  case Builtin::BlockDim:
    return block_[axis] ? graph_.constant(*block_[axis]) : sized("block.dim", kMostThreadsOfBlock);
  case Builtin::ThreadGlobalId: {
    NodeId dim = block_[axis] ? graph_.constant(*block_[axis]) : sized("block.dim", kMostThreadsOfBlock);
    return graph_.make(Op::Add, graph_.make(Op::Mul, sized("block.id"), dim), threadAxis(axis, expr));
  }
  case Builtin::WarpId: return warp_;
  case Builtin::LaneId: return graph_.lane();
  default: return graph_.constant(kWarp);
  }
}

NodeId Values::ceilDiv(NodeId a, NodeId b) {
  return graph_.make(Op::Div, graph_.make(Op::Sub, graph_.make(Op::Add, a, b), graph_.constant(1)), b);
}

NodeId Values::ofBuiltin(const Expr& expr) {
  const size_t axis = expr.ints.empty() ? 0 : static_cast<size_t>(expr.ints[0]);
  switch (expr.builtin) {
  case Builtin::ThreadId:
  case Builtin::ThreadLocalId:
  case Builtin::ThreadGlobalId:
  case Builtin::BlockId:
  case Builtin::BlockDim:
  case Builtin::GridDim:
  case Builtin::WarpId:
  case Builtin::LaneId:
  case Builtin::WarpSize: return position(expr.builtin, axis, expr);
  case Builtin::CeilDiv: return ceilDiv(exact(*expr.args[0]), exact(*expr.args[1]));
  case Builtin::Min: return graph_.make(Op::Min, exact(*expr.args[0]), exact(*expr.args[1]));
  case Builtin::Max: return graph_.make(Op::Max, exact(*expr.args[0]), exact(*expr.args[1]));
  case Builtin::Clamp:
    return graph_.make(Op::Min, graph_.make(Op::Max, exact(*expr.args[0]), exact(*expr.args[1])), exact(*expr.args[2]));
  case Builtin::Select: return graph_.make(Op::Select, of(*expr.args[0]), of(*expr.args[1]), of(*expr.args[2]));
  case Builtin::Extent: {
    Type type = stripRef(expr.args[0]->type);
    if (type && type->isTensor() && axis < type->shape.size())
      return ofDim(type->shape[axis]);
    break;
  }
  case Builtin::WarpSum:
  case Builtin::WarpMax:
  case Builtin::WarpMin:
  case Builtin::WarpBallot:
  case Builtin::WarpAny:
  case Builtin::WarpAll:
  case Builtin::ShuffleIndex:
    return uniform(expr.type, std::string(spelling(expr.builtin)));  // the same in the whole warp
  default: break;
  }
  return expr.uniformity == Uniformity::Uniform ? uniform(expr.type, std::string(spelling(expr.builtin)))
                                                : graph_.unknown(&expr);
}

//===-- extents ---------------------------------------------------------------------------------------------------===//

NodeId Values::ofAtom(const DimAtom& atom) {
  auto binaryAtom = [&](Op op) { return graph_.make(op, ofDim(atom.operands[0]), ofDim(atom.operands[1])); };
  switch (atom.kind) {
  case DimAtom::Kind::Variable: {
    const std::string name = atom.id < kernel_.dims.size() ? kernel_.dims[atom.id].name : "";
    return named("extent " + std::to_string(atom.id), {name, 0, kLargestExtent, {}, true, true});
  }
  case DimAtom::Kind::Opaque:
    return named("opaque " + std::to_string(atom.id), {"", 0, kLargestExtent, {}, true, false});
  case DimAtom::Kind::FloorDiv: return binaryAtom(Op::Div);
  case DimAtom::Kind::CeilDiv: return ceilDiv(ofDim(atom.operands[0]), ofDim(atom.operands[1]));
  case DimAtom::Kind::Mod: return binaryAtom(Op::Rem);
  case DimAtom::Kind::Min: return binaryAtom(Op::Min);
  case DimAtom::Kind::Max: return binaryAtom(Op::Max);
  }
  return graph_.constant(0);
}

NodeId Values::ofDim(const DimExpr& dim) {
  NodeId sum = graph_.constant(0);
  for (const auto& [monomial, coefficient] : dim.terms()) {
    NodeId product = graph_.constant(coefficient);
    for (const DimAtom& atom : monomial)
      product = graph_.make(Op::Mul, product, ofAtom(atom));
    sum = graph_.make(Op::Add, sum, product);
  }
  if (auto constant = dim.asConstant())
    return graph_.constant(*constant);
  return sum;
}

//===-- expressions -----------------------------------------------------------------------------------------------===//

/// Whether operands are needed within their type, not only modulo its numbers.
static bool needsNumbers(BinaryOp op) {
  switch (op) {
  case BinaryOp::Div:
  case BinaryOp::Rem:
  case BinaryOp::Shr:
  case BinaryOp::Eq:
  case BinaryOp::Ne:
  case BinaryOp::Lt:
  case BinaryOp::Le:
  case BinaryOp::Gt:
  case BinaryOp::Ge: return true;
  default: return false;
  }
}

NodeId Values::binary(BinaryOp op, const Expr& left, const Expr& right, const Expr& cause) {
  const auto machine = machineOf(left.type);
  if (op == BinaryOp::Rem && machine && !machine->isSigned) {
    const auto divisor = graph_.asConstant(of(right));
    if (divisor && *divisor > 0 && (*divisor & (*divisor - 1)) == 0)
      return graph_.make(Op::And, of(left), graph_.constant(*divisor - 1));  // a wrap does not change it
  }
  NodeId a = needsNumbers(op) ? exact(left) : of(left);
  if (op == BinaryOp::Shl || op == BinaryOp::Shr) {
    const NodeId count = exact(right);
    const auto constant = graph_.asConstant(count);
    const Wide width = machine ? machine->width : 64;
    return graph_.make(op == BinaryOp::Shl ? Op::Shl : Op::Shr, a,
                       constant ? graph_.constant(floorModulo(*constant, width))
                                : graph_.make(Op::And, count, graph_.constant(width - 1)));
  }
  return binary(op, a, needsNumbers(op) ? exact(right) : of(right), cause);
}

NodeId Values::binary(BinaryOp op, NodeId a, NodeId b, const Expr& cause) {
  switch (op) {
  case BinaryOp::Add: return graph_.make(Op::Add, a, b);
  case BinaryOp::Sub: return graph_.make(Op::Sub, a, b);
  case BinaryOp::Mul: return graph_.make(Op::Mul, a, b);
  case BinaryOp::Div: return graph_.make(Op::Div, a, b);
  case BinaryOp::Rem: return graph_.make(Op::Rem, a, b);
  case BinaryOp::BitAnd: return graph_.make(Op::And, a, b);
  case BinaryOp::BitOr: return graph_.make(Op::Or, a, b);
  case BinaryOp::BitXor: return graph_.make(Op::Xor, a, b);
  case BinaryOp::And: return graph_.make(Op::Both, a, b);
  case BinaryOp::Or: return graph_.make(Op::Either, a, b);
  case BinaryOp::Eq: return graph_.make(Op::Eq, a, b);
  case BinaryOp::Ne: return graph_.make(Op::Not, graph_.make(Op::Eq, a, b));
  case BinaryOp::Lt: return graph_.make(Op::Lt, a, b);
  case BinaryOp::Le: return graph_.make(Op::Le, a, b);
  case BinaryOp::Gt: return graph_.make(Op::Lt, b, a);
  case BinaryOp::Ge: return graph_.make(Op::Le, b, a);
  default: break;
  }
  return graph_.unknown(&cause);
}

NodeId Values::ofVariable(const Variable& variable) {
  if (auto found = state_.find(&variable); found != state_.end())
    return found->second;
  if (variable.uniformity == Uniformity::PerThread) {
    return graph_.unknown(nullptr);
  }
  NodeId node = uniform(variable.type, variable.name);
  if (!roots_.isAssigned(&variable))
    state_[&variable] = node;
  return node;
}

NodeId Values::of(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Int: return graph_.constant(expr.intValue);
  case ExprKind::DimValue: return ofDim(expr.dim);
  case ExprKind::Var: {
    Type type = stripRef(expr.type);
    if (!type || type->kind != TypeKind::Scalar || (!isInteger(type->scalar) && type->scalar != Scalar::Bool))
      break;
    NodeId node = ofVariable(*expr.variable);
    return graph_.node(node).op == Op::Unknown && !graph_.node(node).cause ? graph_.unknown(&expr) : node;
  }
  case ExprKind::Deref: return of(*expr.args[0]);
  case ExprKind::Cast: {
    Type from = expr.args[0]->type, to = expr.type;
    if (!from || from->kind != TypeKind::Scalar || (!isInteger(from->scalar) && from->scalar != Scalar::Bool))
      break;
    const auto narrow = machineOf(from), wide = machineOf(to);
    return wide && wide->width > narrow->width ? exact(*expr.args[0]) : of(*expr.args[0]);
  }
  case ExprKind::Unary:
    if (expr.type && expr.type->kind == TypeKind::Scalar) {
      if (expr.unaryOp == UnaryOp::Neg && isInteger(expr.type->scalar))
        return graph_.make(Op::Sub, graph_.constant(0), of(*expr.args[0]));
      if (expr.unaryOp == UnaryOp::Not && expr.type->scalar == Scalar::Bool)
        return graph_.make(Op::Not, of(*expr.args[0]));
    }
    break;
  case ExprKind::Binary: {
    Type operand = expr.args[0]->type;
    if (operand && operand->kind == TypeKind::Scalar && (isInteger(operand->scalar) || operand->scalar == Scalar::Bool))
      return binary(expr.binaryOp, *expr.args[0], *expr.args[1], expr);
    break;
  }
  case ExprKind::Builtin: return ofBuiltin(expr);
  case ExprKind::Block:
    if (expr.args.size() == 1)
      return of(*expr.args[0]);
    if (!expr.args.empty() && expr.args.back()->kind != ExprKind::Return)
      return of(*expr.args.back());  // its statements were walked already
    break;
  case ExprKind::If:
    if (expr.args.size() > 2 && expr.args[2])
      return graph_.make(Op::Select, of(*expr.args[0]), of(*expr.args[1]), of(*expr.args[2]));
    break;
  case ExprKind::Inline: {
    const Expr* body = expr.args.empty() ? nullptr : expr.args.back();
    while (body && body->kind == ExprKind::Block && !body->args.empty())
      body = body->args.back();
    if (body && body->kind == ExprKind::Return && !body->args.empty() && body->args[0])
      body = body->args[0];
    size_t returns = 0;
    auto count = [&](auto& self, const Expr& each) -> void {
      returns += each.kind == ExprKind::Return;
      for (const Expr* arg : each.args)
        if (arg && arg->kind != ExprKind::Inline)
          self(self, *arg);
    };
    count(count, *expr.args.back());
    if (body && returns <= 1)
      return of(*body);
    break;
  }
  default: break;
  }
  return expr.uniformity == Uniformity::Uniform ? uniform(expr.type, "") : graph_.unknown(&expr);
}

//===-- memory ----------------------------------------------------------------------------------------------------===//

std::optional<View> Values::viewOf(const Expr& place) {
  switch (place.kind) {
  case ExprKind::Var:
    if (auto found = views_.find(place.variable); found != views_.end())
      return found->second;
    [[fallthrough]];
  case ExprKind::Field: {
    Type type = stripRef(place.type);
    const Variable* root = place.kind == ExprKind::Var ? place.variable : roots_.rootOf(place);
    const bool isTensor = type && type->isTensor() && !type->isValue;
    const bool isArray = type && type->kind == TypeKind::Array && type->elem->isTensor();
    if (!root || (!isTensor && !isArray))
      return std::nullopt;
    Type tensor = isArray ? type->elem : type;
    View view{root, tensor, graph_.constant(0), {}, tensor->shape, tensor->elem, 0};
    view.strides.resize(tensor->shape.size());
    NodeId stride = graph_.constant(1);
    for (size_t i = 0; i < tensor->shape.size(); ++i) {
      const size_t dim = tensor->layout == SharedLayout::ColumnMajor ? i : tensor->shape.size() - 1 - i;
      view.strides[dim] = stride;
      stride = graph_.make(Op::Mul, stride, ofDim(tensor->shape[dim]));
    }
    return view;
  }
  case ExprKind::Ref:
  case ExprKind::Deref: return viewOf(*place.args[0]);
  case ExprKind::Element: {
    // An element of an array of tensors: they lie one after another.
    Type array = stripRef(place.args[0]->type);
    if (!array || array->kind != TypeKind::Array)
      return std::nullopt;
    auto view = viewOf(*place.args[0]);
    if (!view)
      return std::nullopt;
    NodeId size = graph_.constant(1);
    for (const DimExpr& extent : view->extents)
      size = graph_.make(Op::Mul, size, ofDim(extent));
    view->base = graph_.make(Op::Add, view->base, graph_.make(Op::Mul, index(*place.args[1]), size));
    return view;
  }
  case ExprKind::Slice: {
    auto view = viewOf(*place.args[0]);
    if (!view || view->strides.size() != place.slices.size())
      return std::nullopt;
    View result{view->root, view->storage, view->base, {}, {}, view->elem, view->firstLeaf};
    if (!place.ints.empty()) {  // one field of all elements
      const auto field = static_cast<uint32_t>(place.ints[0]);
      result.firstLeaf += static_cast<uint32_t>(scalarsBefore(view->elem, field));
      result.elem = partOf(view->elem, field);
    }
    Type type = stripRef(place.type);
    for (size_t dim = 0; dim < place.slices.size(); ++dim) {
      const SliceDim& part = place.slices[dim];
      if (part.begin)
        result.base = graph_.make(Op::Add, result.base, graph_.make(Op::Mul, index(*part.begin), view->strides[dim]));
      if (part.kind == SliceDim::Kind::Index)
        continue;
      result.strides.push_back(view->strides[dim]);
    }
    if (!type || !type->isTensor() || type->shape.size() != result.strides.size())
      return std::nullopt;
    result.extents = type->shape;
    return result;
  }
  default: return std::nullopt;
  }
}

void Values::bind(const Variable& variable, const Expr& value) {
  Type type = stripRef(variable.type);
  if (type && ((type->isTensor() && !type->isValue) || type->kind == TypeKind::Array)) {
    if (value.kind == ExprKind::Slice || value.kind == ExprKind::Ref || value.kind == ExprKind::Var ||
        value.kind == ExprKind::Deref || value.kind == ExprKind::Element || value.kind == ExprKind::Field)
      if (auto view = viewOf(value)) {
        views_[&variable] = *view;
        return;
      }
    views_.erase(&variable);
    return;
  }
  if (type && type->kind == TypeKind::Scalar && (isInteger(type->scalar) || type->scalar == Scalar::Bool))
    state_[&variable] = of(value);
}

//===-- control flow ----------------------------------------------------------------------------------------------===//

void Values::join(NodeId condition, const State& then) {
  for (const auto& [variable, value] : then) {
    auto found = state_.find(variable);
    if (found == state_.end())
      state_[variable] = value;  // declared in the branch: not used after it
    else if (found->second != value)
      found->second = graph_.make(Op::Select, condition, value, found->second);
  }
}

Values::State Values::start(const State& before, const Growths& growths) {
  State started;
  for (const auto& [variable, growth] : growths) {
    NodeId value = before.at(variable);
    if (!growth.isKnown) {
      value = graph_.unknown(nullptr);
    } else if (growth.step != 0) {
      NodeId count = graph_.symbol({"", std::nullopt, std::nullopt, {}, false, false});
      value = graph_.make(Op::Add, value, graph_.make(Op::Mul, count, graph_.constant(growth.step)));
    }
    state_[variable] = started[variable] = value;
  }
  return started;
}

static Wide commonDivisor(Wide a, Wide b) {
  while (b != 0)
    a = std::exchange(b, a % b);
  return a < 0 ? -a : a;
}

bool Values::refine(const Variable& variable, NodeId started, Growth& growth) {
  if (!growth.isKnown)
    return false;
  Evaluation evaluation(graph_);
  auto end = evaluation.value(state_.at(&variable)), begin = end ? evaluation.value(started) : std::nullopt;
  std::optional<LaneValue> change = begin ? std::optional(*end - *begin) : std::nullopt;
  if (!change || !change->isUniform()) {
    growth.isKnown = false;
    return true;
  }
  Wide step = growth.step;
  for (const auto& [monomial, lanes] : change->terms())
    step = commonDivisor(step, lanes[0]);
  const bool changed = step != growth.step;
  growth.step = step;
  return changed;
}

std::optional<SymbolId> Values::enterLoop(const Expr& loop, const Expr& range) {
  Symbol counter{loop.variable ? loop.variable->name : "", 0, std::nullopt, {}, false, true};
  NodeId value = 0;
  std::optional<NodeId> count;
  if (range.kind == ExprKind::IntList) {
    if (range.intList.size() > kMostValues)
      return std::nullopt;
    for (__int128 each : range.intList)
      counter.values.push_back(each);
    counter.lowest.reset();
    if (!counter.values.empty()) {
      counter.lowest = *std::min_element(counter.values.begin(), counter.values.end());
      counter.highest = *std::max_element(counter.values.begin(), counter.values.end());
    }
    count = value = graph_.symbol(counter);
  } else if (range.kind == ExprKind::Range) {
    NodeId begin = exact(*range.args[0]), end = exact(*range.args[1]);
    NodeId step = range.args.size() > 2 && range.args[2] ? exact(*range.args[2]) : graph_.constant(1);
    auto by = graph_.asConstant(step);
    if (by && *by > 0) {
      Evaluation evaluation(graph_);
      auto first = evaluation.value(begin), last = evaluation.value(end);
      auto lowest = first ? evaluation.range(*first).lowest : std::nullopt;
      auto to = last ? evaluation.range(*last).highest : std::nullopt;
      if (lowest && to)
        counter.highest = std::max<Wide>((*to - *lowest + *by - 1) / *by - 1, 0);
    }
    counter.isUsers = begin == graph_.constant(0) && by == 1;
    count = graph_.symbol(counter);
    value = graph_.make(Op::Add, begin, graph_.make(Op::Mul, *count, step));
  } else {
    if (loop.variable)
      state_[loop.variable] = loop.variable->uniformity == Uniformity::Uniform
                                  ? uniform(loop.variable->type, loop.variable->name)
                                  : graph_.unknown(nullptr);
    return std::nullopt;
  }
  if (loop.variable)
    state_[loop.variable] = value;
  if (loop.indexVariable)
    state_[loop.indexVariable] =
        range.kind == ExprKind::Range
            ? *count
            : graph_.symbol(
                  {loop.indexVariable->name, 0, static_cast<Wide>(range.intList.size()) - 1, {}, false, true});
  return static_cast<SymbolId>(graph_.node(*count).value);
}

}  // namespace vortex::lang::access
