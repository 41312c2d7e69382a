// Subscripts that are made of bits: `i ^ (i >> 1)`, `(y & 1) << 1 | (x & 1)`.
#pragma once

#include "lang/flow/value/node.h"

namespace vortex::lang::flow {

/// Values of both sides that are equal where these two are, because each bit of them is a sum modulo 2 of bits of the same unknown numbers, in the
/// same way on both sides, and no two choices of these bits give one number. Empty: nothing follows.
std::vector<std::pair<ValueId, ValueId>> equalByBits(NodeTable& nodes, ValueId first, ValueId second);

}  // namespace vortex::lang::flow
