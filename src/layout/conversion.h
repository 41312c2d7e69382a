// The cheapest way from one register layout to another.
#pragma once

#include "layout/swizzle.h"

namespace vortex::layout {

/// One 32-bit shuffle per word of a round: every lane offers one register, takes one from another lane and stores it.
struct ShuffleRounds {
  unsigned rounds = 0;          ///< values each lane receives
  unsigned packedElements = 1;  ///< neighbouring registers that travel together, both sides' register vectors `packed`
  Columns packed;               ///< flat coordinates
  Columns exchange;             ///< flat coordinates: one element per lane of both layouts; the rounds are its cosets
  Columns cosets;               ///< flat coordinates of the rounds' bits
};

struct Conversion {
  enum class Kind { None, Registers, Shuffles, Shared };
  Kind kind = Kind::None;
  ShuffleRounds shuffles;  ///< Kind::Shuffles
  SharedLayout shared;     ///< Kind::Shared: where elements lie in between
  unsigned cost = 0;       ///< issue slots per warp, by the table in conversion.cpp
};

/// Layouts of the same tensor, both surjective. Where `to` holds copies, every copy is written.
Conversion planConversion(const Layout& from, const Layout& to, unsigned elementBytes);

/// What lane `lane` does in round `round` of a shuffle: it offers register `offered`, and receives from lane `source` what it keeps in
/// register `kept`. Registers are those of the first element of the packed vector.
struct ShuffleStep {
  Bits offered, source, kept;
};
ShuffleStep shuffleStep(const Layout& from, const Layout& to, const ShuffleRounds& rounds, Bits round, Bits lane);

}  // namespace vortex::layout
