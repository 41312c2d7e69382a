// Which types own what they hold, as ownership asks.
#pragma once

#include <string>

#include "lang/sema/types.h"

namespace vortex::lang::flow {

/// Values of the type are duplicated by using them.
bool isCopy(Type type);
/// "T: Area + Copy", what would let values of a generic parameter be copied; empty for other types.
std::string copyBound(Type type);
/// Values of the type may hold borrows.
bool mayHoldBorrows(Type type);

}  // namespace vortex::lang::flow
