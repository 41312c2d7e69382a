#include "target/gpu/testing/machine_state.h"

#include <cstring>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>

namespace vortex::target::gpu::testing {

namespace vxt = ir::vxt;
namespace scf = mlir::scf;
namespace vector = mlir::vector;
using interpreter::ElementCall;
using interpreter::ElementKernel;

void Machine::execute(Thread& t, mlir::Block& block) {
  for (mlir::Operation& op : block) {
    if (!error_.empty())
      return;
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
      execute(t, &op);
  }
}

void Machine::execute(Thread& t, mlir::Operation* op) {
  if (units_.isUsed() && units_.execute(t, op))
    return;
  if (auto found = kernels_.find(op); found != kernels_.end())
    return elementwise(t, op, found->second);
  if (executeControl(t, op))
    return;
  if (ElementKernel kernel = interpreter::findElementKernel(op); kernel.function) {
    kernels_[op] = kernel;
    return elementwise(t, op, kernel);
  }
  units_.checkOperands(t, op);
  if (!executeMemory(t, op) && !executeVector(t, op) && !executeAtomic(t, op))
    fail(op, "unknown operation");
}

bool Machine::executeControl(Thread& t, mlir::Operation* op) {
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](scf::ForOp loop) {
        copy(t, loop.getInitArgs(), loop.getRegionIterArgs());
        int64_t upper = static_cast<int64_t>(cell(t, loop.getUpperBound())),
                step = static_cast<int64_t>(cell(t, loop.getStep()));
        if (step <= 0)
          return fail(op, "step is not positive");
        for (int64_t i = static_cast<int64_t>(cell(t, loop.getLowerBound())); i < upper && error_.empty(); i += step) {
          *cells(t, loop.getInductionVar()) = static_cast<uint64_t>(i);
          execute(t, *loop.getBody());
          copy(t, loop.getBody()->getTerminator()->getOperands(), loop.getRegionIterArgs());
        }
        copy(t, loop.getRegionIterArgs(), loop.getResults());
      })
      .Case([&](scf::IfOp branch) {
        mlir::Block* block = cell(t, branch.getCondition()) & 1 ? branch.thenBlock() : branch.elseBlock();
        if (!block)
          return;
        execute(t, *block);
        copy(t, block->getTerminator()->getOperands(), branch.getResults());
      })
      .Case([&](scf::WhileOp loop) {
        copy(t, loop.getInits(), loop.getBeforeArguments());
        while (error_.empty()) {
          execute(t, *loop.getBeforeBody());
          scf::ConditionOp condition = loop.getConditionOp();
          if (!(cell(t, condition.getCondition()) & 1))
            return copy(t, condition.getArgs(), loop.getResults());
          copy(t, condition.getArgs(), loop.getAfterArguments());
          execute(t, *loop.getAfterBody());
          copy(t, loop.getYieldOp().getOperands(), loop.getBeforeArguments());
        }
      })
      .Case([&](vxt::BarrierOp) { wait(t, Thread::State::Barrier, op); })
      .Case<vxt::WarpBarrierOp, vxt::ShuffleOp, vxt::LoadMatrixOp, vxt::MmaOp, vxt::FragmentLoadOp,
            vxt::FragmentStoreOp, vxt::FragmentMultiplyOp>([&](auto) { wait(t, Thread::State::Warp, op); })
      .Default([&](mlir::Operation*) { isKnown = false; });
  return isKnown;
}

bool Machine::executeMemory(Thread& t, mlir::Operation* op) {
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](vxt::ThreadIdOp id) { *cells(t, id) = t.number; })
      .Case(
          [&](vxt::BlockIdOp id) { *cells(t, id) = static_cast<uint64_t>(block_[static_cast<size_t>(id.getAxis())]); })
      .Case([&](vxt::GridDimOp dim) {
        *cells(t, dim) = static_cast<uint64_t>(launch_.grid[static_cast<int>(dim.getAxis())]);
      })
      .Case([](vxt::FenceOp) {})  // threads run one after another here
      .Case([&](vxt::SharedOp shared) {
        *cells(t, shared) = reinterpret_cast<uint64_t>(sharedBase_ + shared.getOffset());
      })
      .Case([&](vxt::OffsetOp offset) {
        *cells(t, offset) = cell(t, offset.getBase()) +
                            cell(t, offset.getIndex()) * static_cast<uint64_t>(vxt::scalarBytes(offset.getElement()));
      })
      .Case([&](vxt::AddressOp address) {
        uint64_t value = cell(t, address.getBase());
        if (llvm::cast<vxt::PtrType>(address.getBase().getType()).getSpace() == ir::Space::Shared)
          value -= reinterpret_cast<uint64_t>(sharedBase_);  // as in the window of a block
        *cells(t, address) = address.getType().isInteger(32) ? static_cast<uint32_t>(value) : value;
      })
      .Case([&](vxt::LoadOp load) {
        access(t, op, load.getBase(), load.getIndex(), load.getMask(), load.getAlignment(), load.getResult(), false);
      })
      .Case([&](vxt::StoreOp store) {
        access(t, op, store.getBase(), store.getIndex(), store.getMask(), store.getAlignment(), store.getValue(), true);
      })
      .Case([&](vxt::AsyncCopyOp async) { asyncCopy(t, async); })
      .Case([&](vxt::AsyncCommitOp) { t.copies.emplace_back(); })
      .Case([&](vxt::AsyncWaitOp async) { asyncWait(t, async); })
      .Default([&](mlir::Operation*) { isKnown = false; });
  return isKnown;
}

bool Machine::executeVector(Thread& t, mlir::Operation* op) {
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](mlir::arith::ConstantOp constant) { constants(t, constant); })
      .Case([&](vxt::FragmentFillOp fill) {
        for (unsigned j = 0; j < 2; ++j)
          cells(t, fill)[j] = cell(t, fill.getValue());
      })
      .Case([&](vxt::FragmentRoundOp round) {
        for (unsigned j = 0; j < 2; ++j)
          cells(t, round)[j] = roundedElement(round.getValue().getType().getElementType(),
                                              round.getType().getElementType(), cells(t, round.getValue())[j]);
      })
      .Case([&](vector::ShuffleOp shuffle) {
        for (auto [lane, from] : llvm::enumerate(shuffle.getMask()))
          cells(t, shuffle)[lane] = cells(t, shuffle.getV1())[llvm::cast<mlir::IntegerAttr>(from).getInt()];
      })
      .Case([&](vector::BitCastOp bitcast) {
        unsigned from = bitcast.getSource().getType().getElementTypeBitWidth(),
                 to = bitcast.getType().getElementTypeBitWidth();
        std::vector<char> bytes;
        for (unsigned lane = 0; lane < lanesOf(bitcast.getSource().getType()); ++lane) {
          auto* cell = reinterpret_cast<const char*>(&cells(t, bitcast.getSource())[lane]);
          bytes.insert(bytes.end(), cell, cell + from / 8);
        }
        for (unsigned lane = 0; lane < lanesOf(bitcast.getType()); ++lane) {
          uint64_t value = 0;
          std::memcpy(&value, &bytes[lane * to / 8], to / 8);
          cells(t, bitcast)[lane] = value;
        }
      })
      .Case([&](vector::BroadcastOp broadcast) {
        for (unsigned lane = 0; lane < lanesOf(broadcast.getType()); ++lane)
          cells(t, broadcast)[lane] = cell(t, broadcast.getSource());
      })
      .Case([&](vector::FromElementsOp from) {
        for (auto [lane, element] : llvm::enumerate(from.getElements()))
          cells(t, from)[lane] = cell(t, element);
      })
      .Case([&](vector::ExtractOp extract) {
        *cells(t, extract.getResult()) = cells(t, extract.getVector())[extract.getStaticPosition()[0]];
      })
      .Default([&](mlir::Operation*) { isKnown = false; });
  return isKnown;
}

void Machine::copy(Thread& t, mlir::ValueRange from, mlir::ValueRange to) {
  std::vector<uint64_t> values;
  for (mlir::Value value : from)
    values.insert(values.end(), cells(t, value), cells(t, value) + lanesOf(value.getType()));
  size_t next = 0;
  for (mlir::Value value : to)
    for (unsigned lane = 0; lane < lanesOf(value.getType()); ++lane)
      cells(t, value)[lane] = values[next++];
}

void Machine::elementwise(Thread& t, mlir::Operation* op, const ElementKernel& kernel) {
  units_.checkOperands(t, op);
  ElementCall call;
  call.count = lanesOf(op->getResult(0).getType());
  uint64_t results[2][64];
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    call.out[i] = results[i];
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    call.in[i] = cells(t, op->getOperand(i));
    call.step[i] = lanesOf(op->getOperand(i).getType()) > 1;
  }
  call.from = kernel.from;
  call.to = kernel.to;
  call.detail = kernel.detail;
  kernel.function(call);
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    std::copy_n(results[i], call.count, cells(t, op->getResult(i)));
}

void Machine::constants(Thread& t, mlir::arith::ConstantOp op) {
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
  if (!dense) {
    *cells(t, op) = interpreter::attributeBits(op.getValue());
    return;
  }
  unsigned lane = 0;
  for (mlir::Attribute element : dense.getValues<mlir::Attribute>())
    cells(t, op)[lane++] = interpreter::attributeBits(element);
}

void Machine::access(Thread& t, mlir::Operation* op, mlir::Value base, mlir::Value at, mlir::Value mask,
                     uint64_t alignment, mlir::Value value, bool isStore) {
  unsigned lanes = lanesOf(value.getType());
  uint64_t* own = cells(t, value);
  if (mask && !(cell(t, mask) & 1)) {
    if (!isStore)
      std::fill_n(own, lanes, 0);
    return;
  }
  auto bytes = static_cast<size_t>(vxt::scalarBytes(mlir::getElementTypeOrSelf(value.getType())));
  char* pointer = reinterpret_cast<char*>(cell(t, base) + cell(t, at) * bytes);
  bool isShared = llvm::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared;
  bool known = isShared ? pointer >= sharedBase_ && pointer + lanes * bytes <= sharedBase_ + sharedBytes_
                        : isGlobal(pointer, lanes * bytes);
  if (!known)
    return fail(op, "access outside of all memory, thread " + std::to_string(t.number) + " block " +
                        std::to_string(block_[0]));
  if (reinterpret_cast<uintptr_t>(pointer) % std::max<uint64_t>(alignment, bytes))
    return fail(op, "misaligned access");
  if (isShared) {
    units_.checkAccess(t, op, pointer, lanes * bytes, isStore);
    checkOrder(op, t.number, static_cast<size_t>(pointer - sharedBase_), lanes * bytes, isStore);
  }
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (isStore) {
      std::memcpy(pointer + lane * bytes, &own[lane], bytes);
    } else {
      own[lane] = 0;
      std::memcpy(&own[lane], pointer + lane * bytes, bytes);
    }
  }
}

/// Others have their turn first: what is read may have changed, and who waits for a change lets it happen.
bool Machine::executeAtomic(Thread& t, mlir::Operation* op) {
  if (!llvm::isa<vxt::AtomicRmwOp, vxt::AtomicLoadOp, vxt::AtomicStoreOp>(op))
    return false;
  wait(t, Thread::State::Ready, op);
  if (auto load = llvm::dyn_cast<vxt::AtomicLoadOp>(op)) {
    access(t, op, load.getBase(), load.getIndex(), {}, 0, load.getResult(), false);
  } else if (auto store = llvm::dyn_cast<vxt::AtomicStoreOp>(op)) {
    access(t, op, store.getBase(), store.getIndex(), {}, 0, store.getValue(), true);
  } else {
    auto rmw = llvm::cast<vxt::AtomicRmwOp>(op);
    if (rmw.getKind() != ir::Combine::AddI)
      return false;
    access(t, op, rmw.getBase(), rmw.getIndex(), {}, 0, rmw.getResult(), false);
    uint64_t old = cell(t, rmw.getResult()), &value = *cells(t, rmw.getValue()), added = value;
    value += old;
    access(t, op, rmw.getBase(), rmw.getIndex(), {}, 0, rmw.getValue(), true);
    value = added;
  }
  return true;
}

void Machine::asyncCopy(Thread& t, vxt::AsyncCopyOp op) {
  auto element = static_cast<uint64_t>(vxt::scalarBytes(op.getElement())), bytes = static_cast<uint64_t>(op.getBytes());
  auto* to = reinterpret_cast<char*>(cell(t, op.getDestination()) + cell(t, op.getDestinationIndex()) * element);
  auto* from = reinterpret_cast<const char*>(cell(t, op.getSource()) + cell(t, op.getSourceIndex()) * element);
  uint64_t read = op.getSourceBytes() ? static_cast<uint32_t>(cell(t, op.getSourceBytes())) : bytes;
  if ((read != 0 && !isGlobal(from, read)) || read > bytes || to < sharedBase_ ||
      to + bytes > sharedBase_ + kernel_.getSharedBytes())
    return fail(op, "asynchronous copy outside of memory");
  if ((read && reinterpret_cast<uintptr_t>(from) % bytes) || reinterpret_cast<uintptr_t>(to) % bytes)
    return fail(op, "misaligned asynchronous copy");
  std::vector<char> data(bytes, 0);
  std::copy_n(from, read, data.begin());
  std::fill_n(to, bytes, static_cast<char>(0x7D));
  checkOrder(op, t.number, static_cast<size_t>(to - sharedBase_), bytes, true);
  t.copies.back().emplace_back(to, std::move(data));
}

/// Copies may write at any moment from their start until here.
void Machine::asyncWait(Thread& t, vxt::AsyncWaitOp op) {
  while (t.copies.size() > op.getPending() + 1) {
    for (auto& [to, data] : t.copies.front()) {
      checkOrder(op, t.number, static_cast<size_t>(to - sharedBase_), data.size(), true);
      llvm::copy(data, to);
    }
    t.copies.erase(t.copies.begin());
  }
}

}  // namespace vortex::target::gpu::testing
