// Builds without the compiler have no kernels.
#include "hvm/slices/kernels.h"

namespace vortex::hvm::slices {

Result<Kernels> loadKernels(const Device&) { return Error{"the kernels of slices need a build with the compiler"}; }

}  // namespace vortex::hvm::slices
