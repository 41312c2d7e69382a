// Reductions, scans and products of tiles. Float sums and products accumulate in double and round once per result.
#include "interpreter/machine.h"
#include "interpreter/tile_walk.h"
#include "ir/look_back.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

namespace vortex::interpreter {

using ir::Combine;

namespace {

/// A running combination: of doubles for float sums and products, of cells otherwise.
class Accumulator {
public:
  Accumulator(Combine kind, Element element, uint64_t neutralBits)
      : kind_(kind), element_(element), wide_(kind == Combine::AddF || kind == Combine::MulF), bits_(neutralBits),
        value_(wide_ ? decode(element.format, neutralBits) : 0) {}

  void add(uint64_t bits) {
    if (!wide_) {
      bits_ = combine(kind_, element_, bits_, bits);
      return;
    }
    double next = decode(element_.format, bits);
    value_ = kind_ == Combine::AddF ? value_ + next : value_ * next;
  }
  uint64_t result() const { return wide_ ? encode(element_.format, value_) : bits_; }

private:
  Combine kind_;
  Element element_;
  bool wide_;
  uint64_t bits_;
  double value_;
};

/// The language's neutral element: that of a float sum is -0.0, but an empty sum is 0.0.
Accumulator startOf(Combine kind, mlir::Type elementType, bool isEmpty) {
  uint64_t start = isEmpty && kind == Combine::AddF ? 0 : neutral(kind, elementType);
  return Accumulator(kind, *elementOf(elementType), start);
}

bool reduce(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::ReduceOp>(node.op);
  const Value& source = machine.reg(node.operands[0]);
  Value& result = machine.reg(node.results[0]);
  mlir::Type elementType = mlir::getElementTypeOrSelf(op.getValue().getType());
  Shape kept, strides(source.shape.size(), 0);
  for (size_t dim = 0; dim < source.shape.size(); ++dim)
    if (!llvm::is_contained(op.getDims(), int64_t(dim)))
      kept.push_back(source.shape[dim]);
  Shape keptStrides = rowMajorStrides(kept);
  for (size_t dim = 0, next = 0; dim < source.shape.size(); ++dim)
    if (!llvm::is_contained(op.getDims(), int64_t(dim)))
      strides[dim] = keptStrides[next++];
  std::vector<Accumulator> sums(elementCount(kept), startOf(op.getKind(), elementType, source.cells.empty()));
  walk(source.shape, [&](size_t number, llvm::ArrayRef<int64_t> index) {
    int64_t target = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      target += index[dim] * strides[dim];
    sums[size_t(target)].add(source.cells[number]);
    return true;
  });
  result.shape = kept;
  result.cells.resize(sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    result.cells[i] = sums[i].result();
  return true;
}

/// Blocks run one after another here: each finds behind the piece before its own what all so far combine to.
bool scanPiece(Machine& machine, const Node& node, ir::ScanOp op, const Value& source, Value& result) {
  mlir::Type elementType = mlir::getElementTypeOrSelf(op.getValue().getType());
  int64_t number = static_cast<int64_t>(machine.reg(node.operands[1]).cells[0]);
  const View& state = machine.reg(node.operands[2]).views[0];
  auto word = [&](int64_t piece) {
    return state.element(state.offset + (ir::kLookBackHead + piece) * state.strides[0], 0);
  };
  Accumulator sum = startOf(op.getKind(), elementType, op.getExclusive());
  if (number > 0)
    sum.add(state.buffer->load(word(number - 1)));
  for (size_t i = 0; i < source.cells.size(); ++i) {
    uint64_t before = sum.result();
    sum.add(source.cells[i]);
    result.cells[i] = op.getExclusive() ? before : sum.result();
  }
  state.buffer->store(word(number), sum.result());
  return true;
}

bool scan(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::ScanOp>(node.op);
  const Value& source = machine.reg(node.operands[0]);
  Value& result = machine.reg(node.results[0]);
  result.shape = source.shape;
  result.cells.resize(source.cells.size());
  auto dim = size_t(op.getDim());
  size_t length = size_t(source.shape[dim]), inner = elementCount(llvm::ArrayRef(source.shape).drop_front(dim + 1));
  if (source.cells.empty())
    return true;
  mlir::Type elementType = mlir::getElementTypeOrSelf(op.getValue().getType());
  if (op.getState())
    return scanPiece(machine, node, op, source, result);
  for (size_t row = 0; row < source.cells.size() / length; ++row) {
    size_t first = row / inner * inner * length + row % inner;
    // An exclusive scan starts with the sum of nothing.
    Accumulator sum = startOf(op.getKind(), elementType, op.getExclusive());
    for (size_t i = 0; i < length; ++i) {
      size_t position = first + i * inner;
      uint64_t before = sum.result();
      sum.add(source.cells[position]);
      result.cells[position] = op.getExclusive() ? before : sum.result();
    }
  }
  return true;
}

struct DotShape {
  size_t batches, rows, columns, depth;
};

/// Integers wrap in the accumulator's width; narrower operands are sign-extended to it.
void dotIntegers(const DotShape& shape, Element from, Element to, const Value& a, const Value& b, Value& result) {
  auto operand = [&](uint64_t bits) { return uint64_t(signExtend(bits, from.width)); };
  for (size_t row = 0; row < shape.batches * shape.rows; ++row)
    for (size_t column = 0; column < shape.columns; ++column) {
      size_t batch = row / shape.rows;
      uint64_t& sum = result.cells[row * shape.columns + column];
      for (size_t k = 0; k < shape.depth; ++k)
        sum += operand(a.cells[row * shape.depth + k]) *
               operand(b.cells[(batch * shape.depth + k) * shape.columns + column]);
      sum &= to.mask();
    }
}

void dotFloats(const DotShape& shape, Element from, Element to, const Value& a, const Value& b, Value& result) {
  auto decoded = [](Format format, const std::vector<uint64_t>& cells) {
    std::vector<double> values(cells.size());
    llvm::transform(cells, values.begin(), [&](uint64_t bits) { return decode(format, bits); });
    return values;
  };
  std::vector<double> left = decoded(from.format, a.cells), right = decoded(from.format, b.cells);
  std::vector<double> sums = decoded(to.format, result.cells);
  for (size_t row = 0; row < shape.batches * shape.rows; ++row)
    for (size_t k = 0; k < shape.depth; ++k) {
      double factor = left[row * shape.depth + k];
      const double* source = &right[(row / shape.rows * shape.depth + k) * shape.columns];
      for (size_t column = 0; column < shape.columns; ++column)
        sums[row * shape.columns + column] += factor * source[column];
    }
  for (size_t i = 0; i < sums.size(); ++i)
    result.cells[i] = encode(to.format, sums[i]);
}

bool dot(Machine& machine, const Node& node) {
  auto op = llvm::cast<ir::DotOp>(node.op);
  const Value &a = machine.reg(node.operands[0]), &b = machine.reg(node.operands[1]),
              &acc = machine.reg(node.operands[2]);
  size_t rank = acc.shape.size();
  DotShape shape{elementCount(llvm::ArrayRef(acc.shape).drop_back(2)), size_t(acc.shape[rank - 2]),
                 size_t(acc.shape[rank - 1]), size_t(a.shape[rank - 1])};
  Shape expectedA = acc.shape, expectedB = acc.shape;
  expectedA[rank - 1] = expectedB[rank - 2] = a.shape[rank - 1];
  if (a.shape != expectedA)
    return reportShape(machine, node, a.shape, acc.shape);
  if (b.shape != expectedB)
    return reportShape(machine, node, a.shape, b.shape);
  Value& result = machine.reg(node.results[0]);
  result = acc;
  if (acc.cells.empty() || shape.depth == 0)
    return true;
  Element from = *elementOf(op.getA().getType()), to = *elementOf(op.getAcc().getType());
  (to.isFloat() ? dotFloats : dotIntegers)(shape, from, to, a, b, result);
  return true;
}

}  // namespace

NodeFunction findCombiningFunction(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, NodeFunction>(op)
      .Case<ir::ReduceOp>([](auto) { return reduce; })
      .Case<ir::ScanOp>([](auto) { return scan; })
      .Case<ir::DotOp>([](auto) { return dot; })
      .Default([](auto) { return nullptr; });
}

}  // namespace vortex::interpreter
