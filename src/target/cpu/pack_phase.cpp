#include "target/cpu/pack_phase.h"

#include "ir/root_view.h"
#include "passes/build/piece_cloner.h"
#include "target/cpu/prepare_dots.h"

#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::cpu {

using SizeOp = size::Op;
namespace arith = mlir::arith;

PackPhase::PackPhase(mlir::ModuleOp module, ir::KernelOp kernel, ir::DotOp dot, mlir::Type compute, llvm::Twine name)
    : builder(kernel), module_(module), source_(kernel), dot_(dot), compute_(compute) {
  mlir::OperationState state(dot.getLoc(), ir::KernelOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(name));
  state.addAttribute("function_type", kernel.getFunctionTypeAttr());
  auto* body = new mlir::Block();
  for (mlir::BlockArgument argument : kernel.getBody().getArguments())
    mapping_.map(argument, body->addArgument(argument.getType(), argument.getLoc()));
  state.addRegion()->push_back(body);
  phase_ = mlir::cast<ir::KernelOp>(builder.create(state));
  builder.setInsertionPointToEnd(body);
}

bool PackPhase::isWritten(mlir::Value view) {
  mlir::Value root = ir::rootView(view);
  bool written = false;
  source_.walk([&](mlir::Operation* op) {
    mlir::Value target;
    if (auto store = mlir::dyn_cast<ir::TileStoreOp>(op))
      target = store.getView();
    else if (auto store = mlir::dyn_cast<ir::StoreOp>(op))
      target = store.getView();
    else if (!mlir::isa<ir::TileLoadOp, ir::LoadOp>(op) && op->getNumRegions() == 0 && !mlir::isMemoryEffectFree(op))
      written = true;  // an effect we do not look into
    written |= target && ir::rootView(target) == root;
  });
  return written;
}

/// Cheap enough to be evaluated wherever it is packed, and the same in every block.
bool PackPhase::mayClone(mlir::Operation* op) {
  if (op->getNumRegions() != 0 ||
      mlir::isa<ir::BlockIdOp, ir::GridDimOp, ir::BlockDimOp, ir::ReduceOp, ir::ScanOp, ir::DotOp>(op))
    return false;
  if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op); reshape && reshape.getValue().getType().getRank() > 1)
    return false;  // it may need all of its source in memory
  if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op))
    return !isWritten(load.getView()) && !load->hasAttr(kPanelsAttribute);
  if (auto load = mlir::dyn_cast<ir::LoadOp>(op))
    return !isWritten(load.getView());
  return mlir::isMemoryEffectFree(op);
}

mlir::Value PackPhase::clone(mlir::Value value) {
  if (mlir::Value known = mapping_.lookupOrNull(value))
    return known;
  mlir::Operation* op = value.getDefiningOp();
  if (!op || !op->getParentRegion()->isAncestor(dot_->getParentRegion()) || !mayClone(op))
    return {};
  for (mlir::Value operand : op->getOperands())
    if (!clone(operand))
      return {};
  builder.clone(*op, mapping_);
  return mapping_.lookup(value);
}

unsigned PackPhase::store(ir::EntryOp entry, mlir::Value tile, llvm::ArrayRef<ir::SizeAttr> extents,
                          llvm::ArrayRef<mlir::NamedAttribute> layout) {
  mlir::MLIRContext* context = module_.getContext();
  mlir::Location loc = dot_.getLoc();
  llvm::SmallVector<mlir::Attribute> sizes(extents.begin(), extents.end());
  auto type = ir::ViewType::get(llvm::SmallVector<int64_t>(extents.size(), mlir::ShapedType::kDynamic), compute_);
  auto facts = builder.getDictionaryAttr(
      {builder.getNamedAttr("name", builder.getStringAttr("")),
       builder.getNamedAttr("role", ir::RoleAttr::get(context, ir::Role::Temp)),
       builder.getNamedAttr("access", ir::AccessModeAttr::get(context, ir::AccessMode::ReadWrite)),
       builder.getNamedAttr("extents", builder.getArrayAttr(sizes))});
  llvm::SmallVector<mlir::Type> types(source_.getArgumentTypes());
  types.push_back(type);
  auto function = mlir::FunctionType::get(context, types, {});
  for (ir::KernelOp phase : module_.getOps<ir::KernelOp>()) {
    phase.setFunctionType(function);
    phase.getBody().addArgument(type, phase.getLoc());
  }
  llvm::SmallVector<mlir::Attribute> args(entry.getArgs().begin(), entry.getArgs().end());
  args.push_back(facts);
  entry.setFunctionType(function);
  entry.setArgsAttr(builder.getArrayAttr(args));

  builder.setInsertionPointToEnd(&phase_.getBody().front());
  mlir::Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
  llvm::SmallVector<mlir::Value> offsets(extents.size(), zero);
  auto store = builder.create<ir::TileStoreOp>(loc, widened(builder, tile, compute_),
                                               phase_.getBody().getArguments().back(), offsets, false);
  store->setAttr(kPanelsAttribute, builder.getUnitAttr());
  for (mlir::NamedAttribute each : layout)
    store->setAttr(each.getName(), each.getValue());
  builder.create<ir::ReturnOp>(loc);
  return types.size() - 1;
}

void PackPhase::spread(ir::SizeAttr across, ir::SizeAttr batch, ir::SizeAttr depth) {
  mlir::MLIRContext* context = module_.getContext();
  auto size = [&](int64_t value) { return ir::sizeConstant(context, value); };
  // Few tiles or panels are too few for the workers.
  ir::SizeAttr each =
      ir::sizeBinary(SizeOp::CeilDiv, ir::sizeClusters(context), ir::sizeBinary(SizeOp::Mul, across, batch));
  ir::SizeAttr steps = ir::sizeBinary(SizeOp::FloorDiv, depth, size(kPackedSteps));
  ir::SizeAttr pieces = ir::sizeBinary(SizeOp::Max, size(1), ir::sizeBinary(SizeOp::Min, each, steps));
  phase_->setAttr("grid", builder.getArrayAttr({across, batch, pieces}));
  phase_->setAttr("block", builder.getArrayAttr({size(1), size(1), size(1)}));
}

mlir::Value widened(mlir::OpBuilder& builder, mlir::Value tile, mlir::Type compute) {
  auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
  if (type.getElementType() == compute)
    return tile;
  return builder.create<arith::ExtFOp>(tile.getLoc(), mlir::RankedTensorType::get(type.getShape(), compute), tile);
}

mlir::Value chooseOperand(mlir::OpBuilder& builder, ir::KernelOp kernel, ir::SizeAttr isDirect, mlir::Value direct,
                          mlir::Value packed) {
  if (ir::constantSize(isDirect))
    return packed;
  mlir::Location loc = packed.getLoc();
  mlir::Value number = passes::emitSize(builder, loc, isDirect, kernel.getBody().getArguments());
  mlir::Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
  mlir::Value isNotZero = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, number, zero);
  return builder.create<arith::SelectOp>(loc, isNotZero, direct, packed);
}

}  // namespace vortex::target::cpu
