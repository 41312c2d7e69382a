#include "lang/sema/ownership/flow.h"

#include "lang/sema/check/traits.h"

#include <algorithm>

namespace vortex::lang::ownership {

bool isCopy(Type type) {
  if (type->param && !type->isTensor())  // in a generic definition: what its bounds say
    return static_cast<const BoundParam*>(type->param)->builtins.has(BuiltinTrait::Copy);
  switch (type->kind) {
  case TypeKind::Vec: return false;
  case TypeKind::Tensor: return type->isValue;
  case TypeKind::Ref: return !type->isMutable;
  case TypeKind::Array: return isCopy(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct: return std::all_of(type->elems.begin(), type->elems.end(), isCopy);
  default: return true;
  }
}

std::string copyBound(Type type) {
  const auto* param = type && !type->isTensor() ? static_cast<const BoundParam*>(type->param) : nullptr;
  if (!param)
    return {};
  if (param->name == "Self")
    return "trait " + param->boundsText + ": Copy";
  return param->name + ": " + param->boundsText + (param->boundsText.empty() ? "" : " + ") + "Copy";
}

bool mayHoldBorrows(Type type) {
  switch (type->kind) {
  case TypeKind::Ref:
  case TypeKind::Closure: return true;
  case TypeKind::Vec:
  case TypeKind::Array: return mayHoldBorrows(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct: return std::any_of(type->elems.begin(), type->elems.end(), mayHoldBorrows);
  default: return false;
  }
}

std::string Graph::describe(const Place& place) const {
  const Local& root = locals[place.root];
  if (!root.variable || root.variable->name.empty())
    return "this value";
  std::string out = root.variable->name;
  Type type = root.type;
  for (const Projection& each : place.path) {
    if (each.kind == Projection::Kind::Deref) {
      type = type && type->kind == TypeKind::Ref ? type->elem : type;
    } else if (each.kind == Projection::Kind::Index) {
      out += each.expr->ints.empty() ? "[…]" : "";
      if (type && each.expr->kind == ExprKind::Element)
        type = type->elem;
    } else {
      type = type && type->isTensor() ? type->elem : type;
      const bool named = type && type->kind == TypeKind::Struct && each.field < type->decl->fields.size();
      out += "." + (named ? type->decl->fields[each.field] : std::to_string(each.field));
      type = type && each.field < type->elems.size() ? type->elems[each.field] : nullptr;
    }
  }
  return "`" + out + "`";
}

}  // namespace vortex::lang::ownership
