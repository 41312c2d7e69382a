#pragma once

#include "msl/front/compile.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>

namespace vortex::msl::front {

/// A kernel and its declaration.
struct FoundKernel {
  Kernel kernel;
  const clang::FunctionDecl* decl = nullptr;
};

/// All kernels and function constants of a translation unit without errors. Parameters that no kernel may have are problems.
std::vector<FoundKernel> findKernels(clang::ASTContext& context, Unit& unit);

/// Where something stands in the sources as they are on disk.
void setPlace(Problem& problem, clang::SourceLocation location, const clang::SourceManager& sources,
              const SourceFiles& files);
/// Whether the user wrote what stands at `at`: a macro of the shim is none of it, wherever it is used.
bool isOfSources(clang::SourceLocation at, const clang::SourceManager& sources, const SourceFiles& files);

}  // namespace vortex::msl::front
