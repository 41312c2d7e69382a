#include "vortex/kernel_cache.h"

#include "artifact/cache.h"
#include "base/build_id.h"

namespace vortex {

KernelCache::KernelCache(std::string folder)
    : cache_(std::make_shared<artifact::Cache>(artifact::Cache::Options{.directory = std::move(folder)})) {}

std::optional<std::vector<uint8_t>> KernelCache::get(std::string_view key) const { return cache_->get(key); }

Result<void> KernelCache::put(std::string_view key, std::span<const uint8_t> bytes) const {
  return cache_->put(key, bytes);
}

Result<std::string> libraryId(const std::string& path) { return base::buildIdOf(path); }

}  // namespace vortex
