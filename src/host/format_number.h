#pragma once

#include "host/value.h"

#include <string>

namespace vortex::host {

/// Shortest decimal text that reads back as the same number of its type ("0.1", "1e-08", "3", "inf"); floats always show that they
/// are floats ("3.0"). Integers in decimal, bool as true/false.
std::string formatNumber(Scalar type, const Value& value);

}  // namespace vortex::host
