#pragma once

#include <string>

namespace vortex::msl::front {

/// The prelude as Clang keeps a header that it has read: what `compile` takes, of use to the same version of Clang only.
/// Written to the file `path`; what is wrong, empty for nothing.
std::string precompilePrelude(const std::string& path);

/// The version of Clang that runs, as one text.
std::string clangVersion();

}  // namespace vortex::msl::front
