#include "ir/size_attr.h"

#include "size/text.h"

#include "mlir/IR/DialectImplementation.h"

namespace vortex::ir {

size::Arena& sizeArena(mlir::MLIRContext* context) { return context->getLoadedDialect<VxDialect>()->sizes(); }

SizeAttr sizeConstant(mlir::MLIRContext* context, int64_t value) {
  return SizeAttr::get(context, sizeArena(context).constant(value));
}
SizeAttr sizeDim(mlir::MLIRContext* context, unsigned argument, unsigned dim) {
  return SizeAttr::get(context, sizeArena(context).dim(argument, dim));
}
SizeAttr sizeScalar(mlir::MLIRContext* context, unsigned argument) {
  return SizeAttr::get(context, sizeArena(context).scalar(argument));
}
SizeAttr sizeClusters(mlir::MLIRContext* context, unsigned blocks) {
  return SizeAttr::get(context, sizeArena(context).clusters(blocks));
}
SizeAttr sizeBinary(size::Op op, SizeAttr lhs, SizeAttr rhs) {
  return SizeAttr::get(lhs.getContext(), size::make(op, lhs.getExpr(), rhs.getExpr()));
}
SizeAttr sizeUnary(size::Op op, SizeAttr operand) {
  return SizeAttr::get(operand.getContext(), size::make(op, operand.getExpr()));
}
std::optional<int64_t> constantSize(SizeAttr size) { return size.getExpr().constant(); }

void SizeAttr::print(mlir::AsmPrinter& printer) const { printer << "<\"" << size::print(getExpr()) << "\">"; }

/// The text is quoted because MLIR wants every `<` of an attribute's body closed.
mlir::Attribute SizeAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  std::string text;
  if (parser.parseLess())
    return {};
  llvm::SMLoc place = parser.getCurrentLocation();
  if (parser.parseString(&text) || parser.parseGreater())
    return {};
  auto expr = size::parse(sizeArena(parser.getContext()), text);
  if (!expr) {
    parser.emitError(place, expr.error().message);
    return {};
  }
  return SizeAttr::get(parser.getContext(), *expr);
}

llvm::SmallVector<uint32_t> argumentSlots(mlir::TypeRange argumentTypes) {
  llvm::SmallVector<uint32_t> slots{0};
  for (mlir::Type type : argumentTypes) {
    auto view = llvm::dyn_cast<ViewType>(type);
    slots.push_back(slots.back() + (view ? 1 + 2 * uint32_t(view.getRank()) : 1));
  }
  return slots;
}

uint32_t slotOf(const size::Node& argument, mlir::TypeRange argumentTypes) {
  uint32_t first = argumentSlots(argumentTypes.take_front(argument.argument)).back();
  if (argument.op == size::Op::Address || argument.op == size::Op::Scalar)
    return first;
  auto view = llvm::cast<ViewType>(argumentTypes[argument.argument]);
  return first + 1 + argument.dim + (argument.op == size::Op::Stride ? uint32_t(view.getRank()) : 0);
}

size::Expr argumentOfSlot(mlir::MLIRContext* context, mlir::TypeRange argumentTypes, uint32_t slot) {
  size::Arena& arena = sizeArena(context);
  llvm::SmallVector<uint32_t> slots = argumentSlots(argumentTypes);
  VORTEX_CHECK(slot < slots.back());
  auto argument = uint32_t(llvm::upper_bound(slots, slot) - slots.begin()) - 1;
  auto view = llvm::dyn_cast<ViewType>(argumentTypes[argument]);
  uint32_t inner = slot - slots[argument];
  if (inner == 0)
    return view ? arena.address(argument) : arena.scalar(argument);
  auto rank = uint32_t(view.getRank());
  return inner <= rank ? arena.dim(argument, inner - 1) : arena.stride(argument, inner - 1 - rank);
}

mlir::LogicalResult verifySize(SizeAttr size, mlir::TypeRange argumentTypes,
                               llvm::function_ref<mlir::InFlightDiagnostic()> emitError) {
  auto error = [&] { return emitError() << "size expression \"" << size::print(size.getExpr()) << "\""; };
  // Folds to whether everything below is right; the first error is reported.
  return mlir::success(size::fold<bool>(size.getExpr(), [&](const size::Node& node, const std::array<bool, 3>& good) {
    for (uint32_t i = 0; i < size::arity(node.op); ++i)
      if (!good[i])
        return false;
    if (!size::isArgument(node.op))
      return true;
    if (node.argument >= argumentTypes.size()) {
      error() << " names argument " << node.argument << " of " << argumentTypes.size();
      return false;
    }
    auto view = llvm::dyn_cast<ViewType>(argumentTypes[node.argument]);
    if ((node.op != size::Op::Scalar) != bool(view)) {
      error() << ": argument " << node.argument << " is " << (view ? "a view, not a scalar" : "a scalar, not a view");
      return false;
    }
    if (view && node.dim >= view.getRank() && node.op != size::Op::Address) {
      error() << " names dimension " << node.dim << " of argument " << node.argument << " of rank " << view.getRank();
      return false;
    }
    return true;
  }));
}

}  // namespace vortex::ir
