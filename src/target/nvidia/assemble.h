// ptxas, where it is installed: machine code ahead of time, and exact resource counts.
#pragma once

#include "artifact/cache.h"
#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vortex::target::nvidia {

/// $PATH, then $CUDA_HOME/bin. Nothing if there is none; looked up once per process.
const std::optional<std::string>& findPtxas();

/// What `ptxas -v` says about one entry point.
struct EntryFacts {
  std::string symbol;
  int64_t registers = 0;
  int64_t stackBytes = 0;
  int64_t spillStoreBytes = 0, spillLoadBytes = 0;
  int64_t sharedBytes = 0;  ///< static only
};

struct Assembled {
  std::vector<uint8_t> cubin;
  std::vector<EntryFacts> entries;
};

/// `architecture`: "sm_90a". What this ptxas made of the same text before is found in `cache`, unless that is null: it takes longer than all other
/// stages together. Error: ptxas's own words.
Result<Assembled> assemble(const std::string& ptxas, const std::string& ptx, const std::string& architecture,
                           artifact::Cache* cache);

}  // namespace vortex::target::nvidia
