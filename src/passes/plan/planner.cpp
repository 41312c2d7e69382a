#include "passes/plan/planner.h"

#include "ir/look_back.h"
#include "passes/plan/product_steps.h"

namespace vortex::passes {
namespace {

using namespace mlir;
using SizeOp = size::Op;
using Work = PhasePlan::Work;
using Steps = std::vector<StepPlan>;

class Planner {
public:
  Planner(ModuleOp module, ir::EntryOp entry, KernelPlan& plan, const TensorSchedule& rules, KnownLets lets)
      : plan_(plan), rules_(rules), context_(entry.getContext()), sizes_(context_, rules, plan.axes, plan.clusters),
        arguments_(plan.arguments), workers_(lets.workers), areLetsSet_(lets.areAllSet) {
    for (const Cluster& cluster : clusters())
      ruled_.push_back(productsOf(cluster).empty() ? nullptr : std::make_unique<Ruled>(*this, cluster));
    if (llvm::hasSingleElement(module.getOps<ir::KernelOp>()))
      kernel_ = *module.getOps<ir::KernelOp>().begin();
    if (kernel_)
      plan_.streams = BulkStreams::find(module, rules, arguments_);
  }

  LogicalResult run() {
    for (const Cluster& cluster : clusters())
      findFolded(cluster);
    planPieces();
    if (failed(collectTemporaries()))
      return failure();
    llvm::DenseMap<Operation*, ProductWays> ways;
    for (auto [cluster, chunks] : llvm::zip(clusters(), chunks_))
      if (isSplit(cluster))
        addPartials(cluster, chunks);
      else if (cluster.kind == Cluster::Kind::SplitScan)
        addCarries(cluster, chunks);
      else if (ir::DotOp dot = findDot(cluster))
        ways[dot] = ruled(cluster).products.plan(cluster, workers_);
    if (plan_.streams)
      plan_.streams->addTemporaries(arguments_);
    arguments_.assign();

    Steps steps;
    for (auto [cluster, chunks] : llvm::zip(clusters(), chunks_))
      if (Steps planned = planCluster(cluster, chunks, ways); !joinCombining(steps, cluster))
        llvm::append_range(steps, planned);
    if (plan_.streams)
      steps = planStreams(*plan_.streams, std::move(steps));
    dropEmpty(steps);
    llvm::append_range(plan_.steps, steps);
    return success();
  }

private:
  /// Grids that have no blocks in any launch.
  static void dropEmpty(Steps& steps) {
    llvm::erase_if(steps, [](const StepPlan& step) {
      auto phase = std::get_if<PhasePlan>(&step.step);
      return phase && phase->work == Work::Compute && ir::constantSize(phase->blocks) == 0;
    });
    for (StepPlan& step : steps)
      if (auto choice = std::get_if<StepPlan::Choice>(&step.step))
        for (StepPlan::Way& way : choice->ways)
          dropEmpty(way.steps);
  }

  const std::vector<Cluster>& clusters() const { return plan_.clusters.list; }

  //===-- rules of products -------------------------------------------------------------------------------------===//

  /// What the target says of the products of one cluster, and what follows from it.
  struct Ruled {
    Ruled(Planner& planner, const Cluster& cluster)
        : rules(planner.rules_.forProducts(productsOf(cluster))),
          sizes(planner.context_, rules, planner.plan_.axes, planner.plan_.clusters),
          products(rules, planner.plan_.axes, planner.plan_.clusters, planner.arguments_, planner.plan_.temporaries) {}

    const TensorSchedule rules;
    Chunks sizes;
    Products products;
  };

  /// Of a cluster with products.
  Ruled& ruled(const Cluster& cluster) { return *ruled_[static_cast<size_t>(&cluster - clusters().data())]; }
  /// Of a cluster of the kernel's.
  Chunks& sizesOf(const Cluster& cluster) {
    const std::unique_ptr<Ruled>& own = ruled_[static_cast<size_t>(&cluster - clusters().data())];
    return own ? own->sizes : sizes_;
  }

  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(context_, value); }
  ir::SizeAttr combine(SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }

  /// A value that launches compute and code reads. Temporaries come after all of them.
  ir::SizeAttr addLet(StringRef name, ir::SizeAttr value) {
    unsigned argument = arguments_.addLet(name);
    if (kernel_ && argument < kernel_.getNumArguments())  // before the program's temporaries
      kernel_.insertArgument(argument, arguments_.types()[argument], {}, kernel_.getLoc());
    plan_.steps.push_back({StepPlan::Let{argument, value}});
    return ir::sizeScalar(context_, argument);
  }

  //===-- what is cut, and what crosses -------------------------------------------------------------------------===//

  /// How much of each axis a block of each cluster takes.
  void planPieces() {
    const bool asks = llvm::any_of(
        clusters(), [&](const Cluster& each) { return findDot(each) && ruled(each).rules.asksForWorkers(); });
    if (!asks)
      workers_ = {};
    else if (!workers_)
      workers_ = addLet("workers", ir::sizeClusters(context_));
    for (const std::unique_ptr<Ruled>& own : ruled_)
      if (own && own->rules.dotLeastRows > 0)
        own->sizes.workers = workers_;
    const bool letsAreAllowed = areLetsSet_ && !arguments_.hasTemporaries();
    for (const Cluster& cluster : clusters()) {
      ir::SizeAttr depth = foldedDepth(cluster);
      Chunks& sizes = sizesOf(cluster);
      chunks_.push_back(depth ? sizes.chooseCombining(cluster, depth, sizes.innerElements(cluster))
                              : sizes.choose(cluster));
      if (!depth && letsAreAllowed && sizes.keepsRows(cluster))  // blocks read the number that the launch computes
        for (ir::SizeAttr& rows : chunks_.back())
          if (!ir::constantSize(rows))
            rows = addLet("rows", rows);
    }
    if (plan_.streams && workers_)
      plan_.streams->compareRounds(workers_);
    if (plan_.streams)
      plan_.streams->addPieceWays(workers_,
                                  [&](ir::SizeAttr piece) { return letsAreAllowed ? addLet("piece", piece) : piece; });
  }

  /// Partial results that one later phase needs once are combined there, without a phase of their own.
  void findFolded(const Cluster& cluster) {
    if (!isSplit(cluster) || rules_.reductionBlocks == 0)
      return;
    Value value = cluster.roots[0]->getResult(0);
    if (llvm::any_of(value.getUsers(), [](Operation* user) { return user->hasAttr(kApartAttribute); }))
      return;  // what has axes of its own is read from memory
    unsigned users = 0;
    bool once = false;
    for (const Cluster& other : clusters()) {
      bool uses = false;
      for (Operation* root : other.roots)
        plan_.clusters.forEachSource(
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
      plan_.clusters.forEachSource(root, [&](Value source) {
        if (!folded_.contains(source))
          return;
        unsigned number = plan_.clusters.clusterOf(source.getDefiningOp());
        const Cluster& split = clusters()[number];
        if (split.kind == Cluster::Kind::SplitReduce && number < chunks_.size())
          depth = partialCount(split, chunks_[number]);
      });
    return depth;
  }

  ir::SizeAttr partialCount(const Cluster& split, ArrayRef<ir::SizeAttr> chunks) {
    return combine(SizeOp::CeilDiv, plan_.axes.extent(split.parallel[0]), chunks[0]);
  }

  /// All that the cluster writes is cut along all of its axes.
  bool writesOnlyPieces(const Cluster& cluster) {
    return llvm::all_of(cluster.roots, [&](Operation* root) {
      auto store = dyn_cast<ir::TileStoreOp>(root);
      if (!store && root->getNumResults() == 0)
        return false;
      Value written = store ? Value(store.getValue()) : Value(root->getResult(0));
      return llvm::all_of(plan_.axes.of(written),
                          [&](Axis axis) { return llvm::is_contained(cluster.parallel, axis); });
    });
  }

  /// Every element the cluster writes belongs to one of `value`.
  bool needsOnce(const Cluster& cluster, Value value) {
    SmallVector<Axis> own = plan_.axes.of(value);
    bool once = !own.empty();
    for (Operation* root : cluster.roots) {
      auto store = dyn_cast<ir::TileStoreOp>(root);
      once &= store &&
              llvm::all_of(plan_.axes.of(store.getValue()), [&](Axis axis) { return llvm::is_contained(own, axis); });
    }
    return once;
  }

  /// Results of roots used, directly or through recomputed operations, by a later cluster.
  LogicalResult collectTemporaries() {
    for (auto [number, cluster] : llvm::enumerate(clusters()))
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
        if (!plan_.clusters.isRoot(producer))
          pending.push_back(producer);
        else if (plan_.clusters.clusterOf(producer) != cluster && !folded_.contains(value) &&
                 !plan_.temporaries.contains(value) && failed(cross(value)))
          result = failure();
      });
    }
    return result;
  }

  LogicalResult cross(Value value) {
    SmallVector<ir::SizeAttr> extents;
    for (Axis axis : plan_.axes.of(value)) {
      ir::SizeAttr extent = plan_.axes.extent(axis);
      if (!extent)
        return value.getDefiningOp()->emitError("the extent of this intermediate tensor is computed in the kernel, so "
                                                "its memory cannot be planned before the launch");
      extents.push_back(extent);
    }
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      extents.push_back(size(1));
    plan_.temporaries[value] = arguments_.addTemporary(extents, type ? type.getElementType() : value.getType());
    return success();
  }

  void addPartials(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    auto reduce = cast<ir::ReduceOp>(cluster.roots[0]);
    if (!folded_.contains(reduce.getResult()) && !plan_.temporaries.contains(reduce.getResult()))
      return;  // nothing uses it
    SmallVector<ir::SizeAttr> extents{sizes_.blockCount(cluster, chunks)};
    if (cluster.kind == Cluster::Kind::SplitReduce) {
      extents[0] = partialCount(cluster, chunks);
      for (Axis axis : plan_.axes.of(reduce.getResult()))
        extents.push_back(plan_.axes.extent(axis));
    }
    const unsigned argument = arguments_.addTemporary(extents, accumulatorType(reduce.getType()));
    partials_[reduce.getResult()] = argument;
    if (folded_.contains(reduce.getResult()))
      plan_.partials[reduce.getResult()] = argument;
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
    SmallVector<ir::SizeAttr> extents{combine(SizeOp::CeilDiv, plan_.axes.extent(cluster.parallel[0]), chunks[0])};
    for (Axis axis : plan_.axes.of(result))
      if (axis != cluster.parallel[0])
        extents.push_back(plan_.axes.extent(axis));
    for (Temporaries* temporaries : {&partials_, &carries_})
      (*temporaries)[result] = arguments_.addTemporary(extents, accumulatorType(result.getType()));
  }

  //===-- steps -------------------------------------------------------------------------------------------------===//

  Steps planCluster(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks,
                    const llvm::DenseMap<Operation*, ProductWays>& ways) {
    if (cluster.kind == Cluster::Kind::ScalarReduce && !isSplit(cluster) &&
        !plan_.temporaries.contains(cluster.roots[0]->getResult(0)))
      return {};  // nothing uses the scalar
    if (isSplit(cluster))
      return planSplitReduce(cluster, chunks);
    if (cluster.kind == Cluster::Kind::SplitScan)
      return planScan(cluster, chunks);
    if (cluster.kind != Cluster::Kind::Parallel)
      return planSerial(cluster);
    if (ir::DotOp dot = findDot(cluster)) {
      Ruled& own = ruled(cluster);
      return ProductSteps(own.rules, plan_, own.products, own.sizes).plan(cluster, ways.at(dot), chunks);
    }
    PhasePlan phase = pieces(cluster, chunks);
    if (writesOnlyPieces(cluster))
      phase.elements = sizes_.mostElements(cluster);
    return {{phase}};
  }

  PhasePlan pieces(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    PhasePlan phase{.name = "tensors", .blocks = sizes_.blockCount(cluster, chunks), .axes = cluster.parallel};
    phase.pieces.assign(chunks.begin(), chunks.end());
    phase.roots = cluster.roots;
    return phase;
  }

  /// One block does it all.
  Steps planSerial(const Cluster& cluster) {
    PhasePlan phase{.name = "serial", .blocks = size(1)};
    phase.roots = cluster.roots;
    phase.unit = rules_.forProducts(productsOf(cluster)).dotPlan;
    return {{phase}};
  }

  /// Each block reduces its piece into its number of the partial results; then those are combined in order, unless a later phase does it.
  Steps planSplitReduce(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    Value result = cluster.roots[0]->getResult(0);
    auto partial = partials_.find(result);
    if (partial == partials_.end())
      return {};
    const bool isScalar = cluster.kind == Cluster::Kind::ScalarReduce;
    PhasePlan first = pieces(cluster, chunks);
    first.work = Work::PartialReduce;
    first.name = "partial";
    first.roots.clear();
    first.subject = cluster.roots[0];
    first.target = partial->second;
    if (!isScalar)
      first.numbered = cluster.parallel[0];
    if (folded_.contains(result))
      return {{first}};
    Cluster rest;
    rest.roots = cluster.roots;
    if (!isScalar)
      rest.parallel.append(cluster.parallel.begin() + 1, cluster.parallel.end());
    ir::SizeAttr depth = isScalar ? size(1) : partialCount(cluster, chunks);
    // As many small blocks as there is to combine: few would wait for what all others have left in the caches.
    ir::SizeAttr inner = size(1);
    for (Axis axis : plan_.axes.of(result))
      if (!llvm::is_contained(rest.parallel, axis))
        inner = combine(SizeOp::Mul, inner, plan_.axes.extent(axis));
    PhasePlan second = pieces(rest, sizes_.chooseCombining(rest, depth, inner));
    second.work = Work::Combine;
    second.name = "combine";
    second.roots.clear();
    second.subject = cluster.roots[0];
    second.source = partial->second;
    return {{first}, {second}};
  }

  /// Stores of vectors that the phase before leaves in the same pieces are part of it: a launch less.
  bool joinCombining(Steps& steps, const Cluster& cluster) {
    PhasePlan* before = steps.empty() ? nullptr : std::get_if<PhasePlan>(&steps.back().step);
    if (!before || before->work != Work::Combine || !before->roots.empty() || cluster.kind != Cluster::Kind::Parallel ||
        cluster.parallel != before->axes)
      return false;
    const bool areStores = llvm::all_of(cluster.roots, [&](Operation* root) {
      auto store = dyn_cast<ir::TileStoreOp>(root);
      return store && plan_.axes.of(store.getValue()) == before->axes;
    });
    if (areStores)
      before->roots = cluster.roots;
    return areStores;
  }

  Steps planScan(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    if (sizes_.looksBack(cluster))
      return planLookBack(cluster, chunks);
    if (plan_.axes.of(cluster.roots[0]->getResult(0)).size() == 1)
      return planSplitScan(cluster, chunks);
    Cluster columns;
    columns.roots = cluster.roots;
    columns.parallel.append(cluster.parallel.begin() + 1, cluster.parallel.end());
    Steps whole = columns.parallel.empty() ? planSerial(columns) : Steps{{pieces(columns, sizes_.choose(columns))}};
    return choose(
        {{.name = "split", .when = sizes_.hasFewColumns(cluster, chunks), .steps = planSplitScan(cluster, chunks)},
         {.name = "columns", .steps = whole}});
  }

  /// Every block combines its piece; those become what comes before each piece; every block scans its piece from there.
  Steps planSplitScan(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    Operation* scan = cluster.roots[0];
    const Axis along = cluster.parallel[0];
    PhasePlan totals = pieces(cluster, chunks);
    totals.subject = scan;
    totals.numbered = along;
    PhasePlan results = totals;
    totals.work = Work::ScanTotals;
    totals.name = "partial";
    totals.roots.clear();
    totals.target = partials_.lookup(scan->getResult(0));
    Cluster rest;
    rest.roots = cluster.roots;
    for (Axis axis : plan_.axes.of(scan->getResult(0)))
      if (axis != along)
        rest.parallel.push_back(axis);
    SmallVector<ir::SizeAttr> restPieces;
    if (!rest.parallel.empty())
      restPieces = sizes_.chooseCombining(rest, combine(SizeOp::CeilDiv, plan_.axes.extent(along), chunks[0]), size(1));
    PhasePlan carries{.work = Work::ScanCarries, .name = "carry", .axes = rest.parallel, .pieces = restPieces};
    carries.blocks = rest.parallel.empty() ? size(1) : sizes_.blockCount(rest, restPieces);
    carries.subject = scan;
    carries.source = totals.target;
    carries.target = carries_.lookup(scan->getResult(0));
    results.work = Work::ScanPieces;
    results.roots.erase(results.roots.begin());
    results.source = carries.target;
    return {{totals}, {carries}, {results}};
  }

  /// One phase, after one that clears what blocks tell each other in: that may run again and again.
  Steps planLookBack(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
    constexpr int64_t kCleared = 2048;
    PhasePlan scan = pieces(cluster, chunks);
    scan.work = Work::LookBack;
    scan.subject = cluster.roots[0];
    scan.roots.erase(scan.roots.begin());
    scan.target = carries_.lookup(cluster.roots[0]->getResult(0));
    PhasePlan clear{.work = Work::Clear, .name = "clear", .pieces = {size(kCleared)}};
    clear.extent = lookBackWords(cluster, scan.blocks);
    clear.blocks = combine(SizeOp::CeilDiv, clear.extent, clear.pieces[0]);
    clear.target = scan.target;
    return {{clear}, {scan}};
  }

  /// The whole kernel streamed, in one of its ways, in launches that can; `otherwise` in others.
  Steps planStreams(const BulkStreams& streams, Steps otherwise) {
    std::vector<StepPlan::Way> ways;
    if (!streams.ways().empty()) {
      std::vector<StepPlan::Way> streamed;
      for (const BulkStreams::PieceWay& each : streams.pieceWays())
        streamed.push_back({.name = each.name.str(), .when = each.when, .steps = planStreamPieces(streams, each)});
      llvm::append_range(streamed, planWidths(streams, streams.ways(), nullptr));
      ways.push_back({.name = "streamed",
                      .needs = streams.needs(),
                      .when = streams.ways().back().when,
                      .steps = choose(std::move(streamed))});
    }
    ways.push_back({.name = "in phases", .steps = std::move(otherwise)});
    return choose(std::move(ways));
  }

  /// For launches that the widest way is wide enough for. `parts`: of pieces of the streamed axis; null: whole.
  std::vector<StepPlan::Way> planWidths(const BulkStreams& streams, ArrayRef<BulkStreams::Way> all,
                                        const StreamParts* parts) {
    std::vector<StepPlan::Way> ways;
    for (const BulkStreams::Way& way : all) {
      PhasePlan phase{.work = parts ? Work::StreamPieces : Work::Stream, .name = "stream", .blocks = way.blocks};
      phase.axes = streams.cluster().parallel;
      phase.pieces = way.pieces;
      phase.roots = streams.cluster().roots;
      phase.unit = way.plan;
      phase.way = &way;
      phase.parts = parts;
      ways.push_back({.name = way.plan.str(), .when = way.when, .steps = {{phase}}});
    }
    if (!ways.empty())
      ways.back().when = {};
    return ways;
  }

  /// Blocks have pieces of the streamed axis; then a phase combines what they leave, and does what follows the loop.
  Steps planStreamPieces(const BulkStreams& streams, const BulkStreams::PieceWay& pieces) {
    const Cluster& cluster = streams.cluster();
    PhasePlan sum{.work = Work::CombineStream, .name = "combine", .axes = cluster.parallel};
    sum.pieces.assign(cluster.parallel.size(), size(1));
    sum.blocks = Chunks(context_, rules_, streams.axes(), streams.clusters()).blockCount(cluster, sum.pieces);
    llvm::copy_if(cluster.roots, std::back_inserter(sum.roots),
                  [&](Operation* root) { return root != streams.stream().loop; });
    sum.parts = &pieces.parts;
    sum.isAnyhow = true;
    Steps steps = choose(planWidths(streams, pieces.ways, &pieces.parts));
    steps.push_back({sum});
    return steps;
  }

  KernelPlan& plan_;
  const TensorSchedule& rules_;
  MLIRContext* context_;
  Chunks sizes_;
  EntryArguments& arguments_;
  std::vector<std::unique_ptr<Ruled>> ruled_;  ///< of each cluster; null: it has no products
  ir::SizeAttr workers_;
  bool areLetsSet_;
  ir::KernelOp kernel_;           ///< that is planned, where it is no piece of a launch
  Temporaries partials_;          ///< partial results of split reductions
  Temporaries carries_;           ///< what comes before each piece of a split scan
  llvm::DenseSet<Value> folded_;  ///< combined where they are needed
  std::vector<SmallVector<ir::SizeAttr>> chunks_;
};

}  // namespace

std::unique_ptr<KernelPlan> planKernel(ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel,
                                       const TensorSchedule& rules, KnownLets lets) {
  auto plan = std::make_unique<KernelPlan>(entry, kernel, rules);
  if (failed(Planner(module, entry, *plan, rules, lets).run()))
    return nullptr;
  return plan;
}

}  // namespace vortex::passes
