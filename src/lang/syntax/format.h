#pragma once

#include "diag/diagnostic.h"
#include "source/source.h"

#include <optional>
#include <string>

namespace vortex::lang::syntax {

/// The text of `vortex fmt`: 4 spaces per level, one space around binary operators, at most one blank line in a row, lines of at most
/// kFormatWidth columns where brackets, commas and operators allow it. The author's line breaks are kept. Tokens and comments are
/// unchanged, and formatting twice equals formatting once. A file with syntax errors is refused: they are reported and the result is
/// empty.
inline constexpr uint32_t kFormatWidth = 100;
std::optional<std::string> format(source::FileId file, const source::SourceManager& sources,
                                  diag::DiagnosticSink& sink);

}  // namespace vortex::lang::syntax
