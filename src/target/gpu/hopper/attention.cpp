// producer (one thread):            consumers (64 rows each), which take turns:
//   copy Q                            wait for Q, K₀; S = Q·K₀; P = softmax(S)
//   for each chunk j                  for each further chunk j
//     copy K_j                          wait for K_j, start S = Q·K_j
//     copy V_j                          wait for V_{j-1}, start O += P·V_{j-1}; end of the turn
//                                       wait for S; P, r = softmax(S), beside the second product and those of the other consumer
//                                       wait for O; O = O · r, round P
//                                     O += P·V of the last chunk; finish, store
//
// A turn is from the start of the first product to that of the second: while one consumer computes its softmax, the matrix unit works for the others.
// Weights go from sums to operand in the registers they are in.
#include "target/gpu/hopper/attention.h"

#include "base/check.h"
#include "passes/phase_marks.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/epilogue.h"
#include "target/gpu/hopper/online_softmax.h"
#include "target/gpu/hopper/planned_phase.h"

namespace vortex::target::gpu::hopper {

namespace vxnv = ir::vxnv;
namespace arith = mlir::arith;
namespace scf = mlir::scf;

namespace {

std::optional<StreamConfiguration> configurationOf(ir::KernelOp phase) {
  std::optional<StreamConfiguration> found;
  phase.walk([&](ir::DotOp dot) {
    auto plan = dot->getAttrOfType<mlir::StringAttr>(passes::kUnit);
    if (auto parsed = plan ? parseStreamConfiguration(plan.str()) : std::nullopt)
      found = parsed;
  });
  return found;
}

class Attention : public PlannedPhase {
public:
  Attention(Lowering& lowering, const StreamConfiguration& plan) : l(lowering), plan_(plan), maps_(lowering) {}

  int64_t chooseThreads(mlir::Operation*, std::optional<int64_t>) override { return plan_.threads(); }
  bool lowerPhase() override;

private:
  void collect();
  void countChunks();
  void makeRings();
  void emitProducer();
  void emitConsumer(Epilogue& epilogue);
  void finishRows(Epilogue& epilogue, Value sums, RowState& state);
  /// The loop's scalars, for a chunk; where it begins.
  Value lowerBody(Value chunk);
  OnlineSoftmax::Result softmax(Value chunk, Value scores, const RowState& before);
  Value startScores(Value queries, Value keys);
  Value startResults(Value sums, mlir::ValueRange words, Value values);
  Values valuesOf(Value sums);
  Value take(Value ring, bool isProducer);
  void release(Value ring) { l.b.create<vxnv::ReleaseOp>(l.loc, ring); }
  Value wait(Value sums, int64_t pending) { return l.b.create<vxnv::DotWaitOp>(l.loc, sums.getType(), sums, pending); }

  int64_t steps() const { return plan_.width / kRowElements; }
  int64_t queryBytes() const { return int64_t(plan_.rows()) * plan_.width * 2; }
  int64_t chunkBytes() const { return int64_t(plan_.keys) * plan_.width * 2; }

  static constexpr int64_t kRowElements = 64;  ///< of 16 bits in a swizzled row
  static constexpr int64_t kStages = 2;

  Lowering& l;
  StreamConfiguration plan_;
  Maps maps_;
  passes::StreamLoop stream_;
  std::optional<OnlineSoftmax> softmax_;
  llvm::SmallVector<ir::TileStoreOp> stores_;
  mlir::Type element_;
  Value begin_, extent_;           ///< of the streamed axis: the first chunk's first element, all
  Value total_;                    ///< chunks, at least one
  Value queries_, keys_, values_;  ///< rings
  int64_t staging_ = 0;            ///< in shared memory
  Value group_;
};

/// Scalars are computed before the roles begin.
void Attention::collect() {
  for (mlir::Operation& op : l.phase.getBody().front()) {
    bool hasTiles = llvm::any_of(op.getResultTypes(), llvm::IsaPred<mlir::RankedTensorType>);
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      auto stream = passes::matchStream(loop);
      VORTEX_CHECK(stream, "a loop that was planned as online softmax has another form");
      stream_ = *stream;
    } else if (auto store = llvm::dyn_cast<ir::TileStoreOp>(op)) {
      stores_.push_back(store);
    } else if (auto id = llvm::dyn_cast<ir::BlockIdOp>(op)) {
      // The last rows first: masks leave them the most work.
      Value number = l.b.create<ir::vxt::BlockIdOp>(l.loc, l.b.getIndexType(), id.getAxisAttr());
      Value blocks = l.b.create<ir::vxt::GridDimOp>(l.loc, l.b.getIndexType(), id.getAxisAttr());
      l.setScalar(id, l.sub(l.sub(blocks, l.constant(1)), number));
    } else if (!hasTiles && !op.hasTrait<mlir::OpTrait::IsTerminator>()) {
      l.lowerOp(&op);
    }
  }
}

void Attention::countChunks() {
  scf::ForOp loop = stream_.loop;
  Value end = l.scalar(loop.getUpperBound());
  begin_ = l.scalar(loop.getLowerBound());
  extent_ = l.scalar(stream_.extent);
  Value length = l.b.create<arith::MaxSIOp>(l.loc, l.sub(end, begin_), l.constant(0));
  Value count = l.div(l.add(length, l.constant(plan_.keys - 1)), l.constant(plan_.keys));
  // One chunk where there are none: masks leave nothing of it, or it is empty.
  total_ = l.b.create<arith::MaxSIOp>(l.loc, count, l.constant(1));
}

void Attention::makeRings() {
  constexpr int64_t kBarriers = 16;
  int64_t chunks = kStages * chunkBytes(), staging = int64_t(plan_.consumers) * vxnv::kGroupWarps * kStagedBytes;
  int64_t bytes = queryBytes() + 2 * chunks + staging;
  SharedMemory::Piece all = l.shared().take(bytes + kBarriers * (1 + 2 * kStages), 1024, "ring of stages");
  int64_t barriers = all.offset + bytes;
  auto type = vxnv::RingType::get(l.b.getContext());
  auto ring = [&](int64_t stages, int64_t slot, int64_t at) -> Value {
    Value made = l.b.create<vxnv::RingOp>(l.loc, type, stages, slot, all.offset + at, barriers);
    barriers += stages * kBarriers;
    return made;
  };
  queries_ = ring(1, queryBytes(), 0);
  keys_ = ring(kStages, chunkBytes(), queryBytes());
  values_ = ring(kStages, chunkBytes(), queryBytes() + chunks);
  staging_ = all.offset + queryBytes() + 2 * chunks;
}

bool Attention::lowerPhase() {
  collect();
  countChunks();
  auto kernel = llvm::cast<ir::vxt::KernelOp>(l.b.getInsertionBlock()->getParentOp());
  kernel.setMinBlocks(plan_.blocksPerCore());
  element_ = tiles::elementType(stream_.product.getA());
  mlir::Value results = stream_.loop.getResult(stream_.accumulator);
  softmax_.emplace(l, stream_, plan_.keys);
  makeRings();
  Epilogue epilogue(l, maps_, results, stream_.rows, stores_, plan_.width);
  auto roles = l.b.create<vxnv::RolesOp>(l.loc, plan_.consumers,
                                         llvm::ArrayRef<int64_t>{plan_.producerRegisters, plan_.consumerRegisters});
  {
    mlir::OpBuilder::InsertionGuard guard(l.b);
    l.b.createBlock(&roles.getProducer());
    emitProducer();
    mlir::Block* consumer = l.b.createBlock(&roles.getConsumer());
    group_ = consumer->addArgument(l.b.getIndexType(), l.loc);
    emitConsumer(epilogue);
  }
  kernel->setAttr(vxnv::kMaps, maps_.attribute());
  return true;
}

//===-- chunks ------------------------------------------------------------------------------------------------===//

Value Attention::take(Value ring, bool isProducer) {
  auto type = vxnv::SlotType::get(l.b.getContext());
  return isProducer ? Value(l.b.create<vxnv::AcquireOp>(l.loc, type, ring))
                    : Value(l.b.create<vxnv::AwaitOp>(l.loc, type, ring));
}

Value Attention::lowerBody(Value chunk) {
  Value first = l.add(begin_, l.mul(chunk, l.constant(plan_.keys)));
  l.setScalar(stream_.loop.getInductionVar(), first);
  for (mlir::Operation& op : *stream_.loop.getBody())
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>() &&
        llvm::none_of(op.getResultTypes(), llvm::IsaPred<mlir::RankedTensorType>))
      l.lowerOp(&op);
  return first;
}

void Attention::emitProducer() {
  unsigned rank = tiles::rankOf(stream_.product.getResult());
  RowOperand q(l, maps_, stream_.scoresProduct.getA(), stream_.rows, plan_.rows());
  RowOperand k(l, maps_, stream_.scoresProduct.getB(), rank - 1, plan_.keys);
  RowOperand v(l, maps_, stream_.product.getB(), rank - 2, kRowElements);
  Value slot = take(queries_, true);
  for (int64_t i = 0; i < steps(); ++i)
    q.copy(slot, 0, i * kRowElements, i * q.boxBytes());
  l.b.create<vxnv::PublishOp>(l.loc, queries_);
  l.emitFor(l.constant(0), total_, l.constant(1), {}, [&](Value chunk, mlir::ValueRange) {
    lowerBody(chunk);
    Value keys = take(keys_, true);
    for (int64_t i = 0; i < steps(); ++i)
      k.copy(keys, 0, i * kRowElements, i * k.boxBytes());
    l.b.create<vxnv::PublishOp>(l.loc, keys_);
    Value values = take(values_, true);
    for (int64_t row = 0, offset = 0; row < plan_.keys; row += kRowElements)
      for (int64_t i = 0; i < steps(); ++i, offset += v.boxBytes())
        v.copy(values, row, i * kRowElements, offset);
    l.b.create<vxnv::PublishOp>(l.loc, values_);
    return Values{};
  });
}

//===-- consumers ---------------------------------------------------------------------------------------------===//

Value Attention::startScores(Value queries, Value keys) {
  auto type = vxnv::SumsType::get(l.b.getContext(), plan_.keys, {});
  Value none = l.b.create<vxnv::SumsOp>(l.loc, type);
  Value rows = l.mul(group_, l.constant(64 * int64_t(kDepthBytes)));
  return l.b.create<vxnv::DotStartOp>(l.loc, type, none, queries, rows, keys, l.constant(0), element_, false, false,
                                      true, steps(), int64_t(plan_.rows()) * kDepthBytes,
                                      int64_t(plan_.keys) * kDepthBytes);
}

Value Attention::startResults(Value sums, mlir::ValueRange words, Value values) {
  return l.b.create<vxnv::DotStartRegistersOp>(l.loc, sums.getType(), sums, words, values, l.constant(0), element_,
                                               true, false, steps() * vxnv::kAcrossBlock);
}

Values Attention::valuesOf(Value sums) {
  Values values;
  for (int64_t i = 0; i < llvm::cast<vxnv::SumsType>(sums.getType()).perThread(); ++i)
    values.push_back(l.b.create<vxnv::SumOp>(l.loc, l.b.getF32Type(), sums, i));
  return values;
}

OnlineSoftmax::Result Attention::softmax(Value chunk, Value scores, const RowState& before) {
  Value first = lowerBody(chunk);
  Value warp = l.rem(l.warp(), l.constant(vxnv::kGroupWarps));
  Value row = l.add(l.mul(group_, l.constant(64)), l.mul(warp, l.constant(16)));
  Value count = l.b.create<arith::MaxSIOp>(l.loc, l.sub(extent_, first), l.constant(0));
  return softmax_->emit(valuesOf(scores), row, count, before);
}

void Attention::emitConsumer(Epilogue& epilogue) {
  auto turn = [&](bool begins) {
    if (plan_.consumers == 1)
      return;
    begins ? void(l.b.create<vxnv::TurnBeginOp>(l.loc)) : void(l.b.create<vxnv::TurnEndOp>(l.loc));
  };
  Value queries = take(queries_, false), keys = take(keys_, false);
  turn(true);
  Value scores = startScores(queries, keys);
  turn(false);
  scores = wait(scores, 0);
  release(keys_);
  OnlineSoftmax::Result made = softmax(l.constant(0), scores, softmax_->initial());
  auto type = vxnv::SumsType::get(l.b.getContext(), plan_.width, {});
  Value zero = l.b.create<arith::ConstantOp>(l.loc, l.b.getF32FloatAttr(0));
  Value none = l.b.create<vxnv::SumsOfOp>(l.loc, type, Values(static_cast<size_t>(type.perThread()), zero));
  Values carried{none};
  RowState state = made.state;
  size_t stateSize = state.all().size();
  carried.append(state.all());
  carried.append(softmax_->pack(made.weights));
  carried = l.emitFor(l.constant(1), total_, l.constant(1), carried, [&](Value chunk, mlir::ValueRange before) {
    Value next = take(keys_, false);
    turn(true);
    Value running = startScores(queries, next), values = take(values_, false);
    Value results = startResults(before[0], before.drop_front(1 + stateSize), values);
    turn(false);
    running = wait(running, 1);
    release(keys_);
    state.set(before.drop_front(1));
    OnlineSoftmax::Result weights = softmax(chunk, running, state);
    results = wait(results, 0);
    release(values_);
    Values rescaled;
    for (auto [number, value] : llvm::enumerate(valuesOf(results)))
      rescaled.push_back(l.b.create<arith::MulFOp>(l.loc, value, weights.rescales[number / 2 % RowState::kHalves]));
    Values after{l.b.create<vxnv::SumsOfOp>(l.loc, type, rescaled)};
    after.append(weights.state.all());
    after.append(softmax_->pack(weights.weights));
    return after;
  });
  mlir::ValueRange last(carried);
  Value results = wait(startResults(last[0], last.drop_front(1 + stateSize), take(values_, false)), 0);
  release(values_);
  release(queries_);
  state.set(last.drop_front(1));
  finishRows(epilogue, results, state);
}

void Attention::finishRows(Epilogue& epilogue, Value sums, RowState& state) {
  softmax_->finish(state);
  llvm::SmallVector<Epilogue::RowValue> rows;
  rows.push_back({stream_.loop.getResult(stream_.maximum), {}});
  for (Value maximum : state.maxima)
    rows.back().halves.push_back(softmax_->maximum(maximum));
  for (auto [number, sum] : llvm::enumerate(stream_.sums)) {
    auto halves = llvm::ArrayRef<Value>(state.sums).slice(number * RowState::kHalves, RowState::kHalves);
    rows.push_back({stream_.loop.getResult(sum.number), Values(halves)});
  }
  Value warp = l.rem(l.warp(), l.constant(vxnv::kGroupWarps));
  Value number = l.add(l.mul(group_, l.constant(vxnv::kGroupWarps)), warp);
  Value base =
      l.b.create<ir::vxt::SharedOp>(l.loc, ir::vxt::PtrType::get(l.b.getContext(), ir::Space::Shared), staging_);
  Value staging = l.b.create<ir::vxt::OffsetOp>(l.loc, base.getType(), base, l.mul(number, l.constant(kStagedBytes)),
                                                l.b.getI8Type());
  epilogue.emit(sums, l.mul(number, l.constant(16)), l.constant(0), staging, rows);
  epilogue.finish();
}

}  // namespace

bool isAttention(ir::KernelOp phase) { return configurationOf(phase).has_value(); }

std::unique_ptr<TileLowering> makeAttention(Lowering& lowering) {
  if (auto plan = configurationOf(lowering.phase))
    return std::make_unique<Attention>(lowering, *plan);
  return nullptr;
}

}  // namespace vortex::target::gpu::hopper
