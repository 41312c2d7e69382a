// Staged copies: every hardware thread copies its share of the window with asynchronous copies. 16 bytes each where rows are known to be
// aligned and the window starts at a multiple (a test at run time, the same for all threads), else single elements; elements narrower than the
// smallest asynchronous copy go through registers.
#include "ir/index_cast.h"
#include "target/gpu/access.h"
#include "target/gpu/lowering.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

constexpr int64_t kWideBytes = 16, kLeastBytes = 4;

/// The window of shared memory starts at a multiple of 16 bytes and so does each of its rows.
static bool isAligned(Lowering& lowering, Value window) {
  const View& view = lowering.view(window);
  int64_t bytes = vxt::scalarBytes(view.elementType);
  auto isMultiple = [&](Value elements) {
    std::optional<int64_t> known = lowering.constantOf(elements);
    return known && *known * bytes % kWideBytes == 0;
  };
  if (view.swizzle && (bytes << view.swizzle.getBase()) % kWideBytes != 0)  // moves less than whole chunks
    return false;
  if (lowering.constantOf(view.strides.back()) != 1)
    return false;
  for (Value stride : llvm::ArrayRef(view.strides).drop_back())
    if (!isMultiple(stride))
      return false;
  while (auto subview = window.getDefiningOp<ir::SubviewOp>()) {
    window = subview.getSource();
    for (auto [offset, stride] : llvm::zip(subview.getOffsets(), lowering.view(window).strides))
      if (!isMultiple(stride) && lowering.constantOf(lowering.scalar(offset)) != 0)
        return false;
  }
  return lowering.view(window).alignment >= kWideBytes;
}

/// Two windows of one view, of which some dimension's known pieces have nothing in common.
static bool areApart(Value a, Value b) {
  auto first = a.getDefiningOp<ir::SubviewOp>(), second = b.getDefiningOp<ir::SubviewOp>();
  if (!first || !second || first.getSource() != second.getSource() || first.getDropped() != second.getDropped())
    return false;
  unsigned kept = 0;
  for (unsigned dim = 0; dim < first.getOffsets().size(); ++dim) {
    const bool isDropped = llvm::is_contained(first.getDropped(), static_cast<int64_t>(dim));
    const int64_t size = isDropped ? 1 : first.getType().getShape()[kept],
                  other = isDropped ? 1 : second.getType().getShape()[kept];
    kept += isDropped ? 0 : 1;
    auto at = mlir::getConstantIntValue(first.getOffsets()[dim]),
         from = mlir::getConstantIntValue(second.getOffsets()[dim]);
    if (at && from &&
        ((!mlir::ShapedType::isDynamic(size) && *at + size <= *from) ||
         (!mlir::ShapedType::isDynamic(other) && *from + other <= *at)))
      return true;
  }
  return false;
}

/// Elements `chunk` at a time; `asynchronous`: a chunk has 4, 8 or 16 bytes and lies together in both memories.
void Lowering::copyWindow(ir::StageCopyOp op, int64_t chunk, bool asynchronous, bool isInside) {
  const View source = view(op.getSource()), destination = view(op.getDestination());
  llvm::ArrayRef<int64_t> shape = op.getDestination().getType().getShape();
  int64_t bytes = vxt::scalarBytes(source.elementType), perRow = shape.back() / chunk, total = perRow;
  for (int64_t extent : shape.drop_back())
    total *= extent;
  /// `row`: of the window's rows one after another, `below` rows above it; `column`: chunks along it.
  auto copy = [&](Value row, int64_t below, Value column) -> Values {
    Values to(shape.size()), starts, from;
    Value rest = add(row, constant(below));
    to.back() = mul(column, constant(chunk));
    for (size_t dim = shape.size() - 1; dim-- > 0;) {
      to[dim] = dim ? rem(rest, constant(shape[dim])) : rest;
      rest = div(rest, constant(shape[dim]));
    }
    // Of pieces of pages, one term for what the thread does, the same in all copies of a loop, and one that all threads share.
    const bool isApart = !op.getDropped().empty() && !source.swizzle;
    Value own = constant(0);
    size_t kept = 0;
    for (auto [dim, start] : llvm::enumerate(op.getOffsets())) {
      starts.push_back(scalar(start));
      if (llvm::is_contained(op.getDropped(), int64_t(dim))) {
        from.push_back(starts.back());
        continue;
      }
      Value index = to[kept];
      if (isApart && kept == 0 && shape.size() == 2) {
        starts.back() = add(starts.back(), constant(below));
        index = row;
      }
      from.push_back(add(starts.back(), index));
      own = add(own, mul(index, source.strides[dim]));
      ++kept;
    }
    Value exists = isInside ? Value() : inside(source, from);
    Value toOffset = offset(destination, to);
    Value fromOffset = isApart ? add(offset(source, starts), own) : offset(source, from);
    if (!asynchronous) {
      auto value =
          b.create<vxt::LoadOp>(loc, source.elementType, source.pointer, fromOffset, exists, 0, vxt::Cache::Default);
      b.create<vxt::StoreOp>(loc, value, destination.pointer, toOffset, Value(), 0, vxt::Cache::Default);
      return {};
    }
    Value present;
    if (!isInside) {
      // Where the first element is inside, at least one is left in its row.
      Value left = chunk == 1 ? constant(1) : min(sub(source.extents.back(), from.back()), constant(chunk));
      Value read = mul(left, constant(bytes));
      if (exists) {
        read = select(exists, read, constant(0));
        fromOffset = select(exists, fromOffset, constant(0));
      }
      present = ir::fromIndex(b, loc, b.getI32Type(), read);
    }
    b.create<vxt::AsyncCopyOp>(loc, destination.pointer, toOffset, source.pointer, fromOffset, present,
                               source.elementType, chunk * bytes);
    return {};
  };
  // Few whole rounds in which a thread stays in its column: straight code.
  constexpr int64_t kMostRounds = 16;
  if (threads_ && threads_ % perRow == 0 && total % threads_ == 0 && total / threads_ <= kMostRounds) {
    Value row = div(threadId(), constant(perRow)), column = rem(threadId(), constant(perRow));
    for (int64_t round = 0; round < total / threads_; ++round)
      copy(row, round * (threads_ / perRow), column);
    return;
  }
  Value threads = threads_ ? constant(threads_) : size(threadsAttr_);
  emitFor(threadId(), constant(total), threads, {}, [&](Value position, mlir::ValueRange) {
    return copy(div(position, constant(perRow)), 0, rem(position, constant(perRow)));
  });
}

/// All of the window lies inside the source: the same in all threads.
Value Lowering::insideAltogether(ir::StageCopyOp op) {
  const View source = view(op.getSource());
  Value all;
  size_t kept = 0;
  for (auto [dim, start] : llvm::enumerate(op.getOffsets())) {
    const bool isDropped = llvm::is_contained(op.getDropped(), static_cast<int64_t>(dim));
    const int64_t size = isDropped ? 1 : op.getDestination().getType().getShape()[kept++];
    Value first = scalar(start);
    auto known = constantOf(first), extent = constantOf(source.extents[dim]);
    if (known && extent && *known >= 0 && *known + size <= *extent)
      continue;
    all = both(all, less(first, source.extents[dim]));  // without a sign
    if (size > 1)
      all = both(all, less(add(first, constant(size - 1)), source.extents[dim]));
  }
  return all ? all : Value(b.create<arith::ConstantIntOp>(loc, 1, 1));
}

void Lowering::lowerStageCopy(ir::StageCopyOp op) {
  tiles_->flushReads(op);
  const View source = view(op.getSource());
  hazards_.read(source.root);
  int64_t bytes = vxt::scalarBytes(source.elementType), wide = kWideBytes / bytes;
  int64_t inner = op.getDestination().getType().getShape().back();
  auto narrow = [&] { copyWindow(op, 1, bytes >= kLeastBytes, op.getInbounds()); };
  // Pieces of pages, which a table names: a test for each of their rows costs more than the copies.
  auto copyWide = [&] {
    if (op.getInbounds() || op.getDropped().empty())
      return copyWindow(op, wide, true, op.getInbounds());
    emitIf(
        insideAltogether(op),
        [&]() -> Values {
          copyWindow(op, wide, true, true);
          return {};
        },
        [&]() -> Values {
          copyWindow(op, wide, true, false);
          return {};
        });
  };
  bool isDropped = llvm::is_contained(op.getDropped(), int64_t(source.rank()) - 1);
  bool canBeWide = source.alignedRows && source.alignment >= kWideBytes && !isDropped && wide > 1 &&
                   inner % wide == 0 && constantOf(source.strides.back()) == 1 && isAligned(*this, op.getDestination());
  const Value root = view(op.getDestination()).root;
  if (!canBeWide) {  // through registers, which many copies side by side would not fit
    hazards_.write(root);
    return narrow();
  }
  hazards_.copy(Hazards::rootOf(root), op.getDestination(), areApart);
  Value start = rem(scalar(op.getOffsets().back()), constant(wide));
  if (auto known = constantOf(start))
    return *known == 0 ? copyWide() : narrow();
  Value isMultiple = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, start, constant(0));
  emitIf(
      isMultiple,
      [&]() -> Values {
        copyWide();
        return {};
      },
      [&]() -> Values {
        narrow();
        return {};
      });
}

/// Memory that a scope gives back must not be filled any more: copies that nothing waited for end here.
void Lowering::finishCopies(mlir::Block& block) {
  llvm::SmallVector<Value> staged;
  phase.walk([&](ir::StageCopyOp copy) {
    Value root = rootOf(copy.getDestination());
    if (root.getParentBlock() == &block && !llvm::is_contained(staged, root))
      staged.push_back(root);
  });
  if (staged.empty())
    return;
  b.create<vxt::AsyncCommitOp>(loc);
  b.create<vxt::AsyncWaitOp>(loc, 0);
  for (Value root : staged)
    hazards_.write(root);  // other threads' copies end at the next barrier
}

}  // namespace vortex::target::gpu
