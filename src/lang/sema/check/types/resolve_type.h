// From written types to types: names, tensors, memory spaces.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// What an upper-case name that is not in scope means in a shape.
enum class DimPolicy : uint8_t {
  Parameter,  ///< a new dimension variable of the function
  Let,        ///< a new dimension variable bound by this `let`
  Result,     ///< an error; scalar parameters may be named
  Known,      ///< an error
  Fresh,      ///< an extent of its own (fields of a struct value)
  Field,      ///< of a struct that a function returns: the parameters' by this name, else an extent of its own
};

Type resolveType(BodyState& body, const syn::Type* type, DimPolicy policy);
Type resolveNamed(BodyState& body, const syn::NamedType* type, DimPolicy policy);
bool checkElement(BodyState& body, Type elem, SourceRange range);
bool checkSize(BodyState& body, Type type, SourceRange range);

}  // namespace vortex::lang
