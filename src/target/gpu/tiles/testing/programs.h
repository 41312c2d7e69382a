// For tests: whole-tensor programs lowered for a GPU, run on the machine and compared with the reference interpreter, which runs them before they
// are scheduled.
#pragma once

#include "passes/testing/random_program.h"
#include "target/gpu/tiles/testing/lower.h"

#include <initializer_list>
#include <random>

namespace vortex::target::gpu::tiles::testing {

struct Sizes {
  int64_t m, n, p, b;
};

/// How a launch's tensors lie and what is in them.
struct Layout {
  int64_t shift = 0;       ///< elements before the first one
  int64_t pad = 0;         ///< elements between rows
  bool isSpecial = false;  ///< rows with infinities and NaN among the others
};

/// Largest difference that is none.
struct Tolerance {
  double absolute = 2e-4, relative = 2e-4;
};

/// Both versions of a program, for launches of any sizes.
class Compiled {
public:
  explicit Compiled(const passes::testing::RandomProgram& program);

  const std::string& text() const { return text_; }
  std::string scheduled();
  std::string error() const { return general_.error + fast_.error + longRows_.error + fastLongRows_.error; }
  /// Runs it on random tensors, twice, over results and temporaries full of garbage.
  void check(Sizes sizes, std::mt19937& random, Layout layout = {}, Tolerance tolerance = {});

private:
  passes::testing::RandomProgram program_;
  std::string text_;
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  Lowered general_, fast_, longRows_, fastLongRows_;
};

/// x [m, n] of `element` → o.
passes::testing::RandomProgram rowProgram(const std::vector<std::string>& result, const std::string& body,
                                          const std::string& element = "f32", const std::string& to = "f32");
void runSizes(const passes::testing::RandomProgram& program, std::initializer_list<Sizes> all, Layout layout = {},
              Tolerance tolerance = {});

}  // namespace vortex::target::gpu::tiles::testing
