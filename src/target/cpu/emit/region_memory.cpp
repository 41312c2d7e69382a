// Loads and stores of thread regions: one vector access where lanes are neighbours, one scalar access where they agree, else gathers
// and scatters. A guarded access tests its bounds for the whole warp first and masks lanes only when that fails.
#include "base/check.h"
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

using llvm::Value;

/// Local arrays up to this size per warp go to the machine stack, where constant indices let them become registers.
static constexpr uint64_t kMaxStackBytes = 32 << 10;
/// Of accesses on their own: code that branches more often takes much longer to compile than it is long.
static constexpr unsigned kMostProofs = 256;

//===-- views -------------------------------------------------------------------------------------------------===//

RegionView RegionEmitter::view(mlir::Value value) {
  if (auto found = views_.find(value); found != views_.end()) {
    RegionView known = found->second;
    if (!isFromOutside(value))
      return known;
    for (Lane* lane : {&known.offset, &known.instance})
      if (lane->value)
        *lane = ofLane(*lane);
    for (Lane& extent : known.extents)
      extent = ofLane(extent);
    return known;
  }
  const View& outer = e_.view(value);
  RegionView result;
  result.elementType = outer.elementType;
  result.pointer = outer.pointer;
  for (Value* extent : outer.extents)
    result.extents.push_back(Lane::uniform(extent));
  result.strides = Values(outer.strides.begin(), outer.strides.end());
  result.offset = Lane::uniform(ir_.getInt64(0));
  result.blockPrivate = outer.blockPrivate;
  if (outer.perThread) {
    result.instances = threads_;
    result.instance = section_.op ? ofLane(linear_) : linear_;
  }
  return result;
}

void RegionEmitter::emitSubview(ir::SubviewOp op) {
  RegionView source = view(op.getSource());
  RegionView result = source;
  result.extents.clear();
  result.strides.clear();
  auto type = op.getResult().getType();
  auto sizes = op.getSizes().begin();
  unsigned resultDim = 0;
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    result.offset = math_.add(result.offset, math_.mul(lane(offset), Lane::uniform(source.strides[dim])));
    if (llvm::is_contained(op.getDropped(), int64_t(dim)))
      continue;
    int64_t extent = type.getShape()[resultDim++];
    result.extents.push_back(mlir::ShapedType::isDynamic(extent) ? lane(*sizes++)
                                                                 : Lane::uniform(ir_.getInt64(extent)));
    result.strides.push_back(source.strides[dim]);
  }
  views_[op.getResult()] = result;
}

void RegionEmitter::emitAlloc(ir::AllocOp op) {
  auto type = op.getResult().getType();
  RegionView result;
  result.elementType = type.getElementType();
  int64_t count = 1;
  result.strides.resize(type.getRank());
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    result.strides[dim] = ir_.getInt64(count);
    count *= type.getShape()[dim];
  }
  for (int64_t extent : type.getShape())
    result.extents.push_back(Lane::uniform(ir_.getInt64(extent)));
  uint64_t lanes = uint64_t(count) * shape_.width;
  if (lanes * elementBytes(result.elementType) <= kMaxStackBytes)
    result.pointer = entryAlloca(ir_, llvm::ArrayType::get(memoryType(e_.context(), result.elementType), lanes));
  else
    result.pointer = e_.scratch->allocate(lanes * elementBytes(result.elementType));
  result.offset = Lane::uniform(ir_.getInt64(0));
  result.instances = ir_.getInt64(shape_.width);
  result.instance = shape_.width == 1 ? Lane::uniform(ir_.getInt64(0)) : Lane::affine(ir_.getInt64(0), ir_.getInt64(1));
  result.blockPrivate = true;
  views_[op.getResult()] = result;
}

//===-- accesses ----------------------------------------------------------------------------------------------===//

RegionEmitter::Access RegionEmitter::access(mlir::Value viewValue, mlir::ValueRange indices, mlir::Value mask,
                                            bool guarded) {
  RegionView window = view(viewValue);
  Access result;
  result.type = window.elementType;
  result.pointer = window.pointer;
  result.blockPrivate = window.blockPrivate;
  result.guarded = guarded;
  result.root = viewValue;
  while (auto subview = result.root.getDefiningOp<ir::SubviewOp>())
    result.root = subview.getSource();
  result.offset = window.offset;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Lane i = lane(index);
    result.offset = math_.add(result.offset, math_.mul(i, Lane::uniform(window.strides[dim])));
    if (guarded)
      result.bounds.push_back({i, window.extents[dim]});
  }
  if (window.instances)
    result.offset = math_.add(math_.mul(result.offset, Lane::uniform(window.instances)), window.instance);
  if (mask)
    result.mask = lane(mask);
  return result;
}

bool RegionEmitter::isUniform(const Access& access) const {
  bool uniform = access.offset.isUniform() && (!access.mask.value || access.mask.isUniform());
  for (const auto& [index, extent] : access.bounds)
    uniform &= index.isUniform() && extent.isUniform();
  return uniform;
}

Value* RegionEmitter::uniformCondition(const Access& access) {
  Value* condition = access.mask.value;
  for (const auto& [index, extent] : access.bounds)
    condition = conjunction(ir_, condition, ir_.CreateICmpULT(index.value, extent.value));
  if (mask_ && !maskNonEmpty_)
    condition = conjunction(ir_, condition, anyLane(ir_, mask_));
  return condition;
}

Value* RegionEmitter::boundsMask(const Access& access) {
  Value* inside = nullptr;  // per lane
  Value* scalar = nullptr;  // the same for all lanes
  for (const auto& [index, extent] : access.bounds) {
    if (index.isUniform() && extent.isUniform())
      scalar = conjunction(ir_, scalar, ir_.CreateICmpULT(index.value, extent.value));
    else
      inside = conjunction(ir_, inside, math_.insideMask(index, extent));
  }
  return conjunction(ir_, inside, scalar ? splat(ir_, scalar, shape_.width) : nullptr);
}

Value* RegionEmitter::activeLanes(const Access& access) {
  Value* lanes = mask_;
  if (access.mask.value)
    lanes = math_.andMask(lanes, math_.vector(access.mask));
  if (access.guarded)
    lanes = math_.andMask(lanes, boundsMask(access));
  return lanes;
}

/// A scalar condition under which bounds and the op's mask hold in all lanes; null where that takes more than a few scalar operations,
/// where there is nothing to prove, where lanes are masked anyhow, or where many accesses before have been proven.
Value* RegionEmitter::proveAll(const Access& access) {
  Value* proof = nullptr;
  if (mask_ || (e_.features.avx512 && proofs_ == kMostProofs))
    return nullptr;
  for (const auto& [index, extent] : access.bounds) {
    Value* all = index.isUniform() && extent.isUniform() ? ir_.CreateICmpULT(index.value, extent.value)
                                                         : math_.provesAll(llvm::CmpInst::ICMP_ULT, index, extent);
    if (!all)
      return nullptr;
    proof = conjunction(ir_, proof, all);
  }
  if (access.mask.value) {
    Value* all = access.mask.isUniform() ? access.mask.value : access.mask.allTrue;
    proof = all ? conjunction(ir_, proof, all) : nullptr;
  }
  proofs_ += proof ? 1 : 0;
  return proof;
}

void RegionEmitter::emitLoad(ir::LoadOp op) {
  if (Value* known = loaded_.lookup(op))
    return set(op.getResult(), Lane::varying(known));
  Access from = access(op.getView(), op.getIndices(), op.getMask(), op.getGuarded() && !proven_.contains(op));
  from.ahead = distanceToNextBlock(op, from);
  set(op.getResult(), load(from));
}

/// Where the lanes of an access at equal distances that are inside follow each other: the first one and the end. Only without other masks.
std::optional<RegionEmitter::LaneRange> RegionEmitter::insideRange(const Access& access) {
  if (mask_ || access.mask.value || e_.features.avx512 || access.offset.constantStride().value_or(0) == 0)
    return std::nullopt;
  LaneRange range{ir_.getInt64(0), ir_.getInt64(shape_.width)};
  for (const auto& [index, extent] : access.bounds) {
    if (!extent.isUniform() || (!index.isUniform() && index.constantStride() != 1))
      return std::nullopt;
    if (index.isUniform()) {
      range.end = ir_.CreateSelect(ir_.CreateICmpULT(index.value, extent.value), range.end, ir_.getInt64(0));
      continue;
    }
    range.first = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, range.first, ir_.CreateNeg(index.value));
    range.end = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, range.end, ir_.CreateSub(extent.value, index.value));
  }
  return range;
}

/// Few warps meet an edge, and a loop over their lanes is much less code than vector masks.
Value* RegionEmitter::loadRange(const Access& access, LaneRange range) {
  llvm::Type *element = memoryType(e_.context(), access.type),
             *all = memoryType(e_.context(), access.type, shape_.width);
  Value* from = elementPointer(ir_, access.type, access.pointer, access.offset.value);
  llvm::AllocaInst* slot = entryAlloca(ir_, all);
  ir_.CreateStore(llvm::Constant::getNullValue(all), slot);
  emit::emitFor(ir_, range.first, range.end, ir_.getInt64(1), [&](Value* lane) {
    Value* at = ir_.CreateGEP(element, from, ir_.CreateMul(lane, access.offset.stride));
    Value* value = ir_.CreateAlignedLoad(element, at, llvm::Align(elementBytes(access.type)));
    ir_.CreateStore(value, ir_.CreateGEP(element, slot, lane));
  });
  return fromMemory(ir_, access.type, ir_.CreateLoad(all, slot));
}

void RegionEmitter::storeRange(const Access& access, Value* lanes, LaneRange range) {
  llvm::Type* element = memoryType(e_.context(), access.type);
  Value* to = elementPointer(ir_, access.type, access.pointer, access.offset.value);
  Value* stored = toMemory(ir_, access.type, lanes);
  llvm::AllocaInst* slot = entryAlloca(ir_, stored->getType());
  ir_.CreateStore(stored, slot);
  emit::emitFor(ir_, range.first, range.end, ir_.getInt64(1), [&](Value* lane) {
    Value* value = ir_.CreateLoad(element, ir_.CreateGEP(element, slot, lane));
    Value* at = ir_.CreateGEP(element, to, ir_.CreateMul(lane, access.offset.stride));
    ir_.CreateAlignedStore(value, at, llvm::Align(elementBytes(access.type)));
  });
}

/// Where numbers are at equal distances unless they wrapped between two lanes: the condition, i1, and the access in both cases. Null: nothing is
/// known of them.
Value* RegionEmitter::spaced(const Access& access, Access& inOrder, Access& apart) {
  if (!access.offset.isSpaced)
    return nullptr;
  Value* holds = access.offset.isSpaced;
  inOrder = apart = access;
  inOrder.offset = access.offset.spaced();
  apart.offset = Lane::varying(access.offset.value);
  apart.isRare = true;
  for (auto [i, bound] : llvm::enumerate(access.bounds))
    for (Lane std::pair<Lane, Lane>::* part : {&std::pair<Lane, Lane>::first, &std::pair<Lane, Lane>::second}) {
      const Lane& lane = bound.*part;
      if (!lane.isSpaced)
        continue;
      if (lane.isSpaced != holds)
        holds = ir_.CreateAnd(holds, lane.isSpaced);
      inOrder.bounds[i].*part = lane.spaced();
      apart.bounds[i].*part = Lane::varying(lane.value);
    }
  return holds;
}

Lane RegionEmitter::load(const Access& access) {
  if (std::optional<Lane> ofParts = loadPlaces(access))
    return *ofParts;
  Access inOrder, apart;
  if (Value* holds = spaced(access, inOrder, apart)) {
    Values loaded = emit::emitIf(
        ir_, holds, [&] { return Values{math_.vector(load(inOrder))}; },
        [&] { return Values{math_.vector(load(apart))}; });
    return Lane::varying(loaded[0]);
  }
  if (isUniform(access)) {
    Value* pointer = elementPointer(ir_, access.type, access.pointer, access.offset.value);
    if (Value* condition = uniformCondition(access))
      pointer = e_.pointerOrZeros(condition, pointer);
    return Lane::uniform(emit::emitLoad(ir_, e_.features, access.type, pointer, 1));
  }
  if (Value* proof = proveAll(access)) {
    Values loaded = emit::emitIf(
        ir_, proof, [&] { return Values{loadLanes(access, nullptr)}; },
        [&] {
          auto range = insideRange(access);
          return Values{range ? loadRange(access, *range) : loadLanes(access, activeLanes(access))};
        });
    return Lane::varying(loaded[0]);
  }
  return Lane::varying(loadLanes(access, activeLanes(access)));
}

Value* RegionEmitter::loadLanes(const Access& access, Value* mask) {
  unsigned width = shape_.width;
  auto stride = access.offset.constantStride();
  if (stride == 1) {
    if (!mask)
      prefetchNextBlock(access);
    return emit::emitLoad(ir_, e_.features, access.type,
                          elementPointer(ir_, access.type, access.pointer, access.offset.value), width, mask);
  }
  if (stride == 0) {
    Value* pointer = elementPointer(ir_, access.type, access.pointer, access.offset.value);
    if (mask)
      pointer = e_.pointerOrZeros(anyLane(ir_, mask), pointer);
    Value* all = splat(ir_, emit::emitLoad(ir_, e_.features, access.type, pointer, 1), width);
    return mask ? ir_.CreateSelect(mask, all, llvm::Constant::getNullValue(all->getType())) : all;
  }
  return fromMemory(ir_, access.type, access.isRare ? gatherInTurn(access, mask) : gather(access, mask));
}

Value* RegionEmitter::lanePointer(const Access& access, unsigned lane) {
  Value* offset = access.offset.isAffine()
                      ? ir_.CreateAdd(access.offset.value, ir_.CreateMul(access.offset.stride, ir_.getInt64(lane)))
                      : ir_.CreateExtractElement(access.offset.value, uint64_t(lane));
  return elementPointer(ir_, access.type, access.pointer, offset);
}

/// A loop over the lanes. Elements in memory form.
Value* RegionEmitter::gatherInTurn(const Access& access, Value* mask) {
  llvm::Type *element = memoryType(e_.context(), access.type),
             *all = memoryType(e_.context(), access.type, shape_.width);
  Value* offsets = math_.vector(access.offset);
  llvm::AllocaInst *from = entryAlloca(ir_, offsets->getType()), *into = entryAlloca(ir_, all);
  ir_.CreateStore(offsets, from);
  ir_.CreateStore(llvm::Constant::getNullValue(all), into);
  emitForActiveLanes(ir_, mask ? mask : fullMask(), [&](Value* lane) {
    Value* offset = ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateGEP(ir_.getInt64Ty(), from, lane));
    Value* value = ir_.CreateAlignedLoad(element, elementPointer(ir_, access.type, access.pointer, offset),
                                         llvm::Align(elementBytes(access.type)));
    ir_.CreateStore(value, ir_.CreateGEP(element, into, lane));
  });
  return ir_.CreateLoad(all, into);
}

/// Elements in memory form. Without fast hardware gathers: one scalar load per lane, inactive lanes read from a zero constant, so that
/// there are no branches.
Value* RegionEmitter::gather(const Access& access, Value* mask) {
  unsigned width = shape_.width;
  llvm::Type* element = memoryType(e_.context(), access.type);
  llvm::Type* result = llvm::FixedVectorType::get(element, width);
  llvm::Align align(elementBytes(access.type));
  if (e_.features.avx512 && elementBytes(access.type) >= 4) {
    Value* pointers = ir_.CreateGEP(element, access.pointer, math_.vector(access.offset));
    return ir_.CreateMaskedGather(result, pointers, align, mask, mask ? llvm::Constant::getNullValue(result) : nullptr);
  }
  Value* pointers = nullptr;
  if (mask) {
    pointers = ir_.CreateGEP(element, access.pointer, math_.vector(access.offset));
    pointers = ir_.CreateSelect(mask, pointers, splat(ir_, e_.pointerOrZeros(ir_.getFalse(), access.pointer), width));
  }
  Value* gathered = llvm::PoisonValue::get(result);
  for (unsigned lane = 0; lane < width; ++lane) {
    Value* pointer = pointers ? ir_.CreateExtractElement(pointers, uint64_t(lane)) : lanePointer(access, lane);
    gathered = ir_.CreateInsertElement(gathered, ir_.CreateAlignedLoad(element, pointer, align), uint64_t(lane));
  }
  return gathered;
}

//===-- stores ------------------------------------------------------------------------------------------------===//

void RegionEmitter::emitStore(ir::StoreOp op) {
  store(access(op.getView(), op.getIndices(), op.getMask(), op.getGuarded() && !proven_.contains(op)),
        lane(op.getValue()));
}

void RegionEmitter::store(const Access& access, const Lane& value) {
  Access inOrder, apart;
  if (Value* holds = spaced(access, inOrder, apart)) {
    emit::emitIf(
        ir_, holds,
        [&] {
          store(inOrder, value);
          return Values{};
        },
        [&] {
          store(apart, value);
          return Values{};
        });
    return;
  }
  if (isUniform(access) && value.isUniform()) {
    Value* pointer = elementPointer(ir_, access.type, access.pointer, access.offset.value);
    auto once = [&] { emit::emitStore(ir_, e_.features, access.type, value.value, pointer, 1); };
    Value* condition = uniformCondition(access);
    return condition ? emit::emitIf(ir_, condition, once) : once();
  }
  Value* lanes = math_.vector(value);
  Value* proof = proveAll(access);
  if (!proof)
    return storeLanes(access, lanes, activeLanes(access));
  emit::emitIf(
      ir_, proof,
      [&] {
        storeLanes(access, lanes, nullptr);
        return Values{};
      },
      [&] {
        if (auto range = insideRange(access))
          storeRange(access, lanes, *range);
        else
          storeLanes(access, lanes, activeLanes(access));
        return Values{};
      });
}

void RegionEmitter::storeLanes(const Access& access, Value* value, Value* mask) {
  auto stride = access.offset.constantStride();
  if (stride == 1) {
    Value* pointer = elementPointer(ir_, access.type, access.pointer, access.offset.value);
    auto plain = [&] { emit::emitStore(ir_, e_.features, access.type, value, pointer, shape_.width, mask); };
    Value* large = mask ? nullptr : wantsStreaming(access);
    if (!large)
      return plain();
    // Warps that follow each other fill the lines that they share one after another: pieces of 16 bytes, as NumPy aligns arrays, do.
    const auto ifAligned = [&](uint64_t alignment, llvm::function_ref<void()> otherwise) {
      Value* within = ir_.CreateAnd(ir_.CreatePtrToInt(pointer, ir_.getInt64Ty()), ir_.getInt64(alignment - 1));
      emit::emitIf(
          ir_, ir_.CreateAnd(large, ir_.CreateICmpEQ(within, ir_.getInt64(0))),
          [&] {
            emitStreamingStore(ir_, access.type, value, pointer, alignment);
            return Values{};
          },
          [&] {
            otherwise();
            return Values{};
          });
    };
    if (loops_ != 0)
      return ifAligned(64, plain);
    return ifAligned(64, [&] { ifAligned(16, plain); });
  }
  if (stride == 0) {  // all lanes write one element: the last active lane wins
    Value* last = ir_.getInt64(shape_.width - 1);
    auto once = [&] {
      Value* element = ir_.CreateExtractElement(value, last);
      emit::emitStore(ir_, e_.features, access.type, element,
                      elementPointer(ir_, access.type, access.pointer, access.offset.value), 1);
    };
    if (!mask)
      return once();
    Value* bits = ir_.CreateZExt(maskBits(ir_, mask), ir_.getInt64Ty());
    last = ir_.CreateSub(ir_.getInt64(63), ir_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, bits, ir_.getFalse()));
    return emit::emitIf(ir_, ir_.CreateICmpNE(bits, ir_.getInt64(0)), once);
  }
  scatter(access, toMemory(ir_, access.type, value), mask);
}

void RegionEmitter::scatter(const Access& access, Value* stored, Value* mask) {
  llvm::Type* element = memoryType(e_.context(), access.type);
  llvm::Align align(elementBytes(access.type));
  if (e_.features.avx512 && elementBytes(access.type) >= 4) {
    Value* pointers = ir_.CreateGEP(element, access.pointer, math_.vector(access.offset));
    ir_.CreateMaskedScatter(stored, pointers, align, mask);
    return;
  }
  auto unrolled = [&] {
    for (unsigned lane = 0; lane < shape_.width; ++lane)
      ir_.CreateAlignedStore(ir_.CreateExtractElement(stored, uint64_t(lane)), lanePointer(access, lane), align);
    return Values{};
  };
  if (!mask) {
    unrolled();
    return;
  }
  Value* isWhole = access.isRare ? ir_.getFalse() : allLanes(ir_, mask);
  emit::emitIf(ir_, isWhole, unrolled, [&] {
    llvm::AllocaInst* slot = entryAlloca(ir_, stored->getType());
    ir_.CreateStore(stored, slot);
    Value* offsets = math_.vector(access.offset);
    llvm::AllocaInst* offsetSlot = entryAlloca(ir_, offsets->getType());
    ir_.CreateStore(offsets, offsetSlot);
    emitForActiveLanes(ir_, mask, [&](Value* lane) {
      Value* offset = ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateGEP(ir_.getInt64Ty(), offsetSlot, lane));
      Value* value = ir_.CreateLoad(element, ir_.CreateGEP(element, slot, lane));
      ir_.CreateAlignedStore(value, elementPointer(ir_, access.type, access.pointer, offset), align);
    });
    return Values{};
  });
}

}  // namespace vortex::target::cpu::emit
