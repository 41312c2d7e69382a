// Kernel results: values per thread, whole tensors, per-block values of a reduction and its second phase.
#include "irgen/emitter.h"

#include "lang/sema/element.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

void Emitter::emitKernelReturn(const Expr& expr) {
  if (expr.args.empty())
    return;
  const Expr& value = *expr.args[0];
  if (value.kind == ExprKind::MakeTuple && value.args.size() == context_.entry.results().size()) {
    for (auto [result, element] : llvm::enumerate(value.args))
      returnValue(*element, result);
    return;
  }
  if (context_.entry.results().size() == 1)
    return returnValue(value, 0);
  if (value.type->kind != lang::TypeKind::Unit)
    unsupported(value, "returning several results other than as a tuple expression");
}

void Emitter::returnValue(const Expr& value, uint32_t result) {
  Location at = loc(value);
  lang::Type type = context_.entry.results()[result];
  uint32_t first = context_.entry.resultArgument(result);
  if (value.kind == ExprKind::Var)
    if (auto found = context_.storage.find(value.variable); found != context_.storage.end() && found->second == first)
      return;
  if (type->isTensor() && stripRef(value.type)->isTensor()) {
    if (context_.hasThreads)
      closeRegion();
    for (auto [plane, tile] : llvm::enumerate(evalTiles(value).leaves))
      context_.hasThreads ? storeBlockTile(at, tile, argument(first + plane), type)
                          : storeTile(at, tile, argument(first + plane));
    return;
  }
  if (!type->isTensor())
    return returnPerBlock(value, argument(first));
  if (!atBlockLevel())
    return returnElement(at, eval(value), value, result);
  const Variable* element = park(value);
  VariableSet none;
  inRegion(at, none, [&] { returnElement(at, read(at, element), value, result); });
  parked_.erase(&value);
}

/// The first value of a result or temporary, which is storage of the entry.
void Emitter::beginStorage(const Expr& let) {
  Location at = loc(let);
  const Variable* variable = let.variable;
  const Expr* value = let.args.empty() ? nullptr : let.args[0];
  const auto first = llvm::cast<mlir::BlockArgument>(variables_[variable].leaves[0]);
  const EntryArgument& argument = context_.entry.argument(first.getArgNumber());
  const bool isZeros = !value || (value->kind == ExprKind::Builtin && value->builtin == lang::Builtin::Zeros);
  const bool isThere = isZeros && argument.zero;
  if (context_.hasThreads) {
    if (value && !isThere)
      unsupported(let, "a result that starts with other values than zero in a kernel with threads");
    return;
  }
  // A loop comes here again after it has written.
  mlir::Operation* around = b_.getBlock()->getParentOp();
  const bool isInLoop =
      llvm::isa<mlir::LoopLikeOpInterface>(around) || around->getParentOfType<mlir::LoopLikeOpInterface>();
  if (isThere && !isInLoop)
    return;
  Flat tiles = value ? evalTiles(*value) : Flat();
  for (auto [plane, view] : llvm::enumerate(variables_[variable].leaves)) {
    Value zero = value ? Value() : math_.zero(at, llvm::cast<ir::ViewType>(view.getType()).getElementType());
    storeTile(at, value ? tiles.leaves[plane] : broadcastScalar(at, zero, variable->type), view);
  }
}

/// One value per block: of what each warp has, the first one's.
void Emitter::returnPerBlock(const Expr& value, Value destination) {
  Location at = loc(value);
  const auto store = [&](Value scalar, Value mask) {
    if (context_.partials)
      b_.create<ir::StoreOp>(at, scalar, argument(*context_.partials), linearBlockId(at), mask, false);
    else
      b_.create<ir::StoreOp>(at, scalar, destination, math_.index(at, 0), mask, false);
  };
  closeRegion();
  if (value.uniformity == lang::Uniformity::PerThread && context_.hasThreads) {
    inRegion(at, {}, [&] {
      Value scalar = evalScalar(value);
      Value isFirst = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::eq, linearId(), math_.index(at, 0));
      store(scalar, isFirst);
    });
  } else {
    store(evalScalar(value), Value());
  }
  closeRegion();
}

/// Where the block's tile begins in a result. Leading dimensions are counted by the blocks along z, the last one fastest.
llvm::SmallVector<Value> Emitter::tileOffsets(Location loc, const lang::TileSpec& spec, lang::Type type) {
  const size_t leading = type->rank() - spec.offsets.size();
  llvm::SmallVector<Value> offsets(leading, Value());
  Value rest = leading ? Value(b_.create<ir::BlockIdOp>(loc, ir::Axis::Z)) : Value();
  for (size_t dim = leading; dim-- > 0;) {
    Value extent = dimValue(loc, type->shape[dim]);
    offsets[dim] = b_.create<ir::IntOp>(loc, rest.getType(), ir::IntKind::RemU, rest, extent);
    rest = b_.create<ir::IntOp>(loc, rest.getType(), ir::IntKind::DivU, rest, extent);
  }
  for (const Variable* offset : spec.offsets)
    offsets.push_back(readScalar(loc, offset));
  return offsets;
}

/// The block's tile at its place in the result; without `@tile` there is one block, and the tile is the result.
void Emitter::storeBlockTile(Location loc, Value tile, Value destination, lang::Type type) {
  const std::optional<lang::TileSpec>& spec = context_.function.kernel->tile;
  if (!spec || spec->offsets.empty())
    return storeTile(loc, tile, destination);
  auto tileType = llvm::cast<mlir::RankedTensorType>(tile.getType());
  mlir::Type stored = llvm::cast<ir::ViewType>(destination.getType()).getElementType();
  tile = adaptTile(loc, tile, tileType.clone(stored));
  llvm::SmallVector<Value> offsets = tileOffsets(loc, *spec, type);
  const size_t leading = type->rank() - spec->offsets.size();
  if (leading) {
    llvm::SmallVector<int64_t> shape(leading, 1);
    shape.append(tileType.getShape().begin(), tileType.getShape().end());
    tile = b_.create<ir::ReshapeOp>(loc, tileType.clone(shape, stored), tile, mlir::ValueRange());
  }
  bool inside = true;
  for (size_t dim = 0; dim < spec->offsets.size(); ++dim) {
    std::optional<int64_t> extent = types_.fix(type->shape[leading + dim]).asConstant();
    inside &= extent && *extent % spec->extents[dim] == 0;
  }
  b_.create<ir::TileStoreOp>(loc, tile, destination, offsets, inside);
}

/// Where the element of a thread is: x is the last subscript. With `@tile` the thread's number counts the elements of the block's tile, row by row.
std::optional<llvm::SmallVector<Value>> Emitter::elementPlace(const Expr& value, lang::Type type) {
  llvm::SmallVector<Value> indices;
  const std::optional<lang::TileSpec>& tile = context_.function.kernel->tile;
  if (!tile || tile->offsets.empty()) {
    for (uint32_t axis = type->rank(); axis-- > 0;)
      indices.push_back(globalId(axis));
    return indices;
  }
  Location at = loc(value);
  int64_t threads = 1;
  for (std::optional<int64_t> size : context_.block)
    threads = size && threads > 0 ? threads * *size : 0;
  if (threads != tile->elements()) {
    mlir::emitError(at) << "one value per thread does not fill the block's tile of " << tile->elements()
                        << " elements: the block "
                        << (threads ? "has " + std::to_string(threads) + " threads"
                                    : "is not known when the kernel is compiled");
    context_.failed = true;
    return std::nullopt;
  }
  indices = tileOffsets(at, *tile, type);
  Value rest = linearId();
  for (size_t dim = tile->extents.size(); dim-- > 0;) {
    Value &index = indices[type->rank() - tile->extents.size() + dim], extent = math_.index(at, tile->extents[dim]);
    index =
        b_.create<arith::AddIOp>(at, index, b_.create<ir::IntOp>(at, rest.getType(), ir::IntKind::RemU, rest, extent));
    rest = b_.create<ir::IntOp>(at, rest.getType(), ir::IntKind::DivU, rest, extent);
  }
  return indices;
}

/// An element of each thread.
void Emitter::returnElement(Location loc, const Flat& element, const Expr& value, uint32_t result) {
  lang::Type type = context_.entry.results()[result];
  VORTEX_CHECK((type->rank() <= 3 || context_.function.kernel->tile) && inThreads_,
               "one value per thread for a result of rank %u", type->rank());
  const std::optional<llvm::SmallVector<Value>> place = elementPlace(value, type);
  if (!place)
    return;
  const llvm::SmallVector<Value>& indices = *place;
  Value mask;
  if (!context_.domain.empty()) {
    mask = insideDomain();
  } else {  // threads outside of the result return nothing: no store that `--check` would report
    Value shaped = argument(context_.entry.resultArgument(result));
    for (auto [dim, index] : llvm::enumerate(indices)) {
      Value extent = b_.create<ir::DimOp>(loc, shaped, dim);
      Value below = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, index, extent);
      mask = mask ? Value(b_.create<arith::AndIOp>(loc, mask, below)) : below;
    }
  }
  for (auto [plane, leaf] : llvm::enumerate(element.leaves)) {
    Value stored = lang::isStructTensor(type) ? leaf : math_.cast(loc, leaf, scalarOf(value.type), scalarOf(type));
    Value destination = argument(context_.entry.resultArgument(result) + plane);
    b_.create<ir::StoreOp>(loc, stored, destination, indices, mask, false);
    noteWrite(destination);
  }
}

Value Emitter::linearBlockId(Location loc) {
  auto id = [&](ir::Axis axis) -> Value { return b_.create<ir::BlockIdOp>(loc, axis); };
  auto extent = [&](ir::Axis axis) -> Value { return b_.create<ir::GridDimOp>(loc, axis); };
  auto fold = [&](Value high, ir::Axis axis) -> Value {
    return b_.create<arith::AddIOp>(loc, id(axis), b_.create<arith::MulIOp>(loc, extent(axis), high));
  };
  return fold(fold(id(ir::Axis::Z), ir::Axis::Y), ir::Axis::X);
}

//===-- second phase ----------------------------------------------------------------------------------------------===//

/// Pairwise in place: at distance d, element i takes in element i + d for every i divisible by 2d; the order depends on the number of
/// blocks only. No blocks: the neutral element.
void Emitter::emitReduction(ir::Combine kind, const lang::Function* function, uint32_t partials, uint32_t result) {
  Location at = context_.locations(context_.function.resultRange);
  Value values = argument(partials), count = b_.create<ir::DimOp>(at, values, 0);
  mlir::Type element = llvm::cast<ir::ViewType>(values.getType()).getElementType();
  Value zero = math_.index(at, 0), one = math_.index(at, 1);
  const Variable* distance = facts_.newVariable("distance", facts_.index(), lang::Uniformity::Uniform);
  declare(distance);
  assign(at, distance, one);
  VariableSet assigned;
  assigned.insert(distance);
  auto below = [&](Value lhs, Value rhs) -> Value {
    return b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::ult, lhs, rhs);
  };
  auto get = [&](Value index) -> Value { return b_.create<ir::LoadOp>(at, element, values, index, Value(), false); };
  emitWhile(
      at, assigned, [&] { return below(readScalar(at, distance), count); },
      [&] {
        Value step = readScalar(at, distance);
        Value stride = b_.create<arith::AddIOp>(at, step, step);
        inRegion(at, {}, [&] {
          Value first = b_.create<arith::MulIOp>(at, linearId(), stride);
          Value advance = b_.create<arith::MulIOp>(at, blockExtent(0), stride);
          Value last = b_.create<arith::SubIOp>(at, count, step);  // positive: step < count
          emitFor(at, first, last, advance, {}, [&](Value position) {
            Value lhs = get(position), rhs = get(b_.create<arith::AddIOp>(at, position, step));
            Value sum = function ? callFunction(at, *function, {lhs, rhs}) : math_.combine(at, kind, lhs, rhs);
            b_.create<ir::StoreOp>(at, sum, values, position, Value(), false);
          });
        });
        closeRegion();
        b_.create<ir::BarrierOp>(at);
        assign(at, distance, stride);
      });
  Value any = below(zero, count);
  Value loaded = b_.create<ir::LoadOp>(at, element, values, zero, any, false);
  bool startsAtZero = function || kind == ir::Combine::AddF;  // rather than at -0.0
  mlir::TypedAttr neutral = startsAtZero ? mlir::TypedAttr() : ir::neutralElement(kind, element);
  Value otherwise = neutral ? Value(b_.create<arith::ConstantOp>(at, neutral)) : math_.zero(at, element);
  Value total = b_.create<arith::SelectOp>(at, any, loaded, otherwise);
  b_.create<ir::StoreOp>(at, total, argument(result), zero, Value(), false);
  b_.create<ir::ReturnOp>(at);
}

/// The body of a function of scalars, in place.
Value Emitter::callFunction(Location loc, const lang::Function& function, llvm::ArrayRef<Value> args) {
  Scope scope(*this);
  const Variable* result = facts_.newVariable("result", function.resultType, lang::Uniformity::PerThread);
  declare(result);
  for (auto [parameter, value] : llvm::zip(function.params, args)) {
    declare(parameter);
    assign(loc, parameter, value);
  }
  facts_.addFunction(function, result);
  const JumpFlags& flags = facts_.flags(function.body);
  if (flags.returned) {
    declare(flags.returned);
    setFlag(loc, flags.returned, false);
  }
  evaluate(*function.body, result);
  return readScalar(loc, result);
}

}  // namespace vortex::irgen
