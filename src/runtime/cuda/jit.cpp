#include "runtime/cuda/jit.h"

#include "base/hash.h"
#include "base/text.h"

#include <charconv>
#include <cstring>
#include <iterator>

namespace vortex::cuda {

using base::concat;

namespace {

constexpr int kOptimizationLevel = 4;  ///< the driver's default and highest

std::string_view wordAfter(std::string_view text, std::string_view directive) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("//") || !line.starts_with(directive))
      continue;
    line.remove_prefix(directive.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.substr(0, line.find_first_of(" \t\r,/"));
  }
  return {};
}

std::string ptxText(int version) { return concat(version / 10, ".", version % 10); }

/// The assembler's two logs.
class JitLog {
public:
  JitLog() {
    add(kJitErrorLog, errors_);
    add(kJitErrorLogBytes, reinterpret_cast<void*>(sizeof errors_));
    add(kJitInfoLog, info_);
    add(kJitInfoLogBytes, reinterpret_cast<void*>(sizeof info_));
    add(kJitOptimizationLevel, reinterpret_cast<void*>(uintptr_t{kOptimizationLevel}));
    add(kJitLineInfo, reinterpret_cast<void*>(uintptr_t{1}));
  }
  unsigned count() const { return count_; }
  JitOption* options() { return options_; }
  void** values() { return values_; }
  std::string text() const {
    std::string all = errors_;
    if (info_[0])
      all += concat(all.empty() ? "" : "\n", info_);
    while (!all.empty() && (all.back() == '\n' || all.back() == ' '))
      all.pop_back();
    return all;
  }

private:
  void add(JitOption option, void* value) {
    options_[count_] = option;
    values_[count_++] = value;
  }
  char errors_[8192] = {}, info_[4096] = {};
  JitOption options_[6] = {};
  void* values_[6] = {};
  unsigned count_ = 0;
};

Result<std::vector<uint8_t>> link(Context& context, std::string_view ptx) {
  const Api& api = context.api();
  JitLog log;
  LinkHandle state = nullptr;
  Code code = api.linkCreate(log.count(), log.options(), log.values(), &state);
  std::vector<uint8_t> machineCode;
  if (code == kSuccess) {
    const std::string text(ptx);  // the driver wants the terminating zero
    code = api.linkAdd(state, kJitInputPtx, text.c_str(), text.size() + 1, "kernel.ptx", 0, nullptr, nullptr);
    void* bytes = nullptr;
    size_t size = 0;
    if (code == kSuccess)
      code = api.linkComplete(state, &bytes, &size);
    if (code == kSuccess)
      machineCode.assign(static_cast<uint8_t*>(bytes), static_cast<uint8_t*>(bytes) + size);
    api.linkDestroy(state);
  }
  if (code == kSuccess)
    return machineCode;
  Error error = context.check("the driver's assembler refuses the PTX", code).takeError();
  if (const std::string said = log.text(); !said.empty())
    error.message += "\n" + said;
  return error;
}

}  // namespace

Result<PtxHeader> readHeader(std::string_view ptx) {
  const std::string_view head = ptx.substr(0, 65536);
  const std::string_view version = wordAfter(head, ".version"), target = wordAfter(head, ".target");
  int major = 0, minor = 0;
  const auto [point, bad] = std::from_chars(version.begin(), version.end(), major);
  const bool hasMinor = bad == std::errc() && point != version.end() && *point == '.' &&
                        std::from_chars(point + 1, version.end(), minor).ec == std::errc();
  if (!hasMinor || target.empty())
    return Error{"the code is not PTX: it has no .version and .target"};
  return PtxHeader{major * 10 + minor, std::string(target)};
}

int newestPtx(int cudaVersion) {
  // PTX ISA reference, "Release Notes": versions by CUDA release. Before 11.0 nothing else of this driver would work.
  struct Row {
    int cuda, ptx;
  };
  constexpr Row rows[] = {{11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75}, {11060, 76},
                          {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
                          {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}};
  int newest = 0;
  for (const Row& row : rows)
    if (cudaVersion >= row.cuda)
      newest = row.ptx;
  const Row& last = rows[std::size(rows) - 1];
  return cudaVersion > last.cuda + 9 ? INT32_MAX : newest;  // a driver from after this table: it will say itself
}

bool runsOn(std::string_view target, int capability) {
  if (!target.starts_with("sm_"))
    return false;
  int number = 0;
  const auto [end, bad] = std::from_chars(target.begin() + 3, target.end(), number);
  const std::string_view suffix(end, static_cast<size_t>(target.end() - end));
  if (bad != std::errc())
    return false;
  if (suffix == "a")
    return number == capability;
  if (suffix == "f")
    return number / 10 == capability / 10 && number <= capability;
  return suffix.empty() && number <= capability;
}

Result<void> checkPtx(const Gpu& gpu, const PtxHeader& header) {
  const int newest = newestPtx(gpu.api().version);
  if (header.version > newest)
    return Error{concat("its PTX has version ", ptxText(header.version), ", the installed driver is for CUDA ",
                        versionText(gpu.api().version), " and takes versions up to ", ptxText(newest),
                        ": update the NVIDIA driver")};
  if (!runsOn(header.target, gpu.facts().capability))
    return Error{concat("it was compiled for ", header.target, ", 'cuda:", gpu.index(), "' (", gpu.facts().product,
                        ") is sm_", gpu.facts().capability)};
  return {};
}

Result<std::vector<uint8_t>> assemble(Context& context, const Gpu& gpu, std::string_view ptx, artifact::Cache* cache) {
  std::string key;
  if (cache) {
    base::Hasher hasher;
    hasher.addField("cuda machine code 1").addField(ptx).addNumber(static_cast<uint64_t>(context.api().version));
    hasher.addField(context.api().build).addNumber(static_cast<uint64_t>(gpu.facts().capability));
    hasher.addNumber(kOptimizationLevel);
    key = hasher.finishHex();
    if (std::optional<std::vector<uint8_t>> kept = cache->get(key))
      return *std::move(kept);
  }
  Result<std::vector<uint8_t>> fresh = link(context, ptx);
  if (fresh && cache)
    (void)cache->put(key, *fresh);  // a cache that cannot be written costs the next start some milliseconds
  return fresh;
}

}  // namespace vortex::cuda
