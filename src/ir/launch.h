// vx.launch: building it, and walking it for the values of one launch.
#pragma once

#include "ir/vx.h"

#include <functional>

namespace vortex::ir {

/// An empty one, behind the entry.
LaunchOp createLaunch(EntryOp entry);
/// The module's; null if a launch runs its kernels in their order.
LaunchOp findLaunch(mlir::ModuleOp module);
/// The same, made of the kernels in their order if there is none.
LaunchOp launchOf(EntryOp entry);
/// On a temporary of an entry: the number of the parameter whose view it is in launches that run no kernel which writes it.
inline constexpr llvm::StringLiteral kStandsFor = "stands_for";
/// On a temporary whose rows have room for more: the extents of the tensor that it holds.
inline constexpr llvm::StringLiteral kHeldExtents = "held";
/// The step that runs a kernel.
PhaseOp phaseOf(LaunchOp launch, KernelOp kernel);

/// Not zero for launches that should take the case if its needs hold and they took none before; null: for all.
SizeAttr preferenceOf(CaseOp each);
/// The case's conditions hold; `valueOf` gives the values of expressions.
bool holds(CaseOp each, llvm::function_ref<int64_t(SizeAttr)> valueOf);

/// What a launch does while its steps are walked.
class LaunchActions {
public:
  virtual ~LaunchActions() = default;
  /// False: the launch ends here.
  virtual bool run(KernelOp kernel) = 0;
  /// Before each round of a loop. False: the launch ends here.
  virtual bool round(LoopOp) { return true; }
  /// Sets a let.
  virtual void set(unsigned argument, int64_t value) = 0;
  virtual void exchange(unsigned a, unsigned b) = 0;
  /// The only element of a temporary.
  virtual int64_t read(unsigned temporary) = 0;
  /// Of an expression, for what is set now.
  virtual int64_t valueOf(SizeAttr size) = 0;
  /// Decides about the cases of a choice in their order; the last one is not asked.
  virtual bool isTaken(CaseOp each) {
    return holds(each, [this](SizeAttr size) { return valueOf(size); });
  }
};

/// Takes the steps of a launch, in order.
void walkLaunch(mlir::ModuleOp module, LaunchActions& actions);

/// The kernels that a launch without loops runs, in order. `isTaken` decides about cases in their order; the last of a choice is not asked.
llvm::SmallVector<KernelOp> takenKernels(mlir::ModuleOp module, llvm::function_ref<bool(CaseOp)> isTaken);

/// The value of a let; null: no vx.let sets that argument.
SizeAttr valueOfLet(mlir::ModuleOp module, unsigned argument);

/// Appends steps to vx.launch.
class LaunchBuilder {
public:
  /// Steps that `emit` appends, for launches where `needs` and `when` are not zero. Null: for all.
  struct Way {
    llvm::StringRef name;
    SizeAttr needs = {}, when = {};
    std::function<void()> emit;
    SizeAttr cost = {};  ///< of chooseLeast
  };

  explicit LaunchBuilder(LaunchOp launch) : builder_(mlir::OpBuilder::atBlockEnd(launch.getBody())) {}
  explicit LaunchBuilder(mlir::OpBuilder builder) : builder_(builder) {}

  void phase(KernelOp kernel);
  void let(mlir::Location loc, unsigned argument, SizeAttr value);
  void read(mlir::Location loc, unsigned argument, unsigned temporary);
  /// The first way whose condition holds; the last one is for all other launches. Ways that no launch takes are not emitted, and a way that all
  /// take stands without a choice.
  void choose(mlir::Location loc, llvm::ArrayRef<Way> ways);
  /// The way of least cost. They need nothing.
  void chooseLeast(mlir::Location loc, llvm::ArrayRef<Way> ways);
  /// A choice of the program.
  void branch(mlir::Location loc, SizeAttr condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
  /// The operands of a vx.loop.
  struct Round {
    llvm::SmallVector<int64_t> arguments;
    llvm::SmallVector<SizeAttr> first, next;
    SizeAttr condition;
  };
  void loop(mlir::Location loc, const Round& round, llvm::function_ref<void()> steps);
  void exchange(mlir::Location loc, unsigned a, unsigned b);

private:
  void emitCases(mlir::Location loc, llvm::ArrayRef<Way> ways, bool isLeast);
  mlir::OpBuilder builder_;
};

}  // namespace vortex::ir
