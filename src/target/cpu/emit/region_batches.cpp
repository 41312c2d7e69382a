// Loops whose lanes each read a row of memory of their own, `for k: sum += a[row * width + k] * …`: several rounds at once.
//
// Lane by lane, a round takes one element of each row: as many scalar loads as there are lanes, of lines that often share a set of the first-level
// cache, since rows are powers of two apart. A batch takes as many rounds as a vector register has elements: one vector of each row, transposed
// in registers, and then the rounds in their order, so that sums round as they did. On a product with rows of 16 KB that is 4 times faster.
//
// Rows that lie in few sets of the cache take each other's lines before the next batch reads on in them. Of such rows, pieces of some lines are copied
// first, row by row, and batches read the copies: twice as fast on that product, and a sixth slower where rows do not share sets.
#include "target/cpu/emit/region_emitter.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::cpu::emit {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using llvm::Value;

static constexpr unsigned kMostOps = 256;  ///< of a body that is emitted for each round of a batch
static constexpr int64_t kRow = 8;         ///< elements of 4 bytes in a register
static constexpr int kPiece = 4;           ///< of them within which shuffles are cheapest
static constexpr int64_t kStaged =
    2048;  ///< elements that are copied at once: a quarter of a first-level cache of 32 KiB
static constexpr int64_t kFewSets = 128;  ///< rows a multiple of so many elements apart share sets, at most 8 of 64

namespace {

/// An index in a loop: what stays, and what the counter and constants add.
struct Index {
  llvm::SmallVector<mlir::Value> invariant;  ///< and sums of narrower numbers, which grow by 1 with the counter
  int64_t step = 0, constant = 0;
};

class IndexParser {
public:
  explicit IndexParser(scf::ForOp loop) : loop_(loop) {}

  /// False: something else than a sum.
  bool add(mlir::Value value, int64_t factor, Index& into) {
    llvm::APInt number;
    if (value == loop_.getInductionVar()) {
      into.step += factor;
    } else if (mlir::matchPattern(value, mlir::m_ConstantInt(&number))) {
      into.constant += factor * number.getSExtValue();
    } else if (loop_.isDefinedOutsideOfLoop(value)) {
      if (factor != 1)
        return false;
      into.invariant.push_back(value);
    } else {
      mlir::Operation* op = value.getDefiningOp();
      if (auto cast = mlir::dyn_cast_or_null<arith::IndexCastOp>(op); cast && isWide(cast.getIn()))
        return add(cast.getIn(), factor, into);
      if (auto cast = mlir::dyn_cast_or_null<arith::IndexCastUIOp>(op); cast && isWide(cast.getIn()))
        return add(cast.getIn(), factor, into);
      if (auto wide = mlir::dyn_cast_or_null<arith::ExtUIOp>(op);
          wide && isWide(value) && narrowStep(wide.getIn()) == 1) {
        into.invariant.push_back(value);
        into.step += factor;
        return true;
      }
      if (auto sum = mlir::dyn_cast_or_null<arith::AddIOp>(op); sum && isWide(value))
        return add(sum.getLhs(), factor, into) && add(sum.getRhs(), factor, into);
      auto product = mlir::dyn_cast_or_null<arith::MulIOp>(op);
      if (!product || !isWide(value) || !mlir::matchPattern(product.getRhs(), mlir::m_ConstantInt(&number)) ||
          number.getSExtValue() < 0 || number.getSExtValue() > kRow)
        return false;
      return add(product.getLhs(), factor * number.getSExtValue(), into);
    }
    return true;
  }

  /// By how much a sum of 32 bits grows with the counter; nothing: it is no such sum.
  std::optional<int64_t> narrowStep(mlir::Value value) {
    if (loop_.isDefinedOutsideOfLoop(value))
      return 0;
    if (auto low = value.getDefiningOp<arith::TruncIOp>())
      if (auto cast = low.getIn().getDefiningOp<arith::IndexCastUIOp>())
        return cast.getIn() == loop_.getInductionVar() ? std::optional<int64_t>(1) : std::nullopt;
    auto sum = value.getDefiningOp<arith::AddIOp>();
    if (!sum || !value.getType().isInteger(32))
      return std::nullopt;
    const auto a = narrowStep(sum.getLhs()), b = narrowStep(sum.getRhs());
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }

private:
  static bool isWide(mlir::Value value) { return value.getType().isIndex() || value.getType().isInteger(64); }

  scf::ForOp loop_;
};

}  // namespace

/// Empty: the loop reads no rows, or more than reads and computes.
llvm::SmallVector<RegionEmitter::RowLoads> RegionEmitter::findRows(scf::ForOp loop) {
  llvm::SmallVector<RowLoads> rows;
  llvm::APInt step;
  if (!(e_.features.avx2 || e_.features.avx512) || shape_.width % kRow != 0 || section_.op || mask_ ||
      loop.getNumRegionIterArgs() == 0 || !mlir::matchPattern(loop.getStep(), mlir::m_One()) ||
      loop.getBody()->getOperations().size() > kMostOps)
    return {};
  llvm::SmallVector<std::pair<ir::LoadOp, Index>> found;
  for (mlir::Operation& op : loop.getBody()->without_terminator()) {
    auto load = mlir::dyn_cast<ir::LoadOp>(op);
    if (!load && (!isElementwise(&op) || op.getNumRegions() != 0))
      return {};
    if (!load || load.getMask() || load.getIndices().size() != 1 ||
        !load.getView().getType().getElementType().isF32() || analysis_.form(load.getIndices()[0]).isUniform() ||
        !loop.isDefinedOutsideOfLoop(load.getView()))
      continue;
    Index index;
    if (IndexParser parser(loop);
        parser.add(load.getIndices()[0], 1, index) && (index.step == 1 || index.step == 2 || index.step == 4))
      found.emplace_back(load, index);
  }
  llvm::sort(found, [](const auto& a, const auto& b) { return a.second.constant < b.second.constant; });
  llvm::SmallVector<Index> firsts;
  for (auto& [load, index] : found) {
    bool isJoined = false;
    for (auto [row, first] : llvm::zip(rows, firsts)) {
      const int64_t behind = index.constant - first.constant;
      if (row.first.getView() != load.getView() || first.invariant != index.invariant || first.step != index.step ||
          behind >= index.step)
        continue;
      row.loads.emplace_back(load, behind);
      isJoined = true;
      break;
    }
    if (isJoined)
      continue;
    rows.push_back({load, index.step, {{load, 0}}, {}});
    for (mlir::Value each : index.invariant)
      if (!loop.isDefinedOutsideOfLoop(each))
        rows.back().narrow.push_back(each.getDefiningOp());
    firsts.push_back(index);
  }
  constexpr size_t kMostRows = 4;
  const bool isAlike = llvm::all_of(rows, [&](const RowLoads& row) { return row.step == rows[0].step; });
  return isAlike && rows.size() <= kMostRows ? rows : llvm::SmallVector<RowLoads>();
}

/// Whether the next `count` elements of each lane's row are there, i1; null: that is not known of them. Their lanes' first ones in `offset`.
Value* RegionEmitter::proveRows(scf::ForOp loop, const RowLoads& row, int64_t count, Lane& offset) {
  ir::LoadOp load = row.first;
  llvm::DenseSet<mlir::Operation*> emitted;
  emitChain(*loop.getBody(), load.getIndices()[0], emitted);
  Access all = access(load.getView(), load.getIndices(), {}, load.getGuarded()), inOrder, apart;
  Value* holds = spaced(all, inOrder, apart);
  if (!holds)
    inOrder = all;
  offset = inOrder.offset;
  if (!offset.isAffine() || offset.constantStride().value_or(kRow) < 2)
    return nullptr;
  for (auto [index, extent] : inOrder.bounds) {
    const Lane last = math_.add(index, Lane::uniform(ir_.getInt64(count - 1)));
    for (const Lane& end : {index, last}) {
      Value* inside = math_.provesAll(llvm::CmpInst::ICMP_ULT, end, extent);
      if (!inside)
        return nullptr;
      holds = holds ? ir_.CreateAnd(holds, inside) : inside;
    }
  }
  for (mlir::Operation* narrow : row.narrow) {
    // Until the batch ends.
    const Lane wide = lane(narrow->getResult(0)).spaced();
    if (!wide.isUniform() && !wide.isAffine())
      return nullptr;
    Value* most = wide.isUniform()
                      ? wide.value
                      : ir_.CreateAdd(wide.value, ir_.CreateMul(wide.stride, ir_.getInt64(shape_.width - 1)));
    most = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, wide.value, most);
    Value* stays = ir_.CreateICmpULT(ir_.CreateAdd(most, ir_.getInt64(count)), ir_.getInt64(int64_t{1} << 32));
    holds = holds ? ir_.CreateAnd(holds, stays) : stays;
  }
  return holds;
}

/// Four registers, in each piece of four elements by itself: element i of vector j becomes element j of vector i. That is a matrix of four columns where
/// the pieces of a register are rows four apart, which loads of pieces make of it: half of what a transposition of whole registers shuffles, and
/// nothing moves between pieces, which takes longest.
static void transposePieces(llvm::IRBuilder<>& ir, llvm::MutableArrayRef<Value*> v) {
  const int width = int(llvm::cast<llvm::FixedVectorType>(v[0]->getType())->getNumElements());
  const auto shuffle = [&](Value* a, Value* b, std::array<int, 4> piece) {
    llvm::SmallVector<int> mask;
    for (int first = 0; first < width; first += kPiece)
      for (int i : piece)
        mask.push_back(first + (i < kPiece ? i : i - kPiece + width));
    return ir.CreateShuffleVector(a, b, mask);
  };
  Value *low[2], *high[2];
  for (unsigned i = 0; i < 2; ++i) {
    low[i] = shuffle(v[2 * i], v[2 * i + 1], {0, 4, 1, 5});
    high[i] = shuffle(v[2 * i], v[2 * i + 1], {2, 6, 3, 7});
  }
  v[0] = shuffle(low[0], low[1], {0, 1, 4, 5});
  v[1] = shuffle(low[0], low[1], {2, 3, 6, 7});
  v[2] = shuffle(high[0], high[1], {0, 1, 4, 5});
  v[3] = shuffle(high[0], high[1], {2, 3, 6, 7});
}

/// Where the row of a lane is, given as i64.
Value* RegionEmitter::rowPointer(const RowLoads& row, const Lane& offset, Value* lane) {
  ir::LoadOp load = row.first;
  const Access all = access(load.getView(), load.getIndices(), {}, false);
  return elementPointer(ir_, all.type, all.pointer, ir_.CreateAdd(offset.value, ir_.CreateMul(offset.stride, lane)));
}

/// Vector k: element k of each lane's row, which begins at `pointer(lane)`.
Values RegionEmitter::loadColumns(llvm::function_ref<Value*(Value* lane)> pointer) {
  llvm::Type* piece = llvm::FixedVectorType::get(ir_.getFloatTy(), kPiece);
  const unsigned width = e_.features.avx512 && shape_.width % 16 == 0 ? 16 : 8;
  llvm::SmallVector<Value*> rows(shape_.width);
  for (unsigned lane = 0; lane < shape_.width; ++lane)
    rows[lane] = pointer(ir_.getInt64(lane));
  Values columns(kRow);
  for (int64_t first = 0; first < kRow; first += kPiece)
    for (unsigned lane = 0; lane < shape_.width; lane += width) {
      Value* v[kPiece];
      for (unsigned i = 0; i < kPiece; ++i) {
        llvm::SmallVector<Value*> pieces;
        for (unsigned row = lane + i; row < lane + width; row += kPiece) {
          Value* at = ir_.CreateGEP(ir_.getFloatTy(), rows[row], ir_.getInt64(first));
          pieces.push_back(ir_.CreateAlignedLoad(piece, at, llvm::Align(4)));
        }
        v[i] = llvm::concatenateVectors(ir_, pieces);
      }
      transposePieces(ir_, v);
      for (unsigned i = 0; i < kPiece; ++i) {
        Value*& column = columns[size_t(first) + i];
        column = column ? joined(column, v[i]) : v[i];
      }
    }
  return columns;
}

/// Copies `count` elements of each lane's row to `staged`, row by row.
void RegionEmitter::stageRows(const RowLoads& row, const Lane& offset, llvm::AllocaInst* staged, int64_t count) {
  const int64_t piece = e_.features.avx512 ? 16 : 8;
  llvm::Type* vector = llvm::FixedVectorType::get(ir_.getFloatTy(), unsigned(piece));
  emit::emitFor(ir_, ir_.getInt64(0), ir_.getInt64(shape_.width), ir_.getInt64(1), [&](Value* lane) {
    Value *from = rowPointer(row, offset, lane),
          *to = ir_.CreateGEP(ir_.getFloatTy(), staged, ir_.CreateMul(lane, ir_.getInt64(count)));
    for (int64_t i = 0; i < count; i += piece) {
      const auto at = [&](Value* base) { return ir_.CreateGEP(ir_.getFloatTy(), base, ir_.getInt64(i)); };
      ir_.CreateAlignedStore(ir_.CreateAlignedLoad(vector, at(from), llvm::Align(4)), at(to), llvm::Align(4));
    }
  });
}

Value* RegionEmitter::joined(Value* low, Value* high) {
  auto* from = llvm::cast<llvm::FixedVectorType>(low->getType());
  const unsigned count = from->getNumElements(),
                 more = llvm::cast<llvm::FixedVectorType>(high->getType())->getNumElements();
  llvm::SmallVector<int> all, wide;
  for (unsigned i = 0; i < count + more; ++i)
    all.push_back(int(i));
  for (unsigned i = 0; i < count; ++i)
    wide.push_back(i < more ? int(i) : -1);
  if (more < count)
    high = ir_.CreateShuffleVector(high, wide);
  return ir_.CreateShuffleVector(low, high, all);
}

/// The rounds whose elements are `columns`, one vector each for all lanes, from round `counter` on; gives what the loop carries then.
Values RegionEmitter::emitRounds(scf::ForOp loop, Value* counter, Values carried, llvm::ArrayRef<RowLoads> rows,
                                 llvm::ArrayRef<Values> columns) {
  for (int64_t round = 0; round < kRow / rows[0].step; ++round) {
    set(loop.getInductionVar(), Lane::uniform(ir_.CreateAdd(counter, ir_.getInt64(round))));
    setAll(loop.getRegionIterArgs(), carried);
    for (auto [row, column] : llvm::zip(rows, columns))
      for (auto [load, behind] : row.loads)
        loaded_[load] = column[size_t(round * row.step + behind)];
    emitBlock(*loop.getBody());
    carried = yields(loop.getBody()->getTerminator(), loop.getRegionIterArgs());
  }
  loaded_.clear();
  return carried;
}

/// As many rounds as `count` elements of a row are, again and again as long as rows are inside of their bounds. State: the counter, and what
/// the loop carries. `when` (may be null) and `body`: of the rows' first places; `body` of the counter and what is carried, too.
Values RegionEmitter::emitPieces(scf::ForOp loop, llvm::ArrayRef<RowLoads> rows, int64_t count, Value* upper,
                                 const Values& state, PieceTest when, PieceBody body) {
  const int64_t rounds = count / rows[0].step;
  llvm::SmallVector<Lane> offsets(rows.size());
  bool isKnown = true;
  const auto before = [&](llvm::ArrayRef<Value*> args, Values& forwarded) {
    forwarded.assign(args.begin(), args.end());
    set(loop.getInductionVar(), Lane::uniform(args[0]));
    Value* goesOn = ir_.CreateAnd(ir_.CreateICmpSLT(args[0], upper),
                                  ir_.CreateICmpUGE(ir_.CreateSub(upper, args[0]), ir_.getInt64(rounds)));
    for (auto [row, offset] : llvm::zip(rows, offsets)) {
      Value* inside = proveRows(loop, row, count, offset);
      isKnown &= inside != nullptr;
      goesOn = inside ? ir_.CreateAnd(goesOn, inside) : ir_.getFalse();
    }
    return !isKnown || !when ? goesOn : ir_.CreateAnd(goesOn, when(offsets));
  };
  const auto after = [&](llvm::ArrayRef<Value*> args) {
    Values next{ir_.CreateAdd(args[0], ir_.getInt64(rounds))};
    llvm::append_range(next, isKnown ? body(offsets, args[0], Values(args.drop_front())) : Values(args.drop_front()));
    return next;
  };
  return emit::emitWhile(ir_, state, before, after);
}

/// Rounds in pieces and batches; gives the counter and what the loop carries behind them. Nothing: the loop reads no rows.
std::optional<Values> RegionEmitter::emitBatches(scf::ForOp loop, Value* lower, Value* upper, const Values& initial) {
  const llvm::SmallVector<RowLoads> rows = findRows(loop);
  if (rows.empty())
    return std::nullopt;
  const int64_t count = std::max(2 * kRow, kStaged / (int64_t(shape_.width) * int64_t(rows.size())));
  llvm::Type* staging = llvm::ArrayType::get(ir_.getFloatTy(), uint64_t(count) * shape_.width);
  llvm::SmallVector<llvm::AllocaInst*> staged;
  for (size_t i = 0; i < rows.size(); ++i)
    staged.push_back(entryAlloca(ir_, staging));
  Values state{lower};
  llvm::append_range(state, initial);
  const auto shareSets = [&](llvm::ArrayRef<Lane> offsets) {
    Value* any = ir_.getFalse();
    for (const Lane& offset : offsets)
      any = ir_.CreateOr(any, ir_.CreateICmpEQ(ir_.CreateURem(offset.stride, ir_.getInt64(kFewSets)), ir_.getInt64(0)));
    return any;
  };
  state = emitPieces(
      loop, rows, count, upper, state, shareSets, [&](llvm::ArrayRef<Lane> offsets, Value* counter, Values carried) {
        for (auto [row, offset, copy] : llvm::zip(rows, offsets, staged))
          stageRows(row, offset, copy, count);
        return emit::emitFor(ir_, ir_.getInt64(0), ir_.getInt64(count), ir_.getInt64(kRow), carried,
                             [&](Value* first, llvm::ArrayRef<Value*> args) {
                               llvm::SmallVector<Values> columns;
                               for (llvm::AllocaInst* copy : staged)
                                 columns.push_back(loadColumns([&](Value* lane) {
                                   return ir_.CreateGEP(ir_.getFloatTy(), copy,
                                                        ir_.CreateAdd(ir_.CreateMul(lane, ir_.getInt64(count)), first));
                                 }));
                               Value* round = ir_.CreateAdd(counter, ir_.CreateUDiv(first, ir_.getInt64(rows[0].step)));
                               return emitRounds(loop, round, Values(args), rows, columns);
                             });
      });
  return emitPieces(loop, rows, kRow, upper, state, nullptr,
                    [&](llvm::ArrayRef<Lane> offsets, Value* counter, Values carried) {
                      llvm::SmallVector<Values> columns;
                      for (auto [row, offset] : llvm::zip(rows, offsets))
                        columns.push_back(loadColumns([&](Value* lane) { return rowPointer(row, offset, lane); }));
                      return emitRounds(loop, counter, std::move(carried), rows, columns);
                    });
}

}  // namespace vortex::target::cpu::emit
