#include "target/gpu/hopper/epilogue.h"

#include "base/check.h"
#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"
#include "target/gpu/hopper/configuration.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

#include <map>
#include <numeric>

namespace vortex::target::gpu::hopper {

namespace vxnv = ir::vxnv;
namespace vxt = ir::vxt;
namespace arith = mlir::arith;

namespace {
constexpr int64_t kRows = 16;          ///< of a warp
constexpr int64_t kSwizzledRow = 128;  ///< bytes of a staged row at most
constexpr unsigned kBuffers = 2;
}  // namespace

/// Where one warp of a consumer stands.
struct Epilogue::Warp {
  Value sums, row, column, staging;
  Value lane;
  Values rows;       ///< of the lane's sums: two
  Value laneColumn;  ///< of its first sum
  Values extents;    ///< of the tile
  /// Of the pairs that are being finished, by column and half: equal positions are the same values.
  std::map<std::pair<int64_t, int64_t>, tiles::At> at;
};

Epilogue::Epilogue(Lowering& lowering, Maps& maps, mlir::Value product, unsigned rows,
                   llvm::ArrayRef<ir::TileStoreOp> stores, int64_t columns)
    : l_(lowering), v_(lowering), aligned_(lowering), product_(product), rows_(rows), columns_(columns),
      step_(columns % 64 == 0 ? 64 : 32) {
  v_.wide = &aligned_;
  for (ir::TileStoreOp op : stores) {
    Target target = targetOf(op);
    tiles::Closure().walk(target.value, tiles::identityMap(tiles::rankOf(target.value)),
                          [&](mlir::Value value, const tiles::DimMap&) {
                            if (auto load = value.getDefiningOp<ir::TileLoadOp>()) {
                              reads_ = true;
                              if (!load.getInbounds())
                                v_.wide = nullptr;  // pairs may lie anyhow, and on an edge
                            }
                            return !isKnown(value);
                          });
    if (target.placeOf(tiles::rankOf(product_) - 1) < 0)
      rowStores_.push_back(std::move(target));
    else
      addStore(maps, std::move(target));
  }
}

bool Epilogue::isKnown(mlir::Value tile) const { return tile == product_ || tile.getDefiningOp<mlir::scf::ForOp>(); }

int64_t Epilogue::Target::placeOf(int64_t dim) const {
  for (auto [place, own] : llvm::enumerate(places))
    if (own >= 0 && dims[static_cast<size_t>(own)] == dim)
      return static_cast<int64_t>(place);
  return -1;
}

/// Where the dimensions of what is stored come from: from the product's, or from those of tiles known per row, which are its leading ones.
Epilogue::Target Epilogue::targetOf(ir::TileStoreOp op) const {
  Target target{op, op.getValue(), {}, {}};
  for (int64_t dim = 0; dim < int64_t{tiles::rankOf(target.value)}; ++dim)
    target.places.push_back(dim);
  while (auto reshape = target.value.getDefiningOp<ir::ReshapeOp>()) {
    for (int64_t& place : target.places)
      place = place < 0 ? -1 : ir::sourceDim(reshape, place);
    target.value = reshape.getValue();
  }
  unsigned rank = tiles::rankOf(target.value);
  target.dims.assign(rank, -1);
  bool isFollowing = false;
  tiles::Closure().walk(target.value, tiles::identityMap(rank), [&](mlir::Value value, const tiles::DimMap& map) {
    if (!isKnown(value))
      return true;
    isFollowing = true;
    for (auto [dim, use] : llvm::enumerate(map))
      if (use.loop >= 0)
        target.dims[static_cast<size_t>(use.loop)] = static_cast<int64_t>(dim);
    return false;
  });
  if (!isFollowing)  // of the same positions
    std::iota(target.dims.begin(), target.dims.end(), 0);
  return target;
}

void Epilogue::addStore(Maps& maps, Target target) {
  Store store{std::move(target), 0, 0, 0, false};
  store.elementBytes = vxt::scalarBytes(tiles::elementType(store.value));
  store.columns = std::min(step_, kSwizzledRow / store.elementBytes);
  const int64_t product = tiles::rankOf(product_), rank = static_cast<int64_t>(store.places.size());
  const int64_t row = store.placeOf(rows_);
  VORTEX_CHECK(row >= 0 && store.placeOf(product - 1) == rank - 1, "a store of results was planned that turns them");
  llvm::SmallVector<int64_t> box(static_cast<size_t>(rank), 1);
  box[0] = store.columns;
  box[static_cast<size_t>(rank - 1 - row)] = kRows;
  store.isOneOfSeveral = store.op->hasAttr(passes::kBesideAttribute);
  ir::SizeAttr columns;
  if (store.isOneOfSeveral) {
    columns = passes::sizeExpression(ir::tileSizes(store.op.getValue()).back());
    VORTEX_CHECK(columns, "columns of unknown extent were planned to lie beside others");
    box.insert(box.begin() + 1, 1);
  }
  store.map = maps.add(store.op.getView(), box, store.columns * store.elementBytes, columns);
  stores_.push_back(store);
  perTile_ += static_cast<unsigned>(columns_ / store.columns);
}

void Epilogue::emit(Value sums, Value row, Value column, Value staging, llvm::ArrayRef<RowValue> rows) {
  Warp warp{sums, row, column, staging, l_.lane(), {}, {}, v_.extents(product_), {}};
  Value laneRow = l_.add(row, l_.div(warp.lane, l_.constant(4)));
  warp.rows = {laneRow, l_.add(laneRow, l_.constant(8))};
  warp.laneColumn = l_.add(column, l_.mul(l_.rem(warp.lane, l_.constant(4)), l_.constant(2)));
  stored_ = 0;
  tiles::Frame frame(v_);
  for (const RowValue& value : rows)
    remember(warp, value);
  for (int64_t from = 0; from < columns_; from += step_)
    emitColumns(warp, from);
  for (const Target& target : rowStores_)
    storeRows(warp, target);
}

/// The four threads of a row know the same: the first one stores it.
void Epilogue::storeRows(const Warp& warp, const Target& target) {
  Value isFirst = tiles::isEqual(l_, l_.rem(warp.lane, l_.constant(4)), l_.constant(0));
  for (int64_t half = 0; half < 2; ++half) {
    tiles::At at = position(warp, half, 0);
    at.lanes = 1;
    Value isRow = l_.less(warp.rows[static_cast<size_t>(half)], warp.extents[rows_]);
    at.mask = reads_ ? isRow : Value();
    tiles::At own = turned(l_, at, target.dims);
    Value value = v_.eval(target.value, own);
    tiles::storeElements(l_, v_.placeOfStore(target.op), turned(l_, own, target.places), value, l_.both(isFirst, isRow),
                         nullptr, false);
  }
}

void Epilogue::finish() { l_.b.create<vxnv::StoreWaitOp>(l_.loc, 0, true); }

/// The pair of this thread in column group `column` / 8 of the warp's upper or lower 8 rows.
tiles::At Epilogue::position(const Warp& warp, int64_t half, int64_t column) {
  tiles::At at;
  at.lanes = 2;
  at.index.assign(warp.extents.size() - 1, tiles::Index{l_.constant(0), 0});
  at.index[rows_] = {warp.rows[static_cast<size_t>(half)], 0, reads_};
  at.index.push_back({l_.add(warp.laneColumn, l_.constant(column)), 1, reads_});
  if (reads_)
    at.mask =
        l_.both(l_.less(at.index[rows_].base, warp.extents[rows_]), l_.less(at.index.back().base, warp.extents.back()));
  return at;
}

/// The same position for a tile of which dimension i is dimension dims[i].
tiles::At Epilogue::turned(Lowering& l, const tiles::At& at, llvm::ArrayRef<int64_t> dims) {
  tiles::At result{{}, at.lanes, at.mask};
  for (int64_t dim : dims)
    result.index.push_back(dim < 0 ? tiles::Index{l.constant(0), 0} : at.index[static_cast<size_t>(dim)]);
  return result;
}

Value pairOfSums(Lowering& l, mlir::Value product, Value sums, int64_t column, int64_t half) {
  Values pair;
  for (int64_t i = 0; i < 2; ++i)
    pair.push_back(l.b.create<vxnv::SumOp>(l.loc, llvm::cast<vxnv::SumsType>(sums.getType()).elementType(), sums,
                                           column / 2 + 2 * half + i));
  Value gathered = tiles::gather(l, pair);
  mlir::Type type = tiles::valueType(tiles::elementType(product), 2);
  if (type == gathered.getType())
    return gathered;
  return mlir::getElementTypeOrSelf(type).isInteger() ? Value(l.b.create<arith::TruncIOp>(l.loc, type, gathered))
                                                      : Value(l.b.create<arith::TruncFOp>(l.loc, type, gathered));
}

void Epilogue::remember(Warp& warp, int64_t half, int64_t column) {
  Value sums = pairOfSums(l_, product_, warp.sums, column, half);
  tiles::At at = position(warp, half, column);
  warp.at.insert({{column, half}, at});
  v_.remember(product_, at, sums);
}

void Epilogue::remember(const Warp& warp, const RowValue& value) {
  for (int64_t half = 0; half < 2; ++half) {
    tiles::At at = position(warp, half, 0);
    at.lanes = 1;
    at.index.pop_back();
    v_.remember(value.tile, at, value.halves[static_cast<size_t>(half)]);
  }
}

void Epilogue::emitColumns(Warp& warp, int64_t from) {
  warp.at.clear();
  tiles::Frame frame(v_);
  for (int64_t column = from; column < from + step_; column += 8)
    for (int64_t half = 0; half < 2; ++half)
      remember(warp, half, column);
  if (reads_)  // all loads first
    for (Store& store : stores_)
      for (int64_t column = from; column < from + step_; column += 8)
        for (int64_t half = 0; half < 2; ++half)
          v_.touch(store.value, turned(l_, warp.at.at({column, half}), store.dims));
  for (Store& store : stores_)
    for (int64_t column = from; column < from + step_; column += store.columns) {
      // The stores of a tile may be odd in number: the first buffer is then the last one of the tile before.
      bool isShared = stored_ == 0 && perTile_ % kBuffers != 0;
      l_.b.create<vxnv::StoreWaitOp>(l_.loc, isShared ? 0 : kBuffers - 1, false);
      Value buffer =
          l_.b.create<vxt::OffsetOp>(l_.loc, warp.staging.getType(), warp.staging,
                                     l_.constant(stored_ % kBuffers * (kStagedBytes / kBuffers)), l_.b.getI8Type());
      ++stored_;
      stage(warp, store, column, buffer);
      send(warp, store, column, buffer);
    }
}

Value Epilogue::evaluate(const Warp& warp, Store& store, int64_t half, int64_t column) {
  return v_.eval(store.value, turned(l_, warp.at.at({column, half}), store.dims));
}

/// Byte offset in a staged box under the swizzle of its row length.
static Value swizzled(Lowering& l, Value offset, int64_t rowBytes) {
  Value term = l.b.create<arith::AndIOp>(l.loc, l.div(offset, l.constant(kSwizzledRow)), l.constant(rowBytes / 16 - 1));
  return l.b.create<arith::XOrIOp>(l.loc, offset, l.mul(term, l.constant(16)));
}

void stagePairs(Lowering& l, int64_t columns, int64_t elementBytes,
                llvm::function_ref<Value(int64_t column, int64_t half)> pair,
                llvm::function_ref<Value(Value row, Value byte, int64_t more)> place) {
  Value lane = l.lane();
  if (elementBytes == 2) {
    // Matrices: rows 0–7 and 8–15 of columns 0–7, then of 8–15.
    Value row = l.rem(lane, l.constant(kRows)), piece = l.mul(l.div(lane, l.constant(kRows)), l.constant(16));
    auto word = mlir::VectorType::get({1}, l.b.getI32Type());
    for (int64_t column = 0; column < columns; column += 16) {
      Values words;
      for (int64_t right = 0; right < 2; ++right)
        for (int64_t half = 0; half < 2; ++half)
          words.push_back(
              tiles::extract(l, l.b.create<mlir::vector::BitCastOp>(l.loc, word, pair(column + 8 * right, half)), 0));
      l.b.create<vxnv::StoreMatrixOp>(l.loc, place(row, piece, 2 * column), words);
    }
    return;
  }
  VORTEX_CHECK(elementBytes == 1 || elementBytes == 4, "results of %d bytes are not planned here", int(elementBytes));
  Value lanePair = l.mul(l.rem(lane, l.constant(4)), l.constant(2 * elementBytes));
  for (int64_t half = 0; half < 2; ++half) {
    Value row = l.add(l.div(lane, l.constant(4)), l.constant(8 * half));
    for (int64_t column = 0; column < columns; column += 8)
      l.b.create<vxt::StoreOp>(l.loc, pair(column, half), place(row, lanePair, elementBytes * column), l.constant(0),
                               Value(), 2 * elementBytes, vxt::Cache::Default);
  }
}

void Epilogue::stage(const Warp& warp, Store& store, int64_t from, Value buffer) {
  const int64_t rowBytes = store.columns * store.elementBytes;
  stagePairs(
      l_, store.columns, store.elementBytes,
      [&](int64_t column, int64_t half) { return evaluate(warp, store, half, from + column); },
      [&](Value row, Value byte, int64_t more) -> Value {
        Value offset = l_.add(l_.add(l_.mul(row, l_.constant(rowBytes)), byte), l_.constant(more));
        return l_.b.create<vxt::OffsetOp>(l_.loc, buffer.getType(), buffer, swizzled(l_, offset, rowBytes),
                                          l_.b.getI8Type());
      });
}

void Epilogue::send(const Warp& warp, Store& store, int64_t from, Value buffer) {
  Values coordinates;
  auto rank = static_cast<unsigned>(store.op.getOffsets().size());
  const int64_t row = store.placeOf(rows_);
  for (unsigned dim = rank; dim-- > 0;) {
    Value start = l_.scalar(store.op.getOffsets()[dim]);
    if (store.isOneOfSeveral && dim + 1 == rank) {
      coordinates.append({l_.add(warp.column, l_.constant(from)), l_.div(start, warp.extents.back())});
      continue;
    }
    coordinates.push_back(dim + 1 == rank ? l_.add(l_.add(start, warp.column), l_.constant(from))
                          : dim == row    ? l_.add(start, warp.row)
                                          : start);
  }
  l_.b.create<vxnv::StoreOp>(l_.loc, buffer, store.map, coordinates);
}

}  // namespace vortex::target::gpu::hopper
