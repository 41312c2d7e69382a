#pragma once

#include "tools/vortex/settings.h"

namespace vortex::tools {

bool isMetalFile(const std::string& path);
int runMetal(const Settings& settings);
int buildMetal(const Settings& settings);
/// All diagnostics of one file: every kernel is read, the first ones are lowered too.
int checkMetal(const Settings& settings, const std::string& path);

}  // namespace vortex::tools
