#include "msl/front/precompile.h"

#include "msl/front/instance.h"
#include "msl/front/problems.h"

#include <clang/Basic/Version.h>
#include <clang/Frontend/FrontendActions.h>

namespace vortex::msl::front {

std::string clangVersion() { return clang::getClangFullVersion(); }

std::string precompilePrelude(const std::string& path) {
  std::vector<Problem> problems;
  auto files = llvm::makeIntrusiveRefCnt<SourceFiles>();
  clang::CompilerInstance instance;
  Widened refused;
  instance.createDiagnostics(new ProblemCollector(*files, problems, refused));
  // Without times: the same prelude gives the same bytes.
  if (!setUp(instance, files, "c++-header",
             {"-emit-pch", "-fno-pch-timestamp", "-fpch-instantiate-templates", "-o", path, kPrelude}))
    return "Clang refuses its arguments";
  clang::GeneratePCHAction action;
  if (!instance.ExecuteAction(action) || !problems.empty())
    return problems.empty() ? "Clang refuses the prelude" : problems[0].message;
  return "";
}

}  // namespace vortex::msl::front
