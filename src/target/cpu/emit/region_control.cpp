// Control flow of thread regions: branches where all lanes agree, masks where they do not.
#include "base/check.h"
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

namespace scf = mlir::scf;
using llvm::Value;

/// Branches nested deeper than this are not duplicated for warps whose lanes all agree.
static constexpr unsigned kMaxVersions = 3;
/// Side-effect-free bodies up to this many operations run under a mask instead of a branch.
static constexpr unsigned kMaxPredicatedOps = 12;

void RegionEmitter::withMask(Value* mask, bool nonEmpty, llvm::function_ref<void()> body) {
  Value* savedMask = mask_;
  bool savedNonEmpty = maskNonEmpty_;
  mask_ = mask;
  maskNonEmpty_ = nonEmpty;
  body();
  mask_ = savedMask;
  maskNonEmpty_ = savedNonEmpty;
}

Values RegionEmitter::packAll(mlir::ValueRange values, mlir::ValueRange formsOf) {
  Values packed;
  for (auto [value, like] : llvm::zip(values, formsOf))
    packed.push_back(pack(lane(value), form(like)));
  return packed;
}

Values RegionEmitter::yields(mlir::Operation* terminator, mlir::ValueRange likeResults) {
  return packAll(terminator->getOperands(), likeResults);
}

void RegionEmitter::setAll(mlir::ValueRange targets, llvm::ArrayRef<Value*> packed) {
  VORTEX_CHECK(targets.size() <= packed.size());
  for (auto [target, value] : llvm::zip(targets, packed))
    set(target, unpack(value, form(target)));
}

//===-- if ----------------------------------------------------------------------------------------------------===//

void RegionEmitter::emitIf(scf::IfOp op) {
  Lane condition = lane(op.getCondition());
  if (!condition.isUniform())
    return runsByLane(op) ? emitByLane(op) : emitDivergentIf(op);
  Values merged = emit::emitIf(
      ir_, condition.value,
      [&] {
        emitBlock(*op.thenBlock());
        return yields(op.thenYield(), op.getResults());
      },
      [&] {
        if (!op.elseBlock())
          return Values{};
        emitBlock(*op.elseBlock());
        return yields(op.elseYield(), op.getResults());
      });
  setAll(op.getResults(), merged);
}

static bool isCheap(mlir::Region& region) {
  if (region.empty())
    return true;
  unsigned count = 0;
  for (mlir::Operation& op : region.front())
    if (++count > kMaxPredicatedOps || (!isElementwise(&op) && !op.hasTrait<mlir::OpTrait::IsTerminator>()))
      return false;
  return true;
}

void RegionEmitter::emitDivergentIf(scf::IfOp op) {
  Lane condition = lane(op.getCondition());
  bool branch = !isCheap(op.getThenRegion()) || !isCheap(op.getElseRegion());
  if (!branch || mask_ || versions_ >= kMaxVersions)
    return setAll(op.getResults(), emitDivergentSides(op, condition.value, branch));
  // Most warps take one side as a whole: they get a copy without masks.
  ++versions_;
  Value* allTrue = condition.allTrue ? condition.allTrue : allLanes(ir_, condition.value);
  Values merged = emit::emitIf(
      ir_, allTrue,
      [&] {
        emitBlock(*op.thenBlock());
        return yields(op.thenYield(), op.getResults());
      },
      [&] { return emitMixed(op, condition); });
  --versions_;
  setAll(op.getResults(), merged);
}

/// Some lanes are false. Often all of them: then nothing needs a mask either.
Values RegionEmitter::emitMixed(scf::IfOp op, const Lane& condition) {
  if (!condition.noneTrue)
    return emitDivergentSides(op, condition.value, true);
  return emit::emitIf(
      ir_, condition.noneTrue,
      [&] {
        if (!op.elseBlock())
          return Values{};
        emitBlock(*op.elseBlock());
        return yields(op.elseYield(), op.getResults());
      },
      [&] { return emitDivergentSides(op, condition.value, true); });
}

/// Both sides under their masks; results as vectors. `branch`: skip a side that no lane takes.
Values RegionEmitter::emitDivergentSides(scf::IfOp op, Value* condition, bool branch) {
  auto side = [&](mlir::Block* block, Value* mask) {
    Values results;
    if (!block)
      return results;
    auto body = [&] {
      withMask(mask, branch, [&] {
        emitBlock(*block);
        results = yields(block->getTerminator(), op.getResults());
      });
      return results;
    };
    if (!branch)
      return body();
    return emit::emitIf(ir_, anyLane(ir_, mask), body, [&] {
      Values none;
      for (mlir::Value result : op.getResults())
        none.push_back(e_.zero(result.getType(), form(result).kind == Form::Kind::Uniform ? 1 : shape_.width));
      return none;
    });
  };
  Value* thenMask = math_.andMask(mask_, condition);
  Values thenValues = side(op.thenBlock(), thenMask);
  Value* elseMask = op.elseBlock() ? math_.andMask(mask_, ir_.CreateNot(condition)) : nullptr;
  Values elseValues = side(op.elseBlock(), elseMask);
  Values merged;
  for (auto [thenValue, elseValue] : llvm::zip(thenValues, elseValues))
    merged.push_back(ir_.CreateSelect(condition, thenValue, elseValue));
  return merged;
}

//===-- for ---------------------------------------------------------------------------------------------------===//

void RegionEmitter::emitFor(scf::ForOp op) {
  if (shape_.width != 1 && analysis_.diverges(op))
    return runsByLane(op) ? emitByLane(op) : emitDivergentFor(op);
  Lane lower = lane(op.getLowerBound()), upper = lane(op.getUpperBound()), step = lane(op.getStep());
  VORTEX_CHECK(step.isUniform() && lower.constantStride() && lower.constantStride() == upper.constantStride());
  Values initial = packAll(op.getInitArgs(), op.getRegionIterArgs());
  if (lower.isUniform())
    if (auto left = emitBatches(op, lower.value, upper.value, initial)) {
      lower.value = left->front();
      initial.assign(left->begin() + 1, left->end());
    }
  Values results =
      emit::emitFor(ir_, lower.value, upper.value, step.value, initial, [&](Value* iv, llvm::ArrayRef<Value*> carried) {
        set(op.getInductionVar(), lower.isUniform() ? Lane::uniform(iv) : Lane::affine(iv, lower.stride));
        setAll(op.getRegionIterArgs(), carried);
        emitBlock(*op.getBody());
        return yields(op.getBody()->getTerminator(), op.getRegionIterArgs());
      });
  for (auto [result, argument, value] : llvm::zip(op.getResults(), op.getRegionIterArgs(), results))
    set(result, unpack(value, form(argument)));
}

/// Lanes leave one after another; the loop ends when none is left. Values that differ between lanes keep their last state in lanes that
/// left; the others are recorded per lane as they change.
void RegionEmitter::emitDivergentFor(scf::ForOp op) {
  Form ivForm = form(op.getInductionVar());
  Lane upper = lane(op.getUpperBound()), step = lane(op.getStep());
  auto isVarying = [&](mlir::Value value) { return form(value).kind == Form::Kind::Varying; };
  // State: induction variable, carried values, recorded results of carried values that are not vectors.
  Values initial{pack(lane(op.getLowerBound()), ivForm)};
  initial.append(packAll(op.getInitArgs(), op.getRegionIterArgs()));
  llvm::SmallVector<int> record(op.getNumResults(), -1);
  for (auto [i, argument] : llvm::enumerate(op.getRegionIterArgs()))
    if (!isVarying(argument) && !op.getResult(i).use_empty()) {
      record[i] = initial.size();
      initial.push_back(vector(op.getInitArgs()[i]));
    }
  Value* active = nullptr;
  auto before = [&](llvm::ArrayRef<Value*> args, Values& forwarded) {
    forwarded.assign(args.begin(), args.end());
    Lane iv = unpack(args[0], ivForm);
    active = math_.andMask(mask_, math_.vector(math_.compare(llvm::CmpInst::ICMP_SLT, iv, upper)));
    return anyLane(ir_, active);
  };
  auto after = [&](llvm::ArrayRef<Value*> args) {
    Lane iv = unpack(args[0], ivForm);
    set(op.getInductionVar(), iv);
    setAll(op.getRegionIterArgs(), args.drop_front());
    Values next(args.begin(), args.end());
    withMask(active, true, [&] {
      emitBlock(*op.getBody());
      for (auto [i, yielded] : llvm::enumerate(op.getYieldedValues())) {
        mlir::Value argument = op.getRegionIterArgs()[i];
        Value* packed = pack(lane(yielded), form(argument));
        next[1 + i] = isVarying(argument) ? ir_.CreateSelect(active, packed, args[1 + i]) : packed;
        if (record[i] >= 0)
          next[record[i]] = ir_.CreateSelect(active, vector(yielded), args[record[i]]);
      }
    });
    next[0] = pack(math_.add(iv, step), ivForm);
    return next;
  };
  Values last = emit::emitWhile(ir_, initial, before, after);
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    if (!result.use_empty())
      set(result, Lane::varying(last[record[i] >= 0 ? record[i] : 1 + i]));
}

//===-- while -------------------------------------------------------------------------------------------------===//

void RegionEmitter::emitWhile(scf::WhileOp op) {
  if (shape_.width != 1 && analysis_.diverges(op))
    return runsByLane(op) ? emitByLane(op) : emitDivergentWhile(op);
  scf::ConditionOp condition = op.getConditionOp();
  Values results = emit::emitWhile(
      ir_, packAll(op.getInits(), op.getBeforeArguments()),
      [&](llvm::ArrayRef<Value*> args, Values& forwarded) {
        setAll(op.getBeforeArguments(), args);
        emitBlock(*op.getBeforeBody());
        forwarded = packAll(condition.getArgs(), op.getAfterArguments());
        return lane(condition.getCondition()).value;
      },
      [&](llvm::ArrayRef<Value*> args) {
        setAll(op.getAfterArguments(), args);
        emitBlock(*op.getAfterBody());
        return packAll(op.getYieldOp().getOperands(), op.getBeforeArguments());
      });
  for (auto [result, argument, value] : llvm::zip(op.getResults(), op.getAfterArguments(), results))
    set(result, unpack(value, form(argument)));
}

/// Masks that live across basic blocks: LLVM keeps <W x i1> as bytes there and repacks them for each use; whole words stay in the form
/// that comparisons produce and blends consume.
Value* RegionEmitter::packMask(Value* mask) {
  if (e_.features.avx512 || shape_.width == 1)
    return mask;
  return ir_.CreateSExt(mask, llvm::FixedVectorType::get(ir_.getInt32Ty(), shape_.width));
}

Value* RegionEmitter::unpackMask(Value* packed) {
  if (packed->getType()->getScalarType()->isIntegerTy(1))
    return packed;
  return ir_.CreateICmpSLT(packed, llvm::Constant::getNullValue(packed->getType()));
}

/// State: carried values, active lanes, recorded results. A lane's results are the values forwarded when its condition was last
/// evaluated, so they are taken from the active lanes each time.
void RegionEmitter::emitDivergentWhile(scf::WhileOp op) {
  scf::ConditionOp condition = op.getConditionOp();
  unsigned carried = op.getInits().size(), count = op.getNumResults();
  Values initial = packAll(op.getInits(), op.getBeforeArguments());
  initial.push_back(packMask(mask_ ? mask_ : fullMask()));
  for (mlir::Value result : op.getResults())
    initial.push_back(e_.zero(result.getType(), shape_.width));
  auto before = [&](llvm::ArrayRef<Value*> args, Values& forwarded) {
    setAll(op.getBeforeArguments(), args.take_front(carried));
    Value* active = unpackMask(args[carried]);
    withMask(active, true, [&] { emitBlock(*op.getBeforeBody()); });
    forwarded = packAll(condition.getArgs(), op.getAfterArguments());
    Value* next = math_.andMask(active, vector(condition.getCondition()));
    forwarded.push_back(packMask(next));
    for (unsigned i = 0; i < count; ++i)
      forwarded.push_back(ir_.CreateSelect(active, vector(condition.getArgs()[i]), args[carried + 1 + i]));
    return anyLane(ir_, next);
  };
  auto after = [&](llvm::ArrayRef<Value*> args) {
    setAll(op.getAfterArguments(), args.take_front(count));
    Values next;
    withMask(unpackMask(args[count]), true, [&] {
      emitBlock(*op.getAfterBody());
      next = packAll(op.getYieldOp().getOperands(), op.getBeforeArguments());
    });
    llvm::append_range(next, args.drop_front(count));
    return next;
  };
  Values last = emit::emitWhile(ir_, initial, before, after);
  for (unsigned i = 0; i < count; ++i)
    set(op.getResult(i), Lane::varying(last[count + 1 + i]));
}

}  // namespace vortex::target::cpu::emit
