#pragma once

#include "base/result.h"
#include "diag/diagnostic.h"
#include "msl/reader.h"

namespace vortex::session {

/// What the reader says, or what it said before about the same request and the same included files. Error: there is no reader.
base::Result<msl::Response> readMetal(const msl::Request& request, bool useCache);

/// The problems of a response as diagnostics; their places are in `sources`.
void reportProblems(const msl::Request& request, const msl::Response& response, source::SourceManager& sources,
                    diag::DiagnosticSink& sink);

}  // namespace vortex::session
