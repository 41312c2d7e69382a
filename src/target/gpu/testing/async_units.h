// For tests: what runs beside the threads of a block on chips with bulk tensor copies and warpgroup products.
//
// An operation that was started happens later: as late as possible, at once, or at a random moment (Timing). Until then nobody may touch what it
// writes nor write what it reads; both are found at the access, so that a missing wait shows whatever the data are. A thread's own writes to
// shared memory are invisible to these operations until it says so (async_fence).
#pragma once

#include "artifact/tensor_map.h"
#include "ir/vxnv.h"
#include "layout/hopper.h"
#include "target/gpu/testing/shared_order.h"
#include "target/gpu/testing/thread.h"

#include <deque>
#include <map>
#include <memory>
#include <set>

namespace vortex::target::gpu::testing {

class Machine;
struct Instruction;

class AsyncUnits {
public:
  explicit AsyncUnits(Machine& machine);
  /// A block begins.
  void reset(unsigned threads);
  /// A thread's operation; false: none of these.
  bool execute(Thread& t, mlir::Operation* op);
  /// An instruction of a warpgroup, or of a warp, whose threads have met at it.
  bool multiply(size_t first, mlir::Operation* op);
  bool storeMatrix(size_t first, mlir::Operation* op);
  /// An access of a thread to shared memory.
  void checkAccess(Thread& t, mlir::Operation* op, const char* pointer, size_t bytes, bool isStore);
  /// Sums that are not there yet are no operands.
  void checkOperands(Thread& t, const Instruction& instruction);
  /// Some of what is pending happens; `isStuck`: no thread can go on. Whether anything did.
  bool advance(bool isStuck);
  /// A thread has come to its end.
  void checkEnd(Thread& t);

private:
  struct Barrier {
    int64_t count = 0, arrivals = 0, bytes = 0;  ///< arrivals and bytes that the running phase still lacks
    unsigned phase = 0;
    unsigned initialiser = 0;
    bool isVisible = false;                ///< to copies
    SharedOrder::Clock arrived{}, done{};  ///< so far; when the last phase ended
  };
  struct Range {
    size_t begin, bytes;  ///< in shared memory
  };
  struct Load {
    artifact::TensorMapOf<int64_t> map;
    std::vector<int64_t> coordinates;
    size_t place;    ///< in shared memory
    size_t barrier;  ///< its place
    mlir::Operation* op;
    SharedOrder::Clock started{};
  };
  /// Reads its box, then writes it.
  struct Store {
    artifact::TensorMapOf<int64_t> map;
    std::vector<int64_t> coordinates;
    size_t place;
    unsigned thread;
    uint64_t group;
    mlir::Operation* op;
    std::vector<char> box{};
    bool isRead = false;
  };
  /// Sums of a warpgroup, 128 threads one after another; ready once the product that makes them has happened.
  struct Sums {
    std::vector<uint32_t> values;  ///< bits of f32 or i32
    bool isReady = false;
  };
  struct Product {
    mlir::Operation* op;
    mlir::Type element;
    bool isFirst;
    std::vector<uint64_t> initial{};  ///< cells of the operands, by thread
    std::vector<double> a{};          ///< in registers: 64 rows, one after another
    uint32_t result = 0;              ///< in sums_
    uint64_t group = 0;
    std::vector<size_t>
        reads{};  ///< places of elements: of A's rows, if they lie in shared memory, then of B's columns
  };
  /// A barrier of the block with a number: which threads have arrived since it opened last.
  struct NamedBarrier {
    std::set<unsigned> arrived{};
    unsigned threads = 0, opened = 0;
    SharedOrder::Clock clock{}, done{};  ///< of the arrivals; when it opened last
  };
  struct StoreGroups {
    uint64_t open = 0;  ///< number of the group that is not committed
  };
  struct Warpgroup {
    std::deque<Product> pending;
    uint64_t open = 0;
    bool isFenced = false;
  };

  // async_units.cpp
  size_t placeOf(Thread& t, mlir::Value pointer);
  bool isInside(mlir::Operation* op, size_t place, size_t bytes);
  /// `then` happens once `until` holds.
  void block(Thread& t, mlir::Operation* op, std::function<bool()> until, std::function<std::string()> missing,
             std::function<void()> then);
  Barrier* findBarrier(Thread& t, mlir::Operation* op, mlir::Value pointer);
  void initialise(Thread& t, ir::vxnv::BarrierInitOp op);
  void arrive(Thread& t, mlir::Operation* op, Barrier& barrier);
  void endPhase(Barrier& barrier);
  void waitFor(Thread& t, ir::vxnv::BarrierWaitOp op);
  void meet(Thread& t, ir::vxnv::NamedBarrierOp op);
  void startLoad(Thread& t, ir::vxnv::BulkLoadOp op);
  void startStore(Thread& t, ir::vxnv::BulkStoreOp op);
  void waitForStores(Thread& t, ir::vxnv::BulkWaitOp op);
  void fence(Thread& t);
  void finish(const Load& load);
  void read(Store& store);
  void write(const Store& store);
  bool finishLoad();
  bool continueStore();
  bool finishProduct();
  bool advanceOne();
  void happenEarly();
  std::optional<artifact::TensorMapOf<int64_t>> findMap(mlir::Operation* op, uint64_t number);
  std::vector<int64_t> coordinates(Thread& t, mlir::ValueRange values);
  bool checkPlace(mlir::Operation* op, const artifact::TensorMapOf<int64_t>& map, size_t place);
  template <typename Visit>
  void forEachInBox(const artifact::TensorMapOf<int64_t>& map, const std::vector<int64_t>& first, const Visit& visit);
  static size_t boxBytes(const artifact::TensorMapOf<int64_t>& map);
  // async_products.cpp
  uint64_t descriptor(size_t first, mlir::Operation* op, mlir::Value operand);
  template <typename Op> Product describe(size_t first, Op op);
  void startProduct(size_t first, ir::vxnv::WgmmaOp op);
  void startProduct(size_t first, ir::vxnv::WgmmaRegistersOp op);
  void start(size_t first, Product product);
  void collectReads(size_t first, Product& product, uint64_t descriptor, bool isAcross, uint32_t across);
  void finish(Warpgroup& group);
  void waitForProducts(Thread& t, ir::vxnv::WgmmaWaitOp op);
  std::optional<uint32_t> valueOf(uint64_t cell, size_t thread, size_t number) const;

  Machine& machine_;
  std::map<size_t, Barrier> barriers_;
  std::map<uint64_t, NamedBarrier> namedBarriers_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<StoreGroups> storeGroups_;  ///< by thread
  std::vector<Warpgroup> groups_;
  std::deque<Sums> sums_;
  // Per byte of shared memory: pending operations that write or read it, and the thread (+ 1) whose write they do not see.
  std::vector<uint16_t> writes_, reads_, unfenced_;
  std::vector<std::vector<Range>> written_;  ///< by thread: what unfenced_ says of it
  /// Row and column of a warpgroup's first four accumulators, by thread, and of its eight elements of A.
  std::vector<std::pair<size_t, size_t>> accumulators_, rows_;
};

}  // namespace vortex::target::gpu::testing
