#include "lang/flow/value/walk.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vortex::lang::flow {

using Wide = unsigned __int128;

__int128 applyOp(Op op, MachineType type, __int128 a, __int128 b, __int128 c) {
  const auto count = static_cast<unsigned>(static_cast<uint64_t>(b) % type.width);
  switch (op) {
  case Op::Add: return type.wrap(a + b);
  case Op::Sub: return type.wrap(a - b);
  case Op::Mul: return type.wrap(static_cast<__int128>(static_cast<Wide>(a) * static_cast<Wide>(b)));
  case Op::Div: return b == 0 ? 0 : type.wrap(a / b);
  case Op::Rem: return b == 0 ? 0 : type.wrap(a % b);
  case Op::CeilDiv: return b == 0 ? 0 : type.wrap(a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0));
  case Op::Shl: return type.wrap(static_cast<__int128>(static_cast<Wide>(a) << count));
  case Op::Shr: return a >> count;
  case Op::And: return type.wrap(a & b);
  case Op::Or: return type.wrap(a | b);
  case Op::Xor: return type.wrap(a ^ b);
  case Op::Min: return std::min(a, b);
  case Op::Max: return std::max(a, b);
  case Op::Eq: return a == b;
  case Op::Lt: return a < b;
  case Op::Le: return a <= b;
  case Op::Select: return a != 0 ? b : c;
  }
  VORTEX_UNREACHABLE();
}

//===-- interning -------------------------------------------------------------------------------------------------===//

size_t NodeTable::Hash::operator()(const Node& node) const {
  size_t hash = static_cast<size_t>(node.kind) | static_cast<size_t>(node.op) << 8 |
                static_cast<size_t>(node.type.width) << 16 | static_cast<size_t>(node.type.isSigned) << 24;
  const auto mix = [&](uint64_t next) { hash = (hash ^ next) * 0x9E3779B97F4A7C15u + (hash >> 29); };
  for (ValueId arg : node.args)
    mix(indexOf(arg));
  mix(static_cast<uint64_t>(node.payload));
  mix(static_cast<uint64_t>(node.payload >> 64));
  return hash;
}

ValueId NodeTable::append(const Node& node) {
  nodes_.push_back(node);
  return ValueId{static_cast<uint32_t>(nodes_.size() - 1)};
}

ValueId NodeTable::intern(const Node& node) {
  if (auto found = known_.find(node); found != known_.end())
    return found->second;
  const ValueId id = append(node);
  known_.emplace(node, id);
  return id;
}

ValueId NodeTable::constant(MachineType type, __int128 value) {
  return intern({.kind = NodeKind::Constant, .type = type, .payload = type.wrap(value)});
}

ValueId NodeTable::extent(uint32_t dimension) {
  return intern({.kind = NodeKind::Extent, .type = kUsize, .payload = dimension});
}

ValueId NodeTable::argument(uint32_t number, MachineType type) {
  return intern({.kind = NodeKind::Argument, .type = type, .payload = number});
}

ValueId NodeTable::position(PositionKind kind, uint32_t axis) {
  VORTEX_CHECK(axis < kAxes, "axis %u of a position", axis);
  return intern({.kind = NodeKind::Position, .type = kUsize, .payload = static_cast<int>(kind) * 4 + axis});
}

ValueId NodeTable::load(StepId step, MachineType type) {
  return intern({.kind = NodeKind::Load, .type = type, .payload = indexOf(step)});
}

ValueId NodeTable::ticket(StepId step, MachineType type) {
  return intern({.kind = NodeKind::Ticket, .type = type, .payload = indexOf(step)});
}

ValueId NodeTable::unknown(const Expr* cause, MachineType type) {
  uint32_t number = static_cast<uint32_t>(causes_.size());
  if (cause)
    number = causeNumbers_.try_emplace(cause, number).first->second;
  if (number == causes_.size())
    causes_.push_back(cause);
  return intern({.kind = NodeKind::Unknown, .type = type, .payload = number});
}

const Expr* NodeTable::cause(ValueId unknown) const { return causes_[(*this)[unknown].number()]; }

//===-- operations ------------------------------------------------------------------------------------------------===//

static bool isCommutative(Op op) {
  switch (op) {
  case Op::Add:
  case Op::Mul:
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Min:
  case Op::Max:
  case Op::Eq: return true;
  default: return false;
  }
}

ValueId NodeTable::simplified(const Node& node) const {
  const auto& [a, b, c] = node.args;
  const auto isNumber = [&](ValueId id, __int128 value) { return isConstant(id) && (*this)[id].constant() == value; };
  switch (node.op) {
  case Op::Add:
  case Op::Or:
  case Op::Xor:
    if (isNumber(a, 0))
      return b;
    return isNumber(b, 0) ? a : kNoValue;
  case Op::Sub:
  case Op::Shl:
  case Op::Shr: return isNumber(b, 0) ? a : kNoValue;
  case Op::Mul:
    if (isNumber(a, 1))
      return b;
    return isNumber(b, 1) ? a : kNoValue;
  case Op::Div: return isNumber(b, 1) ? a : kNoValue;
  case Op::Min:
  case Op::Max: return a == b ? a : kNoValue;
  case Op::Select:
    if (isConstant(a))
      return isNumber(a, 0) ? c : b;
    return b == c ? b : kNoValue;
  default: return kNoValue;
  }
}

ValueId NodeTable::op(Op op, MachineType type, ValueId a, ValueId b, ValueId c) {
  a = resolved(a);
  b = resolved(b);
  if (operandCount(op) == 3)
    c = resolved(c);
  if (isConstant(a) && isConstant(b) && operandCount(op) == 2)
    return constant(type, applyOp(op, type, (*this)[a].constant(), (*this)[b].constant()));
  if (isCommutative(op) && indexOf(b) < indexOf(a))
    std::swap(a, b);
  const Node node{.kind = NodeKind::Op, .op = op, .type = type, .args = {a, b, c}};
  const ValueId simple = simplified(node);
  return simple != kNoValue ? simple : intern(node);
}

ValueId NodeTable::convert(MachineType type, ValueId a) {
  a = resolved(a);
  if (this->type(a) == type)
    return a;
  if (isConstant(a))
    return constant(type, (*this)[a].constant());
  return intern({.kind = NodeKind::Convert, .type = type, .args = {a, kNoValue, kNoValue}});
}

ValueId NodeTable::negate(ValueId a) { return op(Op::Sub, type(a), constant(type(a), 0), a); }

ValueId NodeTable::complement(ValueId a) { return op(Op::Sub, type(a), constant(type(a), -1), a); }

//===-- phis ------------------------------------------------------------------------------------------------------===//

ValueId NodeTable::phi(MachineType type, BlockId block) {
  const auto number = static_cast<uint32_t>(phis_.size());
  phis_.push_back({block, {}, kNoValue});
  return append({.kind = NodeKind::Phi, .type = type, .payload = number});
}

void NodeTable::setPhiOperands(ValueId phi, std::vector<ValueId> operands) {
  const Node& node = nodes_[indexOf(phi)];
  VORTEX_CHECK(node.kind == NodeKind::Phi);
  phis_[node.number()].operands = std::move(operands);
}

std::span<const ValueId> NodeTable::phiOperands(ValueId phi) const {
  const Node& node = nodes_[indexOf(phi)];
  VORTEX_CHECK(node.kind == NodeKind::Phi);
  return phis_[node.number()].operands;
}

BlockId NodeTable::phiBlock(ValueId phi) const {
  const Node& node = nodes_[indexOf(phi)];
  VORTEX_CHECK(node.kind == NodeKind::Phi);
  return phis_[node.number()].block;
}

void NodeTable::replacePhi(ValueId phi, ValueId value) {
  const Node& node = nodes_[indexOf(phi)];
  VORTEX_CHECK(node.kind == NodeKind::Phi);
  value = resolved(value);
  VORTEX_CHECK(value != phi && type(value) == node.type, "a phi must not stand for itself or another type");
  phis_[node.number()].replacement = value;
}

std::optional<__int128> evaluate(const NodeTable& nodes, ValueId value,
                                 std::span<const std::pair<ValueId, __int128>> phis, unsigned depth) {
  constexpr unsigned kMostDepth = 20;
  value = nodes.resolved(value);
  for (const auto& [phi, number] : phis)
    if (phi == value)
      return number;
  const Node& node = nodes[value];
  if (node.kind == NodeKind::Constant)
    return node.constant();
  const Operands operands = nodes.operands(value);
  if (operands.size() == 0 || depth > kMostDepth)
    return std::nullopt;
  std::array<__int128, 3> numbers{};
  for (size_t i = 0; i < operands.size(); ++i)
    if (const auto number = evaluate(nodes, operands.values[i], phis, depth + 1))
      numbers[i] = *number;
    else
      return std::nullopt;
  return node.kind == NodeKind::Convert ? node.type.wrap(numbers[0])
                                        : applyOp(node.op, node.type, numbers[0], numbers[1], numbers[2]);
}

}  // namespace vortex::lang::flow
