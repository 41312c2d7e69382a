// Loops that count become scf.for, whose bounds say how the threads of a warp go through them and how their accesses move.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>
#include <optional>

namespace vortex::msl::lift {

/// `do { … } while ((i += step) < end)`, as rotation leaves them, becomes scf.for over indices. Extensions of positions and counters, which are
/// 32 bits of an index that fits them, become the index. `block`: threads of a threadgroup, where they are known.
void countLoops(mlir::ModuleOp module, const std::optional<std::array<int64_t, 3>>& block);

}  // namespace vortex::msl::lift
