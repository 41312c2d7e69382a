// vx.threads → loops over warps of vector code.
//
// A warp is `width` consecutive threads, one vector lane each. Values keep the cheapest form that describes them (emit/lane.h); control that
// differs between lanes becomes masks. With width 1 the same code emits one thread after another, with ordinary branches.
#pragma once

#include "target/cpu/emit/emitter.h"
#include "target/cpu/emit/lane.h"
#include "target/cpu/emit/region_analysis.h"
#include "target/cpu/emit/region_sweep.h"

#include <llvm/ADT/DenseSet.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>

namespace vortex::target::cpu::emit {

inline bool isOne(llvm::Value* value) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant && constant->isOne();
}

/// Of conditions of which null ones always hold.
inline llvm::Value* conjunction(llvm::IRBuilder<>& ir, llvm::Value* a, llvm::Value* b) {
  return !a ? b : !b ? a : ir.CreateAnd(a, b);
}

/// A view inside a region: its window may differ from lane to lane.
struct RegionView {
  mlir::Type elementType;
  llvm::Value* pointer = nullptr;
  llvm::SmallVector<Lane> extents;
  Values strides;  ///< i64, elements
  Lane offset;     ///< i64, elements
  /// Per-thread memory: element e of a lane lies at pointer[e * instances + instance].
  llvm::Value* instances = nullptr;
  Lane instance;
  bool blockPrivate = false;
};

bool hasWarpOps(mlir::Operation& code);

/// Warp width and the walk over the block's threads: fewest masked lanes for the block's shape, 32 where warp operations fix it.
/// `unitStrides` false: neighbouring elements are rarely neighbours in memory, and the code is rarely run.
RegionShape chooseShape(ir::ThreadsOp region, const VectorFeatures& features, llvm::ArrayRef<llvm::Value*> dims,
                        bool unitStrides);

/// How a region's threads are walked.
struct RegionWalk {
  std::array<llvm::Value*, 3> dims;  ///< threads along each axis that are reached
  llvm::Value* threads;              ///< their product
  RegionShape shape;
  bool isShort;  ///< the others have no effect
};

/// Ends where no thread of the block, which has `dims` of them, has an effect any more.
RegionWalk chooseWalk(Emitter& emitter, ir::ThreadsOp region, const std::array<llvm::Value*, 3>& dims);

class RegionEmitter {
public:
  RegionEmitter(Emitter& emitter, ir::ThreadsOp region);
  void run();

private:
  /// One element per lane somewhere in memory.
  struct Access {
    mlir::Type type;
    llvm::Value* pointer = nullptr;
    Lane offset;  ///< elements
    bool blockPrivate = false;
    bool guarded = false;
    mlir::Value root;                                 ///< the view that the accessed one is a window of
    Lane mask;                                        ///< the op's own mask; value null: none
    llvm::SmallVector<std::pair<Lane, Lane>> bounds;  ///< (index, extent) pairs of a guarded access
    bool isRare = false;           ///< numbers wrapped between two lanes: little code is better than fast code
    llvm::Value* ahead = nullptr;  ///< elements to what the next block reads first; null: nothing is known
  };

  // region_emitter.cpp: threads → warps, dispatch
  void emitWarps();
  /// Warps whose code is emitted for each, in a row: where few small ones have an effect, all that depends on their numbers is known.
  unsigned mostInLine() const;
  void emitSpan(llvm::Value* total, llvm::function_ref<void(llvm::Value* base, llvm::Value* mask)> body);
  void emitWarp(Lane x, Lane y, Lane z, Lane linear, llvm::Value* mask, llvm::function_ref<void()> body);
  void emitLinearWarp(llvm::Value* base, llvm::Value* mask, llvm::function_ref<void()> body);
  void emitBlock(mlir::Block& block);
  void emitOp(mlir::Operation* op);
  void emitYield(ir::YieldOp op);
  void emitArith(mlir::Operation* op);
  std::optional<Lane> extended(mlir::Operation* op, const Lane& narrow, bool isSigned);
  std::optional<Lane> laneNumber(mlir::Operation* op, llvm::ArrayRef<Lane> operands);
  std::optional<Lane> emitAffine(mlir::Operation* op, llvm::ArrayRef<Lane> operands);
  void emitAssert(ir::AssertOp op);
  void emitPrint(ir::PrintOp op);
  void emitValues(mlir::Operation* op, llvm::StringRef text, mlir::ValueRange values, llvm::ArrayRef<bool> isUnsigned,
                  llvm::Value* ofLanes);

  Lane lane(mlir::Value value);
  Form form(mlir::Value value) const { return shape_.width == 1 ? kUniform : analysis_.form(value); }
  void set(mlir::Value value, Lane lane) { values_[value] = lane; }
  llvm::Value* vector(mlir::Value value) { return math_.vector(lane(value)); }
  /// The LLVM value that stands for `lane` where values of this form merge, and back.
  llvm::Value* pack(const Lane& lane, Form form);
  Lane unpack(llvm::Value* value, Form form);

  // region_sweep.cpp
  bool emitSwept(const Sweep& sweep);
  void emitSegment(const Segment& segment, const llvm::DenseMap<mlir::Value, llvm::AllocaInst*>& slots);
  llvm::SmallVector<mlir::Operation*> boundsChecks(mlir::Block& block) const;
  llvm::SmallVector<mlir::Operation*> guardedAccesses(mlir::Block& block) const;
  void emitChain(mlir::Block& block, mlir::Value value, llvm::DenseSet<mlir::Operation*>& emitted);
  llvm::Value* provesInside(mlir::Value viewed, mlir::ValueRange indices);
  bool isWorthTwoVersions(mlir::Block& block) const;
  void emitBothVersions(mlir::Block& block, llvm::function_ref<void()> atEnd);
  Form keptForm(mlir::Value value) const;
  llvm::AllocaInst* slotFor(mlir::Value value, Form form);
  llvm::Value* slotOfWarp(llvm::AllocaInst* slot);
  void keep(llvm::AllocaInst* slot, llvm::Value* packed);
  llvm::Value* kept(llvm::AllocaInst* slot);

  // region_calls.cpp
  void emitCall(mlir::func::CallOp op);

  // region_control.cpp
  void emitIf(mlir::scf::IfOp op);
  void emitDivergentIf(mlir::scf::IfOp op);
  Values emitMixed(mlir::scf::IfOp op, const Lane& condition);
  Values emitDivergentSides(mlir::scf::IfOp op, llvm::Value* condition, bool branch);
  void emitFor(mlir::scf::ForOp op);
  void emitDivergentFor(mlir::scf::ForOp op);
  void emitWhile(mlir::scf::WhileOp op);
  void emitDivergentWhile(mlir::scf::WhileOp op);
  llvm::Value* packMask(llvm::Value* mask);
  llvm::Value* unpackMask(llvm::Value* packed);
  Values yields(mlir::Operation* terminator, mlir::ValueRange likeResults);
  Values packAll(mlir::ValueRange values, mlir::ValueRange formsOf);
  void setAll(mlir::ValueRange targets, llvm::ArrayRef<llvm::Value*> packed);
  /// Emits with another mask; `nonEmpty`: at least one lane is known to be active.
  void withMask(llvm::Value* mask, bool nonEmpty, llvm::function_ref<void()> body);

  // region_batches.cpp
  /// Loads of one row for each lane, `first` with the least index.
  struct RowLoads {
    ir::LoadOp first;
    int64_t step = 0;                                         ///< elements that a round goes on by
    llvm::SmallVector<std::pair<ir::LoadOp, int64_t>> loads;  ///< and how far they are behind the first one
    llvm::SmallVector<mlir::Operation*> narrow;               ///< extensions of sums that must not wrap within a batch
  };
  llvm::SmallVector<RowLoads> findRows(mlir::scf::ForOp loop);
  llvm::Value* proveRows(mlir::scf::ForOp loop, const RowLoads& row, int64_t count, Lane& offset);
  llvm::Value* rowPointer(const RowLoads& row, const Lane& offset, llvm::Value* lane);
  Values loadColumns(llvm::function_ref<llvm::Value*(llvm::Value* lane)> pointer);
  void stageRows(const RowLoads& row, const Lane& offset, llvm::AllocaInst* staged, int64_t count);
  Values emitRounds(mlir::scf::ForOp loop, llvm::Value* counter, Values carried, llvm::ArrayRef<RowLoads> rows,
                    llvm::ArrayRef<Values> columns);
  using PieceTest = llvm::function_ref<llvm::Value*(llvm::ArrayRef<Lane> offsets)>;
  using PieceBody = llvm::function_ref<Values(llvm::ArrayRef<Lane> offsets, llvm::Value* counter, Values carried)>;
  Values emitPieces(mlir::scf::ForOp loop, llvm::ArrayRef<RowLoads> rows, int64_t count, llvm::Value* upper,
                    const Values& state, PieceTest when, PieceBody body);
  llvm::Value* joined(llvm::Value* low, llvm::Value* high);
  std::optional<Values> emitBatches(mlir::scf::ForOp loop, llvm::Value* lower, llvm::Value* upper,
                                    const Values& initial);

  // region_lanes.cpp
  /// Warp operations keep the warp wide, but the lanes of this divergent op run faster one after another.
  bool runsByLane(mlir::Operation* op) const;
  void emitByLane(mlir::Operation* op);
  void spillLanes(mlir::Operation* op);
  void withLane(mlir::Operation* op, llvm::Value* number, llvm::function_ref<void()> body);
  bool isFromOutside(mlir::Value value) const;
  /// The value of the section's lane.
  Lane ofLane(const Lane& lane);

  // region_memory.cpp
  RegionView view(mlir::Value value);
  void emitSubview(ir::SubviewOp op);
  void emitAlloc(ir::AllocOp op);
  Access access(mlir::Value view, mlir::ValueRange indices, mlir::Value mask, bool guarded);
  void emitLoad(ir::LoadOp op);
  void emitStore(ir::StoreOp op);
  Lane load(const Access& access);
  llvm::Value* spaced(const Access& access, Access& inOrder, Access& apart);
  void store(const Access& access, const Lane& value);
  /// Scalar condition under which an access with uniform address, bounds and mask happens; null: always.
  llvm::Value* uniformCondition(const Access& access);
  bool isUniform(const Access& access) const;
  llvm::Value* boundsMask(const Access& access);
  /// Lanes that access memory: current mask, the op's mask and bounds; null: all.
  llvm::Value* activeLanes(const Access& access);
  llvm::Value* proveAll(const Access& access);
  struct LaneRange {
    llvm::Value *first, *end;  ///< i64
  };
  std::optional<LaneRange> insideRange(const Access& access);
  llvm::Value* loadRange(const Access& access, LaneRange range);
  void storeRange(const Access& access, llvm::Value* lanes, LaneRange range);
  llvm::Value* loadLanes(const Access& access, llvm::Value* mask);
  void storeLanes(const Access& access, llvm::Value* value, llvm::Value* mask);
  llvm::Value* gather(const Access& access, llvm::Value* mask);
  llvm::Value* gatherInTurn(const Access& access, llvm::Value* mask);
  void scatter(const Access& access, llvm::Value* stored, llvm::Value* mask);
  llvm::Value* lanePointer(const Access& access, unsigned lane);

  // region_places.cpp
  /// What the lanes read of one row.
  struct RowPart {
    int64_t row = 0, first = 0, last = 0;  ///< columns first … last
  };
  std::optional<llvm::SmallVector<RowPart>> rowParts(const Access& access);
  bool provePlaces(const Access& access, llvm::Value*& proof);
  llvm::Value* loadParts(const Access& access, llvm::ArrayRef<RowPart> parts);
  std::optional<Lane> loadPlaces(const Access& access);

  // region_streaming.cpp
  void prefetchNextBlock(const Access& access);
  bool isStreamOfFunctions(ir::LoadOp op);
  llvm::Value* distanceToNextBlock(ir::LoadOp op, const Access& access);
  using Growths = llvm::DenseMap<mlir::Value, std::optional<llvm::Value*>>;
  std::optional<llvm::Value*> growthByBlock(mlir::Value value, Growths& known);
  std::optional<llvm::Value*> findGrowth(mlir::Value value, Growths& known);
  llvm::Value* wantsStreaming(const Access& access);

  // region_atomics.cpp
  void emitAtomicRmw(ir::AtomicRmwOp op);
  void emitAtomicCas(ir::AtomicCasOp op);
  void emitAtomicLoad(ir::AtomicLoadOp op);
  void emitAtomicStore(ir::AtomicStoreOp op);
  /// Calls body(pointer, lane) for every active lane; returns the lanes' results (zero where inactive) when `resultType` is given.
  llvm::Value* perActiveLane(const Access& access, llvm::Type* resultType,
                             llvm::function_ref<llvm::Value*(llvm::Value* pointer, llvm::Value* lane)> body);
  bool reduceThenAtomic(ir::AtomicRmwOp op, const Access& access);

  // region_warp.cpp
  void emitWarpReduce(ir::WarpReduceOp op);
  void emitWarpVote(ir::WarpVoteOp op);
  void emitWarpShuffle(ir::WarpShuffleOp op);
  llvm::Value* reduceLanes(ir::Combine kind, mlir::Type type, llvm::Value* vector, llvm::Value* mask);

  llvm::Value* fullMask();

  Emitter& e_;
  llvm::IRBuilder<>& ir_;
  ir::ThreadsOp region_;
  std::array<llvm::Value*, 3> dims_;
  llvm::Value* threads_;  ///< of the block
  RegionWalk walk_;
  RegionShape shape_;
  RegionAnalysis analysis_;
  LaneMath math_;
  llvm::SmallVector<TileBuffer> inputs_, outputs_;
  llvm::DenseMap<mlir::Value, Lane> values_;
  llvm::DenseMap<mlir::Value, RegionView> views_;
  llvm::Value* mask_ = nullptr;  ///< active lanes, <W x i1>; null: all
  unsigned proofs_ = 0;          ///< of single accesses
  bool maskNonEmpty_ = true;
  unsigned versions_ = 0;  ///< enclosing branches emitted twice
  unsigned loops_ = 0;     ///< enclosing loops of one warp: the next warp does not go on where this one stops
  llvm::DenseMap<mlir::Operation*, llvm::Value*> loaded_;  ///< loads of the round of a batch that is emitted
  llvm::DenseSet<mlir::Operation*>
      proven_;  ///< comparisons and bounds of accesses that hold in all lanes where code is emitted now
  Lane linear_;
  /// Code that is emitted for one lane of a wider warp.
  struct Section {
    mlir::Operation* op = nullptr;                          ///< null: none is
    llvm::Value* number = nullptr;                          ///< of the lane, i64
    llvm::DenseMap<llvm::Value*, llvm::AllocaInst*> slots;  ///< where vectors from outside lie
  };
  Section section_;
  std::optional<llvm::DenseSet<mlir::Operation*>>
      lastPasses_;                         ///< loads of the kernel that distanceToNextBlock() knows
  std::optional<bool> computesFunctions_;  ///< of the region
};

}  // namespace vortex::target::cpu::emit
