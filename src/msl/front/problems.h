#pragma once

#include "msl/front/files.h"
#include "msl/reader.h"

#include <clang/Basic/Diagnostic.h>

namespace vortex::msl::front {

/// Clang's errors in terms of the sources as they are on disk. What is reported inside the shim points at the user's code that led there.
class ProblemCollector : public clang::DiagnosticConsumer {
public:
  /// `refused`: what is cast between half and bfloat, beside the problem that it is.
  ProblemCollector(const SourceFiles& files, std::vector<Problem>& problems, Widened& refused)
      : files_(files), problems_(problems), refused_(refused) {}
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& diagnostic) override;

private:
  struct Place {
    std::string file;
    uint32_t begin = 0, end = 0;
  };
  Place place(const clang::Diagnostic& diagnostic) const;

  void addRefusedCast(const clang::Diagnostic& diagnostic);
  bool followsRefusal(llvm::StringRef message);

  const SourceFiles& files_;
  std::vector<Problem>& problems_;
  Widened& refused_;
  std::vector<std::string> refusedTypes_;  ///< without namespaces and arguments
  bool isShown_ = false;                   ///< the last error or warning; notes follow theirs
};

}  // namespace vortex::msl::front
