// For tests: the machine, for the files that make it up.
#pragma once

#include "target/gpu/testing/async_units.h"
#include "target/gpu/testing/code.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/testing/matrices.h"
#include "target/gpu/testing/shared_order.h"
#include "target/gpu/testing/thread.h"

#include <array>
#include <memory>

namespace vortex::target::gpu::testing {

class Machine {
public:
  Machine(ir::vxt::KernelOp kernel, std::shared_ptr<const Code> code, const Launch& launch);
  std::string run();

  // What the parts use:
  uint64_t* cells(Thread& t, mlir::Value value) { return &t.registers[code_->registerOf(value)]; }
  uint64_t cell(Thread& t, mlir::Value value) { return *cells(t, value); }
  void fail(mlir::Operation* op, const std::string& what);
  bool hasFailed() const { return !error_.empty(); }
  /// The others have their turn; the thread goes on behind this instruction when it may.
  void wait(Thread& t, Thread::State state, mlir::Operation* at);
  Thread& thread(size_t number) { return threads_[number]; }
  const Launch& launch() const { return launch_; }
  ir::vxt::KernelOp kernel() const { return kernel_; }
  const Code& code() const { return *code_; }
  std::mt19937& random() { return random_; }
  char* sharedBase() const { return sharedBase_; }
  size_t sharedBytes() const { return sharedBytes_; }
  SharedOrder& order() { return order_; }
  /// `number` is about to touch bytes of shared memory: fails if a barrier is missing since another thread did.
  void checkOrder(mlir::Operation* op, unsigned number, size_t place, size_t bytes, bool isStore);
  /// Whether an access lies in the memory of the launch.
  bool isGlobal(const char* begin, size_t bytes) const;

  // execute.cpp: what instructions do
  void jump(Thread& t, const Instruction& instruction);
  void jumpUnless(Thread& t, const Instruction& instruction);
  void startLoop(Thread& t, const Instruction& instruction);
  void testLoop(Thread& t, const Instruction& instruction);
  void continueLoop(Thread& t, const Instruction& instruction);
  void move(Thread& t, const Instruction& instruction);
  void end(Thread& t, const Instruction& instruction);
  void stopAtBarrier(Thread& t, const Instruction& instruction);
  void stopForWarp(Thread& t, const Instruction& instruction);
  void yieldTurn(Thread& t, const Instruction& instruction);
  void startAsync(Thread& t, const Instruction& instruction);
  void refuse(Thread& t, const Instruction& instruction);
  void pass(Thread&, const Instruction&) {}  // a fence: threads run one after another here
  void elementwise(Thread& t, const Instruction& instruction);
  void identify(Thread& t, const Instruction& instruction);
  void address(Thread& t, const Instruction& instruction);
  void changeFragment(Thread& t, const Instruction& instruction);
  void changeVector(Thread& t, const Instruction& instruction);
  void accessMemory(Thread& t, const Instruction& instruction);
  void addAtomically(Thread& t, const Instruction& instruction);
  void copyAsync(Thread& t, const Instruction& instruction);

private:
  // machine.cpp: blocks, and where threads meet
  std::string runTogether(unsigned threads);
  void startBlock(std::array<int64_t, 3> block, unsigned threads);
  /// False: it has run to its end, or failed.
  bool advanceBlock();
  void startThread(Thread& t);
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
  // execute.cpp
  void execute(Thread& t);
  void access(Thread& t, mlir::Operation* op, const Access& at);
  void asyncCopy(Thread& t, ir::vxt::AsyncCopyOp op);
  void asyncWait(Thread& t, ir::vxt::AsyncWaitOp op);

  ir::vxt::KernelOp kernel_;
  std::shared_ptr<const Code> code_;
  const Launch& launch_;
  std::mt19937 random_;
  std::vector<Thread> threads_;
  std::vector<uint64_t> moved_;
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
