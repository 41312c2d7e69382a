#include "msl/loader.h"

#include <dlfcn.h>
#include <filesystem>

namespace vortex::msl {

base::Result<ReadFunction> openReader() {
  static constexpr const char* kName = "libvortex_msl.so";
  std::error_code unreadable;
  auto folder = std::filesystem::read_symlink("/proc/self/exe", unreadable).parent_path();
  std::string reason;
  for (const auto& path : {folder / kName, folder / "../lib" / kName, folder / "../../lib" / kName}) {
    if (!std::filesystem::exists(path, unreadable))
      continue;
    // Its symbols stay its own: Clang, MLIR and LLVM are shared libraries that both sides use.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      reason = dlerror();
      continue;
    }
    if (void* symbol = dlsym(library, kReadSymbol))
      return reinterpret_cast<ReadFunction>(symbol);
    reason = path.string() + " is of another build";
  }
  return base::Error{reason.empty() ? "Metal source needs libvortex_msl.so, which is not beside this program"
                                    : "the reader of Metal source cannot be used: " + reason};
}

}  // namespace vortex::msl
