#include "target/gpu/testing/async_units.h"

#include "base/text.h"
#include "target/gpu/testing/machine_state.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <llvm/ADT/TypeSwitch.h>
#include <utility>

namespace vortex::target::gpu::testing {

namespace vxnv = ir::vxnv;
using artifact::TensorMapOf;
using base::concat;

namespace {

constexpr size_t kBarrierBytes = 8;
/// What lies where a copy has not arrived.
constexpr char kPoison = 0x7D;

artifact::ScalarType typeOf(mlir::Type type) {
  // Copies move bits: one type of each size is enough.
  switch (ir::vxt::scalarBytes(type)) {
  case 1: return artifact::ScalarType::U8;
  case 2: return artifact::ScalarType::U16;
  case 4: return artifact::ScalarType::U32;
  default: return artifact::ScalarType::U64;
  }
}

/// An f32, of which 13 bits go.
void roundToTf32(char* number) {
  constexpr uint32_t kLost = 13;
  uint32_t bits = 0;
  std::memcpy(&bits, number, sizeof bits);
  if (std::isfinite(std::bit_cast<float>(bits)))
    bits = (bits + (1u << (kLost - 1))) >> kLost << kLost;
  std::memcpy(number, &bits, sizeof bits);
}

}  // namespace

AsyncUnits::AsyncUnits(Machine& machine) : machine_(machine) {
  if (!machine.code().isAsynchronous())
    return;
  const auto deal = [](const layout::Layout& dealt, size_t count, std::vector<std::pair<size_t, size_t>>& to) {
    for (size_t thread = 0; thread < 128; ++thread)
      for (size_t number = 0; number < count; ++number) {
        const std::vector<layout::Bits> place = dealt.apply({.reg = number, .lane = thread % 32, .warp = thread / 32});
        to.emplace_back(place[0], place[1]);
      }
  };
  deal(layout::warpgroupAccumulators(), 4, accumulators_);
  deal(layout::warpgroupA(16), 8, rows_);
}

void AsyncUnits::reset(unsigned threads) {
  barriers_.clear();
  namedBarriers_.clear();
  loads_.clear();
  stores_.clear();
  sums_.clear();
  storeGroups_.assign(threads, {});
  groups_.clear();
  groups_.resize((threads + 127) / 128);
  written_.assign(threads, {});
  for (std::vector<uint16_t>* marks : {&writes_, &reads_, &unfenced_})
    marks->assign(machine_.sharedBytes(), 0);
}

size_t AsyncUnits::placeOf(Thread& t, mlir::Value pointer) {
  return machine_.cell(t, pointer) - reinterpret_cast<uint64_t>(machine_.sharedBase());
}

bool AsyncUnits::isInside(mlir::Operation* op, size_t place, size_t bytes) {
  if (place <= machine_.sharedBytes() && bytes <= machine_.sharedBytes() - place)
    return true;
  machine_.fail(op, "outside of shared memory");
  return false;
}

void AsyncUnits::block(Thread& t, mlir::Operation* op, std::function<bool()> until,
                       std::function<std::string()> missing, std::function<void()> then) {
  if (until())
    return then();
  t.until = std::move(until);
  t.missing = std::move(missing);
  t.then = std::move(then);
  machine_.wait(t, Thread::State::Blocked, op);
}

bool AsyncUnits::execute(Thread& t, mlir::Operation* op) {
  bool isKnown = true;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case<vxnv::SetRegistersOp, vxnv::PrefetchMapOp>([](auto) {})
      .Case([&](vxnv::BarrierInitOp init) { initialise(t, init); })
      .Case([&](vxnv::BarrierInitFenceOp) {
        for (auto& [place, barrier] : barriers_)
          barrier.isVisible |= barrier.initialiser == t.number;
      })
      .Case([&](vxnv::BarrierExpectOp expect) {
        if (Barrier* barrier = findBarrier(t, op, expect.getBarrier())) {
          barrier->bytes += static_cast<int64_t>(expect.getBytes());
          arrive(t, op, *barrier);
        }
      })
      .Case([&](vxnv::BarrierArriveOp arrival) {
        if (Barrier* barrier = findBarrier(t, op, arrival.getBarrier()))
          arrive(t, op, *barrier);
      })
      .Case([&](vxnv::BarrierWaitOp barrier) { waitFor(t, barrier); })
      .Case([&](vxnv::NamedBarrierOp barrier) { meet(t, barrier); })
      .Case([&](vxnv::BulkLoadOp load) { startLoad(t, load); })
      .Case([&](vxnv::BulkStoreOp store) { startStore(t, store); })
      .Case([&](vxnv::BulkCommitOp) { ++storeGroups_[t.number].open; })
      .Case([&](vxnv::BulkWaitOp stores) { waitForStores(t, stores); })
      .Case([&](vxnv::AsyncFenceOp) { fence(t); })
      .Case([&](vxnv::WgmmaWaitOp products) { waitForProducts(t, products); })
      .Case<vxnv::WgmmaOp, vxnv::WgmmaRegistersOp, vxnv::WgmmaFenceOp, vxnv::WgmmaCommitOp>(
          [&](auto) { machine_.wait(t, Thread::State::Group, op); })
      .Case([&](vxnv::StoreMatrixOp) { machine_.wait(t, Thread::State::Warp, op); })
      .Default([&](mlir::Operation*) { isKnown = false; });
  if (isKnown)
    happenEarly();
  return isKnown;
}

//===-- shared memory as threads see it -----------------------------------------------------------------------===//

void AsyncUnits::checkAccess(Thread& t, mlir::Operation* op, const char* pointer, size_t bytes, bool isStore) {
  if (!machine_.code().isAsynchronous())
    return;
  const auto begin = static_cast<size_t>(pointer - machine_.sharedBase());
  for (size_t byte = begin; byte < begin + bytes; ++byte) {
    if (writes_[byte])
      return machine_.fail(
          op, concat("thread ", t.number, " touches byte ", byte, " of shared memory before a copy has arrived"));
    if (isStore && reads_[byte])
      return machine_.fail(
          op, concat("thread ", t.number, " writes byte ", byte, " of shared memory that an operation still reads"));
    if (auto barrier = barriers_.upper_bound(byte);
        barrier != barriers_.begin() && byte < std::prev(barrier)->first + kBarrierBytes)
      return machine_.fail(op, concat("thread ", t.number, " touches a barrier"));
    if (isStore)
      unfenced_[byte] = static_cast<uint16_t>(t.number + 1);
  }
  if (isStore)
    written_[t.number].push_back({begin, bytes});
}

void AsyncUnits::fence(Thread& t) {
  for (const Range& range : written_[t.number])
    for (size_t byte = range.begin; byte < range.begin + range.bytes; ++byte)
      if (unfenced_[byte] == t.number + 1)
        unfenced_[byte] = 0;
  written_[t.number].clear();
}

//===-- barriers ----------------------------------------------------------------------------------------------===//

void AsyncUnits::initialise(Thread& t, vxnv::BarrierInitOp op) {
  const size_t place = placeOf(t, op.getBarrier());
  if (!isInside(op, place, kBarrierBytes))
    return;
  if (place % kBarrierBytes != 0 || op.getCount() == 0)
    return machine_.fail(op, "impossible barrier");
  const auto count = static_cast<int64_t>(op.getCount());
  barriers_[place] = {.count = count, .arrivals = count, .initialiser = t.number};
}

AsyncUnits::Barrier* AsyncUnits::findBarrier(Thread& t, mlir::Operation* op, mlir::Value pointer) {
  const auto found = barriers_.find(placeOf(t, pointer));
  if (found != barriers_.end())
    return &found->second;
  machine_.fail(op, concat("thread ", t.number, " uses a barrier that is not initialised"));
  return nullptr;
}

void AsyncUnits::arrive(Thread& t, mlir::Operation* op, Barrier& barrier) {
  if (barrier.arrivals == 0)
    return machine_.fail(op, "more arrivals than the barrier counts");
  machine_.order().release(t.number, barrier.arrived);
  --barrier.arrivals;
  endPhase(barrier);
}

void AsyncUnits::endPhase(Barrier& barrier) {
  if (barrier.arrivals != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.done = barrier.arrived;
  barrier.arrivals = barrier.count;
}

void AsyncUnits::meet(Thread& t, vxnv::NamedBarrierOp op) {
  const uint64_t number = machine_.cell(t, op.getNumber()) & 0xffffffff;
  if (number == 0 || number > 15)
    return machine_.fail(op, concat("there is no barrier ", number, " for parts of a block"));
  NamedBarrier& barrier = namedBarriers_[number];
  const auto threads = static_cast<unsigned>(op.getThreads());
  if (!barrier.arrived.empty() && barrier.threads != threads)
    return machine_.fail(op, "arrivals disagree on how many there are");
  if (!barrier.arrived.insert(t.number).second)
    return machine_.fail(op, concat("thread ", t.number, " arrives again at barrier ", number, ", which is closed"));
  machine_.order().release(t.number, barrier.clock);
  barrier.threads = threads;
  const unsigned opened = barrier.opened;
  if (barrier.arrived.size() == threads) {
    barrier.arrived.clear();
    barrier.done = std::exchange(barrier.clock, {});
    ++barrier.opened;
  }
  if (op.getArrives())
    return;
  block(
      t, op, [&barrier, opened] { return barrier.opened != opened; },
      [&barrier, number] {
        return concat("for ", barrier.threads - barrier.arrived.size(), " arrivals at barrier ", number);
      },
      [this, &t, &barrier] { machine_.order().acquire(t.number, barrier.done); });
}

void AsyncUnits::waitFor(Thread& t, vxnv::BarrierWaitOp op) {
  Barrier* barrier = findBarrier(t, op, op.getBarrier());
  if (!barrier)
    return;
  const auto parity = static_cast<unsigned>(machine_.cell(t, op.getParity()) & 1);
  block(
      t, op, [=] { return (barrier->phase & 1) != parity; },
      [=, place = placeOf(t, op.getBarrier())] {
        return concat("for parity ", parity, " of the barrier at ", place, ", which lacks ", barrier->arrivals, " of ",
                      barrier->count, " arrivals and ", barrier->bytes, " bytes");
      },
      [this, &t, barrier] { machine_.order().acquire(t.number, barrier->done); });
}

//===-- copies ------------------------------------------------------------------------------------------------===//

std::optional<TensorMapOf<int64_t>> AsyncUnits::findMap(mlir::Operation* op, uint64_t number) {
  vxnv::MapAttr map = vxnv::findMap(op, static_cast<int64_t>(number));
  if (!map) {
    machine_.fail(op, "no such map");
    return std::nullopt;
  }
  const auto value = [&](mlir::Attribute size) {
    return size::evaluate(llvm::cast<ir::SizeAttr>(size).getExpr(), machine_.launch().argument);
  };
  const bool isTf32 = map.getElement().isTF32();
  TensorMapOf<int64_t> result{.type = isTf32 ? artifact::ScalarType::F32 : typeOf(map.getElement()),
                              .roundToTf32 = isTf32,
                              .rank = static_cast<uint32_t>(map.getBox().size()),
                              .address = value(map.getAddress()),
                              .swizzleBytes = static_cast<uint32_t>(map.getSwizzle())};
  for (uint32_t i = 0; i < result.rank && i < artifact::kMaxMapRank; ++i) {
    result.extents[i] = value(map.getExtents()[i]);
    result.box[i] = static_cast<uint32_t>(map.getBox()[i]);
    if (i > 0)
      result.byteStrides[i - 1] = value(map.getStrides()[i - 1]);
  }
  if (const std::string error = encodingError(result); !error.empty()) {
    machine_.fail(op, "the map cannot be encoded: " + error);
    return std::nullopt;
  }
  return result;
}

std::vector<int64_t> AsyncUnits::coordinates(Thread& t, mlir::ValueRange values) {
  std::vector<int64_t> result;
  for (mlir::Value value : values)
    result.push_back(static_cast<int32_t>(machine_.cell(t, value)));
  return result;
}

size_t AsyncUnits::boxBytes(const TensorMapOf<int64_t>& map) {
  size_t bytes = byteSize(map.type);
  for (uint32_t i = 0; i < map.rank; ++i)
    bytes *= map.box[i];
  return bytes;
}

/// Boxes begin where their swizzle does, and fill its rows.
bool AsyncUnits::checkPlace(mlir::Operation* op, const TensorMapOf<int64_t>& map, size_t place) {
  constexpr size_t kPlainAlignment = 128;
  if (!isInside(op, place, boxBytes(map)))
    return false;
  const uint32_t swizzle = map.swizzleBytes;
  const bool isWhole = swizzle == 0 || map.box[0] * byteSize(map.type) == swizzle;
  if (isWhole && place % (swizzle == 0 ? kPlainAlignment : size_t{8} * swizzle) == 0)
    return true;
  machine_.fail(op, concat("a box at ", place, " does not suit its swizzle of ", swizzle));
  return false;
}

/// Calls `visit(place in the box, address; null outside of the tensor)`.
template <typename Visit>
void AsyncUnits::forEachInBox(const TensorMapOf<int64_t>& map, const std::vector<int64_t>& first, const Visit& visit) {
  const std::span box(map.box, map.rank);
  std::vector<uint32_t> at(map.rank);
  for (size_t left = boxBytes(map) / byteSize(map.type); left > 0; --left) {
    int64_t address = map.address;
    bool isInside = true;
    for (uint32_t i = 0; i < map.rank; ++i) {
      const int64_t coordinate = first[i] + at[i];
      isInside &= coordinate >= 0 && coordinate < map.extents[i];
      address += coordinate * (i == 0 ? byteSize(map.type) : map.byteStrides[i - 1]);
    }
    visit(layout::placeInBox(box, byteSize(map.type), map.swizzleBytes, at),
          isInside ? reinterpret_cast<char*>(address) : nullptr);
    for (uint32_t i = 0; i < map.rank && ++at[i] == map.box[i]; ++i)
      at[i] = 0;
  }
}

void AsyncUnits::startLoad(Thread& t, vxnv::BulkLoadOp op) {
  Barrier* barrier = findBarrier(t, op, op.getBarrier());
  const std::optional<TensorMapOf<int64_t>> map = findMap(op, op.getMap());
  if (!barrier || !map)
    return;
  if (!barrier->isVisible)
    return machine_.fail(op, "copies do not see the barrier: no barrier_init_fence");
  Load load{*map, coordinates(t, op.getCoordinates()), placeOf(t, op.getDestination()), placeOf(t, op.getBarrier()),
            op};
  if (!checkPlace(op, load.map, load.place))
    return;
  for (size_t byte = load.place; byte < load.place + boxBytes(load.map); ++byte) {
    if (writes_[byte] || reads_[byte])
      return machine_.fail(op,
                           concat("byte ", byte, " of shared memory is still ", writes_[byte] ? "written" : "read"));
    if (unfenced_[byte])
      return machine_.fail(op, concat("thread ", unfenced_[byte] - 1, " wrote byte ", byte, " without a fence"));
    ++writes_[byte];
    machine_.sharedBase()[byte] = kPoison;
  }
  machine_.checkOrder(op, t.number, load.place, boxBytes(load.map), true);
  machine_.order().release(t.number, load.started);
  loads_.push_back(std::move(load));
}

void AsyncUnits::finish(const Load& load) {
  const size_t bytes = byteSize(load.map.type);
  forEachInBox(load.map, load.coordinates, [&](uint32_t place, const char* from) {
    char* to = machine_.sharedBase() + load.place + place;
    if (from && !machine_.isGlobal(from, bytes))
      return machine_.fail(load.op, "the map reads outside of all memory");
    from ? static_cast<void>(std::memcpy(to, from, bytes)) : static_cast<void>(std::memset(to, 0, bytes));
    if (load.map.roundToTf32)
      roundToTf32(to);
  });
  for (size_t byte = load.place; byte < load.place + boxBytes(load.map); ++byte)
    --writes_[byte];
  Barrier& barrier = barriers_[load.barrier];
  machine_.order().include(barrier.arrived, load.started);
  barrier.bytes -= static_cast<int64_t>(boxBytes(load.map));
  endPhase(barrier);
}

void AsyncUnits::startStore(Thread& t, vxnv::BulkStoreOp op) {
  const std::optional<TensorMapOf<int64_t>> map = findMap(op, op.getMap());
  if (!map)
    return;
  Store store{*map,     coordinates(t, op.getCoordinates()), placeOf(t, op.getSource()),
              t.number, storeGroups_[t.number].open,         op};
  if (!checkPlace(op, store.map, store.place))
    return;
  for (size_t byte = store.place; byte < store.place + boxBytes(store.map); ++byte) {
    if (writes_[byte])
      return machine_.fail(op, concat("byte ", byte, " of shared memory has not arrived"));
    if (unfenced_[byte])
      return machine_.fail(op, concat("thread ", unfenced_[byte] - 1, " wrote byte ", byte, " without a fence"));
    ++reads_[byte];
  }
  machine_.checkOrder(op, t.number, store.place, boxBytes(store.map), false);
  stores_.push_back(std::move(store));
}

void AsyncUnits::read(Store& store) {
  const char* from = machine_.sharedBase() + store.place;
  store.box.assign(from, from + boxBytes(store.map));
  for (size_t byte = store.place; byte < store.place + store.box.size(); ++byte)
    --reads_[byte];
  store.isRead = true;
}

void AsyncUnits::write(const Store& store) {
  const size_t bytes = byteSize(store.map.type);
  forEachInBox(store.map, store.coordinates, [&](uint32_t place, char* to) {
    if (to && !machine_.isGlobal(to, bytes))
      return machine_.fail(store.op, "the map writes outside of all memory");
    if (to)
      std::memcpy(to, store.box.data() + place, bytes);
  });
}

void AsyncUnits::waitForStores(Thread& t, vxnv::BulkWaitOp op) {
  const uint64_t open = storeGroups_[t.number].open, pending = op.getPending();
  const bool isWritten = op.getWritten();
  const auto isWaitedFor = [=, number = t.number](const Store& store) {
    return store.thread == number && store.group + pending < open && (isWritten || !store.isRead);
  };
  block(
      t, op, [=, this] { return llvm::none_of(stores_, isWaitedFor); },
      [=, this] { return concat("for ", llvm::count_if(stores_, isWaitedFor), " bulk stores"); }, [] {});
}

void AsyncUnits::checkEnd(Thread& t) {
  for (const Store& store : stores_)
    if (store.thread == t.number)
      return machine_.fail(store.op, concat("thread ", t.number, " ends before its bulk store is complete"));
}

//===-- time --------------------------------------------------------------------------------------------------===//

bool AsyncUnits::finishLoad() {
  if (loads_.empty())
    return false;
  const auto chosen = loads_.begin() + static_cast<std::ptrdiff_t>(machine_.random()() % loads_.size());
  const Load load = std::move(*chosen);
  loads_.erase(chosen);
  finish(load);
  return true;
}

bool AsyncUnits::continueStore() {
  if (stores_.empty())
    return false;
  const auto chosen = stores_.begin() + static_cast<std::ptrdiff_t>(machine_.random()() % stores_.size());
  if (!chosen->isRead) {
    read(*chosen);
    return true;
  }
  write(*chosen);
  stores_.erase(chosen);
  return true;
}

bool AsyncUnits::finishProduct() {
  std::vector<Warpgroup*> busy;
  for (Warpgroup& group : groups_)
    if (!group.pending.empty())
      busy.push_back(&group);
  if (busy.empty())
    return false;
  finish(*busy[machine_.random()() % busy.size()]);
  return true;
}

/// One of the pending operations happens. Which kind goes first: the seed's choice when they are late, so that each kind is the last
/// one for some seed; else it changes.
bool AsyncUnits::advanceOne() {
  constexpr bool (AsyncUnits::* kKinds[])() = {&AsyncUnits::finishLoad, &AsyncUnits::continueStore,
                                               &AsyncUnits::finishProduct};
  const bool isLate = machine_.launch().timing == Timing::Late;
  const unsigned choice = isLate ? machine_.launch().seed : static_cast<unsigned>(machine_.random()());
  const unsigned first = choice % 3, second = (first + 1 + choice / 3 % 2) % 3, third = 3 - first - second;
  for (unsigned kind : {first, second, third})
    if ((this->*kKinds[kind])())
      return true;
  return false;
}

void AsyncUnits::happenEarly() {
  if (machine_.launch().timing == Timing::Early)
    while (advanceOne()) {
    }
}

bool AsyncUnits::advance(bool isStuck) {
  if (isStuck)
    return advanceOne();
  bool any = false;
  if (machine_.launch().timing == Timing::Random)
    while (machine_.random()() % 4 == 0 && advanceOne())
      any = true;
  return any;
}

}  // namespace vortex::target::gpu::testing
