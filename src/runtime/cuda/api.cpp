#include "runtime/cuda/api.h"

#include "base/file.h"
#include "base/text.h"

#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace vortex::cuda {

using base::concat;

namespace {

std::string driverBuild() {
  Result<std::string> text = base::readFile("/proc/driver/nvidia/version");
  return text ? text->substr(0, text->find('\n')) : std::string();
}

/// Empty, or the first symbol that is missing.
std::string findFunctions(void* library, Api& api) {
#define VORTEX_CUDA_FIND(member, symbol, parameters)                                                                   \
  api.member = reinterpret_cast<decltype(api.member)>(::dlsym(library, #symbol));                                      \
  if (!api.member)                                                                                                     \
    return #symbol;
  VORTEX_CUDA_FUNCTIONS(VORTEX_CUDA_FIND)
#undef VORTEX_CUDA_FIND
#define VORTEX_CUDA_LOOK(member, symbol, parameters, since)                                                            \
  api.member = reinterpret_cast<decltype(api.member)>(::dlsym(library, #symbol));
  VORTEX_CUDA_OPTIONAL_FUNCTIONS(VORTEX_CUDA_LOOK)
#undef VORTEX_CUDA_LOOK
  return {};
}

}  // namespace

Error Api::error(const std::string& what, Code code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  errorName(code, &name);
  errorText(code, &text);
  const bool isForked = code == kNotInitialized && ::getpid() != process;
  return {concat(what, ": ", name ? name : concat("CUDA error ", int{code}), text ? concat(" (", text, ")") : "",
                 isForked
                     ? ": this process was forked from one that had opened a GPU, and CUDA does not work in such a "
                       "process: fork before the first use of a GPU, or start processes anew (in Python the start "
                       "method \"spawn\" of multiprocessing)"
                     : ""),
          code == kOutOfMemory ? ErrorKind::OutOfMemory : ErrorKind::Failed};
}

Error Api::absentError(const char* symbol) const {
  int needed = 0;
#define VORTEX_CUDA_SINCE(member, name, parameters, since)                                                             \
  if (std::string_view(symbol) == #name)                                                                               \
    needed = since;
  VORTEX_CUDA_OPTIONAL_FUNCTIONS(VORTEX_CUDA_SINCE)
#undef VORTEX_CUDA_SINCE
  return {concat(library, " has no function ", symbol, ": the NVIDIA driver is for CUDA ", versionText(version),
                 ", one for CUDA ", versionText(needed), " or later is needed")};
}

std::string versionText(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

bool destroysContext(Code code) {
  return code == kEccUncorrectable || code == kContained || code == kIllegalAddress || code == kLaunchTimeout ||
         code == kAssert || (code >= kHardwareStackError && code <= kLaunchFailed) || code == kTensorMemoryLeak;
}

ApiSearch openApi() {
  const char* chosen = std::getenv("VORTEX_LIBCUDA");
  const bool named = chosen && *chosen;
  const std::string library = named ? chosen : "libcuda.so.1";
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const std::string reason = ::dlerror();
    if (named)
      return {.api = nullptr, .absence = {}, .broken = Error{concat("cannot open VORTEX_LIBCUDA: ", reason)}};
    return {.api = nullptr, .absence = "no NVIDIA driver is installed: " + reason, .broken = {}};
  }
  auto api = std::make_shared<Api>();
  api->library = library;
  api->process = ::getpid();
  if (const std::string missing = findFunctions(handle, *api); !missing.empty())
    return {.api = nullptr,
            .absence = {},
            .broken = Error{concat(library, " has no function ", missing,
                                   ": the NVIDIA driver is too old, one for CUDA 11.4 or later is needed")}};
  if (const Code code = api->init(0); code != kSuccess) {
    if (code == kNoDevice || code == kStubLibrary)
      return {.api = nullptr, .absence = api->error(library, code).message, .broken = {}};
    return {.api = nullptr, .absence = {}, .broken = api->error("the NVIDIA driver does not start", code)};
  }
  if (const Code code = api->driverVersion(&api->version); code != kSuccess)
    return {.api = nullptr, .absence = {}, .broken = api->error("the NVIDIA driver does not tell its version", code)};
  api->build = driverBuild();
  return {.api = std::move(api), .absence = {}, .broken = {}};
}

}  // namespace vortex::cuda
