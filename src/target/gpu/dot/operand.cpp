#include "target/gpu/dot/operand.h"

#include "ir/guarded_slice.h"
#include "target/gpu/access.h"

#include <bit>
#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu::dot {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;

//===-- windows ----------------------------------------------------------------------------------------------------===//

static std::optional<Window> windowOfPlace(Lowering& l, const tiles::Place& place, bool swizzled) {
  if (place.other && !mlir::matchPattern(place.other, mlir::m_Zero()) &&
      !mlir::matchPattern(place.other, mlir::m_AnyZeroFloat()))
    return std::nullopt;
  if ((place.view.swizzle && !swizzled) || !place.startsInside)
    return std::nullopt;
  Window window;
  window.view = place.view;
  View plain = place.view;
  plain.swizzle = {};
  Values zeros(place.view.rank(), l.constant(0));
  window.start = l.offset(plain, place.offsets.empty() ? Values(zeros) : place.offsets);
  for (unsigned dim = 0; dim < place.view.rank(); ++dim) {
    window.strides.push_back(place.view.strides[dim]);
    // Of what starts behind the end nothing is left.
    Value limit;
    if (place.guarded) {
      Value offset = place.offsets.empty() ? l.constant(0) : place.offsets[dim];
      Value inside = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::ule, offset, place.view.extents[dim]);
      limit = l.select(inside, l.sub(place.view.extents[dim], offset), l.constant(0));
    }
    window.limits.push_back(limit);
  }
  window.inner = static_cast<int>(place.view.rank()) - 1;
  return window;
}

static std::optional<Window> windowOfSlice(tiles::Evaluator& e, ir::SliceOp slice, bool swizzled) {
  if (!ir::guardedDims(slice).empty())
    return std::nullopt;
  auto from = findWindow(e, slice.getValue(), swizzled);
  if (!from)
    return std::nullopt;
  Lowering& l = e.l;
  Window window = *from;
  window.strides.clear();
  window.limits.clear();
  window.inner = -1;
  for (auto [dim, vxOffset] : llvm::enumerate(slice.getOffsets())) {
    Value offset = l.scalar(vxOffset);
    if (from->limits[dim] && l.constantOf(offset) != 0)
      return std::nullopt;
    window.start = l.add(window.start, l.mul(offset, from->strides[dim]));
    if (llvm::is_contained(slice.getDropped(), static_cast<int64_t>(dim)))
      continue;
    if (from->inner == static_cast<int>(dim))
      window.inner = static_cast<int>(window.strides.size());
    window.strides.push_back(from->strides[dim]);
    window.limits.push_back(from->limits[dim]);
  }
  return window;
}

std::optional<Window> findWindow(tiles::Evaluator& e, mlir::Value tile, bool swizzled) {
  Lowering& l = e.l;
  if (const tiles::Place* place = e.place(tile))
    return windowOfPlace(l, *place, swizzled);
  mlir::Operation* op = tile.getDefiningOp();
  if (auto load = llvm::dyn_cast_if_present<ir::TileLoadOp>(op))
    return windowOfPlace(l, e.placeOfLoad(load), swizzled);
  if (auto slice = llvm::dyn_cast_if_present<ir::SliceOp>(op))
    return windowOfSlice(e, slice, swizzled);
  if (auto transpose = llvm::dyn_cast_if_present<ir::TransposeOp>(op)) {
    auto from = findWindow(e, transpose.getValue(), swizzled);
    if (!from)
      return std::nullopt;
    Window window = *from;
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation())) {
      window.strides[dim] = from->strides[static_cast<size_t>(source)];
      window.limits[dim] = from->limits[static_cast<size_t>(source)];
      if (from->inner == source)
        window.inner = static_cast<int>(dim);
    }
    return window;
  }
  auto broadcast = llvm::dyn_cast_if_present<ir::BroadcastOp>(op);
  if (!broadcast || !tiles::isTile(broadcast.getValue()))
    return std::nullopt;
  auto from = findWindow(e, broadcast.getValue(), swizzled);
  if (!from)
    return std::nullopt;
  Window window = *from;
  unsigned rank = tiles::rankOf(tile);
  window.strides.assign(rank, l.constant(0));
  window.limits.assign(rank, Value());
  window.inner = -1;
  auto type = llvm::cast<mlir::RankedTensorType>(broadcast.getValue().getType());
  for (auto [dim, target] : llvm::enumerate(broadcast.getDims())) {
    if (type.getDimSize(static_cast<unsigned>(dim)) == 1) {
      if (from->limits[dim])
        return std::nullopt;
      continue;
    }
    window.strides[static_cast<size_t>(target)] = from->strides[dim];
    window.limits[static_cast<size_t>(target)] = from->limits[dim];
    if (from->inner == static_cast<int>(dim))
      window.inner = static_cast<int>(target);
  }
  return window;
}

//===-- staging ----------------------------------------------------------------------------------------------------===//

Operand::Operand(tiles::Evaluator& evaluator, mlir::Value tile, bool isA, const Plan& plan)
    : e_(evaluator), l(evaluator.l), n(evaluator.l), tile_(tile), isA_(isA), plan_(plan),
      type_(tiles::elementType(tile)), rank_(tiles::rankOf(tile)) {
  window_ = findWindow(e_, tile);
  // Computed tiles are read along their last dimension.
  int inner = window_ ? window_->inner : static_cast<int>(rank_) - 1;
  globalDepthInner_ = inner == static_cast<int>(kDim()) || (inner != static_cast<int>(xDim()) && isA);
  shared_ = sharedTile(plan, isA, static_cast<unsigned>(vxt::scalarBytes(type_)), globalDepthInner_);
  inPlace_ = findInPlace();
}

void Operand::announceReads() {
  tiles::Closure().walk(tile_, tiles::identityMap(rank_), [&](mlir::Value tile, const tiles::DimMap&) {
    if (const tiles::Place* place = e_.place(tile)) {
      l.hazards().read(place->view.root ? Hazards::rootOf(place->view.root) : place->base);
      return false;
    }
    if (auto load = tile.getDefiningOp<ir::TileLoadOp>())
      l.hazards().read(rootOf(load.getView()));
    return true;
  });
}

Operand::Mapping Operand::mapping(unsigned run, bool alongDepth) const {
  unsigned inner = 1u << (alongDepth ? shared_.depth : shared_.across);
  unsigned rows = 1u << (alongDepth ? shared_.across : shared_.depth);
  Mapping m;
  m.perRow = inner / run;
  m.rows = rows;
  unsigned threads = static_cast<unsigned>(l.threads());
  VORTEX_CHECK(m.perRow <= threads && threads % m.perRow == 0, "%u pieces a row, %u threads", m.perRow, threads);
  m.rowStep = threads / m.perRow;
  m.partial = m.rowStep > rows;
  m.count = m.partial ? 1 : rows / m.rowStep;
  return m;
}

void Operand::begin(llvm::ArrayRef<Value> batch, Value x0, Value extent, Value depth, Value stages) {
  batch_.assign(batch.begin(), batch.end());
  x0_ = x0;
  depth_ = depth;
  stages_ = stages;
  Value left = l.sub(extent, x0);
  wide_ = {};
  if (window_) {
    const Window& w = *window_;
    auto limited = [&](Value value, unsigned dim, Value from) {
      return w.limits[dim] ? l.min(value, from ? l.sub(w.limits[dim], from) : w.limits[dim]) : value;
    };
    left = limited(left, xDim(), x0);
    depth_ = limited(depth_, kDim(), {});
    strideX_ = w.strides[xDim()];
    strideK_ = w.strides[kDim()];
    start_ = l.add(w.start, l.mul(x0, strideX_));
    for (auto [dim, index] : llvm::enumerate(batch)) {
      start_ = l.add(start_, l.mul(index, w.strides[dim]));
      if (w.limits[dim])  // a batch index outside has no elements
        left = l.select(l.less(index, w.limits[dim]), left, l.constant(0));
    }
    wide_ = wideCondition();
    contiguous_ = contiguousCondition();
  }
  extentLeft_ = n.narrow(left, int64_t(1) << shared_.across);
}

/// A power of two that divides the number, from how it is computed and what is known of the view.
static int64_t knownMultiple(Lowering& l, const View& view, Value value) {
  constexpr int64_t kMost = 1 << 16;
  if (auto known = l.constantOf(value))
    return *known == 0 ? kMost : std::min(kMost, *known & -*known);
  if (view.alignedRows && llvm::is_contained(llvm::ArrayRef(view.strides).drop_back(), value))
    return 16 / vxt::scalarBytes(view.elementType);
  mlir::Operation* op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0 || op->getNumOperands() > 2)
    return 1;
  int64_t a = knownMultiple(l, view, op->getOperand(0));
  if (llvm::isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::TruncIOp>(op))
    return a;
  bool picks = llvm::isa<arith::MinUIOp, arith::MinSIOp, arith::MaxUIOp, arith::MaxSIOp>(op);
  if (!picks && !llvm::isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return 1;
  int64_t b = knownMultiple(l, view, op->getOperand(1));
  return llvm::isa<arith::MulIOp>(op) ? std::min(kMost, a * b) : std::min(a, b);
}

int64_t Operand::knownDepth() const { return llvm::cast<mlir::RankedTensorType>(tile_.getType()).getDimSize(kDim()); }

/// Whole block tiles of known depth, in rows of whole 16 bytes that start at such; nothing of it outside. The code has every step of the depth
/// one after another, so there is a limit to it.
std::optional<SharedTile> Operand::findInPlace() {
  constexpr int64_t kMostBytes = 256;  // of depth
  auto type = llvm::cast<mlir::RankedTensorType>(tile_.getType());
  SharedTile tile;
  tile.elementBytes = static_cast<unsigned>(vxt::scalarBytes(type_));
  int64_t x = type.getDimSize(xDim()), k = type.getDimSize(kDim()), across = isA_ ? plan_.rows : plan_.columns;
  if (plan_.unit != Unit::Mma || type.isDynamicDim(xDim()) || type.isDynamicDim(kDim()) || x % across != 0 || k == 0 ||
      k % matrixDepth(tile.elementBytes) != 0 || k * tile.elementBytes > kMostBytes)
    return std::nullopt;
  place_ = findWindow(e_, tile_, true);
  if (!place_ || place_->view.space != ir::Space::Shared ||
      llvm::any_of(place_->limits, [](Value v) { return bool(v); }))
    return std::nullopt;
  auto strideX = l.constantOf(place_->strides[xDim()]), strideK = l.constantOf(place_->strides[kDim()]);
  if (!strideX || !strideK || (strideX != 1 && strideK != 1))
    return std::nullopt;
  tile.depthInner = strideK == 1;
  int64_t pitch = tile.depthInner ? *strideX : *strideK, inner = tile.depthInner ? k : x;
  int64_t period = tile.chunk();  // what pieces of the tile start at multiples of
  if (ir::SwizzleAttr swizzle = place_->view.swizzle) {
    if ((int64_t(1) << swizzle.getBase()) % tile.chunk() != 0)
      return std::nullopt;
    tile.swizzle = {static_cast<unsigned>(swizzle.getShift()), static_cast<uint64_t>(swizzle.getMask()),
                    static_cast<unsigned>(swizzle.getBase())};
    period =
        std::max(period, int64_t(std::bit_ceil(static_cast<uint64_t>(swizzle.getMask()) + 1) << swizzle.getShift()));
  }
  auto isMultiple = [&](Value value) { return knownMultiple(l, place_->view, value) % period == 0; };
  if (pitch < inner || pitch % tile.chunk() != 0 || !isMultiple(place_->start) ||
      (x != across && across * *strideX % period != 0))
    return std::nullopt;
  for (unsigned dim = 0; dim + 2 < rank_; ++dim)
    if (!isMultiple(place_->strides[dim]))
      return std::nullopt;
  tile.pitch = static_cast<unsigned>(pitch);
  return tile;
}

Value Operand::placePointer(llvm::ArrayRef<Value> batch, Value x0) {
  const Window& w = *place_;
  Value at = l.add(w.start, l.mul(x0, w.strides[xDim()]));
  for (auto [dim, index] : llvm::enumerate(batch))
    at = l.add(at, l.mul(index, w.strides[dim]));
  return l.b.create<vxt::OffsetOp>(l.loc, w.view.pointer.getType(), w.view.pointer, at, type_);
}

/// Sixteen aligned neighbouring bytes at once.
Value Operand::wideCondition() {
  const Window& w = *window_;
  if (w.view.space != ir::Space::Global || globalDepthInner_ != shared_.depthInner || w.inner < 0)
    return {};
  int64_t chunk = shared_.chunk();
  Value all;
  auto require = [&](Value condition) { all = l.both(all, condition); };
  auto multiple = [&](Value value, int64_t of) {
    if (knownMultiple(l, w.view, value) % of == 0)
      return;
    Value rest = l.b.create<arith::AndIOp>(l.loc, value, l.constant(of - 1));
    require(l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, rest, l.constant(0)));
  };
  Value inner = globalDepthInner_ ? strideK_ : strideX_, outer = globalDepthInner_ ? strideX_ : strideK_;
  if (l.constantOf(inner) != 1)
    require(l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, inner, l.constant(1)));
  multiple(outer, chunk);
  multiple(start_, chunk);
  if (w.view.alignment < 16) {
    Value address = l.b.create<vxt::AddressOp>(l.loc, l.b.getI64Type(), w.view.pointer);
    multiple(l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), address), 16);
  }
  if (!all)
    return l.b.create<arith::ConstantIntOp>(l.loc, 1, 1);
  // Both ways of both operands in one entry point would be most of its code: there is one for operands that lie well.
  auto root = llvm::dyn_cast_if_present<mlir::BlockArgument>(w.view.root);
  if (plan_.unit != Unit::Mma || w.view.alignedRows || !root)
    return all;
  l.addBetterAligned(root.getArgNumber());
  return {};
}

Value Operand::contiguousCondition() {
  const Window& w = *window_;
  if (w.view.space != ir::Space::Global || globalDepthInner_ != shared_.depthInner || w.inner < 0 ||
      shared_.elementBytes > 2)
    return {};
  Value inner = globalDepthInner_ ? strideK_ : strideX_;
  if (l.constantOf(inner) == 1)
    return l.b.create<arith::ConstantIntOp>(l.loc, 1, 1);
  return l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, inner, l.constant(1));
}

Value Operand::stagePointer(Value stage) {
  Value offset = n.mul(stage, static_cast<int64_t>(shared_.elements()));
  return l.b.create<vxt::OffsetOp>(l.loc, stages_.getType(), stages_, offset, type_);
}

Value Operand::sharedOffset(Value x, Value k) { return placeIn(shared_, n, x, k); }

Value Operand::depthLeft(Value k0) { return n.narrow(l.sub(depth_, k0), plan_.depth); }

/// Elements of 4 and 8 bytes have asynchronous copies of their own.
static bool hasElementCopies(const std::optional<Window>& window, const SharedTile& tile) {
  return window && window->view.space == ir::Space::Global && (tile.elementBytes == 4 || tile.elementBytes == 8);
}

bool Operand::isStraight() const {
  auto always = wide_ ? l.constantOf(wide_) : std::nullopt;
  return (always && *always != 0) || hasElementCopies(window_, shared_);
}

void Operand::copy(Value stage, Value k0) {
  auto narrow = [&] { hasElementCopies(window_, shared_) ? copyElements(stage, k0) : copyNarrow(stage, k0); };
  if (!wide_)
    return narrow();
  l.emitIf(
      wide_,
      [&] {
        copyWide(stage, k0);
        return Values{};
      },
      [&] {
        narrow();
        return Values{};
      });
}

Operand::Walk Operand::startWalk(unsigned run, bool alongDepth, Value k0) {
  Walk w;
  w.mapping = mapping(run, alongDepth);
  w.alongDepth = alongDepth;
  Value thread = l.b.create<vxt::ThreadIdOp>(l.loc, l.b.getI32Type());
  unsigned rowBits = static_cast<unsigned>(std::countr_zero(w.mapping.perRow));
  w.inner = n.mul(n.bitAnd(thread, w.mapping.perRow - 1), run);
  w.outer = n.shiftRight(thread, rowBits);
  Value left = depthLeft(k0);
  w.innerLeft = n.sub(alongDepth ? left : extentLeft_, w.inner);
  w.outerLeft = alongDepth ? extentLeft_ : left;
  Value innerStride = alongDepth ? strideK_ : strideX_;
  w.outerStride = alongDepth ? strideX_ : strideK_;
  Value source = l.add(l.add(start_, l.mul(k0, strideK_)),
                       l.add(l.mul(n.widen(w.inner), innerStride), l.mul(n.widen(w.outer), w.outerStride)));
  w.from = l.b.create<vxt::OffsetOp>(l.loc, window_->view.pointer.getType(), window_->view.pointer, source, type_);
  return w;
}

/// Copies of `run` elements in one piece of straight code that tests everything. A second version without tests for steps that exist as a
/// whole was slower (bf16, 4096³: 386 instead of 414 TFLOP/s): the branch cuts the step's code in two.
void Operand::copyRuns(Value stage, Value k0, unsigned run, bool alongDepth) {
  Value to = stagePointer(stage);
  Walk w = startWalk(run, alongDepth, k0);
  const Mapping& m = w.mapping;
  auto place = [&](Value row) { return alongDepth ? sharedOffset(row, w.inner) : sharedOffset(w.inner, row); };
  Value first = l.b.create<vxt::OffsetOp>(l.loc, to.getType(), to, place(w.outer), type_);
  // Row steps that do not reach the swizzle's bits move the destination by a constant.
  uint64_t period = uint64_t(m.rowStep) * (alongDepth == shared_.depthInner ? shared_.pitch : 1);
  bool regular = true;
  for (unsigned i = 0; i < m.count; ++i)
    regular &= ((i * period >> shared_.swizzle.shift) & shared_.swizzle.mask) == 0;
  unsigned bytes = run * shared_.elementBytes;
  Value step = l.mul(l.constant(m.rowStep), w.outerStride), from = w.from;
  Value most = n.mul(n.clamp(w.innerLeft, run), shared_.elementBytes);
  auto one = [&](unsigned i) {
    Value row = n.add(w.outer, n.constant(i * m.rowStep));
    Value at = regular ? n.constant(static_cast<int64_t>(i * period)) : place(row);
    Value count = n.select(n.less(row, w.outerLeft), most, n.constant(0));
    l.b.create<vxt::AsyncCopyOp>(l.loc, regular ? first : to, at, from, l.constant(0), count, type_, bytes);
    if (i + 1 < m.count)
      from = l.b.create<vxt::OffsetOp>(l.loc, from.getType(), from, step, type_);
  };
  if (m.partial)
    return l.emitIf(n.less(w.outer, n.constant(m.rows)), [&] { one(0); });
  for (unsigned i = 0; i < m.count; ++i)
    one(i);
}

void Operand::copyWide(Value stage, Value k0) { copyRuns(stage, k0, shared_.chunk(), shared_.depthInner); }

/// Elements of 4 or 8 bytes: any strides and alignment, and the tile may lie across.
void Operand::copyElements(Value stage, Value k0) { copyRuns(stage, k0, 1, globalDepthInner_); }

}  // namespace vortex::target::gpu::dot
