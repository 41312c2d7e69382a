// Which entry points of a kernel launches of a kind reach: files may be built for some launches only.
#pragma once

#include "artifact/artifact.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace vortex::pipeline {

/// Launches that a file is built for; by default all.
struct Coverage {
  /// An extent of a tensor parameter, by its number among the arguments, that all of them have.
  struct Extent {
    uint32_t argument = 0, dim = 0;
    int64_t value = 0;
  };
  std::vector<Extent> extents;
  /// Tensors have elements, are row-major without gaps, begin at multiples of 16 bytes and have rows of multiples of 16 bytes.
  bool isUsual = false;

  bool isComplete() const { return extents.empty() && !isUsual; }
};

/// The entry points that such launches can come to, no matter what else they are given; some may be among them that none comes to. Says in
/// `kernel.coverage` what they have in common.
std::set<std::string> coverEntries(artifact::Kernel& kernel, const Coverage& wanted);

}  // namespace vortex::pipeline
