#include "msl/front/compile.h"
#include "msl/library/prelude.h"
#include "msl/lift/kernel.h"

/// See msl/reader.h.
extern "C" __attribute__((visibility("default"))) void vortex_msl_read(const vortex::msl::Request& request,
                                                                       vortex::msl::Response& response) {
  using namespace vortex::msl;
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
