#pragma once

#include <string>

namespace vortex::base {

/// Shortest decimal text that reads back as the same f64 ("0.1", "1e-08", "inf"); it always shows that it is a float ("3.0").
std::string floatText(double value);
/// The same for an f32 and for what is exact in one.
std::string floatText(float value);

}  // namespace vortex::base
