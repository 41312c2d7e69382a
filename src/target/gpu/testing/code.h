// For tests: the code of a kernel in the order in which a thread executes it, control flow as jumps. Decoded once for all threads and blocks: what an
// operation is and where its values lie is not looked up while it runs.
#pragma once

#include "interpreter/elementwise.h"
#include "ir/vxt.h"

#include <llvm/ADT/DenseMap.h>
#include <vector>

namespace vortex::target::gpu::testing {

class Machine;
struct Thread;

unsigned lanesOf(mlir::Type type);

/// Cells of one value in a thread's register file.
struct Registers {
  uint32_t first = 0, lanes = 0;
};

/// All are read before the first is written.
struct Move {
  Registers from;
  uint32_t to = 0;
};

/// An access of memory; of an operand that the operation lacks, `lanes` is 0.
struct Access {
  Registers base, index, mask, value;
  size_t bytes = 0;  ///< of an element
  uint64_t alignment = 1;
  bool isShared = false, isStore = false;
};

struct Instruction {
  using Run = void (Machine::*)(Thread& t, const Instruction& instruction);

  Run run = nullptr;
  mlir::Operation* op = nullptr;
  size_t target = 0;                    ///< of a jump
  std::vector<uint32_t> words{};        ///< operands of 32 bits, of which none may be a sum that is not there yet
  Registers out[2]{}, in[3]{};          ///< elementwise: results, operands; jumps: what they depend on
  interpreter::ElementKernel kernel{};  ///< elementwise
  std::vector<Move> moves{};
  Access access{};
};

class Code {
public:
  explicit Code(ir::vxt::KernelOp kernel);

  const Instruction& operator[](size_t at) const { return instructions_[at]; }
  uint32_t registerOf(mlir::Value value) const { return registers_.lookup(value); }
  /// A thread's registers before its first instruction: constants, and garbage.
  const std::vector<uint64_t>& initial() const { return initial_; }
  /// Whether the kernel has operations of vxnv.
  bool isAsynchronous() const { return isAsynchronous_; }

private:
  void number(mlir::Value value);
  Registers registersOf(mlir::Value value) const;
  Instruction& add(mlir::Operation* op, Instruction::Run run);
  void addMoves(mlir::ValueRange from, mlir::ValueRange to);
  void addBlock(mlir::Block& block);
  void addOperation(mlir::Operation* op);
  bool addControl(mlir::Operation* op);
  bool addAccess(mlir::Operation* op);
  void addElementwise(mlir::Operation* op, const interpreter::ElementKernel& kernel);
  void addConstant(mlir::arith::ConstantOp op);

  llvm::DenseMap<mlir::Value, uint32_t> registers_;
  std::vector<Instruction> instructions_;
  std::vector<uint64_t> initial_;
  bool isAsynchronous_ = false;
};

}  // namespace vortex::target::gpu::testing
