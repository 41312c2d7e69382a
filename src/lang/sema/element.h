// Elements of tensors as they are stored: a scalar, or a struct taken apart into its scalars.
#pragma once

#include <string>
#include <vector>

#include "lang/sema/types.h"

namespace vortex::lang {

/// One scalar of an element.
struct ElementLeaf {
  Scalar scalar = Scalar::F32;
  std::string path;  ///< from the element: ".velocity.0"; empty for a scalar element
  uint32_t offset =
      0;  ///< bytes from the element's beginning, in the order and with the alignment that C gives the struct
};

/// A tensor of structs is stored as one plane per scalar. With `@layout(aos)` the planes of a tensor in global memory are strided views
/// of one buffer of structs; else each is a tensor of its own.
struct ElementLayout {
  std::vector<ElementLeaf> leaves;  ///< in the order of the fields, depth first
  uint32_t bytes = 0;               ///< of the struct with its padding
  bool isInterleaved = false;       ///< `@layout(aos)`
};

/// More scalars than this in one element are refused (E0329): a kernel takes each as a parameter.
inline constexpr uint64_t kMaxElementLeaves = 128;

/// Scalars, enums, and structs, tuples and fixed arrays of these: what a struct element may hold.
bool isStorable(Type type);
/// The first part of a type that no element can hold, with the way to it (".name"); null type if there is none.
std::pair<Type, std::string> unstorablePart(Type type);
/// Scalars of a value of a storable type; saturates at UINT64_MAX.
uint64_t scalarCount(Type type);
/// `element`: a scalar, an enum or a storable struct.
ElementLayout elementLayout(Type element);

/// A tensor whose elements are structs, or tuples or arrays: it has planes.
inline bool isStructTensor(Type type) {
  return type->isTensor() && type->elem->kind != TypeKind::Scalar && type->elem->kind != TypeKind::Enum;
}
/// Number of scalars before part `part` of a struct, tuple or array.
uint64_t scalarsBefore(Type type, uint32_t part);
/// Part `part` of a struct, tuple or array.
inline Type partOf(Type type, uint32_t part) { return type->kind == TypeKind::Array ? type->elem : type->elems[part]; }

}  // namespace vortex::lang
