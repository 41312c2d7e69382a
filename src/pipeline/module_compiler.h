// From the text of a vx module, whoever wrote it, to an artifact.
#pragma once

#include "pipeline/back_end.h"
#include "pipeline/compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace vortex::pipeline {

/// Compiles modules of one text format for one target. Not thread-safe.
class ModuleCompiler {
public:
  /// With the cache, what the same text gave before is taken from disk.
  ModuleCompiler(std::string target, std::string cpu, bool useCache, Effort effort = Effort::Usual);
  ~ModuleCompiler();
  /// The module as written. Null and `failure` set: it does not parse.
  mlir::OwningOpRef<mlir::ModuleOp> parse(std::string_view text, Failure& failure);
  /// Null and `failure` set: a stage does not support it. With an observer, all of whose functions are set, the cache is left out.
  std::shared_ptr<const artifact::Kernel> compile(std::string_view text, Failure& failure,
                                                  const BackEnd::Observer* observer = nullptr);

private:
  std::shared_ptr<const artifact::Kernel> compileAnew(std::string_view text, Failure& failure,
                                                      const BackEnd::Observer& observer);
  mlir::MLIRContext& context();

  std::string target_, cpu_;
  Effort effort_;
  std::unique_ptr<artifact::Cache> cache_;
  std::unique_ptr<mlir::MLIRContext> context_;  ///< made on first use: a cached kernel needs none
};

}  // namespace vortex::pipeline
