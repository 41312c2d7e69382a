// What accesses of global memory use of the 32-byte sectors they move.
#pragma once

#include "lang/flow/check/access_map.h"

namespace vortex::lang::flow {

/// Of accesses that run one after another, at best over all cases and alignments.
struct SectorUse {
  unsigned usedBytes = 0, sectors = 0;
  std::string stride;        ///< between neighbouring lanes, in elements: "32", "`N`"; empty: irregular
  uint32_t structBytes = 0;  ///< of the elements, if they are structs that are stored whole
  bool isPoor() const { return sectors > 2 * ((usedBytes + 31) / 32); }
};
/// Of the first access together with those of the others that are a constant distance of less than a sector away. Nothing when it is not known.
/// The accesses are of one storage, under the same conditions and loops.
std::optional<SectorUse> sectorUse(AccessMap& map, const std::vector<const ElementAccess*>& accesses);

}  // namespace vortex::lang::flow
