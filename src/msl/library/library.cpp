#include "msl/front/compile.h"
#include "msl/library/prelude.h"
#include "msl/lift/kernel.h"

#include <llvm/Support/thread.h>
#include <optional>

namespace vortex::msl {

/// Clang takes a few hundred bytes of the stack for each operator of an expression, and knows no limit of its own: of 8 MiB, 30,000 operators are
/// too many. Memory of a stack that is not reached is not taken.
static constexpr unsigned kStackBytes = 1u << 30;

static void read(const Request& request, Response& response) {
  std::unique_ptr<front::Unit> unit = front::compile(request, precompiledPrelude());
  bool isKnown = request.kernel.empty();
  for (const Kernel& kernel : unit->kernels)
    isKnown |= kernel.name == request.kernel;
  if (unit->problems.empty() && !isKnown) {
    std::string names;
    for (const Kernel& kernel : unit->kernels)
      names += (names.empty() ? "`" : ", `") + kernel.name + "`";
    unit->problems.push_back({"E0807",
                              "`" + request.file + "` has no kernel `" + request.kernel + "`" +
                                  (names.empty() ? "" : "; there are " + names),
                              {},
                              0,
                              0,
                              {}});
  }
  if (unit->problems.empty() && unit->entry) {
    Request named = request;
    if (named.kernel.empty())
      named.kernel = unit->kernels[0].name;
    lift::lowerEntry(*unit, named, response);
  }
  response.problems = std::move(unit->problems);
  response.kernels = std::move(unit->kernels);
  for (const front::FunctionConstant& constant : unit->constants)
    response.constants.push_back({constant.name, constant.index});
  response.files = unit->files->names();
}

}  // namespace vortex::msl

/// See msl/reader.h.
extern "C" __attribute__((visibility("default"))) void vortex_msl_read(const vortex::msl::Request& request,
                                                                       vortex::msl::Response& response) {
  llvm::thread(std::optional<unsigned>(vortex::msl::kStackBytes), [&] { vortex::msl::read(request, response); }).join();
}
