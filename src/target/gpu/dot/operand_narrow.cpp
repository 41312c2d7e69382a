// Copies to the stages of elements that have no asynchronous copies of their own, or that are computed.
#include "ir/index_cast.h"
#include "target/gpu/dot/operand.h"

#include <bit>

namespace vortex::target::gpu::dot {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;

/// Elements too narrow for asynchronous copies of their own.
void Operand::copyNarrow(Value stage, Value k0) {
  if (!contiguous_)
    return copyEvaluated(stage, k0);
  l.emitIf(
      l.both(contiguous_, staysInside(k0)),
      [&] {
        copyShifted(stage, k0);
        return Values{};
      },
      [&] {
        copyEvaluated(stage, k0);
        return Values{};
      });
}

/// Whether the aligned 16 bytes around each element of this step lie between the tensor's first element and its last: an allocation may begin and end
/// there. All threads agree, and only steps at a corner of the tensor say no.
Value Operand::staysInside(Value k0) {
  const View& tensor = window_->view.root ? l.view(window_->view.root) : window_->view;
  int64_t bytes = shared_.elementBytes;
  auto address = [&](const View& view, Value element) {
    Value pointer = l.b.create<vxt::AddressOp>(l.loc, l.b.getI64Type(), view.pointer);
    return l.add(l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), pointer), l.mul(element, l.constant(bytes)));
  };
  auto last = [&](Value count) { return l.sub(count, l.constant(1)); };
  auto steps = [&](Value existing) { return n.widen(n.sub(n.max(existing, n.constant(1)), n.constant(1))); };
  Value first = l.add(start_, l.mul(k0, strideK_));
  Value end = l.add(first, l.add(l.mul(steps(extentLeft_), strideX_), l.mul(steps(depthLeft(k0)), strideK_)));
  Value tensorFirst = l.offset(tensor, Values(tensor.rank(), l.constant(0))), tensorLast = tensorFirst;
  for (auto [extent, stride] : llvm::zip(tensor.extents, tensor.strides))
    tensorLast = l.add(tensorLast, l.mul(last(extent), stride));
  auto rounded = [&](Value value) -> Value { return l.b.create<arith::AndIOp>(l.loc, value, l.constant(-16)); };
  auto notAfter = [&](Value a, Value b) -> Value {
    return l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::ule, a, b);
  };
  Value after = rounded(l.add(address(window_->view, end), l.constant(bytes + 15)));
  return l.both(notAfter(address(tensor, tensorFirst), rounded(address(window_->view, first))),
                notAfter(after, l.add(address(tensor, tensorLast), l.constant(bytes))));
}

/// Rows that start anywhere: each piece is cut out of the two aligned 16 bytes around it, whose other bytes are of the same tensor.
void Operand::copyShifted(Value stage, Value k0) {
  constexpr unsigned kTogether = 4;
  auto chunk = shared_.chunk(), bytes = shared_.elementBytes;
  Value to = stagePointer(stage);
  Walk w = startWalk(chunk, shared_.depthInner, k0);
  const Mapping& m = w.mapping;
  Value step = l.mul(l.constant(m.rowStep), w.outerStride), from = w.from, most = n.clamp(w.innerLeft, chunk);
  auto type = mlir::VectorType::get({chunk}, type_);
  struct Piece {
    Value row, count, shift, low, high;
  };
  auto load = [&](unsigned i) {
    Piece p;
    p.row = n.add(w.outer, n.constant(i * m.rowStep));
    p.count = n.select(n.less(p.row, w.outerLeft), most, n.constant(0));
    Value address = l.b.create<vxt::AddressOp>(l.loc, l.b.getI64Type(), from);
    p.shift = n.bitAnd(l.b.create<arith::TruncIOp>(l.loc, l.b.getI32Type(), address), 15);
    Value before = n.shiftRight(p.shift, bytes == 2 ? 1 : 0), first = l.sub(l.constant(0), n.widen(before));
    auto read = [&](Value index, Value mask) -> Value {
      return l.b.create<vxt::LoadOp>(l.loc, type, from, index, mask, 16, vxt::Cache::Default);
    };
    p.low = read(first, n.less(n.constant(0), p.count));
    p.high = read(l.add(first, l.constant(chunk)), n.less(n.constant(chunk), n.add(before, p.count)));
    from = l.b.create<vxt::OffsetOp>(l.loc, from.getType(), from, step, type_);
    return p;
  };
  auto some = [&](unsigned first, unsigned count) {
    llvm::SmallVector<Piece> pieces;
    for (unsigned i = first; i < first + count; ++i)
      pieces.push_back(load(i));
    for (const Piece& p : pieces) {
      Value place = w.alongDepth ? sharedOffset(p.row, w.inner) : sharedOffset(w.inner, p.row);
      Value value = l.b.create<mlir::vector::BitCastOp>(l.loc, type, shifted(p.low, p.high, p.shift, p.count));
      l.b.create<vxt::StoreOp>(l.loc, value, to, place, Value(), 16, vxt::Cache::Default);
    }
  };
  if (m.partial)
    return l.emitIf(n.less(w.outer, n.constant(m.rows)), [&] { some(0, 1); });
  for (unsigned i = 0; i < m.count; i += kTogether)
    some(i, std::min(kTogether, m.count - i));
}

/// Elements from `count` on are zero.
Value Operand::shifted(Value low, Value high, Value shift, Value count) {
  auto words = mlir::VectorType::get({4}, l.b.getI32Type());
  Values w = n.cut(low, high, shift, shared_.elementBytes);
  Value all = l.b.create<mlir::vector::FromElementsOp>(l.loc, words, w);
  auto cut = [&] {
    Values parts;
    for (unsigned i = 0; i < 4; ++i) {
      Value left = n.clamp(n.sub(n.mul(count, shared_.elementBytes), n.constant(4 * i)), 4);
      Value mask =
          n.sub(l.b.create<arith::ShLIOp>(l.loc, n.constant(1), n.shiftLeft(n.bitAnd(left, 3), 3)), n.constant(1));
      mask = n.select(n.less(n.constant(3), left), n.constant(-1), mask);
      parts.push_back(l.b.create<arith::AndIOp>(l.loc, w[i], mask));
    }
    return Values{l.b.create<mlir::vector::FromElementsOp>(l.loc, words, parts)};
  };
  return l.emitIf(n.less(count, n.constant(shared_.chunk())), cut, [&] { return Values{all}; })[0];
}

/// Any tile: evaluated element by element, several at a time so that their loads overlap.
void Operand::copyEvaluated(Value stage, Value k0) {
  constexpr unsigned kTogether = 8;
  Mapping m = mapping(1, globalDepthInner_);
  Value thread = l.b.create<vxt::ThreadIdOp>(l.loc, l.b.getI32Type());
  unsigned rowBits = static_cast<unsigned>(std::countr_zero(m.perRow));
  Value inner = n.bitAnd(thread, m.perRow - 1), outer = n.shiftRight(thread, rowBits);
  Value left = depthLeft(k0), to = stagePointer(stage);
  Value innerExists = n.less(inner, globalDepthInner_ ? left : extentLeft_);
  Value outerLeft = globalDepthInner_ ? extentLeft_ : left;
  auto element = [&](Value row) -> Value {
    Value exists = l.both(innerExists, n.less(row, outerLeft));
    Value x = globalDepthInner_ ? row : inner, k = globalDepthInner_ ? inner : row;
    if (window_) {
      Value index = l.add(l.add(start_, l.mul(l.add(k0, n.widen(k)), strideK_)), l.mul(n.widen(x), strideX_));
      return l.b.create<vxt::LoadOp>(l.loc, type_, window_->view.pointer, index, exists, 0, vxt::Cache::Default);
    }
    tiles::At at;
    for (Value index : batch_)
      at.index.push_back({index, 0});
    at.index.resize(rank_);
    at.index[xDim()] = {l.add(x0_, n.widen(x)), 0};
    at.index[kDim()] = {l.add(k0, n.widen(k)), 0};
    return l.emitIf(
        exists,
        [&] {
          tiles::Frame frame(e_);
          return Values{e_.eval(tile_, at)};
        },
        [&] { return Values{l.zero(type_)}; })[0];
  };
  auto some = [&](Value firstRow, unsigned count) {
    Values values, rows;
    for (unsigned i = 0; i < count; ++i) {
      rows.push_back(n.add(firstRow, n.constant(i * m.rowStep)));
      values.push_back(element(rows.back()));
    }
    for (auto [row, value] : llvm::zip(rows, values)) {
      Value place = globalDepthInner_ ? sharedOffset(row, inner) : sharedOffset(inner, row);
      l.b.create<vxt::StoreOp>(l.loc, value, to, place, Value(), 0, vxt::Cache::Default);
    }
  };
  if (m.partial)
    return l.emitIf(n.less(outer, n.constant(m.rows)), [&] { some(outer, 1); });
  if (m.count <= kTogether)
    return some(outer, m.count);
  Value rounds = l.constant(m.count / kTogether);
  l.emitFor(l.constant(0), rounds, l.constant(1), {}, [&](Value round, mlir::ValueRange) {
    Value skip = n.mul(ir::fromIndex(l.b, l.loc, l.b.getI32Type(), round), kTogether * m.rowStep);
    some(n.add(outer, skip), kTogether);
    return Values{};
  });
}

}  // namespace vortex::target::gpu::dot
