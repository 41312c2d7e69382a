// Responses of the reader as bytes, for caches. Bytes that toBytes() did not make are nothing, never a crash.
#pragma once

#include "msl/reader.h"

#include <span>

namespace vortex::msl {

std::vector<uint8_t> toBytes(const Response& response);
std::optional<Response> fromBytes(std::span<const uint8_t> bytes);

}  // namespace vortex::msl
