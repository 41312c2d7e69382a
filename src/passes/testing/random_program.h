// Random whole-tensor programs over f32 and i32 tiles, with shapes from a few symbolic extents.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace vortex::passes::testing {

struct RandomProgram {
  struct Tensor {
    std::string name;
    std::vector<std::string> shape;  ///< symbols
    bool isFloat = true;
    bool isResult = false;
    std::string element = {};  ///< of floats; empty: f32
  };
  std::vector<Tensor> tensors;  ///< the entry's arguments
  std::string body;
};

/// `size`: operations before the stores. Results are bounded, so that rounding differences stay small.
RandomProgram randomProgram(std::mt19937& random, unsigned size);

/// Extents of the symbols "m", "n", "p", "b" and what is derived from them ("m*n", "n/2").
int64_t extentOf(const std::string& symbol, int64_t m, int64_t n, int64_t p, int64_t b);

}  // namespace vortex::passes::testing
