// Staged copies: every hardware thread copies its share of the window with asynchronous copies. 16 bytes each where rows are known to be
// aligned and the window starts at a multiple (a test at run time, the same for all threads), else single elements; elements narrower than the
// smallest asynchronous copy go through registers.
#include "ir/index_cast.h"
#include "target/gpu/access.h"
#include "target/gpu/lowering.h"

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

/// Elements `chunk` at a time; `asynchronous`: a chunk has 4, 8 or 16 bytes and lies together in both memories.
void Lowering::copyWindow(ir::StageCopyOp op, int64_t chunk, bool asynchronous) {
  const View source = view(op.getSource()), destination = view(op.getDestination());
  llvm::ArrayRef<int64_t> shape = op.getDestination().getType().getShape();
  int64_t bytes = vxt::scalarBytes(source.elementType), perRow = shape.back() / chunk, total = perRow;
  for (int64_t extent : shape.drop_back())
    total *= extent;
  /// `row`: of the window's rows one after another; `column`: chunks along it.
  auto copy = [&](Value row, Value column) -> Values {
    Values to(shape.size()), from;
    Value rest = row;
    to.back() = mul(column, constant(chunk));
    for (size_t dim = shape.size() - 1; dim-- > 0;) {
      to[dim] = dim ? rem(rest, constant(shape[dim])) : rest;
      rest = div(rest, constant(shape[dim]));
    }
    size_t kept = 0;
    for (auto [dim, start] : llvm::enumerate(op.getOffsets())) {
      bool isDropped = llvm::is_contained(op.getDropped(), int64_t(dim));
      from.push_back(isDropped ? scalar(start) : add(scalar(start), to[kept++]));
    }
    Value isInside = op.getInbounds() ? Value() : inside(source, from);
    Value toOffset = offset(destination, to), fromOffset = offset(source, from);
    if (!asynchronous) {
      auto value =
          b.create<vxt::LoadOp>(loc, source.elementType, source.pointer, fromOffset, isInside, 0, vxt::Cache::Default);
      b.create<vxt::StoreOp>(loc, value, destination.pointer, toOffset, Value(), 0, vxt::Cache::Default);
      return {};
    }
    Value present;
    if (!op.getInbounds()) {
      // Where the first element is inside, at least one is left in its row.
      Value left = chunk == 1 ? constant(1) : min(sub(source.extents.back(), from.back()), constant(chunk));
      Value read = mul(left, constant(bytes));
      if (isInside) {
        read = select(isInside, read, constant(0));
        fromOffset = select(isInside, fromOffset, constant(0));
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
      copy(add(row, constant(round * (threads_ / perRow))), column);
    return;
  }
  Value threads = threads_ ? constant(threads_) : size(threadsAttr_);
  emitFor(threadId(), constant(total), threads, {}, [&](Value position, mlir::ValueRange) {
    return copy(div(position, constant(perRow)), rem(position, constant(perRow)));
  });
}

void Lowering::lowerStageCopy(ir::StageCopyOp op) {
  tiles_->flushReads(op);
  const View source = view(op.getSource());
  hazards_.read(source.root);
  hazards_.write(view(op.getDestination()).root);
  int64_t bytes = vxt::scalarBytes(source.elementType), wide = kWideBytes / bytes;
  int64_t inner = op.getDestination().getType().getShape().back();
  auto narrow = [&] { copyWindow(op, 1, bytes >= kLeastBytes); };
  bool isDropped = llvm::is_contained(op.getDropped(), int64_t(source.rank()) - 1);
  bool canBeWide = source.alignedRows && source.alignment >= kWideBytes && !isDropped && wide > 1 &&
                   inner % wide == 0 && constantOf(source.strides.back()) == 1 && isAligned(*this, op.getDestination());
  if (!canBeWide)
    return narrow();
  Value start = rem(scalar(op.getOffsets().back()), constant(wide));
  if (auto known = constantOf(start))
    return *known == 0 ? copyWindow(op, wide, true) : narrow();
  Value isMultiple = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, start, constant(0));
  emitIf(
      isMultiple,
      [&]() -> Values {
        copyWindow(op, wide, true);
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
