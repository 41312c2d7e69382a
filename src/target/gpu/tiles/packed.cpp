// Short rows that follow one another without gaps, wherever each starts: a group of them is one piece of memory, which comes into shared memory by
// whole accesses and leaves it so. In between each row has a team of its own, as other short rows have (anywhere.cpp).
#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;
using SizeOp = size::Op;

static constexpr int64_t kAccess = 16;  // bytes
/// Of a tensor at a time, and of all tensors of a nest: a core holds several blocks.
static constexpr int64_t kGroupBytes = 16 * 1024, kMostBytes = 64 * 1024;

/// What is read or written of it is all of its rows; its elements are whole bytes.
static bool isPackable(const Place& place, const DimMap& map) {
  const View& view = place.view;
  return view.space == ir::Space::Global && view.rank() == 2 && map.size() == 2 && isIdentity(map) && !place.other &&
         !view.swizzle && !view.elementType.isInteger(1);
}

/// The tensors whose rows come and go in groups; nothing where that does not fit, where no tensor is one, or where single accesses are as good: of
/// 32-bit elements unless they are only summed, and of 16 bits where functions of them are (H200, rows of 61, of copy: sums f32 0.60 and in groups
/// 0.92, bf16 0.49 and 0.71, softmax with a mask bf16 0.46 and 0.56, f32 0.79 and 0.60, logarithms of sums of exponentials bf16 0.40 and 0.38).
std::optional<Nest::Packed> Nest::packedRows(unsigned positions, bool isSummed) {
  if (rowRank_ != 1 || !llvm::isPowerOf2_64(static_cast<uint64_t>(l.threads())) || !(isSummed || readsNarrow()))
    return std::nullopt;
  Packed packed;
  int64_t widest = 0;
  mlir::Value anyTile;
  auto add = [&](mlir::Value tile, const Place& place, std::optional<unsigned> root) {
    widest = std::max(widest, vxt::scalarBytes(place.view.elementType));
    anyTile = tile;
    packed.tensors.push_back({tile, place, root, {}});
  };
  forEachAccess([&](mlir::Value tile, const DimMap& map, const Place& place) {
    if (isPackable(place, map) && llvm::none_of(packed.tensors, [&](const auto& each) { return each.tile == tile; }))
      add(tile, place, std::nullopt);
  });
  for (auto [number, root] : llvm::enumerate(roots_))
    if (isPackable(root.sink, identityMap(rankOf(root.value))))
      add(root.value, root.sink, static_cast<unsigned>(number));
  const bool leaves = llvm::any_of(packed.tensors, [](const auto& tensor) { return tensor.root.has_value(); });
  const int64_t each = l.threads() * int64_t(positions);
  if (packed.tensors.empty() || !(isSummed || leaves) || each * widest > kGroupBytes)
    return std::nullopt;
  packed.perThread = kGroupBytes / (each * widest) * positions;
  for (auto& tensor : packed.tensors) {
    tensor.offset = packed.bytes;
    packed.bytes += l.threads() * packed.perThread * vxt::scalarBytes(tensor.source.view.elementType) + kAccess;
    packed.bytes = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(packed.bytes), kAccess));
  }
  // Longer rows of 16 bits that are only summed are better peeled (509 bf16: 0.84 of copy, in groups 0.77).
  packed.longest = int64_t(positions) * vxt::kWarpThreads;
  if (isSummed)
    packed.longest = packed.longest * std::min<int64_t>(widest, 4) / 4;
  ir::SizeAttr length = passes::sizeExpression(ir::tileSizes(anyTile)[1]);
  if (!length || packed.bytes > std::min<int64_t>(kMostBytes, l.state.chip.sharedBytesPerBlock / 2))
    return std::nullopt;
  ir::SizeAttr most = ir::sizeConstant(l.b.getContext(), packed.longest + 1);
  packed.tail = ir::sizeBinary(SizeOp::Mul, ir::sizeConstant(l.b.getContext(), packed.bytes),
                               ir::sizeBinary(SizeOp::Less, length, most));
  return packed;
}

/// A warp at most has a row of them, and the rows lie inside their tensors, one behind the other, in memory that can be accessed whole.
Value Nest::arePacked(const Packed& packed) {
  Value all = fits({1, 0}, l.constant(packed.longest));
  Requirements facts(l);
  for (const auto& tensor : packed.tensors) {
    const View& view = tensor.source.view;
    const Values extents = v_.extents(tensor.tile);
    for (auto [x, y] : {std::pair(view.strides[1], l.constant(1)), {view.strides[0], extents[1]}})
      all = l.both(all, isEqual(l, x, y));
    if (tensor.source.guarded)
      facts.inside(tensor.source, extents);
    if (view.alignment < kAccess)
      facts.multiple(l.b.create<vxt::AddressOp>(l.loc, l.b.getI64Type(), view.pointer), kAccess);
  }
  return l.both(all, facts.emit());
}

/// All elements of a group from memory to shared memory, or back: whole accesses, then those before the first and after the last, one per thread.
void Nest::movePacked(const Packed& packed, const Packed::Tensor& tensor, Value start, Value shift, Value elements) {
  const View& view = tensor.source.view;
  const int64_t bytes = vxt::scalarBytes(view.elementType), lanes = kAccess / bytes;
  const auto perThread = llvm::divideCeil(static_cast<uint64_t>(packed.perThread), static_cast<uint64_t>(lanes));
  const View& shared = tensor.shared.view;
  const bool isLoad = !tensor.root;
  const auto cache = view.readOnly ? vxt::Cache::ReadOnly : vxt::Cache::Default;
  Value thread = l.threadId();
  Value before = l.b.create<arith::SubIOp>(l.loc, l.constant(0), shift);
  Value head = l.min(l.b.create<arith::AndIOp>(l.loc, before, l.constant(lanes - 1)), elements);
  Value pieces = l.div(l.sub(elements, head), l.constant(lanes));
  auto move = [&](mlir::Type type, llvm::ArrayRef<std::pair<Value, Value>> places, int64_t access) {
    Values values;
    auto at = [&](bool inMemory, Value element) { return l.add(inMemory ? start : shift, element); };
    for (auto [element, exists] : places)
      values.push_back(l.b.create<vxt::LoadOp>(l.loc, type, isLoad ? view.pointer : shared.pointer, at(isLoad, element),
                                               exists, access, isLoad ? cache : vxt::Cache::Default));
    for (auto [place, value] : llvm::zip(places, values))
      l.b.create<vxt::StoreOp>(l.loc, value, isLoad ? shared.pointer : view.pointer, at(!isLoad, place.first),
                               place.second, access, vxt::Cache::Default);
  };
  llvm::SmallVector<std::pair<Value, Value>> whole;
  for (uint64_t k = 0; k < perThread; ++k) {
    Value piece = l.add(thread, l.constant(static_cast<int64_t>(k) * l.threads()));
    whole.push_back({l.add(head, l.mul(piece, l.constant(lanes))), isLess(l, piece, pieces)});
  }
  move(valueType(view.elementType, static_cast<unsigned>(lanes)), whole, kAccess);
  Value inPieces = l.mul(pieces, l.constant(lanes));
  Value single = choose(l, isLess(l, thread, head), thread, l.add(thread, inPieces));
  move(view.elementType, {{single, isLess(l, thread, l.sub(elements, inPieces))}}, 0);
}

/// Groups of rows, a few for each team.
Values Nest::emitPacked(Packed& packed, unsigned positions) {
  Value base = l.sharedTail(packed.tail);
  const llvm::ArrayRef<Root> outside = roots_;
  packed.roots.assign(roots_.begin(), roots_.end());
  const Value total = rows_[0], group = l.mul(shortTeam(positions).rows, l.constant(packed.perThread / positions));
  l.emitFor(l.constant(0), total, group, {}, [&](Value first, mlir::ValueRange) {
    Frame frame(v_);
    v_.enterScope();
    Value count = l.min(group, l.sub(total, first));
    struct Piece {
      Value start, shift;
    };
    llvm::SmallVector<Piece> pieces;
    for (auto& tensor : packed.tensors) {
      const View& view = tensor.source.view;
      Value length = v_.extents(tensor.tile)[1];
      View plain = view;
      plain.strides[1] = l.constant(1);
      plain.strides[0] = length;
      const Values& from = tensor.source.offsets;
      Value start =
          l.offset(plain, from.empty() ? Values{first, l.constant(0)} : Values{l.add(from[0], first), from[1]});
      // A group starts where it does in memory, so that whole accesses of one are whole accesses of the other.
      const int64_t lanes = kAccess / vxt::scalarBytes(view.elementType);
      Value shift = l.b.create<arith::AndIOp>(l.loc, start, l.constant(lanes - 1));
      pieces.push_back({start, shift});
      Place shared;
      shared.view.elementType = view.elementType;
      shared.view.space = ir::Space::Shared;
      shared.view.pointer =
          l.b.create<vxt::OffsetOp>(l.loc, base.getType(), base, l.constant(tensor.offset), l.b.getI8Type());
      shared.view.extents = v_.extents(tensor.tile);
      shared.view.strides = {length, l.constant(1)};
      shared.view.base = l.sub(shift, l.mul(first, length));
      shared.base = shared.window = shared.key = &tensor;
      tensor.shared = shared;
      if (tensor.root)
        packed.roots[*tensor.root].sink = shared;
      else
        v_.setPlace(tensor.tile, shared);
    }
    auto move = [&](bool isIn) {
      for (auto [tensor, piece] : llvm::zip(packed.tensors, pieces))
        if (tensor.root.has_value() != isIn)
          movePacked(packed, tensor, piece.start, piece.shift, l.mul(count, v_.extents(tensor.tile)[1]));
    };
    move(true);
    l.hazards().barrier();
    roots_ = packed.roots;
    rowsFrom_ = first;
    rowsTo_ = l.add(first, count);
    emitShort(positions);
    rowsFrom_ = rowsTo_ = {};
    roots_ = outside;
    l.hazards().barrier();
    move(false);
    v_.leaveScope();
    return Values{};
  });
  l.hazards().barrier();  // others take the places
  return {};
}

}  // namespace vortex::target::gpu::tiles
