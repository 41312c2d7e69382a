#include "target/gpu/hopper/anyhow_epilogue.h"

#include "ir/index_cast.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/epilogue.h"

namespace vortex::target::gpu::hopper {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

namespace {
constexpr int64_t kStagedRows = 16;  ///< of a warp
constexpr int64_t kRowBytes = kStagedBytes / kStagedRows;
constexpr int64_t kTogether = 8;  ///< elements of a thread whose loads are on their way at once

/// Half the bytes go through shared memory then.
mlir::Value rounded(mlir::Value product) {
  auto only = product.hasOneUse() ? llvm::dyn_cast<arith::TruncFOp>(*product.user_begin()) : nullptr;
  return only && tiles::elementType(product).isF32() ? only.getResult() : product;
}
}  // namespace

AnyhowEpilogue::AnyhowEpilogue(Lowering& lowering, mlir::Value product, llvm::ArrayRef<ir::TileStoreOp> stores,
                               int64_t columns)
    : l_(lowering), v_(lowering), product_(rounded(product)), stores_(stores), columns_(columns),
      elementBytes_(vxt::scalarBytes(tiles::elementType(product_))) {}

void AnyhowEpilogue::emit(Value sums, Value row, Value column, Value staging) {
  const int64_t most = kRowBytes / elementBytes_;
  for (int64_t from = 0; from < columns_; from += most) {
    const int64_t columns = std::min(most, columns_ - from);
    l_.b.create<vxt::WarpBarrierOp>(l_.loc, Value());  // all have read what was there
    stagePairs(
        l_, columns, elementBytes_,
        [&](int64_t at, int64_t half) { return pairOfSums(l_, product_, sums, from + at, half); },
        [&](Value stagedRow, Value byte, int64_t more) { return place(staging, stagedRow, byte, more); });
    l_.b.create<vxt::WarpBarrierOp>(l_.loc, Value());
    finishRows(staging, row, l_.add(column, l_.constant(from)), columns);
  }
}

/// Pieces of 16 bytes change places by row, so that neither rows nor columns of the matrices that warps write meet in a bank.
Value AnyhowEpilogue::place(Value staging, Value row, Value byte, int64_t more) {
  constexpr int64_t kPiece = 16, kPlaces = 8;
  row = ir::fromIndex(l_.b, l_.loc, l_.b.getI32Type(), row);
  byte = ir::fromIndex(l_.b, l_.loc, l_.b.getI32Type(), byte);
  Value turned = l_.b.create<arith::XOrIOp>(l_.loc, l_.add(byte, l_.i32(more)),
                                            l_.mul(l_.rem(row, l_.i32(kPlaces)), l_.i32(kPiece)));
  return l_.b.create<vxt::OffsetOp>(l_.loc, staging.getType(), staging, l_.add(l_.mul(row, l_.i32(kRowBytes)), turned),
                                    l_.b.getI8Type());
}

tiles::At AnyhowEpilogue::position(Value row, Value column) {
  const Values extents = v_.extents(product_);
  tiles::At at;
  at.index.assign(extents.size() - 2, tiles::Index{l_.constant(0), 0});
  at.index.push_back({row, 0, true});
  at.index.push_back({column, 0, true});
  at.mask = l_.both(l_.less(row, extents[extents.size() - 2]), l_.less(column, extents.back()));
  return at;
}

void AnyhowEpilogue::finishRows(Value staging, Value row, Value column, int64_t columns) {
  Value lane = l_.lane();
  const int64_t rows = kTogether * vxt::kWarpThreads / columns;
  l_.emitFor(l_.constant(0), l_.constant(kStagedRows), l_.constant(rows), {}, [&](Value first, mlir::ValueRange) {
    tiles::Frame frame(v_);
    llvm::SmallVector<tiles::At> positions;
    for (int64_t each = 0; each < rows; ++each)
      for (int64_t from = 0; from < columns; from += vxt::kWarpThreads) {
        Value own = l_.add(first, l_.constant(each));
        tiles::At at = position(l_.add(row, own), l_.add(l_.add(column, lane), l_.constant(from)));
        Value staged = place(staging, own, l_.mul(lane, l_.constant(elementBytes_)), from * elementBytes_);
        v_.remember(product_, at,
                    l_.b.create<vxt::LoadOp>(l_.loc, tiles::elementType(product_), staged, l_.constant(0), Value(),
                                             elementBytes_, vxt::Cache::Default));
        positions.push_back(std::move(at));
      }
    for (const tiles::At& at : positions)  // all loads first
      for (ir::TileStoreOp store : stores_)
        v_.touch(store.getValue(), at);
    for (const tiles::At& at : positions)
      for (ir::TileStoreOp store : stores_)
        tiles::storeElements(l_, v_.placeOfStore(store), at, v_.eval(store.getValue(), at), at.mask, nullptr, false);
    return Values{};
  });
}

}  // namespace vortex::target::gpu::hopper
