// Views and single-element accesses. In regions each thread accesses its own element. In uniform code loads are done by every thread alike,
// stores and atomics by thread 0.
#include "layout/shared_tensor.h"
#include "target/gpu/lowering.h"
#include "target/interface/describe.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

void Lowering::lowerAlloc(ir::AllocOp op) {
  ir::ViewType type = op.getResult().getType();
  View view;
  view.elementType = type.getElementType();
  view.space = type.getSpace();
  view.root = op.getResult();
  int64_t count = 1;
  view.strides.resize(type.getRank());
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t dim = type.isColMajor() ? i : type.getRank() - 1 - i;
    view.strides[dim] = constant(count);
    count *= type.getShape()[dim];
  }
  for (int64_t extent : type.getShape())
    view.extents.push_back(constant(extent));
  if (view.space == ir::Space::Shared) {
    view.swizzle = type.getSwizzle();
    if (!view.swizzle)
      view.swizzle = llvm::cast_if_present<ir::SwizzleAttr>(tiles_->chooseSwizzle(op));
    layout::XorSwizzle swizzle;
    if (view.swizzle)
      swizzle = {static_cast<unsigned>(view.swizzle.getShift()), static_cast<uint64_t>(view.swizzle.getMask()),
                 static_cast<unsigned>(view.swizzle.getBase())};
    const auto [bytes, alignment] = layout::sharedTensor(count, vxt::scalarBytes(view.elementType), swizzle);
    SharedMemory::Piece piece = shared_.allocate(bytes, alignment, Hazards::rootOf(view.root));
    view.pointer = sharedPointer(piece);
    const auto& lifetime = lifetimes_.of(op);
    artifact::SharedTensor tensor = describeSharedTensor(op);
    tensor.firstLine = lifetime.firstLine;
    tensor.lastLine = lifetime.lastLine;
    tensor.bytes = static_cast<uint64_t>(bytes);
    tensor.offset = static_cast<uint64_t>(piece.offset);
    sharedTensors_.push_back(std::move(tensor));
    view.alignment = alignment;
  } else {
    auto local = vxt::PtrType::get(b.getContext(), ir::Space::Local);
    auto instance = [&]() -> Value { return b.create<vxt::LocalOp>(loc, local, view.elementType, count, 0); };
    if (region_)
      view.pointer = instance();
    else
      for (unsigned slot = 0; slot < slots_; ++slot)
        view.slotPointers.push_back(instance());
  }
  setView(op.getResult(), std::move(view));
}

/// The bytes may be used again. Copies that nothing waited for end here, other threads' at the next barrier.
void Lowering::endLifetime(ir::AllocOp alloc) {
  Hazards::Root root = Hazards::rootOf(alloc.getResult());
  const auto& lifetime = lifetimes_.of(alloc);
  if (lifetime.needsDrain) {
    b.create<vxt::AsyncCommitOp>(loc);
    b.create<vxt::AsyncWaitOp>(loc, 0);
  }
  if (lifetime.isStaged)
    hazards_.markWritten(root);
  shared_.free(root);
}

bool isWholeRow(const View& view, unsigned dim, bool isKnown) {
  llvm::APInt extent;
  return isKnown || (mlir::matchPattern(view.extents[dim], mlir::m_ConstantInt(&extent)) &&
                     extent.getSExtValue() * vxt::scalarBytes(view.elementType) % 16 == 0);
}

void Lowering::lowerSubview(ir::SubviewOp op) {
  const View source = view(op.getSource());
  View result = source;
  result.extents.clear();
  result.strides.clear();
  auto type = op.getResult().getType();
  auto sizes = op.getSizes().begin();
  unsigned resultDim = 0;
  Value base = source.base ? source.base : constant(0);
  const unsigned rowDim = mlir::isa<mlir::BlockArgument>(op.getSource()) ? source.rowDim : source.rank() - 1;
  bool keepsRows = source.alignedRows, keepsAlignment = true;
  for (auto [dim, start] : llvm::enumerate(op.getOffsets())) {
    Value from = scalar(start);
    const bool isLast = dim == rowDim;
    keepsAlignment &= constantOf(from) == 0 || (source.alignedRows && !isLast);
    base = add(base, mul(from, source.strides[dim]));
    if (llvm::is_contained(op.getDropped(), int64_t(dim))) {
      keepsRows &= !isLast;
      continue;
    }
    int64_t extent = type.getShape()[resultDim++];
    result.extents.push_back(mlir::ShapedType::isDynamic(extent) ? scalar(*sizes++) : constant(extent));
    result.strides.push_back(source.strides[dim]);
  }
  result.base = base;
  result.alignedRows = keepsRows;
  const bool hasLast = result.rank() > 0 && !llvm::is_contained(op.getDropped(), int64_t(rowDim));
  result.wholeRows = hasLast && isWholeRow(result, result.rank() - 1,
                                           source.wholeRows && result.extents.back() == source.extents[rowDim]);
  result.alignment = keepsAlignment ? source.alignment : 0;
  setView(op.getResult(), std::move(result));
}

Lowering::Access Lowering::access(mlir::Operation* op, Value viewValue, mlir::ValueRange indices, Value mask,
                                  bool guarded) {
  Access result{view(viewValue), {}, {}, {}};
  result.pointer = result.view.pointer;
  if (!result.view.slotPointers.empty()) {
    if (!region_)
      fail(op, "uniform code that reads or writes a per-thread local array");
    result.pointer = result.view.slotPointers[region_ ? region_->slot : 0];
  }
  Values at;
  for (Value index : indices)
    at.push_back(scalar(index));
  if (mask)
    result.condition = scalar(mask);
  if (guarded)
    result.condition = both(result.condition, inside(result.view, at));
  result.offset = offset(result.view, at);
  return result;
}

/// Whether the parts of it are one access: rows are known to be aligned.
bool Lowering::isOneAccess(const WideAccess& wide, Value viewValue, bool guarded) {
  const View& of = view(viewValue);
  // The end of a row must not lie among the elements.
  if (of.alignedRows && of.alignment >= wide.count * vxt::scalarBytes(of.elementType) && (!guarded || of.wholeRows))
    return true;
  if (auto root = mlir::dyn_cast<mlir::BlockArgument>(of.root); root && constantOf(of.strides.back()) == 1)
    betterWhole_.insert(root.getArgNumber());
  return false;
}

static unsigned elementOf(const WideAccess& wide, mlir::Operation* op) {
  return llvm::find_if(wide.parts, [&](const auto& each) { return each.first == op; })->second;
}

/// One access for `first` and the neighbours that come after it. False: each is an access of its own.
bool Lowering::loadWide(ir::LoadOp first) {
  auto found = wide_.loads.find(first);
  if (found == wide_.loads.end() || !isOneAccess(found->second, first.getView(), first.getGuarded()))
    return false;
  const WideAccess& wide = found->second;
  Access at = access(first, first.getView(), first.getIndices(), first.getMask(), first.getGuarded());
  auto type = mlir::VectorType::get({wide.count}, at.view.elementType);
  const int64_t bytes = wide.count * vxt::scalarBytes(at.view.elementType);
  auto vector =
      b.create<vxt::LoadOp>(loc, type, at.pointer, sub(at.offset, constant(elementOf(wide, first))), at.condition,
                            bytes, at.view.readOnly ? vxt::Cache::ReadOnly : vxt::Cache::Default);
  for (auto [load, number] : wide.parts) {
    setScalar(load->getResult(0), b.create<mlir::vector::ExtractOp>(loc, vector, static_cast<int64_t>(number)));
    if (load != first)
      inWide_.insert(load);
  }
  return true;
}

/// One access of a thread's neighbouring elements, at the last of their stores. False: each is an access of its own.
bool Lowering::storeWide(ir::StoreOp op) {
  auto last = mlir::dyn_cast_if_present<ir::StoreOp>(wide_.lastOf.lookup(op));
  if (!last)
    return false;
  const WideAccess& wide = wide_.stores.find(last)->second;
  if (!isOneAccess(wide, last.getView(), last.getGuarded()))
    return false;
  if (op != last)
    return true;
  Values values(wide.count);
  for (auto [store, element] : wide.parts)
    values[element] = scalar(mlir::cast<ir::StoreOp>(store).getValue());
  Access at = access(last, last.getView(), last.getIndices(), last.getMask(), last.getGuarded());
  auto type = mlir::VectorType::get({wide.count}, at.view.elementType);
  const int64_t bytes = wide.count * vxt::scalarBytes(at.view.elementType);
  b.create<vxt::StoreOp>(loc, b.create<mlir::vector::FromElementsOp>(loc, type, values), at.pointer,
                         sub(at.offset, constant(elementOf(wide, last))), at.condition, bytes, vxt::Cache::Default);
  return true;
}

void Lowering::lowerLoad(ir::LoadOp op) {
  if (inWide_.contains(op) || (region_ && loadWide(op)))
    return;
  Access at = access(op, op.getView(), op.getIndices(), op.getMask(), op.getGuarded());
  if (!region_)
    hazards_.read(at.view.root);
  bool readOnly = at.view.readOnly && at.view.space == ir::Space::Global;
  auto load = b.create<vxt::LoadOp>(loc, op.getType(), at.pointer, at.offset, at.condition, 0,
                                    readOnly ? vxt::Cache::ReadOnly : vxt::Cache::Default);
  setScalar(op, load);
}

void Lowering::lowerStore(ir::StoreOp op) {
  if (region_ && storeWide(op))
    return;
  Access at = access(op, op.getView(), op.getIndices(), op.getMask(), op.getGuarded());
  Value value = scalar(op.getValue());
  auto store = [&](Value mask) {
    b.create<vxt::StoreOp>(loc, value, at.pointer, at.offset, mask, 0, vxt::Cache::Default);
  };
  if (region_)
    return store(at.condition);
  hazards_.write(at.view.root);
  Value first = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, threadId(), constant(0));
  store(both(first, at.condition));
}

/// Memory of one thread: no atomicity needed.
Value Lowering::emitPrivate(mlir::Operation* op, const Access& at) {
  auto load = [&](mlir::Type type) -> Value {
    return b.create<vxt::LoadOp>(loc, type, at.pointer, at.offset, Value(), 0, vxt::Cache::Default);
  };
  auto store = [&](Value value) {
    b.create<vxt::StoreOp>(loc, value, at.pointer, at.offset, Value(), 0, vxt::Cache::Default);
  };
  return llvm::TypeSwitch<mlir::Operation*, Value>(op)
      .Case([&](ir::AtomicRmwOp rmw) {
        Value old = load(rmw.getType());
        store(combine(rmw.getKind(), old, scalar(rmw.getValue()), true));
        return old;
      })
      .Case([&](ir::AtomicCasOp cas) {
        Value old = load(cas.getType());
        auto bits = b.getIntegerType(vxt::scalarBytes(cas.getType()) * 8);
        auto raw = [&](Value value) -> Value {
          if (value.getType().isIndex())
            return b.create<arith::IndexCastUIOp>(loc, bits, value);
          return value.getType() == bits ? value : Value(b.create<arith::BitcastOp>(loc, bits, value));
        };
        Value same = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, raw(old), raw(scalar(cas.getExpected())));
        store(select(same, scalar(cas.getDesired()), old));
        return old;
      })
      .Case([&](ir::AtomicLoadOp atomic) { return load(atomic.getType()); })
      .Case([&](ir::AtomicStoreOp atomic) {
        store(scalar(atomic.getValue()));
        return Value();
      });
}

Value Lowering::emitAtomic(mlir::Operation* op, const Access& at) {
  if (at.view.space == ir::Space::Local)
    return emitPrivate(op, at);
  return llvm::TypeSwitch<mlir::Operation*, Value>(op)
      .Case([&](ir::AtomicRmwOp rmw) {
        return b.create<vxt::AtomicRmwOp>(loc, rmw.getType(), rmw.getKindAttr(), rmw.getOrderAttr(), rmw.getScopeAttr(),
                                          scalar(rmw.getValue()), at.pointer, at.offset);
      })
      .Case([&](ir::AtomicCasOp cas) {
        return b.create<vxt::AtomicCasOp>(loc, cas.getType(), cas.getOrderAttr(), cas.getScopeAttr(),
                                          scalar(cas.getExpected()), scalar(cas.getDesired()), at.pointer, at.offset);
      })
      .Case([&](ir::AtomicLoadOp atomic) {
        return b.create<vxt::AtomicLoadOp>(loc, atomic.getType(), atomic.getOrderAttr(), atomic.getScopeAttr(),
                                           at.pointer, at.offset);
      })
      .Case([&](ir::AtomicStoreOp atomic) {
        b.create<vxt::AtomicStoreOp>(loc, atomic.getOrderAttr(), atomic.getScopeAttr(), scalar(atomic.getValue()),
                                     at.pointer, at.offset);
        return Value();
      });
}

Value Lowering::broadcastOnce(mlir::Type type, llvm::function_ref<Value()> body) {
  int64_t bytes = vxt::scalarBytes(type);
  SharedMemory::Piece piece = shared_.take(bytes, bytes, "one value for all threads");
  hazards_.write(piece.root);
  once(
      [&] { b.create<vxt::StoreOp>(loc, body(), sharedPointer(piece), constant(0), Value(), 0, vxt::Cache::Default); });
  hazards_.read(piece.root);
  return b.create<vxt::LoadOp>(loc, type, sharedPointer(piece), constant(0), Value(), 0, vxt::Cache::Default);
}

void Lowering::lowerAtomic(mlir::Operation* op) {
  Access at = llvm::TypeSwitch<mlir::Operation*, Access>(op)
                  .Case<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>([&](auto atomic) {
                    return access(op, atomic.getView(), atomic.getIndices(), atomic.getMask(), atomic.getGuarded());
                  });
  mlir::Type type = at.view.elementType;
  int64_t bytes = vxt::scalarBytes(type);
  if (bytes != 4 && bytes != 8) {
    fail(op, "atomics on elements that are not 32 or 64 bits wide");
    if (op->getNumResults())
      setScalar(op->getResult(0), zero(type));
    return;
  }
  auto guarded = [&]() -> Value {
    if (!at.condition)
      return emitAtomic(op, at);
    if (!op->getNumResults()) {
      emitIf(at.condition, [&] { emitAtomic(op, at); });
      return nullptr;
    }
    return emitIf(at.condition, [&] { return Values{emitAtomic(op, at)}; }, [&] { return Values{zero(type)}; })[0];
  };
  if (region_) {
    Value result = guarded();
    if (result)
      setScalar(op->getResult(0), result);
    return;
  }
  hazards_.read(at.view.root);
  if (!mlir::isa<ir::AtomicLoadOp>(op))
    hazards_.write(at.view.root);
  if (op->getNumResults() && !op->getResult(0).use_empty())
    return setScalar(op->getResult(0), broadcastOnce(type, guarded));
  once([&] { guarded(); });
}

void Lowering::lowerMemory(mlir::Operation* op) {
  if (!region_ && !mlir::isa<ir::LoadOp>(op))
    tiles_->flushReads(op);
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](ir::LoadOp load) { lowerLoad(load); })
      .Case([&](ir::StoreOp store) { lowerStore(store); })
      .Default([&](mlir::Operation* atomic) { lowerAtomic(atomic); });
}

}  // namespace vortex::target::gpu
