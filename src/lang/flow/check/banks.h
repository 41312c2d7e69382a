// Bank conflicts of accesses of shared memory.
#pragma once

#include "lang/flow/check/access_map.h"

namespace vortex::lang::flow {

/// The worst bank conflict of an access over all warps, iterations and launches.
struct BankUse {
  unsigned degree = 1;  ///< words that one bank must deliver to one phase of a warp
  unsigned lanes[2] = {0, 0};
  int64_t bytes[2] = {0, 0};  ///< where these lanes access; from a common place if that is not known
  bool isExact = true;        ///< it really happens, not only for values or lanes that may not exist
  std::string when;           ///< values for which it happens: "`stride` = 16"
};
struct BankAnswer {
  BankUse worst;
  std::optional<Undecided> open;  ///< set: not known
};
BankAnswer bankUse(AccessMap& map, const ElementAccess& access);

}  // namespace vortex::lang::flow
