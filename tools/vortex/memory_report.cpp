#include "tools/vortex/memory_report.h"

#include "base/text.h"
#include "pipeline/back_end.h"
#include "source/json.h"

#include <algorithm>
#include <cstdio>

namespace vortex::tools {

using base::concat;

constexpr uint32_t kWarpQuarters = 4, kSystemSharedBytes = 1024, kSharedUnit = 128;

Residency residencyOf(const chip::Gpu& chip, uint32_t threads, uint32_t registers, uint64_t sharedBytes) {
  const uint32_t warps = (threads + chip.warpSize - 1) / chip.warpSize;
  const uint32_t granule = std::max(chip.registerGranule, 1u);
  const uint32_t perWarp = (std::max(registers, 1u) + granule - 1) / granule * granule * chip.warpSize;
  const uint32_t warpsByRegisters = chip.registersPerCore / kWarpQuarters / perWarp * kWarpQuarters;
  const uint64_t shared = (sharedBytes + kSharedUnit - 1) / kSharedUnit * kSharedUnit + kSystemSharedBytes;
  const std::pair<uint64_t, const char*> limits[] = {
      {chip.threadsPerCore / chip.warpSize / warps, "threads"},
      {chip.blocksPerCore, "blocks"},
      {warpsByRegisters / warps, "registers"},
      {chip.sharedBytesPerCore / shared, "shared memory"},
  };
  Residency result{~0u, "", 0};
  for (const auto& [blocks, what] : limits)
    if (blocks < result.blocks)
      result = {static_cast<uint32_t>(blocks), what, 0};
  result.threads = result.blocks * warps * chip.warpSize;
  return result;
}

namespace {

std::optional<int64_t> factOf(const artifact::Kernel& kernel, const std::string& key) {
  for (const artifact::Fact& fact : kernel.facts)
    if (fact.key == key)
      return fact.value;
  return std::nullopt;
}

/// The highest count of the phase's entry points; those for tensors that lie anyhow are left out.
std::optional<int64_t> highestFact(const artifact::Kernel& kernel, const artifact::Phase& phase,
                                   const std::string& key) {
  std::optional<int64_t> highest, last = factOf(kernel, key + phase.symbol);
  auto consider = [&](const std::string& symbol) {
    if (auto value = factOf(kernel, key + symbol); value && symbol.find("_general") == std::string::npos)
      highest = std::max(highest.value_or(0), *value);
  };
  for (const artifact::Version& version : phase.versions)
    consider(version.symbol);
  consider(phase.symbol);
  return highest ? highest : last;
}

/// "12,345"
std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

std::string share(uint64_t part, uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

/// Numbers of one phase; empty where nothing exact is known.
struct Use {
  const artifact::Phase& phase;
  const chip::Gpu* chip;
  std::optional<int64_t> shared, scratch, threads, registers, spill, stack;
  std::optional<Residency> residency;
  uint64_t tensorBytes = 0;  ///< end of the program's own tensors
};

Use useOf(const artifact::Kernel& kernel, size_t index) {
  const artifact::Phase& phase = kernel.phases[index];
  Use use{phase,
          pipeline::chipOf(kernel.target),
          kernel.sizes.constantOf(phase.sharedBytes),
          kernel.sizes.constantOf(phase.scratchBytes),
          kernel.sizes.constantOf(phase.hardwareThreads),
          highestFact(kernel, phase, "registers."),
          highestFact(kernel, phase, "spill_bytes."),
          highestFact(kernel, phase, "stack_bytes."),
          {},
          0};
  for (const artifact::SharedTensor& tensor : kernel.sharedTensors)
    if (tensor.phase == index && !tensor.isCompilers)
      use.tensorBytes = std::max(use.tensorBytes, tensor.offset + tensor.bytes);
  if (use.chip && use.threads && *use.threads > 0 && use.registers && use.shared)
    use.residency = residencyOf(*use.chip, static_cast<uint32_t>(*use.threads), static_cast<uint32_t>(*use.registers),
                                static_cast<uint64_t>(*use.shared));
  return use;
}

std::string tensorLines(const artifact::Kernel& kernel, size_t phase, uint32_t lastLine, bool ofCompiler = false) {
  std::string text;
  for (const artifact::SharedTensor& tensor : kernel.sharedTensors) {
    if (tensor.phase != phase || tensor.isCompilers != ofCompiler)
      continue;
    char line[96];
    std::snprintf(line, sizeof line, "    %8llu  %8llu  lines %u-%u  ", static_cast<unsigned long long>(tensor.offset),
                  static_cast<unsigned long long>(tensor.bytes), tensor.firstLine,
                  std::max(std::min(tensor.lastLine, lastLine), tensor.firstLine));
    text += ofCompiler ? concat(line, tensor.type, "\n")
                       : concat(line, "`", tensor.name, "`: ", tensor.type, ", line ", tensor.line, "\n");
  }
  return text.empty() ? text : "      offset     bytes\n" + text;
}

std::string phaseName(const artifact::Kernel& kernel, const Use& use) {
  return kernel.phases.size() == 1 ? "" : concat("  ", use.phase.name, ":\n");
}

std::string sharedLine(const Use& use) {
  const auto shared = static_cast<uint64_t>(use.shared.value_or(0));
  return concat("  Shared memory:  ", grouped(shared), " of ", grouped(use.chip->sharedBytesPerBlock),
                " bytes per block (", share(shared, use.chip->sharedBytesPerBlock), ")\n");
}

std::string occupancyLine(const Use& use) {
  return concat("  Occupancy:      ", share(use.residency->threads, use.chip->threadsPerCore), " (",
                use.residency->threads, " of ", use.chip->threadsPerCore, " threads)\n");
}

std::string phaseText(const artifact::Kernel& kernel, size_t index, uint32_t lastLine) {
  const Use use = useOf(kernel, index);
  std::string text = phaseName(kernel, use);
  if (use.chip) {
    const chip::Gpu& chip = *use.chip;
    const auto shared = static_cast<uint64_t>(use.shared.value_or(0));
    text += sharedLine(use);
    text += tensorLines(kernel, index, lastLine);
    if (shared > use.tensorBytes && use.tensorBytes + shared > 0)
      text += concat("    the compiler's own, for tiles, products and reductions: up to ",
                     grouped(shared - use.tensorBytes), " bytes\n", tensorLines(kernel, index, lastLine, true));
    text += use.threads ? concat("  Threads/block:  ", *use.threads, " of ", chip.maxThreadsPerBlock, "\n")
                        : "  Threads/block:  an argument of the launch decides\n";
    if (use.registers)
      text += concat("  Registers:      ", *use.registers, " of ", chip.maxRegistersPerThread, " per thread, ",
                     use.spill.value_or(0), " bytes spilled, ", use.stack.value_or(0), " bytes of stack\n");
    else if (!kernel.target.starts_with("metal"))
      text += "  Registers:      not known: ptxas is not installed\n";
    if (use.residency)
      text += concat("  Blocks/SM:      ", use.residency->blocks, " (limited by ", use.residency->limitedBy, ")\n",
                     occupancyLine(use));
    return text;
  }
  text += use.scratch ? concat("  Scratch memory: ", grouped(static_cast<uint64_t>(*use.scratch)), " bytes per block\n")
                      : "  Scratch memory: arguments of the launch decide\n";
  return text + tensorLines(kernel, index, lastLine);
}

std::string jsonNumber(const std::optional<int64_t>& number) { return number ? std::to_string(*number) : "null"; }

}  // namespace

std::string memoryReport(const artifact::Kernel& kernel, uint32_t lastLine) {
  std::string text;
  for (size_t i = 0; i < kernel.phases.size(); ++i)
    text += phaseText(kernel, i, lastLine);
  return text;
}

std::string memorySummary(const artifact::Kernel& kernel) {
  std::string text;
  for (size_t i = 0; i < kernel.phases.size(); ++i)
    if (const Use use = useOf(kernel, i); use.chip)
      text += phaseName(kernel, use) + sharedLine(use) + (use.residency ? occupancyLine(use) : "");
  return text;
}

std::string memoryReportJson(const artifact::Kernel& kernel, uint32_t lastLine) {
  std::vector<std::string> phases, tensors, pieces;
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    const Use use = useOf(kernel, i);
    std::string text =
        concat("{\"name\": ", source::jsonString(use.phase.name), ", \"sharedBytes\": ", jsonNumber(use.shared),
               ", \"sharedLimit\": ", use.chip ? std::to_string(use.chip->sharedBytesPerBlock) : "null",
               ", \"scratchBytes\": ", use.chip ? "null" : jsonNumber(use.scratch),
               ", \"threads\": ", jsonNumber(use.threads), ", \"registers\": ", jsonNumber(use.registers),
               ", \"spillBytes\": ", jsonNumber(use.spill), ", \"stackBytes\": ", jsonNumber(use.stack));
    if (use.residency)
      text += concat(", \"blocksPerMultiprocessor\": ", use.residency->blocks,
                     ", \"limitedBy\": ", source::jsonString(use.residency->limitedBy),
                     ", \"residentThreads\": ", use.residency->threads);
    phases.push_back(text + "}");
  }
  for (const artifact::SharedTensor& tensor : kernel.sharedTensors) {
    const uint32_t last = std::max(std::min(tensor.lastLine, lastLine), tensor.firstLine);
    if (tensor.isCompilers) {
      pieces.push_back(concat("{\"what\": ", source::jsonString(tensor.type), ", \"bytes\": ", tensor.bytes,
                              ", \"offset\": ", tensor.offset, ", \"firstLine\": ", tensor.firstLine,
                              ", \"lastLine\": ", last, ", \"phase\": ", tensor.phase, "}"));
      continue;
    }
    tensors.push_back(
        concat("{\"name\": ", source::jsonString(tensor.name), ", \"type\": ", source::jsonString(tensor.type),
               ", \"file\": ", source::jsonString(tensor.file), ", \"line\": ", tensor.line,
               ", \"bytes\": ", tensor.bytes, ", \"offset\": ", tensor.offset, ", \"firstLine\": ", tensor.firstLine,
               ", \"lastLine\": ", last, ", \"phase\": ", tensor.phase, "}"));
  }
  return concat("\"phases\": [", base::join(phases, ", "), "], \"sharedTensors\": [", base::join(tensors, ", "),
                "], \"pieces\": [", base::join(pieces, ", "), "]");
}

}  // namespace vortex::tools
