#pragma once

#include "diag/diagnostic.h"
#include "lang/syntax/ast.h"

#include <memory>

namespace vortex::lang::syntax {

/// Parses one file. Never nullptr: what could not be understood is reported to `sink` and left out or replaced by Error nodes, so the
/// result can be analysed further; generate code only when sink.hasErrors() is false. `sources` must outlive the module.
std::unique_ptr<Module> parse(FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::syntax
