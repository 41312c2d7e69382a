#include "target/gpu/tiles/machine_test.h"

#include "interpreter/elementwise.h"
#include "ir/size_attr.h"
#include "target/gpu/lowering.h"
#include "target/gpu/tiles/machine_matrix_test.h"

#include <cstring>
#include <llvm/ADT/TypeSwitch.h>
#include <ucontext.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

namespace vxt = ir::vxt;
namespace scf = mlir::scf;
namespace vector = mlir::vector;
using interpreter::ElementCall;
using interpreter::ElementKernel;

constexpr size_t kStack = 128 << 10;
constexpr size_t kMostShared = 227 << 10;  ///< of sm_90, for kernels whose launch says how much they take

unsigned lanesOf(mlir::Type type) {
  auto vectorType = llvm::dyn_cast<mlir::VectorType>(type);
  return vectorType ? static_cast<unsigned>(vectorType.getNumElements()) : 1;
}

struct Thread {
  enum class State { Ready, Barrier, Warp, Done };
  unsigned number = 0;
  State state = State::Ready;
  mlir::Operation* at = nullptr;
  std::vector<uint64_t> registers;
  std::vector<char> stack;
  std::vector<std::vector<char>> local;
  /// Asynchronous copies that are not complete: groups in order, the last one not committed. Destinations hold garbage until the wait.
  std::vector<std::vector<std::pair<char*, std::vector<char>>>> copies{1};
  ucontext_t context{};
};

class Machine {
public:
  Machine(vxt::KernelOp kernel, const Launch& launch) : kernel_(kernel), launch_(launch), random_(launch.seed) {
    kernel.walk([&](mlir::Operation* op) {
      for (mlir::Region& region : op->getRegions())
        for (mlir::Block& block : region)
          for (mlir::Value argument : block.getArguments())
            number(argument);
      for (mlir::Value result : op->getResults())
        number(result);
    });
  }

  std::string run() {
    auto size = ir::constantSize(kernel_.getThreads());
    if (!size)
      return "dynamic thread count";
    for (int64_t z = 0; z < launch_.grid[2]; ++z)
      for (int64_t y = 0; y < launch_.grid[1]; ++y)
        for (int64_t x = 0; x < launch_.grid[0] && error_.empty(); ++x) {
          block_[0] = x, block_[1] = y, block_[2] = z;
          runBlock(static_cast<unsigned>(*size));
        }
    return error_;
  }

private:
  void number(mlir::Value value) {
    registers_[value] = count_;
    count_ += lanesOf(value.getType());
  }
  uint64_t* cells(Thread& t, mlir::Value value) { return &t.registers[registers_.lookup(value)]; }
  uint64_t cell(Thread& t, mlir::Value value) { return *cells(t, value); }

  void fail(mlir::Operation* op, const std::string& what) {
    if (!error_.empty())
      return;
    llvm::raw_string_ostream(error_) << what << ": " << *op;
  }

  void runBlock(unsigned threads) {
    sharedBytes_ = static_cast<size_t>(kernel_.getSharedBytes());
    if (kernel_->hasAttr(Lowering::kSharedTail))
      sharedBytes_ = kMostShared;
    shared_.assign(sharedBytes_ + 1024, static_cast<char>(0xA5));
    sharedBase_ = reinterpret_cast<char*>(llvm::alignTo(reinterpret_cast<uintptr_t>(shared_.data()), 1024));
    threads_.clear();
    threads_.resize(threads);
    std::vector<unsigned> order(threads);
    for (unsigned i = 0; i < threads; ++i) {
      Thread& t = threads_[i];
      order[i] = i;
      t.number = i;
      t.registers.assign(count_, 0xDEADBEEFDEADBEEF);
      for (auto [argument, slot] : llvm::zip(kernel_.getBody().getArguments(), launch_.slots))
        *cells(t, argument) = slot;
      t.stack.resize(kStack);
      getcontext(&t.context);
      t.context.uc_stack.ss_sp = t.stack.data();
      t.context.uc_stack.ss_size = kStack;
      t.context.uc_link = &main_;
      makecontext(&t.context, reinterpret_cast<void (*)()>(&Machine::entry), 2,
                  static_cast<unsigned>(reinterpret_cast<uintptr_t>(this)),
                  static_cast<unsigned>(reinterpret_cast<uintptr_t>(this) >> 32));
    }
    while (error_.empty()) {
      std::shuffle(order.begin(), order.end(), random_);
      bool ran = false;
      for (unsigned i : order)
        if (threads_[i].state == Thread::State::Ready && error_.empty()) {
          ran = true;
          current_ = &threads_[i];
          swapcontext(&main_, &current_->context);
        }
      bool released = meetWarps();
      if (ran || released)
        continue;
      if (llvm::all_of(threads_, [](Thread& t) { return t.state == Thread::State::Done; }))
        return;
      releaseBarrier();
    }
  }

  static void entry(unsigned low, unsigned high) {
    auto* self = reinterpret_cast<Machine*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
    Thread& t = *self->current_;
    self->execute(t, self->kernel_.getBody().front());
    t.state = Thread::State::Done;
  }

  void wait(Thread& t, Thread::State state, mlir::Operation* at) {
    t.state = state;
    t.at = at;
    swapcontext(&t.context, &main_);
  }

  void releaseBarrier() {
    for (Thread& t : threads_)
      if (t.state != Thread::State::Barrier || t.at != threads_[0].at)
        return fail(threads_[0].at ? threads_[0].at : kernel_.getOperation(), "threads wait at different places");
    for (Thread& t : threads_)
      t.state = Thread::State::Ready;
  }

  bool meetWarps() {
    bool any = false;
    for (size_t first = 0; first < threads_.size(); first += 32) {
      bool together = true;
      for (size_t i = first; i < first + 32; ++i)
        together &= threads_[i].state == Thread::State::Warp && threads_[i].at == threads_[first].at;
      if (!together)
        continue;
      any = true;
      resolve(first, threads_[first].at);
      for (size_t i = first; i < first + 32; ++i)
        threads_[i].state = Thread::State::Ready;
    }
    return any;
  }

  void resolve(size_t first, mlir::Operation* op) {
    if (auto shuffle = llvm::dyn_cast<vxt::ShuffleOp>(op)) {
      unsigned lanes = lanesOf(shuffle.getType());
      std::vector<std::vector<uint64_t>> values;
      for (size_t i = 0; i < 32; ++i) {
        uint64_t* own = cells(threads_[first + i], shuffle.getValue());
        values.emplace_back(own, own + lanes);
      }
      for (int64_t i = 0; i < 32; ++i) {
        Thread& t = threads_[first + static_cast<size_t>(i)];
        int64_t lane = static_cast<int32_t>(cell(t, shuffle.getLane())), source = i;
        switch (shuffle.getKind()) {
        case ir::ShuffleKind::Xor: source = i ^ lane; break;
        case ir::ShuffleKind::Up: source = i - lane; break;
        case ir::ShuffleKind::Down: source = i + lane; break;
        case ir::ShuffleKind::Index: source = lane; break;
        }
        if (source < 0 || source > 31)
          source = i;
        llvm::copy(values[static_cast<size_t>(source)], cells(t, shuffle.getResult()));
      }
    } else if (auto load = llvm::dyn_cast<vxt::LoadMatrixOp>(op)) {
      loadMatrix(first, load);
    } else if (auto mma = llvm::dyn_cast<vxt::MmaOp>(op)) {
      auto result = multiplyMatrices(mma, warpRegisters(first, mma.getA()), warpRegisters(first, mma.getB()),
                                     warpRegisters(first, mma.getC()));
      if (result.empty())
        return fail(op, "unknown matrix shape");
      for (size_t lane = 0; lane < 32; ++lane)
        llvm::copy(result[lane], cells(threads_[first + lane], mma.getResult()));
    }
  }

  WarpRegisters warpRegisters(size_t first, mlir::Value value) {
    WarpRegisters result;
    for (size_t lane = 0; lane < 32; ++lane) {
      uint64_t* own = cells(threads_[first + lane], value);
      result.emplace_back(own, own + lanesOf(value.getType()));
    }
    return result;
  }

  void loadMatrix(size_t first, vxt::LoadMatrixOp op) {
    std::vector<const char*> rows;
    for (size_t lane = 0; lane < 32; ++lane) {
      Thread& t = threads_[first + lane];
      uint64_t bytes = static_cast<uint64_t>(vxt::scalarBytes(op.getElement()));
      rows.push_back(reinterpret_cast<const char*>(cell(t, op.getBase()) + index(t, op.getIndex()) * bytes));
      if (rows.back() < sharedBase_ || rows.back() + 16 > sharedBase_ + kernel_.getSharedBytes() ||
          reinterpret_cast<uintptr_t>(rows.back()) % 16)
        return fail(op, "bad row address");
    }
    WarpRegisters words = loadMatrices(rows, static_cast<unsigned>(op.getCount()), op.getTransposed());
    for (size_t lane = 0; lane < 32; ++lane)
      llvm::copy(words[lane], cells(threads_[first + lane], op.getResult()));
  }

  void asyncCopy(Thread& t, vxt::AsyncCopyOp op) {
    auto element = static_cast<uint64_t>(vxt::scalarBytes(op.getElement())),
         bytes = static_cast<uint64_t>(op.getBytes());
    auto* to = reinterpret_cast<char*>(cell(t, op.getDestination()) + index(t, op.getDestinationIndex()) * element);
    auto* from = reinterpret_cast<const char*>(cell(t, op.getSource()) + index(t, op.getSourceIndex()) * element);
    uint64_t read = op.getSourceBytes() ? static_cast<uint32_t>(cell(t, op.getSourceBytes())) : bytes;
    bool known = read == 0 || llvm::any_of(launch_.memory, [&](const MemoryRange& range) {
                   return from >= range.begin && from + read <= range.begin + range.bytes;
                 });
    if (!known || read > bytes || to < sharedBase_ || to + bytes > sharedBase_ + kernel_.getSharedBytes())
      return fail(op, "asynchronous copy outside of memory");
    if ((read && reinterpret_cast<uintptr_t>(from) % bytes) || reinterpret_cast<uintptr_t>(to) % bytes)
      return fail(op, "misaligned asynchronous copy");
    std::vector<char> data(bytes, 0);
    std::copy_n(from, read, data.begin());
    std::fill_n(to, bytes, static_cast<char>(0x7D));
    t.copies.back().emplace_back(to, std::move(data));
  }

  void asyncWait(Thread& t, uint64_t pending) {
    while (t.copies.size() > pending + 1) {
      for (auto& [to, data] : t.copies.front())
        llvm::copy(data, to);
      t.copies.erase(t.copies.begin());
    }
  }

  //===-- code ----------------------------------------------------------------------------------------------------===//

  void copy(Thread& t, mlir::ValueRange from, mlir::ValueRange to) {
    std::vector<uint64_t> values;
    for (mlir::Value value : from)
      values.insert(values.end(), cells(t, value), cells(t, value) + lanesOf(value.getType()));
    size_t next = 0;
    for (mlir::Value value : to)
      for (unsigned lane = 0; lane < lanesOf(value.getType()); ++lane)
        cells(t, value)[lane] = values[next++];
  }

  void execute(Thread& t, mlir::Block& block) {
    for (mlir::Operation& op : block) {
      if (!error_.empty())
        return;
      if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
        execute(t, &op);
    }
  }

  void execute(Thread& t, mlir::Operation* op) {
    if (auto found = kernels_.find(op); found != kernels_.end())
      return elementwise(t, op, found->second);
    if (ElementKernel kernel = interpreter::findElementKernel(op); kernel.function) {
      kernels_[op] = kernel;
      return elementwise(t, op, kernel);
    }
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case([&](mlir::arith::ConstantOp constant) { constants(t, constant); })
        .Case([&](scf::ForOp loop) {
          copy(t, loop.getInitArgs(), loop.getRegionIterArgs());
          int64_t upper = static_cast<int64_t>(cell(t, loop.getUpperBound())),
                  step = static_cast<int64_t>(cell(t, loop.getStep()));
          if (step <= 0)
            return fail(op, "step is not positive");
          for (int64_t i = static_cast<int64_t>(cell(t, loop.getLowerBound())); i < upper && error_.empty();
               i += step) {
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
        .Case([&](vxt::ThreadIdOp id) { *cells(t, id) = t.number; })
        .Case([&](vxt::BlockIdOp id) { *cells(t, id) = static_cast<uint64_t>(block_[static_cast<int>(id.getAxis())]); })
        .Case([&](vxt::GridDimOp dim) {
          *cells(t, dim) = static_cast<uint64_t>(launch_.grid[static_cast<int>(dim.getAxis())]);
        })
        .Case([&](vxt::SharedOp shared) {
          *cells(t, shared) = reinterpret_cast<uint64_t>(sharedBase_ + shared.getOffset());
        })
        .Case([&](vxt::OffsetOp offset) {
          *cells(t, offset) =
              cell(t, offset.getBase()) +
              index(t, offset.getIndex()) * static_cast<uint64_t>(vxt::scalarBytes(offset.getElement()));
        })
        .Case([&](vxt::AddressOp address) {
          uint64_t value = cell(t, address.getBase());
          *cells(t, address) = address.getType().isInteger(32) ? static_cast<uint32_t>(value) : value;
        })
        .Case([&](vxt::LoadOp load) {
          access(t, op, load.getBase(), load.getIndex(), load.getMask(), load.getAlignment(), load.getResult(), false);
        })
        .Case([&](vxt::StoreOp store) {
          access(t, op, store.getBase(), store.getIndex(), store.getMask(), store.getAlignment(), store.getValue(),
                 true);
        })
        .Case([&](vxt::BarrierOp) { wait(t, Thread::State::Barrier, op); })
        .Case([&](vxt::AsyncCopyOp async) { asyncCopy(t, async); })
        .Case([&](vxt::AsyncCommitOp) { t.copies.emplace_back(); })
        .Case([&](vxt::AsyncWaitOp async) { asyncWait(t, async.getPending()); })
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
        .Case<vxt::WarpBarrierOp, vxt::ShuffleOp, vxt::LoadMatrixOp, vxt::MmaOp>(
            [&](auto) { wait(t, Thread::State::Warp, op); })
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
        .Default([&](mlir::Operation*) { fail(op, "unknown operation"); });
  }

  uint64_t index(Thread& t, mlir::Value value) { return cell(t, value); }

  void elementwise(Thread& t, mlir::Operation* op, const ElementKernel& kernel) {
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

  void constants(Thread& t, mlir::arith::ConstantOp op) {
    auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
    if (!dense) {
      *cells(t, op) = interpreter::attributeBits(op.getValue());
      return;
    }
    unsigned lane = 0;
    for (mlir::Attribute element : dense.getValues<mlir::Attribute>())
      cells(t, op)[lane++] = interpreter::attributeBits(element);
  }

  void access(Thread& t, mlir::Operation* op, mlir::Value base, mlir::Value at, mlir::Value mask, uint64_t alignment,
              mlir::Value value, bool isStore) {
    unsigned lanes = lanesOf(value.getType());
    uint64_t* own = cells(t, value);
    if (mask && !(cell(t, mask) & 1)) {
      if (!isStore)
        std::fill_n(own, lanes, 0);
      return;
    }
    auto bytes = static_cast<size_t>(vxt::scalarBytes(mlir::getElementTypeOrSelf(value.getType())));
    char* pointer = reinterpret_cast<char*>(cell(t, base) + index(t, at) * bytes);
    bool isShared = llvm::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared;
    auto within = [&](const char* begin, size_t size) {
      return pointer >= begin && pointer + lanes * bytes <= begin + size;
    };
    bool known = isShared ? within(sharedBase_, sharedBytes_)
                          : llvm::any_of(launch_.memory,
                                         [&](const MemoryRange& range) { return within(range.begin, range.bytes); });
    if (!known)
      return fail(op, "access outside of all memory, thread " + std::to_string(t.number) + " block " +
                          std::to_string(block_[0]));
    if (reinterpret_cast<uintptr_t>(pointer) % std::max<uint64_t>(alignment, bytes))
      return fail(op, "misaligned access");
    for (unsigned lane = 0; lane < lanes; ++lane) {
      if (isStore) {
        std::memcpy(pointer + lane * bytes, &own[lane], bytes);
      } else {
        own[lane] = 0;
        std::memcpy(&own[lane], pointer + lane * bytes, bytes);
      }
    }
  }

  vxt::KernelOp kernel_;
  const Launch& launch_;
  std::mt19937 random_;
  llvm::DenseMap<mlir::Value, size_t> registers_;
  size_t count_ = 0;
  llvm::DenseMap<mlir::Operation*, ElementKernel> kernels_;
  std::vector<Thread> threads_;
  Thread* current_ = nullptr;
  ucontext_t main_{};
  std::vector<char> shared_;
  char* sharedBase_ = nullptr;
  size_t sharedBytes_ = 0;
  int64_t block_[3] = {};
  std::string error_;
};

}  // namespace

std::string run(vxt::KernelOp kernel, const Launch& launch) { return Machine(kernel, launch).run(); }

}  // namespace vortex::target::gpu::tiles::testing
