// Prefix combinations. Along the innermost dimension vectors are combined in log2(lanes) steps and the last lane is carried on; along
// other dimensions vectors of neighbours carry their own prefixes.
#include "target/cpu/tiles/reduction.h"
#include "target/cpu/tiles/tiles_state.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

namespace {

struct ScanLoops {
  Evaluator& v;
  Emitter& e;
  ir::ScanOp op;
  const Place& sink;
  Reduction reduction;
  Values extents;
  unsigned lanes;
  At at;

  /// Loops over all dimensions but `skipped`, outermost first; `body` runs with their indices set.
  void outer(unsigned dim, llvm::ArrayRef<unsigned> skipped, llvm::function_ref<void()> body) {
    if (dim == extents.size())
      return body();
    if (llvm::is_contained(skipped, dim))
      return outer(dim + 1, skipped, body);
    emitCounted(e, extents[dim], {}, [&](Value* i, llvm::ArrayRef<Value*>) {
      Frame frame(v);
      at.index[dim] = Lane::uniform(i);
      outer(dim + 1, skipped, body);
      return Values{};
    });
  }

  void along() {
    unsigned dim = extents.size() - 1;
    outer(0, {dim}, [&] {
      Values carried{reduction.neutral(1)};
      emitVectorLoop(e, extents[dim], {lanes, 1}, carried, [&](Value* i, Value* mask, unsigned, Values& carry) {
        Frame frame(v);
        At here = at;
        here.index[dim] = laneIndex(e, i, lanes);
        here.lanes = lanes;
        here.mask = mask;
        Value* before = emit::splat(e.ir, carry[0], lanes);
        Value* own = reduction.widen(v.eval(op.getValue(), here));
        if (mask)
          own = e.ir.CreateSelect(mask, own, reduction.neutral(lanes));
        Value* inclusive = reduction.combine(before, reduction.prefix(own));
        Value* last = lanes == 1 ? inclusive : e.ir.CreateExtractElement(inclusive, uint64_t(lanes - 1));
        Value* result = inclusive;
        if (op.getExclusive() && lanes == 1)
          result = before;
        else if (op.getExclusive()) {
          llvm::SmallVector<int> order{int(lanes)};
          for (unsigned lane = 1; lane < lanes; ++lane)
            order.push_back(int(lane) - 1);
          result = e.ir.CreateShuffleVector(inclusive, before, order);
        }
        storeElements(e, sink, here, reduction.narrow(result), true);
        carry[0] = last;
      });
    });
  }

  void across() {
    unsigned dim = op.getDim(), inner = extents.size() - 1;
    outer(0, {dim, inner}, [&] {
      emitVectorLoop(e, extents[inner], {lanes, 1}, {}, [&](Value* j, Value* mask, unsigned, Values&) {
        emitCounted(e, extents[dim], {reduction.neutral(lanes)}, [&](Value* i, llvm::ArrayRef<Value*> carry) {
          Frame frame(v);
          At here = at;
          here.index[dim] = Lane::uniform(i);
          here.index[inner] = laneIndex(e, j, lanes);
          here.lanes = lanes;
          here.mask = mask;
          Value* inclusive = reduction.combine(carry[0], reduction.widen(v.eval(op.getValue(), here)));
          storeElements(e, sink, here, reduction.narrow(op.getExclusive() ? carry[0] : inclusive), true);
          return Values{inclusive};
        });
      });
    });
  }
};

}  // namespace

void Tiles::emitScan(ir::ScanOp op, const Place& sink) {
  group().prepareExpression(op.getValue());
  mlir::Type type = mlir::getElementTypeOrSelf(op.getType());
  Values extents = v_.extents(op.getValue());
  At at;
  at.index.resize(extents.size());
  Frame frame(v_);
  ScanLoops loops{
      v_, e_, op, sink, Reduction(e_, op.getKind(), type), extents, chooseLanes(e_, elementTypes(v_, {op.getValue()})),
      at};
  if (op.getDim() + 1 == extents.size())
    loops.along();
  else
    loops.across();
}

}  // namespace vortex::target::cpu::tiles
