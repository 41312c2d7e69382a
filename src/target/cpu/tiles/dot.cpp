#include "target/cpu/tiles/tiles_state.h"

#include "target/cpu/gemm/gemm.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

static unsigned rankOf(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()).getRank(); }

//===-- which consumers become the epilogue -------------------------------------------------------------------===//

/// Every path from `dot` ends in a root, through elementwise operations only.
static bool isConsumedBy(ir::DotOp dot, llvm::ArrayRef<Root> roots) {
  llvm::SmallVector<mlir::Value> pending{dot.getResult()};
  llvm::DenseSet<mlir::Value> seen;
  auto isRoot = [&](mlir::Operation *user) { return llvm::any_of(roots, [&](const Root &root) { return root.store == user; }); };
  while (!pending.empty()) {
    mlir::Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (mlir::Operation *user : value.getUsers()) {
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
  for (const Root &root : roots) {
    if (rankOf(root.value) < 2)
      return {};
    if (auto dot = root.value.getDefiningOp<ir::DotOp>(); dot && roots.size() == 1 && !root.store)
      return dot; // asked for as it is
    ir::DotOp own;
    Closure closure(v_);
    closure.walk(root.value, identityMap(rankOf(root.value)), [&](mlir::Value value, const DimMap &map) {
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
gemm::Contiguous contiguousDim(Evaluator &v, mlir::Value tile) {
  int rank = rankOf(tile), rows = 0, columns = 0, other = 0;
  Closure closure(v);
  closure.walk(tile, identityMap(rank), [&](mlir::Value value, const DimMap &map) {
    const Place *place = v.place(value);
    auto load = value.getDefiningOp<ir::TileLoadOp>();
    if (!place && !load)
      return true;
    const View view = place ? place->view : v.e.view(load.getView());
    for (auto [dim, stride] : llvm::enumerate(view.strides)) {
      auto *constant = llvm::dyn_cast<llvm::ConstantInt>(stride);
      if (!constant || !constant->isOne())
        continue;
      rows += map[dim].loop == rank - 2;
      columns += map[dim].loop == rank - 1;
      other += map[dim].loop == DimUse::kMixed;
    }
    return false;
  });
  if (rows + columns + other == 0)
    return gemm::Contiguous::None;
  return rows > columns ? gemm::Contiguous::Row : gemm::Contiguous::Column;
}

/// Float of any width → the type a product is computed in.
Value *toCompute(Emitter &e, mlir::Type from, Value *value, llvm::Type *compute) {
  if (auto format = emit::narrowFormat(from))
    value = math::emitWiden(e.ir, e.features, *format, value);
  llvm::Type *type = value->getType()->getWithNewType(compute);
  return value->getType() == type ? value : e.ir.CreateFPExt(value, type);
}

} // namespace

//===-- the product -------------------------------------------------------------------------------------------===//

namespace {

struct Product {
  Evaluator &v;
  Emitter &e;
  ir::DotOp op;
  llvm::ArrayRef<Root> roots;
  llvm::Type *compute;
  Values batch; ///< indices

  At position(Value *row, Value *column, uint32_t lanes, bool alongRows, Value *valid) const {
    At at{{}, lanes, nullptr};
    for (Value *i : batch)
      at.index.push_back(Lane::uniform(i));
    at.index.push_back(alongRows ? laneIndex(e, row, lanes) : Lane::uniform(row));
    at.index.push_back(alongRows ? Lane::uniform(column) : laneIndex(e, column, lanes));
    if (valid && lanes > 1)
      at.mask = firstLanes(e.ir, lanes, valid);
    return at;
  }

  gemm::Load load(mlir::Value tile, gemm::Contiguous contiguous) {
    bool alongRows = contiguous == gemm::Contiguous::Row;
    return [this, tile, alongRows](llvm::IRBuilderBase &, Value *row, Value *column, uint32_t lanes, Value *valid) {
      Frame frame(v);
      At at = position(row, column, lanes, alongRows, valid);
      Value *value = toCompute(e, mlir::getElementTypeOrSelf(tile.getType()), v.eval(tile, at), compute);
      return at.mask ? e.ir.CreateSelect(at.mask, value, llvm::Constant::getNullValue(value->getType())) : value;
    };
  }

  void store(Value *row, Value *column, uint32_t lanes, Value *sums, Value *valid) {
    Frame frame(v);
    At at = position(row, column, lanes, false, valid);
    if (auto format = emit::narrowFormat(op.getType()))
      sums = math::emitNarrow(e.ir, e.features, *format, sums);
    v.remember(op.getResult(), at, sums);
    Values values;
    for (const Root &root : roots)
      values.push_back(v.eval(root.value, at));
    for (auto [root, value] : llvm::zip(roots, values))
      storeElements(e, root.sink, at, value, v.inside);
  }

  gemm::Problem problem(const Values &extents, Value *k) {
    gemm::Problem problem;
    problem.type = compute;
    problem.m = extents[extents.size() - 2];
    problem.n = extents.back();
    problem.k = k;
    problem.a.contiguous = contiguousDim(v, op.getA());
    problem.a.load = load(op.getA(), problem.a.contiguous);
    problem.b.contiguous = contiguousDim(v, op.getB());
    problem.b.load = load(op.getB(), problem.b.contiguous);
    if (!isZero(op.getAcc()))
      problem.initial = load(op.getAcc(), gemm::Contiguous::Column);
    problem.store = [this](llvm::IRBuilderBase &, Value *row, Value *column, uint32_t lanes, Value *sums, Value *valid) {
      store(row, column, lanes, sums, valid);
    };
    return problem;
  }
};

std::optional<uint64_t> known(Value *value) {
  if (auto *constant = llvm::dyn_cast<llvm::ConstantInt>(value))
    return constant->getZExtValue();
  return std::nullopt;
}

/// Loops over the leading dimensions.
void emitBatch(Evaluator &v, const Values &extents, unsigned dim, Values &indices, llvm::function_ref<void()> body) {
  if (dim + 2 == extents.size())
    return body();
  emitCounted(v.e, extents[dim], {}, [&](Value *i, llvm::ArrayRef<Value *>) {
    Frame frame(v);
    indices.push_back(i);
    emitBatch(v, extents, dim + 1, indices, body);
    indices.pop_back();
    return Values{};
  });
}

} // namespace

void Tiles::emitDot(ir::DotOp op, llvm::ArrayRef<Root> roots) {
  // Operands are read many times: what is dear to compute is computed once. The dot itself has no place, its epilogue's other needs get one.
  for (mlir::Value operand : {op.getA(), op.getB(), op.getAcc()}) {
    group().prepareExpression(operand);
    if (operand != op.getAcc() && costOf(v_, operand) >= kExpensive)
      toMemory(operand);
  }
  group().prepareEpilogue(op, roots);
  if (!e_.state.error.empty())
    return;
  mlir::Type type = mlir::getElementTypeOrSelf(op.getType());
  if (!mlir::isa<mlir::FloatType>(type))
    return emitIntegerDot(op, roots);
  emit::ScratchScope scope(*e_.scratch);
  Frame frame(v_);
  Values extents = v_.extents(op.getResult());
  Value *k = v_.extents(op.getA()).back();
  Product product{v_, e_, op, roots, type.isF64() ? e_.ir.getDoubleTy() : e_.ir.getFloatTy(), {}};
  gemm::KnownExtents knownExtents{known(extents[extents.size() - 2]), known(extents.back()), known(k)};
  gemm::Plan plan = gemm::choosePlan(e_.features, {}, type.isF64() ? 8 : 4, knownExtents);
  Value *scratch = e_.scratch->allocate(plan.scratchBytes(true));
  bool before = std::exchange(v_.inside, false);
  emitBatch(v_, extents, 0, product.batch, [&] {
    gemm::Problem problem = product.problem(extents, k);
    Value *rowStep = e_.i64(plan.directMc), *columnStep = e_.i64(plan.directNc);
    emit::emitFor(e_.ir, e_.i64(0), problem.m, rowStep, [&](Value *row) {
      emit::emitFor(e_.ir, e_.i64(0), problem.n, columnStep, [&](Value *column) {
        Frame inner(v_);
        auto end = [&](Value *start, Value *step, Value *limit) {
          return e_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e_.ir.CreateAdd(start, step), limit);
        };
        gemm::emitDirectBlock(e_.ir, e_.features, plan, problem, scratch,
                              {row, end(row, rowStep, problem.m), column, end(column, columnStep, problem.n)});
      });
    });
  });
  v_.inside = before;
}

/// Rows of C in vectors, one step of k at a time.
void Tiles::emitIntegerDot(ir::DotOp op, llvm::ArrayRef<Root> roots) {
  Frame frame(v_);
  Values extents = v_.extents(op.getResult());
  Value *k = v_.extents(op.getA()).back();
  mlir::Type from = mlir::getElementTypeOrSelf(op.getA().getType()), type = mlir::getElementTypeOrSelf(op.getType());
  unsigned lanes = chooseLanes(e_, {type});
  Product product{v_, e_, op, roots, nullptr, {}};
  bool before = std::exchange(v_.inside, false);
  emitBatch(v_, extents, 0, product.batch, [&] {
    emitCounted(e_, extents[extents.size() - 2], {}, [&](Value *row, llvm::ArrayRef<Value *>) {
      emitVectorLoop(e_, extents.back(), {lanes, 1}, {}, [&](Value *column, Value *mask, unsigned, Values &) {
        auto at = [&](Value *i, Value *j, unsigned width) {
          At position = product.position(i, j, width, false, nullptr);
          position.mask = width > 1 ? mask : nullptr;
          return position;
        };
        auto widen = [&](Value *value) {
          llvm::Type *wide = value->getType()->getWithNewType(emit::valueType(e_.context(), type));
          return from.isInteger(1) ? e_.ir.CreateZExt(value, wide) : e_.ir.CreateSExt(value, wide);
        };
        Frame outer(v_);
        Values sums = emitCounted(e_, k, {v_.eval(op.getAcc(), at(row, column, lanes))}, [&](Value *step, llvm::ArrayRef<Value *> carried) {
          Frame inner(v_);
          Value *a = emit::splat(e_.ir, widen(v_.eval(op.getA(), at(row, step, 1))), lanes);
          Value *b = widen(v_.eval(op.getB(), at(step, column, lanes)));
          return Values{e_.ir.CreateAdd(carried[0], e_.ir.CreateMul(a, b))};
        });
        Frame epilogue(v_);
        At here = at(row, column, lanes);
        v_.remember(op.getResult(), here, sums[0]);
        Values values;
        for (const Root &root : roots)
          values.push_back(v_.eval(root.value, here));
        for (auto [root, value] : llvm::zip(roots, values))
          storeElements(e_, root.sink, here, value, v_.inside);
      });
      return Values{};
    });
  });
  v_.inside = before;
}

} // namespace vortex::target::cpu::tiles
