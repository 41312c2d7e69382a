// The code of a fused nest.
#include "target/cpu/tiles/group.h"

#include "target/cpu/tiles/reduction.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace vortex::target::cpu::tiles {

using llvm::Value;

/// Shorter runs lose more at their ends than they gain.
static constexpr uint64_t kStreamRun = 512;
/// Elements of rows whose successors are fetched ahead.
static constexpr uint64_t kPrefetchRow = 16 << 10;

/// In streams of dear elements, those between a load and its prefetch; cheap ones keep enough loads in flight by themselves.
static constexpr uint64_t kPrefetchAhead = 1024;
/// Elements of a square's row: what the schedule makes it.
static constexpr unsigned kSquareSide = 32;
/// Cost from which arithmetic, and registers for it, bound a loop.
static constexpr unsigned kDearElement = 12;

void Group::emitStores(llvm::ArrayRef<Root> roots) {
  plan(roots, {});
  if (e_.state.error.empty())
    emitVersions();
}

Value* Group::emitScalar(ir::ReduceOp op) {
  plan({}, op);
  if (!e_.state.error.empty())
    return llvm::PoisonValue::get(emit::valueType(e_.context(), op.getType()));
  return emitVersions()[0];
}

/// i1: no access of the nest leaves its view. Null: nothing is guarded.
Value* Group::guardsHold() {
  Value* hold = nullptr;
  auto require = [&](const Place& place, llvm::ArrayRef<Value*> extents) {
    Value* inside = emitIsInside(e_, place, extents);
    hold = hold ? e_.ir.CreateAnd(hold, inside) : inside;
  };
  Closure closure(v_);
  auto visit = [&](mlir::Value value, const DimMap&) {
    if (v_.place(value))
      return false;
    if (auto load = value.getDefiningOp<ir::TileLoadOp>(); load && !load.getInbounds())
      require(v_.placeOfLoad(load), v_.extents(value));
    return true;
  };
  for (const Pass& pass : passes_) {
    llvm::SmallVector<std::pair<mlir::Value, DimMap>> values;
    passValues(pass, values);
    for (auto& [value, map] : values)
      closure.walk(value, map, visit);
  }
  for (const Root& root : roots_)
    if (root.sink.guarded)
      require(root.sink, v_.extents(root.value));
  return hold;
}

/// Guarded accesses make a second version of the nest, for the blocks at the edges.
Values Group::emitVersions() {
  emit::ScratchScope scope(*e_.scratch);
  for (Pass& pass : passes_)
    for (mlir::Value value : pass.kept)
      if (!buffers_.contains(value)) {
        TileBuffer buffer = e_.allocateFor(value.getDefiningOp(), value);
        // One row: all rows share the memory.
        buffer.extents = Values(buffer.extents.begin() + rows_.size(), buffer.extents.end());
        Place place = placeOf(e_, buffer);
        place.view.strides.insert(place.view.strides.begin(), rows_.size(), e_.i64(0));
        place.view.extents.insert(place.view.extents.begin(), rows_.begin(), rows_.end());
        buffers_[value] = place;
      }
  streaming_ = wantsStreaming();
  auto version = [&](bool inside) {
    Frame frame(v_);
    v_.enterScope();
    bool before = std::exchange(v_.inside, inside);
    Values results = emitNest();
    v_.inside = before;
    v_.leaveScope();
    return results;
  };
  Value* hold = guardsHold();
  Values results = !hold ? version(true)
                   : !e_.unitStrides
                       ? version(false)
                       : emit::emitIf(e_.ir, hold, [&] { return version(true); }, [&] { return version(false); });
  if (streaming_)
    emit::emitIf(e_.ir, streaming_, [&] { e_.ir.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); });
  return results;
}

Values Group::emitNest() {
  indices_.clear();
  scalarResult_ = nullptr;
  emitRows(0);
  return scalarResult_ ? Values{scalarResult_} : Values{};
}

void Group::emitRows(unsigned dim) {
  if (dim == rows_.size())
    return emitRow();
  emitCounted(e_, rows_[dim], {}, [&](Value* i, llvm::ArrayRef<Value*>) {
    Frame frame(v_);
    indices_.push_back(i);
    emitRows(dim + 1);
    indices_.pop_back();
    return Values{};
  });
}

/// The pass with most work per element, where several run over each row.
const Group::Pass* Group::dearestPass() {
  const Pass* dearest = nullptr;
  unsigned most = 0;
  for (const Pass& pass : passes_)
    if (unsigned cost = passCost(pass); pass.inner.size() == 1 && cost > most)
      most = cost, dearest = &pass;
  return passes_.size() > 1 && !rows_.empty() && e_.unitStrides ? dearest : nullptr;
}

/// Only the first pass of a row meets memory, and while the others compute memory would idle: the dearest one asks for the next row.
void Group::prefetchNextRow(const Pass& pass, Value* i, unsigned lanes) {
  At at = position(i, lanes, nullptr);
  Lane& row = at.index[rows_.size() - 1];
  // Rows that do not fit into the second-level cache beside this one would drive it out.
  Value* isShort = e_.ir.CreateICmpULE(pass.inner[0], e_.i64(kPrefetchRow));
  row = Lane::uniform(e_.ir.CreateAdd(row.value, e_.ir.CreateZExt(isShort, e_.ir.getInt64Ty())));
  prefetchLoads(pass, at);
}

/// What the pass, or another one over the same rows, loads at `at`.
void Group::prefetchLoads(const Pass& pass, const At& at) {
  Closure closure(v_);
  for (const Pass& other : passes_) {
    llvm::SmallVector<std::pair<mlir::Value, DimMap>> values;
    passValues(other, values);
    for (auto& [value, map] : values)
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        if (v_.place(inner) && !buffers_.contains(inner))
          return false;
        auto load = inner.getDefiningOp<ir::TileLoadOp>();
        if (load && other.inner == pass.inner && isIdentity(use) && use.size() == pass.loops)
          prefetchElements(e_, v_.placeOfLoad(load), at);
        return true;
      });
  }
}

void Group::emitRow() {
  dearest_ = dearestPass();
  for (const Pass& pass : passes_) {
    if (!pass.reduces.empty())
      emitReducePass(pass);
    if (!pass.roots.empty())
      emitStorePass(pass);
    for (mlir::Value value : pass.kept)
      v_.setPlace(value, buffers_.lookup(value));
  }
}

At Group::rowPosition() const {
  At at;
  for (Value* i : indices_)
    at.index.push_back(Lane::uniform(i));
  return at;
}

At Group::position(Value* last, unsigned lanes, Value* mask) const {
  At at = rowPosition();
  at.index.push_back(laneIndex(e_, last, lanes));
  at.lanes = lanes;
  at.mask = mask;
  return at;
}

/// Evaluates what does not change in the innermost loop before it.
void Group::primeInvariants(const Pass& pass) {
  llvm::SmallVector<std::pair<mlir::Value, DimMap>> values;
  passValues(pass, values);
  Closure closure(v_);
  int last = pass.loops - 1;
  for (auto& [value, map] : values)
    closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
      if (usesLoop(use, last))
        return true;
      At at;
      for (const DimUse& dim : use) {
        if (!dim.exact)
          return true;
        at.index.push_back(Lane::uniform(dim.loop == DimUse::kFixed ? e_.i64(0) : indices_[dim.loop]));
      }
      v_.eval(inner, at);
      return false;
    });
}

/// Of one element; reductions of elements that lie side by side are cheap per step, however many steps they take.
unsigned Group::passCost(const Pass& pass) {
  llvm::SmallVector<std::pair<mlir::Value, DimMap>> values;
  passValues(pass, values);
  auto known = [&](mlir::Value inner) {
    bool kept = false;
    for (const Pass* earlier = passes_.data(); earlier != &pass; ++earlier)
      kept |= llvm::is_contained(earlier->kept, inner);
    return kept || inner.getDefiningOp<ir::ReduceOp>() != nullptr;
  };
  unsigned cost = 0;
  for (auto& [value, map] : values)
    cost += costOf(v_, value, known);
  return cost;
}

//===-- reductions --------------------------------------------------------------------------------------------===//

void Group::emitReducePass(const Pass& pass) {
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<Reduction> reductions;
  for (ir::ReduceOp op : pass.reduces) {
    operands.push_back(op.getValue());
    reductions.push_back(Reduction(e_, op.getKind(), mlir::getElementTypeOrSelf(op.getValue().getType())));
  }
  LoopShape shape{chooseLanes(e_, elementTypes(v_, operands)), e_.unitStrides ? copiesFor(passCost(pass)) : 1u};
  Values carried;
  llvm::SmallVector<std::pair<size_t, size_t>> slices;  // of `carried`, per reduction: first and count
  for (Reduction& reduction : reductions) {
    // Where elements are dear one chain of combinations is short enough, and the registers are needed.
    Values own = reduction.start(shape.lanes, passCost(pass) < kDearElement ? shape.copies : 1);
    slices.push_back({carried.size(), own.size()});
    carried.append(own);
  }
  unsigned rows = indices_.size();
  auto element = [&](Value* i, Value* mask, unsigned lanes, Values& sums) {
    Frame frame(v_);
    if (!mask && &pass == dearest_)
      prefetchNextRow(pass, i, lanes);
    for (size_t r = 0; r < pass.reduces.size(); ++r) {
      ir::ReduceOp op = pass.reduces[r];
      At at{{}, lanes, mask};
      unsigned kept = 0, reduced = rows;
      for (unsigned dim = 0; dim < pass.loops; ++dim) {
        bool isReduced = llvm::is_contained(op.getDims(), int64_t(dim));
        unsigned loop = isReduced ? reduced++ : kept++;
        at.index.push_back(loop + 1 == pass.loops ? laneIndex(e_, i, lanes) : Lane::uniform(indices_[loop]));
      }
      reductions[r].accumulate(llvm::MutableArrayRef(sums).slice(slices[r].first, slices[r].second),
                               reductions[r].widen(v_.eval(op.getValue(), at)), shape.lanes, mask);
    }
    for (mlir::Value value : pass.kept) {
      At at = position(i, lanes, mask);
      storeElements(e_, buffers_.lookup(value), at, v_.eval(value, at), true);
    }
  };
  auto loops = [&](auto& self, unsigned dim, Values sums) -> Values {
    if (dim + 1 == pass.inner.size()) {
      primeInvariants(pass);
      return emitVectorLoop(e_, pass.inner[dim], shape, std::move(sums), element);
    }
    return emitCounted(e_, pass.inner[dim], std::move(sums), [&](Value* i, llvm::ArrayRef<Value*> inside) {
      Frame frame(v_);
      indices_.push_back(i);
      Values next = self(self, dim + 1, Values(inside.begin(), inside.end()));
      indices_.pop_back();
      return next;
    });
  };
  carried = loops(loops, 0, carried);
  At row = rowPosition();
  for (size_t r = 0; r < pass.reduces.size(); ++r) {
    ir::ReduceOp op = pass.reduces[r];
    Value* result = reductions[r].orEmpty(
        reductions[r].finish(llvm::ArrayRef(carried).slice(slices[r].first, slices[r].second)), reducedExtents(op));
    if (op == scalar_)
      scalarResult_ = result;
    else
      v_.remember(op.getResult(), row, result);
  }
}

//===-- stores ------------------------------------------------------------------------------------------------===//

/// Values first, so that nothing is read after it was overwritten.
void Group::storeRoots(const Pass& pass, const At& at, unsigned streamLanes) {
  Frame frame(v_);
  Values values;
  for (unsigned root : pass.roots)
    values.push_back(v_.eval(roots_[root].value, at));
  for (mlir::Value value : pass.kept)
    storeElements(e_, buffers_.lookup(value), at, v_.eval(value, at), true);
  for (auto [root, value] : llvm::zip(pass.roots, values))
    storeElements(e_, roots_[root].sink, at, value, v_.inside, streamLanes);
}

void Group::emitStorePass(const Pass& pass) {
  if (pass.inner.empty())
    return storeRoots(pass, rowPosition(), 0);
  Value* isFlat = nullptr;
  Values inner = collapse(pass, isFlat);
  std::optional<unsigned> along = dimAcross(pass);
  unsigned lanes = along ? storeLanes(pass) : 0;
  Value* across = along ? runsAcross(pass, *along, lanes) : nullptr;
  if (across && isFlat)
    across = e_.ir.CreateAnd(across, e_.ir.CreateNot(isFlat));
  if (!across)
    return emitStoreLoops(pass, inner);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(across); known && known->isOne())
    return emitAcross(pass, *along, lanes);
  auto framed = [&](llvm::function_ref<void()> body) {
    Frame frame(v_);
    body();
    return Values{};
  };
  emit::emitIf(
      e_.ir, across, [&] { return framed([&] { emitAcross(pass, *along, lanes); }); },
      [&] { return framed([&] { emitSquares(pass, inner, lanes); }); });
}

/// Short rows, as squares of transposes have them, are worth no loops but the one for what is left of a row.
void Group::emitSquares(const Pass& pass, const Values& inner, unsigned lanes) {
  Value* side = e_.i64(std::max(kSquareSide, 2 * lanes));
  Values ofSquare = inner;
  ofSquare.back() = e_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, inner.back(), side);
  auto loops = [&](const Values& extents) {
    Frame frame(v_);
    emitStoreLoops(pass, extents);
    return Values{};
  };
  emit::emitIf(
      e_.ir, e_.ir.CreateICmpULE(inner.back(), side), [&] { return loops(ofSquare); }, [&] { return loops(inner); });
}

unsigned Group::storeLanes(const Pass& pass) {
  llvm::SmallVector<mlir::Value> values;
  for (unsigned root : pass.roots)
    values.push_back(roots_[root].value);
  return chooseLanes(e_, elementTypes(v_, values));
}

void Group::emitStoreLoops(const Pass& pass, const Values& inner) {
  auto loops = [&](auto& self, unsigned dim) -> void {
    if (dim + 1 == inner.size())
      return emitStoreVectors(pass, inner[dim]);
    emitCounted(e_, inner[dim], {}, [&](Value* i, llvm::ArrayRef<Value*>) {
      Frame frame(v_);
      indices_.push_back(i);
      self(self, dim + 1);
      indices_.pop_back();
      return Values{};
    });
  };
  loops(loops, 0);
}

void Group::emitStoreVectors(const Pass& pass, Value* count) {
  primeInvariants(pass);
  LoopShape shape{storeLanes(pass), 1};
  if (shape.lanes > 1)
    shape.copies = copiesFor(passCost(pass));
  Value* streaming = streaming_;
  Value* head = streaming ? streamingHead(pass, shape.lanes, count, streaming) : nullptr;
  if (head)
    return emitStreamingLoop(
        e_, count, shape, streaming, head, [&](Value* i, Value* mask, unsigned lanes, bool streams) {
          if (streams && shape.copies > 1 && passCost(pass) >= kDearElement)
            prefetchLoads(pass, position(e_.ir.CreateAdd(i, e_.i64(kPrefetchAhead)), lanes, nullptr));
          storeRoots(pass, position(i, lanes, mask), streams ? shape.lanes : 0);
        });
  emitVectorLoop(e_, count, shape, {}, [&](Value* i, Value* mask, unsigned lanes, Values&) {
    storeRoots(pass, position(i, lanes, mask), 0);
  });
}

/// Purely elementwise passes over rows that follow each other in memory run as one long row: the outer loops get one iteration. Decided when
/// the block runs: `isFlat`, null where they cannot.
Values Group::collapse(const Pass& pass, Value*& isFlat) {
  unsigned rows = indices_.size(), rank = pass.inner.size();
  if (rank < 2 || rows != 0)
    return pass.inner;
  llvm::SmallVector<Place> places;
  bool plain = true;
  Closure closure(v_);
  for (unsigned root : pass.roots) {
    places.push_back(roots_[root].sink);
    closure.walk(roots_[root].value, identityMap(pass.loops), [&](mlir::Value value, const DimMap& map) {
      mlir::Operation* op = value.getDefiningOp();
      plain &= isIdentity(map) && map.size() == pass.loops;
      if (const Place* place = v_.place(value)) {
        places.push_back(*place);
        return false;
      }
      if (auto load = mlir::dyn_cast_if_present<ir::TileLoadOp>(op))
        places.push_back(v_.placeOfLoad(load));
      else if (auto broadcast = mlir::dyn_cast_if_present<ir::BroadcastOp>(op))
        plain &= !mlir::isa<mlir::RankedTensorType>(broadcast.getValue().getType());
      else if (auto constant = mlir::dyn_cast_if_present<mlir::arith::ConstantOp>(op))
        plain &= mlir::isa<mlir::SplatElementsAttr>(constant.getValue());
      else
        plain &= op && emit::isElementwise(op);
      return plain;
    });
  }
  plain &= llvm::none_of(places, [&](const Place& place) { return place.guarded && !v_.inside; });
  if (!plain || !e_.unitStrides)
    return pass.inner;
  llvm::IRBuilder<>& ir = e_.ir;
  Value* flat = ir.getTrue();
  for (const Place& place : places)
    for (unsigned dim = 0; dim + 1 < rank; ++dim)
      flat = ir.CreateAnd(flat, ir.CreateICmpEQ(place.view.strides[dim],
                                                ir.CreateMul(pass.inner[dim + 1], place.view.strides[dim + 1])));
  isFlat = flat;
  Values inner;
  Value* total = e_.i64(1);
  for (Value* extent : pass.inner)
    total = ir.CreateMul(total, extent);
  for (unsigned dim = 0; dim + 1 < rank; ++dim)  // an empty dimension empties the last one
    inner.push_back(ir.CreateSelect(flat, e_.i64(1), pass.inner[dim]));
  inner.push_back(ir.CreateSelect(flat, total, pass.inner.back()));
  return inner;
}

//===-- streaming ---------------------------------------------------------------------------------------------===//

/// i1: some output of the phase is too large for the caches. Null: no output can be streamed.
Value* Group::wantsStreaming() {
  Value* wants = nullptr;
  for (const Root& root : roots_) {
    const View& view = root.sink.view;
    auto* stride = view.strides.empty() ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(view.strides.back());
    if (!root.store || !stride || !stride->isOne() || view.blockPrivate)
      continue;
    Value* bytes = e_.i64(emit::elementBytes(view.elementType));
    for (Value* extent : view.extents)
      bytes = e_.ir.CreateMul(bytes, extent);
    Value* large = e_.ir.CreateICmpUGE(bytes, e_.i64(emit::kStreamBytes));
    wants = wants ? e_.ir.CreateOr(wants, large) : large;
  }
  auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(wants);
  return known && known->isZero() ? nullptr : wants;
}

/// Elements before the first aligned vector of every output, and whether there is such a place. Null: cannot stream.
Value* Group::streamingHead(const Pass& pass, unsigned lanes, Value* count, Value*& streaming) {
  llvm::IRBuilder<>& ir = e_.ir;
  Value* head = nullptr;
  for (unsigned number : pass.roots) {
    const Root& root = roots_[number];
    uint64_t bytes = emit::elementBytes(root.sink.view.elementType), vectorBytes = bytes * lanes;
    auto* stride = llvm::dyn_cast<llvm::ConstantInt>(root.sink.view.strides.back());
    if (!root.store || !stride || !stride->isOne() || root.sink.view.blockPrivate || vectorBytes < 16 ||
        vectorBytes > 64 || (root.sink.guarded && !v_.inside))
      return nullptr;
    Value* offset = e_.i64(0);
    for (unsigned dim = 0; dim < pass.loops; ++dim) {
      Value* index = dim + 1 < pass.loops ? indices_[dim] : e_.i64(0);
      if (!root.sink.offsets.empty())
        index = ir.CreateAdd(index, root.sink.offsets[dim]);
      offset = ir.CreateAdd(offset, ir.CreateMul(index, root.sink.view.strides[dim]));
    }
    Value* pointer = emit::elementPointer(ir, root.sink.view.elementType, root.sink.view.pointer, offset);
    Value* missing = ir.CreateAnd(ir.CreateNeg(ir.CreatePtrToInt(pointer, ir.getInt64Ty())), e_.i64(vectorBytes - 1));
    streaming = ir.CreateAnd(streaming, ir.CreateICmpEQ(ir.CreateAnd(missing, e_.i64(bytes - 1)), e_.i64(0)));
    Value* elements = ir.CreateUDiv(missing, e_.i64(bytes));
    if (head)
      streaming = ir.CreateAnd(streaming, ir.CreateICmpEQ(elements, head));
    else
      head = elements;
    streaming = ir.CreateAnd(streaming, ir.CreateICmpUGE(count, e_.i64(kStreamRun / bytes)));
  }
  return head;
}

}  // namespace vortex::target::cpu::tiles
