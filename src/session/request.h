// From the public description of a launch to what the compiler takes.
#pragma once

#include "artifact/artifact.h"
#include "irgen/irgen.h"
#include "vortex/compiler.h"

#include <set>

namespace vortex::session {

artifact::ScalarType toArtifact(lang::Scalar type);

/// Names of the dimensions that the program's kernels have, those that are fixed among them.
std::set<std::string> dimensionsOf(const lang::Program& program);

/// (argument, dimension) of the extents that a kernel is compiled for.
std::vector<std::pair<uint32_t, uint32_t>> fixedExtents(const lang::Function& kernel);

/// The block that the request comes to, if the kernel's checks have not seen it.
std::optional<std::array<int64_t, 3>> uncheckedBlock(const lang::Function& kernel, const BuildRequest& request);

/// Error: an extent that the kernel's shared or local tensors need is missing from the request; names the dimension.
Result<irgen::Options> toIrgen(const lang::Function& kernel, const BuildRequest& request);

/// The target to compile for on a device of this target: for a GPU the newest one that it runs. Error: the device, called `device` in the
/// message, is older than all.
Result<std::string> compileTarget(std::string_view deviceTarget, std::string_view device = "the device");

}  // namespace vortex::session
