// The main loop, after the first stages - 1 steps are on their way:
//
//   for each step of the depth
//     for each part of the step: load the next part's fragments, multiply this part's
//       before the first part: start the copy of the step stages - 1 ahead, into the stage the last step has left
//       before the last part: wait for the next step's stage, barrier; its fragments are the next ones
//
// One barrier per step orders both directions: who passes it has read the old stage, and sees the new one. The order of sums is that of
// the depth, whatever the sizes.
#include "target/gpu/dot/product.h"

#include "base/check.h"
#include "base/text.h"
#include "ir/tile_sizes.h"
#include "target/gpu/access.h"
#include "target/gpu/dot/core.h"

#include <mlir/Dialect/Vector/IR/VectorOps.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu::dot {

namespace {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;

class Product {
public:
  Product(tiles::Evaluator& evaluator, ir::DotOp dot, const Plan& plan)
      : e_(evaluator), l(evaluator.l), n(evaluator.l), dot_(dot), rank_(tiles::rankOf(dot.getResult())),
        resultType_(tiles::elementType(dot.getResult())), plan_(plan) {}

  bool run() {
    shortenGeneralSteps();
    if (plan_.threads() != l.threads())
      return fail("a product of this size in a kernel with " + llvm::Twine(l.threads()) + " threads per block");
    if (!findBounds())
      return false;
    Values extents = e_.extents(dot_.getResult());
    Value depth = e_.extents(dot_.getA())[rank_ - 1];
    uint64_t elements = uint64_t(bounds_[rank_ - 2]) * pitch_;
    uint64_t batchElements = elements;
    for (unsigned dim = 0; dim + 2 < rank_; ++dim)
      elements *= static_cast<uint64_t>(bounds_[dim]);
    int64_t bytes = static_cast<int64_t>(elements) * vxt::scalarBytes(resultType_);
    // A product of several block tiles is kept while the next one is computed.
    bool single = bounds_[rank_ - 2] == plan_.rows && bounds_[rank_ - 1] == plan_.columns && elements == batchElements;
    if (single) {
      Values sums = multiplyTile(Values(rank_ - 2, l.constant(0)), l.constant(0), l.constant(0), extents, depth, {});
      store(*core_, sums, dot_.getResult(), bytes, extents);
    } else {
      SharedMemory::Piece kept = allocateResult(dot_.getResult(), bytes);
      result_ = {l.sharedPointer(kept), resultType_, pitch_};
      multiplyTiles(extents, depth, kept);
      setPlace(dot_.getResult(), kept, extents);
    }
    addAccumulator(extents);
    return true;
  }

  /// The product of one block tile, added to `sums`.
  SumsLayout add(Values& sums) {
    shortenGeneralSteps();
    Values extents = e_.extents(dot_.getResult());
    sums = multiplyTile({}, l.constant(0), l.constant(0), extents, e_.extents(dot_.getA())[1], sums);
    return *layout_;
  }

  /// Multiplies each row by its element of `factors`, a tile in memory. Matrix units of 16-bit operands give a thread two rows of sixteen.
  void scale(Values& sums, mlir::Value factors) {
    tiles::Frame frame(e_);
    auto load = factors.getDefiningOp<ir::TileLoadOp>();
    const tiles::Place* known = e_.place(factors);
    known ? l.hazards().read(known->base) : l.hazards().read(rootOf(load.getView()));
    WarpPlace place = warpPlace(n, plan_);
    Value first = n.add(place.row, n.shiftRight(place.lane, 2));
    const unsigned columns = plan_.warpColumns / 8;
    for (unsigned tile = 0; tile < plan_.warpRows / 16; ++tile) {
      Values each;
      for (unsigned half : {0, 8}) {
        tiles::At at;
        at.index = {{n.widen(n.add(first, n.constant(tile * 16 + half))), 0}, {l.constant(0), 0}};
        each.append(2, e_.eval(factors, at));
      }
      Value factor = l.b.create<mlir::vector::FromElementsOp>(l.loc, mlir::VectorType::get({4}, accType()), each);
      for (Value& sum : llvm::MutableArrayRef(sums).slice(tile * columns, columns))
        sum = l.b.create<arith::MulFOp>(l.loc, sum, factor);
    }
  }

  /// Gives `tile` a place in shared memory with these sums.
  void keep(const SumsLayout& layout, llvm::ArrayRef<Value> sums, mlir::Value tile) {
    VORTEX_CHECK(findBounds());
    int64_t bytes = bounds_[0] * pitch_ * vxt::scalarBytes(resultType_);
    store(*makeCore(layout), sums, tile, bytes, e_.extents(tile));
  }

  Values zeros() {
    unsigned perWarp = plan_.warpRows * plan_.warpColumns;
    if (plan_.unit == Unit::Simdgroup)
      return makeCore({plan_, {}, {}, accType(), accType()})->zeros();
    if (plan_.unit == Unit::Mma)
      return Values(perWarp / (16 * 8), l.zero(mlir::VectorType::get({4}, accType())));
    return Values(perWarp / 32, l.zero(accType()));
  }

private:
  bool fail(const llvm::Twine& message) {
    l.fail(dot_, message);
    return false;
  }

  std::unique_ptr<Core> makeCore(const SumsLayout& layout) {
    auto make = layout.plan.unit == Unit::Mma         ? makeMmaCore
                : layout.plan.unit == Unit::Simdgroup ? makeSimdgroupCore
                                                      : makeFmaCore;
    return make(l, layout.plan, layout.a, layout.b, layout.type, layout.accType);
  }

  /// A single block tile takes the place of the stages.
  void store(Core& core, llvm::ArrayRef<Value> sums, mlir::Value tile, int64_t bytes, const Values& extents) {
    SharedMemory::Piece kept = allocateResult(tile, bytes);
    result_ = {l.sharedPointer(kept), resultType_, pitch_};
    l.hazards().write(kept.root);
    core.store(sums, result_);
    setPlace(tile, kept, extents);
  }

  /// Code for tensors that lie anyhow has two ways to copy each operand: shorter steps keep it small. Assembling 128x128x64 took 0.45 s.
  void shortenGeneralSteps() {
    constexpr unsigned kLargeWarp = 64 * 64;
    auto isAligned = [&](mlir::Value operand) {
      auto window = findWindow(e_, operand);
      return window && window->view.alignedRows;
    };
    auto elementBytes = static_cast<unsigned>(vxt::scalarBytes(tiles::elementType(dot_.getA())));
    unsigned stepBytes = plan_.depth * elementBytes;
    if (plan_.depth >= 4 * matrixDepth(elementBytes) && plan_.unit == Unit::Mma &&
        plan_.warpRows * plan_.warpColumns >= kLargeWarp && stepBytes > 64 &&
        !(isAligned(dot_.getA()) && isAligned(dot_.getB())))
      plan_.depth /= 2;
  }

  /// Upper bounds of the result's extents, rounded up to block tiles.
  bool findBounds() {
    auto type = llvm::cast<mlir::RankedTensorType>(dot_.getType());
    auto sizes = ir::tileSizes(dot_.getResult());
    uint64_t elements = 1;
    for (unsigned dim = 0; dim < rank_; ++dim) {
      std::optional<int64_t> bound;
      if (!type.isDynamicDim(dim))
        bound = type.getDimSize(dim);
      else if (auto value = llvm::dyn_cast_if_present<mlir::Value>(sizes[dim]))
        bound = tiles::upperBound(value);
      if (!bound)
        return fail("a matrix product whose extents have no bound in the block");
      int64_t tile = dim + 2 == rank_ ? plan_.rows : dim + 1 == rank_ ? plan_.columns : 1;
      bounds_.push_back((std::max<int64_t>(1, *bound) + tile - 1) / tile * tile);
      elements *= static_cast<uint64_t>(bounds_.back());
      if (elements > (uint64_t(1) << 30))
        return fail("a matrix product too large for shared memory");
    }
    pitch_ = resultPitch(plan_, static_cast<unsigned>(vxt::scalarBytes(resultType_))) - plan_.columns +
             static_cast<unsigned>(bounds_[rank_ - 1]);
    return true;
  }

  /// All block tiles of a product that is larger than one.
  void multiplyTiles(const Values& extents, Value depth, const SharedMemory::Piece& kept) {
    Values index;
    auto loop = [&](auto& self, unsigned dim) -> void {
      if (dim == rank_) {
        Values sums = multiplyTile(Values(llvm::ArrayRef(index).drop_back(2)), index[rank_ - 2], index[rank_ - 1],
                                   extents, depth, {});
        Value place = l.constant(0);
        for (unsigned i = 0; i + 1 < rank_; ++i)
          place = l.mul(l.add(place, index[i]), l.constant(i + 2 == rank_ ? pitch_ : bounds_[i + 1]));
        place = l.add(place, index[rank_ - 1]);
        l.hazards().write(kept.root);
        ResultTile part = result_;
        part.pointer = l.b.create<vxt::OffsetOp>(l.loc, part.pointer.getType(), part.pointer, place, resultType_);
        core_->store(sums, part);
        l.hazards().barrier();  // the stages are written again
        return;
      }
      int64_t step = dim + 2 == rank_ ? plan_.rows : dim + 1 == rank_ ? plan_.columns : 1;
      if (bounds_[dim] == step) {
        index.push_back(l.constant(0));
        self(self, dim + 1);
        index.pop_back();
        return;
      }
      l.emitFor(l.constant(0), extents[dim], l.constant(step), {}, [&](Value i, mlir::ValueRange) {
        index.push_back(i);
        self(self, dim + 1);
        index.pop_back();
        return Values{};
      });
    };
    loop(loop, 0);
  }

  /// The sums of one block tile, in registers. `start`: to add to; empty: zeros.
  Values multiplyTile(const Values& batch, Value row, Value column, const Values& extents, Value depth, Values start) {
    SharedScope scope(l.shared());
    fitStages();
    Operand a(e_, dot_.getA(), true, plan_), b(e_, dot_.getB(), false, plan_);
    if (a.inPlace() && b.inPlace()) {
      a.announceReads();
      b.announceReads();
      return multiplyInPlace(a, b, batch, row, column, start);
    }
    auto stages = [&](const Operand& operand, mlir::Value tile) {
      auto piece =
          l.shared().take(stageBytes(operand), kStageAlignment,
                          base::concat(plan_.stages, " stages of ", plan_.depth, " steps of ", tiles::describe(tile)));
      l.hazards().write(piece.root);
      return piece;
    };
    std::optional<SharedMemory::Piece> stagesB;
    if (isSecondFirst_)
      stagesB = stages(b, dot_.getB());
    auto stagesA = stages(a, dot_.getA());
    if (!stagesB)
      stagesB = stages(b, dot_.getB());
    a.announceReads();
    b.announceReads();
    setResidency();
    a.begin(batch, row, extents[rank_ - 2], depth, l.sharedPointer(stagesA));
    b.begin(batch, column, extents[rank_ - 1], depth, l.sharedPointer(*stagesB));
    layout_ = SumsLayout{plan_, a.shared(), b.shared(), a.elementType(), accType()};
    core_ = makeCore(*layout_);
    Values sums = mainLoop(a, b, depth, start.empty() ? core_->zeros() : start);
    l.hazards().read(stagesA.root);
    l.hazards().read(stagesB->root);
    return sums;
  }

  SharedMemory::Piece allocateResult(mlir::Value tile, int64_t bytes) {
    return l.shared().take(bytes, 16, "product " + tiles::describe(tile));
  }

  static constexpr int64_t kStageAlignment = 1024;

  int64_t stageBytes(const Operand& operand) const {
    return static_cast<int64_t>(operand.shared().bytes() * plan_.stages);
  }

  /// Tiles that are alive now may leave less memory than the plan counts on: fewer steps are on their way then, and shorter ones.
  void fitStages() {
    constexpr unsigned kLeastStages = 2, kLeastDepth = 4;
    auto elementBytes = static_cast<unsigned>(vxt::scalarBytes(tiles::elementType(dot_.getA())));
    unsigned least = plan_.unit == Unit::Mma         ? 2 * matrixDepth(elementBytes)
                     : plan_.unit == Unit::Simdgroup ? 2 * kSimdgroupSide
                                                     : kLeastDepth;
    while (true) {
      Operand a(e_, dot_.getA(), true, plan_), b(e_, dot_.getB(), false, plan_);
      if ((a.inPlace() && b.inPlace()) || l.shared().makeRoom({stageBytes(a), stageBytes(b)}, kStageAlignment))
        return;
      isSecondFirst_ = l.shared().makeRoom({stageBytes(b), stageBytes(a)}, kStageAlignment);
      if (isSecondFirst_)
        return;
      if (plan_.stages > kLeastStages)
        --plan_.stages;
      else if (plan_.depth >= 2 * least)
        plan_.depth /= 2;
      else
        return;
    }
  }

  /// Both operands lie in shared memory as the matrix instructions can read them: no stages, and the depth is that of the tiles.
  Values multiplyInPlace(Operand& a, Operand& b, const Values& batch, Value row, Value column, Values sums) {
    setResidency();
    Plan whole = plan_;
    whole.depth = static_cast<unsigned>(a.knownDepth());
    layout_ = SumsLayout{whole, *a.inPlace(), *b.inPlace(), a.elementType(), accType()};
    core_ = makeCore(*layout_);
    if (sums.empty())
      sums = core_->zeros();
    Value left = a.placePointer(batch, row), right = b.placePointer(batch, column);
    Values fragments = core_->load(left, right, 0);
    for (unsigned step = 0; step < core_->steps(); ++step) {
      Values next = step + 1 < core_->steps() ? core_->load(left, right, step + 1) : Values{};
      core_->multiply(sums, fragments);
      fragments = next;
    }
    return sums;
  }

  /// Registers are limited so that the plan's blocks fit a core together.
  void setResidency() {
    mlir::Operation* parent = l.b.getInsertionBlock()->getParentOp();
    auto kernel = llvm::dyn_cast<vxt::KernelOp>(parent);
    if (!kernel)
      kernel = parent->getParentOfType<vxt::KernelOp>();
    kernel.setMinBlocks(plan_.blocks);
  }

  /// Narrow floats are summed in f32 and rounded once; matrix units add integers in 32 bits.
  mlir::Type accType() {
    auto type = llvm::dyn_cast<mlir::FloatType>(resultType_);
    if (!type && plan_.unit == Unit::Mma)
      return l.b.getI32Type();
    return type && type.getWidth() < 32 ? mlir::Type(l.b.getF32Type()) : resultType_;
  }

  Values mainLoop(Operand& a, Operand& b, Value depth, Values carried) {
    unsigned stages = plan_.stages;
    Value step = l.constant(plan_.depth);
    auto copy = [&](Value stage, Value k) {
      a.copy(stage, k);
      b.copy(stage, k);
    };
    l.emitFor(l.constant(0), l.constant(stages - 1), l.constant(1), {}, [&](Value stage, mlir::ValueRange) {
      copy(n.narrow(stage, stages), l.mul(stage, step));
      l.b.create<vxt::AsyncCommitOp>(l.loc);
      return Values{};
    });
    await();
    size_t sums = carried.size();
    carried.append(core_->load(a.stagePointer(n.constant(0)), b.stagePointer(n.constant(0)), 0));
    size_t registers = carried.size();
    carried.push_back(n.constant(0));           // the stage being multiplied
    carried.push_back(n.constant(stages - 1));  // the stage being filled
    Values last = l.emitFor(l.constant(0), depth, step, carried, [&](Value k, mlir::ValueRange values) {
      Values acc(values.take_front(sums)), fragments(values.slice(sums, registers - sums));
      Value reading = values[registers], writing = values[registers + 1];
      for (unsigned part = 0; part < core_->steps(); ++part) {
        bool isLast = part + 1 == core_->steps();
        if (isLast) {
          await();
          reading = following(reading);
        }
        Values next = core_->load(a.stagePointer(reading), b.stagePointer(reading), isLast ? 0 : part + 1);
        if (part == 0) {
          Value ahead = l.add(k, l.constant(int64_t(stages - 1) * plan_.depth));
          if (a.isStraight() && b.isStraight())
            copy(writing, ahead);
          else
            l.emitIf(l.less(ahead, depth), [&] { copy(writing, ahead); });
          l.b.create<vxt::AsyncCommitOp>(l.loc);
          writing = following(writing);
        }
        core_->multiply(acc, fragments);
        fragments = next;
      }
      Values result = acc;
      result.append(fragments);
      result.push_back(reading);
      result.push_back(writing);
      return result;
    });
    // Copies past the end of the depth write zeros into stages whose memory is used again.
    l.b.create<vxt::AsyncWaitOp>(l.loc, 0);
    last.resize(sums);
    return last;
  }

  Value following(Value stage) {
    Value next = n.add(stage, n.constant(1));
    Value wraps = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, next, n.constant(plan_.stages));
    return n.select(wraps, n.constant(0), next);
  }

  void await() {
    l.b.create<vxt::AsyncWaitOp>(l.loc, plan_.stages - 2);
    l.b.create<vxt::BarrierOp>(l.loc);
  }

  void setPlace(mlir::Value tile, const SharedMemory::Piece& kept, const Values& extents) {
    tiles::Place place;
    View& view = place.view;
    view.elementType = resultType_;
    view.space = ir::Space::Shared;
    view.pointer = result_.pointer;
    view.extents = extents;
    view.alignment = 16;
    Values strides(rank_, l.constant(1));
    int64_t stride = pitch_;
    for (unsigned dim = rank_ - 1; dim-- > 0;) {
      strides[dim] = l.constant(stride);
      stride *= bounds_[dim];
    }
    view.strides = strides;
    place.base = kept.root;
    place.window = kept.root;
    place.key = kept.root;
    e_.setPlace(tile, place);
  }

  /// acc + product, where acc is not zero.
  void addAccumulator(const Values& extents) {
    mlir::Value acc = dot_.getAcc();
    mlir::Value source = acc;
    if (auto broadcast = acc.getDefiningOp<ir::BroadcastOp>())
      source = broadcast.getValue();
    if (mlir::matchPattern(source, mlir::m_AnyZeroFloat()) || mlir::matchPattern(source, mlir::m_Zero()))
      return;
    const tiles::Place result = *e_.place(dot_.getResult());
    l.hazards().read(result.base);
    tiles::Closure().walk(acc, tiles::identityMap(rank_), [&](mlir::Value tile, const tiles::DimMap&) {
      if (const tiles::Place* place = e_.place(tile))
        l.hazards().read(place->view.root ? Hazards::rootOf(place->view.root) : place->base);
      return !e_.place(tile);
    });
    l.hazards().write(result.base);
    Value total = l.constant(1);
    for (Value extent : extents)
      total = l.mul(total, extent);
    l.emitFor(l.threadId(), total, l.constant(l.threads()), {}, [&](Value element, mlir::ValueRange) {
      tiles::Frame frame(e_);
      tiles::At at;
      at.index.resize(rank_);
      Value rest = element;
      for (unsigned dim = rank_; dim-- > 0;) {
        at.index[dim] = {dim == 0 ? rest : l.rem(rest, extents[dim]), 0};
        rest = l.div(rest, extents[dim]);
      }
      Value sum = tiles::loadElements(l, result, at, nullptr), start = e_.eval(acc, at);
      bool isFloat = llvm::isa<mlir::FloatType>(resultType_);
      Value both = isFloat ? Value(l.b.create<arith::AddFOp>(l.loc, start, sum))
                           : Value(l.b.create<arith::AddIOp>(l.loc, start, sum));
      tiles::storeElements(l, result, at, both, {}, nullptr, false);
      return Values{};
    });
  }

  tiles::Evaluator& e_;
  Lowering& l;
  Numbers n;
  ir::DotOp dot_;
  unsigned rank_;
  mlir::Type resultType_;
  Plan plan_;
  llvm::SmallVector<int64_t> bounds_;
  unsigned pitch_ = 0;
  bool isSecondFirst_ = false;  ///< the stages of B are allocated first, where only so both fit
  ResultTile result_;
  std::unique_ptr<Core> core_;
  std::optional<SumsLayout> layout_;
};

}  // namespace

bool lowerDot(tiles::Evaluator& evaluator, ir::DotOp dot) {
  Lowering& l = evaluator.l;
  if (std::optional<Plan> plan = planFor(l.state.chip, dot, l.threads()))
    return Product(evaluator, dot, *plan).run();
  l.fail(dot, "a product of " + llvm::Twine(tiles::elementType(dot.getA()).getIntOrFloatBitWidth()) +
                  "-bit elements in blocks with " + llvm::Twine(l.state.chip.sharedBytesPerBlock) +
                  " bytes of shared memory");
  return false;
}

bool fillsBlockTile(Lowering& l, ir::DotOp dot) {
  auto type = llvm::cast<mlir::RankedTensorType>(dot.getType());
  std::optional<Plan> plan = planFor(l.state.chip, dot, l.threads());
  return plan && type.getRank() == 2 && type.getDimSize(0) == plan->rows && type.getDimSize(1) == plan->columns &&
         plan->threads() == l.threads();
}

bool canScale(Lowering& l, ir::DotOp dot) {
  std::optional<Plan> plan = planFor(l.state.chip, dot, l.threads());
  return plan && plan->unit == Unit::Mma && tiles::elementType(dot.getResult()).isF32() &&
         tiles::elementType(dot.getA()).getIntOrFloatBitWidth() == 16;
}

/// Of a product that fillsBlockTile().
static Product blockTile(tiles::Evaluator& evaluator, ir::DotOp dot) {
  std::optional<Plan> plan = planFor(evaluator.l.state.chip, dot, evaluator.l.threads());
  VORTEX_CHECK(plan);
  return Product(evaluator, dot, *plan);
}

Values zeroSums(tiles::Evaluator& evaluator, ir::DotOp dot) { return blockTile(evaluator, dot).zeros(); }

SumsLayout addProduct(tiles::Evaluator& evaluator, ir::DotOp dot, Values& sums) {
  return blockTile(evaluator, dot).add(sums);
}

void scaleSums(tiles::Evaluator& evaluator, ir::DotOp dot, Values& sums, mlir::Value factors) {
  blockTile(evaluator, dot).scale(sums, factors);
}

void storeSums(tiles::Evaluator& evaluator, ir::DotOp dot, const SumsLayout& layout, llvm::ArrayRef<Value> sums,
               mlir::Value tile) {
  blockTile(evaluator, dot).keep(layout, sums, tile);
}

}  // namespace vortex::target::gpu::dot
