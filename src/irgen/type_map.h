// Types of the typed program as IR types.
#pragma once

#include "ir/vx.h"
#include "lang/sema/program.h"
#include "layout/swizzle.h"

#include <map>
#include <optional>
#include <vector>

namespace vortex::irgen {

/// f16, bf16 and f8: tile expressions of these are evaluated in f32.
bool isNarrowFloat(lang::Scalar scalar);
/// The scalar a tile expression of element type `scalar` is evaluated in.
lang::Scalar wideScalar(lang::Scalar scalar);
/// The scalar behind a scalar or enum type; for tensors, of the element.
lang::Scalar scalarOf(lang::Type type);
/// A tensor in memory: named by a parameter, a declaration with a space, or a slice of one.
bool isMemoryTensor(lang::Type type);
/// A tensor value of whole-tensor or tile code.
bool isTileType(lang::Type type);
/// `[Tensor<…> @shared; 2]`; tensors in global memory are taken one by one.
bool isMemoryArray(lang::Type type);

class TypeMap {
public:
  TypeMap(mlir::MLIRContext* context, const std::vector<std::optional<int64_t>>& fixedDims);

  mlir::MLIRContext* context() const { return context_; }
  mlir::Type scalar(lang::Scalar scalar) const;
  /// Element type as stored.
  mlir::RankedTensorType tile(lang::Type type) const { return tile(type, scalar(scalarOf(type))); }
  mlir::RankedTensorType tile(lang::Type type, mlir::Type element) const;
  ir::ViewType view(lang::Type type) const { return view(type, scalar(scalarOf(type))); }
  ir::ViewType view(lang::Type type, mlir::Type element) const;
  /// An array of tensors in memory is one view (per plane) with the array's index as first dimension.
  ir::ViewType arrayView(lang::Type array, mlir::Type element) const;
  /// The planes of a tensor: the scalars of an element, in the order of lang::elementLayout. One for tensors of scalars.
  llvm::SmallVector<lang::Scalar, 1> planes(lang::Type tensor) const;
  /// A value that differs between the threads of a block, outside vx.threads.
  mlir::RankedTensorType perThread(mlir::Type scalar) const;

  /// The SSA values a value of `type` consists of: scalars one each, tensors one per plane, tuples, structs and arrays those of their
  /// elements, references to tensors their views, ranges begin, end and step, everything else none.
  void flatten(lang::Type type, llvm::SmallVectorImpl<mlir::Type>& leaves) const;
  uint32_t leafCount(lang::Type type) const;
  /// The tensor to which leaf `leaf` of a value of `type` belongs.
  lang::Type tensorOf(lang::Type type, uint32_t leaf) const;
  /// Number of leaves before field `field` of a struct or tuple, or before that element of an array.
  uint32_t fieldOffset(lang::Type type, uint32_t field) const;

  /// With the specialised dimensions replaced by their values.
  lang::DimExpr fix(const lang::DimExpr& expr) const { return fixed_.empty() ? expr : expr.substitute(fixed_); }
  int64_t extent(const lang::DimExpr& expr) const;
  bool hasStaticShape(lang::Type type) const;

private:
  ir::SwizzleAttr swizzle(llvm::ArrayRef<int64_t> shape, unsigned elementBytes) const;

  mlir::MLIRContext* context_;
  mutable std::map<std::pair<std::vector<int64_t>, unsigned>, layout::XorSwizzle> swizzles_;
  std::vector<std::optional<lang::DimExpr>> fixed_;
};

}  // namespace vortex::irgen
