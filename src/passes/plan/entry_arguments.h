// The arguments of an entry while its phases are planned: temporaries and lets come behind those that callers give.
#pragma once

#include "ir/vx.h"
#include "passes/plan/rules.h"
#include "size/bounds.h"

namespace vortex::passes {

/// A value that crosses phases: its global temporary, as an argument number of every kernel.
using Temporaries = llvm::DenseMap<mlir::Value, unsigned>;

/// Where an earlier phase has left the elements of a tile.
struct CopiedLoad {
  unsigned argument = 0;
  /// Dimension i of the copy is dimension permutation[i] of the tile, and the other way round. Empty: they have the same dimensions.
  llvm::SmallVector<int64_t, 4> permutation;
};

/// Partial results of narrow floats are kept in f32.
mlir::Type accumulatorType(mlir::Type type);

class EntryArguments {
public:
  explicit EntryArguments(ir::EntryOp entry);

  /// Returns their numbers. Lets come before all temporaries. What varies from round to round gets memory for the largest.
  unsigned addTemporary(llvm::ArrayRef<ir::SizeAttr> extents, mlir::Type element);
  /// The same for a tensor of `extents` in rows that have room for a multiple of `rowMultiple` elements.
  unsigned addAlignedTemporary(llvm::ArrayRef<ir::SizeAttr> extents, mlir::Type element, int64_t rowMultiple);
  bool variesFromRoundToRound(ir::SizeAttr extent) const { return mostOf(extent) != extent; }
  /// A copy of a parameter's tensor, with room for its elements. In launches that run nothing which writes it, it is that tensor.
  unsigned addCopy(unsigned original, llvm::ArrayRef<ir::SizeAttr> extents);
  /// `bounds`: of a let that varies from round to round, over lets and arguments before it. Temporaries of the program (tensors that it
  /// writes by element) make room: they are counted one higher.
  unsigned addLet(llvm::StringRef name, std::optional<size::Bounds> bounds = {});
  /// Of the next let.
  unsigned nextLet() const;
  /// The extent that was asked for, if memory has more; null: it has that.
  ir::SizeAttr extentInRound(unsigned temporary, unsigned dim) const;
  /// The program's own, or what a piece of the launch before this one has left.
  bool hasTemporaries() const;
  /// Writes them to the entry.
  void assign();

  mlir::MLIRContext* context() const { return context_; }
  llvm::ArrayRef<mlir::Type> types() const { return types_; }
  /// A tensor that callers give and the kernel does not write.
  bool isReadParam(unsigned argument) const;
  /// Of a tensor. That of a temporary follows from its extents: it is decided before there are any which steps run.
  Placement placementOf(unsigned argument) const;

private:
  ir::SizeAttr mostOf(ir::SizeAttr extent) const;
  unsigned addTemporary(llvm::ArrayRef<ir::SizeAttr> extents, mlir::Type element, llvm::ArrayRef<ir::SizeAttr> held);
  unsigned add(unsigned number, mlir::Type type, llvm::StringRef name, ir::Role role,
               llvm::ArrayRef<mlir::NamedAttribute> more);

  ir::EntryOp entry_;
  mlir::MLIRContext* context_;
  llvm::SmallVector<mlir::Attribute> args_;
  llvm::SmallVector<mlir::Type> types_;
  llvm::DenseMap<std::pair<unsigned, unsigned>, ir::SizeAttr> extentsInRounds_;  ///< by temporary and dimension
};

}  // namespace vortex::passes
