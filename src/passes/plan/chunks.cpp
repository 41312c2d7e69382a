#include "passes/plan/chunks.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

/// Pieces of a tensor start at multiples of so many elements where they can, which every vector access divides.
static constexpr int64_t kAligned = 1024;
/// Of a block of a scan along an outer dimension: columns, and rows at least.
static constexpr int64_t kColumns = 256, kScannedRows = 64;
/// Elements of a line of memory.
static constexpr int64_t kLine = 32;
/// Rows of partial reductions: a multiple of what a thread has in flight.
static constexpr int64_t kRows = 16;

/// Of one element.
static int64_t bytesOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? 8 : static_cast<int64_t>(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
}

bool isSplit(const Cluster& cluster) {
  return !cluster.parallel.empty() &&
         (cluster.kind == Cluster::Kind::ScalarReduce || cluster.kind == Cluster::Kind::SplitReduce);
}

static ir::SizeAttr combine(SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }

/// As many pieces as those of `most` elements are, about equal: each place along outer axes would have a short one.
static ir::SizeAttr evenPiece(ir::SizeAttr extent, ir::SizeAttr most) {
  return combine(SizeOp::Max, ir::sizeConstant(extent.getContext(), 1),
                 combine(SizeOp::CeilDiv, extent, combine(SizeOp::CeilDiv, extent, most)));
}

ir::DotOp findDot(const Cluster& cluster) {
  ir::DotOp found;
  for (Operation* root : cluster.roots)
    root->walk([&](ir::DotOp dot) { found = dot; });
  return found;
}

SmallVector<ir::DotOp> productsOf(const Cluster& cluster) {
  SmallVector<ir::DotOp> found;
  for (Operation* root : cluster.roots)
    root->walk([&](ir::DotOp dot) { found.push_back(dot); });
  return found;
}

/// Elements of each parallel axis per block, so that a block touches about elementsPerBlock elements of the widest tile, each computed from
/// `depth` ones.
SmallVector<ir::SizeAttr> Chunks::chooseChunks(const Cluster& cluster, ir::SizeAttr depth, ir::SizeAttr inner) {
  SmallVector<ir::SizeAttr> chunks(cluster.parallel.size());
  ir::DotOp dot = findDot(cluster);
  AxisSet squares = dot || clusters_.flattened(cluster) ? AxisSet() : squareAxes(cluster);
  ir::SizeAttr left =
      keepsRows(cluster)
          ? rowsAtOnce(cluster, inner)
          : combine(SizeOp::Max, size(1),
                    combine(SizeOp::FloorDiv, elementsPerBlock(cluster, inner), combine(SizeOp::Mul, inner, depth)));
  for (size_t i = cluster.parallel.size(); i-- > 0;) {
    Axis axis = cluster.parallel[i];
    ir::SizeAttr extent = axes_.extent(axis);
    ir::SizeAttr wanted = left;
    if (dot)
      wanted = dotChunk(cluster, dot, axis);
    else if (squares.size() > 1)
      wanted = squarePiece(cluster, squares, axis);
    else if (i + 1 == cluster.parallel.size() && isInnermost(cluster, axis) && !writesOnlyRows(cluster))
      wanted = combine(SizeOp::Max, left, size(schedule_.minInner));
    // Tiles of fixed size keep the offsets of blocks multiples of a constant.
    bool fixed = dot && schedule_.dotRowStep == schedule_.dotRows;
    chunks[i] = combine(SizeOp::Max, size(1), fixed ? wanted : combine(SizeOp::Min, extent, wanted));
    if (i > 0 && writesOnlyRows(cluster))
      chunks[i] = evenPiece(extent, chunks[i]);
    left = combine(SizeOp::Max, size(1), combine(SizeOp::FloorDiv, left, chunks[i]));
  }
  return chunks;
}

SmallVector<ir::SizeAttr> Chunks::chooseCombining(const Cluster& cluster, ir::SizeAttr depth, ir::SizeAttr inner) {
  SmallVector<ir::SizeAttr> chunks = chooseChunks(cluster, depth, inner);
  // Whole pieces of what memory delivers at once: also for aligned accesses.
  if (chunks.empty())
    return chunks;
  ir::SizeAttr least = size(schedule_.minInner), columns = axes_.extent(cluster.parallel.back());
  ir::SizeAttr whole = combine(SizeOp::Mul, combine(SizeOp::FloorDiv, chunks.back(), least), least);
  chunks.back() = combine(SizeOp::Max, size(1), combine(SizeOp::Min, columns, combine(SizeOp::Max, whole, least)));
  return chunks;
}

/// Of the widest tensor of elementwise work on one axis; zero: something else.
int64_t Chunks::streamedElementBytes(const Cluster& cluster) {
  int64_t bytes = 0;
  if (schedule_.streamedBytesPerBlock == 0 || cluster.parallel.size() != 1)
    return 0;
  auto consider = [&](Value value) {
    bytes = std::max(bytes, bytesOf(value.getType()));
    return axes_.of(value).size() <= 1;
  };
  for (Operation* root : cluster.roots) {
    auto store = dyn_cast<ir::TileStoreOp>(root);
    bool alone = isa<ir::TileLoadOp>(root) || (store && consider(store.getValue()));
    clusters_.forEachSource(root, [&](Value value) { alone &= consider(value); });
    if (!alone)
      return 0;
  }
  return bytes;
}

/// Reductions along rows, and nothing that has their elements.
bool Chunks::writesOnlyRows(const Cluster& cluster) {
  if (schedule_.sweptElementsPerBlock == 0)
    return false;
  bool reduces = false;
  for (Operation* root : cluster.roots) {
    reduces |= isa<ir::ReduceOp>(root);
    if (auto store = dyn_cast<ir::TileStoreOp>(root)) {
      if (llvm::any_of(axes_.of(store.getValue()),
                       [&](Axis axis) { return !llvm::is_contained(cluster.parallel, axis); }))
        return false;
    } else if (!isa<ir::ReduceOp>(root)) {
      return false;
    }
  }
  return reduces;
}

bool Chunks::keepsRows(const Cluster& cluster) {
  if (schedule_.keptElementsPerBlock == 0 || cluster.parallel.empty() || findDot(cluster))
    return false;
  bool reduces = false, writes = false;
  for (Operation* root : cluster.roots) {
    if (auto store = dyn_cast<ir::TileStoreOp>(root)) {
      SmallVector<Axis> axes = axes_.of(store.getValue());
      writes |= !axes.empty() && !llvm::is_contained(cluster.parallel, axes.back());
    } else if (auto reduce = dyn_cast<ir::ReduceOp>(root)) {
      reduces |= reduce.getDims().back() + 1 == cast<RankedTensorType>(reduce.getValue().getType()).getRank();
    } else {
      return false;
    }
  }
  return reduces && writes;
}

/// The largest power of two of rows that a block keeps: its teams have one each. A quarter where the tensor is small.
ir::SizeAttr Chunks::rowsAtOnce(const Cluster& cluster, ir::SizeAttr inner) {
  ir::SizeAttr rows = size(1);
  for (int64_t more = 1; 2 * more <= schedule_.keptElementsPerBlock; more *= 2) {
    ir::SizeAttr fits = combine(SizeOp::Less, inner, size(schedule_.keptElementsPerBlock / (2 * more) + 1));
    rows = combine(SizeOp::Add, rows, combine(SizeOp::Mul, fits, size(more)));
  }
  ir::SizeAttr total = inner;
  for (Axis axis : cluster.parallel)
    total = combine(SizeOp::Mul, total, axes_.extent(axis));
  ir::SizeAttr isLarge = combine(SizeOp::Less, size(schedule_.smallTensor - 1), total);
  ir::SizeAttr parts = combine(SizeOp::Sub, size(4), combine(SizeOp::Mul, isLarge, size(3)));
  return combine(SizeOp::Max, size(1), combine(SizeOp::FloorDiv, rows, parts));
}

/// Of the widest tensor of elementwise work, where that is less than four; zero: something else.
int64_t Chunks::narrowBytes(const Cluster& cluster) {
  int64_t bytes = 1;
  auto consider = [&](Value value) {
    bytes = std::max(bytes, bytesOf(value.getType()));
    return llvm::all_of(axes_.of(value), [&](Axis axis) { return llvm::is_contained(cluster.parallel, axis); });
  };
  for (Operation* root : cluster.roots) {
    auto store = dyn_cast<ir::TileStoreOp>(root);
    bool alone = isa<ir::TileLoadOp>(root) || store;
    if (store)
      alone &= llvm::all_of(axes_.of(store.getValue()),
                            [&](Axis axis) { return llvm::is_contained(cluster.parallel, axis); });
    clusters_.forEachSource(root, [&](Value value) { alone &= consider(value); });
    if (!alone)
      return 0;
  }
  return bytes < 4 ? bytes : 0;
}

/// Of a large tensor.
int64_t Chunks::mostPerBlock(const Cluster& cluster) {
  if (schedule_.smallTensor == 0)
    return schedule_.elementsPerBlock;
  if (int64_t bytes = streamedElementBytes(cluster))
    return schedule_.streamedBytesPerBlock / bytes;
  if (int64_t narrow = narrowBytes(cluster))
    return schedule_.elementsPerBlock * 4 / narrow;
  if (!writesOnlyRows(cluster))
    return schedule_.elementsPerBlock;
  // Rows that several reductions share are kept: fewer of them take as long.
  return cluster.roots.size() > 2 ? schedule_.sweptElementsPerBlock / 4 : schedule_.sweptElementsPerBlock;
}

ir::SizeAttr Chunks::elementsPerBlock(const Cluster& cluster, ir::SizeAttr inner) {
  int64_t most = mostPerBlock(cluster);
  if (schedule_.smallTensor == 0 || streamedElementBytes(cluster))
    return size(most);
  ir::SizeAttr total = inner;
  for (Axis axis : cluster.parallel)
    total = combine(SizeOp::Mul, total, axes_.extent(axis));
  ir::SizeAttr isLarge = combine(SizeOp::Less, size(schedule_.smallTensor - 1), total);
  int64_t more = most - schedule_.smallElementsPerBlock;
  return combine(SizeOp::Add, size(schedule_.smallElementsPerBlock), combine(SizeOp::Mul, isLarge, size(more)));
}

std::optional<int64_t> Chunks::mostElements(const Cluster& cluster) {
  if (findDot(cluster) || isSplit(cluster))
    return std::nullopt;
  AxisSet squares = clusters_.flattened(cluster) ? AxisSet() : squareAxes(cluster);
  int64_t most = std::max(mostPerBlock(cluster), schedule_.smallElementsPerBlock);
  if (keepsRows(cluster))
    most = std::max(most, schedule_.keptElementsPerBlock);
  if (squares.size() > 1) {
    most = 1;
    for (size_t i = 0; i < squares.size(); ++i)
      most *= squareSide(cluster);
  }
  return std::max(most, schedule_.minInner);
}

/// Twice as long for narrow elements: as many bytes in flight. Half as long where memory does not hold the square.
int64_t Chunks::squareSide(const Cluster& cluster) {
  int64_t bytes = 1;
  for (Operation* root : cluster.roots)
    if (auto store = dyn_cast<ir::TileStoreOp>(root))
      bytes = std::max(bytes, bytesOf(store.getValue().getType()));
  int64_t side = bytes <= 2 ? 2 * schedule_.squareSide : schedule_.squareSide;
  while (schedule_.squareBytes != 0 && side * (side * bytes + 4) > schedule_.squareBytes)
    side /= 2;
  return side;
}

/// Of an axis of a cluster that takes squares. What short axes leave of a square the others have, first those of the square: where tiles have their
/// place in shared memory, only of extents that are known before the launch, as their bounds decide how much a tile takes.
ir::SizeAttr Chunks::squarePiece(const Cluster& cluster, const AxisSet& squares, Axis axis) {
  ir::SizeAttr side = size(squareSide(cluster)), left = size(1);
  for (size_t i = 0; i < squares.size(); ++i)
    left = combine(SizeOp::Mul, left, side);
  auto take = [&](Axis other, ir::SizeAttr wanted) {
    ir::SizeAttr extent = axes_.extent(other);
    const bool isKnown = schedule_.squareBytes == 0 || ir::constantSize(extent);
    ir::SizeAttr own = isKnown ? combine(SizeOp::Max, size(1), combine(SizeOp::Min, extent, wanted)) : wanted;
    left = combine(SizeOp::FloorDiv, left, own);
  };
  if (squares.contains(axis)) {
    for (Axis other : squares)
      if (other != axis)
        take(other, side);
    return combine(SizeOp::Max, side, combine(SizeOp::Mul, combine(SizeOp::FloorDiv, left, side), side));
  }
  for (Axis other : squares)
    take(other, squarePiece(cluster, squares, other));
  for (Axis other : llvm::reverse(cluster.parallel)) {
    if (other == axis)
      break;
    if (!squares.contains(other))
      take(other, left);
  }
  return combine(SizeOp::Max, size(1), left);
}

/// Parallel axes whose elements are neighbours in some tensor that has those of another tensor, too: a transpose. A tensor without the other's axis
/// repeats its elements along it, which caches give.
AxisSet Chunks::squareAxes(const Cluster& cluster) {
  if (schedule_.squareSide == 0)
    return {};
  std::vector<SmallVector<Axis>> tensors;  // of two or more parallel axes, the last one among them
  auto consider = [&](Value value) {
    SmallVector<Axis> split;
    SmallVector<Axis> axes = axes_.of(value);
    while (!axes.empty() && axes_.extent(axes.back()) && ir::constantSize(axes_.extent(axes.back())) == 1)
      axes.pop_back();
    for (Axis axis : axes)
      if (llvm::is_contained(cluster.parallel, axis))
        split.push_back(axis);
    if (split.size() > 1 && split.back() == axes.back())
      tensors.push_back(split);
  };
  for (Operation* root : cluster.roots) {
    if (auto store = dyn_cast<ir::TileStoreOp>(root))
      consider(store.getValue());
    clusters_.forEachSource(root, [&](Value value) {
      if (!llvm::is_contained(cluster.roots, value.getDefiningOp()))
        consider(value);
    });
  }
  AxisSet result;
  for (const auto& tensor : tensors)
    for (const auto& other : tensors)
      if (tensor.back() != other.back() && llvm::is_contained(tensor, other.back()) &&
          llvm::is_contained(other, tensor.back()))
        result.insert(tensor.back());
  return result;
}

/// About reductionBlocks blocks: pieces of the split axis (the first parallel one) times pieces of a row's worth of columns.
SmallVector<ir::SizeAttr> Chunks::chooseSplits(const Cluster& cluster) {
  if (schedule_.reductionBlocks == 0)
    return chooseChunks(cluster, size(1), innerElements(cluster));
  SmallVector<ir::SizeAttr> chunks(cluster.parallel.size());
  ir::SizeAttr total = innerElements(cluster);
  for (Axis axis : cluster.parallel)
    total = combine(SizeOp::Mul, total, axes_.extent(axis));
  bool scalar = cluster.kind == Cluster::Kind::ScalarReduce;
  ir::SizeAttr perBlock = combine(
      SizeOp::Max, size(schedule_.elementsPerBlock),
      combine(SizeOp::CeilDiv, total, size(scalar ? schedule_.reductionBlocks : schedule_.reductionBlocks / 2)));
  perBlock = combine(SizeOp::Mul, combine(SizeOp::CeilDiv, perBlock, size(kAligned)), size(kAligned));
  ir::SizeAttr left = scalar
                          ? combine(SizeOp::Max, size(1), combine(SizeOp::FloorDiv, perBlock, innerElements(cluster)))
                          : size(schedule_.elementsPerBlock / 8);
  ir::SizeAttr columns = size(1);
  for (size_t i = cluster.parallel.size(); i-- > (scalar ? 0 : 1);) {
    ir::SizeAttr extent = axes_.extent(cluster.parallel[i]);
    chunks[i] = combine(SizeOp::Max, size(1), combine(SizeOp::Min, extent, left));
    if (!scalar && i > 1 && i + 1 == cluster.parallel.size()) {  // in whole lines of memory
      ir::SizeAttr lines = combine(SizeOp::CeilDiv, evenPiece(extent, chunks[i]), size(kLine));
      chunks[i] = combine(SizeOp::Max, size(1), combine(SizeOp::Min, extent, combine(SizeOp::Mul, lines, size(kLine))));
    }
    left = combine(SizeOp::Max, size(1), combine(SizeOp::FloorDiv, left, chunks[i]));
    columns = combine(SizeOp::Mul, columns, chunks[i]);
  }
  if (!scalar)
    chunks[0] =
        combine(SizeOp::Max, size(1),
                combine(SizeOp::Min, axes_.extent(cluster.parallel[0]),
                        combine(SizeOp::Mul, size(kRows),
                                combine(SizeOp::CeilDiv, perBlock, combine(SizeOp::Mul, size(kRows), columns)))));
  return chunks;
}

/// One column per thread, and as many rows as give about reductionBlocks blocks.
SmallVector<ir::SizeAttr> Chunks::chooseScanPieces(const Cluster& cluster) {
  SmallVector<ir::SizeAttr> chunks(cluster.parallel.size());
  ir::SizeAttr columns = size(1);
  for (size_t i = chunks.size(); i-- > 1;) {
    ir::SizeAttr extent = axes_.extent(cluster.parallel[i]);
    chunks[i] =
        i + 1 == chunks.size() ? combine(SizeOp::Max, size(1), combine(SizeOp::Min, extent, size(kColumns))) : size(1);
    columns = combine(SizeOp::Mul, columns, combine(SizeOp::CeilDiv, extent, chunks[i]));
  }
  ir::SizeAttr extent = axes_.extent(cluster.parallel[0]);
  ir::SizeAttr pieces =
      combine(SizeOp::CeilDiv, size(schedule_.reductionBlocks), combine(SizeOp::Max, size(1), columns));
  ir::SizeAttr rows = combine(SizeOp::Max, size(kScannedRows), combine(SizeOp::CeilDiv, extent, pieces));
  chunks[0] = combine(SizeOp::Max, size(1), combine(SizeOp::Min, extent, rows));
  return chunks;
}

ir::SizeAttr Chunks::hasFewColumns(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
  ir::SizeAttr columns = size(1);
  for (size_t i = 1; i < chunks.size(); ++i)
    columns = combine(SizeOp::Mul, columns, combine(SizeOp::CeilDiv, axes_.extent(cluster.parallel[i]), chunks[i]));
  ir::SizeAttr isLong = combine(SizeOp::Less, size(2 * kScannedRows), axes_.extent(cluster.parallel[0]));
  return combine(SizeOp::And, isLong, combine(SizeOp::Less, columns, size(schedule_.reductionBlocks / 2)));
}

bool Chunks::looksBack(const Cluster& cluster) {
  if (cluster.kind != Cluster::Kind::SplitScan || schedule_.heldScanBytes == 0)
    return false;
  auto scan = cast<ir::ScanOp>(cluster.roots[0]);
  Value read = scan.getValue();  // sums of narrow elements are wider than what is in memory
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(read.getDefiningOp()))
    read = read.getDefiningOp()->getOperand(0);
  return axes_.of(scan.getResult()).size() == 1 && bytesOf(read.getType()) >= schedule_.heldScanLeast;
}

int64_t Chunks::heldScanElements(const Cluster& cluster) {
  return schedule_.heldScanBytes / bytesOf(cluster.roots[0]->getResult(0).getType());
}

/// The fewest blocks of at most dotRows rows, all alike: the last one of an uneven split would keep the others' workers waiting.
ir::SizeAttr Chunks::balancedRows(Axis axis) {
  ir::SizeAttr extent = axes_.extent(axis);
  if (!extent || schedule_.dotRowStep == schedule_.dotRows)
    return size(schedule_.dotRows);
  ir::SizeAttr blocks = combine(SizeOp::Max, size(1), combine(SizeOp::CeilDiv, extent, size(schedule_.dotRows)));
  ir::SizeAttr rows = combine(SizeOp::CeilDiv, extent, blocks);
  return combine(SizeOp::Mul, combine(SizeOp::CeilDiv, rows, size(schedule_.dotRowStep)), size(schedule_.dotRowStep));
}

/// Pieces of rows and columns: as many blocks as the usual sizes give, rounded up to a multiple of the workers; more rows first, because every
/// piece of the columns costs another copy of the rows of A.
Chunks::DotGrid Chunks::evenGrid(const Cluster& cluster, ir::DotOp dot) {
  SmallVector<Axis> axes = axes_.of(dot.getResult());
  Axis row = axes[axes.size() - 2], column = axes.back();
  auto isSplit = [&](Axis axis) { return llvm::is_contained(cluster.parallel, axis); };
  auto max = [&](ir::SizeAttr a, ir::SizeAttr b) { return combine(SizeOp::Max, a, b); };
  auto pieces = [&](Axis axis, int64_t most) {
    return isSplit(axis) ? max(size(1), combine(SizeOp::CeilDiv, axes_.extent(axis), size(most))) : size(1);
  };
  ir::SizeAttr rows = pieces(row, schedule_.dotRows), columns = pieces(column, schedule_.dotColumns), others = size(1);
  for (Axis axis : cluster.parallel)
    if (axis != row && axis != column)
      others = combine(SizeOp::Mul, others, axes_.extent(axis));
  others = max(size(1), others);
  ir::SizeAttr usual = combine(SizeOp::Mul, others, combine(SizeOp::Mul, rows, columns));
  ir::SizeAttr even = combine(SizeOp::Mul, combine(SizeOp::CeilDiv, usual, workers), workers);
  ir::SizeAttr depth = axes_.extent(axes_.of(dot.getA()).back());
  if (depth && axes_.extent(row) && axes_.extent(column)) {
    ir::SizeAttr work = combine(SizeOp::Mul, combine(SizeOp::Mul, axes_.extent(row), axes_.extent(column)), depth);
    work = combine(SizeOp::FloorDiv, combine(SizeOp::Mul, others, work), size(schedule_.dotLeastWork));
    even = max(usual, combine(SizeOp::Min, even, work));
  }
  ir::SizeAttr each = combine(SizeOp::CeilDiv, even, others);
  auto more = [&](Axis axis, ir::SizeAttr usualPieces, ir::SizeAttr otherPieces, int64_t least) {
    if (!isSplit(axis))
      return usualPieces;
    ir::SizeAttr most = combine(SizeOp::FloorDiv, axes_.extent(axis), size(least));
    return max(usualPieces, combine(SizeOp::Min, combine(SizeOp::CeilDiv, each, otherPieces), most));
  };
  ir::SizeAttr moreRows = more(row, rows, columns, schedule_.dotLeastRows);
  return {moreRows, more(column, columns, moreRows, schedule_.dotLeastColumns)};
}

/// Of an axis along which blocks have equal numbers of whole steps.
ir::SizeAttr Chunks::evenChunk(const Cluster& cluster, ir::DotOp dot, Axis axis) {
  DotGrid grid = evenGrid(cluster, dot);
  bool isColumn = axis == axes_.of(dot.getResult()).back();
  int64_t step = isColumn ? schedule_.dotColumnStep : schedule_.dotRowStep;
  ir::SizeAttr steps = combine(SizeOp::CeilDiv, axes_.extent(axis), size(step));
  return combine(SizeOp::Mul, combine(SizeOp::CeilDiv, steps, isColumn ? grid.columns : grid.rows), size(step));
}

ir::SizeAttr Chunks::dotChunk(const Cluster& cluster, ir::DotOp dot, Axis axis) {
  SmallVector<Axis> dotAxes = axes_.of(dot.getResult());
  size_t rank = dotAxes.size();
  if (axis != dotAxes[rank - 1] && axis != dotAxes[rank - 2])
    return size(1);
  if (axis == dotAxes[rank - 1])
    return workers ? evenChunk(cluster, dot, axis) : size(schedule_.dotColumns);
  ir::SizeAttr rows = workers ? evenChunk(cluster, dot, axis) : balancedRows(axis);
  // Rows whose whole length stays in the block take fewer of them, to keep the intermediate rows in cache.
  bool wholeRows = !llvm::is_contained(cluster.parallel, dotAxes[rank - 1]);
  ir::SizeAttr columns = axes_.extent(dotAxes[rank - 1]);
  if (!wholeRows || !columns || cluster.roots.size() == 1)
    return rows;
  ir::SizeAttr budget =
      combine(SizeOp::FloorDiv, size(4 * schedule_.elementsPerBlock), combine(SizeOp::Max, size(1), columns));
  budget = combine(SizeOp::Min, size(schedule_.dotRows), combine(SizeOp::Max, size(8), budget));
  return workers ? combine(SizeOp::Min, rows, budget) : budget;
}

ir::SizeAttr Chunks::innerElements(const Cluster& cluster) {
  SmallVector<Axis> widest;
  auto consider = [&](Value value) {
    SmallVector<Axis> inner;
    for (Axis axis : axes_.of(value))
      if (!llvm::is_contained(cluster.parallel, axis) && axes_.extent(axis) && !llvm::is_contained(inner, axis))
        inner.push_back(axis);
    if (inner.size() > widest.size())
      widest = inner;
  };
  for (Operation* root : cluster.roots)
    root->walk([&](Operation* op) {
      for (Value operand : op->getOperands())
        consider(axes_.beforeFlattening(operand));
    });
  ir::SizeAttr product = size(1);
  for (Axis axis : widest)
    product = combine(SizeOp::Mul, product, axes_.extent(axis));
  return combine(SizeOp::Max, size(1), product);
}

/// True when the axis is the last dimension of some tile in memory, so that its elements are neighbours.
bool Chunks::isInnermost(const Cluster& cluster, Axis axis) {
  return llvm::any_of(cluster.roots, [&](Operation* root) {
    bool last = false;
    for (Value operand : root->getOperands()) {
      SmallVector<Axis> axes = axes_.of(operand);
      last |= !axes.empty() && axes.back() == axis;
    }
    return last;
  });
}

ir::SizeAttr Chunks::blockCount(const Cluster& cluster, ArrayRef<ir::SizeAttr> chunks) {
  ir::SizeAttr count = size(1);
  for (auto [axis, chunk] : llvm::zip(cluster.parallel, chunks))
    count = combine(SizeOp::Mul, count,  // windows that end before they begin have none, not two times less than none
                    combine(SizeOp::Max, combine(SizeOp::CeilDiv, axes_.extent(axis), chunk), size(0)));
  return count;
}

}  // namespace vortex::passes
