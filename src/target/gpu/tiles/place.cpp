#include "target/gpu/tiles/place.h"

#include "target/gpu/tiles/closure.h"

namespace vortex::target::gpu::tiles {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

bool sameValue(Lowering& l, Value a, Value b) {
  if (a == b)
    return true;
  auto x = l.constantOf(a), y = l.constantOf(b);
  return x && y && *x == *y;
}

bool At::equals(Lowering& l, const At& other) const {
  if (lanes != other.lanes || index.size() != other.index.size())
    return false;
  for (auto [a, b] : llvm::zip(index, other.index))
    if (a.step != b.step || !sameValue(l, a.base, b.base))
      return false;
  return true;
}

At At::lane(Lowering& l, unsigned number) const {
  At one{{}, 1, mask};
  for (const Index& i : index)
    one.index.push_back({i.step ? l.add(i.base, l.constant(i.step * number)) : i.base, 0, i.masked});
  return one;
}

Value isLess(Lowering& l, Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  if (a && b)
    return l.b.create<arith::ConstantIntOp>(l.loc, static_cast<uint64_t>(*a) < static_cast<uint64_t>(*b), 1);
  return l.less(x, y);
}

Value isEqual(Lowering& l, Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  if (a && b)
    return l.b.create<arith::ConstantIntOp>(l.loc, *a == *b, 1);
  return l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, x, y);
}

Value choose(Lowering& l, Value condition, Value x, Value y) {
  if (auto known = l.constantOf(condition))
    return *known ? x : y;
  return x == y ? x : l.select(condition, x, y);
}

mlir::Type valueType(mlir::Type element, unsigned lanes) {
  return lanes == 1 ? element : mlir::VectorType::get({static_cast<int64_t>(lanes)}, element);
}

Value splat(Lowering& l, Value scalar, unsigned lanes) {
  if (lanes == 1)
    return scalar;
  return l.b.create<mlir::vector::BroadcastOp>(l.loc, valueType(scalar.getType(), lanes), scalar);
}

Value extract(Lowering& l, Value vector, unsigned lane) {
  if (!llvm::isa<mlir::VectorType>(vector.getType()))
    return vector;
  return l.b.create<mlir::vector::ExtractOp>(l.loc, vector, static_cast<int64_t>(lane));
}

Value gather(Lowering& l, llvm::ArrayRef<Value> lanes) {
  if (lanes.size() == 1)
    return lanes[0];
  auto type = llvm::cast<mlir::VectorType>(valueType(lanes[0].getType(), lanes.size()));
  return l.b.create<mlir::vector::FromElementsOp>(l.loc, type, lanes);
}

//===-- requirements ------------------------------------------------------------------------------------------===//

/// Bytes one access of the run can have.
static int64_t accessBytes(const Place& place, unsigned lanes) {
  return std::min<int64_t>(16, lanes * vxt::scalarBytes(place.view.elementType));
}

bool Requirements::wide(const Place& place, const At& at, unsigned dim) {
  unsigned lanes = at.lanes;
  if (place.aligned)
    return true;
  if (reference_ && apart_.contains(place.base))
    return false;
  if (reference_ && (place.view.space != ir::Space::Global || place.view.rank() != reference_->view.rank() ||
                     dim + 1 != place.view.rank() || lanes != referenceLanes_ || !isInRow(at, dim)))
    return false;
  if (auto stride = l_.constantOf(place.view.strides[dim]); stride ? *stride != 1 : dim + 1 != place.view.rank())
    return false;
  if (ir::SwizzleAttr swizzle = place.view.swizzle; swizzle && (int64_t(1) << swizzle.getBase()) < lanes)
    return false;
  bool known = llvm::any_of(wide_, [&](const Wide& other) {
    return other.place.key == place.key && other.dim == dim && other.lanes == lanes;
  });
  if (!known)
    wide_.push_back({place, dim, lanes});
  return true;
}

/// Another row of a tensor starts elsewhere.
bool Requirements::isInRow(const At& at, unsigned dim) {
  for (unsigned other = 0; other < dim; ++other)
    if (other >= row_->size() || !sameValue(l_, at.index[other].base, (*row_)[other].base))
      return false;
  return true;
}

void Requirements::inside(const Place& place, llvm::ArrayRef<Value> extents) {
  inside_.push_back({place, Values(extents)});
}

void Requirements::multiple(Value value, int64_t of) {
  if (!llvm::is_contained(multiples_, std::pair(value, of)))
    multiples_.push_back({value, of});
}

void Requirements::positive(Value value) { positive_.push_back(value); }
void Requirements::equal(Value value, int64_t to) { equals_.push_back({value, to}); }

void Requirements::require(Value& all, Value condition) {
  if (auto known = l_.constantOf(condition); known && *known != 0)
    return;
  all = all ? l_.both(all, condition) : condition;
}

Value Requirements::isMultiple(Value value, int64_t of) {
  mlir::OpBuilder& b = l_.b;
  if (auto known = l_.constantOf(value))
    return b.create<arith::ConstantIntOp>(l_.loc, *known % of == 0, 1);
  Value bits = value;
  if (value.getType().isIndex())
    bits = b.create<arith::IndexCastOp>(l_.loc, b.getI64Type(), value);
  mlir::Type type = bits.getType();
  Value mask = b.create<arith::ConstantOp>(l_.loc, b.getIntegerAttr(type, of - 1));
  Value zero = b.create<arith::ConstantOp>(l_.loc, b.getIntegerAttr(type, 0));
  return b.create<arith::CmpIOp>(l_.loc, arith::CmpIPredicate::eq, b.create<arith::AndIOp>(l_.loc, bits, mask), zero);
}

static bool sameValues(Lowering& l, const Values& a, const Values& b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [&](auto pair) { return sameValue(l, std::get<0>(pair), std::get<1>(pair)); });
}

/// Constants of the code that asked stand after the place where facts are checked.
static Values offsetsHere(Lowering& l, const Place& place) {
  Values offsets(place.view.rank(), l.constant(0));
  for (auto [dim, offset] : llvm::enumerate(place.offsets)) {
    auto known = l.constantOf(offset);
    offsets[dim] = known ? l.constant(*known) : offset;
  }
  return offsets;
}

/// Its rows start as many elements after a multiple of `lanes` as those of the reference.
void Requirements::requireSamePhase(Value& all, const Wide& access) {
  const Place &place = access.place, &reference = *reference_;
  const View &view = place.view, &other = reference.view;
  mlir::OpBuilder& b = l_.b;
  if (!l_.constantOf(view.strides[access.dim]))
    require(all, b.create<arith::CmpIOp>(l_.loc, arith::CmpIPredicate::eq, view.strides[access.dim], l_.constant(1)));
  if (view.alignment < accessBytes(place, access.lanes))
    require(all, isMultiple(b.create<vxt::AddressOp>(l_.loc, b.getI64Type(), view.pointer),
                            accessBytes(place, access.lanes)));
  for (unsigned dim = 0; dim < view.rank(); ++dim)
    if (dim != access.dim && !sameValue(l_, view.strides[dim], other.strides[dim]))
      require(all, isMultiple(l_.sub(view.strides[dim], other.strides[dim]), access.lanes));
  Values from = offsetsHere(l_, place), to = offsetsHere(l_, reference);
  bool sameBase = view.base == other.base || (view.base && other.base && sameValue(l_, view.base, other.base));
  if (!sameBase || !sameValues(l_, from, to)) {
    View plain = view, unlike = other;
    plain.strides[access.dim] = unlike.strides[access.dim] = l_.constant(1);
    require(all, isMultiple(l_.sub(l_.offset(plain, from), l_.offset(unlike, to)), access.lanes));
  }
}

Value Requirements::emit() {
  Value all;
  mlir::OpBuilder& b = l_.b;
  for (const Wide& access : wide_) {
    if (reference_) {
      requireSamePhase(all, access);
      continue;
    }
    const View& view = access.place.view;
    int64_t bytes = accessBytes(access.place, access.lanes), size = vxt::scalarBytes(view.elementType);
    if (!view.alignedRows && !l_.constantOf(view.strides[access.dim]))
      require(all, b.create<arith::CmpIOp>(l_.loc, arith::CmpIPredicate::eq, view.strides[access.dim], l_.constant(1)));
    for (unsigned dim = 0; dim < view.rank(); ++dim)
      if (!view.alignedRows && dim != access.dim && bytes > size)
        require(all, isMultiple(view.strides[dim], bytes / size));
    const Values offsets = offsetsHere(l_, access.place);
    View plain = view;
    plain.swizzle = {};
    if (view.alignedRows && bytes > size) {  // whole rows do not matter
      if (!access.place.offsets.empty())
        require(all, isMultiple(offsets[access.dim], bytes / size));
      if (view.alignment < bytes && view.base)
        require(all, isMultiple(view.base, bytes / size));
    } else if (bytes > size) {
      require(all, isMultiple(l_.offset(plain, offsets), bytes / size));
    }
    if (view.space == ir::Space::Global && bytes > 1 && view.alignment < bytes) {
      Value address = b.create<vxt::AddressOp>(l_.loc, b.getI64Type(), view.pointer);
      require(all, isMultiple(address, bytes));
    }
  }
  for (auto& [place, extents] : inside_) {
    const Values offsets = offsetsHere(l_, place);
    for (unsigned dim = 0; dim < place.view.rank(); ++dim) {
      Value offset = offsets[dim];
      // Offsets far outside wrap; both comparisons are needed.
      Value end = l_.add(offset, extents[dim]);
      require(all, b.create<arith::CmpIOp>(l_.loc, arith::CmpIPredicate::ule, offset, place.view.extents[dim]));
      require(all, b.create<arith::CmpIOp>(l_.loc, arith::CmpIPredicate::ule, end, place.view.extents[dim]));
    }
  }
  for (auto [value, of] : multiples_)
    require(all, isMultiple(value, of));
  for (auto [value, to] : equals_)
    require(all, isEqual(l_, value, l_.constant(to)));
  for (Value value : positive_)
    require(all, isLess(l_, l_.constant(0), value));
  return all;
}

//===-- accesses ----------------------------------------------------------------------------------------------===//

static Values indicesOf(Lowering& l, const Place& place, const At& at) {
  Values indices;
  for (auto [dim, index] : llvm::enumerate(at.index))
    indices.push_back(place.offsets.empty() ? index.base : l.add(place.offsets[dim], index.base));
  return indices;
}

/// The dimension along which the lanes are neighbours; nothing: more than one or another step.
static std::optional<unsigned> runDim(const At& at) {
  std::optional<unsigned> found;
  for (auto [dim, index] : llvm::enumerate(at.index)) {
    if (index.step == 0)
      continue;
    if (found || index.step != 1)
      return std::nullopt;
    found = static_cast<unsigned>(dim);
  }
  return found;
}

static bool isRun(const Place& place, const At& at, Requirements* wide) {
  auto dim = runDim(at);
  return wide && dim && wide->wide(place, at, *dim);
}

/// Neighbours along the run's dimension are known to be neighbours in memory.
static Value offsetOf(Lowering& l, const Place& place, const At& at, llvm::ArrayRef<Value> indices, bool run) {
  if (!run)
    return l.offset(place.view, indices);
  View view = place.view;
  view.strides[*runDim(at)] = l.constant(1);
  return l.offset(view, indices);
}

Value loadElements(Lowering& l, const Place& place, const At& at, Requirements* wide) {
  mlir::Type type = place.view.elementType;
  bool run = at.lanes > 1 && isRun(place, at, wide);
  if (at.lanes > 1 && !run) {
    Values lanes;
    for (unsigned lane = 0; lane < at.lanes; ++lane)
      lanes.push_back(loadElements(l, place, at.lane(l, lane), wide));
    return gather(l, lanes);
  }
  Values indices = indicesOf(l, place, at);
  Value inside = place.guarded && !wide ? l.both(l.inside(place.view, indices), at.condition()) : at.condition();
  auto cache = place.view.readOnly ? vxt::Cache::ReadOnly : vxt::Cache::Default;
  Value loaded = l.b.create<vxt::LoadOp>(l.loc, valueType(type, at.lanes), place.view.pointer,
                                         offsetOf(l, place, at, indices, run), inside,
                                         run ? accessBytes(place, at.lanes) : 0, cache);
  if (!inside || !place.other)
    return loaded;
  return choose(l, inside, loaded, place.other);
}

void storeElements(Lowering& l, const Place& place, const At& at, Value value, Value mask, Requirements* wide,
                   bool streaming) {
  bool run = at.lanes > 1 && isRun(place, at, wide);
  if (at.lanes > 1 && !run) {
    for (unsigned lane = 0; lane < at.lanes; ++lane)
      storeElements(l, place, at.lane(l, lane), extract(l, value, lane), mask, wide, streaming);
    return;
  }
  Values indices = indicesOf(l, place, at);
  Value inside = place.guarded && !wide ? l.both(l.inside(place.view, indices), mask) : mask;
  auto cache = streaming && place.view.space == ir::Space::Global ? vxt::Cache::Streaming : vxt::Cache::Default;
  l.b.create<vxt::StoreOp>(l.loc, value, place.view.pointer, offsetOf(l, place, at, indices, run), inside,
                           run ? accessBytes(place, at.lanes) : 0, cache);
}

}  // namespace vortex::target::gpu::tiles
