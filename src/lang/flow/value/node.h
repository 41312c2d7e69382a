// Integer and bool values of a program as hash-consed nodes: two nodes of equal structure have one id. Nodes say how a value is computed, in
// machine arithmetic (Op wraps to its type); what is known about it is asked of forms and ranges, which live beside this table.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "lang/flow/value/ids.h"

namespace vortex::lang {
struct Expr;
}

namespace vortex::lang::flow {

/// Two's complement integers of 1 to 64 bits. A bool is an unsigned integer of one bit.
struct MachineType {
  uint8_t width = 64;
  bool isSigned = false;

  constexpr bool operator==(const MachineType&) const = default;
  constexpr __int128 lowest() const { return isSigned ? -(__int128(1) << (width - 1)) : 0; }
  constexpr __int128 highest() const { return (__int128(1) << (isSigned ? width - 1 : width)) - 1; }
  constexpr bool contains(__int128 value) const { return lowest() <= value && value <= highest(); }
  /// The low bits of the number, read as this type.
  constexpr __int128 wrap(__int128 value) const {
    const __int128 low = value & ((__int128(1) << width) - 1);
    return isSigned && (low >> (width - 1)) ? low - (__int128(1) << width) : low;
  }
};
inline constexpr MachineType kBool{1, false}, kUsize{64, false};

enum class NodeKind : uint8_t {
  Constant,
  Extent,  ///< a dimension variable; usize
  Argument,  ///< a number every thread of a launch and every use agrees on: a scalar parameter, a variable that nothing assigns
  Position,  ///< where a thread stands; usize
  Phi,       ///< one operand per predecessor of its block
  Load,      ///< what a step read from memory; each step is a value of its own
  Ticket,    ///< what an atomic step gave back
  Op,
  Convert,  ///< to another integer type: the low bits, or sign- or zero-extended as the operand's type says
  Unknown,  ///< a number nothing is known of but its type; the expression is for messages
};

/// All wrap to the type of the node. Operands have that type; those of Eq, Lt and Le share any type, and Select's first is a bool.
enum class Op : uint8_t {
  Add,
  Sub,
  Mul,
  Div,      ///< towards zero; x / 0 is 0
  Rem,      ///< of the sign of x; x % 0 is 0
  CeilDiv,  ///< of unsigned numbers, without overflow; 0 where the divisor is 0
  Shl,      ///< the count is taken modulo the width
  Shr,      ///< arithmetic for signed types
  And,
  Or,
  Xor,
  Min,
  Max,
  Eq,  ///< bool, like the next two
  Lt,
  Le,
  Select,  ///< condition, then, else
};

enum class PositionKind : uint8_t {
  ThreadId,        ///< thread.id.x, .y, .z: axis 0 … 2
  ThreadLocalId,   ///< thread.local_id; axis 0
  ThreadGlobalId,  ///< thread.global_id.x, .y, .z
  BlockId,
  BlockDim,
  GridDim,
  WarpId,  ///< axis 0
  LaneId,  ///< axis 0
};

/// Of blocks and grids.
inline constexpr uint32_t kAxes = 3;

struct Node {
  NodeKind kind = NodeKind::Constant;
  Op op = Op::Add;                                            ///< Op
  MachineType type;                                           ///< of the value
  std::array<ValueId, 3> args{kNoValue, kNoValue, kNoValue};  ///< Op, Convert (the first)
  /// Constant: the number. Extent, Argument: its number. Position: see below. Phi: its number. Load, Ticket: the step. Unknown: its number.
  __int128 payload = 0;

  __int128 constant() const { return payload; }
  uint32_t number() const { return static_cast<uint32_t>(payload); }
  StepId step() const { return StepId{number()}; }
  PositionKind position() const { return static_cast<PositionKind>(payload / 4); }
  uint32_t axis() const { return static_cast<uint32_t>(payload % 4); }
  bool operator==(const Node&) const = default;
};

/// The operands an Op reads.
constexpr size_t operandCount(Op op) { return op == Op::Select ? 3 : 2; }

/// What one node reads.
struct Operands {
  std::array<ValueId, 3> values{kNoValue, kNoValue, kNoValue};
  size_t count = 0;

  size_t size() const { return count; }
  const ValueId* begin() const { return values.data(); }
  const ValueId* end() const { return values.data() + count; }
};

/// What is computed from numbers: the language's total machine arithmetic. `type` is the node's, `operands` that of a and b.
__int128 applyOp(Op op, MachineType type, __int128 a, __int128 b, __int128 c = 0);

/// Owns the nodes of one graph. Ids are dense and in order of creation, so an operand other than a phi's has a smaller id than its user.
class NodeTable {
public:
  ValueId constant(MachineType type, __int128 value);  ///< wrapped to the type
  ValueId extent(uint32_t dimension);
  ValueId argument(uint32_t number, MachineType type);
  ValueId position(PositionKind kind, uint32_t axis = 0);  ///< axis < kAxes
  ValueId load(StepId step, MachineType type);
  ValueId ticket(StepId step, MachineType type);
  /// Equal expressions give one value: ask again only where the expression is evaluated once, or pass null for a fresh one.
  ValueId unknown(const Expr* cause, MachineType type);
  /// Folds constants and x + 0, x * 1 and the like; the result then is another node. Of commutative operands the smaller id comes first.
  ValueId op(Op op, MachineType type, ValueId a, ValueId b, ValueId c = kNoValue);
  ValueId convert(MachineType type, ValueId a);
  /// Composed: -a, and the complement of every bit (of a bool: not).
  ValueId negate(ValueId a);
  ValueId complement(ValueId a);

  /// A new value each time. Its operands may be set, or set again, at any time before forms are asked for.
  ValueId phi(MachineType type, BlockId block);
  void setPhiOperands(ValueId phi, std::vector<ValueId> operands);
  /// In the order of the block's predecessors; empty until they are set.
  std::span<const ValueId> phiOperands(ValueId phi) const;
  BlockId phiBlock(ValueId phi) const;
  /// SSA found the phi to be always `value` (which may lead to further phis but not back). Nodes made before keep the phi as operand:
  /// whoever reads an operand asks for `resolved`, which `args` below does.
  void replacePhi(ValueId phi, ValueId value);
  /// The value itself, or what stands for it after replacePhi.
  ValueId resolved(ValueId value) const {
    while (nodes_[indexOf(value)].kind == NodeKind::Phi) {
      const ValueId next = phis_[nodes_[indexOf(value)].number()].replacement;
      if (next == kNoValue)
        break;
      value = next;
    }
    return value;
  }

  /// The node of the resolved value.
  const Node& operator[](ValueId value) const { return nodes_[indexOf(resolved(value))]; }
  MachineType type(ValueId value) const { return nodes_[indexOf(value)].type; }
  /// The resolved operand of an Op or Convert.
  ValueId operand(ValueId value, size_t index) const { return resolved((*this)[value].args[index]); }
  /// All of them; none of what is neither.
  Operands operands(ValueId value) const {
    const Node& node = (*this)[value];
    Operands out;
    out.count = node.kind == NodeKind::Op ? operandCount(node.op) : node.kind == NodeKind::Convert ? 1 : 0;
    for (size_t i = 0; i < out.count; ++i)
      out.values[i] = resolved(node.args[i]);
    return out;
  }
  bool isConstant(ValueId value) const { return (*this)[value].kind == NodeKind::Constant; }
  /// Of an Unknown, for messages; null if it has none.
  const Expr* cause(ValueId unknown) const;
  size_t size() const { return nodes_.size(); }

private:
  struct Hash {
    size_t operator()(const Node& node) const;
  };
  struct Phi {
    BlockId block;
    std::vector<ValueId> operands;
    ValueId replacement = kNoValue;
  };
  ValueId intern(const Node& node);
  ValueId append(const Node& node);
  ValueId simplified(const Node& node) const;  ///< kNoValue: nothing simpler

  std::deque<Node> nodes_;  // references to nodes stay valid
  std::unordered_map<Node, ValueId, Hash> known_;
  std::vector<Phi> phis_;
  std::vector<const Expr*> causes_;
  std::unordered_map<const Expr*, uint32_t> causeNumbers_;
};

}  // namespace vortex::lang::flow
