// How blocks that scan pieces of one vector tell each other what comes before them: words of 64 bits in global memory, zero before the phase.
//
// A value takes a word per 32 bits: its bits in the lower half, 1 in the upper half, written in one access. Who reads the 1 has the bits, so that
// no other memory needs an order. Values are combined in one order, whoever is fast: of 32 pieces in a row the last one leaves what they combine
// to, of 32 such groups the last piece leaves what all pieces so far combine to. Piece n combines, in this order, the value left before its 1024
// pieces, those of the groups before its own among them, and those of the pieces before it in its group. So a chain of waits has a step per 1024
// pieces, and a piece reads 65 values at most.
#pragma once

#include <cstdint>

namespace vortex::ir {

/// Pieces of a group, and groups until the next value of all.
inline constexpr int64_t kLookBackGroup = 32;
/// Words before the first value: pieces take their numbers from the first.
inline constexpr int64_t kLookBackHead = 16;

}  // namespace vortex::ir
