#pragma once

#include <string_view>

namespace vortex::msl {

/// The precompiled prelude (msl/front/precompile.h), a part of the library. Empty where the Clang that runs is not the one that made it, as after an
/// update of its shared library: the prelude's text is read then, which takes longer.
std::string_view precompiledPrelude();

}  // namespace vortex::msl
