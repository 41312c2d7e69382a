#include "passes/schedule_tensors.h"

#include "passes/clusters.h"
#include "passes/phase_builder.h"

namespace vortex::passes {
namespace {

using namespace mlir;
using SizeOp = artifact::SizeExpr::Op;

class Scheduler {
public:
  Scheduler(ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule)
      : module_(module), entry_(entry), kernel_(kernel), schedule_(schedule), context_(module.getContext()),
        axes_(kernel), clusters_(kernel, axes_) {}

  LogicalResult run() {
    args_ = llvm::to_vector(entry_.getArgs().getValue());
    types_ = llvm::to_vector(kernel_.getArgumentTypes());
    if (failed(collectTemporaries()))
      return failure();
    for (const Cluster& cluster : clusters_.list)
      chunks_.push_back(chooseChunks(cluster));
    for (auto [cluster, chunks] : llvm::zip(clusters_.list, chunks_))
      if (cluster.kind == Cluster::Kind::ScalarReduce)
        addPartials(cluster, chunks);
    auto type = FunctionType::get(context_, types_, {});
    entry_.setFunctionType(type);
    entry_.setArgsAttr(ArrayAttr::get(context_, args_));
    for (size_t i = 0; i < clusters_.list.size(); ++i)
      emitCluster(clusters_.list[i], chunks_[i]);
    kernel_.erase();
    return success();
  }

private:
  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(context_, value); }
  ir::SizeAttr combine(SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }

  unsigned addTemporary(StringRef name, ArrayRef<ir::SizeAttr> extents, Type element) {
    SmallVector<int64_t> shape;
    SmallVector<Attribute> sizes;
    for (ir::SizeAttr extent : extents) {
      auto constant = ir::constantSize(extent);
      shape.push_back(constant ? *constant : ShapedType::kDynamic);
      sizes.push_back(extent);
    }
    types_.push_back(ir::ViewType::get(shape, element));
    args_.push_back(DictionaryAttr::get(
        context_, {NamedAttribute(StringAttr::get(context_, "name"), StringAttr::get(context_, name)),
                   NamedAttribute(StringAttr::get(context_, "role"), ir::RoleAttr::get(context_, ir::Role::Temp)),
                   NamedAttribute(StringAttr::get(context_, "access"),
                                  ir::AccessModeAttr::get(context_, ir::AccessMode::ReadWrite)),
                   NamedAttribute(StringAttr::get(context_, "extents"), ArrayAttr::get(context_, sizes))}));
    return static_cast<unsigned>(types_.size() - 1);
  }

  /// Results of roots used, directly or through recomputed operations, by a later cluster.
  LogicalResult collectTemporaries() {
    for (auto [number, cluster] : llvm::enumerate(clusters_.list))
      for (Operation* root : cluster.roots)
        if (failed(collectFrom(root, static_cast<unsigned>(number))))
          return failure();
    return success();
  }

  LogicalResult collectFrom(Operation* root, unsigned cluster) {
    LogicalResult result = success();
    llvm::DenseSet<Value> seen;
    SmallVector<Operation*> pending{root};
    while (!pending.empty()) {
      Operation* op = pending.pop_back_val();
      Clusters::forEachOperand(op, [&](Value value) {
        Operation* producer = value.getDefiningOp();
        if (!producer || !seen.insert(value).second)
          return;
        if (!clusters_.isRoot(producer))
          pending.push_back(producer);
        else if (clusters_.clusterOf(producer) != cluster && !temporaries_.contains(value) && failed(cross(value)))
          result = failure();
      });
    }
    return result;
  }

  LogicalResult cross(Value value) {
    SmallVector<ir::SizeAttr> extents;
    for (Axis axis : axes_.of(value)) {
      ir::SizeAttr extent = axes_.extent(axis);
      if (!extent)
        return value.getDefiningOp()->emitError("the extent of this intermediate tensor is computed in the kernel, so "
                                                "its memory cannot be planned before the launch");
      extents.push_back(extent);
    }
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      extents.push_back(size(1));
    temporaries_[value] = addTemporary("", extents, type ? type.getElementType() : value.getType());
    return success();
  }

  /// Elements of each parallel axis per block, so that a block touches about elementsPerBlock elements of the widest tile.
  SmallVector<ir::SizeAttr> chooseChunks(const Cluster& cluster) {
    SmallVector<ir::SizeAttr> chunks(cluster.parallel.size());
    ir::DotOp dot = findDot(cluster);
    SmallVector<Axis> dotAxes = dot ? axes_.of(dot.getResult()) : SmallVector<Axis>();
    ir::SizeAttr left = combine(SizeOp::Max, size(1),
                                combine(SizeOp::FloorDiv, size(schedule_.elementsPerBlock), innerElements(cluster)));
    for (size_t i = cluster.parallel.size(); i-- > 0;) {
      Axis axis = cluster.parallel[i];
      ir::SizeAttr extent = axes_.extent(axis);
      ir::SizeAttr wanted = left;
      if (dot)
        wanted = dotChunk(cluster, dotAxes, axis);
      else if (i + 1 == cluster.parallel.size() && isInnermost(cluster, axis))
        wanted = combine(SizeOp::Max, left, size(schedule_.minInner));
      chunks[i] = combine(SizeOp::Max, size(1), combine(SizeOp::Min, extent, wanted));
      left = combine(SizeOp::Max, size(1), combine(SizeOp::FloorDiv, left, chunks[i]));
    }
    return chunks;
  }

  static ir::DotOp findDot(const Cluster& cluster) {
    ir::DotOp found;
    for (Operation* root : cluster.roots)
      root->walk([&](ir::DotOp dot) { found = dot; });
    return found;
  }

  /// The fewest blocks of at most dotRows rows, all alike: the last one of an uneven split would keep the others' workers waiting.
  ir::SizeAttr balancedRows(Axis axis) {
    ir::SizeAttr extent = axes_.extent(axis);
    if (!extent)
      return size(schedule_.dotRows);
    ir::SizeAttr blocks = combine(SizeOp::Max, size(1), combine(SizeOp::CeilDiv, extent, size(schedule_.dotRows)));
    ir::SizeAttr rows = combine(SizeOp::CeilDiv, extent, blocks);
    return combine(SizeOp::Mul, combine(SizeOp::CeilDiv, rows, size(schedule_.dotRowStep)), size(schedule_.dotRowStep));
  }

  ir::SizeAttr dotChunk(const Cluster& cluster, ArrayRef<Axis> dotAxes, Axis axis) {
    size_t rank = dotAxes.size();
    if (axis == dotAxes[rank - 1])
      return size(schedule_.dotColumns);
    if (axis != dotAxes[rank - 2])
      return size(1);
    // Rows whose whole length stays in the block take fewer of them, to keep the intermediate rows in cache.
    bool wholeRows = !llvm::is_contained(cluster.parallel, dotAxes[rank - 1]);
    ir::SizeAttr columns = axes_.extent(dotAxes[rank - 1]);
    if (!wholeRows || !columns || cluster.roots.size() == 1)
      return balancedRows(axis);
    ir::SizeAttr budget =
        combine(SizeOp::FloorDiv, size(4 * schedule_.elementsPerBlock), combine(SizeOp::Max, size(1), columns));
    return combine(SizeOp::Min, size(schedule_.dotRows), combine(SizeOp::Max, size(8), budget));
  }

  /// Elements of the widest tile along axes that are not split.
  ir::SizeAttr innerElements(const Cluster& cluster) {
    SmallVector<Axis> widest;
    auto consider = [&](Value value) {
      SmallVector<Axis> inner;
      for (Axis axis : axes_.of(value))
        if (!llvm::is_contained(cluster.parallel, axis) && axes_.extent(axis) && !llvm::is_contained(inner, axis))
          inner.push_back(axis);
      if (inner.size() > widest.size())
        widest = inner;
    };
    for (Operation* root : cluster.roots)
      root->walk([&](Operation* op) {
        for (Value operand : op->getOperands())
          consider(operand);
      });
    ir::SizeAttr product = size(1);
    for (Axis axis : widest)
      product = combine(SizeOp::Mul, product, axes_.extent(axis));
    return combine(SizeOp::Max, size(1), product);
  }

  /// True when the axis is the last dimension of some tile in memory, so that its elements are neighbours.
  bool isInnermost(const Cluster& cluster, Axis axis) {
    return llvm::any_of(cluster.roots, [&](Operation* root) {
      bool last = false;
      for (Value operand : root->getOperands()) {
        SmallVector<Axis> axes = axes_.of(operand);
        last |= !axes.empty() && axes.back() == axis;
      }
      return last;
    });
  }

  ir::SizeAttr blockCount(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    ir::SizeAttr count = size(1);
    for (auto [axis, chunk] : llvm::zip(cluster.parallel, chunks))
      count = combine(SizeOp::Mul, count, combine(SizeOp::CeilDiv, axes_.extent(axis), chunk));
    return count;
  }

  void addPartials(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto reduce = cast<ir::ReduceOp>(cluster.roots[0]);
    partials_[reduce] = addTemporary("", {blockCount(cluster, chunks)}, reduce.getType());
  }

  ir::KernelOp createKernel(StringRef suffix, ir::SizeAttr blocks) {
    OpBuilder builder(kernel_);
    std::string name = (entry_.getSymName() + "." + suffix + "." + Twine(phase_++)).str();
    OperationState state(kernel_.getLoc(), ir::KernelOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(name));
    state.addAttribute("function_type", TypeAttr::get(FunctionType::get(context_, types_, {})));
    Attribute one = size(1);
    state.addAttribute("grid", builder.getArrayAttr({blocks, one, one}));
    state.addAttribute("block", builder.getArrayAttr({one, one, one}));
    Block* body = new Block();
    for (Type type : types_)
      body->addArgument(type, kernel_.getLoc());
    state.addRegion()->push_back(body);
    return cast<ir::KernelOp>(builder.create(state));
  }

  void emitCluster(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    if (cluster.kind == Cluster::Kind::ScalarReduce && !temporaries_.contains(cluster.roots[0]->getResult(0)))
      return;  // nothing uses the scalar
    if (cluster.kind == Cluster::Kind::ScalarReduce && !cluster.parallel.empty())
      return emitScalarReduce(cluster, chunks);
    bool serial = cluster.kind != Cluster::Kind::Parallel;
    ir::KernelOp phase = createKernel(serial ? "serial" : "tensors", serial ? size(1) : blockCount(cluster, chunks));
    PhaseBuilder builder(kernel_, phase, axes_, clusters_, temporaries_);
    if (!serial)
      builder.split(cluster.parallel, chunks);
    for (Operation* root : cluster.roots)
      builder.emitRoot(root);
    builder.finish();
  }

  /// Phase one: each block reduces its piece into partials[block]. Phase two: one block combines them in block order.
  void emitScalarReduce(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto reduce = cast<ir::ReduceOp>(cluster.roots[0]);
    Location loc = reduce.getLoc();
    unsigned partials = partials_[reduce];
    ir::KernelOp first = createKernel("partial", blockCount(cluster, chunks));
    PhaseBuilder pieces(kernel_, first, axes_, clusters_, temporaries_);
    pieces.split(cluster.parallel, chunks);
    OpBuilder& builder = pieces.builder;
    Value piece = builder.create<ir::ReduceOp>(loc, reduce.getType(), reduce.getKind(), pieces.get(reduce.getValue()),
                                               reduce.getDimsAttr());
    Value block = builder.create<ir::BlockIdOp>(loc, builder.getIndexType(), ir::Axis::X);
    builder.create<ir::StoreOp>(loc, piece, first.getBody().getArgument(partials), ValueRange{block}, Value(), false);
    pieces.finish();

    ir::KernelOp second = createKernel("combine", size(1));
    OpBuilder combiner(context_);
    combiner.setInsertionPointToEnd(&second.getBody().front());
    Value view = second.getBody().getArgument(partials);
    Value zero = combiner.create<arith::ConstantIndexOp>(loc, 0);
    Value count = combiner.create<ir::DimOp>(loc, combiner.getIndexType(), view, combiner.getI64IntegerAttr(0));
    auto viewType = cast<ir::ViewType>(view.getType());
    SmallVector<Value> sizes;
    if (!viewType.hasStaticShape())
      sizes.push_back(count);
    auto tile = combiner.create<ir::TileLoadOp>(loc, RankedTensorType::get(viewType.getShape(), reduce.getType()), view,
                                                ValueRange{zero}, sizes, Value(), true);
    Value total = combiner.create<ir::ReduceOp>(loc, reduce.getType(), reduce.getKind(), tile,
                                                combiner.getDenseI64ArrayAttr({0}));
    combiner.create<ir::StoreOp>(loc, total, second.getBody().getArgument(temporaries_.lookup(reduce.getResult())),
                                 ValueRange{zero}, Value(), false);
    combiner.create<ir::ReturnOp>(loc);
  }

  ModuleOp module_;
  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  const TensorSchedule& schedule_;
  MLIRContext* context_;
  Axes axes_;
  Clusters clusters_;
  Temporaries temporaries_;
  llvm::DenseMap<Operation*, unsigned> partials_;
  SmallVector<Attribute> args_;
  SmallVector<Type> types_;
  std::vector<SmallVector<ir::SizeAttr>> chunks_;
  unsigned phase_ = 0;
};

struct ScheduleTensorsPass : PassWrapper<ScheduleTensorsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScheduleTensorsPass)
  explicit ScheduleTensorsPass(TensorSchedule schedule) : schedule(schedule) {}
  ScheduleTensorsPass(const ScheduleTensorsPass& other) : PassWrapper(other), schedule(other.schedule) {}
  StringRef getArgument() const override { return "vx-schedule-tensors"; }
  StringRef getDescription() const override { return "splits whole-tensor kernels into phases of independent blocks"; }
  void runOnOperation() override {
    if (elements.hasValue())
      schedule.elementsPerBlock = elements;
    if (failed(scheduleTensors(getOperation(), schedule)))
      signalPassFailure();
  }
  TensorSchedule schedule;
  Option<int64_t> elements{*this, "elements", llvm::cl::desc("elements one block touches")};
};

/// Shared and local memory belong to a block: phases could not pass it on.
bool allocates(ir::KernelOp kernel) {
  return kernel.walk([](ir::AllocOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

void runAsOneBlock(ir::KernelOp kernel) {
  Attribute one = ir::sizeConstant(kernel.getContext(), 1);
  auto ones = ArrayAttr::get(kernel.getContext(), {one, one, one});
  kernel.setWholeTensor(false);
  kernel.setGridAttr(ones);
  kernel.setBlockAttr(ones);
}

}  // namespace

LogicalResult scheduleTensors(ModuleOp module, const TensorSchedule& schedule) {
  SmallVector<ir::KernelOp> kernels;
  for (auto kernel : module.getOps<ir::KernelOp>())
    if (kernel.getWholeTensor())
      kernels.push_back(kernel);
  if (kernels.empty())
    return success();
  auto entries = module.getOps<ir::EntryOp>();
  VORTEX_CHECK(!entries.empty() && kernels.size() == 1 && llvm::hasSingleElement(module.getOps<ir::KernelOp>()),
               "a whole-tensor kernel is the only one of its module");
  if (allocates(kernels[0])) {
    runAsOneBlock(kernels[0]);
    return success();
  }
  return Scheduler(module, *entries.begin(), kernels[0], schedule).run();
}

std::unique_ptr<Pass> createScheduleTensorsPass(TensorSchedule schedule) {
  return std::make_unique<ScheduleTensorsPass>(schedule);
}

}  // namespace vortex::passes
