// Arrays that lie in the memory of the device that a kernel runs on, of ours and of PyTorch.
#pragma once

#include "python/arrays.h"

#include <optional>

namespace vortex::python {

/// What a launch takes of them: all of one library, whose stream it goes into.
class Residents {
public:
  explicit Residents(const Device& device);
  /// True: the device is one of NVIDIA's.
  explicit operator bool() const { return gpu_ >= 0; }

  /// Nothing: the object is no such array, or may not be written.
  std::optional<Tensor> take(nanobind::handle object, bool isWritten);
  /// An object of PyTorch among those taken; null: there is none.
  nanobind::handle torch() const { return torch_; }
  bool hasOurs() const { return ours_; }

  /// Nothing: arrays of several libraries, whose streams must be ordered. `own`: the stream of work on arrays of ours.
  std::optional<Stream> stream(const Stream& own) const;

private:
  const Device& device_;
  int gpu_ = -1;  ///< as ForeignArray has it
  bool ours_ = false;
  nanobind::handle torch_;
};

}  // namespace vortex::python
