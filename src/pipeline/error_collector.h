#pragma once

#include "pipeline/compiler.h"

#include "mlir/IR/Diagnostics.h"

namespace vortex::pipeline {

/// Keeps the first error of MLIR's diagnostics while it lives.
class ErrorCollector {
public:
  ErrorCollector(mlir::MLIRContext& context, Failure& failure);

private:
  mlir::ScopedDiagnosticHandler handler_;
};

}  // namespace vortex::pipeline
