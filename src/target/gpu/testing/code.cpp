#include "target/gpu/testing/code.h"

#include "ir/vxnv.h"
#include "target/gpu/testing/machine_state.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>

namespace vortex::target::gpu::testing {

namespace vxt = ir::vxt;
namespace scf = mlir::scf;
namespace vector = mlir::vector;
using interpreter::ElementKernel;

namespace {

constexpr uint64_t kGarbage = 0xDEADBEEFDEADBEEF;

/// What executes an operation that is neither control flow, nor elementwise, nor a plain access.
Instruction::Run findRun(mlir::Operation* op) {
  using Run = Instruction::Run;
  return llvm::TypeSwitch<mlir::Operation*, Run>(op)
      .Case([](vxt::BarrierOp) { return &Machine::stopAtBarrier; })
      .Case<vxt::WarpBarrierOp, vxt::ShuffleOp, vxt::LoadMatrixOp, vxt::MmaOp, vxt::FragmentLoadOp,
            vxt::FragmentStoreOp, vxt::FragmentMultiplyOp>([](auto) { return &Machine::stopForWarp; })
      .Case<vxt::ThreadIdOp, vxt::BlockIdOp, vxt::GridDimOp>([](auto) { return &Machine::identify; })
      .Case<vxt::SharedOp, vxt::OffsetOp, vxt::AddressOp>([](auto) { return &Machine::address; })
      .Case([](vxt::FenceOp) { return &Machine::pass; })
      .Case<vxt::AsyncCopyOp, vxt::AsyncCommitOp, vxt::AsyncWaitOp>([](auto) { return &Machine::copyAsync; })
      .Case<vxt::FragmentFillOp, vxt::FragmentRoundOp>([](auto) { return &Machine::changeFragment; })
      .Case<vector::ShuffleOp, vector::BitCastOp, vector::BroadcastOp, vector::FromElementsOp, vector::ExtractOp>(
          [](auto) { return &Machine::changeVector; })
      .Default([](mlir::Operation*) { return &Machine::refuse; });
}

}  // namespace

unsigned lanesOf(mlir::Type type) {
  if (llvm::isa<vxt::FragmentType>(type))
    return 2;
  auto vectorType = llvm::dyn_cast<mlir::VectorType>(type);
  return vectorType ? static_cast<unsigned>(vectorType.getNumElements()) : 1;
}

Code::Code(vxt::KernelOp kernel) {
  kernel.walk([&](mlir::Operation* op) {
    for (mlir::Region& region : op->getRegions())
      for (mlir::Block& block : region)
        for (mlir::Value argument : block.getArguments())
          number(argument);
    for (mlir::Value result : op->getResults())
      number(result);
    isAsynchronous_ |= llvm::isa_and_nonnull<ir::vxnv::VxnvDialect>(op->getDialect());
  });
  addBlock(kernel.getBody().front());
  add(kernel, &Machine::end);
}

void Code::number(mlir::Value value) {
  registers_[value] = static_cast<uint32_t>(initial_.size());
  initial_.resize(initial_.size() + lanesOf(value.getType()), kGarbage);
}

Registers Code::registersOf(mlir::Value value) const {
  return value ? Registers{registers_.lookup(value), lanesOf(value.getType())} : Registers{};
}

Instruction& Code::add(mlir::Operation* op, Instruction::Run run) {
  instructions_.push_back({.run = run, .op = op});
  return instructions_.back();
}

void Code::addMoves(mlir::ValueRange from, mlir::ValueRange to) {
  if (to.empty())
    return;
  Instruction& instruction = add(nullptr, &Machine::move);
  for (auto [source, destination] : llvm::zip_equal(from, to))
    instruction.moves.push_back({registersOf(source), registers_.lookup(destination)});
}

void Code::addBlock(mlir::Block& block) {
  for (mlir::Operation& op : block)
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
      addOperation(&op);
}

void Code::addOperation(mlir::Operation* op) {
  if (llvm::isa_and_nonnull<ir::vxnv::VxnvDialect>(op->getDialect())) {
    add(op, &Machine::startAsync);
    return;
  }
  if (addControl(op))
    return;
  if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op))
    return addConstant(constant);
  if (ElementKernel kernel = interpreter::findElementKernel(op); kernel.function)
    addElementwise(op, kernel);
  else if (!addAccess(op))
    add(op, findRun(op));
  if (isAsynchronous_)
    for (mlir::Value operand : op->getOperands())
      if (operand.getType().isIntOrFloat() && operand.getType().getIntOrFloatBitWidth() == 32)
        instructions_.back().words.push_back(registers_.lookup(operand));
}

bool Code::addControl(mlir::Operation* op) {
  const auto jump = [this](size_t to) { add(nullptr, &Machine::jump).target = to; };
  const auto addJumpUnless = [this](mlir::Value condition) {
    add(nullptr, &Machine::jumpUnless).in[0] = registersOf(condition);
    return instructions_.size() - 1;
  };
  const auto landHere = [this](size_t from) { instructions_[from].target = instructions_.size(); };
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](scf::ForOp loop) {
        addMoves(loop.getInitArgs(), loop.getRegionIterArgs());
        Instruction& first = add(op, &Machine::startLoop);
        first.in[0] = registersOf(loop.getLowerBound());
        first.in[1] = registersOf(loop.getStep());
        first.out[0] = registersOf(loop.getInductionVar());
        const size_t test = instructions_.size();
        Instruction& tested = add(op, &Machine::testLoop);
        tested.in[0] = registersOf(loop.getInductionVar());
        tested.in[1] = registersOf(loop.getUpperBound());
        addBlock(*loop.getBody());
        addMoves(loop.getBody()->getTerminator()->getOperands(), loop.getRegionIterArgs());
        Instruction& next = add(op, &Machine::continueLoop);
        next.in[0] = registersOf(loop.getStep());
        next.out[0] = registersOf(loop.getInductionVar());
        next.target = test;
        landHere(test);
        addMoves(loop.getRegionIterArgs(), loop.getResults());
      })
      .Case([&](scf::IfOp branch) {
        const size_t skip = addJumpUnless(branch.getCondition());
        addBlock(*branch.thenBlock());
        addMoves(branch.thenYield().getOperands(), branch.getResults());
        if (!branch.elseBlock())
          return landHere(skip);
        const size_t leave = instructions_.size();
        jump(0);
        landHere(skip);
        addBlock(*branch.elseBlock());
        addMoves(branch.elseYield().getOperands(), branch.getResults());
        landHere(leave);
      })
      .Case([&](scf::WhileOp loop) {
        addMoves(loop.getInits(), loop.getBeforeArguments());
        const size_t start = instructions_.size();
        addBlock(*loop.getBeforeBody());
        scf::ConditionOp condition = loop.getConditionOp();
        const size_t leave = addJumpUnless(condition.getCondition());
        addMoves(condition.getArgs(), loop.getAfterArguments());
        addBlock(*loop.getAfterBody());
        addMoves(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
        jump(start);
        landHere(leave);
        addMoves(condition.getArgs(), loop.getResults());
      })
      .Default([&](mlir::Operation*) { isKnown = false; });
  return isKnown;
}

bool Code::addAccess(mlir::Operation* op) {
  const auto put = [&](mlir::Value base, mlir::Value index, mlir::Value mask, uint64_t alignment, mlir::Value value,
                       bool isStore) {
    const auto bytes = static_cast<size_t>(vxt::scalarBytes(mlir::getElementTypeOrSelf(value.getType())));
    add(op, &Machine::accessMemory).access = {.base = registersOf(base),
                                              .index = registersOf(index),
                                              .mask = registersOf(mask),
                                              .value = registersOf(value),
                                              .bytes = bytes,
                                              .alignment = std::max<uint64_t>(alignment, bytes),
                                              .isShared = llvm::cast<vxt::PtrType>(base.getType()).getSpace() ==
                                                          ir::Space::Shared,
                                              .isStore = isStore};
  };
  const auto letOthersGoFirst = [&] { add(op, &Machine::yieldTurn); };
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](vxt::LoadOp load) {
        put(load.getBase(), load.getIndex(), load.getMask(), load.getAlignment(), load.getResult(), false);
      })
      .Case([&](vxt::StoreOp store) {
        put(store.getBase(), store.getIndex(), store.getMask(), store.getAlignment(), store.getValue(), true);
      })
      .Case([&](vxt::AtomicLoadOp load) {
        letOthersGoFirst();
        put(load.getBase(), load.getIndex(), {}, 0, load.getResult(), false);
      })
      .Case([&](vxt::AtomicStoreOp store) {
        letOthersGoFirst();
        put(store.getBase(), store.getIndex(), {}, 0, store.getValue(), true);
      })
      .Case([&](vxt::AtomicRmwOp rmw) {
        letOthersGoFirst();
        put(rmw.getBase(), rmw.getIndex(), {}, 0, rmw.getResult(), false);
        const Access load = instructions_.back().access;
        Instruction& added = add(op, rmw.getKind() == ir::Combine::AddI ? &Machine::addAtomically : &Machine::refuse);
        added.access = load;
        added.in[0] = registersOf(rmw.getValue());
      })
      .Default([&](mlir::Operation*) { isKnown = false; });
  return isKnown;
}

void Code::addElementwise(mlir::Operation* op, const ElementKernel& kernel) {
  Instruction& instruction = add(op, &Machine::elementwise);
  instruction.kernel = kernel;
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    instruction.out[i] = registersOf(result);
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    instruction.in[i] = registersOf(operand);
}

void Code::addConstant(mlir::arith::ConstantOp op) {
  uint64_t* cell = &initial_[registers_.lookup(op)];
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
  if (!dense) {
    *cell = interpreter::attributeBits(op.getValue());
    return;
  }
  for (mlir::Attribute element : dense.getValues<mlir::Attribute>())
    *cell++ = interpreter::attributeBits(element);
}

}  // namespace vortex::target::gpu::testing
