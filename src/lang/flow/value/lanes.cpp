// A lane's value is the value with the thread's position written in terms of its warp and lane: 32 · warp + lane, whose digits the forms see. Leaves
// that lanes agree on stay; an operation that is a leaf in every lane (a remainder of an unknown counter) takes a distinction of cases.
#include "lang/flow/value/lanes.h"

#include <algorithm>

namespace vortex::lang::flow {

constexpr __int128 kFewValues = 64, kMostResidues = 1024;

bool Lanes::isSame() const {
  return std::all_of(polynomials.begin(), polynomials.end(),
                     [&](const Polynomial& each) { return each == polynomials.front(); });
}

std::optional<std::array<int64_t, kLanes>> Lanes::asNumbers() const {
  std::array<int64_t, kLanes> numbers{};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto number = polynomials[lane].asConstant();
    if (!number)
      return std::nullopt;
    numbers[lane] = static_cast<int64_t>(*number);
  }
  return numbers;
}

LaneValues::LaneValues(Values& values, const BlockShape& block, std::function<bool(ValueId)> isUniform)
    : values_(values), nodes_(values.nodes()), block_(block), isUniform_(std::move(isUniform)),
      warp_(nodes_.unknown(nullptr, kUsize)) {
  __int128 threads = kMostThreadsOfBlock;
  if (block[0] && block[1] && block[2])
    threads = std::min(threads, __int128(*block[0]) * *block[1] * *block[2]);
  const ValueId most = nodes_.constant(kUsize, (threads + kLanes - 1) / kLanes);
  agreed_.insert(warp_);
  point_ = values_.assume(kNoPoint, {{nodes_.op(Op::Lt, kBool, warp_, most), true}});
}

//===-- positions -------------------------------------------------------------------------------------------------===//

ValueId LaneValues::threadAxis(uint32_t axis, ValueId linear, ValueId value) {
  const auto size = [&](uint32_t of) { return nodes_.constant(kUsize, *block_[of]); };
  const bool isLast =
      std::all_of(block_.begin() + axis + 1, block_.end(), [](const auto& extent) { return extent == 1; });
  for (uint32_t before = 0; before < axis; ++before) {
    if (!block_[before])
      return value;
    linear = nodes_.op(Op::Div, kUsize, linear, size(before));
  }
  if (isLast || axis == 2)
    return linear;
  return block_[axis] ? nodes_.op(Op::Rem, kUsize, linear, size(axis)) : value;
}

ValueId LaneValues::position(const Node& node, ValueId value, unsigned lane) {
  const ValueId warp = replaced(warp_, lane);
  const ValueId first = nodes_.op(Op::Mul, kUsize, warp, nodes_.constant(kUsize, kLanes));
  const ValueId linear = nodes_.op(Op::Add, kUsize, first, nodes_.constant(kUsize, lane));
  switch (node.position()) {
  case PositionKind::ThreadId: return threadAxis(node.axis(), linear, value);
  case PositionKind::ThreadLocalId: return linear;
  case PositionKind::WarpId: return warp;
  case PositionKind::LaneId: return nodes_.constant(kUsize, lane);
  case PositionKind::BlockDim: return block_[node.axis()] ? nodes_.constant(kUsize, *block_[node.axis()]) : value;
  case PositionKind::ThreadGlobalId: {
    const ValueId size = replaced(nodes_.position(PositionKind::BlockDim, node.axis()), lane);
    const ValueId before = nodes_.op(Op::Mul, kUsize, nodes_.position(PositionKind::BlockId, node.axis()), size);
    return nodes_.op(Op::Add, kUsize, before, replaced(nodes_.position(PositionKind::ThreadId, node.axis()), lane));
  }
  default: return value;
  }
}

ValueId LaneValues::replaced(ValueId value, unsigned lane) {
  value = nodes_.resolved(value);
  const std::pair key{value, lane};
  if (auto found = replaced_.find(key); found != replaced_.end())
    return found->second;
  const ValueId result = computeReplaced(value, lane);
  replaced_.emplace(key, result);
  return result;
}

ValueId LaneValues::computeReplaced(ValueId value, unsigned lane) {
  for (const Case& each : cases_)
    if (each.leaf == value)
      return replaced(each.replacement, lane);
  const Node node = nodes_[value];
  if (node.kind == NodeKind::Position)
    return position(node, value, lane);
  if (node.kind == NodeKind::Convert)
    return nodes_.convert(node.type, replaced(nodes_.operand(value, 0), lane));
  if (node.kind != NodeKind::Op)
    return value;
  std::array<ValueId, 3> operands{kNoValue, kNoValue, kNoValue};
  for (size_t i = 0; i < operandCount(node.op); ++i)
    operands[i] = replaced(nodes_.operand(value, i), lane);
  return nodes_.op(node.op, node.type, operands[0], operands[1], operands[2]);
}

//===-- answers ---------------------------------------------------------------------------------------------------===//

/// Is the leaf of a lane's polynomial the same number in all lanes?
bool LaneValues::isAgreed(ValueId leaf, Undecided& undecided) {
  const Node node = nodes_[leaf];
  switch (node.kind) {
  case NodeKind::Constant:
  case NodeKind::Extent:
  case NodeKind::Argument: return true;
  case NodeKind::Position:
    if (node.position() == PositionKind::ThreadId)
      undecided = {leaf, 0};
    return node.position() != PositionKind::ThreadId;
  case NodeKind::Op:
  case NodeKind::Convert:
    for (size_t i = 0; i < (node.kind == NodeKind::Op ? operandCount(node.op) : 1); ++i)
      if (!isAgreed(nodes_.operand(leaf, i), undecided))
        return false;
    return true;
  default:
    if (agreed_.contains(leaf) || isUniform_(leaf))
      return true;
    undecided = {leaf, 0};
    return false;
  }
}

std::optional<Lanes> LaneValues::of(ValueId value, Undecided& undecided) {
  Lanes result;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const ValueId here = replaced(value, lane);
    result.polynomials[lane] = values_.integer(here, point_);
    for (const auto& [monomial, coefficient] : result.polynomials[lane].terms())
      for (ValueId leaf : monomial)
        if (!isAgreed(leaf, undecided))
          return std::nullopt;
  }
  return result;
}

/// `32 * warp + lane < 64`: what the lanes add to a multiple of 32 does not lead past the next one.
bool LaneValues::isSameComparison(ValueId value) {
  Undecided undecided;
  const auto lhs = of(nodes_.operand(value, 0), undecided), rhs = of(nodes_.operand(value, 1), undecided);
  const __int128 least = nodes_[value].op == Op::Lt ? 1 : 0;
  std::optional<Polynomial> common;
  std::optional<__int128> multiple;
  for (unsigned lane = 0; lhs && rhs && lane < kLanes; ++lane) {
    const auto apart = Polynomial::sum(rhs->polynomials[lane], lhs->polynomials[lane], -1);
    if (!apart)
      return false;
    const __int128 constant = apart->constantPart() - least;
    const Polynomial rest = *Polynomial::sum(*apart, Polynomial::constant(-apart->constantPart()));
    __int128 divisor = 0;
    for (const auto& [monomial, coefficient] : rest.terms())
      divisor = greatestDivisor(divisor, coefficient);
    const __int128 here = divisor == 0 ? (constant >= 0 ? 0 : -1) : floorDivide(constant, divisor);
    if (common && (rest != *common || here != *multiple))
      return false;
    common = rest;
    multiple = here;
  }
  return lhs && rhs;
}

bool LaneValues::isSameInWarp(ValueId value) {
  const Node node = nodes_[value];
  if (node.kind == NodeKind::Op && (node.op == Op::Lt || node.op == Op::Le) && isSameComparison(value))
    return true;
  Undecided undecided;
  const auto lanes = of(value, undecided);
  return lanes && lanes->isSame();
}

//===-- cases -----------------------------------------------------------------------------------------------------===//

std::optional<Undecided> LaneValues::forEachCase(const Visit& visit, unsigned budget) {
  return visitCase(visit, budget);
}

/// All numbers of the leaf, or modulus · quotient + rest for every rest.
std::vector<LaneValues::Case> LaneValues::split(const Undecided& open) {
  const Interval range = values_.range(open.leaf, point_);
  const MachineType type = nodes_.type(open.leaf);
  std::vector<Case> result;
  if (range.high - range.low < (open.modulus == 0 ? kMostResidues : kFewValues)) {
    for (__int128 number = range.low; number <= range.high; ++number)
      result.push_back({open.leaf, nodes_.constant(type, number), point_});
    return result;
  }
  if (open.modulus < 2 || open.modulus > kMostResidues || range.low < 0)
    return result;
  const ValueId quotient = nodes_.unknown(nullptr, type);
  agreed_.insert(quotient);
  const ValueId multiple = nodes_.op(Op::Mul, type, quotient, nodes_.constant(type, open.modulus));
  for (__int128 rest = 0; rest < open.modulus; ++rest) {
    const ValueId most = nodes_.constant(type, (range.high - rest) / open.modulus);
    const PointId point = values_.assume(point_, {{nodes_.op(Op::Le, kBool, quotient, most), true}});
    result.push_back({open.leaf, nodes_.op(Op::Add, type, multiple, nodes_.constant(type, rest)), point});
  }
  return result;
}

std::optional<Undecided> LaneValues::visitCase(const Visit& visit, unsigned& budget) {
  if (budget == 0)
    return Undecided{};
  --budget;
  const auto open = visit(*this);
  Undecided differing;
  if (!open || open->leaf == kNoValue || !isAgreed(open->leaf, differing))
    return open;
  const std::vector<Case> cases = split(*open);
  if (cases.empty())
    return open;
  const PointId outer = point_;
  for (const Case& each : cases) {
    std::map<std::pair<ValueId, unsigned>, ValueId> before;
    before.swap(replaced_);
    cases_.push_back(each);
    point_ = each.point;
    const auto stuck = visitCase(visit, budget);
    point_ = outer;
    cases_.pop_back();
    replaced_.swap(before);
    if (stuck)
      return stuck;
  }
  return std::nullopt;
}

}  // namespace vortex::lang::flow
