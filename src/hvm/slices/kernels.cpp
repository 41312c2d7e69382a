#include "hvm/slices/kernels.h"

#include "hvm/slices/collect.collect.hpp"
#include "hvm/slices/reduce.reduce.hpp"
#include "hvm/slices/spread.spread.hpp"
#include "hvm/slices/tidy.tidy.hpp"

namespace vortex::hvm::slices {

Result<Kernels> loadKernels(const Device& device) {
  auto reduce = kernels::reduce::load(device);
  if (!reduce)
    return reduce.takeError();
  auto spread = kernels::spread::load(device);
  if (!spread)
    return spread.takeError();
  auto tidy = kernels::tidy::load(device);
  if (!tidy)
    return tidy.takeError();
  auto collect = kernels::collect::load(device);
  if (!collect)
    return collect.takeError();
  return Kernels{reduce->kernel(), spread->kernel(), tidy->kernel(), collect->kernel()};
}

}  // namespace vortex::hvm::slices
