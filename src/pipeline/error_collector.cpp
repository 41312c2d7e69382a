#include "pipeline/error_collector.h"

namespace vortex::pipeline {

ErrorCollector::ErrorCollector(mlir::MLIRContext& context, Failure& failure)
    : handler_(&context, [&failure](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error || !failure.message.empty())
          return mlir::success();
        failure.message = diagnostic.str();
        if (auto at = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) {
          failure.file = at.getFilename().str();
          failure.line = at.getLine();
          failure.column = at.getColumn();
        }
        return mlir::success();
      }) {}

}  // namespace vortex::pipeline
