// The kernels that every driver's conformance test runs, without their code.
#pragma once

#include "artifact/artifact.h"

#include <string>
#include <vector>

namespace vortex::hal::conformance {

/// "scale", "update", "again" (update once below 100 elements, else three times), "rounds" (updates
/// `factor` times, with the number of the round as addend), "total", "check", "until" (doubles while
/// the first element is below the limit), "coordinates", "transpose", "talk", "sparse": see testdata/conformance_kernels.c. `code` and
/// `target` are the driver's to fill.
artifact::Kernel kernelNamed(const std::string& name);

}  // namespace vortex::hal::conformance
