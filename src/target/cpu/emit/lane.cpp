#include "target/cpu/emit/lane.h"

#include "target/cpu/emit/types.h"

#include <cstdlib>

namespace vortex::target::cpu::emit {

using llvm::Value;

static std::optional<int64_t> constantOf(Value* value) {
  if (auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(value))
    return constant->getSExtValue();
  return std::nullopt;
}

std::optional<int64_t> Lane::constantStride() const {
  if (kind == Kind::Uniform)
    return 0;
  return kind == Kind::Affine ? constantOf(stride) : std::nullopt;
}

Value* LaneMath::iota(llvm::Type* scalarType) {
  if (width_ == 1)
    return llvm::ConstantInt::get(scalarType, 0);
  llvm::SmallVector<llvm::Constant*> lanes;
  for (unsigned i = 0; i < width_; ++i)
    lanes.push_back(llvm::ConstantInt::get(scalarType, i));
  return llvm::ConstantVector::get(lanes);
}

Value* LaneMath::vector(const Lane& lane) {
  switch (lane.kind) {
  case Lane::Kind::Uniform: return splat(ir_, lane.value, width_);
  case Lane::Kind::Affine: {
    Value* offsets = iota(lane.value->getType());
    if (constantOf(lane.stride) != 1)
      offsets = ir_.CreateMul(offsets, splat(ir_, lane.stride, width_));
    return ir_.CreateAdd(splat(ir_, lane.value, width_), offsets);
  }
  case Lane::Kind::Varying: return lane.value;
  }
  return nullptr;
}

/// Uniform zero stride of an affine sum collapses to uniform.
static Lane makeAffine(Value* base, Value* stride) {
  return constantOf(stride) == 0 ? Lane::uniform(base) : Lane::affine(base, stride);
}

static Value* strideOf(const Lane& lane) {
  return lane.isAffine() ? lane.stride : llvm::ConstantInt::get(lane.value->getType(), 0);
}

Lane Lane::spaced() const { return isSpaced ? makeAffine(first, step) : *this; }

/// The vector of what `combine` makes of two values of which one varies.
Lane LaneMath::combined(Value* vector, const Lane& a, const Lane& b,
                        llvm::function_ref<Lane(const Lane&, const Lane&)> combine) {
  Lane result = Lane::varying(vector);
  if (!a.mayBeSpaced() || !b.mayBeSpaced())
    return result;
  const Lane spaced = combine(a.spaced(), b.spaced());
  if (spaced.kind == Lane::Kind::Varying)
    return result;
  result.isSpaced = !a.isSpaced ? b.isSpaced : !b.isSpaced ? a.isSpaced : ir_.CreateAnd(a.isSpaced, b.isSpaced);
  result.first = spaced.value;
  result.step = strideOf(spaced);
  return result;
}

/// A stride that only the launch knows is taken for one that is not negative.
Lane LaneMath::extended(const Lane& narrow, Value* vector, bool isSigned) {
  Lane result = Lane::varying(vector);
  llvm::Type *from = narrow.value->getType(), *to = vector->getType()->getScalarType();
  if (!narrow.isAffine() || from->getScalarSizeInBits() > 32 || to->getScalarSizeInBits() != 64)
    return result;
  result.first = isSigned ? ir_.CreateSExt(narrow.value, to) : ir_.CreateZExt(narrow.value, to);
  result.step =
      isSigned || constantOf(narrow.stride) ? ir_.CreateSExt(narrow.stride, to) : ir_.CreateZExt(narrow.stride, to);
  Value* last = ir_.CreateAdd(result.first, ir_.CreateMul(result.step, llvm::ConstantInt::get(to, width_ - 1)));
  Value* again = ir_.CreateTrunc(last, from);
  result.isSpaced = ir_.CreateICmpEQ(last, isSigned ? ir_.CreateSExt(again, to) : ir_.CreateZExt(again, to));
  return result;
}

Lane LaneMath::add(const Lane& a, const Lane& b) {
  if (a.kind == Lane::Kind::Varying || b.kind == Lane::Kind::Varying) {
    Lane sum =
        combined(ir_.CreateAdd(vector(a), vector(b)), a, b, [&](const Lane& x, const Lane& y) { return add(x, y); });
    sum.places = sumOfPlaces(a, b);
    return sum;
  }
  return makeAffine(ir_.CreateAdd(a.value, b.value), ir_.CreateAdd(strideOf(a), strideOf(b)));
}

Lane LaneMath::sub(const Lane& a, const Lane& b) {
  if (a.kind == Lane::Kind::Varying || b.kind == Lane::Kind::Varying)
    return combined(ir_.CreateSub(vector(a), vector(b)), a, b, [&](const Lane& x, const Lane& y) { return sub(x, y); });
  return makeAffine(ir_.CreateSub(a.value, b.value), ir_.CreateSub(strideOf(a), strideOf(b)));
}

Lane LaneMath::mul(const Lane& a, const Lane& b) {
  if (a.isUniform() && b.isUniform())
    return Lane::uniform(ir_.CreateMul(a.value, b.value));
  if (a.isAffine() && b.isUniform())
    return makeAffine(ir_.CreateMul(a.value, b.value), ir_.CreateMul(a.stride, b.value));
  if (a.isUniform() && b.isAffine())
    return mul(b, a);
  const bool hasVarying = a.kind == Lane::Kind::Varying || b.kind == Lane::Kind::Varying;
  Value* vectors = ir_.CreateMul(vector(a), vector(b));
  if (!hasVarying)
    return Lane::varying(vectors);
  Lane product = combined(vectors, a, b, [&](const Lane& x, const Lane& y) {
    return x.isUniform() || y.isUniform() ? mul(x, y) : Lane::varying(vectors);
  });
  product.places = b.isUniform() ? timesPlaces(a, b) : timesPlaces(b, a);
  return product;
}

//===-- places ------------------------------------------------------------------------------------------------===//

std::optional<Lane::Places> LaneMath::places(const Lane& lane) {
  if (width_ == 1 || !lane.value->getType()->getScalarType()->isIntegerTy(64))
    return std::nullopt;
  if (lane.places)
    return lane.places;
  Value* zero = ir_.getInt64(0);
  auto constant = [&](Value* vector) { return llvm::cast<llvm::Constant>(vector); };
  if (lane.isUniform())
    return Lane::Places{.origin = lane.value, .columns = constant(splat(ir_, zero, width_))};
  if (std::optional<int64_t> stride = lane.constantStride())
    return Lane::Places{.origin = lane.value,
                        .columns =
                            constant(ir_.CreateMul(iota(ir_.getInt64Ty()), splat(ir_, ir_.getInt64(*stride), width_)))};
  auto* lanes = llvm::dyn_cast<llvm::Constant>(lane.value);
  if (!lane.value->getType()->isVectorTy() || !lanes || lanes->containsUndefOrPoisonElement())
    return std::nullopt;
  return Lane::Places{.origin = zero, .columns = lanes};
}

Value* LaneMath::vector(const Lane::Places& places) {
  Value* result = ir_.CreateAdd(splat(ir_, places.origin, width_), places.columns);
  return places.pitch ? ir_.CreateAdd(result, ir_.CreateMul(splat(ir_, places.pitch, width_), places.rows)) : result;
}

std::optional<Lane::Places> LaneMath::sumOfPlaces(const Lane& a, const Lane& b) {
  std::optional<Lane::Places> x = places(a), y = places(b);
  if (!x || !y || (x->pitch && y->pitch && x->pitch != y->pitch))
    return std::nullopt;
  Lane::Places sum{.origin = constantOf(x->origin) == 0   ? y->origin
                             : constantOf(y->origin) == 0 ? x->origin
                                                          : ir_.CreateAdd(x->origin, y->origin),
                   .pitch = x->pitch ? x->pitch : y->pitch,
                   .columns = llvm::cast<llvm::Constant>(ir_.CreateAdd(x->columns, y->columns))};
  if (sum.pitch)
    sum.rows = !x->rows ? y->rows : !y->rows ? x->rows : llvm::cast<llvm::Constant>(ir_.CreateAdd(x->rows, y->rows));
  return sum;
}

/// A product by a number that the launch knows makes rows of columns.
std::optional<Lane::Places> LaneMath::timesPlaces(const Lane& a, const Lane& b) {
  if (!b.isUniform())
    return std::nullopt;
  std::optional<Lane::Places> x = places(a);
  const bool isConstant = constantOf(b.value).has_value();
  if (!x || (!isConstant && x->pitch && !x->columns->isNullValue()))
    return std::nullopt;
  Lane::Places product = *x;
  product.origin = constantOf(x->origin) == 0 ? x->origin : ir_.CreateMul(x->origin, b.value);
  if (x->pitch)
    product.pitch = ir_.CreateMul(x->pitch, b.value);
  if (isConstant) {
    product.columns = llvm::cast<llvm::Constant>(ir_.CreateMul(x->columns, splat(ir_, b.value, width_)));
  } else if (!x->pitch) {
    product.pitch = b.value;
    product.rows = x->columns;
    product.columns = llvm::cast<llvm::Constant>(llvm::Constant::getNullValue(x->columns->getType()));
  }
  return product;
}

Value* LaneMath::andMask(Value* a, Value* b) {
  if (!a || !b)
    return a ? a : b;
  return ir_.CreateLogicalAnd(a, b);
}

Lane LaneMath::andLanes(const Lane& a, const Lane& b) {
  if (a.isUniform() && b.isUniform())
    return Lane::uniform(ir_.CreateAnd(a.value, b.value));
  auto proof = [](const Lane& lane) { return lane.isUniform() ? lane.value : lane.allTrue; };
  Value* allTrue = proof(a) && proof(b) ? ir_.CreateAnd(proof(a), proof(b)) : nullptr;
  Lane result = Lane::varying(ir_.CreateAnd(vector(a), vector(b)), allTrue);
  for (const Lane* lane : {&a, &b}) {
    Value* none = lane->isUniform() ? ir_.CreateNot(lane->value) : lane->noneTrue;
    if (none)
      result.noneTrue = result.noneTrue ? ir_.CreateOr(result.noneTrue, none) : none;
  }
  return result;
}

/// Affine with constant stride against a uniform: the order of lanes reduces the question to the first and the last one, as long as the
/// sequence does not wrap in the predicate's signedness.
Value* LaneMath::provesAll(llvm::CmpInst::Predicate predicate, const Lane& a, const Lane& b) {
  using P = llvm::CmpInst;
  if (b.isAffine() && a.isUniform())
    return provesAll(P::getSwappedPredicate(predicate), b, a);
  if (!a.isAffine() || !b.isUniform() || !P::isRelational(predicate))
    return nullptr;
  // At most one wrap over the warp, so that comparing its ends sees it.
  int64_t most = (int64_t(1) << (a.value->getType()->getScalarSizeInBits() - 2)) / int64_t(width_);
  const std::optional<int64_t> known = a.constantStride();
  if (known && std::abs(*known) > most)
    return nullptr;
  const int64_t stride = known.value_or(1);  // one that the launch knows: not negative, which is asked below
  Value* first = a.value;
  Value* last =
      ir_.CreateAdd(a.value, ir_.CreateMul(a.stride, llvm::ConstantInt::get(a.stride->getType(), width_ - 1)));
  Value* low = stride > 0 ? first : last;
  Value* high = stride > 0 ? last : first;
  bool isSigned = P::isSigned(predicate);
  Value* ordered = ir_.CreateICmp(isSigned ? P::ICMP_SLE : P::ICMP_ULE, low, high);
  if (!known)
    ordered = ir_.CreateAnd(ordered, ir_.CreateICmpULE(a.stride, llvm::ConstantInt::get(a.stride->getType(), most)));
  bool less =
      predicate == P::ICMP_ULT || predicate == P::ICMP_ULE || predicate == P::ICMP_SLT || predicate == P::ICMP_SLE;
  return ir_.CreateAnd(ordered, ir_.CreateICmp(predicate, less ? high : low, b.value));
}

Lane LaneMath::compare(llvm::CmpInst::Predicate predicate, const Lane& a, const Lane& b) {
  if (a.isUniform() && b.isUniform())
    return Lane::uniform(ir_.CreateICmp(predicate, a.value, b.value));
  Lane result = Lane::varying(ir_.CreateICmp(predicate, vector(a), vector(b)), provesAll(predicate, a, b));
  result.noneTrue = provesAll(llvm::CmpInst::getInversePredicate(predicate), a, b);
  return result;
}

/// Neighbouring indices are inside from one lane up to another, which 32-bit lane numbers tell cheaper than 64-bit indices.
Value* LaneMath::insideMask(const Lane& index, const Lane& extent) {
  if (index.constantStride() != 1 || !extent.isUniform())
    return vector(compare(llvm::CmpInst::ICMP_ULT, index, extent));
  llvm::Type* i32 = ir_.getInt32Ty();
  auto clamp = [&](Value* value) {
    value = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, ir_.getInt64(0));
    return ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, ir_.getInt64(width_)), i32);
  };
  Value *first = clamp(ir_.CreateNeg(index.value)), *end = clamp(ir_.CreateSub(extent.value, index.value));
  Value* lanes = iota(i32);
  return ir_.CreateAnd(ir_.CreateICmpSGE(lanes, splat(ir_, first, width_)),
                       ir_.CreateICmpSLT(lanes, splat(ir_, end, width_)));
}

}  // namespace vortex::target::cpu::emit
