// An index is looked at as x + c, with casts around: x a multiple of 2^k, which survives casts as the low bits do. With c below 2^k the sum
// carries nothing into x, in whatever width it was made.
#include "target/gpu/wide_accesses.h"

#include "ir/vxt.h"
#include "target/gpu/access.h"
#include "target/gpu/straight.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/Matchers.h>

#include <map>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
using mlir::Value;

namespace {

constexpr int64_t kMostBytes = 16, kLeastBytes = 4;
/// Steps back through what an index is computed from.
constexpr unsigned kDepth = 8;
constexpr unsigned kMostZeros = 16;

std::optional<llvm::APInt> knownInteger(Value value) {
  llvm::APInt known;
  return mlir::matchPattern(value, mlir::m_ConstantInt(&known)) ? std::optional(known) : std::nullopt;
}

/// `value` is a multiple of 2^result, in its own width.
unsigned lowZeros(Value value, unsigned depth = kDepth) {
  if (auto known = knownInteger(value))
    return known->isZero() ? kMostZeros : std::min(known->countr_zero(), kMostZeros);
  mlir::Operation* op = value.getDefiningOp();
  if (depth == 0)
    return 0;
  auto of = [&](Value operand) { return lowZeros(operand, depth - 1); };
  if (!op) {
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(value.getParentBlock()->getParentOp());
    return loop && value == loop.getInductionVar() ? std::min(of(loop.getLowerBound()), of(loop.getStep())) : 0;
  }
  auto shift = [&](Value by) {
    auto known = knownInteger(by);
    return known && known->ult(kMostZeros) ? static_cast<unsigned>(known->getZExtValue()) : 0U;
  };
  return llvm::TypeSwitch<mlir::Operation*, unsigned>(op)
      .Case<arith::AddIOp, arith::SubIOp, arith::OrIOp, arith::XOrIOp, arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp,
            arith::MaxUIOp>([&](auto each) { return std::min(of(each.getLhs()), of(each.getRhs())); })
      .Case([&](arith::AndIOp each) { return std::max(of(each.getLhs()), of(each.getRhs())); })
      .Case([&](arith::MulIOp each) { return std::min(of(each.getLhs()) + of(each.getRhs()), kMostZeros); })
      .Case([&](arith::ShLIOp each) { return std::min(of(each.getLhs()) + shift(each.getRhs()), kMostZeros); })
      .Case([&](arith::SelectOp each) { return std::min(of(each.getTrueValue()), of(each.getFalseValue())); })
      .Case<arith::RemUIOp, arith::RemSIOp>([&](auto each) { return std::min(of(each.getLhs()), of(each.getRhs())); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto cast) { return of(cast.getIn()); })
      .Case([&](ir::IntOp each) {
        switch (each.getKind()) {
        case ir::IntKind::RemS:
        case ir::IntKind::RemU:
          return std::min(of(each.getLhs()), of(each.getRhs()));  // by zero it is 0 or the dividend
        case ir::IntKind::Shl: return std::min(of(each.getLhs()) + shift(each.getRhs()), kMostZeros);
        default: return 0U;
        }
      })
      .Default([](mlir::Operation*) { return 0U; });
}

/// An index as base + constants.back(), cast, + constants[…], and so on outwards. No base: 0.
struct Sum {
  Value base;
  llvm::SmallVector<uintptr_t> casts;  ///< kind and type, outermost first
  llvm::SmallVector<int64_t> constants{0};
};

Sum sumOf(Value value) {
  Sum sum;
  for (unsigned step = 0; step < kDepth; ++step) {
    if (auto known = knownInteger(value)) {
      sum.constants.back() += known->getSExtValue();
      sum.base = nullptr;
      return sum;
    }
    mlir::Operation* op = value.getDefiningOp();
    sum.base = value;
    if (auto add = mlir::dyn_cast_if_present<arith::AddIOp>(op)) {
      auto right = knownInteger(add.getRhs()), left = knownInteger(add.getLhs());
      if (!right && !left)
        return sum;
      sum.constants.back() += (right ? *right : *left).getSExtValue();
      value = right ? add.getLhs() : add.getRhs();
    } else if (mlir::isa_and_present<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp, arith::ExtSIOp,
                                     arith::TruncIOp>(op)) {
      sum.casts.push_back(reinterpret_cast<uintptr_t>(op->getName().getAsOpaquePointer()));
      sum.casts.push_back(reinterpret_cast<uintptr_t>(value.getType().getAsOpaquePointer()));
      sum.constants.push_back(0);
      value = op->getOperand(0);
    } else {
      return sum;
    }
  }
  return sum;
}

using Key = std::vector<uintptr_t>;

/// A load or a store.
struct Access {
  Value view, mask;
  mlir::OperandRange indices;
  bool guarded;
  mlir::Type type;

  static Access of(mlir::Operation* op) {
    if (auto load = mlir::dyn_cast<ir::LoadOp>(op))
      return {load.getView(), load.getMask(), load.getIndices(), load.getGuarded(), load.getType()};
    auto store = mlir::cast<ir::StoreOp>(op);
    return {store.getView(), store.getMask(), store.getIndices(), store.getGuarded(), store.getValue().getType()};
  }
  int64_t bytes() const { return ir::vxt::scalarBytes(type); }
  bool canBeWide() const {
    auto of = mlir::cast<ir::ViewType>(view.getType());
    return of.getSpace() == ir::Space::Global && of.getRank() > 0 &&
           llvm::isPowerOf2_64(static_cast<uint64_t>(bytes())) && !type.isInteger(1);
  }
};

/// All that the accesses share which are one of `count` elements, and the element that this one has; none: it is in no such access.
std::optional<std::pair<Key, unsigned>> placeIn(const Access& access, int64_t count) {
  Sum sum = sumOf(access.indices.back());
  if (sum.base && lowZeros(sum.base) < llvm::Log2_64(static_cast<uint64_t>(count)))
    return std::nullopt;
  Key key;
  auto add = [&](const void* part) { key.push_back(reinterpret_cast<uintptr_t>(part)); };
  add(access.view.getAsOpaquePointer());
  add(access.mask.getAsOpaquePointer());
  add(sum.base.getAsOpaquePointer());
  key.push_back(access.guarded);
  for (Value index : access.indices.drop_back())
    add(index.getAsOpaquePointer());
  key.insert(key.end(), sum.casts.begin(), sum.casts.end());
  int64_t element = 0;
  for (int64_t constant : sum.constants) {
    const int64_t first = constant & -count;
    key.push_back(static_cast<uintptr_t>(first));
    element += constant - first;
  }
  return element < count ? std::optional(std::pair(std::move(key), static_cast<unsigned>(element))) : std::nullopt;
}

bool isWide(const WideAccess& wide) {
  llvm::SmallVector<bool> has(wide.count);
  for (auto [_, element] : wide.parts)
    has[element] = true;
  return llvm::all_of(has, [](bool each) { return each; });
}

/// Those of a block in accesses as wide as may be.
llvm::SmallVector<WideAccess> findInBlock(llvm::ArrayRef<mlir::Operation*> all) {
  llvm::SmallVector<WideAccess> found;
  llvm::DenseSet<mlir::Operation*> taken;
  for (int64_t bytes = kMostBytes; bytes >= kLeastBytes; bytes /= 2) {
    std::map<Key, WideAccess> groups;
    for (mlir::Operation* op : all) {
      const Access access = Access::of(op);
      const int64_t count = bytes / access.bytes();
      if (count < 2 || taken.contains(op))
        continue;
      auto place = placeIn(access, count);
      if (!place)
        continue;
      WideAccess& group = groups[place->first];
      group.count = static_cast<unsigned>(count);
      group.parts.push_back({op, place->second});
    }
    for (auto& [_, group] : groups) {
      if (!isWide(group))
        continue;
      for (auto [op, element] : group.parts)
        taken.insert(op);
      found.push_back(std::move(group));
    }
  }
  return found;
}

using Blocks = llvm::MapVector<mlir::Block*, llvm::SmallVector<mlir::Operation*>>;

/// How often each memory is accessed in the block and inside what stands there.
llvm::DenseMap<Value, size_t> accessesIn(mlir::Block& block) {
  llvm::DenseMap<Value, size_t> counts;
  block.walk([&](mlir::Operation* op) { forEachAccess(op, [&](Value view, bool) { ++counts[rootOf(view)]; }); });
  return counts;
}

}  // namespace

WideAccesses findWideAccesses(ir::KernelOp phase) {
  llvm::DenseSet<Value> read, written;
  phase.walk([&](mlir::Operation* op) {
    forEachAccess(op, [&](Value view, bool isWrite) { (isWrite ? written : read).insert(rootOf(view)); });
  });
  Blocks loads, stores;
  phase.walk([&](mlir::Operation* op) {
    const bool isLoad = mlir::isa<ir::LoadOp>(op);
    if ((!isLoad && !mlir::isa<ir::StoreOp>(op)) || !op->getParentOfType<ir::ThreadsOp>())
      return;
    const Access access = Access::of(op);
    if (access.canBeWide() && !(isLoad ? written : read).contains(rootOf(access.view)))
      (isLoad ? loads : stores)[op->getBlock()].push_back(op);
  });
  WideAccesses found;
  for (auto& [_, ops] : loads)
    for (WideAccess& wide : findInBlock(ops))
      found.loads[wide.parts.front().first] = std::move(wide);
  for (auto& [block, ops] : stores) {
    const llvm::DenseMap<Value, size_t> counts = accessesIn(*block);
    for (WideAccess& wide : findInBlock(ops))
      if (counts.lookup(rootOf(Access::of(wide.parts.front().first).view)) == wide.count &&
          wide.parts.size() == wide.count) {
        mlir::Operation* last = wide.parts.back().first;
        for (auto [store, _] : wide.parts)
          found.lastOf[store] = last;
        found.stores[last] = std::move(wide);
      }
  }
  return found;
}

}  // namespace vortex::target::gpu
