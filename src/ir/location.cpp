#include "ir/location.h"

namespace vortex::ir {

std::string describeLocation(mlir::Operation* op) {
  mlir::FileLineColLoc at = fileLocation(op->getLoc());
  if (!at)
    return {};
  return at.getFilename().str() + ":" + std::to_string(at.getLine()) + ":" + std::to_string(at.getColumn());
}

}  // namespace vortex::ir
