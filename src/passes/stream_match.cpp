#include "passes/stream_match.h"

#include "ir/root_view.h"
#include "passes/narrow_rewrites.h"
#include "passes/plan/clusters.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;

static RankedTensorType tileType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

StreamMatcher::StreamMatcher(ir::KernelOp kernel, const Axes& axes) : kernel_(kernel), axes_(axes) {
  kernel.walk([&](Operation* op) {
    if (auto store = dyn_cast<ir::TileStoreOp>(op))
      written_.insert(ir::rootView(store.getView()));
    else if (auto store = dyn_cast<ir::StoreOp>(op))
      written_.insert(ir::rootView(store.getView()));
  });
}

bool StreamMatcher::dependsOn(Value value, const llvm::DenseSet<Value>& sources) {
  llvm::DenseSet<Operation*> seen;
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (sources.contains(next))
      return true;
    Operation* op = next.getDefiningOp();
    if (op && seen.insert(op).second)
      Clusters::forEachOperand(op, [&](Value operand) { pending.push_back(operand); });
  }
  return false;
}

Value withoutRepetition(Value value) {
  for (;;) {
    Operation* op = value.getDefiningOp();
    if (auto broadcast = dyn_cast_if_present<ir::BroadcastOp>(op))
      value = broadcast.getValue();
    else if (auto reshape = dyn_cast_if_present<ir::ReshapeOp>(op)) {
      SmallVector<int64_t> from(reshape.getValue().getType().getShape()), to(tileType(value).getShape());
      llvm::erase(from, 1);
      llvm::erase(to, 1);
      if (from.size() != to.size())
        return value;
      value = reshape.getValue();
    } else {
      return value;
    }
  }
}

/// A broadcast whose last dimension is new, or stretched.
static bool repeatsLast(ir::BroadcastOp broadcast) {
  int64_t last = tileType(broadcast.getResult()).getRank() - 1;
  for (auto [dim, target] : llvm::enumerate(broadcast.getDims()))
    if (target == last)
      return tileType(broadcast.getValue()).getDimSize(static_cast<unsigned>(dim)) == 1;
  return true;
}

bool StreamMatcher::isRowwise(Value value) {
  if (!tileType(value))
    return true;
  Operation* op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op))
    return repeatsLast(broadcast);
  return ir::isElementwise(op) && llvm::all_of(op->getOperands(), isRowwise);
}

/// Along the rows of the scores in their order, with the last dimension new.
bool StreamMatcher::isRepeatedMaximum(const Stream& stream, Value value) const {
  ir::ReduceOp maximum = stream.maximum;
  if (withoutRepetition(value) != maximum.getResult() || !isRowwise(value))
    return false;
  SmallVector<Axis> rows = axes_.of(maximum.getResult()), all = axes_.of(value), scores = axes_.of(stream.scores);
  return all.size() == scores.size() && all.size() == rows.size() + 1 && ArrayRef(all).drop_back() == ArrayRef(rows) &&
         tileType(value).getShape() == tileType(stream.scores).getShape();
}

std::string StreamMatcher::findExponentials(Stream& stream) {
  bool hasOther = false;
  for (Operation* user : stream.scores.getUsers()) {
    auto difference = dyn_cast<arith::SubFOp>(user);
    if (!difference || difference.getLhs() != stream.scores)
      continue;
    bool isShifted = isRepeatedMaximum(stream, difference.getRhs());
    for (Operation* power : difference->getUsers()) {
      if (!isa<math::ExpOp, math::Exp2Op>(power))
        continue;
      bool isBase2 = isa<math::Exp2Op>(power);
      if (!isShifted || (!stream.exponentials.empty() && isBase2 != stream.isBase2)) {
        hasOther = true;
        continue;
      }
      if (!allowsContraction(difference) || !allowsContraction(power))
        return "`@strict` keeps the order of sums";
      stream.isBase2 = isBase2;
      stream.exponentials.push_back(power);
    }
  }
  if (stream.exponentials.empty())
    return hasOther ? "what is subtracted in the exponent is not the maximum along the same dimension" : "";
  return hasOther ? "one of its exponentials subtracts something else than the maximum" : "";
}

/// All roots that read a tile with the axis.
std::string StreamMatcher::findRoots(Stream& stream) {
  std::string reason;
  auto refuse = [&](const char* why) { reason = reason.empty() ? why : reason; };
  for (Operation& op : kernel_.getBody().front().without_terminator()) {
    bool reads = false;
    Clusters::forEachOperand(&op, [&](Value value) { reads |= hasAxis(value, stream.axis); });
    if (!reads || &op == stream.maximum || (isMemoryEffectFree(&op) && op.use_empty()))
      continue;
    if (auto dot = dyn_cast<ir::DotOp>(op)) {
      bool isContracted = axes_.of(dot.getA()).back() == stream.axis;
      if (isContracted)
        stream.dots.push_back(dot);
      else if (!hasAxis(dot.getResult(), stream.axis))
        refuse("a product uses the dimension in another way");
    } else if (auto reduce = dyn_cast<ir::ReduceOp>(op)) {
      bool isAlong = reduce.getDims() == ArrayRef<int64_t>{static_cast<int64_t>(stream.dim)} &&
                     axes_.of(reduce.getValue()) == axes_.of(stream.scores);
      if (isAlong && reduce.getKind() == ir::Combine::AddF)
        stream.sums.push_back(reduce);
      else if (hasAxis(reduce.getValue(), stream.axis))
        refuse("something else than the maximum and sums is computed along the same dimension");
    } else if (isa<ir::TileStoreOp>(op)) {
      refuse("scores, weights or the tensors they come from are stored as well");
    } else if (isa<ir::ScanOp, ir::ElementOp>(op) || op.getNumRegions() != 0 ||
               (!isMemoryEffectFree(&op) && !isa<ir::TileLoadOp>(op))) {
      refuse("something else than maximum, sums and products reads scores or weights");
    }
  }
  return reason;
}

std::string StreamMatcher::checkPiece(Value value, Axis axis, unsigned& products) {
  llvm::DenseSet<Operation*> seen;
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation* op = next.getDefiningOp();
    if (!hasAxis(next, axis) || !op || !seen.insert(op).second)
      continue;
    bool isKnown = ir::isElementwise(op) || isa<ir::BroadcastOp, ir::TransposeOp, ir::ReshapeOp, ir::SliceOp,
                                                ir::IotaOp, ir::TileLoadOp, ir::DotOp, arith::ConstantOp>(op);
    if (!isKnown || op->getBlock() != &kernel_.getBody().front() || op->hasAttr(kApartAttribute))
      return "the scores are more than elementwise functions of one product";
    if (axes_.wholeAxes(op).contains(axis))
      return "the scores need more than a part of the dimension at a time";
    if (auto load = dyn_cast<ir::TileLoadOp>(op); load && written_.contains(ir::rootView(load.getView())))
      return "a tensor that it reads is written as well";
    products += isa<ir::DotOp>(op);
    llvm::append_range(pending, op->getOperands());
  }
  return "";
}

llvm::DenseSet<Value> StreamMatcher::results(const Stream& stream) const {
  llvm::DenseSet<Value> found{ir::ReduceOp(stream.maximum).getResult()};
  for (Operation* power : stream.exponentials)
    found.insert(power->getResult(0));
  for (ir::ReduceOp sum : stream.sums)
    found.insert(sum.getResult());
  for (ir::DotOp dot : stream.dots)
    found.insert(dot.getResult());
  return found;
}

std::optional<Linear> StreamMatcher::linear(const Stream& stream, Value value, bool isProduct) const {
  Linear found;
  llvm::DenseSet<Value> own = results(stream);
  auto isZero = [](Value tile) {
    if (auto broadcast = tile.getDefiningOp<ir::BroadcastOp>())
      tile = broadcast.getValue();
    return matchPattern(tile, m_AnyZeroFloat());
  };
  while (!llvm::is_contained(stream.exponentials, value.getDefiningOp())) {
    Operation* op = value.getDefiningOp();
    if (!op || !isa<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::MulFOp, arith::DivFOp, arith::SelectOp>(op))
      return std::nullopt;
    unsigned first = isa<arith::SelectOp>(op) ? 1 : 0;
    std::optional<unsigned> through;
    for (unsigned i = first; i < op->getNumOperands(); ++i)
      if (llvm::any_of(stream.exponentials,
                       [&](Operation* power) { return dependsOn(op->getOperand(i), {power->getResult(0)}); }) &&
          !(isRowwise(op->getOperand(i))))
        if (std::exchange(through, i))
          return std::nullopt;
    if (!through || (isa<arith::DivFOp>(op) && *through != 0))
      return std::nullopt;
    bool isOutside = false;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (i == *through)
        continue;
      Value factor = op->getOperand(i);
      if (isa<arith::SelectOp>(op) && i != 0 && !isZero(factor))
        return std::nullopt;
      bool isOwn = dependsOn(factor, own);
      isOutside |= isProduct && isRowwise(factor) && isa<arith::MulFOp, arith::DivFOp>(op);
      if (isOwn && !isOutside)
        return std::nullopt;
    }
    found.steps.push_back({op, *through, isOutside});
    value = op->getOperand(*through);
  }
  std::reverse(found.steps.begin(), found.steps.end());
  return found;
}

std::string StreamMatcher::checkScores(const Stream& stream) {
  unsigned products = 0;
  if (std::string reason = checkPiece(stream.scores, stream.axis, products); !reason.empty())
    return reason;
  if (products != 1)
    return "the scores are not functions of one product";
  Type element = tileType(stream.scores).getElementType();
  return element.isF32() || element.isF64() ? "" : "the scores are neither f32 nor f64";
}

std::string StreamMatcher::checkLinear(const Stream& stream) {
  constexpr const char* kNotLinear = "a sum or product is not linear in exp(scores - maximum)";
  Type element = tileType(stream.scores).getElementType();
  llvm::DenseSet<Value> own = results(stream);
  auto checkFactors = [&](const Linear& chain) -> std::string {
    for (const Linear::Step& step : chain.steps)
      for (auto [i, operand] : llvm::enumerate(step.op->getOperands())) {
        unsigned products = 0;
        if (i == step.through || step.isOutside)
          continue;
        if (std::string reason = checkPiece(operand, stream.axis, products); !reason.empty())
          return reason;
        if (products != 0)
          return "a factor of the weights is a product";
      }
    return "";
  };
  for (ir::ReduceOp sum : stream.sums) {
    auto chain = linear(stream, sum.getValue(), false);
    if (!chain || tileType(sum.getValue()).getElementType() != element)
      return kNotLinear;
    if (std::string reason = checkFactors(*chain); !reason.empty())
      return reason;
  }
  for (ir::DotOp dot : stream.dots) {
    auto chain = linear(stream, dot.getA(), true);
    if (!chain)
      return kNotLinear;
    if (axes_.of(dot.getA()) != axes_.of(stream.scores) || dot.getType().getElementType() != element)
      return "the product of the weights has another shape or type";
    if (hasAxis(dot.getResult(), stream.axis) || !matchPattern(withoutRepetition(dot.getAcc()), m_AnyZeroFloat()))
      return "the product of the weights starts from other sums or repeats the dimension";
    unsigned products = 0;
    if (dependsOn(dot.getB(), own))
      return "the product's right side is computed from the weights";
    if (std::string reason = checkPiece(dot.getB(), stream.axis, products); !reason.empty() || products != 0)
      return "the product's right side is more than elementwise functions of loads";
    if (std::string reason = checkFactors(*chain); !reason.empty())
      return reason;
    for (const Linear::Step& step : chain->steps)
      if (step.isOutside && tileType(step.op->getResult(0)).getElementType() != element)
        return "a factor of the weights has another type than the sums";
  }
  return "";
}

/// What is computed from the results before the last of them must be able to move behind it.
std::string StreamMatcher::checkOrder(Stream& stream) {
  llvm::DenseSet<Value> own = results(stream);
  for (Value value : own) {
    Operation* op = value.getDefiningOp();
    if (isa<ir::ReduceOp, ir::DotOp>(op) && (!stream.last || stream.last->isBeforeInBlock(op)))
      stream.last = op;
  }
  for (Operation* op = stream.maximum->getNextNode(); op != stream.last; op = op->getNextNode()) {
    if (isMemoryEffectFree(op))
      continue;
    bool depends = false;
    Clusters::forEachOperand(op, [&](Value value) { depends |= dependsOn(value, own); });
    auto store = dyn_cast<ir::TileStoreOp>(op);
    bool isPlain = store && llvm::all_of(ir::rootView(store.getView()).getUsers(),
                                         [&](Operation* user) { return user == op || isa<ir::DimOp>(user); });
    if (depends && !isPlain && !isa<ir::TileLoadOp>(op))
      return "a result is stored or checked before the product";
  }
  return "";
}

std::variant<Stream, std::string> StreamMatcher::match(ir::ReduceOp maximum) {
  auto type = tileType(maximum.getValue());
  if (maximum.getKind() != ir::Combine::MaxF || maximum.getDims().size() != 1 || !tileType(maximum.getResult()) ||
      maximum.getDims()[0] != type.getRank() - 1)
    return "";
  Stream stream;
  stream.maximum = maximum;
  stream.scores = maximum.getValue();
  stream.dim = static_cast<unsigned>(maximum.getDims()[0]);
  stream.axis = axes_.of(stream.scores).back();
  std::string reason = findExponentials(stream);
  if (!reason.empty() || stream.exponentials.empty())
    return reason;
  if (reason = findRoots(stream); stream.dots.empty())
    return "";
  for (auto check : {&StreamMatcher::checkScores, &StreamMatcher::checkLinear})
    reason = reason.empty() ? (this->*check)(stream) : reason;
  reason = reason.empty() ? checkOrder(stream) : reason;
  if (!reason.empty())
    return reason;
  return stream;
}

}  // namespace vortex::passes
