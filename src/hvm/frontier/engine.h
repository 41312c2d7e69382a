// Runs the passes of the frontier engine on a device.
#pragma once

#include "hvm/frontier/net.h"

#include <functional>
#include <string_view>

namespace vortex::hvm::frontier {

struct EngineOptions {
  std::string device = "cpu";
  Sharding sharding = {};
  uint64_t memoryBytes = 0;
  uint64_t fuel = ~uint64_t(0);
  bool atomics = false;    // dup cells have no owner; passes are not deterministic then, results and counts are
  bool oneLaunch = false;  // a pass is one launch instead of two
  uint64_t seed = 0;       // the order in which blocks begin
  std::function<void(const std::string&)> trace = {};  // a line of --trace
  const Program* names = nullptr;                      // for the trace
};

struct NormalForm {
  std::vector<Term> heap;  // the normal form in cell 0, as the evaluator's printer takes it
  uint64_t interactions = 0;
  uint64_t words = 0;
  bool isComplete = true;  // false: terms wait for each other in a circle, or for a variable that has left its lambda
};

/// Runs passes until nothing is left to reduce. Errors: no such device; out of memory or fuel; a RUNTIME_ERROR of the program.
Result<NormalForm> normalize(const Net& net, const EngineOptions& options);

}  // namespace vortex::hvm::frontier
