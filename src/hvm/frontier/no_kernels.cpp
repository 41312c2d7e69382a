// Builds without the compiler have no kernels.
#include "hvm/frontier/kernels.h"

namespace vortex::hvm::frontier {

static Error absent() { return Error{"the kernels of the frontier engine need a build with the compiler"}; }
Result<Kernel> loadPass(const Device&) { return absent(); }
Result<Kernel> loadStepAtomics(const Device&) { return absent(); }

}  // namespace vortex::hvm::frontier
