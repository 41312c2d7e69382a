// The rules that typed kernels keep to, whatever made them.
#pragma once

#include "lang/sema/program.h"

#include <string>
#include <vector>

namespace vortex::lang {

/// A rule that an expression breaks: a mistake of the front end that made it.
struct Violation {
  source::SourceRange range;
  std::string message;
};

/// Looks at every expression of a type-checked kernel: operands of one type, conditions of type bool, places where something is assigned,
/// integer subscripts of the right number, variables that are declared before they are used and only in their block.
std::vector<Violation> verify(const Function& kernel);

}  // namespace vortex::lang
