// Which values of a thread region are equal in all lanes of a warp, or differ by a constant from lane to lane.
//
// The emitter finds more precise forms by itself where values flow forward; this analysis decides the form of values that merge:
// loop-carried values and results of branches.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>

namespace vortex::target::cpu::emit {

struct Form {
  enum class Kind : uint8_t { Unknown, Uniform, Affine, Varying };
  Kind kind = Kind::Unknown;
  int64_t stride = 0;  ///< Affine
  bool operator==(const Form&) const = default;
  bool isUniform() const { return kind == Kind::Uniform; }
};
inline constexpr Form kUniform{Form::Kind::Uniform, 0};
inline constexpr Form kVarying{Form::Kind::Varying, 0};

/// How the warps of a region run over its threads.
struct RegionShape {
  unsigned width = 32;     ///< lanes of a warp; 1: one thread after another
  bool rows = false;       ///< a loop over z and y around warps along x; else warps along the linear id
  Form id[3];              ///< x, y, z within a warp
  bool insideRow = false;  ///< the lanes of a warp are neighbours of one row
  bool fullWarps = false;  ///< no warp has missing lanes
  bool isFixed = false;    ///< warp operations need this width
};

class RegionAnalysis {
public:
  RegionAnalysis(ir::ThreadsOp region, const RegionShape& shape);

  /// Values from outside the region are uniform.
  Form form(mlir::Value value) const;
  /// Control of this scf op differs between lanes.
  bool diverges(mlir::Operation* op) const { return divergent_.contains(op); }

private:
  void visit(mlir::Block& block);
  void visit(mlir::Operation* op);
  void visitIf(mlir::scf::IfOp op);
  void visitFor(mlir::scf::ForOp op);
  void visitWhile(mlir::scf::WhileOp op);
  Form transfer(mlir::Operation* op) const;
  Form access(mlir::Value view, mlir::ValueRange indices, mlir::Value mask) const;
  void raise(mlir::Value value, Form form);
  bool allUniform(mlir::ValueRange values) const;
  void noteDivergent(mlir::Operation* op);

  mlir::Region& body_;
  bool fullWarps_;
  unsigned width_;
  llvm::DenseMap<mlir::Value, Form> forms_;
  llvm::DenseSet<mlir::Operation*> divergent_;
  bool changed_ = false;
};

}  // namespace vortex::target::cpu::emit
