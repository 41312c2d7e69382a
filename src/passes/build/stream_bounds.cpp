#include "passes/build/stream_bounds.h"

#include "passes/build/mask_bounds.h"
#include "passes/stream_reductions.h"

#include "mlir/IR/Matchers.h"

namespace vortex::passes {

using namespace mlir;

namespace {

std::optional<llvm::APFloat> constantOf(Value value) {
  if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>())
    value = broadcast.getValue();
  llvm::APFloat number(0.0);
  return matchPattern(value, m_ConstantFloat(&number)) ? std::optional(number) : std::nullopt;
}

bool isNever(Value value) {
  auto number = constantOf(value);
  return number && number->isInfinity() && number->isNegative();
}

/// A choice between scores and -inf; nothing: it is none.
struct Masking {
  Value condition, scores;
  bool when;  ///< of the condition, where scores are kept
};

std::optional<Masking> choiceOf(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select || isNever(select.getTrueValue()) == isNever(select.getFalseValue()))
    return std::nullopt;
  bool when = isNever(select.getFalseValue());
  return Masking{select.getCondition(), when ? select.getTrueValue() : select.getFalseValue(), when};
}

/// The operand that is -inf where the result is; nothing: it has none such.
std::optional<unsigned> throughOf(Operation* op) {
  auto isFactor = [](Value value) {
    auto number = constantOf(value);
    return number && number->isFiniteNonZero() && !number->isNegative();
  };
  if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op))
    return 0;
  if (isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op) && isFactor(op->getOperand(1)))
    return 0;
  if (isa_and_nonnull<arith::MulFOp>(op) && isFactor(op->getOperand(0)))
    return 1;
  return std::nullopt;
}

/// Scores with choices in the way; those nearest to the result first.
class Masks {
public:
  explicit Masks(Value scores) {
    for (Value value = scores; value;) {
      if (auto choice = choiceOf(value)) {
        choices.push_back(*choice);
        value = choice->scores;
      } else if (auto through = throughOf(value.getDefiningOp())) {
        value = value.getDefiningOp()->getOperand(*through);
      } else {
        break;
      }
    }
  }

  /// The scores without choices.
  static Value plain(OpBuilder& builder, Value scores) {
    if (auto choice = choiceOf(scores))
      return plain(builder, choice->scores);
    Operation* op = scores.getDefiningOp();
    auto through = throughOf(op);
    Value before = through ? op->getOperand(*through) : Value(), after = through ? plain(builder, before) : Value();
    if (before == after)
      return scores;
    Operation* copy = builder.clone(*op);
    copy->setOperand(*through, after);
    return copy->getResult(0);
  }

  SmallVector<Masking, 2> choices;
};

ir::ReduceOp maximumOf(scf::ForOp loop) {
  for (auto reduce : loop.getBody()->getOps<ir::ReduceOp>())
    if (reduce.getKind() == ir::Combine::MaxF)
      return reduce;
  return {};
}

/// Chunks keep their places, whatever is skipped.
void setBounds(scf::ForOp loop, const Interval& some) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Value zero = b.create<arith::ConstantIndexOp>(loc, 0), extent = loop.getUpperBound(), step = loop.getStep();
  if (some.begin) {
    Value inside = b.create<arith::MinSIOp>(loc, b.create<arith::MaxSIOp>(loc, some.begin, zero), extent);
    Value rest = b.create<ir::IntOp>(loc, inside.getType(), ir::IntKind::RemU, inside, step);
    loop.setLowerBound(b.create<arith::SubIOp>(loc, inside, rest));
  }
  if (some.end)
    loop.setUpperBound(b.create<arith::MinSIOp>(loc, b.create<arith::MaxSIOp>(loc, some.end, zero), extent));
}

void setApart(scf::ForOp loop, Value masked, const Interval& all) {
  OpBuilder b(loop.getContext());
  b.setInsertionPointAfter(masked.getDefiningOp());
  Location loc = masked.getLoc();
  Value plain = Masks::plain(b, masked), first = loop.getInductionVar(), isWhole;
  Value last = b.create<arith::AddIOp>(loc, first, loop.getStep());
  if (all.begin)
    isWhole = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, first, all.begin);
  if (all.end) {
    Value isBefore = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, last, all.end);
    isWhole = isWhole ? b.create<arith::AndIOp>(loc, isWhole, isBefore) : isBefore;
  }
  if (!isWhole)
    return;
  auto chosen = b.create<arith::SelectOp>(loc, isWhole, plain, masked);
  masked.replaceAllUsesExcept(chosen, chosen);
}

}  // namespace

void boundStreams(ir::KernelOp phase, bool apart) {
  phase.walk([&](scf::ForOp loop) {
    ir::ReduceOp maximum = loop->hasAttr(kStreamedAttr) ? maximumOf(loop) : ir::ReduceOp();
    if (!maximum)
      return;
    Masks masks(maximum.getValue());
    if (masks.choices.empty())
      return;
    MaskBounds bounds(loop, static_cast<unsigned>(maximum.getDims()[0]));
    Kept kept{{}, Interval{}};
    for (const Masking& choice : masks.choices)
      kept = bounds.intersect(kept, bounds.kept(choice.condition, choice.when));
    setBounds(loop, kept.some);
    if (apart && kept.all)
      setApart(loop, maximum.getValue(), *kept.all);
  });
}

}  // namespace vortex::passes
