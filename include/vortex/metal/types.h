// Numbers and names of Metal's interface, with the values of metal-cpp.
#pragma once

#include "vortex/metal/foundation.h"

namespace vortex::metal::MTL {

struct Size {
  Size() = default;
  Size(NS::UInteger x, NS::UInteger y, NS::UInteger z) : width(x), height(y), depth(z) {}
  static Size Make(NS::UInteger x, NS::UInteger y, NS::UInteger z) { return {x, y, z}; }
  NS::UInteger width = 0, height = 0, depth = 0;
};

enum ResourceOptions : NS::UInteger {
  ResourceCPUCacheModeDefaultCache = 0,
  ResourceCPUCacheModeWriteCombined = 1,
  ResourceStorageModeShared = 0,
  ResourceStorageModeManaged = 1 << 4,
  ResourceStorageModePrivate = 2 << 4,
  ResourceHazardTrackingModeUntracked = 1 << 8,
};

enum StorageMode : NS::UInteger { StorageModeShared = 0, StorageModeManaged = 1, StorageModePrivate = 2 };

enum LanguageVersion : NS::UInteger {
  LanguageVersion2_0 = 0x20000,
  LanguageVersion2_1,
  LanguageVersion2_2,
  LanguageVersion2_3,
  LanguageVersion2_4,
  LanguageVersion3_0 = 0x30000,
  LanguageVersion3_1,
  LanguageVersion3_2,
  LanguageVersion4_0 = 0x40000,
};

enum MathMode : NS::Integer { MathModeSafe = 0, MathModeRelaxed = 1, MathModeFast = 2 };

enum DataType : NS::UInteger {
  DataTypeNone = 0,
  DataTypeFloat = 3,
  DataTypeHalf = 16,
  DataTypeInt = 29,
  DataTypeUInt = 33,
  DataTypeShort = 37,
  DataTypeUShort = 41,
  DataTypeChar = 45,
  DataTypeUChar = 49,
  DataTypeBool = 53,
  DataTypeLong = 81,
  DataTypeULong = 85,
  DataTypeBFloat = 121,
};

enum CommandBufferStatus : NS::UInteger {
  CommandBufferStatusNotEnqueued = 0,
  CommandBufferStatusEnqueued = 1,
  CommandBufferStatusCommitted = 2,
  CommandBufferStatusScheduled = 3,
  CommandBufferStatusCompleted = 4,
  CommandBufferStatusError = 5,
};

enum DispatchType : NS::UInteger { DispatchTypeSerial = 0, DispatchTypeConcurrent = 1 };
enum BarrierScope : NS::UInteger { BarrierScopeBuffers = 1 };
enum CaptureDestination : NS::Integer { CaptureDestinationDeveloperTools = 1, CaptureDestinationGPUTraceDocument = 2 };

}  // namespace vortex::metal::MTL
