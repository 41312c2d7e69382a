#pragma once

namespace vortex::msl::front {

/// Makes Clang know the attributes that the pre-lexer and the shim write. Again and from any thread: once is enough.
void addAttributes();

}  // namespace vortex::msl::front
