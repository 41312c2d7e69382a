// What kernels report while they run.
#pragma once

#include <cstdint>
#include <string>

namespace vortex {

/// A failure that kernel code raised while it ran, with its place in the kernel's source (line 0: unknown).
struct Fault {
  std::string kernel;
  std::string id;  ///< "E0701"
  std::string message;
  std::string file;
  uint32_t line = 0, column = 0;
};

}  // namespace vortex
