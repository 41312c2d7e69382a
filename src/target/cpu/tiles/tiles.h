// Tiles on the CPU: expressions are evaluated where they are consumed, inside fused loop nests (group.h); dot, scan and what several nests
// need goes to memory. See place.h, evaluator.h, closure.h for the parts.
#pragma once

#include "target/cpu/emit/tile_emitter.h"

namespace vortex::target::cpu::tiles {

std::unique_ptr<emit::TileEmitter> makeTileEmitter(emit::Emitter& emitter);

}  // namespace vortex::target::cpu::tiles
