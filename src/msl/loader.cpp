#include "msl/loader.h"

#include <dlfcn.h>
#include <filesystem>

namespace vortex::msl {

namespace fs = std::filesystem;

/// Beside the program, and beside the library that this code is part of.
static std::vector<fs::path> folders() {
  std::error_code unreadable;
  std::vector<fs::path> found{fs::read_symlink("/proc/self/exe", unreadable).parent_path()};
  if (Dl_info own; dladdr(reinterpret_cast<const void*>(&openReader), &own) && own.dli_fname)
    found.push_back(fs::weakly_canonical(own.dli_fname, unreadable).parent_path());
  return found;
}

std::string readerPath() {
  static constexpr const char* kName = "libvortex_msl.so";
  std::error_code unreadable;
  for (const fs::path& folder : folders())
    for (const fs::path& path : {folder / kName, folder / "../lib" / kName, folder / "../../lib" / kName})
      if (fs::exists(path, unreadable))
        return path.string();
  return "";
}

base::Result<ReadFunction> openReader() {
  const std::string path = readerPath();
  if (path.empty())
    return base::Error{"Metal source needs libvortex_msl.so, which is not beside this program"};
  // Its symbols stay its own: Clang, MLIR and LLVM are shared libraries that both sides use.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return base::Error{std::string("the reader of Metal source cannot be used: ") + dlerror()};
  if (void* symbol = dlsym(library, kReadSymbol))
    return reinterpret_cast<ReadFunction>(symbol);
  return base::Error{"the reader of Metal source cannot be used: " + path + " is of another build"};
}

}  // namespace vortex::msl
