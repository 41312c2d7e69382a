// Structured control flow for IRBuilder code, under the names this folder uses.
#pragma once

#include "target/interface/loops.h"

namespace vortex::target::cpu::emit {

using target::emitFor;
using target::emitIf;
using target::emitWhile;
using target::entryAlloca;
using target::Values;

}  // namespace vortex::target::cpu::emit
