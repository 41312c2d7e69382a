#include "target/cpu/tiles/place.h"

#include "ir/vx.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

bool At::isUniform() const {
  return llvm::all_of(index, [](const Lane& lane) { return lane.isUniform(); });
}

bool At::operator==(const At& other) const {
  if (lanes != other.lanes || mask != other.mask || index.size() != other.index.size())
    return false;
  for (auto [a, b] : llvm::zip(index, other.index))
    if (a.kind != b.kind || a.value != b.value || a.stride != b.stride)
      return false;
  return true;
}

Place placeOf(Emitter& e, const TileBuffer& buffer) {
  Place place;
  place.view.elementType = buffer.elementType;
  place.view.pointer = buffer.pointer;
  place.view.extents = buffer.extents;
  place.view.blockPrivate = true;
  place.view.strides.resize(buffer.extents.size());
  Value* stride = e.i64(1);
  for (size_t dim = buffer.extents.size(); dim-- > 0;) {
    place.view.strides[dim] = stride;
    if (dim > 0)
      stride = e.ir.CreateMul(stride, buffer.extents[dim]);
  }
  place.padded = true;
  place.base = place.window = buffer.pointer;
  return place;
}

Value* emitIsInside(Emitter& e, const Place& place, llvm::ArrayRef<Value*> extents) {
  Value* inside = e.ir.getTrue();
  for (auto [dim, extent] : llvm::enumerate(extents)) {
    Value* offset = place.offsets.empty() ? e.i64(0) : place.offsets[dim];
    Value* bound = place.view.extents[dim];
    Value* starts = e.ir.CreateICmpULE(offset, bound);
    Value* ends = e.ir.CreateICmpULE(extent, e.ir.CreateSub(bound, offset));
    inside = e.ir.CreateAnd(inside, e.ir.CreateAnd(starts, ends));
  }
  return inside;
}

Value* firstLanes(llvm::IRBuilder<>& ir, unsigned lanes, Value* count) {
  LaneMath math(ir, lanes);
  Value* clamped = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, count, ir.getInt64(lanes));
  return ir.CreateICmpULT(math.iota(ir.getInt32Ty()), emit::splat(ir, ir.CreateTrunc(clamped, ir.getInt32Ty()), lanes));
}

namespace {

struct Address {
  Lane offset;             ///< elements from the view's pointer
  Value* guard = nullptr;  ///< i1 or <lanes x i1>: inside the view; null: known
};

Address addressOf(Emitter& e, const Place& place, const At& at, bool inside, Value* guard = nullptr) {
  LaneMath math(e.ir, at.lanes);
  Address address{Lane::uniform(e.i64(0)), guard};
  for (auto [dim, index] : llvm::enumerate(at.index)) {
    Lane absolute = place.offsets.empty() ? index : math.add(index, Lane::uniform(place.offsets[dim]));
    if (place.guarded && !inside) {
      Lane extent = Lane::uniform(place.view.extents[dim]);
      Value* condition =
          absolute.isUniform() ? e.ir.CreateICmpULT(absolute.value, extent.value) : math.insideMask(absolute, extent);
      if (address.guard && condition->getType() != address.guard->getType()) {
        condition = emit::splat(e.ir, condition, at.lanes);
        address.guard = emit::splat(e.ir, address.guard, at.lanes);
      }
      address.guard = math.andMask(address.guard, condition);
    }
    address.offset = math.add(address.offset, math.mul(absolute, Lane::uniform(place.view.strides[dim])));
  }
  return address;
}

Value* lanePointer(Emitter& e, const Place& place, Value* offsets, Value* lane) {
  return emit::elementPointer(e.ir, place.view.elementType, place.view.pointer,
                              e.ir.CreateExtractElement(offsets, lane));
}

/// Of all lanes: from one to the next where they are equally far apart.
Values lanePointers(Emitter& e, const Place& place, const Lane& offset, unsigned lanes) {
  Values pointers;
  Value* vector = offset.isAffine() ? nullptr : LaneMath(e.ir, lanes).vector(offset);
  for (unsigned lane = 0; lane < lanes; ++lane)
    pointers.push_back(vector ? lanePointer(e, place, vector, e.ir.getInt64(lane))
                              : emit::elementPointer(e.ir, place.view.elementType,
                                                     lane ? pointers.back() : place.view.pointer,
                                                     lane ? offset.stride : offset.value));
  return pointers;
}

/// Elements anywhere: gathered where the machine can, else lane by lane.
Value* gather(Emitter& e, const Place& place, const At& at, const Lane& offset, Value* mask) {
  llvm::IRBuilder<>& ir = e.ir;
  mlir::Type type = place.view.elementType;
  uint64_t bytes = emit::elementBytes(type);
  llvm::Type* memory = emit::memoryType(e.context(), type, at.lanes);
  llvm::Constant* zeros = llvm::Constant::getNullValue(memory);
  if (e.features.avx2 && bytes >= 4 && (mask || e.features.avx512)) {
    Value* pointers =
        ir.CreateGEP(emit::memoryType(e.context(), type), place.view.pointer, LaneMath(ir, at.lanes).vector(offset));
    if (!mask)
      mask = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(ir.getInt1Ty(), at.lanes));
    return emit::fromMemory(ir, type, ir.CreateMaskedGather(memory, pointers, llvm::Align(bytes), mask, zeros));
  }
  llvm::Type* element = memory->getScalarType();
  if (!mask) {
    Value* result = llvm::PoisonValue::get(memory);
    for (auto [lane, pointer] : llvm::enumerate(lanePointers(e, place, offset, at.lanes)))
      result = ir.CreateInsertElement(result, ir.CreateAlignedLoad(element, pointer, llvm::Align(bytes)), lane);
    return emit::fromMemory(ir, type, result);
  }
  llvm::AllocaInst* slot = emit::entryAlloca(ir, memory);
  ir.CreateStore(zeros, slot);
  Value* offsets = LaneMath(ir, at.lanes).vector(offset);
  emit::emitForActiveLanes(ir, mask, [&](Value* lane) {
    Value* loaded = ir.CreateAlignedLoad(element, lanePointer(e, place, offsets, lane), llvm::Align(bytes));
    ir.CreateStore(loaded, ir.CreateGEP(element, slot, lane));
  });
  return emit::fromMemory(ir, type, ir.CreateLoad(memory, slot));
}

bool isContiguous(const Address& address, const At& at) { return at.lanes > 1 && address.offset.constantStride() == 1; }

}  // namespace

Value* loadElements(Emitter& e, const Place& place, const At& at, bool inside, Value* condition) {
  llvm::IRBuilder<>& ir = e.ir;
  mlir::Type type = place.view.elementType;
  Address address = addressOf(e, place, at, inside, condition);
  LaneMath math(ir, at.lanes);
  Value* loaded = nullptr;
  if (address.offset.isUniform()) {  // one element for all lanes
    Value* pointer = emit::elementPointer(ir, type, place.view.pointer, address.offset.value);
    if (address.guard)
      pointer = e.pointerOrZeros(emit::anyLane(ir, address.guard), pointer);
    loaded = emit::splat(ir, emit::emitLoad(ir, e.features, type, pointer, 1), at.lanes);
    if (!address.guard)
      return loaded;
    Value* other = place.other ? emit::splat(ir, place.other, at.lanes) : e.zero(type, at.lanes);
    return ir.CreateSelect(address.guard, loaded, other);
  }
  Value* guard = address.guard ? emit::splat(ir, address.guard, at.lanes) : nullptr;
  bool overread = place.padded && at.lanes * emit::elementBytes(type) <= 64;
  Value* mask = math.andMask(overread && isContiguous(address, at) ? nullptr : at.mask, guard);
  if (isContiguous(address, at)) {
    Value* pointer = emit::elementPointer(ir, type, place.view.pointer, address.offset.value);
    loaded = emit::emitLoad(ir, e.features, type, pointer, at.lanes, mask);
  } else {
    loaded = gather(e, place, at, address.offset, mask);
  }
  return guard && place.other ? ir.CreateSelect(guard, loaded, emit::splat(ir, place.other, at.lanes)) : loaded;
}

void storeElements(Emitter& e, const Place& place, const At& at, Value* value, bool inside, unsigned streamLanes) {
  llvm::IRBuilder<>& ir = e.ir;
  mlir::Type type = place.view.elementType;
  Address address = addressOf(e, place, at, inside);
  LaneMath math(ir, at.lanes);
  if (at.lanes == 1)
    return emit::emitStore(ir, e.features, type, value,
                           emit::elementPointer(ir, type, place.view.pointer, address.offset.value), 1, address.guard);
  Value* mask = math.andMask(at.mask, address.guard ? emit::splat(ir, address.guard, at.lanes) : nullptr);
  if (isContiguous(address, at)) {
    Value* pointer = emit::elementPointer(ir, type, place.view.pointer, address.offset.value);
    if (streamLanes == 0 || mask)
      return emit::emitStore(ir, e.features, type, value, pointer, at.lanes, mask);
    return emit::emitStreamingStore(ir, type, value, pointer, streamLanes * emit::elementBytes(type));
  }
  Value* stored = emit::toMemory(ir, type, value);
  auto storeLane = [&](Value* lane, Value* pointer) {
    ir.CreateAlignedStore(ir.CreateExtractElement(stored, lane), pointer, llvm::Align(emit::elementBytes(type)));
  };
  if (mask) {
    Value* offsets = math.vector(address.offset);
    return emit::emitForActiveLanes(ir, mask,
                                    [&](Value* lane) { storeLane(lane, lanePointer(e, place, offsets, lane)); });
  }
  for (auto [lane, pointer] : llvm::enumerate(lanePointers(e, place, address.offset, at.lanes)))
    storeLane(ir.getInt64(lane), pointer);
}

void storeTogether(Emitter& e, const Place& place, const At& at, llvm::ArrayRef<Value*> values) {
  llvm::IRBuilder<>& ir = e.ir;
  mlir::Type type = place.view.elementType;
  const unsigned count = values.size(), all = at.lanes * count;
  // Side by side first: a shuffle takes two vectors.
  Value* together = values[0];
  for (unsigned number = 1; number < count; ++number) {
    llvm::SmallVector<int> padded(at.lanes * number, -1), joined;
    for (unsigned lane = 0; lane < at.lanes; ++lane)
      padded[lane] = static_cast<int>(lane);
    for (unsigned lane = 0; lane < at.lanes * (number + 1); ++lane)
      joined.push_back(static_cast<int>(lane));
    together = ir.CreateShuffleVector(together, ir.CreateShuffleVector(values[number], padded), joined);
  }
  llvm::SmallVector<int> order;
  for (unsigned lane = 0; lane < at.lanes; ++lane)
    for (unsigned number = 0; number < count; ++number)
      order.push_back(static_cast<int>(number * at.lanes + lane));
  together = ir.CreateShuffleVector(together, order);
  Address address = addressOf(e, place, at, true);
  emit::emitStore(ir, e.features, type, together,
                  emit::elementPointer(ir, type, place.view.pointer, address.offset.value), all);
}

void prefetchElements(Emitter& e, const Place& place, const At& at) {
  Address address = addressOf(e, place, at, true);
  if (isContiguous(address, at))
    emit::emitPrefetch(e.ir,
                       emit::elementPointer(e.ir, place.view.elementType, place.view.pointer, address.offset.value),
                       at.lanes * emit::elementBytes(place.view.elementType));
}

}  // namespace vortex::target::cpu::tiles
