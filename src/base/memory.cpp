#include "base/memory.h"

#include "base/tensor_bytes.h"
#include "base/text.h"

#include <algorithm>
#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

namespace vortex::base {

static uint64_t pageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

uint64_t physicalMemory() { return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * pageBytes(); }

/// MemAvailable of /proc/meminfo; physical memory if it cannot be read.
static uint64_t systemMemory() {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (!file)
    return physicalMemory();
  char line[256];
  unsigned long long kib = 0;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file))
    found = std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1;
  std::fclose(file);
  return found ? static_cast<uint64_t>(kib) << 10 : physicalMemory();
}

/// What RLIMIT_AS leaves.
static uint64_t addressSpace() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu", &pages) != 1)
      pages = 0;
    std::fclose(file);
  }
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, pages * pageBytes());
}

uint64_t availableMemory() { return std::min(systemMemory(), addressSpace()); }

std::optional<std::string> outOfMemory(unsigned __int128 bytes) {
  constexpr uint64_t kFewBytes = uint64_t{16} << 20;
  if (bytes < kFewBytes)
    return std::nullopt;
  const uint64_t available = availableMemory();
  if (bytes <= available)
    return std::nullopt;
  return concat("out of memory: ", showBytes(bytes), " bytes requested, ", available, " available");
}

}  // namespace vortex::base
