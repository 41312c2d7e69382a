#pragma once

#include "artifact/artifact.h"

namespace vortex::artifact {

/// What every consumer of a kernel may rely on: slots number the parameters, results and temporaries without gaps up to
/// slotCount, ranks match extents, expressions are well formed and read existing slots, result indices exist, phases have
/// symbols. The error names the parameter or phase.
Result<void> validate(const Kernel& kernel);

}  // namespace vortex::artifact
