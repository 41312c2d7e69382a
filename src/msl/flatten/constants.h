// Values of what a program declares at namespace scope in `constant`.
#pragma once

#include "msl/front/compile.h"

#include <llvm/IR/Function.h>

namespace vortex::msl::flatten {

/// A constant whose initialiser could not be evaluated, and the code that would do so.
struct Unevaluated {
  std::string symbol;
  llvm::DebugLoc at;
  std::string needed;  ///< symbol of a function constant without a value that it is made from
};

/// Function constants get the request's values, then what is made of them or by functions of the shim is evaluated; Metal runs no code
/// before a kernel. A value that its constant's type has not is a problem of the unit. What is not given has no value then: see refuseMissing().
std::vector<Unevaluated> setConstants(front::Unit& unit, const Request& request);
/// A problem of the unit if the kernel, as simplified, uses a function constant that has no value.
void refuseMissing(front::Unit& unit, const std::vector<Unevaluated>& left);

/// The elements of a variable with an initial value, one after the other; null ones have none. Nothing: it is not all numbers.
std::optional<std::vector<llvm::Constant*>> elementsOf(const llvm::GlobalVariable& global, llvm::Type* elem,
                                                       uint64_t elemBytes);

}  // namespace vortex::msl::flatten
