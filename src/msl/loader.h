#pragma once

#include "base/result.h"
#include "msl/reader.h"

namespace vortex::msl {

/// Where libvortex_msl.so is: beside the program or the library that asks, or in ../lib of it. Empty: nowhere there.
std::string readerPath();
/// Opens it on the first call. Error: it is not there or does not fit, with the reason.
base::Result<ReadFunction> openReader();

}  // namespace vortex::msl
