#include "target/gpu/dot/numbers.h"

#include "ir/index_cast.h"

#include <mlir/Dialect/Vector/IR/VectorOps.h>

namespace vortex::target::gpu::dot {

namespace arith = mlir::arith;

Value Numbers::add(Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  if (a && b)
    return constant(*a + *b);
  if (a == 0)
    return y;
  return b == 0 ? x : l.b.create<arith::AddIOp>(l.loc, x, y);
}

Value Numbers::sub(Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  if (a && b)
    return constant(*a - *b);
  return b == 0 ? x : l.b.create<arith::SubIOp>(l.loc, x, y);
}

Value Numbers::mul(Value x, int64_t y) {
  if (auto a = l.constantOf(x))
    return constant(*a * y);
  return y == 1 ? x : l.b.create<arith::MulIOp>(l.loc, x, constant(y));
}

Value Numbers::bitAnd(Value x, int64_t mask) {
  if (auto a = l.constantOf(x))
    return constant(*a & mask);
  return mask == 0 ? constant(0) : l.b.create<arith::AndIOp>(l.loc, x, constant(mask));
}

Value Numbers::bitOr(Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  if (a && b)
    return constant(*a | *b);
  if (a == 0)
    return y;
  return b == 0 ? x : l.b.create<arith::OrIOp>(l.loc, x, y);
}

Value Numbers::bitXor(Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  if (a && b)
    return constant(*a ^ *b);
  if (a == 0)
    return y;
  return b == 0 ? x : l.b.create<arith::XOrIOp>(l.loc, x, y);
}

Value Numbers::shiftLeft(Value x, unsigned by) {
  if (auto a = l.constantOf(x))
    return constant(*a << by);
  return by == 0 ? x : l.b.create<arith::ShLIOp>(l.loc, x, constant(by));
}

Value Numbers::shiftRight(Value x, unsigned by) {
  if (auto a = l.constantOf(x))
    return constant(static_cast<int64_t>(static_cast<uint32_t>(*a) >> by));
  return by == 0 ? x : l.b.create<arith::ShRUIOp>(l.loc, x, constant(by));
}

Value Numbers::min(Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  return a && b ? constant(std::min(*a, *b)) : l.b.create<arith::MinSIOp>(l.loc, x, y);
}

Value Numbers::max(Value x, Value y) {
  auto a = l.constantOf(x), b = l.constantOf(y);
  return a && b ? constant(std::max(*a, *b)) : l.b.create<arith::MaxSIOp>(l.loc, x, y);
}

Value Numbers::less(Value x, Value y) {
  return l.b.createOrFold<arith::CmpIOp>(l.loc, arith::CmpIPredicate::slt, x, y);
}

Value Numbers::select(Value condition, Value x, Value y) {
  if (auto known = l.constantOf(condition))
    return *known ? x : y;
  return l.b.create<arith::SelectOp>(l.loc, condition, x, y);
}

Value Numbers::widen(Value x) {
  if (auto a = l.constantOf(x))
    return l.constant(*a);
  return l.b.create<arith::IndexCastUIOp>(l.loc, l.b.getIndexType(), x);
}

Value Numbers::narrow(Value x, int64_t limit) {
  return ir::fromIndex(l.b, l.loc, l.b.getI32Type(), l.min(x, l.constant(limit)));
}

Values Numbers::cut(Value low, Value high, Value shift, unsigned elementBytes) {
  auto words = mlir::VectorType::get({4}, l.b.getI32Type());
  Values w;
  for (Value half : {low, high}) {
    Value four = l.b.create<mlir::vector::BitCastOp>(l.loc, words, half);
    for (int64_t i = 0; i < 4; ++i)
      w.push_back(l.b.create<mlir::vector::ExtractOp>(l.loc, four, i));
  }
  auto isSet = [&](int64_t bit) -> Value {
    return l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::ne, bitAnd(shift, bit), constant(0));
  };
  auto moveWords = [&](unsigned by, unsigned keep) {
    Value moves = isSet(by * 4);
    for (unsigned i = 0; i < keep; ++i)
      w[i] = select(moves, w[i + by], w[i]);
    w.resize(keep);
  };
  auto moveBytes = [&](unsigned by) {
    Value moves = isSet(by);
    for (unsigned i = 0; i < w.size(); ++i) {
      Value rest = shiftRight(w[i], 8 * by);
      if (i + 1 < w.size())
        rest = bitOr(rest, shiftLeft(w[i + 1], 32 - 8 * by));
      w[i] = select(moves, rest, w[i]);
    }
  };
  moveWords(2, 6);
  moveWords(1, 5);
  if (elementBytes <= 2)
    moveBytes(2);
  if (elementBytes == 1)
    moveBytes(1);
  w.resize(4);
  return w;
}

}  // namespace vortex::target::gpu::dot
