#include "passes/split_reshapes.h"

#include "ir/tile_sizes.h"
#include "passes/plan/size_expression.h"

#include <numeric>

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

namespace {

using Exprs = SmallVector<size::Expr>;

/// A product of powers, in lowest terms. Constants are `numerator / denominator`.
class Product {
public:
  /// `exact`: quotients that are taken apart.
  explicit Product(const llvm::SmallPtrSetImpl<const size::Node*>& exact) : exact_(&exact) {}

  void multiply(size::Expr expr, int power = 1) {
    if (auto constant = expr.constant()) {
      scale(*constant, power);
    } else if (expr.op() == SizeOp::Mul) {
      multiply(expr.operand(0), power);
      multiply(expr.operand(1), power);
    } else if (expr.op() == SizeOp::FloorDiv && exact_->contains(&expr.node())) {
      multiply(expr.operand(0), power);
      multiply(expr.operand(1), -power);
    } else if ((powers_[&expr.node()] += power) == 0) {
      powers_.erase(&expr.node());
    }
  }

  /// Both are known, and the same.
  bool operator==(const Product& other) const {
    return isKnown_ && other.isKnown_ && numerator_ == other.numerator_ && denominator_ == other.denominator_ &&
           powers_.size() == other.powers_.size() &&
           llvm::all_of(powers_, [&](const auto& each) { return other.powers_.lookup(each.first) == each.second; });
  }

  const llvm::SmallDenseMap<const size::Node*, int>& powers() const { return powers_; }

private:
  void scale(int64_t value, int power) {
    int64_t& scaled = power > 0 ? numerator_ : denominator_;
    isKnown_ &= value > 0 && !__builtin_mul_overflow(scaled, value, &scaled);
    if (!isKnown_)
      return;
    const int64_t common = std::gcd(numerator_, denominator_);
    numerator_ /= common;
    denominator_ /= common;
  }

  const llvm::SmallPtrSetImpl<const size::Node*>* exact_;
  llvm::SmallDenseMap<const size::Node*, int> powers_;
  int64_t numerator_ = 1, denominator_ = 1;
  bool isKnown_ = true;
};

std::optional<Exprs> extentsOf(Value tile) {
  Exprs found;
  for (OpFoldResult size : ir::tileSizes(tile)) {
    ir::SizeAttr extent = size ? sizeExpression(size) : ir::SizeAttr();
    if (!extent)
      return std::nullopt;
    found.push_back(extent.getExpr());
  }
  return found;
}

/// The dimensions from[fromBegin .. fromEnd) become to[toBegin .. toEnd).
struct Group {
  size_t fromBegin, fromEnd, toBegin, toEnd;
  bool regroups() const { return fromEnd - fromBegin != 1 || toEnd - toBegin != 1; }
};

/// The most groups that there are; none: the numbers of elements are not known to be equal.
SmallVector<Group> groupsOf(const Exprs& from, const Exprs& to) {
  llvm::SmallPtrSet<const size::Node*, 4> exact;
  Product rest(exact);
  for (size::Expr extent : from)
    rest.multiply(extent);
  for (size::Expr extent : to)
    rest.multiply(extent, -1);
  for (const auto& [node, power] : rest.powers())
    if (node->op == SizeOp::FloorDiv)
      exact.insert(node);
  SmallVector<Group> groups;
  Group group{0, 0, 0, 0};
  while (group.fromBegin < from.size() || group.toBegin < to.size()) {
    auto productOf = [&](const Exprs& extents, size_t begin, size_t end) {
      Product product(exact);
      for (size_t dim = begin; dim < end; ++dim)
        product.multiply(extents[dim]);
      return product;
    };
    // The same dimension of both, else the fewest.
    bool isFound = false;
    auto find = [&](size_t own, size_t others) {
      const size_t fromEnd = group.fromBegin + own, toEnd = group.toBegin + others;
      isFound = isFound || (fromEnd <= from.size() && toEnd <= to.size() &&
                            productOf(from, group.fromBegin, fromEnd) == productOf(to, group.toBegin, toEnd) &&
                            (group = {group.fromBegin, fromEnd, group.toBegin, toEnd}, true));
    };
    find(1, 1);
    const size_t most = from.size() - group.fromBegin + to.size() - group.toBegin;
    for (size_t count = 1; count <= most && !isFound; ++count)
      for (size_t own = 0; own <= count; ++own)
        find(own, count - own);
    if (!isFound)
      return {};
    groups.push_back(group);
    group = {group.fromEnd, group.fromEnd, group.toEnd, group.toEnd};
  }
  return groups;
}

Value stepOf(OpBuilder& b, ir::ReshapeOp reshape, Value value, const Group& group) {
  // Dimensions before the group are the result's, those behind it the source's.
  SmallVector<OpFoldResult> from = ir::tileSizes(reshape.getValue()), to = ir::tileSizes(reshape.getResult());
  ArrayRef<int64_t> fromShape = reshape.getValue().getType().getShape(), toShape = reshape.getType().getShape();
  SmallVector<int64_t> shape(toShape.take_front(group.toEnd));
  llvm::append_range(shape, fromShape.drop_front(group.fromEnd));
  SmallVector<Value> sizes;
  auto append = [&](ArrayRef<OpFoldResult> all, ArrayRef<int64_t> shape) {
    for (auto [size, extent] : llvm::zip_equal(all, shape))
      if (ShapedType::isDynamic(extent))
        sizes.push_back(isa<Value>(size) ? cast<Value>(size)
                                         : b.create<arith::ConstantIndexOp>(
                                               reshape.getLoc(), cast<IntegerAttr>(cast<Attribute>(size)).getInt()));
  };
  append(ArrayRef(to).take_front(group.toEnd), toShape.take_front(group.toEnd));
  append(ArrayRef(from).drop_front(group.fromEnd), fromShape.drop_front(group.fromEnd));
  auto type = RankedTensorType::get(shape, reshape.getType().getElementType());
  return b.create<ir::ReshapeOp>(reshape.getLoc(), type, value, sizes);
}

}  // namespace

void splitReshapes(ir::KernelOp kernel) {
  SmallVector<ir::ReshapeOp> reshapes;
  kernel.walk([&](ir::ReshapeOp reshape) { reshapes.push_back(reshape); });
  for (ir::ReshapeOp reshape : reshapes) {
    auto from = extentsOf(reshape.getValue()), to = extentsOf(reshape.getResult());
    if (!from || !to)
      continue;
    SmallVector<Group> groups = groupsOf(*from, *to);
    llvm::erase_if(groups, [](const Group& group) { return !group.regroups(); });
    auto joins = [](const Group& group) {
      return std::max(group.fromEnd - group.fromBegin, group.toEnd - group.toBegin) > 1;
    };
    if (llvm::count_if(groups, joins) < 2)
      continue;
    OpBuilder b(reshape);
    Value value = reshape.getValue();
    for (const Group& group : groups)
      value = stepOf(b, reshape, value, group);
    reshape.getResult().replaceAllUsesWith(value);
    reshape.erase();
  }
}

}  // namespace vortex::passes
