#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace vortex::cpu {

/// A relocatable ELF object placed in memory: code read-execute, constants read-only, data read-write; nothing is ever
/// writable and executable. Immutable after load; any thread may look up and call.
class LoadedObject {
public:
  using Resolver = void* (*)(std::string_view name);

  /// Places an x86-64 object as LLVM writes it (PIC or static; small, medium or large code model). Every malformed or unsupported
  /// object is an error that names the section, symbol or relocation. References to symbols the object does not define go to
  /// `resolve`; an unknown one is an error. The bytes are copied.
  static Result<std::unique_ptr<LoadedObject>> load(std::span<const uint8_t> bytes, Resolver resolve);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  /// Entry point of a defined, global function; null if there is none.
  void* find(const std::string& symbol) const;
  uint64_t mappedBytes() const { return bytes_; }

private:
  friend class ObjectLoader;
  LoadedObject(uint8_t* base, uint64_t bytes) : base_(base), bytes_(bytes) {}

  uint8_t* base_;
  uint64_t bytes_;
  std::unordered_map<std::string, void*> functions_;
};

}  // namespace vortex::cpu
