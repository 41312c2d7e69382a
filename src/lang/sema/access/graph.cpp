#include "lang/sema/access/graph.h"

#include <algorithm>
#include <bit>

namespace vortex::lang::access {

constexpr Wide kMostResidues = 1024, kFewValues = 64;

NodeId Graph::intern(Node node) {
  auto [found, isNew] = known_.try_emplace(node.key(), static_cast<NodeId>(nodes_.size()));
  if (isNew)
    nodes_.push_back(node);
  return found->second;
}

NodeId Graph::symbol(Symbol symbol) {
  symbols.push_back(std::move(symbol));
  return intern({Op::Symbol, {}, static_cast<Wide>(symbols.size() - 1), nullptr});
}

std::optional<Wide> Graph::asConstant(NodeId id) const {
  return nodes_[id].op == Op::Constant ? std::optional(nodes_[id].value) : std::nullopt;
}

bool Graph::hasUnknown(NodeId id) const {
  std::vector<NodeId> pending{id};
  std::set<NodeId> seen{id};
  while (!pending.empty()) {
    const Node& node = nodes_[pending.back()];
    pending.pop_back();
    if (node.op == Op::Unknown)
      return true;
    const bool isLeaf = node.op == Op::Constant || node.op == Op::Symbol || node.op == Op::Lane;
    const size_t count = isLeaf                  ? 0
                         : node.op == Op::Select ? 3
                         : node.op == Op::Not || node.op == Op::Within || node.op == Op::Fit || node.op == Op::Index
                             ? 1
                             : 2;
    for (size_t i = 0; i < count; ++i)
      if (seen.insert(node.args[i]).second)
        pending.push_back(node.args[i]);
  }
  return false;
}

NodeId Graph::make(Op op, NodeId a, NodeId b, NodeId c, Wide value) {
  auto x = asConstant(a), y = asConstant(b);
  if (op == Op::Add && x == 0)
    return b;
  if ((op == Op::Add || op == Op::Sub || op == Op::Shl || op == Op::Shr) && y == 0)
    return a;
  if ((op == Op::Mul || op == Op::Div) && y == 1)
    return a;
  if (op == Op::Mul && x == 1)
    return b;
  if (op == Op::Mul && (x == 0 || y == 0))
    return constant(0);
  return intern({op, {a, b, c}, value, nullptr});
}

NodeId Graph::fit(NodeId a, Machine type, Op op) {
  if (auto constant = asConstant(a))
    return this->constant(type.wrapped(*constant));
  if (nodes_[a].op == Op::Lane || (nodes_[a].op == Op::Fit && nodes_[a].value == type.code()))
    return a;
  return make(op, a, 0, 0, type.code());
}

//===-- values ----------------------------------------------------------------------------------------------------===//

LaneValue Evaluation::resolve(SymbolId symbol) const {
  auto found = cases_.find(symbol);
  if (found == cases_.end()) {
    const Symbol& known = graph.symbols[symbol];
    return known.lowest && known.lowest == known.highest ? LaneValue::constant(*known.lowest)
                                                         : LaneValue::symbol(symbol);
  }
  const Residue& residue = found->second;
  LaneValue rest = LaneValue::constant(residue.rest);
  if (residue.factor == 0)
    return rest;
  return *LaneValue::product(LaneValue::constant(residue.factor), resolve(residue.symbol)) + rest;
}

/// A value that all lanes agree on; only its bounds are known.
LaneValue Evaluation::opaque(NodeId id, std::optional<Wide> lowest, std::optional<Wide> highest) {
  auto [found, isNew] = graph.opaque_.try_emplace(id, static_cast<SymbolId>(graph.symbols.size()));
  if (isNew)
    graph.symbols.push_back({"", lowest, highest, {}, false, false});
  return resolve(found->second);
}

/// Records that a symbol of `culprit` stands in the way.
std::optional<LaneValue> Evaluation::give(const LaneValue& culprit, Wide modulus, const Expr* cause) {
  undecided = {std::nullopt, modulus, cause};
  for (const auto& [monomial, lanes] : culprit.terms())
    if (!monomial.empty() &&
        (modulus == 0 || std::any_of(lanes.begin(), lanes.end(), [&](Wide lane) { return lane % modulus != 0; }))) {
      undecided.symbol = monomial[0];
      break;
    }
  return std::nullopt;
}

std::optional<LaneValue> Evaluation::value(NodeId id) {
  if (auto found = values_.find(id); found != values_.end())
    return found->second;
  auto result = compute(graph.node(id), id);
  if (result)
    values_.emplace(id, *result);
  return result;
}

std::optional<LaneValue> Evaluation::compute(const Node& known, NodeId id) {
  const Node node = known;  // opaque symbols do not add nodes, but be safe
  switch (node.op) {
  case Op::Constant: return LaneValue::constant(node.value);
  case Op::Symbol: return resolve(static_cast<SymbolId>(node.value));
  case Op::Lane: {
    Lanes lanes;
    for (unsigned i = 0; i < kLanes; ++i)
      lanes[i] = i;
    return LaneValue::ofLanes(lanes);
  }
  case Op::Unknown: undecided = {std::nullopt, 0, node.cause}; return std::nullopt;
  case Op::Add:
  case Op::Sub:
  case Op::Mul: {
    auto a = value(node.args[0]), b = a ? value(node.args[1]) : std::nullopt;
    if (!b)
      return std::nullopt;
    if (node.op == Op::Mul) {
      auto product = LaneValue::product(*a, *b);
      if (!product)
        undecided = {};
      return product;
    }
    return node.op == Op::Add ? *a + *b : *a - *b;
  }
  case Op::Div:
  case Op::Rem: return divide(node, id);
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Shl:
  case Op::Shr: return bits(node, id);
  case Op::Min:
  case Op::Max: return extremum(node, id);
  case Op::Fit:
  case Op::Index: return fit(node, id);
  case Op::Select: return select(node, id);
  case Op::Lt:
  case Op::Le:
  case Op::Eq:
  case Op::Both:
  case Op::Either:
  case Op::Not: {
    std::array<Truth, kLanes> known = truth(id);
    Lanes lanes;
    for (unsigned i = 0; i < kLanes; ++i) {
      if (known[i] == Truth::Unknown)
        return std::nullopt;
      lanes[i] = known[i] == Truth::Yes;
    }
    return LaneValue::ofLanes(lanes);
  }
  case Op::Within: {
    auto at = value(node.args[0]);
    if (!at || !at->isUniform() || at->isFixed())
      return at;
    Range bounds = range(*at);
    if (bounds.lowest.value_or(-1) >= 0 && bounds.highest && *bounds.highest < node.value)
      return at;
    isApproximate = true;
    return opaque(id, 0, node.value - 1);
  }
  }
  return std::nullopt;
}

std::optional<LaneValue> Evaluation::fit(const Node& node, NodeId id) {
  auto number = value(node.args[0]);
  if (!number)
    return std::nullopt;
  const Machine type = Machine::of(node.value);
  if (number->isFixed()) {
    Lanes lanes = number->fixed();
    for (Wide& lane : lanes)
      lane = type.wrapped(lane);
    return LaneValue::ofLanes(lanes);
  }
  Range bounds = range(*number);
  if (node.op == Op::Index ||
      (bounds.lowest && *bounds.lowest >= type.lowest() && bounds.highest && *bounds.highest <= type.highest()))
    return number;
  if (!number->isUniform())
    return give(*number, 0);
  isApproximate = true;
  return opaque(id, type.lowest(), type.highest());
}

std::optional<LaneValue> Evaluation::remainderOf(const LaneValue& value, Wide modulus, NodeId id) {
  Range bounds = range(value);
  if (bounds.lowest.value_or(-1) >= 0 && bounds.highest && *bounds.highest < modulus)
    return value;
  if (value.symbolsAreMultiplesOf(modulus)) {
    Lanes lanes;
    for (unsigned i = 0; i < kLanes; ++i)
      lanes[i] = floorModulo(value.fixed()[i], modulus);
    return LaneValue::ofLanes(lanes);
  }
  if (value.isUniform())
    return opaque(id, 0, modulus - 1);
  return give(value, modulus);
}

std::optional<LaneValue> Evaluation::divide(const Node& node, NodeId id) {
  auto a = value(node.args[0]), b = a ? value(node.args[1]) : std::nullopt;
  if (!b)
    return std::nullopt;
  auto divisor = b->asNumber();
  if (!divisor || *divisor <= 0) {
    if (divisor == 0)
      return LaneValue::constant(0);
    const bool isNatural = range(*a).lowest.value_or(-1) >= 0 && range(*b).lowest.value_or(-1) >= 0;
    if (a->isUniform() && b->isUniform())
      return opaque(id, isNatural ? std::optional<Wide>(0) : std::nullopt,
                    isNatural ? range(*a).highest : std::nullopt);
    return give(*b, 0);
  }
  const bool isArithmeticShift = node.value != 0;
  if (a->isFixed()) {
    Lanes lanes = a->fixed();
    for (Wide& lane : lanes)
      lane = node.op == Op::Rem ? lane % *divisor : isArithmeticShift ? floorDivide(lane, *divisor) : lane / *divisor;
    return LaneValue::ofLanes(lanes);
  }
  Range bounds = range(*a);
  if (bounds.lowest.value_or(-1) < 0 && !isArithmeticShift) {
    if (!a->isUniform())
      return give(*a, 0);
    return opaque(id, node.op == Op::Rem ? std::optional(1 - *divisor) : std::nullopt,
                  node.op == Op::Rem ? std::optional(*divisor - 1) : std::nullopt);
  }
  if (node.op == Op::Rem)
    return remainderOf(*a, *divisor, id);
  if (bounds.lowest.value_or(-1) >= 0 && bounds.highest && *bounds.highest < *divisor)
    return LaneValue::constant(0);
  if (a->symbolsAreMultiplesOf(*divisor))
    return a->dividedBy(*divisor);
  if (a->isUniform()) {
    auto over = [&](std::optional<Wide> bound) {
      return bound ? std::optional(floorDivide(*bound, *divisor)) : std::nullopt;
    };
    return opaque(id, over(bounds.lowest), over(bounds.highest));
  }
  return give(*a, *divisor);
}

/// Of two's complement, however wide.
static Wide bitOperation(Op op, Wide a, Wide b) { return op == Op::And ? a & b : op == Op::Or ? a | b : a ^ b; }

std::optional<LaneValue> Evaluation::bits(const Node& node, NodeId id) {
  auto a = value(node.args[0]), b = a ? value(node.args[1]) : std::nullopt;
  if (!b)
    return std::nullopt;
  if (node.op == Op::Shl || node.op == Op::Shr) {
    auto count = b->asNumber();
    if (!count || *count < 0 || *count > 63) {
      if (a->isUniform() && b->isUniform())
        return opaque(id, std::nullopt, std::nullopt);
      return give(*b, 0);
    }
    const Wide factor = Wide(1) << *count;
    if (node.op == Op::Shl)
      return LaneValue::product(*a, LaneValue::constant(factor));
    Node division{Op::Div, {node.args[0], graph.constant(factor), 0}, 1, nullptr};
    return divide(division, id);
  }
  if (a->isFixed() && b->isFixed()) {
    Lanes lanes;
    for (unsigned i = 0; i < kLanes; ++i)
      lanes[i] = bitOperation(node.op, a->fixed()[i], b->fixed()[i]);
    return LaneValue::ofLanes(lanes);
  }
  auto anyNegative = [](const LaneValue& value) {
    return std::any_of(value.fixed().begin(), value.fixed().end(), [](Wide lane) { return lane < 0; });
  };
  if (!b->isFixed())
    std::swap(a, b);
  if (!b->isFixed() || anyNegative(*b)) {
    if (a->isUniform() && b->isUniform())
      return opaque(id, std::nullopt, std::nullopt);
    return give(b->isFixed() ? *a : *b, 0);
  }
  // b has only the low bits: the rest of a passes (or, xor) or vanishes (and).
  Wide most = 0;
  for (Wide lane : b->fixed())
    most = std::max(most, lane);
  if (most >= Wide(1) << 62)
    return give(*a, 0);
  const auto period = Wide(std::bit_ceil(static_cast<uint64_t>(most) + 1));
  const Range bounds = range(*a);
  if (node.op == Op::And && b->asNumber() == period - 1 && bounds.lowest.value_or(-1) >= 0 && bounds.highest &&
      *bounds.highest < period)
    return a;
  if (!a->symbolsAreMultiplesOf(period)) {
    if (a->isUniform() && b->isUniform() && node.op == Op::And)
      return opaque(id, 0, most);
    // Symbols within the low bits must be told apart one by one.
    return give(*a, bounds.highest && *bounds.highest < kFewValues ? 0 : period);
  }
  Lanes low;
  for (unsigned i = 0; i < kLanes; ++i)
    low[i] = bitOperation(node.op, floorModulo(a->fixed()[i], period), b->fixed()[i]);
  if (node.op == Op::And)
    return LaneValue::ofLanes(low);
  Lanes high;
  for (unsigned i = 0; i < kLanes; ++i)
    high[i] = floorDivide(a->fixed()[i], period) * period + low[i];
  return (*a - a->fixedPart()) + LaneValue::ofLanes(high);
}

std::optional<LaneValue> Evaluation::extremum(const Node& node, NodeId id) {
  auto a = value(node.args[0]), b = a ? value(node.args[1]) : std::nullopt;
  if (!b)
    return std::nullopt;
  LaneValue difference = *a - *b;
  std::array<bool, kLanes> takesFirst;
  for (unsigned i = 0; i < kLanes; ++i) {
    Range sign = rangeOfLane(difference, i);
    if (sign.highest && *sign.highest <= 0) {
      takesFirst[i] = node.op == Op::Min;
    } else if (sign.lowest && *sign.lowest >= 0) {
      takesFirst[i] = node.op == Op::Max;
    } else {
      if (a->isUniform() && b->isUniform())
        return opaque(id, std::nullopt, std::nullopt);
      return give(difference, 0);
    }
  }
  return LaneValue::merge(takesFirst, *a, *b);
}

std::optional<LaneValue> Evaluation::select(const Node& node, NodeId id) {
  std::array<Truth, kLanes> condition = truth(node.args[0]);
  const Undecided reason = undecided;
  bool allYes = true, allNo = true, isKnown = true;
  std::array<bool, kLanes> chosen;
  for (unsigned i = 0; i < kLanes; ++i) {
    chosen[i] = condition[i] == Truth::Yes;
    allYes &= condition[i] == Truth::Yes;
    allNo &= condition[i] == Truth::No;
    isKnown &= condition[i] != Truth::Unknown;
  }
  if (allYes || allNo)
    return value(node.args[allYes ? 1 : 2]);
  auto a = value(node.args[1]), b = a ? value(node.args[2]) : std::nullopt;
  if (!b)
    return std::nullopt;
  if (isKnown)
    return LaneValue::merge(chosen, *a, *b);
  LaneValue difference = *a - *b;
  if (difference.terms().empty())
    return a;
  if (difference.isUniform() && isUniformCondition(node.args[0]))
    return *a + opaque(id, std::nullopt, std::nullopt);
  undecided = reason;
  return std::nullopt;
}

//===-- conditions ------------------------------------------------------------------------------------------------===//

bool Evaluation::isUniformCondition(NodeId id) {
  const Node node = graph.node(id);
  switch (node.op) {
  case Op::Not: return isUniformCondition(node.args[0]);
  case Op::Both:
  case Op::Either: return isUniformCondition(node.args[0]) && isUniformCondition(node.args[1]);
  case Op::Lt:
  case Op::Le:
  case Op::Eq: {
    auto a = value(node.args[0]), b = a ? value(node.args[1]) : std::nullopt;
    return b && (*a - *b).isUniform();
  }
  default: {
    auto plain = value(id);
    return plain && plain->isUniform();
  }
  }
}

static Truth negated(Truth truth) {
  return truth == Truth::Unknown ? truth : truth == Truth::Yes ? Truth::No : Truth::Yes;
}

std::array<Truth, kLanes> Evaluation::truth(NodeId id) {
  const Node node = graph.node(id);
  std::array<Truth, kLanes> result;
  result.fill(Truth::Unknown);
  if (node.op == Op::Not) {
    result = truth(node.args[0]);
    for (Truth& each : result)
      each = negated(each);
    return result;
  }
  if (node.op == Op::Both || node.op == Op::Either) {
    auto a = truth(node.args[0]), b = truth(node.args[1]);
    const Truth strong = node.op == Op::Both ? Truth::No : Truth::Yes;
    for (unsigned i = 0; i < kLanes; ++i)
      result[i] = a[i] == strong || b[i] == strong ? strong : a[i] == b[i] ? a[i] : Truth::Unknown;
    return result;
  }
  if (node.op != Op::Lt && node.op != Op::Le && node.op != Op::Eq) {
    auto plain = value(id);
    for (unsigned i = 0; plain && plain->isFixed() && i < kLanes; ++i)
      result[i] = plain->fixed()[i] ? Truth::Yes : Truth::No;
    return result;
  }
  auto a = value(node.args[0]), b = a ? value(node.args[1]) : std::nullopt;
  if (!b)
    return result;
  LaneValue difference = *b - *a;
  for (unsigned i = 0; i < kLanes; ++i) {
    Range range = rangeOfLane(difference, i);
    const Wide least = node.op == Op::Lt ? 1 : 0;
    if (node.op == Op::Eq) {
      if ((range.lowest && *range.lowest > 0) || (range.highest && *range.highest < 0))
        result[i] = Truth::No;
      else if (range.lowest == 0 && range.highest == 0)
        result[i] = Truth::Yes;
    } else if (range.lowest && *range.lowest >= least) {
      result[i] = Truth::Yes;
    } else if (range.highest && *range.highest < least) {
      result[i] = Truth::No;
    }
    if (result[i] == Truth::Unknown)
      give(difference, 0);
  }
  return result;
}

/// Unknown when a number is, or when it does not fit.
static std::optional<Wide> productOf(std::optional<Wide> a, std::optional<Wide> b) {
  Wide result;
  return a && b && !__builtin_mul_overflow(*a, *b, &result) ? std::optional(result) : std::nullopt;
}

static std::optional<Wide> sumOf(std::optional<Wide> a, std::optional<Wide> b) {
  Wide result;
  return a && b && !__builtin_add_overflow(*a, *b, &result) ? std::optional(result) : std::nullopt;
}

/// Of numbers in both ranges; a bound is nothing where the range has none or it fits no Wide.
static Evaluation::Range productOf(const Evaluation::Range& a, const Evaluation::Range& b) {
  if (a.lowest.value_or(-1) >= 0 && b.lowest.value_or(-1) >= 0)
    return {productOf(a.lowest, b.lowest), productOf(a.highest, b.highest)};
  if (!a.lowest || !a.highest || !b.lowest || !b.highest)
    return {};
  Evaluation::Range result;
  for (auto x : {a.lowest, a.highest})
    for (auto y : {b.lowest, b.highest}) {
      const auto corner = productOf(x, y);
      if (!corner)
        return {};
      result.lowest = std::min(result.lowest.value_or(*corner), *corner);
      result.highest = std::max(result.highest.value_or(*corner), *corner);
    }
  return result;
}

Evaluation::Range Evaluation::rangeOfLane(const LaneValue& value, unsigned lane) const {
  Range result{0, 0};
  for (const auto& [monomial, lanes] : value.terms()) {
    const Wide factor = lanes[lane];
    if (factor == 0)
      continue;
    Range product{1, 1};
    for (SymbolId id : monomial)
      product = productOf(product, {graph.symbols[id].lowest, graph.symbols[id].highest});
    const auto low = factor > 0 ? product.lowest : product.highest,
               high = factor > 0 ? product.highest : product.lowest;
    result.lowest = sumOf(result.lowest, productOf(low, factor));
    result.highest = sumOf(result.highest, productOf(high, factor));
  }
  return result;
}

Evaluation::Range Evaluation::range(const LaneValue& value) const {
  Range result = rangeOfLane(value, 0);
  for (unsigned lane = 1; lane < kLanes; ++lane) {
    Range next = rangeOfLane(value, lane);
    result.lowest = result.lowest && next.lowest ? std::optional(std::min(*result.lowest, *next.lowest)) : std::nullopt;
    result.highest =
        result.highest && next.highest ? std::optional(std::max(*result.highest, *next.highest)) : std::nullopt;
  }
  return result;
}

//===-- cases -----------------------------------------------------------------------------------------------------===//

std::string Evaluation::describeCase() const {
  std::string text;
  for (const auto& [id, residue] : cases_) {
    const Symbol& symbol = graph.symbols[id];
    if (!symbol.isUsers || symbol.name.empty())
      continue;
    text += (text.empty() ? "`" : ", `") + symbol.name;
    if (residue.factor != 0)
      text += " % " + std::to_string(static_cast<int64_t>(residue.factor));
    text += "` = " + std::to_string(static_cast<int64_t>(residue.rest));
  }
  return text;
}

std::optional<Undecided> Evaluation::visitCase(Evaluation& evaluation, const Visit& visit, unsigned& budget) {
  if (budget == 0)
    return Undecided{};
  --budget;
  auto open = visit(evaluation);
  if (!open || !open->symbol)
    return open;
  return split(evaluation, *open, visit, budget);
}

std::optional<Undecided> Evaluation::split(const Evaluation& from, const Undecided& on, const Visit& visit,
                                           unsigned& budget) {
  const SymbolId id = *on.symbol;
  const Symbol symbol = from.graph.symbols[id];
  std::vector<Residue> cases;
  const bool isBounded = symbol.lowest && symbol.highest;
  const Wide count = isBounded ? *symbol.highest - *symbol.lowest + 1 : 0;
  if (!symbol.values.empty()) {
    for (Wide value : symbol.values)
      cases.push_back({0, value, 0});
  } else if (isBounded && (count <= kFewValues || (on.modulus == 0 && count <= kMostResidues))) {
    for (Wide value = *symbol.lowest; value <= *symbol.highest; ++value)
      cases.push_back({0, value, 0});
  } else if (on.modulus > 1 && on.modulus <= kMostResidues) {
    auto over = [&](std::optional<Wide> bound) {
      return bound ? std::optional(floorDivide(*bound, on.modulus)) : std::nullopt;
    };
    const auto next = static_cast<SymbolId>(from.graph.symbols.size());
    from.graph.symbols.push_back({symbol.name, over(symbol.lowest), over(symbol.highest), {}, symbol.isExtent, false});
    for (Wide rest = 0; rest < on.modulus; ++rest)
      cases.push_back({on.modulus, rest, next});
  } else {
    Undecided stuck = on;
    return stuck;
  }
  for (const Residue& each : cases) {
    Evaluation next(from.graph);
    next.cases_ = from.cases_;
    next.cases_[id] = each;
    if (auto stuck = visitCase(next, visit, budget))
      return stuck;
  }
  return std::nullopt;
}

std::optional<Undecided> Evaluation::forEachCase(Graph& graph, const Visit& visit, unsigned budget) {
  Evaluation evaluation(graph);
  return visitCase(evaluation, visit, budget);
}

}  // namespace vortex::lang::access
