// Places in source files.
#pragma once

#include <mlir/IR/Location.h>
#include <mlir/IR/Operation.h>

#include <string>

namespace vortex::ir {

/// The first place in a source file that the location knows; null: it knows none.
inline mlir::FileLineColLoc fileLocation(mlir::Location location) {
  return location->findInstanceOf<mlir::FileLineColLoc>();
}

/// "file:line:column" of the operation, or nothing.
std::string describeLocation(mlir::Operation* op);

}  // namespace vortex::ir
