#include "target/gpu/tiles/look_back.h"

#include "ir/index_cast.h"
#include "ir/look_back.h"
#include "target/gpu/tiles/place.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
namespace vxt = ir::vxt;
using ir::kLookBackGroup;

namespace {

class LookBack {
public:
  LookBack(Lowering& l, ir::ScanOp scan, Reduction& reduction)
      : l(l), reduction_(reduction), type_(reduction.accumulatorType()),
        parts_(llvm::divideCeil(vxt::scalarBytes(type_), 4)), pointer_(l.view(scan.getState()).pointer),
        number_(l.scalar(scan.getNumber())) {
    Value blocks = l.b.create<vxt::GridDimOp>(l.loc, l.b.getIndexType(), ir::Axis::X);
    Value group = l.constant(kLookBackGroup);
    pieces_ = l.constant(ir::kLookBackHead);
    groups_ = l.add(pieces_, l.mul(blocks, l.constant(parts_)));
    Value groupCount = l.div(l.add(blocks, l.constant(kLookBackGroup - 1)), group);
    all_ = l.add(groups_, l.mul(groupCount, l.constant(parts_)));
  }

  /// In the first warp.
  Value run(Value total) {
    Value size = l.constant(kLookBackGroup), last = l.constant(kLookBackGroup - 1), lane = l.lane();
    Value group = l.div(number_, size), inGroup = l.rem(number_, size);
    Value outer = l.div(group, size), inOuter = l.rem(group, size);
    Value isFirst = isEqual(l, lane, l.constant(0)), neutral = reduction_.neutral(1);
    publish(total, pieces_, number_, isFirst);
    // All first reads are under way before the first of them is waited for.
    Wait piece = begin(pieces_, l.add(l.mul(group, size), lane), isLess(l, lane, inGroup));
    Wait others = begin(groups_, l.add(l.mul(outer, size), lane), isLess(l, lane, inOuter));
    Value hasAll = l.both(isFirst, isLess(l, l.constant(0), outer));
    Wait all = begin(all_, l.sub(outer, choose(l, hasAll, l.constant(1), l.constant(0))), hasAll);
    Value nearest = reduce(finish(piece, neutral));
    publish(reduction_.combine(nearest, total), groups_, group, l.both(isFirst, isEqual(l, inGroup, last)));
    Value near = reduce(finish(others, neutral));
    Value before = reduction_.combine(reduction_.combine(reduce(finish(all, neutral)), near), nearest);
    Value closes = l.both(isEqual(l, inGroup, last), isEqual(l, inOuter, last));
    publish(reduction_.combine(before, total), all_, outer, l.both(isFirst, closes));
    return before;
  }

private:
  struct Wait {
    Values words;  ///< as first read
    Value place, exists;
  };

  Value word(Value base, Value number, int64_t part) {
    return l.add(l.add(base, l.mul(number, l.constant(parts_))), l.constant(part));
  }
  Value number(int64_t value) { return l.b.create<arith::ConstantIntOp>(l.loc, value, 64); }

  /// 64 bits whose upper half says that the lower one is there.
  Values encode(Value value) {
    mlir::Type i32 = l.b.getI32Type(), i64 = l.b.getI64Type();
    unsigned width = static_cast<unsigned>(vxt::scalarBytes(type_)) * 8;
    Value bits = value;
    if (llvm::isa<mlir::FloatType>(type_))
      bits = l.b.create<arith::BitcastOp>(l.loc, l.b.getIntegerType(width), value);
    else if (type_.isIndex())
      bits = l.b.create<arith::IndexCastUIOp>(l.loc, i64, value);
    Values words;
    for (int64_t part = 0; part < parts_; ++part) {
      Value half = bits;
      if (parts_ > 1) {
        half = part ? Value(l.b.create<arith::ShRUIOp>(l.loc, bits, number(32))) : bits;
        half = l.b.create<arith::TruncIOp>(l.loc, i32, half);
      }
      words.push_back(
          l.b.create<arith::OrIOp>(l.loc, l.b.create<arith::ExtUIOp>(l.loc, i64, half), number(int64_t(1) << 32)));
    }
    return words;
  }

  Value decode(llvm::ArrayRef<Value> words) {
    mlir::Type i64 = l.b.getI64Type();
    Value bits = words[0];
    if (parts_ > 1) {
      Value low = l.b.create<arith::AndIOp>(l.loc, words[0], number(UINT32_MAX));
      bits = l.b.create<arith::OrIOp>(l.loc, low, l.b.create<arith::ShLIOp>(l.loc, words[1], number(32)));
    }
    if (type_.isIndex())
      return l.b.create<arith::IndexCastUIOp>(l.loc, type_, bits);
    mlir::Type integer = l.b.getIntegerType(type_.getIntOrFloatBitWidth());
    if (integer != i64)
      bits = l.b.create<arith::TruncIOp>(l.loc, integer, bits);
    return integer == type_ ? bits : Value(l.b.create<arith::BitcastOp>(l.loc, type_, bits));
  }

  void publish(Value value, Value base, Value number, Value isWriter) {
    l.emitIf(isWriter, [&] {
      for (auto [part, bits] : llvm::enumerate(encode(value)))
        l.b.create<vxt::AtomicStoreOp>(l.loc, ir::Order::Relaxed, ir::Scope::Device, bits, pointer_,
                                       word(base, number, static_cast<int64_t>(part)));
    });
  }

  Values read(Value place) {
    Values words;
    for (int64_t part = 0; part < parts_; ++part)
      words.push_back(l.b.create<vxt::AtomicLoadOp>(l.loc, l.b.getI64Type(), ir::Order::Relaxed, ir::Scope::Device,
                                                    pointer_, l.add(place, l.constant(part))));
    return words;
  }

  /// Lanes without a value read the numbers' word, and its neighbour.
  Wait begin(Value base, Value number, Value exists) {
    Value place = choose(l, exists, word(base, number, 0), l.constant(0));
    return {read(place), place, exists};
  }

  Value finish(const Wait& wait, Value neutral) {
    llvm::SmallVector<mlir::Type> types(wait.words.size(), l.b.getI64Type());
    auto loop = l.b.create<scf::WhileOp>(
        l.loc, types, wait.words,
        [&](mlir::OpBuilder& b, mlir::Location loc, mlir::ValueRange words) {
          Value missing;
          for (Value bits : words) {
            Value isMissing = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, bits, number(int64_t(1) << 32));
            missing = missing ? Value(b.create<arith::OrIOp>(loc, missing, isMissing)) : isMissing;
          }
          b.create<scf::ConditionOp>(loc, b.create<arith::AndIOp>(loc, wait.exists, missing), words);
        },
        [&](mlir::OpBuilder& b, mlir::Location loc, mlir::ValueRange) {
          b.create<scf::YieldOp>(loc, read(wait.place));
        });
    return choose(l, wait.exists, decode(Values(loop.getResults())), neutral);
  }

  Value reduce(Value value) { return warpReduce(l, reduction_, value); }

  Lowering& l;
  Reduction& reduction_;
  mlir::Type type_;
  int64_t parts_;
  Value pointer_, number_;
  Value pieces_, groups_, all_;
};

}  // namespace

Value lookBack(Lowering& l, ir::ScanOp scan, Reduction& reduction, Value total) {
  SharedScope scope(l.shared());
  auto piece = l.shared().take(vxt::scalarBytes(total.getType()), 16, "what comes before a block's piece");
  LookBack look(l, scan, reduction);
  l.emitIf(isEqual(l, l.warp(), l.constant(0)), [&] {
    Value before = look.run(total);
    Value isFirst = isEqual(l, l.lane(), l.constant(0));
    l.b.create<vxt::StoreOp>(l.loc, before, l.sharedPointer(piece), l.constant(0), isFirst, 0, vxt::Cache::Default);
  });
  l.hazards().barrier();
  Value before = l.b.create<vxt::LoadOp>(l.loc, total.getType(), l.sharedPointer(piece), l.constant(0), Value(), 0,
                                         vxt::Cache::Default);
  l.hazards().read(piece.root);
  return before;
}

}  // namespace vortex::target::gpu::tiles
