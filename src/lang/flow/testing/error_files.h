// The files of tests/errors: what the front end says of each against what it states behind `//~`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lang/flow/front.h"

namespace vortex::lang::flow::testing {

inline constexpr const char* kErrorFiles = "tests/errors";

std::vector<std::filesystem::path> errorFiles();

/// The id in its name is reported, everything stated is, and errors and what has that id are stated with all labels. What of this is not so; empty: all is.
std::string complaintsAbout(const std::filesystem::path& file, const AnalyzeOptions& analyze,
                            const CheckOptions& checks);

}  // namespace vortex::lang::flow::testing
