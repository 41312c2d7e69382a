#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace vortex::base {

/// The whole file. Errors: not found, a folder, not readable, larger than memory; the message names the path and the reason.
Result<std::string> readFile(const std::string& path);

/// Replaces `path` by `content`: a temporary file in the same folder, synced, then renamed, so that readers see the old file or the
/// new one, and a failure (full disk) leaves neither a partial nor a temporary file. The folder must exist.
Result<void> writeFileAtomic(const std::string& path, std::string_view content);

/// Creates the folder and its parents; success if it exists already.
Result<void> createFolders(const std::string& path);

}  // namespace vortex::base
