#include "target/gpu/testing/machine_state.h"

#include <cstring>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>

namespace vortex::target::gpu::testing {

namespace vxt = ir::vxt;
namespace vector = mlir::vector;
using interpreter::ElementCall;

/// Until the thread waits, ends or fails.
void Machine::execute(Thread& t) {
  while (t.state == Thread::State::Ready && error_.empty()) {
    const Instruction& instruction = (*code_)[t.next++];
    units_.checkOperands(t, instruction);
    (this->*instruction.run)(t, instruction);
  }
}

//===-- control flow ------------------------------------------------------------------------------------------===//

void Machine::jump(Thread& t, const Instruction& instruction) { t.next = instruction.target; }

void Machine::jumpUnless(Thread& t, const Instruction& instruction) {
  if (!(t.registers[instruction.in[0].first] & 1))
    t.next = instruction.target;
}

void Machine::startLoop(Thread& t, const Instruction& instruction) {
  if (static_cast<int64_t>(t.registers[instruction.in[1].first]) <= 0)
    return fail(instruction.op, "step is not positive");
  t.registers[instruction.out[0].first] = t.registers[instruction.in[0].first];
}

void Machine::testLoop(Thread& t, const Instruction& instruction) {
  const auto counter = static_cast<int64_t>(t.registers[instruction.in[0].first]);
  if (counter >= static_cast<int64_t>(t.registers[instruction.in[1].first]))
    t.next = instruction.target;
}

void Machine::continueLoop(Thread& t, const Instruction& instruction) {
  t.registers[instruction.out[0].first] += t.registers[instruction.in[0].first];
  t.next = instruction.target;
}

void Machine::move(Thread& t, const Instruction& instruction) {
  moved_.clear();
  for (const Move& each : instruction.moves)
    moved_.insert(moved_.end(), &t.registers[each.from.first], &t.registers[each.from.first] + each.from.lanes);
  const uint64_t* next = moved_.data();
  for (const Move& each : instruction.moves) {
    std::copy_n(next, each.from.lanes, &t.registers[each.to]);
    next += each.from.lanes;
  }
}

void Machine::end(Thread& t, const Instruction&) {
  units_.checkEnd(t);
  t.state = Thread::State::Done;
}

//===-- waiting -----------------------------------------------------------------------------------------------===//

void Machine::wait(Thread& t, Thread::State state, mlir::Operation* at) {
  t.state = state;
  t.at = at;
}

void Machine::stopAtBarrier(Thread& t, const Instruction& instruction) {
  wait(t, Thread::State::Barrier, instruction.op);
}

void Machine::stopForWarp(Thread& t, const Instruction& instruction) { wait(t, Thread::State::Warp, instruction.op); }

/// What an atomic operation reads may have changed, and who waits for a change lets it happen.
void Machine::yieldTurn(Thread& t, const Instruction& instruction) { wait(t, Thread::State::Yielded, instruction.op); }

void Machine::startAsync(Thread& t, const Instruction& instruction) {
  if (!units_.execute(t, instruction.op))
    fail(instruction.op, "unknown operation");
}

void Machine::refuse(Thread&, const Instruction& instruction) { fail(instruction.op, "unknown operation"); }

//===-- values ------------------------------------------------------------------------------------------------===//

void Machine::elementwise(Thread& t, const Instruction& instruction) {
  ElementCall call;
  call.count = instruction.out[0].lanes;
  for (unsigned i = 0; i < std::size(call.out); ++i)
    call.out[i] = instruction.out[i].lanes ? &t.registers[instruction.out[i].first] : nullptr;
  for (unsigned i = 0; i < std::size(call.in); ++i) {
    call.in[i] = instruction.in[i].lanes ? &t.registers[instruction.in[i].first] : nullptr;
    call.step[i] = instruction.in[i].lanes > 1;
  }
  call.from = instruction.kernel.from;
  call.to = instruction.kernel.to;
  call.detail = instruction.kernel.detail;
  instruction.kernel.function(call);
}

void Machine::identify(Thread& t, const Instruction& instruction) {
  llvm::TypeSwitch<mlir::Operation*>(instruction.op)
      .Case([&](vxt::ThreadIdOp id) { *cells(t, id) = t.number; })
      .Case(
          [&](vxt::BlockIdOp id) { *cells(t, id) = static_cast<uint64_t>(block_[static_cast<size_t>(id.getAxis())]); })
      .Case([&](vxt::GridDimOp dim) {
        *cells(t, dim) = static_cast<uint64_t>(launch_.grid[static_cast<int>(dim.getAxis())]);
      });
}

void Machine::address(Thread& t, const Instruction& instruction) {
  llvm::TypeSwitch<mlir::Operation*>(instruction.op)
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
      });
}

void Machine::changeFragment(Thread& t, const Instruction& instruction) {
  if (auto fill = llvm::dyn_cast<vxt::FragmentFillOp>(instruction.op)) {
    std::fill_n(cells(t, fill), 2, cell(t, fill.getValue()));
    return;
  }
  auto round = llvm::cast<vxt::FragmentRoundOp>(instruction.op);
  for (unsigned j = 0; j < 2; ++j)
    cells(t, round)[j] = roundedElement(round.getValue().getType().getElementType(), round.getType().getElementType(),
                                        cells(t, round.getValue())[j]);
}

void Machine::changeVector(Thread& t, const Instruction& instruction) {
  llvm::TypeSwitch<mlir::Operation*>(instruction.op)
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
        std::fill_n(cells(t, broadcast), lanesOf(broadcast.getType()), cell(t, broadcast.getSource()));
      })
      .Case([&](vector::FromElementsOp from) {
        for (auto [lane, element] : llvm::enumerate(from.getElements()))
          cells(t, from)[lane] = cell(t, element);
      })
      .Case([&](vector::ExtractOp extract) {
        *cells(t, extract.getResult()) = cells(t, extract.getVector())[extract.getStaticPosition()[0]];
      });
}

//===-- memory ------------------------------------------------------------------------------------------------===//

void Machine::accessMemory(Thread& t, const Instruction& instruction) { access(t, instruction.op, instruction.access); }

void Machine::access(Thread& t, mlir::Operation* op, const Access& at) {
  uint64_t* own = &t.registers[at.value.first];
  const size_t lanes = at.value.lanes;
  if (at.mask.lanes && !(t.registers[at.mask.first] & 1)) {
    if (!at.isStore)
      std::fill_n(own, lanes, 0);
    return;
  }
  char* pointer = reinterpret_cast<char*>(t.registers[at.base.first] + t.registers[at.index.first] * at.bytes);
  const bool known = at.isShared ? pointer >= sharedBase_ && pointer + lanes * at.bytes <= sharedBase_ + sharedBytes_
                                 : isGlobal(pointer, lanes * at.bytes);
  if (!known)
    return fail(op, "access outside of all memory, thread " + std::to_string(t.number) + " block " +
                        std::to_string(block_[0]));
  if (reinterpret_cast<uintptr_t>(pointer) % at.alignment)
    return fail(op, "misaligned access");
  if (at.isShared) {
    units_.checkAccess(t, op, pointer, lanes * at.bytes, at.isStore);
    checkOrder(op, t.number, static_cast<size_t>(pointer - sharedBase_), lanes * at.bytes, at.isStore);
  }
  for (size_t lane = 0; lane < lanes; ++lane) {
    if (at.isStore) {
      std::memcpy(pointer + lane * at.bytes, &own[lane], at.bytes);
    } else {
      own[lane] = 0;
      std::memcpy(&own[lane], pointer + lane * at.bytes, at.bytes);
    }
  }
}

/// What was there is loaded: the sum goes back.
void Machine::addAtomically(Thread& t, const Instruction& instruction) {
  Access store = instruction.access;
  uint64_t& value = t.registers[instruction.in[0].first];
  const uint64_t added = value;
  value += t.registers[store.value.first];
  store.value = instruction.in[0];
  store.isStore = true;
  access(t, instruction.op, store);
  value = added;
}

void Machine::copyAsync(Thread& t, const Instruction& instruction) {
  if (llvm::isa<vxt::AsyncCommitOp>(instruction.op))
    t.copies.emplace_back();
  else if (auto copy = llvm::dyn_cast<vxt::AsyncCopyOp>(instruction.op))
    asyncCopy(t, copy);
  else
    asyncWait(t, llvm::cast<vxt::AsyncWaitOp>(instruction.op));
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
