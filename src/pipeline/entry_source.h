// What makes the entry points of a plan when launches first need them.
#pragma once

#include "artifact/artifact.h"
#include "artifact/cache.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace vortex::pipeline {

/// Each entry point is made once, and kept on disk under a key of its own, if there is a cache. The plan is in memory, so whatever happens to
/// the cache, the code can be made. Threads that ask at the same time wait for each other.
class EntrySource : public artifact::EntrySource {
public:
  struct Plan {
    std::string target;
    std::string key;  ///< of the plan
    uint32_t slotCount = 0;
    std::vector<uint8_t> entries;  ///< BackEnd::Plan
  };
  /// `cache` may be null. `warn` is told, once, that the cache cannot be written.
  EntrySource(Plan plan, std::shared_ptr<artifact::Cache> cache, std::function<void(std::string_view)> warn)
      : plan_(std::move(plan)), cache_(std::move(cache)), warn_(std::move(warn)) {}

  Result<std::vector<uint8_t>> make(const std::string& symbol) override;

  /// The plan as bytes, for of() in another process.
  std::vector<uint8_t> kept() const;
  /// Errors: damaged; made by another build of the compiler, which may read other code.
  static Result<std::shared_ptr<EntrySource>> of(std::span<const uint8_t> kept, std::shared_ptr<artifact::Cache> cache);

private:
  Plan plan_;
  std::shared_ptr<artifact::Cache> cache_;
  std::function<void(std::string_view)> warn_;
  std::mutex mutex_;
  std::map<std::string, std::vector<uint8_t>> made_;
};

}  // namespace vortex::pipeline
