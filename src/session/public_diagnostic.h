#pragma once

#include "diag/diagnostic.h"
#include "pipeline/compiler.h"
#include "vortex/compiler.h"

namespace vortex::session {

Diagnostic toPublic(const diag::Diagnostic& from, const source::SourceManager& sources);
/// The message after its place, where that is known.
Error toPublic(const pipeline::Failure& failure);

}  // namespace vortex::session
