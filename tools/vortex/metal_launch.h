// What the command line or a JSON file says about a launch of a Metal kernel.
#pragma once

#include "artifact/artifact.h"
#include "base/result.h"
#include "msl/reader.h"
#include "tools/vortex/settings.h"

#include <map>
#include <string>

namespace vortex::tools {

struct MetalBuffer {
  artifact::ScalarType type = artifact::ScalarType::U8;  ///< for printing and saving
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
};

struct MetalLaunch {
  msl::Request request;
  std::array<int64_t, 3> grid{1, 1, 1};  ///< threads
  std::map<uint32_t, MetalBuffer> buffers;
  std::vector<uint32_t> prints;
  std::map<uint32_t, std::string> saves;
};

/// Error: what has the wrong form, with the option or the key. Reads the files that buffers name.
base::Result<MetalLaunch> readMetalLaunch(const Settings& settings);
/// The elements, separated by blanks; floats as few digits as tell them apart.
std::string printBuffer(const MetalBuffer& buffer);
base::Result<void> saveBuffer(const MetalBuffer& buffer, const std::string& path);

}  // namespace vortex::tools
