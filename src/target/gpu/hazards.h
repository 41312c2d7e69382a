// Where block-level code needs a barrier that the program does not write.
//
// vx is sequential at block level: a tile store, then a tile load or a uniform load of the same memory sees the stored values. On a GPU the
// two are done by different threads. Between thread regions the program synchronises itself (vx.barrier), so two regions never conflict
// here; a conflict has at least one block-level access. Memory is told apart by root: arguments and allocations never overlap.
#pragma once

#include <functional>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <mlir/IR/Value.h>

namespace vortex::target::gpu {

class Hazards {
public:
  /// Names a piece of memory: a vx argument or vx.alloc result, or any other unique address for scratch.
  using Root = const void*;
  static Root rootOf(mlir::Value value) { return value.getAsOpaquePointer(); }

  enum class Kind {
    Region,
    Block
  };  ///< per-thread accesses of a region; collective or uniform accesses of block-level code

  /// `emitBarrier` emits a vxt.barrier at the current place.
  explicit Hazards(std::function<void()> emitBarrier) : emitBarrier_(std::move(emitBarrier)) {}

  /// About to access `root`: emits a barrier first if another thread's access since the last one may conflict.
  void read(Root root, Kind kind = Kind::Block) { access(root, false, kind); }
  void write(Root root, Kind kind = Kind::Block) { access(root, true, kind); }
  void read(mlir::Value root, Kind kind = Kind::Block) { access(rootOf(root), false, kind); }
  void write(mlir::Value root, Kind kind = Kind::Block) { access(rootOf(root), true, kind); }
  /// About to start a copy into `window` of `root`, which runs until the program waits for it: copies into windows that `areApart` run side by side.
  void copy(Root root, mlir::Value window, llvm::function_ref<bool(mlir::Value, mlir::Value)> areApart);
  /// Emits a barrier.
  void barrier();
  /// Something may still be writing to `root` until the next barrier.
  void markWritten(Root root) { pending_[root].blockWrite = true; }
  /// Some access of `root` is not ordered before this place yet.
  bool isPending(Root root) const { return pending_.contains(root); }

  /// Control flow. `if`: both sides start from the state before, then merge. Loops: the body starts with `merge` of what the whole body may
  /// leave pending.
  struct Pending {
    bool regionRead = false, regionWrite = false, blockRead = false, blockWrite = false;
    llvm::SmallVector<mlir::Value, 0> copied;  ///< windows
  };
  using State = llvm::DenseMap<Root, Pending>;
  const State& state() const { return pending_; }
  void restore(State state) { pending_ = std::move(state); }
  void merge(const State& other);

private:
  void access(Root root, bool isWrite, Kind kind);

  std::function<void()> emitBarrier_;
  State pending_;
};

}  // namespace vortex::target::gpu
