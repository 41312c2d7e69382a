#include "passes/schedule_tensors.h"

#include "ir/launch.h"
#include "ir/look_back.h"
#include "passes/bulk_streams.h"
#include "passes/check_fused.h"
#include "passes/chunks.h"
#include "passes/element_control.h"
#include "passes/launch_control.h"
#include "passes/phase_builder.h"
#include "passes/products.h"
#include "passes/separate_operands.h"
#include "passes/stream_bounds.h"
#include "passes/stream_phases.h"
#include "passes/stream_reductions.h"

namespace vortex::passes {
namespace {

using namespace mlir;
using SizeOp = size::Op;

class Scheduler {
public:
  /// Of all pieces of one kernel.
  struct Shared {
    ir::LaunchBuilder launch;
    ir::SizeAttr workers{};  ///< blocks that run at once; null: not asked yet
    unsigned phase = 0;
  };

  Scheduler(ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule, Shared& shared)
      : module_(module), entry_(entry), kernel_(kernel), schedule_(schedule), context_(module.getContext()),
        axes_(kernel, schedule.fusedOnly), clusters_(kernel, axes_, {schedule.fusedOnly, schedule.reductionBlocks > 0}),
        sizes_(context_, schedule, axes_, clusters_), arguments_(entry),
        products_(schedule, axes_, clusters_, arguments_, temporaries_), shared_(shared) {
    if (llvm::hasSingleElement(module.getOps<ir::KernelOp>()))
      streams_ = BulkStreams::find(module, schedule, arguments_);
  }

  LogicalResult run() {
    for (unsigned i = 0; i < clusters_.list.size(); ++i)
      findFolded(i);
    bool hasProducts = llvm::any_of(clusters_.list, [](const Cluster& c) { return bool(findDot(c)); });
    if (hasProducts && (schedule_.dotLeastRows > 0 || !schedule_.bulkTiles.empty()))
      workers_ = shared_.workers ? shared_.workers : addLet("workers", ir::sizeClusters(context_));
    if (schedule_.dotLeastRows > 0)
      sizes_.workers = workers_;
    const bool letsAreAllowed = !arguments_.hasTemporaries();
    for (const Cluster& cluster : clusters_.list) {
      ir::SizeAttr depth = foldedDepth(cluster);
      chunks_.push_back(depth ? sizes_.chooseCombining(cluster, depth) : sizes_.choose(cluster));
      if (!depth && letsAreAllowed && sizes_.keepsRows(cluster))  // blocks read the number that the launch computes
        for (ir::SizeAttr& rows : chunks_.back())
          if (!ir::constantSize(rows))
            rows = addLet("rows", rows);
    }
    if (streams_)
      streams_->addPieceWays(workers_,
                             [&](ir::SizeAttr piece) { return letsAreAllowed ? addLet("piece", piece) : piece; });
    if (failed(collectTemporaries()))
      return failure();
    for (auto [cluster, chunks] : llvm::zip(clusters_.list, chunks_))
      if (isSplit(cluster))
        addPartials(cluster, chunks);
      else if (cluster.kind == Cluster::Kind::SplitScan)
        addCarries(cluster, chunks);
      else if (ir::DotOp dot = findDot(cluster))
        ways_[dot] = products_.plan(cluster, workers_);
    if (streams_)
      streams_->addTemporaries(arguments_);
    arguments_.assign();
    if (streams_)
      emitStreams(
          *streams_, schedule_, shared_.launch,
          [this](StringRef suffix, ir::SizeAttr blocks) { return createKernel(suffix, blocks); },
          [this] { emitClusters(); });
    else
      emitClusters();
    kernel_.erase();
    return success();
  }

private:
  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(context_, value); }
  ir::SizeAttr combine(SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }

  /// A value that launches compute and code reads. Temporaries come after all of them.
  ir::SizeAttr addLet(StringRef name, ir::SizeAttr value) {
    unsigned argument = arguments_.addLet(name);
    shared_.launch.let(kernel_.getLoc(), argument, value);
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

  /// All that the cluster writes is cut along all of its axes.
  bool writesOnlyPieces(const Cluster& cluster) {
    return llvm::all_of(cluster.roots, [&](Operation* root) {
      auto store = dyn_cast<ir::TileStoreOp>(root);
      if (!store && root->getNumResults() == 0)
        return false;
      Value written = store ? Value(store.getValue()) : Value(root->getResult(0));
      return llvm::all_of(axes_.of(written), [&](Axis axis) { return llvm::is_contained(cluster.parallel, axis); });
    });
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
    temporaries_[value] = arguments_.addTemporary(extents, type ? type.getElementType() : value.getType());
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
    partials_[reduce.getResult()] = arguments_.addTemporary(extents, accumulatorType(reduce.getType()));
  }

  ir::SizeAttr lookBackWords(const Cluster& cluster, ir::SizeAttr pieces) {
    Type element = accumulatorType(cluster.roots[0]->getResult(0).getType());
    const int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    ir::SizeAttr groups = combine(SizeOp::CeilDiv, pieces, size(ir::kLookBackGroup));
    ir::SizeAttr outer = combine(SizeOp::CeilDiv, groups, size(ir::kLookBackGroup));
    ir::SizeAttr values = combine(SizeOp::Add, pieces, combine(SizeOp::Add, groups, outer));
    return combine(SizeOp::Add, size(ir::kLookBackHead),
                   combine(SizeOp::Mul, values, size(static_cast<int64_t>(llvm::divideCeil(bits, 32)))));
  }

  /// What the pieces of a scan combine to, and what comes before each; or what blocks that look back tell each other.
  void addCarries(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    Value result = cluster.roots[0]->getResult(0);
    if (sizes_.looksBack(cluster)) {
      ir::SizeAttr count = sizes_.blockCount(cluster, chunks);
      carries_[result] = arguments_.addTemporary({lookBackWords(cluster, count)}, IntegerType::get(context_, 64));
      return;
    }
    SmallVector<ir::SizeAttr> extents{combine(SizeOp::CeilDiv, axes_.extent(cluster.parallel[0]), chunks[0])};
    for (Axis axis : axes_.of(result))
      if (axis != cluster.parallel[0])
        extents.push_back(axes_.extent(axis));
    for (Temporaries* temporaries : {&partials_, &carries_})
      (*temporaries)[result] = arguments_.addTemporary(extents, accumulatorType(result.getType()));
  }

  void emitCopy(AlignedCopy copy) {
    Cluster elements;
    elements.parallel = axes_.of(copy.load.getResult());
    SmallVector<ir::SizeAttr> pieces = sizes_.choose(elements);
    ir::KernelOp phase = createKernel("align", sizes_.blockCount(elements, pieces));
    phase->setAttr(kAnyPlacement, UnitAttr::get(context_));
    PhaseBuilder builder = buildPhase(phase);
    builder.split(elements.parallel, pieces);
    builder.emitCopy(copy.load, copy.argument);
    builder.finish();
  }

  /// The builder of a phase that reads copies instead of what they stand for.
  PhaseBuilder buildPhase(ir::KernelOp phase, ArrayRef<AlignedCopy> copies) {
    PhaseBuilder builder = buildPhase(phase);
    for (AlignedCopy copy : copies)
      builder.copies[copy.load.getResult()] = copy.argument;
    return builder;
  }

  /// Phase one: blocks multiply pieces of the depth. Phase two: adds those in order and does what follows the product.
  /// `isAnyhow`: they read operands as they lie.
  void emitDepthSplit(const Cluster& cluster, ir::DotOp dot, const DepthSplit& split, bool isAnyhow = false) {
    SmallVector<ir::LaunchBuilder::Way> ways;
    for (const DepthSplit::Blocks& blocks : split.blocks)
      ways.push_back({.name = blocks.name, .when = blocks.when, .emit = [&] {
                        emitPartial(cluster, dot, split, blocks, isAnyhow);
                      }});
    shared_.launch.choose(kernel_.getLoc(), ways);
    Cluster rest;
    rest.parallel = cluster.parallel;
    llvm::copy_if(cluster.roots, std::back_inserter(rest.roots), [&](Operation* root) { return root != dot; });
    SmallVector<ir::SizeAttr> restPieces = sizes_.choose(rest);
    ir::KernelOp sum = createKernel("combine", sizes_.blockCount(rest, restPieces));
    if (isAnyhow)
      sum->setAttr(kAnyPlacement, UnitAttr::get(context_));
    PhaseBuilder combiner = buildPhase(sum);
    combiner.partials[dot.getResult()] = split.partials;
    combiner.split(rest.parallel, restPieces);
    combiner.get(dot.getResult());
    combiner.storeTemporaries(dot);
    for (Operation* root : rest.roots)
      combiner.emitRoot(root);
    combiner.finish();
  }

  void emitPartial(const Cluster& cluster, ir::DotOp dot, const DepthSplit& split, const DepthSplit::Blocks& blocks,
                   bool isAnyhow) {
    Chunks sizes(context_, blocks.schedule, axes_, clusters_);
    ir::SizeAttr count = combine(SizeOp::Mul, sizes.blockCount(cluster, blocks.pieces), split.count);
    ir::KernelOp phase = createKernel("partial", count);
    if (isAnyhow)
      phase->setAttr(kAnyPlacement, UnitAttr::get(context_));
    PhaseBuilder pieces = buildPhase(phase, isAnyhow ? ArrayRef<AlignedCopy>() : ways_[dot].copies);
    SmallVector<Axis> axes{split.depth};
    SmallVector<ir::SizeAttr> steps{split.step};
    llvm::append_range(axes, cluster.parallel);
    llvm::append_range(steps, blocks.pieces);
    pieces.split(axes, steps, groupOf(cluster));
    pieces.emitPartialProduct(dot, pieces.number(split.depth), split.partials);
    pieces.finish();
    setPlan(phase, blocks.schedule.dotPlan);
  }

  ir::KernelOp createKernel(StringRef suffix, ir::SizeAttr blocks) {
    OpBuilder builder(kernel_);
    std::string name = (entry_.getSymName() + "." + suffix + "." + Twine(shared_.phase++)).str();
    OperationState state(kernel_.getLoc(), ir::KernelOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(name));
    state.addAttribute("function_type", TypeAttr::get(FunctionType::get(context_, arguments_.types(), {})));
    Attribute one = size(1);
    state.addAttribute("grid", builder.getArrayAttr({blocks, one, one}));
    state.addAttribute("block", builder.getArrayAttr({one, one, one}));
    Block* body = new Block();
    for (Type type : arguments_.types())
      body->addArgument(type, kernel_.getLoc());
    state.addRegion()->push_back(body);
    auto kernel = cast<ir::KernelOp>(builder.create(state));
    shared_.launch.phase(kernel);
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

  void emitClusters() {
    for (size_t i = 0; i < clusters_.list.size(); ++i)
      emitCluster(clusters_.list[i], chunks_[i]);
  }

  void emitCluster(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    if (cluster.kind == Cluster::Kind::ScalarReduce && !isSplit(cluster) &&
        !temporaries_.contains(cluster.roots[0]->getResult(0)))
      return;  // nothing uses the scalar
    if (isSplit(cluster))
      return emitSplitReduce(cluster, chunks);
    if (cluster.kind == Cluster::Kind::SplitScan)
      return emitScan(cluster, chunks);
    if (cluster.kind != Cluster::Kind::Parallel)
      emitPhase(cluster, {}, size(1), schedule_.dotPlan);
    else if (ir::DotOp dot = findDot(cluster))
      emitProductCluster(cluster, dot, chunks);
    else
      emitPieces(cluster, chunks);
  }

  void emitPieces(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    ir::KernelOp phase = emitPhase(cluster, chunks, sizes_.blockCount(cluster, chunks), "");
    if (auto most = sizes_.mostElements(cluster); most && phase && writesOnlyPieces(cluster))
      phase->setAttr(kBlockElements, IntegerAttr::get(IndexType::get(context_), *most));
  }

  void emitProductCluster(const Cluster& cluster, ir::DotOp dot, ArrayRef<ir::SizeAttr> chunks) {
    const ProductWays& planned = ways_[dot];
    SmallVector<ir::LaunchBuilder::Way> ways;
    if (planned.bulk)
      ways.push_back({.name = "bulk", .needs = planned.bulk->needs, .when = planned.bulkWhen, .emit = [&] {
                        emitBulkProduct(cluster, *planned.bulk);
                      }});
    if (planned.split)
      ways.push_back({.name = "split", .when = planned.split->when, .emit = [&] {
                        emitDepthSplit(cluster, dot, *planned.split);
                      }});
    ways.push_back({.name = "whole", .emit = [&] { emitProduct(cluster, chunks, planned.copies); }});
    auto emit = [&] {
      for (const AlignedCopy& copy : planned.copies)
        shared_.launch.choose(kernel_.getLoc(), {{.name = "in place", .needs = copy.isAligned, .emit = [] {}},
                                                 {.name = "copied", .emit = [&] { emitCopy(copy); }}});
      shared_.launch.choose(kernel_.getLoc(), ways);
    };
    SmallVector<ir::LaunchBuilder::Way> all;
    if (planned.isTiny)
      all.push_back({.name = "tiny", .when = planned.isTiny, .emit = [&] { emitTinyProduct(cluster); }});
    if (planned.isThin)
      all.push_back({.name = "thin", .when = planned.isThin, .emit = [&] { emitThinProduct(cluster, dot); }});
    all.push_back({.name = "aligned", .emit = emit});
    shared_.launch.choose(kernel_.getLoc(), all);
  }

  /// The product as a persistent phase of bulk copies.
  void emitBulkProduct(const Cluster& cluster, const BulkPlan& bulk) {
    SmallVector<ir::LaunchBuilder::Way> ways;
    for (const BulkPlan::Tile& tile : bulk.tiles) {
      auto emit = [&] {
        if (ir::KernelOp phase = emitPhase(cluster, tile.pieces, tile.blocks, tile.plan))
          phase->setAttr("vx.tiles", tile.count);
      };
      ways.push_back({.name = tile.plan, .emit = emit, .cost = tile.cost});
    }
    shared_.launch.chooseLeast(kernel_.getLoc(), ways);
  }

  /// The product in blocks of both sizes.
  void emitProduct(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks, ArrayRef<AlignedCopy> copies) {
    ir::SizeAttr blocks = sizes_.blockCount(cluster, chunks);
    auto usual = [&] { emitPhase(cluster, chunks, blocks, schedule_.dotPlan, copies); };
    ir::SizeAttr few = products_.isSmall(blocks);
    if (!few)
      return usual();
    auto small = [&] { emitSmallProduct(cluster, copies); };
    shared_.launch.choose(kernel_.getLoc(),
                          {{.name = "small", .when = few, .emit = small}, {.name = "usual", .emit = usual}});
  }

  ir::KernelOp emitSmallProduct(const Cluster& cluster, ArrayRef<AlignedCopy> copies) {
    TensorSchedule schedule = products_.small();
    Chunks sizes(context_, schedule, axes_, clusters_);
    SmallVector<ir::SizeAttr> pieces = sizes.choose(cluster);
    return emitPhase(cluster, pieces, sizes.blockCount(cluster, pieces), schedule.dotPlan, copies);
  }

  void emitThinProduct(const Cluster& cluster, ir::DotOp dot) {
    DepthSplit thin = *ways_[dot].split;
    thin.blocks.resize(1);
    thin.blocks[0].when = {};
    emitDepthSplit(cluster, dot, thin, true);
  }

  void emitTinyProduct(const Cluster& cluster) {
    if (ir::KernelOp phase = emitSmallProduct(cluster, {}))
      phase->setAttr(kAnyPlacement, UnitAttr::get(context_));
  }

  /// No chunks: one block does it all. No blocks: nothing, and null. `copies`: read instead of their originals.
  ir::KernelOp emitPhase(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks, ir::SizeAttr blocks, StringRef dotPlan,
                         ArrayRef<AlignedCopy> copies = {}) {
    if (ir::constantSize(blocks) == 0)
      return nullptr;
    bool serial = cluster.kind != Cluster::Kind::Parallel;
    ir::KernelOp phase = createKernel(serial ? "serial" : "tensors", blocks);
    PhaseBuilder builder = buildPhase(phase, copies);
    if (!serial)
      builder.split(cluster.parallel, chunks, groupOf(cluster));
    for (Operation* root : cluster.roots)
      builder.emitRoot(root);
    builder.finish();
    boundStreams(phase, false);
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

  void emitScan(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto scan = cast<ir::ScanOp>(cluster.roots[0]);
    if (sizes_.looksBack(cluster))
      return emitLookBack(cluster, scan, chunks, sizes_.blockCount(cluster, chunks));
    if (axes_.of(scan.getResult()).size() == 1)
      return emitSplitScan(cluster, scan, chunks);
    Cluster columns;
    columns.roots = cluster.roots;
    columns.parallel.append(cluster.parallel.begin() + 1, cluster.parallel.end());
    auto whole = [&] {
      columns.kind = columns.parallel.empty() ? Cluster::Kind::Serial : Cluster::Kind::Parallel;
      SmallVector<ir::SizeAttr> pieces = sizes_.choose(columns);
      emitPhase(columns, pieces, columns.parallel.empty() ? size(1) : sizes_.blockCount(columns, pieces), "");
    };
    shared_.launch.choose(kernel_.getLoc(), {{.name = "split",
                                              .when = sizes_.hasFewColumns(cluster, chunks),
                                              .emit = [&] { emitSplitScan(cluster, scan, chunks); }},
                                             {.name = "columns", .emit = whole}});
  }

  /// Every block combines its piece; those become what comes before each piece; every block scans its piece from there.
  void emitSplitScan(const Cluster& cluster, ir::ScanOp scan, ArrayRef<ir::SizeAttr> chunks) {
    const Axis along = cluster.parallel[0];
    ir::SizeAttr blocks = sizes_.blockCount(cluster, chunks);
    const unsigned totals = partials_.lookup(scan.getResult()), before = carries_.lookup(scan.getResult());
    PhaseBuilder pieces = buildPhase(createKernel("partial", blocks));
    pieces.split(cluster.parallel, chunks);
    pieces.emitScanPartial(scan, pieces.number(along), totals);
    pieces.finish();
    Cluster rest;
    rest.roots = cluster.roots;
    for (Axis axis : axes_.of(scan.getResult()))
      if (axis != along)
        rest.parallel.push_back(axis);
    SmallVector<ir::SizeAttr> restPieces;
    if (!rest.parallel.empty())
      restPieces = sizes_.chooseCombining(rest, combine(SizeOp::CeilDiv, axes_.extent(along), chunks[0]));
    ir::SizeAttr restBlocks = rest.parallel.empty() ? size(1) : sizes_.blockCount(rest, restPieces);
    PhaseBuilder carries = buildPhase(createKernel("carry", restBlocks));
    carries.split(rest.parallel, restPieces);
    carries.emitScanCarries(scan, totals, before);
    carries.finish();
    PhaseBuilder results = buildPhase(createKernel("tensors", blocks));
    results.split(cluster.parallel, chunks);
    results.emitScanPiece(scan, results.number(along), before);
    results.storeTemporaries(scan);
    for (Operation* root : ArrayRef(cluster.roots).drop_front())
      results.emitRoot(root);
    results.finish();
  }

  /// One phase, after one that clears what blocks tell each other in: that may run again and again.
  void emitLookBack(const Cluster& cluster, ir::ScanOp scan, ArrayRef<ir::SizeAttr> chunks, ir::SizeAttr blocks) {
    constexpr int64_t kCleared = 2048;
    const unsigned state = carries_.lookup(scan.getResult());
    ir::SizeAttr words = lookBackWords(cluster, blocks);
    PhaseBuilder clear = buildPhase(createKernel("clear", combine(SizeOp::CeilDiv, words, size(kCleared))));
    clear.emitClear(words, kCleared, state);
    clear.finish();
    PhaseBuilder pieces = buildPhase(createKernel("tensors", blocks));
    pieces.takeNumber(scan, state);
    pieces.split(cluster.parallel, chunks);
    pieces.emitLookBackPiece(scan, state);
    pieces.storeTemporaries(scan);
    for (Operation* root : ArrayRef(cluster.roots).drop_front())
      pieces.emitRoot(root);
    pieces.finish();
  }

  ModuleOp module_;
  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  const TensorSchedule& schedule_;
  MLIRContext* context_;
  Axes axes_;
  Clusters clusters_;
  Chunks sizes_;
  EntryArguments arguments_;
  Temporaries temporaries_;
  Products products_;
  std::unique_ptr<BulkStreams> streams_;          ///< null: launches compute all clusters one after the other
  ir::SizeAttr workers_;                          ///< blocks that run at once; null: not asked
  Temporaries partials_;                          ///< partial results of split reductions
  Temporaries carries_;                           ///< what comes before each piece of a split scan
  llvm::DenseMap<Operation*, ProductWays> ways_;  ///< per product
  llvm::DenseSet<Value> folded_;                  ///< combined where they are needed
  std::vector<SmallVector<ir::SizeAttr>> chunks_;
  Shared& shared_;
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

/// Code of scalars alone needs no phases: one block runs it in order.
bool holdsTiles(ir::KernelOp kernel) {
  const auto isOnTiles = [](Operation* op) {
    return llvm::any_of(op->getResults(), isTile) || llvm::any_of(op->getOperands(), isTile);
  };
  return kernel.walk([&](Operation* op) { return isOnTiles(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

void runAsOneBlock(ir::KernelOp kernel) {
  Attribute one = ir::sizeConstant(kernel.getContext(), 1);
  auto ones = ArrayAttr::get(kernel.getContext(), {one, one, one});
  kernel.setWholeTensor(false);
  kernel.setGridAttr(ones);
  kernel.setBlockAttr(ones);
}

class StepScheduler {
public:
  StepScheduler(ModuleOp module, ir::EntryOp entry, const TensorSchedule& schedule, ir::LaunchOp launch)
      : module_(module), entry_(entry), schedule_(schedule), shared_{ir::LaunchBuilder(launch)} {}

  LogicalResult run(const std::vector<ControlStep>& steps, std::optional<unsigned> workers) {
    if (workers) {
      shared_.launch.let(entry_.getLoc(), *workers, ir::sizeClusters(entry_.getContext()));
      shared_.workers = ir::sizeScalar(entry_.getContext(), *workers);
    }
    if (failed(schedule(steps)))
      return failure();
    for (auto kernel : module_.getOps<ir::KernelOp>())
      addArguments(kernel);
    return success();
  }

private:
  /// Of the entry, where pieces that were scheduled later brought some.
  void addArguments(ir::KernelOp kernel) {
    ArrayRef<Type> types = entry_.getFunctionType().getInputs();
    for (unsigned i = kernel.getNumArguments(); i < types.size(); ++i)
      kernel.insertArgument(i, types[i], {}, kernel.getLoc());
  }

  LogicalResult schedule(const std::vector<ControlStep>& steps) {
    return success(llvm::all_of(steps, [&](const ControlStep& step) { return succeeded(schedule(step)); }));
  }

  LogicalResult schedule(const ControlStep& step) {
    bool isFine = true;
    auto all = [&](const std::vector<ControlStep>& steps) { isFine &= succeeded(schedule(steps)); };
    if (step.piece)
      return schedule(step.piece);
    const Location origin = step.origin.value_or(entry_.getLoc());
    auto round = [&] {
      all(step.steps);
      for (auto [a, b] : step.exchanges)
        shared_.launch.exchange(origin, a, b);
    };
    if (step.read)
      shared_.launch.read(origin, step.read->first, step.read->second);
    else if (step.round)
      shared_.launch.loop(origin, *step.round, round);
    else
      shared_.launch.branch(origin, step.condition, round, [&] { all(step.otherwise); });
    return success(isFine);
  }

  LogicalResult addPhase(ir::KernelOp kernel, StringRef suffix) {
    kernel.setSymName((entry_.getSymName() + "." + suffix + "." + Twine(shared_.phase++)).str());
    shared_.launch.phase(kernel);
    return success();
  }

  LogicalResult schedule(ir::KernelOp piece) {
    addArguments(piece);
    if (!piece.getWholeTensor())
      return addPhase(piece, "iterate");
    if (!holdsTiles(piece)) {
      runAsOneBlock(piece);
      return addPhase(piece, "serial");
    }
    if (!schedule_.fusedOnly)
      flattenBetween(piece);
    separateOperands(piece);
    return Scheduler(module_, entry_, piece, schedule_, shared_).run();
  }

  ModuleOp module_;
  ir::EntryOp entry_;
  const TensorSchedule& schedule_;
  Scheduler::Shared shared_;
};

LogicalResult scheduleSteps(ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule) {
  std::optional<unsigned> workers;
  auto steps = cutAtControl(entry, kernel, schedule, workers);
  if (failed(steps))
    return failure();
  return StepScheduler(module, entry, schedule, ir::createLaunch(entry)).run(*steps, workers);
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
  if (schedule.streamedStep > 0)
    streamReductions(module, schedule.streamedStep);
  if (failed(scheduleSteps(module, *entries.begin(), kernels[0], schedule)))
    return failure();
  return checkFused(module);
}

std::unique_ptr<Pass> createScheduleTensorsPass(TensorSchedule schedule) {
  return std::make_unique<ScheduleTensorsPass>(schedule);
}

}  // namespace vortex::passes
