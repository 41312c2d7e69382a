// Combining elements. Floats narrower than f32 are combined in f32 and rounded once at the end.
#pragma once

#include "ir/vx.h"
#include "target/cpu/emit/emitter.h"

namespace vortex::target::cpu::tiles {

class Reduction {
public:
  Reduction(emit::Emitter& e, ir::Combine kind, mlir::Type elementType) : e_(e), kind_(kind), type_(elementType) {}

  /// Accumulator of `lanes` neutral elements.
  llvm::Value* neutral(unsigned lanes);
  /// Element values → what accumulates, and back.
  llvm::Value* widen(llvm::Value* value);
  llvm::Value* narrow(llvm::Value* accumulated);
  llvm::Value* combine(llvm::Value* a, llvm::Value* b);
  /// combine(a, b) in the lanes of `mask` (null: all), `a` elsewhere.
  llvm::Value* combineMasked(llvm::Value* a, llvm::Value* b, llvm::Value* mask);
  /// All accumulators and all their lanes as one element, in value form. Fixed order: neighbouring accumulators pairwise, then halves of
  /// the lanes.
  llvm::Value* finish(llvm::ArrayRef<llvm::Value*> accumulators);
  /// Prefix combinations of the lanes, inclusive.
  llvm::Value* prefix(llvm::Value* lanes);

private:
  emit::Emitter& e_;
  ir::Combine kind_;
  mlir::Type type_;
};

}  // namespace vortex::target::cpu::tiles
