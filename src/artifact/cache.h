// On-disk cache of compiled kernels, shared by all processes of a user.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::artifact {

/// A key is a content address: callers hash everything the value depends on (source, options, chip, compiler version).
/// All members may be called from any thread and any number of processes at once. A reader sees a complete entry or none.
/// The cache never stops a program: reads that fail are misses, writes that fail are reported once.
class Cache {
public:
  struct Options {
    std::string directory;                  ///< empty: defaultDirectory()
    uint64_t maxBytes = uint64_t{1} << 30;  ///< the least recently used entries go when the sum exceeds this
  };
  Cache() : Cache(Options()) {}
  explicit Cache(Options options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// $VORTEX_CACHE_DIR, else $XDG_CACHE_HOME/vortex, else ~/.cache/vortex; empty if none of the variables and no home exists.
  static std::string defaultDirectory();

  /// The stored bytes, or nothing if the key is unknown or its file is damaged (it is removed, the next put replaces it).
  std::optional<std::vector<uint8_t>> get(std::string_view key);

  /// Stores the bytes. The first failure (directory not writable, disk full) is returned with its path and reason and switches
  /// writing off for this object; later calls then succeed without storing, so a caller can print every error as a warning.
  Result<void> put(std::string_view key, std::span<const uint8_t> bytes);

  const std::string& directory() const { return directory_; }

  struct Counters {
    uint64_t hits = 0, misses = 0, damaged = 0, stored = 0, evicted = 0;
  };
  Counters counters() const;

private:
  struct State;
  std::string path(std::string_view key) const;
  Result<void> store(std::string_view key, std::span<const uint8_t> bytes);
  void evict();

  std::string directory_;
  uint64_t maxBytes_;
  std::unique_ptr<State> state_;
};

}  // namespace vortex::artifact
