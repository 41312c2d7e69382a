#include "passes/covered_results.h"

#include "ir/tile_sizes.h"
#include "passes/plan/size_expression.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

namespace {

/// A sum of multiples of expressions; of no expression: a number.
class Sum {
public:
  Sum& add(size::Expr expr, int64_t times = 1) {
    if (auto constant = expr.constant()) {
      addTerm(nullptr, *constant * times);
    } else if (expr.op() == SizeOp::Add || expr.op() == SizeOp::Sub) {
      add(expr.operand(0), times);
      add(expr.operand(1), expr.op() == SizeOp::Add ? times : -times);
    } else if (expr.op() == SizeOp::Mul && (expr.operand(0).constant() || expr.operand(1).constant())) {
      const unsigned number = expr.operand(0).constant() ? 0 : 1;
      add(expr.operand(1 - number), times * *expr.operand(number).constant());
    } else {
      addTerm(&expr.node(), times);
    }
    return *this;
  }

  bool isZero() const { return terms_.empty(); }

private:
  void addTerm(const size::Node* node, int64_t times) {
    int64_t& term = terms_[node];
    term += times;
    if (term == 0)
      terms_.erase(node);
  }

  llvm::SmallDenseMap<const size::Node*, int64_t> terms_;
};

bool areEqual(size::Expr a, size::Expr b) { return Sum().add(a).add(b, -1).isZero(); }

/// What a store writes of its tensor.
struct Box {
  SmallVector<size::Expr> starts, extents;
};

std::optional<Box> boxOf(ir::TileStoreOp store) {
  Box box;
  for (auto [offset, size] : llvm::zip_equal(store.getOffsets(), ir::tileSizes(store.getValue()))) {
    ir::SizeAttr start = sizeExpression(offset), extent = size ? sizeExpression(size) : ir::SizeAttr();
    if (!start || !extent)
      return std::nullopt;
    box.starts.push_back(start.getExpr());
    box.extents.push_back(extent.getExpr());
  }
  return box;
}

bool isWhole(const Box& box, ArrayRef<size::Expr> extents, size_t dim) {
  const size::Expr extent = extents[dim];
  const size::Expr least = extent.arena().constant(0);
  return box.starts[dim].constant() == 0 &&
         (areEqual(box.extents[dim], extent) || box.extents[dim] == size::make(SizeOp::Max, extent, least));
}

/// The boxes are whole but for `dim`, along which they follow each other in some order, from the first element to the last.
bool coverAlong(ArrayRef<Box> boxes, ArrayRef<size::Expr> extents, size_t dim) {
  SmallVector<const Box*> left;
  for (const Box& box : boxes) {
    for (size_t other = 0; other < extents.size(); ++other)
      if (other != dim && !isWhole(box, extents, other))
        return false;
    left.push_back(&box);
  }
  size::Expr end = extents[dim].arena().constant(0);
  while (!areEqual(end, extents[dim])) {
    auto next = llvm::find_if(
        left, [&](const Box* box) { return areEqual(box->starts[dim], end) && box->extents[dim].isNotNegative(); });
    if (next == left.end())
      return false;
    end = size::make(SizeOp::Add, end, (*next)->extents[dim]);
    left.erase(next);
  }
  return true;
}

bool isCovered(BlockArgument result, ArrayRef<size::Expr> extents) {
  SmallVector<Box> boxes;
  for (Operation* user : result.getUsers()) {
    if (isa<ir::DimOp>(user))
      continue;
    auto store = dyn_cast<ir::TileStoreOp>(user);
    if (!store)
      return false;
    if (store->getBlock() != result.getOwner() || !store.getInbounds())
      continue;
    if (auto box = boxOf(store))
      boxes.push_back(*box);
  }
  for (size_t dim = 0; dim < extents.size(); ++dim)
    if (coverAlong(boxes, extents, dim) ||
        llvm::any_of(boxes, [&](const Box& box) { return coverAlong(box, extents, dim); }))
      return true;
  return false;
}

}  // namespace

void dropCoveredZeros(ir::EntryOp entry, ir::KernelOp kernel) {
  SmallVector<Attribute> arguments(entry.getArgs().getValue());
  for (auto [argument, described] : llvm::zip(kernel.getBody().getArguments(), arguments)) {
    NamedAttrList facts(cast<DictionaryAttr>(described));
    auto sizes = dyn_cast_if_present<ArrayAttr>(facts.get("extents"));
    if (!facts.get("zero") || !sizes || sizes.empty())
      continue;
    SmallVector<size::Expr> extents;
    for (Attribute each : sizes)
      extents.push_back(cast<ir::SizeAttr>(each).getExpr());
    if (!isCovered(argument, extents))
      continue;
    facts.erase("zero");
    described = facts.getDictionary(entry.getContext());
  }
  entry.setArgsAttr(ArrayAttr::get(entry.getContext(), arguments));
}

}  // namespace vortex::passes
