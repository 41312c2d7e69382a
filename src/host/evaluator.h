// Executes the host part of a typed program: a tree walk over `fn main()` and what it calls; kernels go to a Backend.
// Chosen over compiling host code: it is a few hundred lines, every access is checked, and the work is in the kernels.
#pragma once

#include "diag/diagnostic.h"
#include "host/backend.h"
#include "lang/sema/program.h"

#include <functional>
#include <string>
#include <vector>

namespace vortex::host {

struct Options {
  std::vector<std::string> arguments;              ///< what `args()` returns
  std::function<void(std::string_view)> output;    ///< receives the text of `print`
  const source::SourceManager* sources = nullptr;  ///< to show where in a kernel a launch failed
  uint32_t maxCallDepth = 2000;
  bool reportsOverflow = false;  ///< E0605 where `+ - *` of integers wraps
};

/// Runs one host function without parameters (main, or a @test). Errors are reported to `sink` (E07xx) at the expression that failed.
/// Returns the exit status: 0, 1 after an error, or the argument of `exit`.
int run(const lang::Function& function, Backend& backend, diag::DiagnosticSink& sink, const Options& options);

}  // namespace vortex::host
