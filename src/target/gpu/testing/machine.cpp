#include "target/gpu/testing/machine.h"

#include "ir/size_attr.h"
#include "target/gpu/lowering.h"
#include "target/gpu/testing/machine_state.h"

#include <cstring>

namespace vortex::target::gpu::testing {

namespace vxt = ir::vxt;

namespace {

constexpr size_t kMostShared = 227 << 10;  ///< of sm_90, for kernels whose launch says how much they take
constexpr size_t kWarp = 32, kWarpgroup = 128;

}  // namespace

Machine::Machine(vxt::KernelOp kernel, std::shared_ptr<const Code> code, const Launch& launch)
    : kernel_(kernel), code_(std::move(code)), launch_(launch), random_(launch.seed) {}

std::string Machine::run() {
  auto size = ir::constantSize(kernel_.getThreads());
  if (!size)
    return "dynamic thread count";
  auto threads = static_cast<unsigned>(*size);
  if (launch_.together > 1)
    return runTogether(threads);
  for (int64_t z = 0; z < launch_.grid[2]; ++z)
    for (int64_t y = 0; y < launch_.grid[1]; ++y)
      for (int64_t x = 0; x < launch_.grid[0] && error_.empty(); ++x) {
        startBlock({x, y, z}, threads);
        while (advanceBlock())
          ;
      }
  return error_;
}

/// Blocks start in any order, and those that run take turns of any length.
std::string Machine::runTogether(unsigned threads) {
  constexpr uint64_t kMostTurns = 50'000'000;
  std::vector<std::array<int64_t, 3>> waiting;
  for (int64_t z = 0; z < launch_.grid[2]; ++z)
    for (int64_t y = 0; y < launch_.grid[1]; ++y)
      for (int64_t x = 0; x < launch_.grid[0]; ++x)
        waiting.push_back({x, y, z});
  std::shuffle(waiting.begin(), waiting.end(), random_);
  std::vector<std::unique_ptr<Machine>> running;
  for (uint64_t turn = 0; turn < kMostTurns; ++turn) {
    while (running.size() < launch_.together && !waiting.empty()) {
      running.push_back(std::make_unique<Machine>(kernel_, code_, launch_));
      running.back()->random_.seed(random_());
      running.back()->startBlock(waiting.back(), threads);
      waiting.pop_back();
    }
    if (running.empty())
      return {};
    std::unique_ptr<Machine>& next = running[random_() % running.size()];
    bool goesOn = true;
    for (unsigned steps = 1 + random_() % 8; goesOn && steps > 0; --steps)
      goesOn = next->advanceBlock();
    if (next->hasFailed())
      return next->error_;
    if (!goesOn) {
      std::swap(next, running.back());
      running.pop_back();
    }
  }
  return "blocks wait for each other for ever";
}

void Machine::fail(mlir::Operation* op, const std::string& what) {
  if (error_.empty())
    llvm::raw_string_ostream(error_) << what << ": " << *op;
}

bool Machine::isGlobal(const char* begin, size_t bytes) const {
  return llvm::any_of(launch_.memory, [&](const MemoryRange& range) {
    return begin >= range.begin && begin + bytes <= range.begin + range.bytes;
  });
}

//===-- blocks ------------------------------------------------------------------------------------------------===//

void Machine::startThread(Thread& t) {
  t.state = Thread::State::Ready;
  t.next = 0;
  t.at = nullptr;
  t.copies.assign(1, {});
  t.registers = code_->initial();
  for (auto [argument, slot] : llvm::zip(kernel_.getBody().getArguments(), launch_.slots))
    *cells(t, argument) = slot;
}

void Machine::startBlock(std::array<int64_t, 3> block, unsigned threads) {
  block_ = block;
  sharedBytes_ = static_cast<size_t>(kernel_.getSharedBytes());
  if (kernel_->hasAttr(Lowering::kSharedTail))
    sharedBytes_ = launch_.sharedTail ? sharedBytes_ + static_cast<size_t>(*launch_.sharedTail) : kMostShared;
  shared_.assign(sharedBytes_ + 1024, static_cast<char>(0xA5));
  sharedBase_ = reinterpret_cast<char*>(llvm::alignTo(reinterpret_cast<uintptr_t>(shared_.data()), 1024));
  units_.reset(threads);
  order_.reset(sharedBytes_, threads);
  threads_.resize(threads);
  turns_.resize(threads);
  for (unsigned i = 0; i < threads; ++i) {
    turns_[i] = i;
    threads_[i].number = i;
    startThread(threads_[i]);
  }
}

bool Machine::advanceBlock() {
  const bool ran = runReady();
  const bool warpsMet = meet(kWarp, Thread::State::Warp), groupsMet = meet(kWarpgroup, Thread::State::Group);
  const bool happened = units_.advance(false);
  if (!ran && !warpsMet && !groupsMet && !happened) {
    if (llvm::all_of(threads_, [](Thread& t) { return t.state == Thread::State::Done; }))
      return false;
    if (!units_.advance(true))
      releaseBarrier();
  }
  return error_.empty();
}

bool Machine::runReady() {
  std::shuffle(turns_.begin(), turns_.end(), random_);
  bool ran = false;
  for (unsigned i : turns_) {
    Thread& t = threads_[i];
    if (t.state == Thread::State::Blocked && t.until()) {
      t.state = Thread::State::Ready;
      t.then();
    }
    if (t.state == Thread::State::Yielded)
      t.state = Thread::State::Ready;
    if (t.state != Thread::State::Ready || !error_.empty())
      continue;
    ran = true;
    execute(t);
  }
  return ran;
}

/// Nothing else can happen: all threads are at one barrier, or stay where they are for ever.
void Machine::releaseBarrier() {
  for (Thread& t : threads_)
    if (t.state != Thread::State::Barrier || t.at != threads_[0].at)
      return reportDeadlock();
  for (Thread& t : threads_)
    t.state = Thread::State::Ready;
  order_.meet(0, static_cast<unsigned>(threads_.size()));
}

void Machine::reportDeadlock() {
  std::string text = "threads wait at different places";
  llvm::raw_string_ostream out(text);
  mlir::Operation* last = nullptr;
  for (Thread& t : threads_) {
    if (t.state == Thread::State::Done || t.at == last)
      continue;
    last = t.at;
    out << "\n  thread " << t.number << " waits ";
    if (t.state == Thread::State::Blocked)
      out << t.missing() << ' ';
    out << "at " << *t.at;
  }
  error_ = std::move(text);
}

//===-- where threads meet ------------------------------------------------------------------------------------===//

/// Threads of a warp or warpgroup that have come to the same operation do it together.
bool Machine::meet(size_t size, Thread::State state) {
  bool any = false;
  for (size_t first = 0; first + size <= threads_.size(); first += size) {
    bool together = true;
    for (size_t i = first; i < first + size; ++i)
      together &= threads_[i].state == state && threads_[i].at == threads_[first].at;
    if (!together)
      continue;
    any = true;
    resolve(first, threads_[first].at);
    for (size_t i = first; i < first + size; ++i)
      threads_[i].state = Thread::State::Ready;
  }
  return any;
}

void Machine::resolve(size_t first, mlir::Operation* op) {
  if (units_.multiply(first, op) || units_.storeMatrix(first, op))
    return;
  if (llvm::isa<vxt::WarpBarrierOp>(op))
    return order_.meet(static_cast<unsigned>(first), kWarp);
  if (auto each = llvm::dyn_cast<vxt::ShuffleOp>(op))
    return shuffle(first, each);
  if (auto load = llvm::dyn_cast<vxt::LoadMatrixOp>(op))
    return loadMatrix(first, load);
  if (auto load = llvm::dyn_cast<vxt::FragmentLoadOp>(op))
    return accessFragment(first, op, load.getBase(), load.getIndex(), load.getPitch(), load.getTransposed(),
                          load.getResult());
  if (auto store = llvm::dyn_cast<vxt::FragmentStoreOp>(op))
    return accessFragment(first, op, store.getBase(), store.getIndex(), store.getPitch(), false, store.getValue());
  if (auto product = llvm::dyn_cast<vxt::FragmentMultiplyOp>(op)) {
    auto result = multiplyFragments(product, warpRegisters(first, product.getA()), warpRegisters(first, product.getB()),
                                    warpRegisters(first, product.getC()));
    for (size_t lane = 0; lane < 32; ++lane)
      llvm::copy(result[lane], cells(threads_[first + lane], product.getResult()));
    return;
  }
  if (auto mma = llvm::dyn_cast<vxt::MmaOp>(op)) {
    auto result = multiplyMatrices(mma, warpRegisters(first, mma.getA()), warpRegisters(first, mma.getB()),
                                   warpRegisters(first, mma.getC()));
    if (result.empty())
      return fail(op, "unknown matrix shape");
    for (size_t lane = 0; lane < 32; ++lane)
      llvm::copy(result[lane], cells(threads_[first + lane], mma.getResult()));
  }
}

void Machine::checkOrder(mlir::Operation* op, unsigned number, size_t place, size_t bytes, bool isStore) {
  if (std::string missing = order_.access(number, place, bytes, isStore); !missing.empty())
    fail(op, missing);
}

void Machine::shuffle(size_t first, vxt::ShuffleOp shuffle) {
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
}

WarpRegisters Machine::warpRegisters(size_t first, mlir::Value value) {
  WarpRegisters result;
  for (size_t lane = 0; lane < 32; ++lane) {
    uint64_t* own = cells(threads_[first + lane], value);
    result.emplace_back(own, own + lanesOf(value.getType()));
  }
  return result;
}

void Machine::loadMatrix(size_t first, vxt::LoadMatrixOp op) {
  std::vector<const char*> rows;
  for (size_t lane = 0; lane < 32; ++lane) {
    Thread& t = threads_[first + lane];
    uint64_t bytes = static_cast<uint64_t>(vxt::scalarBytes(op.getElement()));
    rows.push_back(reinterpret_cast<const char*>(cell(t, op.getBase()) + cell(t, op.getIndex()) * bytes));
    if (rows.back() < sharedBase_ || rows.back() + 16 > sharedBase_ + kernel_.getSharedBytes() ||
        reinterpret_cast<uintptr_t>(rows.back()) % 16)
      return fail(op, "bad row address");
    checkOrder(op, t.number, static_cast<size_t>(rows.back() - sharedBase_), 16, false);
  }
  WarpRegisters words = loadMatrices(rows, static_cast<unsigned>(op.getCount()), op.getTransposed());
  for (size_t lane = 0; lane < 32; ++lane)
    llvm::copy(words[lane], cells(threads_[first + lane], op.getResult()));
}

/// Lane l holds elements 2l and 2l + 1 in row-major order: no target's own deal, so that nothing relies on one.
void Machine::accessFragment(size_t first, mlir::Operation* op, mlir::Value base, mlir::Value index, uint64_t pitch,
                             bool transposed, mlir::Value fragment) {
  auto bytes =
      static_cast<uint64_t>(vxt::scalarBytes(llvm::cast<vxt::FragmentType>(fragment.getType()).getElementType()));
  const bool isStore = op->getNumResults() == 0;
  const uint64_t place = cell(threads_[first], base) + cell(threads_[first], index) * bytes;
  for (size_t lane = 0; lane < 32; ++lane) {
    Thread& t = threads_[first + lane];
    if (cell(t, base) + cell(t, index) * bytes != place)
      return fail(op, "lanes give different places");
    for (uint64_t j = 0; j < 2; ++j) {
      uint64_t row = lane / 4, column = lane % 4 * 2 + j;
      if (transposed)
        std::swap(row, column);
      char* at = reinterpret_cast<char*>(place + (row * pitch + column) * bytes);
      if (at < sharedBase_ || at + bytes > sharedBase_ + sharedBytes_ || place % bytes)
        return fail(op, "bad address of a fragment");
      checkOrder(op, t.number, static_cast<size_t>(at - sharedBase_), bytes, isStore);
      uint64_t& held = cells(t, fragment)[j];
      if (isStore) {
        std::memcpy(at, &held, bytes);
      } else {
        held = 0;
        std::memcpy(&held, at, bytes);
      }
    }
  }
}

std::string run(vxt::KernelOp kernel, const Launch& launch) {
  return Machine(kernel, std::make_shared<const Code>(kernel), launch).run();
}

}  // namespace vortex::target::gpu::testing
