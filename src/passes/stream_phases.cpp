#include "passes/stream_phases.h"

#include "passes/phase_builder.h"
#include "passes/stream_bounds.h"

namespace vortex::passes {

using namespace mlir;

namespace {

class StreamPhases {
public:
  using Ways = SmallVector<ir::LaunchBuilder::Way>;

  StreamPhases(const BulkStreams& streams, const TensorSchedule& schedule, ir::LaunchBuilder& launch,
               const std::function<ir::KernelOp(StringRef, ir::SizeAttr)>& createKernel)
      : streams_(streams), schedule_(schedule), launch_(launch), createKernel_(createKernel) {}

  /// For launches that the widest way is wide enough for.
  void emit() {
    Ways ways = waysOf(streams_.ways(), [&](const BulkStreams::Way& way) { emitWhole(way); });
    for (const BulkStreams::PieceWay& pieces : llvm::reverse(streams_.pieceWays()))
      ways.insert(ways.begin(),
                  {.name = pieces.name, .when = pieces.when, .emit = [this, &pieces] { emitPieces(pieces); }});
    launch_.choose(location(), ways);
  }

private:
  Location location() const {
    ir::KernelOp kernel = streams_.kernel();
    return kernel.getLoc();
  }

  static Ways waysOf(ArrayRef<BulkStreams::Way> all, const std::function<void(const BulkStreams::Way&)>& emit) {
    Ways ways;
    for (const BulkStreams::Way& way : all)
      ways.push_back({.name = way.plan, .when = way.when, .emit = [emit, &way] { emit(way); }});
    if (!ways.empty())
      ways.back().when = {};
    return ways;
  }

  PhaseBuilder build(ir::KernelOp phase) {
    return PhaseBuilder(streams_.kernel(), phase, streams_.axes(), streams_.clusters(), noTemporaries_);
  }

  static scf::ForOp finish(ir::KernelOp phase, const BulkStreams::Way& way) {
    setPlan(phase, way.plan);
    scf::ForOp loop = *phase.getBody().front().getOps<scf::ForOp>().begin();
    setChunkSize(loop, way.step);
    return loop;
  }

  void emitWhole(const BulkStreams::Way& way) {
    ir::KernelOp phase = createKernel_("stream", way.blocks);
    PhaseBuilder builder = build(phase);
    builder.split(streams_.cluster().parallel, way.pieces);
    for (Operation* root : streams_.cluster().roots)
      builder.emitRoot(root);
    builder.finish();
    finish(phase, way);
    boundStreams(phase, true);
  }

  /// Blocks have pieces of the streamed axis; then a phase combines what they leave, and does what follows the loop.
  void emitPieces(const BulkStreams::PieceWay& pieces) {
    launch_.choose(location(),
                   waysOf(pieces.ways, [&](const BulkStreams::Way& way) { emitPieces(pieces.parts, way); }));
    emitCombination(pieces.parts);
  }

  void emitPieces(const StreamParts& parts, const BulkStreams::Way& way) {
    ir::KernelOp phase = createKernel_("stream", way.blocks);
    PhaseBuilder builder = build(phase);
    scf::ForOp whole = streams_.stream().loop;
    Value number = builder.split(streams_.cluster().parallel, way.pieces, 1, true);
    builder.emitRoot(whole);
    builder.storeParts(whole, parts, number);
    builder.finish();
    scf::ForOp loop = finish(phase, way);
    loop->setAttr(kRowsAttr, IntegerAttr::get(IndexType::get(phase.getContext()), parts.rows));
    Value extent = loop.getUpperBound();
    boundStreams(phase, true);
    OpBuilder before(loop);
    Value piece = emitSize(before, loop.getLoc(), parts.piece, phase.getBody().getArguments());
    boundToPiece(loop, extent, piece, number);
  }

  void emitCombination(const StreamParts& parts) {
    const Cluster& cluster = streams_.cluster();
    MLIRContext* context = parts.piece.getContext();
    SmallVector<ir::SizeAttr> ones(cluster.parallel.size(), ir::sizeConstant(context, 1));
    Chunks sizes(context, schedule_, streams_.axes(), streams_.clusters());
    ir::KernelOp phase = createKernel_("combine", sizes.blockCount(cluster, ones));
    phase->setAttr(kAnyPlacement, UnitAttr::get(context));
    PhaseBuilder builder = build(phase);
    builder.split(cluster.parallel, ones);
    builder.combineParts(streams_.stream(), parts);
    for (Operation* root : cluster.roots)
      if (root != streams_.stream().loop)
        builder.emitRoot(root);
    builder.finish();
  }

  const BulkStreams& streams_;
  const TensorSchedule& schedule_;
  ir::LaunchBuilder& launch_;
  const std::function<ir::KernelOp(StringRef, ir::SizeAttr)>& createKernel_;
  const Temporaries noTemporaries_{};
};

}  // namespace

void emitStreams(const BulkStreams& streams, const TensorSchedule& schedule, ir::LaunchBuilder& launch,
                 const std::function<ir::KernelOp(StringRef, ir::SizeAttr)>& createKernel,
                 const std::function<void()>& otherwise) {
  SmallVector<ir::LaunchBuilder::Way> ways;
  if (!streams.ways().empty())
    ways.push_back({.name = "streamed", .needs = streams.needs(), .when = streams.ways().back().when, .emit = [&] {
                      StreamPhases(streams, schedule, launch, createKernel).emit();
                    }});
  ways.push_back({.name = "in phases", .emit = otherwise});
  ir::KernelOp kernel = streams.kernel();
  launch.choose(kernel.getLoc(), ways);
}

}  // namespace vortex::passes
