#pragma once

#include "base/result.h"
#include "host/value.h"

#include <string>
#include <string_view>

namespace vortex::host {

/// A decoded `.npy`: row-major elements. bf16 and f8 have no NumPy type and are stored as u16/u8 by saveNpy.
struct NpyArray {
  Scalar type = Scalar::F32;
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
};

/// Parses format versions 1–3 (numpy.lib.format), little- and big-endian, C and Fortran order. Errors say what is wrong with the file:
/// not an npy, a truncated or malformed header, an unsupported dtype, fewer bytes than the shape needs.
Result<NpyArray> parseNpy(std::string_view file);
/// Version 1.0, little-endian, C order.
std::string formatNpy(const NpyArray& array);

}  // namespace vortex::host
