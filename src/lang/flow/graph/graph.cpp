#include "lang/flow/graph/graph.h"

#include <algorithm>

namespace vortex::lang::flow {

MachineType machineType(Type type) {
  if (type->kind == TypeKind::Enum)
    return {32, true};
  if (type->kind != TypeKind::Scalar)
    return {};
  return {static_cast<uint8_t>(bitWidth(type->scalar)), isInteger(type->scalar) && !isUnsigned(type->scalar)};
}

bool isSharedStorage(Storage storage) {
  return storage == Storage::Shared || storage == Storage::Global || storage == Storage::Constant ||
         storage == Storage::Result;
}

Storage storageOf(Type type) {
  while (type->kind == TypeKind::Ref || type->kind == TypeKind::Array)
    type = type->elem;
  if (!type->isTensor())
    return Storage::Variable;
  if (type->isValue)
    return Storage::Tile;
  switch (type->space) {
  case Space::Global: return Storage::Global;
  case Space::Shared: return Storage::Shared;
  case Space::Local: return Storage::Local;
  case Space::Constant: return Storage::Constant;
  }
  return Storage::Variable;
}

StepId Graph::definition(ValueId value) const {
  const ValueId resolved = values.resolved(value);
  const Node& node = values[resolved];
  if (node.kind == NodeKind::Load || node.kind == NodeKind::Ticket)
    return node.step();
  const size_t index = indexOf(resolved);
  return node.kind == NodeKind::Unknown && index < definitions_.size() ? definitions_[index] : kNoStep;
}

std::vector<ValueId> Graph::inputsOf(StepId id) const {
  const Step& step = (*this)[id];
  std::vector<ValueId> out(uses(step).begin(), uses(step).end());
  for (const Access& access : accessesOf(step)) {
    const std::vector<ValueId> subscripts = (*this)[access.place].subscripts();
    out.insert(out.end(), subscripts.begin(), subscripts.end());
  }
  return out;
}

bool Graph::isInside(LoopId loop, LoopId outer) const {
  while (loop != outer && loop != kNoLoop)
    loop = (*this)[loop].parent;
  return loop == outer;
}

std::optional<uint32_t> Graph::parameterOf(ValueId value) const {
  const Node& node = values[value];
  if (node.kind != NodeKind::Argument || node.number() >= arguments.size())
    return std::nullopt;
  const Variable* variable = arguments[node.number()].variable;
  const auto found = std::find(function->params.begin(), function->params.end(), variable);
  if (found == function->params.end() || variable->type->kind != TypeKind::Scalar || isFloat(variable->type->scalar))
    return std::nullopt;
  return static_cast<uint32_t>(found - function->params.begin());
}

bool Graph::changesIn(ValueId value, LoopId loop) const {
  const Node& node = values[value];
  if (node.kind == NodeKind::Phi)
    return isInside(values.phiBlock(values.resolved(value)), loop);
  for (ValueId operand : values.operands(value))
    if (changesIn(operand, loop))
      return true;
  const StepId step = definition(value);
  const bool isMade = node.kind == NodeKind::Load || node.kind == NodeKind::Ticket || node.kind == NodeKind::Unknown;
  return isMade && (step == kNoStep || isInside(blockOf(step), loop));
}

std::string Graph::describe(LocalId local) const {
  const Local& root = (*this)[local];
  if (!root.variable || root.variable->name.empty())
    return root.storage == Storage::Result ? "the result" : "this value";
  return "`" + root.variable->name + "`";
}

std::string Graph::describe(PlaceId id) const {
  const Place& place = (*this)[id];
  const Local& root = (*this)[place.root];
  if (!root.variable || root.variable->name.empty())
    return describe(place.root);
  std::string out = root.variable->name;
  Type type = root.type;
  for (const Projection& each : place.path) {
    type = stripRef(type);
    switch (each.kind) {
    case ProjectionKind::Deref: break;
    case ProjectionKind::Field: {
      if (type && type->isTensor())
        type = type->elem;
      const bool isNamed = type && type->kind == TypeKind::Struct && each.field < type->decl->fields.size();
      out += "." + (isNamed ? type->decl->fields[each.field] : std::to_string(each.field));
      const bool isKnown = type && (type->kind == TypeKind::Array || each.field < type->elems.size());
      type = !isKnown ? nullptr : type->kind == TypeKind::Array ? type->elem : type->elems[each.field];
      break;
    }
    case ProjectionKind::Slot:
    case ProjectionKind::At:
      out += "[…]";
      type = type ? type->elem : nullptr;
      break;
    case ProjectionKind::Window: {
      const bool isOfElements = !isKernel && &each != &place.path.back() && (&each)[1].kind == ProjectionKind::Field;
      out += isOfElements ? "" : "[…]";  // `p.mass`: of all of them
      break;
    }
    }
  }
  return "`" + out + "`";
}

}  // namespace vortex::lang::flow
