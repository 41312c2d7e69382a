#include "target/gpu/hopper/configuration.h"

#include <array>
#include <cstdio>

namespace vortex::target::gpu::hopper {

namespace {

/// Of equal cost the first is taken. Stages fill what staging and barriers leave of 227 KiB, with columns that lie across, which are copied in blocks of 64.
/// Cycles of a step: what the matrix unit takes, rows · columns · 64 / 2048, and what is lost where a step is short or copies more than it multiplies. The
/// losses are those of whole launches through the runtime on three H200, 2048³ to 8192³ (docs/performance.md), relative to 128×256; those of 64×128 follow
/// 64×256. Narrower ones are for tile code that asks for them. Those of tf32 and 8-bit integers are the same within 5 %. Cycles of parts are those of f8 on an H100 and an H200, relative to 128×128.
constexpr std::array kConfigurations = {
    Configuration{128, 256, 4, 1024},
    Configuration{128, 192, 4, 814, 0, 814},
    Configuration{128, 160, 4, 708},
    Configuration{128, 128, 6, 594, 760},
    Configuration{192, 128, 4, 0, 1095},
    Configuration{64, 256, 4, 608, 770},
    Configuration{64, 128, 8, 330, 550, 420},
    Configuration{128, 64, 8},
    Configuration{64, 64, 8},
};

/// Registers for the scores, the weights as operand and the results: (keys + keys / 2 + width) / 2 per thread; what is left of 64 K per core goes to addresses
/// and the functions of the scores.
constexpr std::array kStreamConfigurations = {
    // Three consumers hide more of each other's exponentials, in blocks that take longer: measured on an H100.
    StreamConfiguration{64, 3, 128, 5, 32, 160},
    StreamConfiguration{64, 2, 128, 4, 24, 240},
    StreamConfiguration{128, 2, 128, 1, 24, 240},
    StreamConfiguration{256, 2, 64, 1, 24, 240},
    // Memory is what limits pieces: 64 rows, and two blocks per core. Of 256 columns one fits, with half a block's registers for one consumer.
    StreamConfiguration{64, 1, 128, 1, 24, 232, true},
    StreamConfiguration{128, 1, 64, 1, 24, 232, true},
    StreamConfiguration{256, 2, 64, 1, 56, 224, true},
};

}  // namespace

std::string Configuration::str() const {
  return "wgmma " + std::to_string(rows) + "x" + std::to_string(columns) + " stages " + std::to_string(stages);
}

std::optional<Configuration> parseConfiguration(const std::string& text) {
  Configuration parsed;
  int read = std::sscanf(text.c_str(), "wgmma %ux%u stages %u", &parsed.rows, &parsed.columns, &parsed.stages);
  for (const Configuration& known : kConfigurations)
    if (read == 3 && known.str() == text)
      return known;
  return std::nullopt;
}

std::span<const Configuration> configurations(const chip::Gpu& chip) {
  return chip.hasWarpgroupMatrix ? std::span<const Configuration>(kConfigurations) : std::span<const Configuration>();
}

std::string StreamConfiguration::str() const {
  return "wgmma stream " + std::to_string(rows()) + "x" + std::to_string(keys) + " width " + std::to_string(width) +
         (ofPieces ? " pieces" : "");
}

std::optional<StreamConfiguration> parseStreamConfiguration(const std::string& text) {
  for (const StreamConfiguration& known : kStreamConfigurations)
    if (known.str() == text)
      return known;
  return std::nullopt;
}

std::span<const StreamConfiguration> streamConfigurations(const chip::Gpu& chip) {
  return chip.hasWarpgroupMatrix ? std::span<const StreamConfiguration>(kStreamConfigurations)
                                 : std::span<const StreamConfiguration>();
}

}  // namespace vortex::target::gpu::hopper
