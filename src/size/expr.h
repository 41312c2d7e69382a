// Integer expressions over the arguments of a launch: grids, extents of results, sizes of memory, conditions. The compiler builds them in an
// arena, where equal expressions are one node and are simplified when made; artifacts hold them as a table (evaluate.h). No MLIR here:
// the runtime evaluates what irgen wrote.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

namespace vortex::size {

/// Arithmetic is that of signed 64-bit integers and wraps; floorDiv, ceilDiv and mod by zero yield 0 (the language's rule).
enum class Op : uint8_t {
  Constant,
  Dim,         ///< extent `dim` of tensor argument `argument`: 0 to 2^47, as launches refuse others
  Stride,      ///< in elements
  Address,     ///< of a tensor argument's first element
  Scalar,      ///< scalar argument as i64
  LaunchGrid,  ///< blocks along axis `argument` that the launch was given: 0 to 2^32 - 1
  Device,  ///< clusters of `argument` blocks that the device runs at the same time: 0 to 2^32 - 1. Of one block: its workers
  Add,
  Sub,
  Mul,
  FloorDiv,
  CeilDiv,
  Mod,  ///< of the divisor's sign
  Min,
  Max,
  Equal,
  Less,
  And,
  Or,
  Not,           ///< 0 or 1, as the four before it
  IsPowerOfTwo,  ///< 1 if the operand is a positive power of two
  Select,        ///< (condition, if it is not zero, else)
};
constexpr Op kLastOp = Op::Select;

/// What every GPU that has clusters can run together (PTX ISA, "Cluster of Cooperative Thread Arrays").
constexpr uint32_t kMaxClusterBlocks = 8;

/// How many operands an operator takes: 0 (constants and what a launch gives) to 3.
constexpr uint32_t arity(Op op) { return op < Op::Add ? 0 : op < Op::Not ? 2 : op < Op::Select ? 1 : 3; }
/// A leaf whose value is in a launch slot.
constexpr bool isArgument(Op op) { return op >= Op::Dim && op <= Op::Scalar; }

/// The value of an operator; operands that it does not take are ignored.
int64_t apply(Op op, int64_t a, int64_t b = 0, int64_t c = 0);
/// A sum, difference or product that 64 bits do not hold.
bool wraps(Op op, int64_t a, int64_t b);

/// All values that an expression can have, ends included.
struct Range {
  int64_t low = INT64_MIN, high = INT64_MAX;
  bool contains(int64_t value) const { return low <= value && value <= high; }
};

class Arena;
class Expr;

struct Node {
  Op op = Op::Constant;
  uint32_t argument = 0, dim = 0;  ///< Dim, Stride, Address, Scalar, LaunchGrid, Device
  int64_t value = 0;               ///< Constant
  std::array<const Node*, 3> operands{};
  Range range{};
  uint32_t zeros = 0;  ///< the value is a multiple of 2^zeros, at most 2^63
  Arena* arena = nullptr;
};

/// A node of an arena, which outlives it; equal expressions of one arena compare equal.
class Expr {
public:
  Expr() = default;
  explicit Expr(const Node* node) : node_(node) {}
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const Expr&) const = default;

  const Node& node() const { return *node_; }
  Arena& arena() const { return *node_->arena; }
  Op op() const { return node_->op; }
  Expr operand(unsigned number) const { return Expr(node_->operands[number]); }
  std::optional<int64_t> constant() const {
    return node_->op == Op::Constant ? std::optional(node_->value) : std::nullopt;
  }
  Range range() const { return node_->range; }
  bool isNotNegative() const { return node_->range.low >= 0; }

private:
  const Node* node_ = nullptr;
};
inline size_t hash_value(Expr expr) { return std::hash<const void*>()(expr ? &expr.node() : nullptr); }

/// Owns nodes. Any thread may use it.
class Arena {
public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Expr constant(int64_t value);
  Expr dim(uint32_t argument, uint32_t dim) { return leaf(Op::Dim, argument, dim); }
  Expr stride(uint32_t argument, uint32_t dim) { return leaf(Op::Stride, argument, dim); }
  Expr address(uint32_t argument) { return leaf(Op::Address, argument, 0); }
  Expr scalar(uint32_t argument) { return leaf(Op::Scalar, argument, 0); }
  Expr launchGrid(uint32_t axis) { return leaf(Op::LaunchGrid, axis, 0); }
  Expr clusters(uint32_t blocks) { return leaf(Op::Device, blocks, 0); }
  Expr leaf(Op op, uint32_t argument, uint32_t dim);
  /// Of operands of this arena, simplified.
  Expr make(Op op, Expr a, Expr b = {}, Expr c = {});

private:
  Expr intern(Node node);
  struct Nodes;
  std::unique_ptr<Nodes> nodes_;
};

inline Expr make(Op op, Expr a, Expr b = {}, Expr c = {}) { return a.arena().make(op, a, b, c); }
inline Expr make(Op op, Expr a, int64_t b) { return make(op, a, a.arena().constant(b)); }

/// Makes a T of every node of `expr` that `known` lacks, operands first, by `make(node, operands)`, and returns that of `expr`.
template <typename T, typename F> T fold(Expr expr, std::unordered_map<const Node*, T>& known, F&& make) {
  auto visit = [&](auto& self, const Node& node) -> T {
    if (auto found = known.find(&node); found != known.end())
      return found->second;
    std::array<T, 3> operands{};
    for (uint32_t i = 0; i < arity(node.op); ++i)
      operands[i] = self(self, *node.operands[i]);
    return known.emplace(&node, make(node, operands)).first->second;
  };
  return visit(visit, expr.node());
}

/// The same from nothing: each node once.
template <typename T, typename F> T fold(Expr expr, F&& make) {
  std::unordered_map<const Node*, T> known;
  return fold(expr, known, make);
}

}  // namespace vortex::size
