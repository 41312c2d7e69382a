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
  /// What a loop carries, neutral: `count` (a power of two) accumulators of `lanes` elements, and for maxima and minima of floats in vectors one more, which
  /// notes where a NaN was met. That takes half the instructions of handing the NaN on from step to step.
  emit::Values start(unsigned lanes, unsigned count);
  /// Combines the pieces of `value`, `lanes` elements each: neighbours first while there are more of them than accumulators, then piece i into
  /// accumulator i. Only a value of one piece may have a mask.
  void accumulate(llvm::MutableArrayRef<llvm::Value*> accumulators, llvm::Value* value, unsigned lanes,
                  llvm::Value* mask);
  /// Everything carried and all lanes as one element, in value form. Fixed order: neighbouring accumulators pairwise, then halves of
  /// the lanes.
  llvm::Value* finish(llvm::ArrayRef<llvm::Value*> accumulators);
  /// `result` of a reduction over `extents`, except that an empty sum of floats is 0.0: neutral is -0.0.
  llvm::Value* orEmpty(llvm::Value* result, llvm::ArrayRef<llvm::Value*> extents);
  /// Prefix combinations of the lanes, inclusive.
  llvm::Value* prefix(llvm::Value* lanes);

private:
  bool notesNan(unsigned lanes) const {
    return lanes > 1 && (kind_ == ir::Combine::MaxF || kind_ == ir::Combine::MinF);
  }
  /// Of MaxF and MinF: `b` where it is beyond `a`, `a` where one is NaN.
  llvm::Value* beyond(llvm::Value* a, llvm::Value* b);

  emit::Emitter& e_;
  ir::Combine kind_;
  mlir::Type type_;
};

}  // namespace vortex::target::cpu::tiles
