// A module decoded for execution: a tree of nodes over numbered registers, one function pointer per operation.
#pragma once

#include "base/result.h"
#include "interpreter/elementwise.h"
#include "interpreter/memory.h"

#include "llvm/ADT/DenseMap.h"

#include <list>

namespace vortex::interpreter {

class Machine;
struct Node;

/// Executes a node; false: the run stops (the machine holds the finding or error).
using NodeFunction = bool (*)(Machine&, const Node&);

struct Body {
  llvm::SmallVector<int, 4> arguments;
  std::vector<Node> nodes;
  llvm::SmallVector<int, 4> yields;  ///< operands of the terminator
};

struct Function;

struct Node {
  mlir::Operation* op = nullptr;
  NodeFunction function = nullptr;
  llvm::SmallVector<int, 4> operands, results;
  ElementKernel kernel;
  std::vector<Body> regions;
  Function* callee = nullptr;

  // Memory accesses: registers, -1 for none.
  int viewRegister = -1, maskRegister = -1, valueRegister = -1;
  llvm::SmallVector<int, 4> indices;
  bool guarded = false;
  bool isRaceFree = false;  ///< proven, see vx.load
};

struct Function {
  mlir::Operation* op = nullptr;
  Body body;
  size_t registers = 0;
  std::vector<std::pair<int, Value>> constants;  ///< written once per frame
};

struct Program {
  ir::EntryOp entry;
  std::vector<Function*> phases;
  std::list<Function> functions;
};

/// Error: no entry, or an operation that is not executed, with its location.
base::Result<Program> decode(mlir::ModuleOp module);

/// The function for an operation that is not pointwise; null if there is none.
NodeFunction findNodeFunction(mlir::Operation* op);
NodeFunction findTileFunction(mlir::Operation* op);
NodeFunction findAccessFunction(mlir::Operation* op);
NodeFunction findThreadFunction(mlir::Operation* op);
NodeFunction findControlFunction(mlir::Operation* op);

}  // namespace vortex::interpreter
