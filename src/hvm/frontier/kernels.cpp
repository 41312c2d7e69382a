#include "hvm/frontier/kernels.h"

#include "hvm/frontier/atomics.step_atomics.hpp"
#include "hvm/frontier/frontier.pass.hpp"

namespace vortex::hvm::frontier {

template <typename Launcher> static Result<Kernel> load(const Device& device) {
  Result<Launcher> launcher = Launcher::load(device);
  if (!launcher)
    return launcher.takeError();
  return launcher->kernel();
}

Result<Kernel> loadPass(const Device& device) { return load<kernels::pass>(device); }
Result<Kernel> loadStepAtomics(const Device& device) { return load<kernels::step_atomics>(device); }

}  // namespace vortex::hvm::frontier
