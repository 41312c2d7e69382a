// Per-thread code → PTX, entry points side by side: each is an LLVM module of its own, optimised and printed by a thread of its own.
#pragma once

#include "base/result.h"
#include "ir/vxt.h"
#include "target/nvidia/codegen.h"

#include <string>

namespace vortex::target::nvidia {

/// Asked-for texts of all entry points; null: not wanted.
struct UnitTexts {
  std::string* llvm = nullptr;
  std::string* optimizedLlvm = nullptr;
};

/// Milliseconds: of the caller for `emit`; else of processor time for the entry point that took longest.
struct UnitTimes {
  double emit = 0, optimize = 0, codegen = 0;
};

/// One PTX text with these entry points, each the same whatever others there are. Error: an operation that this back end cannot emit, with its
/// location.
Result<std::string> generatePtx(llvm::ArrayRef<ir::vxt::KernelOp> entries, uint32_t slotCount, const Target& target,
                                const UnitTexts& texts, UnitTimes& times);

}  // namespace vortex::target::nvidia
