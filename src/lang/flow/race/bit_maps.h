// Subscripts that are made of bits: `i ^ (i >> 1)`, `(y & 1) << 1 | (x & 1)`.
#pragma once

#include <map>
#include <span>

#include "lang/flow/value/node.h"

namespace vortex::lang::flow {

/// Unsigned values and numbers that they are below.
using BitBounds = std::map<ValueId, __int128>;

/// Values of both sides that are equal where those of all these pairs are, because each bit of them is a sum modulo 2 of bits of the same unknown
/// numbers, in the same way on both sides, and no two choices of these bits give the same numbers. Empty: nothing follows.
std::vector<std::pair<ValueId, ValueId>>
equalByBits(NodeTable& nodes, std::span<const std::pair<ValueId, ValueId>> equal, const BitBounds& below);

}  // namespace vortex::lang::flow
