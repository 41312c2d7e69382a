// PTX to machine code of one device, by the driver's own assembler; kept on disk.
#pragma once

#include "artifact/cache.h"
#include "runtime/cuda/context.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::cuda {

/// What the header of a PTX text asks for.
struct PtxHeader {
  int version = 0;     ///< 83 for ".version 8.3"
  std::string target;  ///< "sm_90a"
};
/// Error: the text does not begin as PTX does.
Result<PtxHeader> readHeader(std::string_view ptx);

/// Newest PTX version that a driver for this CUDA version (12040 for 12.4) accepts; versions later than this code knows count on from there.
int newestPtx(int cudaVersion);

/// Whether code for a target ("sm_80", "sm_90a", "sm_100f") runs on a compute capability (90). Plain targets run on later devices too,
/// those ending in `a` on exactly theirs, those ending in `f` on theirs and later ones of the same major number.
bool runsOn(std::string_view target, int capability);

/// Error before anything is given to the driver: PTX newer than the driver, or for another device.
Result<void> checkPtx(const Gpu& gpu, const PtxHeader& header);

/// Machine code for the context's device: from the cache, else assembled and stored there. The error carries the assembler's log.
Result<std::vector<uint8_t>> assemble(Context& context, const Gpu& gpu, std::string_view ptx, artifact::Cache* cache);

}  // namespace vortex::cuda
