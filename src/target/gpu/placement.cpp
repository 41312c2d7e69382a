#include "target/gpu/placement.h"

#include "ir/size_attr.h"
#include "passes/phase_marks.h"
#include "target/interface/describe.h"

namespace vortex::target::gpu {

bool hasAlignedRows(ir::KernelOp phase, unsigned argument) {
  auto entry = *phase->getParentOfType<mlir::ModuleOp>().getOps<ir::EntryOp>().begin();
  auto facts = mlir::cast<mlir::DictionaryAttr>(entry.getArgs()[argument]);
  auto view = mlir::dyn_cast<ir::ViewType>(phase.getArgumentTypes()[argument]);
  if (facts.getAs<ir::RoleAttr>("role").getValue() != ir::Role::Temp || !view || view.getRank() < 2)
    return false;
  auto row = mlir::cast<ir::SizeAttr>(facts.getAs<mlir::ArrayAttr>("extents").getValue().back());
  return (view.elementBytes() << std::min(row.getExpr().node().zeros, 4u)) % 16 == 0;
}

TensorRows rowsOf(ir::KernelOp phase, unsigned argument) {
  const auto rank = static_cast<unsigned>(mlir::cast<ir::ViewType>(phase.getArgumentTypes()[argument]).getRank());
  TensorRows rows;
  rows.hasOne.assign(rank, true);
  for (mlir::Operation* user : phase.getBody().getArgument(argument).getUsers()) {
    auto window = mlir::dyn_cast<ir::SubviewOp>(user);
    const bool leavesOut = window && window->hasAttr(passes::kUnitWindow);
    for (unsigned dim = 0; dim < rank && !mlir::isa<ir::DimOp>(user); ++dim)
      rows.hasOne[dim] &= leavesOut && llvm::is_contained(window.getDropped(), int64_t(dim));
  }
  const auto last = llvm::find(llvm::reverse(rows.hasOne), false);
  rows.dim = last == rows.hasOne.rend() ? rank - 1 : static_cast<unsigned>(rows.hasOne.rend() - last) - 1;
  return rows;
}

static size::Expr isMultipleOf16(size::Expr value) {
  return size::make(size::Op::Equal, size::make(size::Op::Mod, value, 16), 0);
}

size::Expr conditionFor(ir::KernelOp phase, const artifact::Kernel& kernel, const Assumptions& assumptions) {
  size::Arena& arena = ir::sizeArena(phase.getContext());
  size::Expr all;
  auto require = [&](size::Expr condition) { all = all ? size::make(size::Op::And, all, condition) : condition; };
  for (auto [i, type] : llvm::enumerate(phase.getArgumentTypes())) {
    auto number = static_cast<unsigned>(i);
    auto view = mlir::dyn_cast<ir::ViewType>(type);
    bool isRead = llvm::any_of(phase.getBody().getArgument(number).getUsers(),
                               [](mlir::Operation* user) { return !mlir::isa<ir::DimOp>(user); });
    if (!view || view.getRank() == 0 || !isRead || hasAlignedRows(phase, number))
      continue;
    const TensorRows rows = rowsOf(phase, number);
    int64_t pitch = innermostStride(kernel, number);
    const bool isAligned = assumptions.alignsRows(number);
    if (i < kernel.params.size() && (assumptions.unitStrides || isAligned))  // the launch allocates the others
      require(size::make(size::Op::Equal, arena.stride(number, rows.dim), pitch));
    if (!isAligned || pitch != 1)
      continue;
    require(isMultipleOf16(arena.address(number)));
    for (unsigned dim = 0; dim < rows.dim; ++dim)
      if (!rows.hasOne[dim])
        require(isMultipleOf16(size::make(size::Op::Mul, arena.stride(number, dim), view.elementBytes())));
    if (assumptions.wholeRows.contains(number))
      require(isMultipleOf16(size::make(size::Op::Mul, arena.dim(number, rows.dim), view.elementBytes())));
  }
  return all;
}

}  // namespace vortex::target::gpu
