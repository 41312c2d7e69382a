#include "target/cpu/tiles/tiles_state.h"

#include "target/cpu/gemm/gemm.h"
#include "target/cpu/prepare_dots.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

//===-- which consumers become the epilogue -------------------------------------------------------------------===//

/// Every path from `dot` ends in a root, through elementwise operations only.
static bool isConsumedBy(ir::DotOp dot, llvm::ArrayRef<Root> roots) {
  llvm::SmallVector<mlir::Value> pending{dot.getResult()};
  llvm::DenseSet<mlir::Value> seen;
  auto isRoot = [&](mlir::Operation* user) {
    return llvm::any_of(roots, [&](const Root& root) { return root.store == user; });
  };
  while (!pending.empty()) {
    mlir::Value value = pending.pop_back_val();
    bool isStored = llvm::any_of(roots, [&](const Root& root) { return !root.store && root.value == value; });
    if (!seen.insert(value).second || isStored)
      continue;
    for (mlir::Operation* user : value.getUsers()) {
      if (isRoot(user))
        continue;
      if (user->getBlock() != dot->getBlock() || !ir::isElementwise(user))
        return false;
      pending.push_back(user->getResult(0));
    }
  }
  return true;
}

ir::DotOp Tiles::epilogueDot(llvm::ArrayRef<Root> roots) {
  ir::DotOp found;
  bool several = false;
  for (const Root& root : roots) {
    if (rankOf(root.value) < 2)
      return {};
    if (auto dot = root.value.getDefiningOp<ir::DotOp>(); dot && roots.size() == 1 && !root.store)
      return dot;  // asked for as it is
    ir::DotOp own;
    Closure closure(v_);
    closure.walk(root.value, identityMap(rankOf(root.value)), [&](mlir::Value value, const DimMap& map) {
      auto dot = value.getDefiningOp<ir::DotOp>();
      if (v_.place(value) || !dot)
        return !v_.place(value);
      several |= own && own != dot;
      own = isIdentity(map) ? dot : own;
      return false;
    });
    several |= !own || (found && own != found);
    found = own ? own : found;
  }
  return found && !several && isConsumedBy(found, roots) ? found : ir::DotOp();
}

//===-- operands ----------------------------------------------------------------------------------------------===//

namespace {

bool isZero(mlir::Value tile) {
  mlir::Attribute value;
  if (auto extended = tile.getDefiningOp<mlir::arith::ExtFOp>())
    tile = extended.getIn();
  if (auto broadcast = tile.getDefiningOp<ir::BroadcastOp>())
    tile = broadcast.getValue();
  auto constant = tile.getDefiningOp<mlir::arith::ConstantOp>();
  if (!constant)
    return false;
  value = constant.getValue();
  if (auto splat = mlir::dyn_cast<mlir::SplatElementsAttr>(value))
    value = splat.getSplatValue<mlir::Attribute>();
  if (auto real = mlir::dyn_cast<mlir::FloatAttr>(value))
    return real.getValue().isPosZero();
  auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value);
  return integer && integer.getValue().isZero();
}

/// Which of the last two dimensions moves through neighbouring elements in memory.
gemm::Contiguous contiguousDim(Evaluator& v, mlir::Value tile) {
  int rank = rankOf(tile), rows = 0, columns = 0, other = 0;
  Closure closure(v);
  closure.walk(tile, identityMap(rank), [&](mlir::Value value, const DimMap& map) {
    const Place* place = v.place(value);
    auto load = value.getDefiningOp<ir::TileLoadOp>();
    if (!place && !load)
      return true;
    const View view = place ? place->view : v.e.view(load.getView());
    // A row or a column that is repeated decides only where nothing has both dimensions.
    int weight = usesLoop(map, rank - 2) && usesLoop(map, rank - 1) ? 16 : 1;
    for (auto [dim, stride] : llvm::enumerate(view.strides)) {
      auto* constant = llvm::dyn_cast<llvm::ConstantInt>(stride);
      if (!constant || !constant->isOne())
        continue;
      rows += weight * (map[dim].loop == rank - 2);
      columns += weight * (map[dim].loop == rank - 1);
      other += map[dim].loop == DimUse::kMixed;
    }
    return false;
  });
  if (rows + columns + other == 0)
    return gemm::Contiguous::None;
  return rows > columns ? gemm::Contiguous::Row : gemm::Contiguous::Column;
}

/// Float of any width → the type a product is computed in.
Value* toCompute(Emitter& e, mlir::Type from, Value* value, llvm::Type* compute) {
  if (auto format = emit::narrowFormat(from))
    value = math::emitWiden(e.ir, e.features, *format, value);
  llvm::Type* type = value->getType()->getWithNewType(compute);
  return value->getType() == type ? value : e.ir.CreateFPExt(value, type);
}

}  // namespace

//===-- the product -------------------------------------------------------------------------------------------===//

namespace {

struct Product {
  Evaluator& v;
  Emitter& e;
  ir::DotOp op;
  llvm::ArrayRef<Root> roots;
  llvm::Type* compute;
  Values batch;  ///< indices

  At position(Value* row, Value* column, uint32_t lanes, bool alongRows, Value* valid) const {
    At at{{}, lanes, nullptr};
    for (Value* i : batch)
      at.index.push_back(Lane::uniform(i));
    at.index.push_back(alongRows ? laneIndex(e, row, lanes) : Lane::uniform(row));
    at.index.push_back(alongRows ? Lane::uniform(column) : laneIndex(e, column, lanes));
    if (valid && lanes > 1)
      at.mask = firstLanes(e.ir, lanes, valid);
    return at;
  }

  gemm::Load load(mlir::Value tile, gemm::Contiguous contiguous) {
    bool alongRows = contiguous == gemm::Contiguous::Row;
    return [this, tile, alongRows](llvm::IRBuilderBase&, Value* row, Value* column, uint32_t lanes, Value* valid) {
      Frame frame(v);
      At at = position(row, column, lanes, alongRows, valid);
      Value* value = toCompute(e, mlir::getElementTypeOrSelf(tile.getType()), v.eval(tile, at), compute);
      return at.mask ? e.ir.CreateSelect(at.mask, value, llvm::Constant::getNullValue(value->getType())) : value;
    };
  }

  void store(Value* row, Value* column, uint32_t lanes, Value* sums, Value* valid) {
    Frame frame(v);
    At at = position(row, column, lanes, false, valid);
    if (auto format = emit::narrowFormat(op.getType()))
      sums = math::emitNarrow(e.ir, e.features, *format, sums);
    v.remember(op.getResult(), at, sums);
    Values values;
    for (const Root& root : roots)
      values.push_back(v.eval(root.value, at));
    for (auto [root, value] : llvm::zip(roots, values))
      storeElements(e, root.sink, at, value, v.inside);
  }

  /// The sink can hold partial sums: it is C itself, and nothing reads it.
  bool keepsPartialSums() {
    if (roots.size() != 1)
      return false;
    const Place& sink = roots[0].sink;
    auto* stride = llvm::dyn_cast<llvm::ConstantInt>(sink.view.strides.back());
    if (emit::valueType(e.context(), sink.view.elementType) != compute || sink.guarded || !stride || !stride->isOne())
      return false;
    bool reads = false;
    Closure closure(v);
    for (mlir::Value tile : std::initializer_list<mlir::Value>{roots[0].value, op.getA(), op.getB(), op.getAcc()})
      closure.walk(tile, identityMap(rankOf(tile)), [&](mlir::Value value, const DimMap&) {
        if (const Place* place = v.place(value))
          reads |= place->base == sink.base;
        else if (auto load = value.getDefiningOp<ir::TileLoadOp>())
          reads |= rootView(load.getView()).getAsOpaquePointer() == sink.base;
        return !v.place(value);
      });
    return !reads;
  }

  Value* sinkAddress(Value* row, Value* column) const {
    const Place& sink = roots[0].sink;
    Values index = batch;
    index.append({row, column});
    Value* offset = e.i64(0);
    for (auto [dim, i] : llvm::enumerate(index)) {
      Value* absolute = sink.offsets.empty() ? i : e.ir.CreateAdd(i, sink.offsets[dim]);
      offset = e.ir.CreateAdd(offset, e.ir.CreateMul(absolute, sink.view.strides[dim]));
    }
    return emit::elementPointer(e.ir, sink.view.elementType, sink.view.pointer, offset);
  }

  /// `a` or `b` null: its panels are packed.
  gemm::Problem problem(mlir::Value a, mlir::Value b, const Values& extents, Value* k) {
    gemm::Problem problem;
    problem.type = compute;
    problem.m = extents[extents.size() - 2];
    problem.n = extents.back();
    problem.k = k;
    if (a) {
      problem.a.contiguous = contiguousDim(v, a);
      problem.a.load = load(a, problem.a.contiguous);
    }
    if (b) {
      problem.b.contiguous = contiguousDim(v, b);
      problem.b.load = load(b, problem.b.contiguous);
    }
    if (!isZero(op.getAcc()))
      problem.initial = load(op.getAcc(), gemm::Contiguous::Column);
    problem.store = [this](llvm::IRBuilderBase&, Value* row, Value* column, uint32_t lanes, Value* sums, Value* valid) {
      store(row, column, lanes, sums, valid);
    };
    if (keepsPartialSums())
      problem.partialAddress = [this](llvm::IRBuilderBase&, Value* row, Value* column) {
        return sinkAddress(row, column);
      };
    return problem;
  }
};

/// An operand as the preparation left it: in its storage, packed, or one of them chosen at run time.
struct DotOperand {
  mlir::Value direct;
  ir::TileLoadOp packed;
  mlir::Value isDirect;
};

DotOperand dotOperand(mlir::Value operand) {
  auto packedLoad = [](mlir::Value value) {
    auto load = value.getDefiningOp<ir::TileLoadOp>();
    return load && load->hasAttr(kPanelsAttribute) ? load : ir::TileLoadOp();
  };
  if (ir::TileLoadOp load = packedLoad(operand))
    return {{}, load, {}};
  auto select = operand.getDefiningOp<mlir::arith::SelectOp>();
  if (select && packedLoad(select.getFalseValue()))
    return {select.getTrueValue(), packedLoad(select.getFalseValue()), select.getCondition()};
  return {operand, {}, {}};
}

/// Loops over the leading dimensions.
void emitBatch(Evaluator& v, const Values& extents, unsigned dim, Values& indices, llvm::function_ref<void()> body) {
  if (dim + 2 == extents.size())
    return body();
  emitCounted(v.e, extents[dim], {}, [&](Value* i, llvm::ArrayRef<Value*>) {
    Frame frame(v);
    indices.push_back(i);
    emitBatch(v, extents, dim + 1, indices, body);
    indices.pop_back();
    return Values{};
  });
}

/// Blocks of at most `rows` × `columns`, so that they fit the scratch memory.
void emitBlocks(Evaluator& v, const gemm::Problem& problem, uint64_t rows, uint64_t columns,
                llvm::function_ref<void(const gemm::BlockRange&)> body) {
  Emitter& e = v.e;
  auto end = [&](Value* start, uint64_t step, Value* limit) {
    return e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e.ir.CreateAdd(start, e.i64(step)), limit);
  };
  emit::emitFor(e.ir, e.i64(0), problem.m, e.i64(rows), [&](Value* row) {
    emit::emitFor(e.ir, e.i64(0), problem.n, e.i64(columns), [&](Value* column) {
      Frame frame(v);
      body({row, end(row, rows, problem.m), column, end(column, columns, problem.n)});
    });
  });
}

/// Panels of the matrix at `batch` (indices in the view), from the column the load starts at, a whole panel's first, and the step.
Value* panelsAt(Emitter& e, const Place& place, const Values& batch, llvm::Type* type, uint64_t panelColumns) {
  size_t rank = place.view.rank();
  Value* matrix = e.i64(0);
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    matrix =
        e.ir.CreateAdd(e.ir.CreateMul(matrix, place.view.extents[dim]), e.ir.CreateAdd(place.offsets[dim], batch[dim]));
  Value* k = place.view.extents[rank - 2];
  Value* columns = e.ir.CreateAdd(e.ir.CreateMul(matrix, place.view.extents[rank - 1]), place.offsets[rank - 1]);
  Value* steps = e.ir.CreateMul(place.offsets[rank - 2], e.i64(static_cast<int64_t>(panelColumns)));
  return e.ir.CreateGEP(type, place.view.pointer, e.ir.CreateAdd(e.ir.CreateMul(columns, k), steps));
}

/// Panels of the rows that the load starts at, a whole panel's first. The view is rows × depth.
Value* rowPanels(Emitter& e, const Place& place, llvm::Type* type) {
  return e.ir.CreateGEP(type, place.view.pointer, e.ir.CreateMul(place.offsets[0], place.view.extents[1]));
}

}  // namespace

void Tiles::emitDot(ir::DotOp op, llvm::ArrayRef<Root> roots) {
  // Operands are read many times: what is dear to compute is computed once.
  DotOperand left = dotOperand(op.getA()), right = dotOperand(op.getB());
  group().prepareEpilogue(op, roots);
  if (!left.packed && costOf(v_, left.direct) >= kExpensive)
    toMemory(left.direct);
  if (!right.packed && costOf(v_, op.getB()) >= kExpensive)
    toMemory(op.getB());
  if (!e_.state.error.empty())
    return;
  mlir::Type type = mlir::getElementTypeOrSelf(op.getType());
  if (!mlir::isa<mlir::FloatType>(type))
    return emitIntegerDot(op, roots);
  emit::ScratchScope scope(*e_.scratch);
  Frame frame(v_);
  Values extents = v_.extents(op.getResult());
  Value* k = v_.extents(op.getA()).back();
  Product product{v_, e_, op, roots, type.isF64() ? e_.ir.getDoubleTy() : e_.ir.getFloatTy(), {}};
  gemm::Plan plan = dotPlan(e_.features, type.isF64() ? 8 : 4);
  Value* scratch = e_.scratch->allocate(plan.scratchBytes(!product.keepsPartialSums()));
  bool before = std::exchange(v_.inside, false);
  auto direct = [&] {
    emit::ScratchScope inner(*e_.scratch);
    v_.enterScope();
    for (mlir::Value operand : {left.direct, right.direct})
      if (costOf(v_, operand) >= kExpensive)
        toMemory(operand);
    emitBatch(v_, extents, 0, product.batch, [&] {
      gemm::Problem problem = product.problem(left.direct, right.direct, extents, k);
      emitBlocks(v_, problem, plan.directMc, plan.directNc, [&](const gemm::BlockRange& range) {
        gemm::emitDirectBlock(e_.ir, e_.features, plan, problem, scratch, range);
      });
    });
    v_.leaveScope();
    return Values{};
  };
  auto packed = [&] {
    Frame inner(v_);
    Place place = v_.placeOfLoad(right.packed);
    emitBatch(v_, extents, 0, product.batch, [&] {
      gemm::Problem problem = product.problem(left.packed ? mlir::Value() : left.direct, {}, extents, k);
      problem.packedSteps = place.view.extents[place.view.rank() - 2];
      if (left.packed)
        problem.packedRows = rowPanels(e_, v_.placeOfLoad(left.packed), product.compute);
      Value* panels = panelsAt(e_, place, product.batch, product.compute, plan.nr());
      emitBlocks(v_, problem, plan.mc, plan.nc, [&](const gemm::BlockRange& range) {
        gemm::emitPackedBlock(e_.ir, e_.features, plan, problem, panels, scratch, range);
      });
    });
    return Values{};
  };
  // Launches with strided inputs are rare: one of the two ways is code enough for them.
  if (!right.packed || (right.direct && !e_.unitStrides))
    direct();
  else if (!right.direct)
    packed();
  else
    emit::emitIf(e_.ir, e_.scalar(right.isDirect), direct, packed);
  v_.inside = before;
}

/// The steps of the depth that block z of a packing phase has.
static std::pair<Value*, Value*> packedDepth(Emitter& e, Value* depth) {
  llvm::IRBuilder<>& ir = e.ir;
  // Pieces of the depth start at whole cache lines of a B that is stored by columns.
  Value* steps = ir.CreateUDiv(ir.CreateAdd(depth, e.i64(kPackedSteps - 1)), e.i64(kPackedSteps));
  Value* pieces = e.gridDim[2];
  Value* step =
      ir.CreateMul(ir.CreateUDiv(ir.CreateAdd(steps, ir.CreateSub(pieces, e.i64(1))), pieces), e.i64(kPackedSteps));
  auto limit = [&](Value* k) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, k, depth); };
  Value* kBegin = ir.CreateMul(e.blockId[2], step);
  return {limit(kBegin), limit(ir.CreateAdd(kBegin, step))};
}

/// A packing phase: the store's tile is all of B; block (x, y, z) packs piece z of the depth of some panels of matrix y.
void Tiles::emitPack(ir::TileStoreOp op) {
  if (op->hasAttr(kTileRowsAttribute) || op->hasAttr(kTileColumnsAttribute))
    return emitPackTile(op);
  llvm::IRBuilder<>& ir = e_.ir;
  mlir::Value b = op.getValue();
  llvm::Type* compute = emit::valueType(e_.context(), b.getType());
  gemm::Plan plan = dotPlan(e_.features, emit::elementBytes(b.getType()));
  Place place = v_.placeOfStore(op);
  Values extents = v_.extents(b);
  size_t rank = extents.size();
  Product product{v_, e_, {}, {}, compute, {}};
  Value* rest = e_.blockId[1];
  product.batch.resize(rank - 2);
  for (size_t dim = rank - 2; dim-- > 0;) {
    Value* extent = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, extents[dim], e_.i64(1));
    product.batch[dim] = ir.CreateURem(rest, extent);
    rest = ir.CreateUDiv(rest, extent);
  }
  gemm::Problem problem;
  problem.type = compute;
  problem.m = e_.i64(0);
  problem.n = extents[rank - 1];
  problem.k = extents[rank - 2];
  problem.b.contiguous = contiguousDim(v_, b);
  problem.b.load = product.load(b, problem.b.contiguous);
  Value* panels = ir.CreateUDiv(place.view.extents[rank - 1], e_.i64(plan.nr()));
  Value* begin = ir.CreateMul(e_.blockId[0], e_.i64(kPanelsPerBlock));
  Value* end = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir.CreateAdd(begin, e_.i64(kPanelsPerBlock)), panels);
  auto [kBegin, kEnd] = packedDepth(e_, problem.k);
  Frame frame(v_);
  gemm::emitPackB(ir, e_.features, plan, problem, panelsAt(e_, place, product.batch, compute, plan.nr()), begin, end,
                  kBegin, kEnd);
}

/// The store's tile is all of an operand of tile code; block (x, 0, z) packs piece z of the depth of tile x.
void Tiles::emitPackTile(ir::TileStoreOp op) {
  bool isA = op->hasAttr(kTileRowsAttribute);
  int64_t lanes = op->getAttrOfType<mlir::IntegerAttr>(isA ? kTileRowsAttribute : kTileColumnsAttribute).getInt();
  mlir::Value tile = op.getValue();
  llvm::Type* compute = emit::valueType(e_.context(), tile.getType());
  gemm::Plan plan = dotPlan(e_.features, emit::elementBytes(tile.getType()));
  Place place = v_.placeOfStore(op);
  Product product{v_, e_, {}, {}, compute, {}};
  gemm::Operand operand;
  operand.contiguous = contiguousDim(v_, tile);
  operand.load = product.load(tile, operand.contiguous);
  Value* depth = v_.extents(tile)[isA ? 1 : 0];
  auto [kBegin, kEnd] = packedDepth(e_, depth);
  int64_t padded = static_cast<int64_t>(llvm::alignTo(lanes, isA ? plan.mr : plan.nr()));
  Value* begin = e_.ir.CreateMul(e_.blockId[0], e_.i64(lanes));
  Value* packed = e_.ir.CreateGEP(compute, place.view.pointer,
                                  e_.ir.CreateMul(e_.ir.CreateMul(e_.blockId[0], e_.i64(padded)), depth));
  Frame frame(v_);
  gemm::emitPackTile(e_.ir, plan, compute, operand, isA, packed, depth, begin, e_.ir.CreateAdd(begin, e_.i64(lanes)),
                     kBegin, kEnd);
}

/// Rows of C in vectors, one step of k at a time.
void Tiles::emitIntegerDot(ir::DotOp op, llvm::ArrayRef<Root> roots) {
  Frame frame(v_);
  Values extents = v_.extents(op.getResult());
  Value* k = v_.extents(op.getA()).back();
  mlir::Type from = mlir::getElementTypeOrSelf(op.getA().getType()), type = mlir::getElementTypeOrSelf(op.getType());
  unsigned lanes = chooseLanes(e_, {type});
  Product product{v_, e_, op, roots, nullptr, {}};
  bool before = std::exchange(v_.inside, false);
  emitBatch(v_, extents, 0, product.batch, [&] {
    emitCounted(e_, extents[extents.size() - 2], {}, [&](Value* row, llvm::ArrayRef<Value*>) {
      emitVectorLoop(e_, extents.back(), {lanes, 1}, {}, [&](Value* column, Value* mask, unsigned, Values&) {
        auto at = [&](Value* i, Value* j, unsigned width) {
          At position = product.position(i, j, width, false, nullptr);
          position.mask = width > 1 ? mask : nullptr;
          return position;
        };
        auto widen = [&](Value* value) {
          llvm::Type* wide = value->getType()->getWithNewType(emit::valueType(e_.context(), type));
          return from.isInteger(1) ? e_.ir.CreateZExt(value, wide) : e_.ir.CreateSExt(value, wide);
        };
        Frame outer(v_);
        Values sums = emitCounted(e_, k, {v_.eval(op.getAcc(), at(row, column, lanes))},
                                  [&](Value* step, llvm::ArrayRef<Value*> carried) {
                                    Frame inner(v_);
                                    Value* a = emit::splat(e_.ir, widen(v_.eval(op.getA(), at(row, step, 1))), lanes);
                                    Value* b = widen(v_.eval(op.getB(), at(step, column, lanes)));
                                    return Values{e_.ir.CreateAdd(carried[0], e_.ir.CreateMul(a, b))};
                                  });
        Frame epilogue(v_);
        At here = at(row, column, lanes);
        v_.remember(op.getResult(), here, sums[0]);
        Values values;
        for (const Root& root : roots)
          values.push_back(v_.eval(root.value, here));
        for (auto [root, value] : llvm::zip(roots, values))
          storeElements(e_, root.sink, here, value, v_.inside);
      });
      return Values{};
    });
  });
  v_.inside = before;
}

}  // namespace vortex::target::cpu::tiles
