// For tests: whole-tensor or block-level vx text → scheduled for a GPU → vxt.
#pragma once

#include "artifact/artifact.h"
#include "ir/vxt.h"
#include "passes/plan/rules.h"
#include "target/gpu/lowering.h"

#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/OwningOpRef.h>
#include <string>

namespace vortex::target::gpu::tiles::testing {

struct Lowered {
  mlir::OwningOpRef<mlir::ModuleOp> vx;   ///< as scheduled
  mlir::OwningOpRef<mlir::ModuleOp> vxt;  ///< one vxt.kernel per phase, in order
  std::string error;                      ///< empty: lowered and verified
};

/// Aborts when the text does not parse. Dialects are loaded into `context`.
/// `adjust` may change the schedule first. `makeTiles`: as ModuleState's, of another folder; null: that of tiles. `chip`: null: sm_90.
Lowered lower(mlir::MLIRContext& context, const std::string& text, Assumptions assumptions = {},
              llvm::function_ref<void(passes::TensorSchedule&)> adjust = nullptr,
              std::unique_ptr<TileLowering> (*makeTiles)(Lowering&) = nullptr, const chip::Gpu* chip = nullptr);

}  // namespace vortex::target::gpu::tiles::testing
