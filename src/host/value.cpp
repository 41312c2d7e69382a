#include "host/value.h"

#include "base/check.h"
#include "base/narrow_float.h"

#include <algorithm>
#include <cstring>

namespace vortex::host {

int64_t TensorValue::elementCount() const {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

bool TensorValue::isContiguous() const {
  int64_t expected = 1;
  for (size_t dim = extents.size(); dim-- > 0;) {
    if (extents[dim] != 1 && strides[dim] != expected)
      return false;
    expected *= extents[dim];
  }
  return true;
}

uint32_t byteSize(Scalar type) { return (lang::bitWidth(type) + 7) / 8; }

template <class T> static T readAs(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class T> static void writeAs(T value, uint8_t* bytes) { std::memcpy(bytes, &value, sizeof(T)); }

Value loadScalar(Scalar type, const uint8_t* bytes) {
  switch (type) {
  case Scalar::Bool: return int64_t{bytes[0] != 0};
  case Scalar::U8: return int64_t{bytes[0]};
  case Scalar::I8: return int64_t{readAs<int8_t>(bytes)};
  case Scalar::U16: return int64_t{readAs<uint16_t>(bytes)};
  case Scalar::I16: return int64_t{readAs<int16_t>(bytes)};
  case Scalar::U32: return int64_t{readAs<uint32_t>(bytes)};
  case Scalar::I32: return int64_t{readAs<int32_t>(bytes)};
  case Scalar::U64:
  case Scalar::I64:
  case Scalar::Usize: return readAs<int64_t>(bytes);
  case Scalar::F8E4M3: return base::decodeNarrow(base::kF8E4M3, bytes[0]);
  case Scalar::F8E5M2: return base::decodeNarrow(base::kF8E5M2, bytes[0]);
  case Scalar::F16: return base::decodeNarrow(base::kF16, readAs<uint16_t>(bytes));
  case Scalar::BF16: return base::decodeNarrow(base::kBF16, readAs<uint16_t>(bytes));
  case Scalar::F32: return double{readAs<float>(bytes)};
  case Scalar::F64: return readAs<double>(bytes);
  }
  VORTEX_UNREACHABLE();
}

void storeScalar(Scalar type, const Value& value, uint8_t* bytes) {
  switch (type) {
  case Scalar::F8E4M3: return writeAs(static_cast<uint8_t>(base::encodeNarrow(base::kF8E4M3, value.asFloat())), bytes);
  case Scalar::F8E5M2: return writeAs(static_cast<uint8_t>(base::encodeNarrow(base::kF8E5M2, value.asFloat())), bytes);
  case Scalar::F16: return writeAs(base::encodeNarrow(base::kF16, value.asFloat()), bytes);
  case Scalar::BF16: return writeAs(base::encodeNarrow(base::kBF16, value.asFloat()), bytes);
  case Scalar::F32: return writeAs(static_cast<float>(value.asFloat()), bytes);
  case Scalar::F64: return writeAs(value.asFloat(), bytes);
  default: break;
  }
  int64_t integer = value.asInt();
  std::memcpy(bytes, &integer, byteSize(type));  // little-endian
}

size_t VecStorage::size() const { return packed ? bytes.size() / byteSize(type) : values.size(); }

Value VecStorage::at(size_t index) const {
  return packed ? loadScalar(type, &bytes[index * byteSize(type)]) : copyOf(values[index]);
}

void VecStorage::set(size_t index, const Value& value) {
  if (packed)
    storeScalar(type, value, &bytes[index * byteSize(type)]);
  else
    values[index] = value;
}

void VecStorage::push(const Value& value) {
  if (packed) {
    bytes.resize(bytes.size() + byteSize(type));
    set(size() - 1, value);
  } else {
    values.push_back(value);
  }
}

void VecStorage::fill(const Value& value) {
  if (bytes.empty())
    return;
  set(0, value);
  for (size_t done = byteSize(type); done < bytes.size(); done *= 2)
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
}

void VecStorage::resize(size_t size) {
  if (packed)
    bytes.resize(size * byteSize(type));
  else
    values.resize(size);
}

Value copyOf(const Value& value) {
  if (auto* aggregate = std::get_if<std::shared_ptr<Aggregate>>(&value.data)) {
    auto copy = std::make_shared<Aggregate>();
    for (const Value& field : (*aggregate)->fields)
      copy->fields.push_back(copyOf(field));
    return Value(copy);
  }
  return value;
}

}  // namespace vortex::host
