#pragma once

#include "hvm/eval/machine.h"

namespace vortex::hvm {

enum class NativeStep : uint8_t { Value, Reduce, Failed };

/// The value `term` arrived for the native function whose frame is on top of the machine's stack.
NativeStep nativeStep(Machine& machine, Term& term);

}  // namespace vortex::hvm
