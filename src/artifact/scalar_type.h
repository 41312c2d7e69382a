#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vortex::artifact {

enum class ScalarType : uint8_t { Bool, U8, U16, U32, U64, I8, I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64 };
uint32_t byteSize(ScalarType type);
const char* name(ScalarType type);  ///< the language's spelling: "f32", "bf16", "bool", …
std::optional<ScalarType> scalarTypeNamed(std::string_view name);
inline bool isFloat(ScalarType type) { return type >= ScalarType::F8E4M3; }
/// The value rounded to a type that isFloat, in the low bits.
uint64_t floatBits(ScalarType type, double value);
double floatValue(ScalarType type, uint64_t bits);  ///< what floatBits wrote

}  // namespace vortex::artifact
