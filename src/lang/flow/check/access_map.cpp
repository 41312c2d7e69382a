#include "lang/flow/check/access_map.h"

#include <algorithm>

#include "lang/flow/check/surroundings.h"
#include "lang/flow/value/walk.h"
#include "lang/sema/children.h"
#include "lang/sema/element.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {

AccessMap::AccessMap(Graph& graph, const Structure& structure, const Uniformity& uniformity, const LaunchShapes& shapes,
                     const BlockShape& shape)
    : uniformity_(uniformity), paths_(graph, structure, uniformity),
      values_(graph.values, surroundingsOf(graph, structure, graph.values),
              launchFacts(*graph.function, {shape, shapes.grid, shapes.usesOwnGrid}, graph.values)),
      graph(graph), lanes(values_, shape,
                          {.isUniform = [this](ValueId leaf) { return uniformity_.ofValue(leaf) != Level::Lane; },
                           .selection = [this](ValueId phi) { return paths_.selection(phi); },
                           .likeness = [this](ValueId phi) { return paths_.likeness(phi); },
                           .list = [this](ValueId load) { return listOf(load); }}) {
  const KernelSpec& spec = *graph.function->kernel;
  note(spec.verifyBanks);
  mark(*graph.function->body, {spec.verifyBanks, spec.uncheckedCoalescing});
  for (uint32_t s = 0; s < graph.stepCount(); ++s) {
    const Step step = graph[StepId{s}];
    for (uint32_t i = 0; i < step.accessCount; ++i) {
      const Access access = graph.accesses[step.firstAccess + i];
      if (step.kind == StepKind::Tile || step.kind == StepKind::Stage || step.kind == StepKind::Output)
        addTile(step, access);
      else
        add(step, graph.blockOf(StepId{s}), access);
    }
  }
}

//===-- what is written -------------------------------------------------------------------------------------------===//

void AccessMap::note(source::SourceRange verification) {
  if (verification.isValid() &&
      std::find(verifications.begin(), verifications.end(), verification) == verifications.end())
    verifications.push_back(verification);
}

void AccessMap::mark(const Expr& expr, Marks marks) {
  if (expr.verifyBanks.isValid()) {
    marks.verify = expr.verifyBanks;
    note(marks.verify);
  }
  marks.isQuiet = marks.isQuiet || expr.uncheckedCoalescing;
  if (marks.verify.isValid() || marks.isQuiet)
    marks_[&expr] = marks;
  if (expr.kind == ExprKind::Let)
    if (const auto [variable, value] = asLet(expr);
        variable && value && value->type && value->type->kind == TypeKind::Ref)
      references_[variable] = value;
  forEachChild(expr, [&](const Expr& child) { mark(child, marks); });
}

/// Where the element is written that the place is or is a part of; null for other places.
const Expr* AccessMap::elementOf(const Expr* expr) const {
  while (expr) {
    switch (expr->kind) {
    case ExprKind::Element: {
      const Expr& base = asElement(*expr).base;
      if (stripRef(base.type)->isTensor())
        return expr;
      expr = &base;
      break;
    }
    case ExprKind::Field: expr = &asField(*expr).base; break;
    case ExprKind::Ref:
    case ExprKind::Deref: expr = &operandOf(*expr); break;
    case ExprKind::Var: {
      auto value = references_.find(expr->variable);
      expr = value == references_.end() ? nullptr : value->second;
      break;
    }
    default: return nullptr;
    }
  }
  return nullptr;
}

void AccessMap::addTile(const Step& step, const Access& access) {
  const Expr* tile = access.origin ? access.origin : step.origin;
  auto marks = marks_.find(tile);
  if (graph[access.place].storage != Storage::Shared || marks == marks_.end() || !marks->second.verify.isValid())
    return;
  const std::pair made{marks->second.verify, tile};
  if (std::find(verifiedTiles.begin(), verifiedTiles.end(), made) == verifiedTiles.end())
    verifiedTiles.push_back(made);
}

//===-- accesses --------------------------------------------------------------------------------------------------===//

/// The same element for the whole block.
bool AccessMap::isOfBlock(const Place& place) const {
  const auto isOfBlock = [&](ValueId value) { return value == kNoValue || uniformity_.ofValue(value) == Level::Block; };
  for (const Projection& each : place.path) {
    if (!isOfBlock(each.index))
      return false;
    for (const DimRange& dim : each.dims)
      if (!isOfBlock(dim.begin) || !isOfBlock(dim.end))
        return false;
    if (each.kind == ProjectionKind::At)
      break;
  }
  return !place.isUnknown();
}

void AccessMap::add(const Step& step, BlockId block, const Access& access) {
  const Place place = graph[access.place];
  const bool isMemory = place.storage == Storage::Shared || place.storage == Storage::Global ||
                        place.storage == Storage::Constant || place.storage == Storage::Result;
  if (!isMemory || (place.storage != Storage::Shared && isOfBlock(place)))
    return;
  const Expr* origin = access.origin ? access.origin : step.origin;
  const Expr* element = elementOf(origin);
  ElementAccess made = located(place, element ? element : origin);
  if (!made.tensor)
    return;
  // The scalars of a struct are accessed one by one, and what is updated twice.
  auto [known, isNew] = known_.try_emplace({made.element, made.offset}, accesses.size());
  if (!isNew) {
    ElementAccess& before = accesses[known->second];
    const uint32_t end = std::max(before.firstLeaf + before.leafCount, made.firstLeaf + made.leafCount);
    before.firstLeaf = std::min(before.firstLeaf, made.firstLeaf);
    before.leafCount = end - before.firstLeaf;
    return;
  }
  made.conditions = paths_.at(block);
  made.loop = graph[block].loop;
  if (auto marks = marks_.find(made.element); marks != marks_.end()) {
    made.verify = marks->second.verify;
    made.isQuiet = marks->second.isQuiet;
  }
  accesses.push_back(std::move(made));
}

ElementAccess AccessMap::located(const Place& place, const Expr* element) {
  ElementAccess made;
  made.element = element;
  if (place.isUnknown()) {
    made.tensor = place.type->isTensor()               ? place.type
                  : element->kind == ExprKind::Element ? stripRef(asElement(*element).base.type)
                                                       : nullptr;
    return made;
  }
  made.root = place.root;
  Type type = stripRef(graph[place.root].type);
  bool isElement = false;
  made.offset = graph.values.constant(kUsize, 0);
  for (const Projection& each : place.path) {
    if (type->isTensor() && !made.tensor) {
      made.tensor = type;
      type = type->elem;
      made.leafCount = static_cast<uint32_t>(isStorable(type) ? scalarCount(type) : 1);
    }
    isElement = isElement || each.kind == ProjectionKind::At;
    if (each.kind == ProjectionKind::At || each.kind == ProjectionKind::Window)
      continue;
    uint32_t part = each.field;
    if (each.kind == ProjectionKind::Slot) {
      if (!made.tensor && type->kind == TypeKind::Array) {  // of tensors that lie one after another
        const ValueId size = stripRef(type->elem)->isTensor() ? sizeOf(stripRef(type->elem)) : kNoValue;
        if (size == kNoValue)
          return {};
        NodeTable& nodes = graph.values;
        made.offset =
            nodes.op(Op::Add, kUsize, made.offset, nodes.op(Op::Mul, kUsize, lanes.index(each.index, {}), size));
        type = stripRef(type->elem);
        continue;
      }
      if (!graph.values.isConstant(each.index))
        break;  // any of the array
      part = static_cast<uint32_t>(graph.values[each.index].constant());
    }
    if (type->kind != TypeKind::Struct && type->kind != TypeKind::Tuple && type->kind != TypeKind::Array)
      return {};
    if (made.tensor) {
      made.firstLeaf += static_cast<uint32_t>(scalarsBefore(type, part));
      made.leafCount = static_cast<uint32_t>(scalarCount(partOf(type, part)));
    }
    type = stripRef(partOf(type, part));
  }
  if (!isElement || !made.tensor)
    return {};
  addOffset(place, made);
  return made;
}

//===-- places ----------------------------------------------------------------------------------------------------===//

ValueId AccessMap::extentOf(const DimExpr& extent) const {
  if (const ValueId known = dimensionValue(extent, *graph.function, graph.values); known != kNoValue)
    return known;
  const auto& terms = extent.terms();
  const bool isVariable = terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1 &&
                          terms.begin()->first[0].kind == DimAtom::Kind::Variable;
  return isVariable ? graph.values.extent(terms.begin()->first[0].id) : graph.values.unknown(nullptr, kUsize);
}

ValueId AccessMap::sizeOf(Type tensor) const {
  ValueId size = graph.values.constant(kUsize, 1);
  for (const DimExpr& extent : tensor->shape)
    size = graph.values.op(Op::Mul, kUsize, size, extentOf(extent));
  return size;
}

/// The index before it was made a usize, as the machine does by itself: an access that happens is inside, so it is enough to know it modulo 2^width.
ValueId AccessMap::written(const Place& place, size_t dim, const Expr* element) const {
  const ValueId at = place.dims[dim].begin;
  const bool isWhole = place.path.back().kind == ProjectionKind::At && place.path.back().dims == place.dims;
  if (!isWhole || !element || element->kind != ExprKind::Element)
    return at;
  const auto indices = asElement(*element).indices;
  if (dim >= indices.size() || !indices[dim]->type || graph.values[at].kind != NodeKind::Convert)
    return at;
  const MachineType type = machineType(stripRef(indices[dim]->type));
  const ValueId before = graph.values.operand(at, 0);
  return type != kUsize && graph.values.type(before) == type ? before : at;
}

void AccessMap::addOffset(const Place& place, ElementAccess& made) {
  NodeTable& nodes = graph.values;
  const auto& shape = made.tensor->shape;
  const bool isSwizzled = made.tensor->space == Space::Shared && made.tensor->layout == SharedLayout::BankConflictFree;
  if (place.dims.size() != shape.size()) {
    made.offset = kNoValue;
    return;
  }
  ValueId stride = nodes.constant(kUsize, 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t dim = made.tensor->layout == SharedLayout::ColumnMajor ? i : shape.size() - 1 - i;
    const auto extent = shape[dim].asConstant();
    const ValueId index = lanes.index(written(place, dim, made.element), isSwizzled ? extent : std::nullopt);
    if (extent)
      made.indices.emplace_back(index, *extent);
    made.offset = nodes.op(Op::Add, kUsize, made.offset, nodes.op(Op::Mul, kUsize, index, stride));
    stride = nodes.op(Op::Mul, kUsize, stride, extentOf(shape[dim]));
  }
}

//===-- names -----------------------------------------------------------------------------------------------------===//

const std::vector<__int128>* AccessMap::listOf(ValueId load) const {
  const StepId item = graph.definition(load);
  return item != kNoStep && graph[item].kind == StepKind::Item ? &graph[item].origin->intList : nullptr;
}

/// The loop whose counter the leaf is, as its variable or as its position.
static LoopId loopOf(const Graph& graph, ValueId leaf) {
  for (uint32_t l = 0; l < graph.loops.size(); ++l)
    if (const auto& counter = graph.loops[l].counter)
      if (graph.values.resolved(counter->phi) == leaf || graph.values.resolved(counter->value) == leaf)
        return LoopId{l};
  return kNoLoop;
}

bool AccessMap::isCounterOf(ValueId leaf, const ElementAccess& access) const {
  const LoopId loop = loopOf(graph, leaf);
  return loop != kNoLoop && graph.isInside(access.loop, loop);
}

std::string AccessMap::nameOf(ValueId leaf) const {
  static constexpr const char* kAxes[] = {".x", ".y", ".z"};
  const Node& node = graph.values[leaf];
  if (leaf == lanes.warp())
    return "warp.id";
  switch (node.kind) {
  case NodeKind::Extent:
    return node.number() < graph.function->dims.size() ? graph.function->dims[node.number()].name : "";
  case NodeKind::Argument: {
    if (node.number() >= graph.arguments.size())
      return "";
    const Argument& argument = graph.arguments[node.number()];
    return argument.variable && argument.variable->type->kind == TypeKind::Scalar ? argument.variable->name : "";
  }
  case NodeKind::Position: {
    const char* name = node.position() == PositionKind::BlockId    ? "block.id"
                       : node.position() == PositionKind::BlockDim ? "block.dim"
                                                                   : "grid.dim";
    return std::string(name) + kAxes[node.axis()];
  }
  case NodeKind::Phi:
  case NodeKind::Load: {
    const LoopId loop = loopOf(graph, leaf);
    if (loop == kNoLoop)
      return "";
    const Counter& counter = *graph[loop].counter;
    const bool isVariable = graph.values.resolved(counter.value) == leaf || counter.kind == Counter::Kind::List;
    return isVariable ? asFor(*graph[loop].origin).variable->name : "";
  }
  default: return "";
  }
}

std::string AccessMap::describeCase() const {
  std::string text;
  std::vector<LaneValues::Case> cases = lanes.cases();
  std::sort(cases.begin(), cases.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.leaf != lanes.warp(), a.leaf) < std::pair(b.leaf != lanes.warp(), b.leaf);
  });
  for (const LaneValues::Case& each : cases) {
    const std::string name = nameOf(each.leaf);
    if (name.empty())
      continue;
    __int128 number = each.rest;
    if (const LoopId loop = loopOf(graph, each.leaf); loop != kNoLoop && each.factor == 0)
      if (const Counter& counter = *graph[loop].counter;
          counter.kind == Counter::Kind::List && graph.values.resolved(counter.phi) == each.leaf)
        number = counter.list->intList[static_cast<size_t>(number)];
    text += (text.empty() ? "`" : ", `") + name;
    if (each.factor != 0)
      text += " % " + std::to_string(static_cast<int64_t>(each.factor));
    text += "` = " + std::to_string(static_cast<int64_t>(number));
  }
  return text;
}

const Expr* AccessMap::causeOf(ValueId leaf) const {
  const Expr* found = nullptr;
  walkOperands(graph.values, {leaf}, [&](ValueId value, const Node& node) {
    const StepId step = graph.definition(value);
    if (!found)
      found = step != kNoStep ? graph[step].origin : nullptr;
    if (!found && node.kind == NodeKind::Unknown)
      found = graph.values.cause(value);
    return !found;
  });
  return found;
}

std::string AccessMap::nameOf(const ElementAccess& access) const {
  const Variable* variable = access.root == kNoLocal ? nullptr : graph[access.root].variable;
  return variable ? variable->name : "this tensor";
}

}  // namespace vortex::lang::flow
