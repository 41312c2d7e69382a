// Which lanes of a warp take part in something.
#pragma once

#include "lang/flow/value/lanes.h"

namespace vortex::lang::flow {

struct ActiveLanes {
  std::array<bool, kLanes> isActive;
  /// Of some that are taken to be active nobody knows: conditions other than bounds, which hold for whole warps but the last ones, and than those
  /// that all lanes are on one side of.
  bool isUnknown = false;
};
/// Under conditions all of which hold; kNoValue: one that nothing is known of.
ActiveLanes activeLanes(LaneValues& lanes, const std::vector<ValueId>& conditions);

}  // namespace vortex::lang::flow
