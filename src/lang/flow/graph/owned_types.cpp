#include "lang/flow/graph/owned_types.h"

#include <algorithm>

#include "lang/sema/check/traits/traits.h"

namespace vortex::lang::flow {

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

}  // namespace vortex::lang::flow
