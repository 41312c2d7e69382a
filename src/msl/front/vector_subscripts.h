#pragma once

#include <clang/AST/Decl.h>

#include <string>
#include <utility>
#include <vector>

namespace vortex::msl::front {

/// Constant subscripts outside a vector, with what to say of each, in code of `function` that constants do not rule out.
std::vector<std::pair<clang::SourceLocation, std::string>> wrongSubscripts(clang::FunctionDecl& function);

}  // namespace vortex::msl::front
