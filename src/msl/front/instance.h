// How Clang is set up for Metal, for sources and for the prelude alone.
#pragma once

#include "msl/front/files.h"

#include <clang/Frontend/CompilerInstance.h>

namespace vortex::msl::front {

/// `instance` has its diagnostics already. `kind` and `words` are arguments of Clang's: what the file is, and what follows the language's own ones.
/// False: they are refused, which is reported.
bool setUp(clang::CompilerInstance& instance, llvm::IntrusiveRefCntPtr<SourceFiles> files, const std::string& kind,
           const std::vector<std::string>& words);

}  // namespace vortex::msl::front
