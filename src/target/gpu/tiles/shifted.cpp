// Rows that start anywhere, copied into rows that start aligned: each piece is cut out of the two aligned sixteen bytes around it.
#include "target/gpu/dot/numbers.h"
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;

/// Pieces that a thread has on their way at a time, and threads per core whose registers they leave.
static constexpr unsigned kShiftedPieces = 4;
static constexpr int64_t kShiftedThreads = 768;
static constexpr int64_t kPieceBytes = 16;

static bool isWholeTensor(const Place& place, size_t rank) {
  return place.view.space == ir::Space::Global && place.view.rank() == rank && !place.guarded && !place.view.swizzle;
}

/// What the nest copies, if that is all it does; its rows may start anywhere, those written are aligned.
std::optional<Place> Nest::shiftedSource() {
  if (roots_.size() != 1 || rowRank_ >= 0 || most_ >= INT32_MAX)
    return std::nullopt;
  const Root& root = roots_[0];
  auto load = root.value.getDefiningOp<ir::TileLoadOp>();
  const size_t rank = rankOf(root.value);
  if (!load || v_.place(root.value) || rank == 0 || !isWholeTensor(root.sink, rank) || !root.sink.view.alignedRows)
    return std::nullopt;
  Place source = v_.placeOfLoad(load);
  mlir::Type type = source.view.elementType;
  const bool isWhole = type.isIntOrFloat() && llvm::is_contained({8u, 16u, 32u}, type.getIntOrFloatBitWidth()) &&
                       type == root.sink.view.elementType;
  return isWhole && isWholeTensor(source, rank) && source.view.root ? std::optional(source) : std::nullopt;
}

/// Offset of an element whose neighbours along the last dimension are neighbours in memory.
static Value offsetIn(Lowering& l, const Place& place, llvm::ArrayRef<Index> at) {
  View view = place.view;
  view.strides.back() = l.constant(1);
  Values indices;
  for (auto [dim, index] : llvm::enumerate(at))
    indices.push_back(place.offsets.empty() ? index.base : l.add(place.offsets[dim], index.base));
  return l.offset(view, indices);
}

static Value addressOf(Lowering& l, Value pointer) {
  Value address = l.b.create<vxt::AddressOp>(l.loc, l.b.getI64Type(), pointer);
  return l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), address);
}

/// Addresses of the first byte of the tensor and of the one after its last: an allocation may begin and end there.
static std::pair<Value, Value> bytesOf(Lowering& l, const View& tensor, int64_t bytes) {
  Value offset = l.offset(tensor, Values(tensor.rank(), l.constant(0)));
  Value first = l.add(addressOf(l, tensor.pointer), l.mul(offset, l.constant(bytes))), last = l.constant(1);
  for (auto [extent, stride] : llvm::zip(tensor.extents, tensor.strides))
    last = l.add(last, l.mul(l.sub(extent, l.constant(1)), stride));
  return {first, l.add(first, l.mul(last, l.constant(bytes)))};
}

/// The rest of a row that is no whole piece goes element by element, as do pieces around which aligned bytes are not the tensor's.
void Nest::emitShiftedPieces(const Place& source) {
  dot::Numbers n(l);
  const Place& sink = roots_[0].sink;
  mlir::Type type = source.view.elementType;
  const int64_t bytes = vxt::scalarBytes(type), lanes = kPieceBytes / bytes;
  auto piece = mlir::VectorType::get({lanes}, type), words = mlir::VectorType::get({4}, l.b.getI32Type());
  const auto cache = source.view.readOnly ? vxt::Cache::ReadOnly : vxt::Cache::Default;
  auto [first, last] = bytesOf(l, l.view(source.view.root), bytes);
  Values counts = v_.extents(roots_[0].value), rests = counts;
  counts.back() = l.div(counts.back(), l.constant(lanes));
  Value whole = l.mul(counts.back(), l.constant(lanes));
  rests.back() = l.sub(rests.back(), whole);

  struct Piece {
    Value exists, from, to, shift, before;
  };
  auto find = [&](Value item, Value exists) {
    llvm::SmallVector<Index> at = digits(item, counts);
    at.back().base = l.mul(at.back().base, l.constant(lanes));
    Piece p{exists, offsetIn(l, source, at), offsetIn(l, sink, at), {}, {}};
    p.from = l.b.create<vxt::OffsetOp>(l.loc, source.view.pointer.getType(), source.view.pointer, p.from, type);
    return p;
  };
  /// Its first element's bytes after the aligned ones, and whether all that is read is the tensor's.
  auto isInside = [&](Piece& p) -> Value {
    Value address = addressOf(l, p.from);
    p.shift = l.b.create<arith::AndIOp>(l.loc, address, l.constant(kPieceBytes - 1));
    p.before = l.div(p.shift, l.constant(bytes));
    Value start = l.sub(address, p.shift);
    Value end = l.add(
        start, l.select(isEqual(l, p.shift, l.constant(0)), l.constant(kPieceBytes), l.constant(2 * kPieceBytes)));
    auto notAfter = [&](Value a, Value b) -> Value {
      return l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::ule, a, b);
    };
    Value inside = l.both(notAfter(first, start), notAfter(end, last));
    return p.exists ? n.select(p.exists, inside, l.b.create<arith::ConstantIntOp>(l.loc, 1, 1)) : inside;
  };
  auto load = [&](mlir::Type loaded, Value pointer, Value offset, Value mask, int64_t alignment) -> Value {
    return l.b.create<vxt::LoadOp>(l.loc, loaded, pointer, offset, mask, alignment, cache);
  };
  auto store = [&](Value value, Value offset, Value mask, int64_t alignment) {
    l.b.create<vxt::StoreOp>(l.loc, value, sink.view.pointer, offset, mask, alignment, vxt::Cache::Default);
  };
  auto cutAll = [&](llvm::ArrayRef<Piece> pieces) {
    Values halves;
    for (const Piece& p : pieces) {
      Value start = l.sub(l.constant(0), p.before), crosses = isLess(l, l.constant(0), p.shift);
      halves.push_back(load(piece, p.from, start, p.exists, kPieceBytes));
      halves.push_back(load(piece, p.from, l.add(start, l.constant(lanes)), l.both(p.exists, crosses), kPieceBytes));
    }
    for (auto [i, p] : llvm::enumerate(pieces)) {
      Values cut =
          n.cut(halves[2 * i], halves[2 * i + 1], n.narrow(p.shift, kPieceBytes), static_cast<unsigned>(bytes));
      Value all = l.b.create<mlir::vector::FromElementsOp>(l.loc, words, cut);
      store(l.b.create<mlir::vector::BitCastOp>(l.loc, piece, all), p.to, p.exists, kPieceBytes);
    }
  };
  auto copyAll = [&](llvm::ArrayRef<Piece> pieces) {
    for (const Piece& p : pieces) {
      Values elements;
      for (int64_t i = 0; i < lanes; ++i)
        elements.push_back(load(type, p.from, l.constant(i), p.exists, 0));
      store(gather(l, elements), p.to, p.exists, kPieceBytes);
    }
  };
  auto product = [&](const Values& extents) {
    Value all = l.constant(1);
    for (Value extent : extents)
      all = l.mul(all, extent);
    return all;
  };
  Value total = product(counts), threads = l.constant(l.threads());
  Value step = l.constant(kShiftedPieces * l.threads());
  l.emitFor(l.threadId(), total, step, {}, [&](Value item, mlir::ValueRange) {
    llvm::SmallVector<Piece> pieces;
    Value inside;
    for (unsigned i = 0; i < kShiftedPieces; ++i) {
      Value own = l.add(item, l.mul(l.constant(i), threads));
      pieces.push_back(find(own, i == 0 ? Value() : isLess(l, own, total)));
      inside = l.both(inside, isInside(pieces.back()));
    }
    l.emitIf(
        inside,
        [&] {
          cutAll(pieces);
          return Values{};
        },
        [&] {
          copyAll(pieces);
          return Values{};
        });
    return Values{};
  });
  l.emitFor(l.threadId(), product(rests), threads, {}, [&](Value item, mlir::ValueRange) {
    llvm::SmallVector<Index> at = digits(item, rests);
    at.back().base = l.add(at.back().base, whole);
    store(load(type, source.view.pointer, offsetIn(l, source, at), {}, 0), offsetIn(l, sink, at), {}, 0);
    return Values{};
  });
}

Values Nest::emitShifted(const Place& source, llvm::function_ref<Values()> otherwise) {
  const Place& sink = roots_[0].sink;
  const int64_t lanes = kPieceBytes / vxt::scalarBytes(source.view.elementType);
  Value isContiguous = isEqual(l, source.view.strides.back(), l.constant(1));
  // Rows are multiples of a piece apart.
  Value start = sink.offsets.empty() ? l.constant(0) : sink.offsets.back();
  if (sink.view.base)
    start = l.add(start, sink.view.base);
  Value isAligned = isEqual(l, l.rem(start, l.constant(lanes)), l.constant(0));
  return branch(
      l.both(isContiguous, isAligned),
      [&] {
        markBlocks(std::max<int64_t>(1, kShiftedThreads / l.threads()));
        emitShiftedPieces(source);
        return Values{};
      },
      otherwise);
}

}  // namespace vortex::target::gpu::tiles
