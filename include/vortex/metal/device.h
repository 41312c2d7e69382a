// Devices, memory, libraries and pipelines. Functions with an `error` return null and set it (unless it is null); its text says what was wrong.
#pragma once

#include "vortex/metal/types.h"

namespace vortex::metal::MTL {

class Buffer;
class CommandQueue;
class Device;
class Library;

class CompileOptions : public Opaque<CompileOptions> {
public:
  using Opaque::Opaque;
  static CompileOptions* alloc();
  CompileOptions* init() { return this; }
  /// Up to 3.2: what __METAL_VERSION__ is. The language is read the same.
  void setLanguageVersion(LanguageVersion version);
  LanguageVersion languageVersion() const;
  /// Names to strings or numbers.
  void setPreprocessorMacros(const NS::Dictionary* macros);
  /// Accepted; functions always have the error bounds of MathModeSafe.
  void setFastMathEnabled(bool isEnabled);
  void setMathMode(MathMode mode);
};

class FunctionConstantValues : public Opaque<FunctionConstantValues> {
public:
  using Opaque::Opaque;
  static FunctionConstantValues* alloc();
  FunctionConstantValues* init() { return this; }
  void setConstantValue(const void* value, DataType type, NS::UInteger index);
  void setConstantValue(const void* value, DataType type, const NS::String* name);
  void setConstantValues(const void* values, DataType type, NS::Range range);
  void reset();
};

/// A kernel of a library.
class Function : public Opaque<Function> {
public:
  using Opaque::Opaque;
  NS::String* name() const;
  Device* device() const;
};

class Library : public Opaque<Library> {
public:
  using Opaque::Opaque;
  /// Null where there is none of that name.
  Function* newFunction(const NS::String* name) const;
  Function* newFunction(const NS::String* name, const FunctionConstantValues* values, NS::Error** error) const;
  NS::Array* functionNames() const;
  Device* device() const;
};

class ComputePipelineState : public Opaque<ComputePipelineState> {
public:
  using Opaque::Opaque;
  NS::UInteger maxTotalThreadsPerThreadgroup() const;
  NS::UInteger threadExecutionWidth() const { return 32; }
  NS::UInteger staticThreadgroupMemoryLength() const;
  Device* device() const;
};

/// Memory. On a GPU with memory of its own a shared buffer is copied to it when a command buffer that uses it runs, and back when that completes.
class Buffer : public Opaque<Buffer> {
public:
  using Opaque::Opaque;
  NS::UInteger length() const;
  /// Null of private buffers.
  void* contents() const;
  /// Nothing is needed: what the host wrote is copied.
  void didModifyRange(NS::Range) {}
  MTL::StorageMode storageMode() const;
  Device* device() const;
};

class Device : public Opaque<Device> {
public:
  using Opaque::Opaque;
  NS::String* name() const;
  bool hasUnifiedMemory() const;
  NS::UInteger maxBufferLength() const;
  NS::UInteger recommendedMaxWorkingSetSize() const { return maxBufferLength(); }
  Size maxThreadsPerThreadgroup() const { return {1024, 1024, 1024}; }
  NS::UInteger maxThreadgroupMemoryLength() const { return 32 << 10; }

  /// Zeros. Null: no bytes, or out of memory.
  Buffer* newBuffer(NS::UInteger length, ResourceOptions options);
  /// A copy of `pointer`.
  Buffer* newBuffer(const void* pointer, NS::UInteger length, ResourceOptions options);
  /// Errors: the compiler's diagnostics.
  Library* newLibrary(const NS::String* source, const CompileOptions* options, NS::Error** error);
  /// Errors: no function; what it uses that is not supported.
  ComputePipelineState* newComputePipelineState(const Function* function, NS::Error** error);
  CommandQueue* newCommandQueue();
};

/// Most preferred first; with VORTEX_METAL_DEVICE=cpu (cuda:0, …) only the one of that name. Always the same objects.
NS::Array* CopyAllDevices();
/// The first of them; null where there is none.
Device* CreateSystemDefaultDevice();

}  // namespace vortex::metal::MTL
