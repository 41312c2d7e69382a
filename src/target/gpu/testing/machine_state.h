// For tests: the machine, for the files that make it up.
#pragma once

#include "interpreter/elementwise.h"
#include "target/gpu/testing/async_units.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/testing/matrices.h"
#include "target/gpu/testing/shared_order.h"
#include "target/gpu/testing/thread.h"

#include <array>
#include <llvm/ADT/DenseMap.h>

namespace vortex::target::gpu::testing {

unsigned lanesOf(mlir::Type type);

class Machine {
public:
  Machine(ir::vxt::KernelOp kernel, const Launch& launch);
  std::string run();

  // What the parts use:
  uint64_t* cells(Thread& t, mlir::Value value) { return &t.registers[registers_.lookup(value)]; }
  uint64_t cell(Thread& t, mlir::Value value) { return *cells(t, value); }
  void fail(mlir::Operation* op, const std::string& what);
  bool hasFailed() const { return !error_.empty(); }
  /// Gives the others their turn; returns when the thread may go on.
  void wait(Thread& t, Thread::State state, mlir::Operation* at);
  Thread& thread(size_t number) { return threads_[number]; }
  const Launch& launch() const { return launch_; }
  ir::vxt::KernelOp kernel() const { return kernel_; }
  std::mt19937& random() { return random_; }
  char* sharedBase() const { return sharedBase_; }
  size_t sharedBytes() const { return sharedBytes_; }
  SharedOrder& order() { return order_; }
  /// `number` is about to touch bytes of shared memory: fails if a barrier is missing since another thread did.
  void checkOrder(mlir::Operation* op, unsigned number, size_t place, size_t bytes, bool isStore);
  /// Whether an access lies in the memory of the launch.
  bool isGlobal(const char* begin, size_t bytes) const;

private:
  void number(mlir::Value value);
  // machine.cpp: blocks, and where threads meet
  std::string runTogether(unsigned threads);
  void startBlock(std::array<int64_t, 3> block, unsigned threads);
  /// False: it has run to its end, or failed.
  bool advanceBlock();
  void startThread(Thread& t);
  static void entry(unsigned low, unsigned high);
  bool runReady();
  void releaseBarrier();
  void reportDeadlock();
  bool meet(size_t size, Thread::State state);
  void resolve(size_t first, mlir::Operation* op);
  void shuffle(size_t first, ir::vxt::ShuffleOp op);
  WarpRegisters warpRegisters(size_t first, mlir::Value value);
  void loadMatrix(size_t first, ir::vxt::LoadMatrixOp op);
  void accessFragment(size_t first, mlir::Operation* op, mlir::Value base, mlir::Value index, uint64_t pitch,
                      bool transposed, mlir::Value fragment);
  // execute.cpp: one thread's code
  void execute(Thread& t, mlir::Block& block);
  void execute(Thread& t, mlir::Operation* op);
  bool executeControl(Thread& t, mlir::Operation* op);
  bool executeVector(Thread& t, mlir::Operation* op);
  bool executeMemory(Thread& t, mlir::Operation* op);
  void copy(Thread& t, mlir::ValueRange from, mlir::ValueRange to);
  void elementwise(Thread& t, mlir::Operation* op, const interpreter::ElementKernel& kernel);
  void constants(Thread& t, mlir::arith::ConstantOp op);
  void access(Thread& t, mlir::Operation* op, mlir::Value base, mlir::Value at, mlir::Value mask, uint64_t alignment,
              mlir::Value value, bool isStore);
  bool executeAtomic(Thread& t, mlir::Operation* op);
  void asyncCopy(Thread& t, ir::vxt::AsyncCopyOp op);
  void asyncWait(Thread& t, ir::vxt::AsyncWaitOp op);

  ir::vxt::KernelOp kernel_;
  const Launch& launch_;
  std::mt19937 random_;
  llvm::DenseMap<mlir::Value, size_t> registers_;
  size_t count_ = 0;
  llvm::DenseMap<mlir::Operation*, interpreter::ElementKernel> kernels_;
  std::vector<Thread> threads_;
  Thread* current_ = nullptr;
  ucontext_t main_{};
  std::vector<char> shared_;
  char* sharedBase_ = nullptr;
  size_t sharedBytes_ = 0;
  std::array<int64_t, 3> block_{};
  std::vector<unsigned> turns_;  ///< the threads, in the order of the last turn
  std::string error_;
  SharedOrder order_;
  AsyncUnits units_{*this};
};

}  // namespace vortex::target::gpu::testing
