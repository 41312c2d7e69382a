#include "passes/schedule_tensors.h"

#include "ir/launch.h"
#include "passes/bulk_products.h"
#include "passes/chunks.h"
#include "passes/element_control.h"
#include "passes/phase_builder.h"
#include "passes/separate_operands.h"

namespace vortex::passes {
namespace {

using namespace mlir;
using SizeOp = size::Op;

class Scheduler {
public:
  Scheduler(ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule)
      : module_(module), entry_(entry), kernel_(kernel), schedule_(schedule), context_(module.getContext()),
        axes_(kernel, schedule.fusedOnly), clusters_(kernel, axes_, {schedule.fusedOnly, schedule.reductionBlocks > 0}),
        sizes_(context_, schedule, axes_, clusters_), launch_(ir::createLaunch(entry)) {}

  LogicalResult run() {
    args_ = llvm::to_vector(entry_.getArgs().getValue());
    types_ = llvm::to_vector(kernel_.getArgumentTypes());
    for (unsigned i = 0; i < clusters_.list.size(); ++i)
      findFolded(i);
    bool hasProducts = llvm::any_of(clusters_.list, [](const Cluster& c) { return bool(findDot(c)); });
    if (hasProducts && (schedule_.dotLeastRows > 0 || !schedule_.bulkTiles.empty()))
      workers_ = addLet("workers", ir::sizeClusters(context_));
    if (schedule_.dotLeastRows > 0)
      sizes_.workers = workers_;
    if (failed(collectTemporaries()))
      return failure();
    for (const Cluster& cluster : clusters_.list) {
      ir::SizeAttr depth = foldedDepth(cluster);
      chunks_.push_back(depth ? sizes_.chooseCombining(cluster, depth) : sizes_.choose(cluster));
    }
    for (auto [cluster, chunks] : llvm::zip(clusters_.list, chunks_))
      if (isSplit(cluster))
        addPartials(cluster, chunks);
      else if (cluster.kind == Cluster::Kind::SplitScan)
        addCarries(cluster, chunks);
      else {
        addBulkProduct(cluster);
        addDepthSplits(cluster);
        addCopies(cluster);
      }
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

  /// A value that launches compute and code reads. Temporaries come after all of them.
  ir::SizeAttr addLet(StringRef name, ir::SizeAttr value) {
    auto argument = static_cast<unsigned>(types_.size());
    types_.push_back(IndexType::get(context_));
    args_.push_back(DictionaryAttr::get(
        context_, {NamedAttribute(StringAttr::get(context_, "name"), StringAttr::get(context_, name)),
                   NamedAttribute(StringAttr::get(context_, "role"), ir::RoleAttr::get(context_, ir::Role::Let))}));
    launch_.let(kernel_.getLoc(), argument, value);
    return ir::sizeScalar(context_, argument);
  }

  /// Partial results that one later phase needs once are combined there, without a phase of their own.
  void findFolded(unsigned number) {
    const Cluster& cluster = clusters_.list[number];
    if (!isSplit(cluster) || schedule_.reductionBlocks == 0)
      return;
    Value value = cluster.roots[0]->getResult(0);
    unsigned users = 0;
    bool once = false;
    for (const Cluster& other : clusters_.list) {
      bool uses = false;
      for (Operation* root : other.roots)
        clusters_.forEachSource(
            root, [&](Value source) { uses |= source == value && !llvm::is_contained(cluster.roots, root); });
      if (!uses)
        continue;
      ++users;
      once = other.kind == Cluster::Kind::Serial || (!isSplit(other) && needsOnce(other, value));
    }
    if (users == 1 && once)
      folded_.insert(value);
  }

  /// How many partial results an earlier cluster leaves this one for each element; null: none.
  ir::SizeAttr foldedDepth(const Cluster& cluster) {
    ir::SizeAttr depth;
    if (isSplit(cluster))
      return depth;
    for (Operation* root : cluster.roots)
      clusters_.forEachSource(root, [&](Value source) {
        if (!folded_.contains(source))
          return;
        unsigned number = clusters_.clusterOf(source.getDefiningOp());
        const Cluster& split = clusters_.list[number];
        if (split.kind == Cluster::Kind::SplitReduce && number < chunks_.size())
          depth = partialCount(split, chunks_[number]);
      });
    return depth;
  }

  ir::SizeAttr partialCount(const Cluster& split, ArrayRef<ir::SizeAttr> chunks) {
    return combine(SizeOp::CeilDiv, axes_.extent(split.parallel[0]), chunks[0]);
  }

  /// Every element the cluster writes belongs to one of `value`.
  bool needsOnce(const Cluster& cluster, Value value) {
    SmallVector<Axis> own = axes_.of(value);
    bool once = !own.empty();
    for (Operation* root : cluster.roots) {
      auto store = dyn_cast<ir::TileStoreOp>(root);
      once &=
          store && llvm::all_of(axes_.of(store.getValue()), [&](Axis axis) { return llvm::is_contained(own, axis); });
    }
    return once;
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
        else if (clusters_.clusterOf(producer) != cluster && !folded_.contains(value) &&
                 !temporaries_.contains(value) && failed(cross(value)))
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

  void addPartials(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto reduce = cast<ir::ReduceOp>(cluster.roots[0]);
    if (!folded_.contains(reduce.getResult()) && !temporaries_.contains(reduce.getResult()))
      return;  // nothing uses it
    SmallVector<ir::SizeAttr> extents{sizes_.blockCount(cluster, chunks)};
    if (cluster.kind == Cluster::Kind::SplitReduce) {
      extents[0] = partialCount(cluster, chunks);
      for (Axis axis : axes_.of(reduce.getResult()))
        extents.push_back(axes_.extent(axis));
    }
    partials_[reduce.getResult()] = addTemporary("", extents, accumulatorType(reduce.getType()));
  }

  /// What the pieces of a scan combine to, and what comes before each.
  void addCarries(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    Value result = cluster.roots[0]->getResult(0);
    ir::SizeAttr count = sizes_.blockCount(cluster, chunks);
    partials_[result] = addTemporary("", {count}, accumulatorType(result.getType()));
    carries_[result] = addTemporary("", {count}, accumulatorType(result.getType()));
  }

  /// A product whose depth may be split over blocks.
  struct DepthSplit {
    ir::DotOp dot;
    Axis depth{};
    SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
    ir::SizeAttr step, count;          ///< elements per piece of the depth, number of pieces
    ir::SizeAttr used;                 ///< 1 for launches that split, else 0
    unsigned partials = 0;             ///< the temporary's argument
    TensorSchedule schedule;           ///< of the pieces
  };

  /// 1 when launches have too few blocks of the usual size, else 0; null: there is one size only.
  ir::SizeAttr isSmall(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    if (schedule_.smallDotRows == 0)
      return {};
    return combine(SizeOp::Less, sizes_.blockCount(cluster, chunks), size(schedule_.smallDotBelow));
  }

  TensorSchedule smallSchedule() const {
    TensorSchedule small = schedule_;
    if (schedule_.smallDotRows == 0)
      return small;
    small.dotRows = small.dotRowStep = schedule_.smallDotRows;
    small.dotColumns = schedule_.smallDotColumns;
    small.dotPlan = schedule_.smallDotPlan;
    return small;
  }

  TensorSchedule thinSchedule() const {
    TensorSchedule thin = schedule_;
    thin.dotRows = thin.dotRowStep = schedule_.thinDotRows;
    thin.dotColumns = schedule_.thinDotColumns;
    thin.dotPlan = schedule_.thinDotPlan;
    return thin;
  }

  /// Rows and columns are split already, and what follows the product is elementwise: a later phase can do it to the added partial sums.
  ir::DotOp splittableProduct(const Cluster& cluster) {
    ir::DotOp dot;
    for (Operation* root : cluster.roots) {
      auto product = dyn_cast<ir::DotOp>(root);
      if ((product && dot) || (!product && !isa<ir::TileStoreOp>(root)))
        return nullptr;
      dot = product ? product : dot;
    }
    if (cluster.kind != Cluster::Kind::Parallel || !dot)
      return nullptr;
    Axis depth = axes_.of(dot.getA()).back();
    bool isSplit = llvm::is_contained(cluster.parallel, depth) || !axes_.extent(depth);
    for (Axis axis : axes_.of(dot.getResult()))
      isSplit |= !llvm::is_contained(cluster.parallel, axis);
    return isSplit ? nullptr : dot;
  }

  void addDepthSplits(const Cluster& cluster) {
    ir::DotOp dot = schedule_.dotSplitBlocks > 0 ? splittableProduct(cluster) : nullptr;
    if (!dot)
      return;
    ir::SizeAttr depth = axes_.extent(axes_.of(dot.getA()).back());
    // A quarter of the blocks wanted, or less: the second phase costs more than a few idle cores. So few are few in blocks of any size.
    ir::SizeAttr used = combine(SizeOp::Mul, combine(SizeOp::Less, smallBlocks(cluster), size(fewBlocks())),
                                combine(SizeOp::Less, size(2 * schedule_.dotSplitDepth - 1), depth));
    if (auto bulk = bulks_.find(dot); bulk != bulks_.end())
      used = combine(SizeOp::Mul, used,
                     combine(SizeOp::Sub, size(1), combine(SizeOp::Mul, bulk->second.used, bulk->second.isFull)));
    if (ir::constantSize(used) == 0)
      return;
    splitUsed_[dot] = used;
    SmallVector<Axis> axes = axes_.of(dot.getResult());
    if (ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]); rows && schedule_.thinDotRows > 0) {
      ir::SizeAttr isThin = combine(SizeOp::Less, rows, size(schedule_.thinDotRows + 1));
      addDepthSplit(cluster, dot, thinSchedule(), combine(SizeOp::Mul, used, isThin));
      used = combine(SizeOp::Mul, used, combine(SizeOp::Sub, size(1), isThin));
    }
    addDepthSplit(cluster, dot, smallSchedule(), used);
  }

  int64_t fewBlocks() const { return schedule_.dotSplitBlocks / 4 + 1; }

  ir::SizeAttr smallBlocks(const Cluster& cluster) {
    TensorSchedule small = smallSchedule();
    Chunks sizes(context_, small, axes_, clusters_);
    return sizes.blockCount(cluster, sizes.choose(cluster));
  }

  /// `used`: 1 for launches that split this way.
  void addDepthSplit(const Cluster& cluster, ir::DotOp dot, TensorSchedule schedule, ir::SizeAttr used) {
    constexpr int64_t kStep = 128;  // pieces start at aligned elements
    if (ir::constantSize(used) == 0)
      return;
    DepthSplit split;
    split.dot = dot;
    split.depth = axes_.of(dot.getA()).back();
    split.used = used;
    split.schedule = std::move(schedule);
    Chunks sizes(context_, split.schedule, axes_, clusters_);
    split.pieces = sizes.choose(cluster);
    ir::SizeAttr blocks = combine(SizeOp::Max, size(1), sizes.blockCount(cluster, split.pieces));
    ir::SizeAttr depth = axes_.extent(split.depth);
    ir::SizeAttr wanted = combine(SizeOp::Min, combine(SizeOp::FloorDiv, size(schedule_.dotSplitBlocks), blocks),
                                  combine(SizeOp::FloorDiv, depth, size(schedule_.dotSplitDepth)));
    ir::SizeAttr even = combine(SizeOp::CeilDiv, depth, combine(SizeOp::Max, size(1), wanted));
    split.step = combine(SizeOp::Max, size(kStep),
                         combine(SizeOp::Mul, combine(SizeOp::CeilDiv, even, size(kStep)), size(kStep)));
    split.count = combine(SizeOp::CeilDiv, depth, split.step);
    SmallVector<ir::SizeAttr> extents{combine(SizeOp::Mul, split.count, split.used)};
    for (Axis axis : axes_.of(dot.getResult()))
      extents.push_back(axes_.extent(axis));
    split.partials = addTemporary("", extents, accumulatorType(dot.getType()));
    splits_[dot].push_back(std::move(split));
  }

  /// Copies of a product's operands in aligned rows.
  struct AlignedCopies {
    SmallVector<std::pair<ir::TileLoadOp, unsigned>> loads;  ///< with the argument of the temporary
    ir::SizeAttr used;                                       ///< 1 for launches that copy, else 0
  };

  /// The load at the other end of transposes, which widen narrow floats and round them again; null if there is none, two of its dimensions are
  /// one axis, or a phase of its own makes it.
  ir::TileLoadOp copyableLoad(Value operand) {
    Type element = getElementTypeOrSelf(operand.getType());
    for (Operation* op = operand.getDefiningOp();
         isa_and_nonnull<ir::TransposeOp, arith::ExtFOp, arith::TruncFOp>(op) &&
         isa<RankedTensorType>(operand.getType());
         op = operand.getDefiningOp())
      operand = op->getOperand(0);
    auto load = operand.getDefiningOp<ir::TileLoadOp>();
    if (!load || clusters_.isRoot(load) || getElementTypeOrSelf(operand.getType()) != element)
      return nullptr;
    SmallVector<Axis> axes = axes_.of(load.getResult());
    AxisSet different(axes.begin(), axes.end());
    bool isPlain = axes.size() >= 2 && different.size() == axes.size();
    return isPlain && llvm::all_of(axes, [&](Axis axis) { return bool(axes_.extent(axis)); }) ? load : nullptr;
  }

  void addCopies(const Cluster& cluster) {
    constexpr int64_t kRow = 64;  // elements that rows of copies are a multiple of
    ir::DotOp dot = schedule_.dotAlignment > 0 && cluster.kind == Cluster::Kind::Parallel ? findDot(cluster) : nullptr;
    if (!dot || !llvm::is_contained(cluster.roots, dot.getOperation()))
      return;
    AlignedCopies copies;
    ir::SizeAttr anyRow = size(0);
    SmallVector<ir::TileLoadOp> loads;
    for (Value operand : {dot.getA(), dot.getB()}) {
      ir::TileLoadOp load = copyableLoad(operand);
      if (!load)
        continue;
      auto type = cast<RankedTensorType>(load.getResult().getType());
      int64_t bits = type.getElementTypeBitWidth();
      if (bits * 4 > schedule_.dotAlignment * 8 || llvm::is_contained(loads, load))
        continue;
      ir::SizeAttr row = axes_.extent(axes_.of(load.getResult()).back());
      ir::SizeAttr rest = combine(SizeOp::Mod, row, size(schedule_.dotAlignment * 8 / bits));
      ir::SizeAttr misaligned = combine(SizeOp::Less, size(0), rest);
      if (ir::constantSize(misaligned) == 0)
        continue;
      anyRow = combine(SizeOp::Max, anyRow, misaligned);
      loads.push_back(load);
    }
    SmallVector<Axis> axes = axes_.of(dot.getResult());
    ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]), columns = axes_.extent(axes.back());
    if (loads.empty() || !rows || !columns)
      return;
    ir::SizeAttr isLarge = combine(SizeOp::Less, size(schedule_.dotCopySide - 1), combine(SizeOp::Min, rows, columns));
    copies.used = combine(SizeOp::Mul, isLarge, anyRow);
    if (splitUsed_.contains(dot))  // never both
      copies.used =
          combine(SizeOp::Mul, copies.used, combine(SizeOp::Less, size(fewBlocks() - 1), smallBlocks(cluster)));
    if (ir::constantSize(copies.used) == 0)
      return;
    for (ir::TileLoadOp load : loads) {
      SmallVector<ir::SizeAttr> extents;
      for (Axis axis : axes_.of(load.getResult()))
        extents.push_back(axes_.extent(axis));
      extents.front() = combine(SizeOp::Mul, extents.front(), copies.used);
      extents.back() = combine(SizeOp::Mul, combine(SizeOp::CeilDiv, extents.back(), size(kRow)), size(kRow));
      Type element = cast<RankedTensorType>(load.getResult().getType()).getElementType();
      copies.loads.push_back({load, addTemporary("", extents, element)});
    }
    copies_.insert({dot, std::move(copies)});
  }

  void emitCopies(const AlignedCopies& copies) {
    for (auto [load, argument] : copies.loads) {
      Cluster copy;
      copy.parallel = axes_.of(load.getResult());
      SmallVector<ir::SizeAttr> pieces = sizes_.choose(copy);
      ir::SizeAttr blocks = combine(SizeOp::Mul, sizes_.blockCount(copy, pieces), copies.used);
      PhaseBuilder builder = buildPhase(createKernel("align", blocks));
      builder.split(copy.parallel, pieces);
      builder.emitCopy(load, argument);
      builder.finish();
    }
  }

  /// Phase one: blocks multiply pieces of the depth. Phase two: adds those in order and does what follows the product.
  void emitDepthSplit(const Cluster& cluster, const DepthSplit& split) {
    ir::DotOp dot = split.dot;
    Chunks sizes(context_, split.schedule, axes_, clusters_);
    ir::SizeAttr blocks = combine(SizeOp::Mul, sizes.blockCount(cluster, split.pieces), split.count);
    ir::KernelOp first = createKernel("partial", combine(SizeOp::Mul, blocks, split.used));
    PhaseBuilder pieces = buildPhase(first);
    SmallVector<Axis> axes{split.depth};
    SmallVector<ir::SizeAttr> steps{split.step};
    llvm::append_range(axes, cluster.parallel);
    llvm::append_range(steps, split.pieces);
    pieces.split(axes, steps, groupOf(cluster));
    pieces.emitPartialProduct(dot, pieces.number(split.depth), split.partials);
    pieces.finish();
    setPlan(first, split.schedule.dotPlan);
    Cluster rest;
    rest.parallel = cluster.parallel;
    llvm::copy_if(cluster.roots, std::back_inserter(rest.roots), [&](Operation* root) { return root != dot; });
    SmallVector<ir::SizeAttr> restPieces = sizes_.choose(rest);
    PhaseBuilder combiner =
        buildPhase(createKernel("combine", combine(SizeOp::Mul, sizes_.blockCount(rest, restPieces), split.used)));
    combiner.partials[dot.getResult()] = split.partials;
    combiner.split(rest.parallel, restPieces);
    combiner.get(dot.getResult());
    combiner.storeTemporaries(dot);
    for (Operation* root : rest.roots)
      combiner.emitRoot(root);
    combiner.finish();
  }

  void setPlan(ir::KernelOp phase, StringRef plan) {
    if (!plan.empty())
      phase.walk([&](ir::DotOp dot) { dot->setAttr("vx.plan", StringAttr::get(context_, plan)); });
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
    auto kernel = cast<ir::KernelOp>(builder.create(state));
    launch_.phase(kernel);
    return kernel;
  }

  PhaseBuilder buildPhase(ir::KernelOp phase) {
    PhaseBuilder builder(kernel_, phase, axes_, clusters_, temporaries_);
    for (auto [value, argument] : partials_)
      if (folded_.contains(value))
        builder.partials[value] = argument;
    return builder;
  }

  /// Grouped order is for products whose rows and columns are both split.
  int64_t groupOf(const Cluster& cluster) {
    ir::DotOp dot = findDot(cluster);
    if (!dot || cluster.parallel.size() < 2)
      return 1;
    SmallVector<Axis> axes = axes_.of(dot.getResult());
    return ArrayRef(cluster.parallel).take_back(2) == ArrayRef(axes).take_back(2) ? schedule_.dotGroup : 1;
  }

  void emitCluster(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    if (cluster.kind == Cluster::Kind::ScalarReduce && !isSplit(cluster) &&
        !temporaries_.contains(cluster.roots[0]->getResult(0)))
      return;  // nothing uses the scalar
    if (isSplit(cluster))
      return emitSplitReduce(cluster, chunks);
    if (cluster.kind == Cluster::Kind::SplitScan)
      return emitSplitScan(cluster, chunks);
    if (cluster.kind != Cluster::Kind::Parallel) {
      emitPhase(cluster, {}, size(1), schedule_.dotPlan);
      return;
    }
    ir::SizeAttr blocks = sizes_.blockCount(cluster, chunks);
    ir::DotOp dot = findDot(cluster);
    if (!dot) {
      emitPhase(cluster, chunks, blocks, "");
      return;
    }
    if (auto splits = splits_.find(dot); splits != splits_.end())
      for (const DepthSplit& split : splits->second)
        emitDepthSplit(cluster, split);
    auto split = splitUsed_.find(dot);
    ir::SizeAttr direct = split == splitUsed_.end() ? size(1) : combine(SizeOp::Sub, size(1), split->second);
    auto copies = copies_.find(dot);
    if (copies != copies_.end())
      direct = combine(SizeOp::Mul, direct, combine(SizeOp::Sub, size(1), copies->second.used));
    direct = combine(SizeOp::Mul, direct, combine(SizeOp::Sub, size(1), emitBulkProduct(cluster, dot, direct)));
    emitProduct(cluster, chunks, direct, nullptr);
    if (copies == copies_.end())
      return;
    emitCopies(copies->second);
    emitProduct(cluster, chunks, copies->second.used, &copies->second);
  }

  void addBulkProduct(const Cluster& cluster) {
    if (ir::DotOp dot = schedule_.bulkTiles.empty() ? nullptr : splittableProduct(cluster))
      if (auto plan = BulkProducts(schedule_, axes_, clusters_, types_, temporaries_).plan(cluster, dot, workers_))
        bulks_.insert({dot, std::move(*plan)});
  }

  /// The product as a persistent phase of bulk copies, for those of the launches `when` that can run it. Returns 1 for them.
  ir::SizeAttr emitBulkProduct(const Cluster& cluster, ir::DotOp dot, ir::SizeAttr when) {
    auto bulk = bulks_.find(dot);
    if (bulk == bulks_.end())
      return size(0);
    ir::SizeAttr used = combine(SizeOp::Mul, when, bulk->second.used);
    for (const BulkPlan::Phase& phase : bulk->second.phases)
      if (ir::KernelOp made =
              emitPhase(cluster, phase.pieces, combine(SizeOp::Mul, phase.blocks, used), phase.tile->plan))
        made->setAttr("vx.tiles", phase.tiles);
    return bulk->second.used;
  }

  /// The product in blocks of both sizes, for launches where `when` is 1.
  void emitProduct(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks, ir::SizeAttr when,
                   const AlignedCopies* copies) {
    ir::SizeAttr blocks = combine(SizeOp::Mul, sizes_.blockCount(cluster, chunks), when);
    ir::SizeAttr few = isSmall(cluster, chunks);
    if (!few) {
      emitPhase(cluster, chunks, blocks, schedule_.dotPlan, copies);
      return;
    }
    emitPhase(cluster, chunks, combine(SizeOp::Mul, blocks, combine(SizeOp::Sub, size(1), few)), schedule_.dotPlan,
              copies);
    TensorSchedule small = smallSchedule();
    Chunks sizes(context_, small, axes_, clusters_);
    SmallVector<ir::SizeAttr> pieces = sizes.choose(cluster);
    ir::SizeAttr smallBlocks = combine(SizeOp::Mul, sizes.blockCount(cluster, pieces), few);
    emitPhase(cluster, pieces, combine(SizeOp::Mul, smallBlocks, when), small.dotPlan, copies);
  }

  /// No chunks: one block does it all. No blocks: nothing, and null. `copies`: read instead of their originals.
  ir::KernelOp emitPhase(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks, ir::SizeAttr blocks, StringRef dotPlan,
                         const AlignedCopies* copies = nullptr) {
    if (ir::constantSize(blocks) == 0)
      return nullptr;
    bool serial = cluster.kind != Cluster::Kind::Parallel;
    ir::KernelOp phase = createKernel(serial ? "serial" : "tensors", blocks);
    PhaseBuilder builder = buildPhase(phase);
    if (copies)
      for (auto [load, argument] : copies->loads)
        builder.copies[load.getResult()] = argument;
    if (!serial)
      builder.split(cluster.parallel, chunks, groupOf(cluster));
    for (Operation* root : cluster.roots)
      builder.emitRoot(root);
    builder.finish();
    setPlan(phase, dotPlan);
    return phase;
  }

  /// Phase one: each block reduces its piece into its number of the partial results. Phase two, unless a later one does it: combines them in
  /// order.
  void emitSplitReduce(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto reduce = cast<ir::ReduceOp>(cluster.roots[0]);
    Value result = reduce.getResult();
    auto partial = partials_.find(result);
    if (partial == partials_.end())
      return;
    bool scalar = cluster.kind == Cluster::Kind::ScalarReduce;
    ir::KernelOp first = createKernel("partial", sizes_.blockCount(cluster, chunks));
    PhaseBuilder pieces = buildPhase(first);
    pieces.split(cluster.parallel, chunks);
    Value number =
        scalar
            ? Value(pieces.builder.create<ir::BlockIdOp>(reduce.getLoc(), pieces.builder.getIndexType(), ir::Axis::X))
            : pieces.number(cluster.parallel[0]);
    pieces.emitPartial(reduce, number, partial->second);
    pieces.finish();
    if (folded_.contains(result))
      return;
    Cluster rest;
    rest.roots = cluster.roots;
    if (!scalar)
      rest.parallel.append(cluster.parallel.begin() + 1, cluster.parallel.end());
    ir::SizeAttr depth = scalar ? size(1) : combine(SizeOp::CeilDiv, axes_.extent(cluster.parallel[0]), chunks[0]);
    // As many small blocks as there is to combine: few would wait for what all others have left in the caches.
    SmallVector<ir::SizeAttr> pieceSizes = sizes_.chooseCombining(rest, depth);
    ir::KernelOp second = createKernel("combine", sizes_.blockCount(rest, pieceSizes));
    PhaseBuilder combiner = buildPhase(second);
    combiner.partials[result] = partial->second;
    combiner.split(rest.parallel, pieceSizes);
    combiner.get(result);
    combiner.storeTemporaries(reduce);
    combiner.finish();
  }

  /// Every block combines its piece; one block turns those into what comes before each piece; every block scans its piece from there.
  void emitSplitScan(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto scan = cast<ir::ScanOp>(cluster.roots[0]);
    ir::SizeAttr blocks = sizes_.blockCount(cluster, chunks);
    PhaseBuilder pieces = buildPhase(createKernel("partial", blocks));
    pieces.split(cluster.parallel, chunks);
    pieces.emitScanPartial(scan, partials_.lookup(scan.getResult()));
    pieces.finish();
    PhaseBuilder carries = buildPhase(createKernel("carry", size(1)));
    carries.emitScanCarries(scan, partials_.lookup(scan.getResult()), carries_.lookup(scan.getResult()));
    carries.finish();
    PhaseBuilder results = buildPhase(createKernel("tensors", blocks));
    results.split(cluster.parallel, chunks);
    results.emitScanPiece(scan, carries_.lookup(scan.getResult()));
    results.storeTemporaries(scan);
    for (Operation* root : ArrayRef(cluster.roots).drop_front())
      results.emitRoot(root);
    results.finish();
  }

  ModuleOp module_;
  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  const TensorSchedule& schedule_;
  MLIRContext* context_;
  Axes axes_;
  Clusters clusters_;
  Chunks sizes_;
  ir::SizeAttr workers_;  ///< blocks that run at once; null: not asked
  Temporaries temporaries_;
  Temporaries partials_;                                           ///< partial results of split reductions
  Temporaries carries_;                                            ///< what comes before each piece of a split scan
  llvm::DenseMap<Operation*, SmallVector<DepthSplit, 2>> splits_;  ///< per product
  llvm::DenseMap<Operation*, ir::SizeAttr> splitUsed_;             ///< per product: 1 for launches that split its depth
  llvm::DenseMap<Operation*, AlignedCopies> copies_;               ///< per product
  llvm::DenseMap<Operation*, BulkPlan> bulks_;                     ///< per product that has one
  llvm::DenseSet<Value> folded_;                                   ///< combined where they are needed
  SmallVector<Attribute> args_;
  SmallVector<Type> types_;
  std::vector<SmallVector<ir::SizeAttr>> chunks_;
  ir::LaunchBuilder launch_;
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
    if (squareSide.hasValue())
      schedule.squareSide = squareSide;
    if (reductionBlocks.hasValue())
      schedule.reductionBlocks = reductionBlocks;
    if (fusedOnly.hasValue())
      schedule.fusedOnly = fusedOnly;
    if (failed(scheduleTensors(getOperation(), schedule)))
      signalPassFailure();
  }
  TensorSchedule schedule;
  Option<int64_t> elements{*this, "elements", llvm::cl::desc("elements one block touches")};
  Option<int64_t> squareSide{*this, "square-side", llvm::cl::desc("side of the squares of transposes")};
  Option<int64_t> reductionBlocks{*this, "reduction-blocks", llvm::cl::desc("blocks of partial reductions")};
  Option<bool> fusedOnly{*this, "fused-only", llvm::cl::desc("phases share only what stays in registers")};
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
  prepareElementControl(*entries.begin(), kernels[0]);
  if (!schedule.fusedOnly)
    flattenBetween(kernels[0]);
  separateOperands(kernels[0]);
  return Scheduler(module, *entries.begin(), kernels[0], schedule).run();
}

std::unique_ptr<Pass> createScheduleTensorsPass(TensorSchedule schedule) {
  return std::make_unique<ScheduleTensorsPass>(schedule);
}

}  // namespace vortex::passes
