#pragma once

#include "source/source.h"

namespace vortex::host {

/// The word or character at a position that a message names; invalid where no file of that name has it.
source::SourceRange placeNamed(const source::SourceManager& sources, std::string_view file, source::LineColumn at);

}  // namespace vortex::host
