// Captures: with MTL_CAPTURE_ENABLED=1 a file in the Chrome trace format with an event per dispatch.
#pragma once

#include "vortex/metal/commands.h"

namespace vortex::metal::MTL {

class CaptureDescriptor : public Opaque<CaptureDescriptor> {
public:
  using Opaque::Opaque;
  static CaptureDescriptor* alloc();
  CaptureDescriptor* init() { return this; }
  /// A Device or a CommandQueue: all its work.
  void setCaptureObject(NS::Object* object);
  void setDestination(CaptureDestination destination);
  /// Where the trace is written; ".json" is added to names that end otherwise.
  void setOutputURL(const NS::URL* url);
};

class CaptureManager : public Opaque<CaptureManager> {
public:
  using Opaque::Opaque;
  static CaptureManager* sharedCaptureManager();
  bool supportsDestination(CaptureDestination destination) const;
  /// Errors: MTL_CAPTURE_ENABLED is not 1; a capture is running; no object, file or supported destination; the file cannot be written.
  bool startCapture(const CaptureDescriptor* descriptor, NS::Error** error);
  /// Writes the file. Work that is not completed is not in it.
  void stopCapture();
  bool isCapturing() const;
};

}  // namespace vortex::metal::MTL
