#include "msl/front/instance.h"

#include "msl/front/attributes.h"

#include <clang/Frontend/CompilerInvocation.h>

namespace vortex::msl::front {

static constexpr const char* kLanguage[] = {
    // SYCL's address spaces make distinct overloads, while the default one accepts pointers of all.
    "-std=c++17",
    "-fsycl-is-device",
    "-faddress-space-map-mangling=no",
    "-triple",
    "nvptx64-nvidia-cuda",
    "-aux-triple",
    "x86_64-pc-linux-gnu",  // without it, mangling __bf16 crashes
    "-target-feature",
    "+ptx80",
    "-target-cpu",
    "sm_90",
    "-fdeclspec",
    "-nostdsysteminc",
    "-nobuiltininc",
    "-O3",
    "-disable-llvm-passes",
    "-fno-threadsafe-statics",
    "-cl-single-precision-constant",
    "-ffp-contract=fast",
    "-fno-strict-float-cast-overflow",
    "-debug-info-kind=line-tables-only",
    "-w",
    "-Wno-c++11-narrowing",
    "-ferror-limit",
    "30"};

bool setUp(clang::CompilerInstance& instance, llvm::IntrusiveRefCntPtr<SourceFiles> files, const std::string& kind,
           const std::vector<std::string>& words) {
  addAttributes();
  std::vector<const char*> pointers{"-x", kind.c_str()};
  pointers.insert(pointers.end(), std::begin(kLanguage), std::end(kLanguage));
  for (const std::string& word : words)
    pointers.push_back(word.c_str());
  if (!clang::CompilerInvocation::CreateFromArgs(instance.getInvocation(), pointers, instance.getDiagnostics()))
    return false;
  // What Metal refuses, and code without a meaning, which LLVM would take for code that is never reached. Other warnings are not shown.
  for (const char* group :
       {"unknown-attributes", "vla-cxx-extension", "return-type", "array-bounds", "division-by-zero",
        "shift-count-overflow", "shift-count-negative", "uninitialized", "return-stack-address"})
    instance.getDiagnostics().setSeverityForGroup(clang::diag::Flavor::WarningOrError, group,
                                                  clang::diag::Severity::Error);
  // What some condition would have to be for is no error.
  instance.getDiagnostics().setSeverityForGroup(clang::diag::Flavor::WarningOrError, "sometimes-uninitialized",
                                                clang::diag::Severity::Ignored);
  instance.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());  // "1 error generated."
  instance.createFileManager(std::move(files));
  return true;
}

}  // namespace vortex::msl::front
