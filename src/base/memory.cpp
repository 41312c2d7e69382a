#include "base/memory.h"

#include "base/tensor_bytes.h"
#include "base/text.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace vortex::base {

static uint64_t pageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// The number in a file; UINT64_MAX if there is none, as where a control group has no limit ("max").
static uint64_t numberIn(const std::string& path) {
  unsigned long long number = UINT64_MAX;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    if (std::fscanf(file, "%llu", &number) != 1)
      number = UINT64_MAX;
    std::fclose(file);
  }
  return number;
}

/// The least limit of the groups that this process is in, from its own up to the root. Containers see their own group as the root.
static uint64_t groupMemory() {
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (!file)
    return UINT64_MAX;
  uint64_t least = UINT64_MAX;
  char line[4096];
  while (std::fgets(line, sizeof line, file)) {
    std::string_view text(line);
    text = text.substr(0, text.find('\n'));
    const bool isUnified = text.starts_with("0::");
    const size_t memory = text.find(":memory:");
    if (!isUnified && memory == std::string_view::npos)
      continue;
    const std::string root = isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string name = isUnified ? "/memory.max" : "/memory.limit_in_bytes";
    std::string group(text.substr(isUnified ? 3 : memory + 8));
    for (bool more = true; more; group.resize(more ? group.rfind('/') : 0)) {
      more = group.rfind('/') != std::string::npos;
      least = std::min(least, numberIn(root + group + name));
    }
  }
  std::fclose(file);
  return least;
}

uint64_t physicalMemory() {
  static const uint64_t memory =
      std::min(static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * pageBytes(), groupMemory());
  return memory;
}

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

uint64_t addressSpace() {
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
