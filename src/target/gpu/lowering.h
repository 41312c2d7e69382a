// Block-level vx → vxt: one vxt.kernel per phase, run by every hardware thread of a block.
//
// Block-level scalars are uniform: every thread computes them. Stores and atomics of uniform code are done by thread 0. `vx.threads` regions
// are inlined: hardware thread t stands for the logical threads t, t + T, t + 2T, … ("slots"; T hardware threads, a multiple of 32, so warps
// stay together), threads past the logical count are predicated off. Values that cross a cut between regions stay in registers, one per
// slot. Tile operations go through TileLowering. The vxt text is built with structured control flow (scf), ready for any GPU target.
#pragma once

#include "analysis/shared_lifetimes.h"
#include "artifact/artifact.h"
#include "base/result.h"
#include "chip/chip.h"
#include "ir/vxt.h"
#include "target/gpu/hazards.h"
#include "target/gpu/placement.h"
#include "target/gpu/shared_memory.h"
#include "target/gpu/tile_lowering.h"
#include "target/gpu/view.h"
#include "target/gpu/wide_accesses.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/Twine.h>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/IRMapping.h>

namespace vortex::target::gpu {

using mlir::Value;
using Values = llvm::SmallVector<mlir::Value>;

/// What all phases of one artifact share.
struct ModuleState {
  mlir::ModuleOp module;  ///< receives the vxt.kernel ops
  const chip::Gpu& chip;
  artifact::Kernel& kernel;  ///< the interface is filled in; faults and notes grow here
  std::unique_ptr<TileLowering> (*makeTiles)(class Lowering& lowering) =
      nullptr;             ///< null: tile operations are refused
  std::string error = {};  ///< first construct that could not be lowered, with its location
};

/// Lowers one phase. Used once.
class Lowering {
public:
  Lowering(ModuleState& state, ir::KernelOp phase, llvm::StringRef symbol, Assumptions assumptions);
  ~Lowering();

  /// The whole phase. Hardware threads and shared bytes are those of the returned kernel. Null when state.error is set.
  ir::vxt::KernelOp run();
  /// After `run`: the program's tensors in shared memory and what the compiler took of it, but for their phase.
  const std::vector<artifact::SharedTensor>& sharedTensors() const { return sharedTensors_; }
  /// After `run`: arguments that would be read in another way if their rows were known to be aligned.
  const std::set<unsigned>& betterAligned() const { return betterAligned_; }
  void addBetterAligned(unsigned argument) { betterAligned_.insert(argument); }
  /// After `run`: arguments of which single threads would load neighbouring elements at once if their rows were whole.
  const std::set<unsigned>& betterWhole() const { return betterWhole_; }
  /// After `run`: neighbouring threads that would be one if the rows of these were whole.
  int64_t lanes() const { return lanes_; }
  /// After `run`: launches for which the version that assumes long rows is meant; null: none.
  ir::SizeAttr longRows() const { return longRows_; }
  void addLongRows(ir::SizeAttr when);
  /// Nothing but tile code says how many threads the block has.
  bool threadsAreFree() const { return threadsAreFree_; }
  void freeThreads() { threadsAreFree_ = true; }
  const Assumptions& assumptions() const { return assumptions_; }

  ModuleState& state;
  ir::KernelOp phase;  ///< the vx op
  mlir::OpBuilder b;   ///< at the current place in the vxt.kernel
  mlir::Location loc;  ///< of the vx op being lowered

  //===-- for tile code -----------------------------------------------------------------------------------------===//

  /// The vxt value of a vx scalar (uniform, or of the current logical thread inside a region).
  Value scalar(Value vx);
  void setScalar(Value vx, Value lowered) { values_.map(vx, lowered); }
  const View& view(Value vx);
  void setView(Value vx, View view) { views_[vx] = std::move(view); }

  /// Hardware threads of the block, T; a multiple of 32. Static for phases with tile operations.
  int64_t threads() const { return threads_; }
  /// Hardware thread in the block (index), and its lane and warp.
  Value threadId();
  Value lane();  ///< index, 0 … 31
  Value warp();  ///< index
  /// Logical threads per hardware thread of vx.threads regions.
  unsigned slots() const { return slots_; }
  /// Logical linear id of a slot: thread + slot · T (index).
  Value logicalId(unsigned slot);

  SharedMemory& shared() { return shared_; }
  Value sharedPointer(const SharedMemory::Piece& piece);  ///< !vxt.ptr<shared>
  /// `bytes` bytes after everything else, as the launch finds them (a multiple of 16); pieces of different calls share their bytes. The kernel
  /// carries the largest of them as kSharedTail.
  Value sharedTail(ir::SizeAttr bytes);
  static constexpr llvm::StringLiteral kSharedTail = "vxt.shared_tail";
  /// Orders accesses of the whole block. To be told of every access of block-level code (views: View::root), before it is emitted.
  Hazards& hazards() { return hazards_; }
  /// Runs `body` in one thread of the block only (scf.if on thread 0). For uniform side effects.
  void once(llvm::function_ref<void()> body);

  // Short builders; everything is `index` unless said otherwise. Constants fold.
  Value constant(int64_t value);
  /// Computed from the launch slots.
  Value size(ir::SizeAttr size);
  Value i32(int64_t value);
  Value zero(mlir::Type type);  ///< also of vectors
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);  ///< unsigned, divisor positive
  Value rem(Value x, Value y);
  Value min(Value x, Value y);   ///< signed
  Value less(Value x, Value y);  ///< unsigned, i1
  Value both(Value x, Value y);  ///< i1 and, either may be null (true)
  Value select(Value condition, Value x, Value y);
  /// x combined with y, scalars or vectors. `atomic`: maxNum/minNum instead of NaN-propagating.
  Value combine(ir::Combine kind, Value x, Value y, bool atomic = false);
  /// scf.if without results / with the results of both sides. A constant condition emits one side only.
  void emitIf(Value condition, llvm::function_ref<void()> body);
  Values emitIf(Value condition, llvm::function_ref<Values()> thenBody, llvm::function_ref<Values()> elseBody);
  /// scf.for over index values.
  Values emitFor(Value lower, Value upper, Value step, mlir::ValueRange carried,
                 llvm::function_ref<Values(Value iv, mlir::ValueRange carried)> body);
  std::optional<int64_t> constantOf(Value value);

  /// Elements outside the view's indices: index_i < extent_i for every dimension (unsigned), null when all is known inside.
  Value inside(const View& view, llvm::ArrayRef<Value> indices);
  /// Offset in elements.
  Value offset(const View& view, llvm::ArrayRef<Value> indices);

  /// The construct is not supported: recorded with its location; lowering goes on with poison and the result is discarded.
  void fail(mlir::Operation* op, const llvm::Twine& message);
  uint32_t addFault(mlir::Operation* op, llvm::StringRef id, llvm::StringRef message);

  /// Lowers the ops of a block without its terminator / one op.
  void lowerBlock(mlir::Block& block);
  void lowerOp(mlir::Operation* op);

private:
  static constexpr int64_t kMaxSlots = 64;
  /// The logical thread whose region is being lowered.
  struct Region {
    unsigned slot;
    Value linear;  ///< index
    Value count;   ///< logical threads, index
  };

  void chooseThreads();
  void lowerArguments();
  void describePieces();
  Value blockDim(unsigned axis);

  // control.cpp
  void lowerFor(mlir::scf::ForOp op);
  void lowerIf(mlir::scf::IfOp op);
  void lowerWhile(mlir::scf::WhileOp op);
  Values registersFor(mlir::ValueRange sources, mlir::ValueRange targets, llvm::SmallVector<unsigned>& counts);
  void bindAll(mlir::ValueRange targets, mlir::ValueRange like, mlir::ValueRange values,
               llvm::ArrayRef<unsigned> counts);
  void enterLoop(llvm::ArrayRef<mlir::Block*> blocks);
  void leaveLoop(size_t firstPiece, mlir::ValueRange carried);
  void reserveResults(mlir::Operation* op);
  void enterScope();
  void leaveScope();

  // memory.cpp
  struct Access {
    View view;
    Value pointer, offset;
    Value condition;  ///< i1; null: always accessed
  };
  Access access(mlir::Operation* op, Value view, mlir::ValueRange indices, Value mask, bool guarded);
  void lowerAlloc(ir::AllocOp op);
  void lowerSubview(ir::SubviewOp op);
  void lowerMemory(mlir::Operation* op);
  void lowerLoad(ir::LoadOp op);
  bool isOneAccess(const WideAccess& wide, Value viewValue, bool guarded);
  bool loadWide(ir::LoadOp first);
  bool storeWide(ir::StoreOp op);
  void lowerStore(ir::StoreOp op);
  void lowerAtomic(mlir::Operation* op);
  Value emitAtomic(mlir::Operation* op, const Access& access);
  Value emitPrivate(mlir::Operation* op, const Access& access);
  /// `body`'s value, computed by one thread, in every thread.
  Value broadcastOnce(mlir::Type type, llvm::function_ref<Value()> body);

  // staging.cpp
  void lowerStageCopy(ir::StageCopyOp op);
  void finishCopies(mlir::Block& block);
  void endLifetime(ir::AllocOp alloc);
  void copyWindow(ir::StageCopyOp op, int64_t chunk, bool asynchronous, bool isInside);
  Value insideAltogether(ir::StageCopyOp op);

  // region.cpp
  void lowerThreads(ir::ThreadsOp op);
  Values lowerSlot(ir::ThreadsOp op, Region region, llvm::ArrayRef<Values> inputs);
  void lowerWarp(mlir::Operation* op);
  Value warpMask();
  Value sourceExists(ir::ShuffleKind kind, Value lane);
  Value warpReduce(ir::Combine kind, Value value);
  Values printedBits(mlir::ValueRange values, llvm::ArrayRef<bool> isUnsigned);
  void lowerPrint(ir::PrintOp op);
  void lowerAssert(ir::AssertOp op);

  std::string symbol_;
  Assumptions assumptions_;
  std::set<unsigned> betterAligned_;
  std::set<unsigned> betterWhole_;
  WideAccesses wide_;
  llvm::DenseSet<mlir::Operation*> inWide_;  ///< loaded by the one that stands first of theirs
  ir::SizeAttr longRows_;
  bool threadsAreFree_ = false;
  mlir::IRMapping values_;
  llvm::DenseMap<Value, View> views_;
  ir::vxt::KernelOp kernel_;
  int64_t threads_ = 0;
  int64_t slots_ = 1, lanes_ = 1;
  std::optional<int64_t> logicalCount_;
  ir::SizeAttr threadsAttr_;
  std::optional<Region> region_;
  Hazards hazards_;
  SharedMemory shared_;
  ir::SizeAttr tailBytes_;  ///< null: none
  llvm::SmallVector<ir::vxt::SharedOp> tails_;
  analysis::SharedLifetimes lifetimes_;
  std::vector<artifact::SharedTensor> sharedTensors_;
  std::unique_ptr<TileLowering> tiles_;
};

}  // namespace vortex::target::gpu
