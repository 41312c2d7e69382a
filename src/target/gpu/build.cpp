// Short builders with constant folding: index arithmetic stays readable in the lowering and small in its output.
#include "target/gpu/lowering.h"

#include "ir/combine.h"

#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;

std::optional<int64_t> Lowering::constantOf(Value value) {
  llvm::APInt known;
  if (value && mlir::matchPattern(value, mlir::m_ConstantInt(&known)))
    return known.getSExtValue();
  return std::nullopt;
}

Value Lowering::constant(int64_t value) { return b.create<arith::ConstantIndexOp>(loc, value); }
Value Lowering::i32(int64_t value) { return b.create<arith::ConstantIntOp>(loc, value, 32); }
Value Lowering::zero(mlir::Type type) { return b.create<arith::ConstantOp>(loc, b.getZeroAttr(type)); }

/// Of x's type: what is folded may be narrower than an index.
static Value constantLike(Lowering& l, Value x, int64_t value) {
  return l.b.create<arith::ConstantOp>(l.loc, l.b.getIntegerAttr(x.getType(), value));
}

Value Lowering::add(Value x, Value y) {
  auto a = constantOf(x), c = constantOf(y);
  if (a && c)
    return constantLike(*this, x, *a + *c);
  if (a && *a == 0)
    return y;
  return c && *c == 0 ? x : b.create<arith::AddIOp>(loc, x, y);
}

Value Lowering::sub(Value x, Value y) {
  auto a = constantOf(x), c = constantOf(y);
  if (a && c)
    return constantLike(*this, x, *a - *c);
  return c && *c == 0 ? x : b.create<arith::SubIOp>(loc, x, y);
}

Value Lowering::mul(Value x, Value y) {
  auto a = constantOf(x), c = constantOf(y);
  if (a && c)
    return constantLike(*this, x, *a * *c);
  if ((a && *a == 0) || (c && *c == 1))
    return x;
  return (c && *c == 0) || (a && *a == 1) ? y : b.create<arith::MulIOp>(loc, x, y);
}

Value Lowering::div(Value x, Value y) {
  auto a = constantOf(x), c = constantOf(y);
  if (a && c && *a >= 0 && *c > 0)
    return constantLike(*this, x, *a / *c);
  return c && *c == 1 ? x : b.create<arith::DivUIOp>(loc, x, y);
}

Value Lowering::rem(Value x, Value y) {
  auto a = constantOf(x), c = constantOf(y);
  if (a && c && *a >= 0 && *c > 0)
    return constantLike(*this, x, *a % *c);
  return c && *c == 1 ? constantLike(*this, x, 0) : b.create<arith::RemUIOp>(loc, x, y);
}

Value Lowering::min(Value x, Value y) {
  auto a = constantOf(x), c = constantOf(y);
  if (a && c)
    return constantLike(*this, x, std::min(*a, *c));
  return b.create<arith::MinSIOp>(loc, x, y);
}

Value Lowering::less(Value x, Value y) { return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x, y); }

Value Lowering::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return b.create<arith::AndIOp>(loc, x, y);
}

Value Lowering::select(Value condition, Value x, Value y) { return b.create<arith::SelectOp>(loc, condition, x, y); }

Value Lowering::combine(ir::Combine kind, Value x, Value y, bool atomic) {
  if (kind == ir::Combine::Exchange)
    return y;
  if (atomic && kind == ir::Combine::MaxF)
    return b.create<arith::MaxNumFOp>(loc, x, y);
  if (atomic && kind == ir::Combine::MinF)
    return b.create<arith::MinNumFOp>(loc, x, y);
  return ir::createCombine(b, loc, kind, x, y);
}

void Lowering::emitIf(Value condition, llvm::function_ref<void()> body) {
  emitIf(condition,
         [&] {
           body();
           return Values{};
         },
         {});
}

Values Lowering::emitIf(Value condition, llvm::function_ref<Values()> thenBody, llvm::function_ref<Values()> elseBody) {
  if (auto known = constantOf(condition))
    return *known ? thenBody() : elseBody ? elseBody() : Values{};
  mlir::Location at = loc;
  auto op = b.create<mlir::scf::IfOp>(at, mlir::TypeRange{}, condition, false, false);
  auto side = [&](mlir::Region& region, llvm::function_ref<Values()> body) {
    b.createBlock(&region);
    Values values = body ? body() : Values{};
    b.create<mlir::scf::YieldOp>(at, values);
    return values;
  };
  mlir::OpBuilder::InsertionGuard guard(b);
  Hazards::State before = hazards_.state();
  Values values = side(op.getThenRegion(), thenBody);
  Hazards::State afterThen = hazards_.state();
  hazards_.restore(before);
  if (elseBody)
    side(op.getElseRegion(), elseBody);
  hazards_.merge(afterThen);
  loc = at;
  if (values.empty())
    return {};
  // Result types are known only now: the op is rebuilt around its regions.
  b.setInsertionPoint(op);
  auto typed = b.create<mlir::scf::IfOp>(at, mlir::ValueRange(values).getTypes(), condition, false, false);
  typed.getThenRegion().takeBody(op.getThenRegion());
  typed.getElseRegion().takeBody(op.getElseRegion());
  op.erase();
  return Values(typed.getResults());
}

Values Lowering::emitFor(Value lower, Value upper, Value step, mlir::ValueRange carried,
                         llvm::function_ref<Values(Value iv, mlir::ValueRange carried)> body) {
  mlir::Location at = loc;
  auto loop = b.create<mlir::scf::ForOp>(at, lower, upper, step, carried);
  mlir::OpBuilder::InsertionGuard guard(b);
  const auto first = constantOf(lower), end = constantOf(upper);
  Hazards::State before = hazards_.state();
  if (carried.empty())
    loop.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.create<mlir::scf::YieldOp>(at, next);
  loc = at;
  if (!first || !end || *first >= *end)  // a loop that does not run has none of its barriers
    hazards_.merge(before);
  return Values(loop.getResults());
}

Value Lowering::inside(const View& view, llvm::ArrayRef<Value> indices) {
  Value all;
  for (auto [index, extent] : llvm::zip(indices, view.extents)) {
    auto known = constantOf(index), limit = constantOf(extent);
    if (!known || !limit || static_cast<uint64_t>(*known) >= static_cast<uint64_t>(*limit))
      all = both(all, less(index, extent));
  }
  return all;
}

Value Lowering::offset(const View& view, llvm::ArrayRef<Value> indices) {
  Value sum = view.base ? view.base : constant(0);
  for (auto [index, stride] : llvm::zip(indices, view.strides))
    sum = add(sum, mul(index, stride));
  if (!view.swizzle)
    return sum;
  if (auto known = constantOf(sum))
    return constant(view.swizzle.apply(*known));
  Value term = b.create<arith::ShRUIOp>(loc, sum, constant(view.swizzle.getShift()));
  term = b.create<arith::AndIOp>(loc, term, constant(view.swizzle.getMask()));
  term = b.create<arith::ShLIOp>(loc, term, constant(view.swizzle.getBase()));
  return b.create<arith::XOrIOp>(loc, sum, term);
}

}  // namespace vortex::target::gpu
