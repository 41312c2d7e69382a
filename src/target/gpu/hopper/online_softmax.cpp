// A factor of the scores that is known to be positive goes into the exponent: exp2(fma(s, c, −m·c)). The rounded m·c is what is carried, so that its rounding
// is a common factor of the row: with exp2((m − m')·c) for what was summed before it would not be (2^-16 instead of 2^-22 at scores of some thousands).
#include "target/gpu/hopper/online_softmax.h"

#include <mlir/IR/Matchers.h>

#include <limits>
#include <numbers>

namespace vortex::target::gpu::hopper {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;

namespace {

constexpr unsigned kPair = 2;

/// The value of a tile of equal constants.
std::optional<double> constantOf(mlir::Value value) {
  if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>())
    value = broadcast.getValue();
  llvm::APFloat number(0.0);
  if (!mlir::matchPattern(value, mlir::m_ConstantFloat(&number)))
    return std::nullopt;
  return number.convertToDouble();
}

/// A positive factor of all finite scores, which may be the choice of a mask; 1 if there is none.
double factorOf(mlir::Value scores) {
  const auto isUsable = [](double factor) { return factor > 0x1p-60 && factor < 0x1p60; };
  if (auto product = scores.getDefiningOp<arith::MulFOp>())
    for (mlir::Value operand : product->getOperands())
      if (auto known = constantOf(operand); known && isUsable(*known))
        return *known;
  if (auto mask = scores.getDefiningOp<arith::SelectOp>()) {
    auto first = constantOf(mask.getTrueValue()), second = constantOf(mask.getFalseValue());
    if (first && std::isinf(*first))
      return factorOf(mask.getFalseValue());
    if (second && std::isinf(*second))
      return factorOf(mask.getTrueValue());
  }
  return 1;
}

}  // namespace

Values RowState::all() const {
  Values values(maxima);
  values.append(sums);
  return values;
}

void RowState::set(mlir::ValueRange values) {
  maxima = Values(values.take_front(maxima.size()));
  sums = Values(values.drop_front(maxima.size()).take_front(sums.size()));
}

OnlineSoftmax::OnlineSoftmax(Lowering& lowering, passes::StreamLoop stream, int64_t columns)
    : l_(lowering), v_(lowering), stream_(std::move(stream)), columns_(columns) {
  plain_ = masked_ = stream_.scores;
  if (auto apart = plain_.getDefiningOp<arith::SelectOp>(); apart && !tiles::isTile(apart.getCondition())) {
    isPlain_ = apart.getCondition();
    plain_ = apart.getTrueValue();
    masked_ = apart.getFalseValue();
    if (factorOf(plain_) != factorOf(masked_))
      plain_ = masked_;
  }
  double factor = factorOf(masked_);
  isFolded_ = factor != 1;
  factor_ = factor * (stream_.isBase2 ? 1 : std::numbers::log2e);
  llvm::SmallVector<mlir::Value> roots{masked_, stream_.weights};
  for (const passes::StreamLoop::Sum& sum : stream_.sums)
    roots.push_back(sum.terms);
  for (mlir::Value root : roots)
    tiles::Closure().walk(root, tiles::identityMap(tiles::rankOf(root)), [&](mlir::Value value, const tiles::DimMap&) {
      reads_ |= bool(value.getDefiningOp<ir::TileLoadOp>());
      return value != stream_.scoresProduct.getResult() && (value == root || value != stream_.exponentials);
    });
}

Value OnlineSoftmax::constant(double value) {
  return l_.b.create<arith::ConstantOp>(l_.loc, l_.b.getF32FloatAttr(static_cast<float>(value)));
}

RowState OnlineSoftmax::initial() const {
  auto number = [&](float value) -> Value {
    return l_.b.create<arith::ConstantOp>(l_.loc, l_.b.getF32FloatAttr(value));
  };
  return {Values(RowState::kHalves, number(-std::numeric_limits<float>::infinity())),
          Values(RowState::kHalves * stream_.sums.size(), number(0))};
}

/// Of columns `column`, `column` + 1 and this thread's place.
tiles::At OnlineSoftmax::position(const Chunk& chunk, int64_t half, int64_t column) {
  tiles::At at;
  at.lanes = kPair;
  at.index.assign(chunk.extents.size() - 1, tiles::Index{l_.constant(0), 0});
  at.index[stream_.rows] = {chunk.rows[static_cast<size_t>(half)], 0, reads_};
  at.index.push_back({l_.add(chunk.laneColumn, l_.constant(column)), 1, reads_});
  if (reads_)
    at.mask = l_.both(l_.less(at.index[stream_.rows].base, chunk.extents[stream_.rows]),
                      l_.less(at.index.back().base, chunk.count));
  return at;
}

/// Without the factor that the exponent has.
Value OnlineSoftmax::rawScores(mlir::Value scores, const tiles::At& at) {
  if (!isFolded_)
    return v_.eval(scores, at);
  if (auto product = scores.getDefiningOp<arith::MulFOp>())
    return v_.eval(constantOf(product.getLhs()) ? product.getRhs() : product.getLhs(), at);
  auto mask = llvm::cast<arith::SelectOp>(scores.getDefiningOp());
  auto side = [&](mlir::Value value) { return constantOf(value) ? v_.eval(value, at) : rawScores(value, at); };
  mlir::Value which = mask.getCondition();
  Value condition = tiles::isTile(which) ? v_.eval(which, at) : l_.scalar(which);
  return l_.b.create<arith::SelectOp>(l_.loc, condition, side(mask.getTrueValue()), side(mask.getFalseValue()));
}

/// What a mask leaves, −inf in columns that do not exist. Code of its own, for all that reaches beyond one chunk in many is there.
Values OnlineSoftmax::mask(const Chunk& chunk, Values plain) {
  Value isWhole = l_.less(l_.constant(columns_ - 1), chunk.count);
  if (plain_ != masked_)
    isWhole = l_.both(isWhole, l_.scalar(isPlain_));
  auto masked = [&] {
    tiles::Frame frame(v_);
    Values pairs = plain_ != masked_ ? scoresOf(masked_, chunk) : plain;
    Value none = constant(-std::numeric_limits<double>::infinity());
    Values result;
    for (auto [number, pair] : llvm::enumerate(pairs)) {
      Values lanes;
      for (unsigned lane = 0; lane < kPair; ++lane) {
        Value column =
            l_.add(chunk.laneColumn, l_.constant(static_cast<int64_t>(number / RowState::kHalves) * 8 + lane));
        lanes.push_back(l_.select(l_.less(column, chunk.count), tiles::extract(l_, pair, lane), none));
      }
      result.push_back(tiles::gather(l_, lanes));
    }
    return result;
  };
  return l_.emitIf(isWhole, [&] { return plain; }, masked);
}

Value OnlineSoftmax::acrossQuad(Value value, bool isMaximum) {
  for (int64_t distance : {1, 2}) {
    Value other = l_.b.create<vxt::ShuffleOp>(l_.loc, ir::ShuffleKind::Xor, value, l_.i32(distance), Value());
    value = isMaximum ? Value(l_.b.create<arith::MaximumFOp>(l_.loc, value, other))
                      : Value(l_.b.create<arith::AddFOp>(l_.loc, value, other));
  }
  return value;
}

Value OnlineSoftmax::maximumOf(llvm::ArrayRef<Value> pairs) {
  Value most = pairs[0];
  for (Value pair : pairs.drop_front())
    most = l_.b.create<arith::MaximumFOp>(l_.loc, most, pair);
  Value one = l_.b.create<arith::MaximumFOp>(l_.loc, tiles::extract(l_, most, 0), tiles::extract(l_, most, 1));
  return acrossQuad(one, true);
}

/// Weights are rounded to 16 bits, and what is lost below 2^-126 is nothing beside a row's largest exponential, which is 1.
Value OnlineSoftmax::exp2(Value value) {
  constexpr int64_t kBits = 11;
  auto power = l_.b.create<mlir::math::Exp2Op>(l_.loc, value);
  power->setAttr(ir::kNarrowAttr, l_.b.getI64IntegerAttr(kBits));
  power->setAttr(ir::kMayFlushAttr, l_.b.getUnitAttr());
  return power;
}

Values OnlineSoftmax::scorePairs(Chunk& chunk, mlir::ValueRange scores) {
  for (int64_t column = 0; column < columns_; column += 8)
    for (int64_t half = 0; half < 2; ++half) {
      chunk.places.push_back(position(chunk, half, column));
      auto first = static_cast<size_t>(column / 2 + 2 * half);
      v_.remember(stream_.scoresProduct.getResult(), chunk.places.back(),
                  tiles::gather(l_, {scores[first], scores[first + 1]}));
    }
  if (reads_)  // all loads first
    for (const tiles::At& at : chunk.places)
      v_.touch(masked_, at);
  return mask(chunk, scoresOf(plain_, chunk));
}

Values OnlineSoftmax::scoresOf(mlir::Value scores, const Chunk& chunk) {
  Values pairs;
  for (const tiles::At& at : chunk.places)
    pairs.push_back(rawScores(scores, at));
  return pairs;
}

/// Adds the new maximum and what earlier sums are multiplied by to the result; returns what is added to exponents.
Value OnlineSoftmax::growMaximum(llvm::ArrayRef<Value> pairs, size_t half, Result& result) {
  Values own;
  for (size_t i = half; i < pairs.size(); i += RowState::kHalves)
    own.push_back(pairs[i]);
  Value old = result.state.maxima[half];
  Value here = l_.b.create<arith::MulFOp>(l_.loc, maximumOf(own), constant(factor_));
  Value most = l_.b.create<arith::MaximumFOp>(l_.loc, old, here);
  result.state.maxima[half] = most;
  // Rows of which everything is masked so far: their exponentials are 0, not NaN.
  Value isNone = l_.b.create<arith::CmpFOp>(l_.loc, arith::CmpFPredicate::OEQ, most,
                                            constant(-std::numeric_limits<double>::infinity()));
  Value shift = l_.select(isNone, constant(0), most);
  result.rescales.push_back(exp2(l_.b.create<arith::SubFOp>(l_.loc, old, shift)));
  return tiles::splat(l_, l_.b.create<arith::NegFOp>(l_.loc, shift), kPair);
}

void OnlineSoftmax::weigh(const Chunk& chunk, llvm::ArrayRef<Value> pairs, llvm::ArrayRef<Value> shifts,
                          Result& result) {
  Value factor = tiles::splat(l_, constant(factor_), kPair);
  Values totals(result.state.sums.size());
  for (auto [number, at] : llvm::enumerate(chunk.places)) {
    size_t half = number % RowState::kHalves;
    Value power = exp2(l_.b.create<mlir::math::FmaOp>(l_.loc, pairs[number], factor, shifts[half]));
    v_.remember(stream_.exponentials, at, power);
    for (auto [sum, terms] : llvm::enumerate(stream_.sums)) {
      Value& total = totals[sum * RowState::kHalves + half];
      Value term = v_.eval(terms.terms, at);
      total = total ? Value(l_.b.create<arith::AddFOp>(l_.loc, total, term)) : term;
    }
    result.weights.push_back(v_.eval(stream_.weights, at));
  }
  for (auto [number, total] : llvm::enumerate(totals)) {
    Value own = l_.b.create<arith::AddFOp>(l_.loc, tiles::extract(l_, total, 0), tiles::extract(l_, total, 1));
    Value& sum = result.state.sums[number];
    Value scaled = l_.b.create<arith::MulFOp>(l_.loc, sum, result.rescales[number % RowState::kHalves]);
    sum = l_.b.create<arith::AddFOp>(l_.loc, scaled, own);
  }
}

Values OnlineSoftmax::pack(mlir::ValueRange weights) {
  auto word = mlir::VectorType::get({1}, l_.b.getI32Type());
  mlir::Type narrow = tiles::valueType(tiles::elementType(stream_.product.getA()), kPair);
  Values words;
  for (Value pair : weights) {
    Value rounded = l_.b.create<arith::TruncFOp>(l_.loc, narrow, pair);
    words.push_back(tiles::extract(l_, l_.b.create<mlir::vector::BitCastOp>(l_.loc, word, rounded), 0));
  }
  return words;
}

OnlineSoftmax::Result OnlineSoftmax::emit(mlir::ValueRange scores, Value row, Value count, const RowState& before) {
  tiles::Requirements aligned(l_);
  v_.wide = &aligned;
  tiles::Frame frame(v_);
  Value lane = l_.lane(), laneRow = l_.add(row, l_.div(lane, l_.constant(4)));
  Chunk chunk{{laneRow, l_.add(laneRow, l_.constant(8))},
              l_.mul(l_.rem(lane, l_.constant(4)), l_.constant(2)),
              count,
              v_.extents(stream_.scoresProduct.getResult()),
              {}};
  Values pairs = scorePairs(chunk, scores);
  Result result{before, {}, {}};
  Values shifts;
  for (size_t half = 0; half < RowState::kHalves; ++half)
    shifts.push_back(growMaximum(pairs, half, result));
  weigh(chunk, pairs, shifts, result);
  return result;
}

void OnlineSoftmax::finish(RowState& state) {
  for (Value& sum : state.sums)
    sum = acrossQuad(sum, false);
}

Value OnlineSoftmax::maximum(Value scaled) {
  double factor = stream_.isBase2 ? 1 : std::numbers::ln2;
  return l_.b.create<arith::MulFOp>(l_.loc, scaled, constant(factor));
}

}  // namespace vortex::target::gpu::hopper
