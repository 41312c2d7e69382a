// Values of the host program. Numbers are kept as 64-bit patterns whose meaning the typed program gives.
#pragma once

#include "lang/sema/program.h"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace vortex::host {

using lang::Scalar;

class DeviceBuffer;
struct Value;
struct Frame;

/// A tensor in device memory, or a borrowed window on one. Extents and strides count elements. A tensor of structs has no memory of its
/// own but planes of its extents, one per scalar of `element` (lang::elementLayout); those of an `@layout(aos)` struct share a buffer.
struct TensorValue {
  Scalar type = Scalar::F32;
  lang::Type element = nullptr;  ///< tensors of structs
  std::vector<TensorValue> planes;
  std::shared_ptr<DeviceBuffer> buffer;
  int64_t offset = 0;
  std::vector<int64_t> extents, strides;

  int64_t elementCount() const;
  bool isContiguous() const;
};

/// Storage of a Vec (or array): packed bytes for scalar elements, values otherwise. Assignment of a Vec moves, so handles are shared.
struct VecStorage {
  bool packed = true;
  Scalar type = Scalar::F32;
  std::vector<uint8_t> bytes;
  std::vector<Value> values;

  size_t size() const;
  Value at(size_t index) const;
  void set(size_t index, const Value& value);
  void push(const Value& value);
  /// Sets all elements. Requires packed ones.
  void fill(const Value& value);
  void resize(size_t size);
};

/// Elements [begin, begin + count) of a Vec: a whole Vec, or a borrowed slice.
struct VecValue {
  std::shared_ptr<VecStorage> storage;
  size_t begin = 0, count = 0;
  bool isSlice = false;  ///< a whole Vec follows its storage's size

  size_t size() const { return isSlice ? count : storage->size(); }
};

/// A tuple or struct; copied with deep copies of nested aggregates.
struct Aggregate {
  std::vector<Value> fields;
};

/// A borrowed place: a variable or field slot, or one element of a Vec.
struct Reference {
  Value* slot = nullptr;
  std::shared_ptr<VecStorage> vec;
  size_t index = 0;
  std::shared_ptr<Value> temporary;  ///< keeps the referent of `&expression` alive, or what `slot` is a part of
};

/// Of unsigned 64-bit integers: their bits.
struct RangeValue {
  int64_t begin = 0, end = 0, step = 1;

  /// How many of begin, begin + step, … come before the end; none of them wraps.
  uint64_t count(bool isUnsigned) const {
    const uint64_t first = static_cast<uint64_t>(begin), last = static_cast<uint64_t>(end),
                   by = static_cast<uint64_t>(step);
    const bool isDown = step < 0 && !isUnsigned;
    if (step == 0 || !(isUnsigned ? first < last : isDown ? end < begin : begin < end))
      return 0;
    return isDown ? (first - last - 1) / (0 - by) + 1 : (last - first - 1) / by + 1;
  }
  int64_t at(uint64_t position) const {
    return static_cast<int64_t>(static_cast<uint64_t>(begin) + position * static_cast<uint64_t>(step));
  }
};

struct ClosureValue {
  const lang::Expr* expr = nullptr;
  Frame* frame = nullptr;  ///< captures by reference; closures do not outlive their frame
};

struct Value {
  std::variant<std::monostate, int64_t, double, std::shared_ptr<std::string>, TensorValue, VecValue,
               std::shared_ptr<Aggregate>, Reference, RangeValue, ClosureValue>
      data;

  Value() = default;
  template <class T> Value(T value) : data(std::move(value)) {}
  static Value text(std::string text) { return Value(std::make_shared<std::string>(std::move(text))); }

  int64_t asInt() const { return std::get<int64_t>(data); }
  double asFloat() const { return std::get<double>(data); }
  const std::string& asText() const { return *std::get<std::shared_ptr<std::string>>(data); }
  const TensorValue& asTensor() const { return std::get<TensorValue>(data); }
  const VecValue& asVec() const { return std::get<VecValue>(data); }
  Aggregate& asAggregate() const { return *std::get<std::shared_ptr<Aggregate>>(data); }
  const Reference& asReference() const { return std::get<Reference>(data); }
  bool isReference() const { return std::holds_alternative<Reference>(data); }
  bool isUnit() const { return std::holds_alternative<std::monostate>(data); }
};

/// Copies aggregates so that the two sides do not share fields.
Value copyOf(const Value& value);

uint32_t byteSize(Scalar type);
/// One element in memory (bool: one byte) to a Value and back. Integers outside the type wrap; floats round to nearest even.
Value loadScalar(Scalar type, const uint8_t* bytes);
void storeScalar(Scalar type, const Value& value, uint8_t* bytes);

}  // namespace vortex::host
