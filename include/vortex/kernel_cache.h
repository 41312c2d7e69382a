// Compiled kernels on disk, found without the compiler.
//
//   vortex::KernelCache cache;
//   std::string key = vortex::libraryId("libvortex_compiler.so.0").value() + device.target() + device.model() + source;
//   if (auto artifact = cache.get(key)) kernel = device.load(*artifact).value();
//
// It is the folder where Program::build keeps what it compiles, which needs the compiler to know the key. Link libvortex_runtime.
#pragma once

#include "vortex/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vortex {

namespace artifact {
class Cache;
}

/// Bytes by key. A key says all that the bytes depend on. Members may be called from any thread and any number of processes at once: a reader
/// sees a complete entry or none.
class KernelCache {
public:
  /// Without a folder $VORTEX_CACHE_DIR, $XDG_CACHE_HOME/vortex or ~/.cache/vortex.
  explicit KernelCache(std::string folder = "");

  /// Nothing where the key is unknown, or its entry damaged or not readable.
  std::optional<std::vector<uint8_t>> get(std::string_view key) const;
  /// The first failure (a folder that cannot be written, a full disk) is an error with path and reason; from then on this object stores nothing
  /// and succeeds.
  Result<void> put(std::string_view key, std::span<const uint8_t> bytes) const;

private:
  std::shared_ptr<artifact::Cache> cache_;
};

/// The build id that the linker put into a shared library or program, as hex: another one whenever its code is another. Errors: no such file,
/// no 64-bit ELF file, no build id.
Result<std::string> libraryId(const std::string& path);

}  // namespace vortex
