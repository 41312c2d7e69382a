// The launch interface of a kernel: its arguments, their order, and the sizes expressed over them.
#pragma once

#include "ir/size_attr.h"
#include "irgen/irgen.h"
#include "irgen/type_map.h"
#include "lang/sema/kernel/roots.h"

#include <string>

namespace vortex::irgen {

/// Source positions as IR locations.
class Locations {
public:
  Locations(mlir::MLIRContext* context, const source::SourceManager& sources) : context_(context), sources_(sources) {}
  mlir::Location operator()(source::SourceRange range) const;
  std::string_view text(source::SourceRange range) const { return sources_.text(range); }

private:
  mlir::MLIRContext* context_;
  const source::SourceManager& sources_;
};

struct EntryArgument {
  std::string name;
  ir::Role role = ir::Role::Param;
  mlir::Type type;
  llvm::SmallVector<ir::SizeAttr> extents;  ///< results and temporaries
  bool zero = false;
  source::SourceRange range;
  std::string elementType = {};               ///< "u8": MLIR's integers have no sign; empty for temporaries
  uint32_t structBytes = 0, fieldOffset = 0;  ///< artifact::Param
  lang::Type enumeration = nullptr;           ///< whose values are the only ones it has
};

/// Arguments of the entry: the leaves of the parameters, then of the results, then temporaries.
class Entry {
public:
  Entry(const lang::Function& kernel, const TypeMap& types, const lang::Roots& roots);

  const lang::Function& kernel() const { return kernel_; }
  const TypeMap& types() const { return types_; }
  llvm::ArrayRef<EntryArgument> arguments() const { return arguments_; }
  EntryArgument& argument(uint32_t index) { return arguments_[index]; }
  llvm::SmallVector<mlir::Type> argumentTypes() const;
  uint32_t firstOfParam(uint32_t param) const { return firstOfParam_[param]; }
  /// First argument of result `result`: a tensor of structs has one per plane.
  uint32_t resultArgument(size_t result) const { return firstOfResult_[result]; }
  /// The result types; a scalar result is a one-element view.
  llvm::ArrayRef<lang::Type> results() const { return results_; }
  llvm::ArrayRef<int64_t> scalarResults() const { return scalarResults_; }
  uint32_t addTemporary(std::string name, mlir::Type type, llvm::SmallVector<ir::SizeAttr> extents);
  /// Of a tensor of the body: one per plane, the first of which is returned. None where a launch cannot evaluate an extent.
  std::optional<uint32_t> addTemporary(const lang::Variable& tensor);

  /// Argument of the tensor or scalar at `fieldPath` in parameter `param`.
  uint32_t argumentOf(uint32_t param, llvm::ArrayRef<uint32_t> fieldPath) const;
  bool isBound(lang::DimVarId dim) const;

  /// Over the entry's arguments. Null for a dimension that only the body binds, or an expression that no launch can evaluate.
  ir::SizeAttr size(const lang::DimExpr& expr) const;
  ir::SizeAttr size(const lang::Expr& expr) const;
  llvm::SmallVector<ir::SizeAttr> sizes(llvm::ArrayRef<lang::DimExpr> shape) const;
  /// Null for one that the body binds.
  ir::SizeAttr variable(lang::DimVarId dim) const;
  ir::SizeAttr constant(int64_t value) const { return ir::sizeConstant(types_.context(), value); }
  ir::SizeAttr launchGrid(unsigned axis) const {
    return ir::SizeAttr::get(types_.context(), ir::sizeArena(types_.context()).launchGrid(axis));
  }

private:
  void addLeaves(lang::Type type, std::string name, source::SourceRange range);
  void addPlanes(lang::Type tensor, const EntryArgument& common);
  void addResult(lang::Type type);
  ir::SizeAttr atom(const lang::DimAtom& atom) const;
  /// The parameter whose value an opaque term is; null if it is another variable's.
  ir::SizeAttr named(uint32_t opaque) const;

  const lang::Function& kernel_;
  const TypeMap& types_;
  const lang::Roots& roots_;
  llvm::SmallVector<EntryArgument> arguments_;
  llvm::SmallVector<uint32_t> firstOfParam_;
  llvm::SmallVector<uint32_t> firstOfResult_;
  llvm::SmallVector<lang::Type> results_;
  llvm::SmallVector<int64_t> scalarResults_;
};

/// The tensors of structs among the kernel's parameters: the arguments of their planes.
struct Planes {
  uint32_t first = 0, count = 0, rank = 0;
};
llvm::SmallVector<Planes> planesOfParams(const Entry& entry);

struct LaunchShape;

/// Conditions the launch checks first.
mlir::ArrayAttr launchConstraints(const Entry& entry, const Options& options, const LaunchShape& shape);

/// The vx.entry; access modes are read off the module's kernels.
void createEntry(const Entry& entry, mlir::ModuleOp module, mlir::ArrayAttr constraints, const Locations& locations);

}  // namespace vortex::irgen
