// Source locations of operations.
#pragma once

#include "interpreter/interpreter.h"

#include "mlir/IR/Location.h"

namespace vortex::interpreter {

/// The innermost file position in a location; empty when there is none.
Location locationOf(mlir::Location location);
/// "file:line:column: ", or nothing.
std::string toText(const Location& location);

}  // namespace vortex::interpreter
