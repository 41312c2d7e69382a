#include "size/expr.h"

#include "base/check.h"
#include "base/tensor_bytes.h"
#include "size/simplify.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <mutex>
#include <tuple>
#include <unordered_set>

namespace vortex::size {

namespace {

int64_t wrap(uint64_t bits) { return static_cast<int64_t>(bits); }

/// INT64_MIN / -1 wraps to INT64_MIN; the hardware instruction would trap.
int64_t floorDiv(int64_t lhs, int64_t rhs) {
  if (rhs == 0)
    return 0;
  if (rhs == -1)
    return wrap(-static_cast<uint64_t>(lhs));
  const int64_t quotient = lhs / rhs;
  return quotient - ((lhs % rhs != 0 && (lhs < 0) != (rhs < 0)) ? 1 : 0);
}

int64_t ceilDiv(int64_t lhs, int64_t rhs) {
  if (rhs == 0)
    return 0;
  if (rhs == -1)
    return wrap(-static_cast<uint64_t>(lhs));
  const int64_t quotient = lhs / rhs;
  return quotient + ((lhs % rhs != 0 && (lhs < 0) == (rhs < 0)) ? 1 : 0);
}

/// lhs - rhs * floorDiv(lhs, rhs)
int64_t floorMod(int64_t lhs, int64_t rhs) {
  if (rhs == 0 || rhs == -1)
    return 0;
  const int64_t rest = lhs % rhs;
  return rest != 0 && (rest < 0) != (rhs < 0) ? rest + rhs : rest;
}

bool isCommutative(Op op) {
  return op == Op::Add || op == Op::Mul || op == Op::Min || op == Op::Max || op == Op::Equal || op == Op::And ||
         op == Op::Or;
}

struct NodeHash {
  size_t operator()(const Node* node) const {
    size_t hash = static_cast<size_t>(node->op);
    auto mix = [&](size_t part) { hash = (hash ^ part) * 0x9e3779b97f4a7c15u + (hash >> 29); };
    mix(static_cast<size_t>(node->value));
    mix(size_t{node->argument} << 32 | node->dim);
    for (const Node* operand : node->operands)
      mix(std::hash<const void*>()(operand));
    return hash;
  }
};

struct SameNode {
  bool operator()(const Node* a, const Node* b) const {
    return std::tie(a->op, a->value, a->argument, a->dim, a->operands) ==
           std::tie(b->op, b->value, b->argument, b->dim, b->operands);
  }
};

}  // namespace

int64_t apply(Op op, int64_t a, int64_t b, int64_t c) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
  case Op::Add: return wrap(x + y);
  case Op::Sub: return wrap(x - y);
  case Op::Mul: return wrap(x * y);
  case Op::FloorDiv: return floorDiv(a, b);
  case Op::CeilDiv: return ceilDiv(a, b);
  case Op::Mod: return floorMod(a, b);
  case Op::Min: return std::min(a, b);
  case Op::Max: return std::max(a, b);
  case Op::Equal: return a == b;
  case Op::Less: return a < b;
  case Op::And: return a != 0 && b != 0;
  case Op::Or: return a != 0 || b != 0;
  case Op::Not: return a == 0;
  case Op::IsPowerOfTwo: return a > 0 && (a & (a - 1)) == 0;
  case Op::Select: return a != 0 ? b : c;
  case Op::Constant:
  case Op::Dim:
  case Op::Stride:
  case Op::Address:
  case Op::Scalar:
  case Op::LaunchGrid:
  case Op::Device: break;
  }
  VORTEX_UNREACHABLE("operator %d of a size has no operands", static_cast<int>(op));
}

bool wraps(Op op, int64_t a, int64_t b) {
  int64_t exact = 0;
  switch (op) {
  case Op::Add: return __builtin_add_overflow(a, b, &exact);
  case Op::Sub: return __builtin_sub_overflow(a, b, &exact);
  case Op::Mul: return __builtin_mul_overflow(a, b, &exact);
  default: return false;
  }
}

struct Arena::Nodes {
  std::mutex mutex;
  std::deque<Node> all;  // stays where it is while it grows
  std::unordered_set<const Node*, NodeHash, SameNode> known;
};

Arena::Arena() : nodes_(std::make_unique<Nodes>()) {}
Arena::~Arena() = default;

Expr Arena::intern(Node node) {
  node.arena = this;
  std::lock_guard lock(nodes_->mutex);
  if (auto found = nodes_->known.find(&node); found != nodes_->known.end())
    return Expr(*found);
  if (isCommutative(node.op)) {  // the order of whoever asked first, for code that reads as it was written
    std::swap(node.operands[0], node.operands[1]);
    if (auto found = nodes_->known.find(&node); found != nodes_->known.end())
      return Expr(*found);
    std::swap(node.operands[0], node.operands[1]);
  }
  const Node* added = &nodes_->all.emplace_back(node);
  nodes_->known.insert(added);
  return Expr(added);
}

Expr Arena::constant(int64_t value) {
  Node node{.op = Op::Constant, .value = value, .range = {value, value}};
  node.zeros = value == 0 ? 63 : static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(value)));
  return intern(node);
}

Expr Arena::leaf(Op op, uint32_t argument, uint32_t dim) {
  VORTEX_CHECK(isArgument(op) || (op == Op::LaunchGrid && argument < 3) ||
               (op == Op::Device && argument - 1 < kMaxClusterBlocks));
  Node node{.op = op, .argument = argument, .dim = dim};
  if (op == Op::Dim)
    node.range = {0, static_cast<int64_t>(base::kMostTensorBytes)};
  if (op == Op::LaunchGrid || op == Op::Device)
    node.range = {0, UINT32_MAX};
  return intern(node);
}

Expr Arena::make(Op op, Expr a, Expr b, Expr c) {
  const uint32_t count = arity(op);
  VORTEX_CHECK(count != 0 && a && bool(b) == (count > 1) && bool(c) == (count > 2));
  if (isCommutative(op) && a.constant() && !b.constant())
    std::swap(a, b);
  if (Expr simpler = simplify(*this, op, a, b, c))
    return simpler;
  Node node{.op = op, .operands = {&a.node(), b ? &b.node() : nullptr, c ? &c.node() : nullptr}};
  node.range = rangeOf(op, node.operands);
  if (node.range.low == node.range.high)
    return constant(node.range.low);
  node.zeros = zerosOf(op, node.operands);
  return intern(node);
}

}  // namespace vortex::size
