#include "chip/chip.h"

#include "base/file.h"
#include "base/hash.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sched.h>
#include <set>
#include <unistd.h>
#include <vector>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace vortex::chip {

namespace {

std::string readLine(const std::string& path) {
  Result<std::string> text = base::readFile(path);
  if (!text)
    return "";
  return text->substr(0, text->find('\n'));
}

std::optional<uint64_t> parseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    return std::nullopt;
  const std::string_view unit(end, text.data() + text.size() - end);
  if (unit.starts_with('K'))
    value <<= 10;
  else if (unit.starts_with('M'))
    value <<= 20;
  return value;
}

/// "0-3,8" → 0 1 2 3 8
std::vector<uint32_t> parseList(std::string_view text) {
  std::vector<uint32_t> items;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::optional<uint64_t> first = parseNumber(part);
    const size_t dash = part.find('-');
    const std::optional<uint64_t> last = dash == std::string_view::npos ? first : parseNumber(part.substr(dash + 1));
    if (!first || !last || *last > 1u << 20)
      break;
    for (uint64_t item = *first; item <= *last; ++item)
      items.push_back(static_cast<uint32_t>(item));
  }
  return items;
}

std::vector<uint32_t> usableProcessors() {
  std::vector<uint32_t> processors;
  for (size_t count = 1024; count <= 1u << 20; count *= 2) {  // the kernel refuses a mask smaller than its own
    cpu_set_t* mask = CPU_ALLOC(count);
    const size_t bytes = CPU_ALLOC_SIZE(count);
    const bool known = ::sched_getaffinity(0, bytes, mask) == 0;
    for (size_t cpu = 0; known && cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, mask))
        processors.push_back(static_cast<uint32_t>(cpu));
    CPU_FREE(mask);
    if (known)
      break;
  }
  if (processors.empty())
    processors.push_back(0);
  return processors;
}

/// This process's cgroup v2 folder; quotas of its ancestors hold as well.
std::vector<std::string> cgroupFolders(const std::string& root) {
  std::vector<std::string> folders;
  std::string group = readLine(root + "/proc/self/cgroup");
  group = group.starts_with("0::") ? group.substr(3) : "";
  for (;;) {
    folders.push_back(root + "/sys/fs/cgroup" + group);
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos)
      break;
    group.resize(slash);
  }
  return folders;
}

/// Processors' worth of time the cgroups grant, rounded up; nothing if unlimited.
std::optional<uint32_t> cgroupProcessors(const std::string& root) {
  std::optional<uint32_t> least;
  for (const std::string& folder : cgroupFolders(root)) {
    const std::string line = readLine(folder + "/cpu.max");  // "<quota|max> <period>"
    const size_t space = line.find(' ');
    const std::optional<uint64_t> quota = parseNumber(line);
    const std::optional<uint64_t> period =
        space == std::string::npos ? std::nullopt : parseNumber(std::string_view(line).substr(space + 1));
    if (!quota || !period || *period == 0)
      continue;
    const auto processors = static_cast<uint32_t>(std::max<uint64_t>(1, (*quota + *period - 1) / *period));
    least = least ? std::min(*least, processors) : processors;
  }
  return least;
}

uint64_t memoryBytes(const std::string& root) {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const std::string& folder : cgroupFolders(root))
    if (const std::optional<uint64_t> limit = parseNumber(readLine(folder + "/memory.max")))  // "max" is not a number
      bytes = std::min(bytes, *limit);
  return bytes;
}

void readCaches(Host& host, const std::string& cpuFolder) {
  for (int index = 0;; ++index) {
    const std::string folder = cpuFolder + "/cache/index" + std::to_string(index) + "/";
    const std::string type = readLine(folder + "type");
    if (type.empty())
      return;
    const uint64_t bytes = parseNumber(readLine(folder + "size")).value_or(0);
    const std::string level = readLine(folder + "level");
    if (const std::optional<uint64_t> line = parseNumber(readLine(folder + "coherency_line_size")); line && *line > 0)
      host.cacheLineBytes = static_cast<uint32_t>(*line);
    if (level == "1" && type != "Instruction")
      host.l1Bytes = bytes;
    else if (level == "2")
      host.l2Bytes = bytes;
    else if (level == "3") {
      host.l3Bytes = bytes;
      host.l3SharingThreads = static_cast<uint32_t>(parseList(readLine(folder + "shared_cpu_list")).size());
    }
  }
}

void readProcessor(Host& host, const std::string& root) {
  constexpr size_t kOneProcessor = 1 << 14;  // they are alike, and there may be hundreds
  Result<std::string> text = base::readFile(root + "/proc/cpuinfo", kOneProcessor);
  if (!text)
    text = std::string();
  const auto field = [&](std::string_view name) -> std::string {
    const size_t at = text->find(std::string(name) + "\t");
    const size_t colon = at == std::string::npos ? at : text->find(": ", at);
    return colon == std::string::npos ? "" : text->substr(colon + 2, text->find('\n', colon) - colon - 2);
  };
  host.name = field("model name");
  if (host.name.empty())
    host.name = "unknown";
  base::Hasher hasher;
  for (const char* name : {"vendor_id", "cpu family", "model", "stepping", "flags", "CPU part", "Features"})
    hasher.addField(field(name));
  host.model = hasher.finishHex();
}

void readInstructionSet(Host& host) {
#if defined(__x86_64__)
  __builtin_cpu_init();  // its answers include whether the kernel saves the wide registers
  host.architecture = "x86_64";
  host.vectorBytes = __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx") ? 32 : 16;
  host.hasFma = __builtin_cpu_supports("fma");
  host.hasF16Conversion = __builtin_cpu_supports("f16c");
#elif defined(__aarch64__)
  host.architecture = "aarch64";
  host.vectorBytes = 16;  // Neon; the length of SVE registers is not fixed at compile time
  host.hasFma = true;
  host.hasF16Conversion = true;  // base architecture: fcvt between half and single
#else
  host.architecture = "unknown";
#endif
}

}  // namespace

Host detectHost(const std::string& root) {
  Host host;
  readProcessor(host, root);
  const std::string cpus = root + "/sys/devices/system/cpu/cpu";
  const std::vector<uint32_t> usable = usableProcessors();
  std::set<std::string> cores;
  for (uint32_t cpu : usable) {
    const std::string topology = cpus + std::to_string(cpu) + "/topology/";
    const std::string core = readLine(topology + "core_id");
    cores.insert(core.empty() ? "cpu" + std::to_string(cpu) : readLine(topology + "physical_package_id") + ":" + core);
  }
  host.cores = static_cast<uint32_t>(cores.size());
  host.threads = static_cast<uint32_t>(usable.size());
  if (const std::optional<uint32_t> granted = cgroupProcessors(root)) {
    host.threads = std::min(host.threads, *granted);
    host.cores = std::min(host.cores, *granted);
  }
  readCaches(host, cpus + std::to_string(usable.front()));
  host.memoryBytes = memoryBytes(root);
  host.pageBytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  readInstructionSet(host);
  return host;
}

}  // namespace vortex::chip
