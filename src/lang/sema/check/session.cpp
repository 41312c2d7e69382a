#include "lang/sema/check/session.h"

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Session::Session(Program& program, source::SourceManager& sources, diag::DiagnosticSink& sink,
                 const AnalyzeOptions& options)
    : program(program), sources(sources), options(options), types(program.types), sink_(&sink) {}
Session::~Session() = default;

DimExpr Session::canonicalExtent(size_t i) {
  while (canonicalExtents_.size() <= i)
    canonicalExtents_.push_back(DimExpr::opaque(newOpaque()));
  return canonicalExtents_[i];
}

Function* Session::newFunction() {
  program.functions.push_back(std::make_unique<Function>());
  return program.functions.back().get();
}
Function* Session::scratchFunction() {
  if (!scratch_)
    scratch_ = std::make_unique<Function>();
  return scratch_.get();
}

}  // namespace vortex::lang
