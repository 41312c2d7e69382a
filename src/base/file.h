#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::base {

/// The whole file, or its first `most` + 1 bytes where it has more (which may be without end: `/dev/zero`). Errors: not found, a folder, not
/// readable; the message names the path and the reason.
Result<std::string> readFile(const std::string& path, size_t most = SIZE_MAX - 1);
/// The whole file. Errors: as readFile, and more than `most` bytes, half of the machine's memory unless given.
Result<std::string> readWholeFile(const std::string& path, std::optional<size_t> most = std::nullopt);

/// Makes `content` what is in `path`. A regular file is written whole or not at all: a temporary file in the same folder, synced, then renamed,
/// with the old one's mode and owner. Symbolic links are followed; a file with several names is written in place, and gets its old content
/// back if that fails. Pipes, devices and the like are opened and written. Errors: no permission to write (also of root where the mode has
/// none), a folder, a full disk. The folder must exist.
Result<void> writeFileAtomic(const std::string& path, std::string_view content);

/// The names, without `extension`, of the files in a folder that have it, in order; "" is the current folder. A folder that cannot be read has
/// none.
std::vector<std::string> stemsIn(const std::string& folder, std::string_view extension);

/// Creates the folder and its parents; success if it exists already.
Result<void> createFolders(const std::string& path);

}  // namespace vortex::base
