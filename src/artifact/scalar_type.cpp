#include "artifact/artifact.h"

#include "base/check.h"
#include "base/narrow_float.h"

#include <bit>

namespace vortex::artifact {

namespace {

struct ScalarFact {
  ScalarType type;
  const char* name;
  uint32_t bytes;
};

constexpr ScalarFact kScalars[] = {
    {ScalarType::Bool, "bool", 1},     {ScalarType::U8, "u8", 1},         {ScalarType::U16, "u16", 2},
    {ScalarType::U32, "u32", 4},       {ScalarType::U64, "u64", 8},       {ScalarType::I8, "i8", 1},
    {ScalarType::I16, "i16", 2},       {ScalarType::I32, "i32", 4},       {ScalarType::I64, "i64", 8},
    {ScalarType::F8E4M3, "f8e4m3", 1}, {ScalarType::F8E5M2, "f8e5m2", 1}, {ScalarType::F16, "f16", 2},
    {ScalarType::BF16, "bf16", 2},     {ScalarType::F32, "f32", 4},       {ScalarType::F64, "f64", 8},
};

constexpr bool tableFollowsTheEnumeration() {
  for (size_t i = 0; i < std::size(kScalars); ++i)
    if (static_cast<size_t>(kScalars[i].type) != i)
      return false;
  return std::size(kScalars) == static_cast<size_t>(ScalarType::F64) + 1;
}
static_assert(tableFollowsTheEnumeration());

std::optional<base::NarrowFormat> narrowFormat(ScalarType type) {
  switch (type) {
  case ScalarType::F8E4M3: return base::kF8E4M3;
  case ScalarType::F8E5M2: return base::kF8E5M2;
  case ScalarType::F16: return base::kF16;
  case ScalarType::BF16: return base::kBF16;
  default: return std::nullopt;
  }
}

const ScalarFact& fact(ScalarType type) {
  VORTEX_CHECK(type <= ScalarType::F64, "scalar type %u", static_cast<unsigned>(type));
  return kScalars[static_cast<size_t>(type)];
}

}  // namespace

uint32_t byteSize(ScalarType type) { return fact(type).bytes; }
const char* name(ScalarType type) { return fact(type).name; }

std::optional<ScalarType> scalarTypeNamed(std::string_view name) {
  for (const ScalarFact& fact : kScalars)
    if (name == fact.name)
      return fact.type;
  return std::nullopt;
}

uint64_t floatBits(ScalarType type, double value) {
  if (const auto format = narrowFormat(type))
    return base::encodeNarrow(*format, value);
  return type == ScalarType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
}

double floatValue(ScalarType type, uint64_t bits) {
  if (const auto format = narrowFormat(type))
    return base::decodeNarrow(*format, static_cast<uint16_t>(bits));
  return type == ScalarType::F32 ? std::bit_cast<float>(static_cast<uint32_t>(bits)) : std::bit_cast<double>(bits);
}

}  // namespace vortex::artifact
