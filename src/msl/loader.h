#pragma once

#include "base/result.h"
#include "msl/reader.h"

namespace vortex::msl {

/// Opens libvortex_msl.so, which lies beside the program or in ../lib, on the first call. Error: it is not there, with the reason.
base::Result<ReadFunction> openReader();

}  // namespace vortex::msl
