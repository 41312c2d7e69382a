// What the verifier of vxnv.roles proves about rings, by running each role once with sets of slots instead of data:
//
// - how many slots a role goes through is a polynomial over the bounds of its loops; producer and consumers must have the same one;
// - a loop leaves what it found: as many slots held, the same ones of them read by products that run, and no turn begun or ended;
// - sums are read when no product that makes them runs.
#include "ir/vxnv.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

namespace vortex::ir::vxnv {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

/// Sum of coefficients times products of values, which are sorted.
using Polynomial = std::map<std::vector<void*>, int64_t>;

void add(Polynomial& to, const Polynomial& from) {
  for (const auto& [term, factor] : from)
    if ((to[term] += factor) == 0)
      to.erase(term);
}

Polynomial times(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [x, i] : a)
    for (const auto& [y, j] : b) {
      std::vector<void*> term = x;
      term.insert(term.end(), y.begin(), y.end());
      llvm::sort(term);
      add(product, {{term, i * j}});
    }
  return product;
}

Polynomial valueOf(Value value) {
  llvm::APInt known;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&known)))
    return known.isZero() ? Polynomial() : Polynomial{{{}, known.getSExtValue()}};
  return {{{value.getAsOpaquePointer()}, 1}};
}

/// What one role has done with one ring.
struct Ring {
  Polynomial slots;            ///< it went through
  std::vector<unsigned> held;  ///< numbers, oldest first
  bool operator==(const Ring& other) const { return held.size() == other.held.size(); }
};

class Role {
public:
  explicit Role(bool isProducer) : isProducer_(isProducer) {}

  LogicalResult run(mlir::Block& block) {
    for (mlir::Operation& op : block)
      if (failed(step(&op)))
        return failure();
    return success();
  }

  LogicalResult finish(RolesOp roles) {
    for (auto& [ring, state] : rings_)
      if (!state.held.empty())
        return roles.emitOpError(isProducer_ ? "has a producer that does not publish a slot"
                                             : "has consumers that do not release a slot");
    return hasTurn_ ? roles.emitOpError("has consumers that do not end a turn") : success();
  }

  const Polynomial& slots(Value ring) { return rings_[ring.getAsOpaquePointer()].slots; }

private:
  LogicalResult step(mlir::Operation* op) {
    return llvm::TypeSwitch<mlir::Operation*, LogicalResult>(op)
        .Case([&](mlir::scf::ForOp loop) { return runLoop(op, *loop.getBody(), tripCount(loop)); })
        .Case([&](TilesOp tiles) { return runLoop(op, tiles.getBody().front(), valueOf(tiles.getCount())); })
        .Case([&](AcquireOp acquire) { return take(op, acquire.getRing(), acquire.getSlot(), true); })
        .Case([&](AwaitOp await) { return take(op, await.getRing(), await.getSlot(), false); })
        .Case([&](PublishOp publish) { return give(op, publish.getRing(), true); })
        .Case([&](ReleaseOp release) { return give(op, release.getRing(), false); })
        .Case([&](CopyOp copy) {
          return isHeld(copy.getSlot()) ? success() : copy.emitOpError("fills a published slot");
        })
        .Case([&](DotStartOp dot) { return start(op, {dot.getASlot(), dot.getBSlot()}, dot.getResult()); })
        .Case([&](DotStartRegistersOp dot) { return start(op, dot.getBSlot(), dot.getResult()); })
        .Case([&](DotWaitOp wait) { return finish(wait); })
        .Case([&](SumOp sum) {
          return isRunning(sum.getSums()) ? sum.emitOpError("reads sums of a product that may run") : success();
        })
        .Case<TurnBeginOp, TurnEndOp>([&](auto) { return turn(op, llvm::isa<TurnBeginOp>(op)); })
        .Default([&](mlir::Operation*) {
          bool hidden = false;
          for (mlir::Region& region : op->getRegions())
            region.walk([&](mlir::Operation* inner) { hidden |= isRingOp(inner); });
          return hidden ? op->emitOpError("hides operations on rings from the verifier") : success();
        });
  }

  static bool isRingOp(mlir::Operation* op) {
    return llvm::isa<AcquireOp, AwaitOp, PublishOp, ReleaseOp, DotStartOp, DotStartRegistersOp, DotWaitOp, CopyOp,
                     TurnBeginOp, TurnEndOp>(op);
  }

  static Polynomial tripCount(mlir::scf::ForOp loop) {
    Polynomial count = valueOf(loop.getUpperBound());
    add(count, times(valueOf(loop.getLowerBound()), {{{}, -1}}));
    // Another step than one: a count of its own, equal to no other.
    return valueOf(loop.getStep()) == Polynomial{{{}, 1}} ? count : Polynomial{{{loop.getOperation()}, 1}};
  }

  LogicalResult runLoop(mlir::Operation* op, mlir::Block& body, const Polynomial& trips) {
    auto before = rings_;
    std::vector<std::vector<unsigned>> readBefore = relativeReads();
    const bool hadTurn = hasTurn_;
    for (auto& [ring, state] : rings_)
      state.slots.clear();
    if (failed(run(body)))
      return failure();
    for (auto& [ring, state] : rings_) {
      Ring& old = before[ring];
      if (!(state == old))
        return op->emitOpError("holds ") << state.held.size() << " slots at the end of its body and " << old.held.size()
                                         << " at the start";
      state.slots = times(state.slots, trips);
      add(state.slots, old.slots);
    }
    if (relativeReads() != readBefore)
      return op->emitOpError("has other products running at the end of its body than at the start");
    if (hasTurn_ != hadTurn)
      return op->emitOpError("begins a turn that it does not end");
    return success();
  }

  /// How many slots ago those that products read were taken.
  std::vector<std::vector<unsigned>> relativeReads() const {
    std::vector<std::vector<unsigned>> all;
    for (const Product& product : running_) {
      all.emplace_back();
      for (unsigned slot : product.slots)
        all.back().push_back(next_ - slot);
    }
    return all;
  }

  LogicalResult turn(mlir::Operation* op, bool begins) {
    if (isProducer_)
      return op->emitOpError("stands in the other role");
    if (hasTurn_ == begins)
      return op->emitOpError(begins ? "begins a turn inside a turn" : "ends a turn that has not begun");
    hasTurn_ = begins;
    return success();
  }

  LogicalResult take(mlir::Operation* op, Value ring, Value slot, bool asProducer) {
    if (asProducer != isProducer_)
      return op->emitOpError("stands in the other role");
    Ring& state = rings_[ring.getAsOpaquePointer()];
    auto made = ring.getDefiningOp<RingOp>();
    size_t most = asProducer ? 1 : made ? made.getStages() : 1;
    if (state.held.size() >= most)
      return op->emitOpError("would hold more than ") << most << " slots: it would wait for itself";
    numbers_[slot.getAsOpaquePointer()] = next_;
    state.held.push_back(next_++);
    add(state.slots, {{{}, 1}});
    return success();
  }

  LogicalResult give(mlir::Operation* op, Value ring, bool asProducer) {
    if (asProducer != isProducer_)
      return op->emitOpError("stands in the other role");
    Ring& state = rings_[ring.getAsOpaquePointer()];
    if (state.held.empty())
      return op->emitOpError("gives back a slot that was not taken");
    if (llvm::any_of(running_,
                     [&](const Product& product) { return llvm::is_contained(product.slots, state.held.front()); }))
      return op->emitOpError("gives back a slot that a running product reads");
    state.held.erase(state.held.begin());
    return success();
  }

  bool isHeld(Value slot) {
    auto number = numbers_.find(slot.getAsOpaquePointer());
    return number != numbers_.end() &&
           llvm::any_of(rings_, [&](auto& ring) { return llvm::is_contained(ring.second.held, number->second); });
  }

  LogicalResult start(mlir::Operation* op, mlir::ValueRange slots, Value sums) {
    if (isProducer_)
      return op->emitOpError("stands in the other role");
    Product product{{}, ++started_};
    for (Value slot : slots) {
      if (!isHeld(slot))
        return op->emitOpError("reads a slot that is not held");
      product.slots.push_back(numbers_[slot.getAsOpaquePointer()]);
    }
    running_.push_back(product);
    makers_[sums.getAsOpaquePointer()] = product.number;
    return success();
  }

  LogicalResult finish(DotWaitOp wait) {
    while (running_.size() > wait.getPending())
      running_.erase(running_.begin());
    auto maker = makers_.find(wait.getSums().getAsOpaquePointer());
    // What a loop carries may be of any product.
    makers_[wait.getResult().getAsOpaquePointer()] = maker != makers_.end() ? maker->second
                                                     : running_.empty()     ? 0
                                                                            : running_.back().number;
    return success();
  }

  bool isRunning(Value sums) {
    auto maker = makers_.find(sums.getAsOpaquePointer());
    return maker != makers_.end() &&
           llvm::any_of(running_, [&](const Product& product) { return product.number == maker->second; });
  }

  struct Product {
    std::vector<unsigned> slots;  ///< that it reads
    unsigned number;
  };

  bool isProducer_;
  unsigned next_ = 0;
  std::map<void*, Ring> rings_;
  std::map<void*, unsigned> numbers_;  ///< of the slot a value stands for at this point
  std::vector<Product> running_;       ///< products that may run, oldest first
  unsigned started_ = 0;
  std::map<void*, unsigned> makers_;  ///< the last product that adds to a value of sums
  bool hasTurn_ = false;
};

}  // namespace

LogicalResult verifyRings(RolesOp roles) {
  Role producer(true), consumer(false);
  if (failed(producer.run(roles.getProducer().front())) || failed(consumer.run(roles.getConsumer().front())) ||
      failed(producer.finish(roles)) || failed(consumer.finish(roles)))
    return failure();
  for (auto ring : roles->getBlock()->getOps<RingOp>())
    if (producer.slots(ring) != consumer.slots(ring))
      return roles.emitOpError("has a producer that fills another number of slots than consumers empty");
  return success();
}

}  // namespace vortex::ir::vxnv
