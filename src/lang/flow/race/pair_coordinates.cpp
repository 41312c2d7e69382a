// The subscripts of a pair: where in the tensor that both sides touch each of them is, and what is known of that.
#include <algorithm>

#include "lang/flow/race/bit_maps.h"
#include "lang/flow/race/pair.h"

namespace vortex::lang::flow {

/// Where an index outside of an array of shared tensors names its last one, two of them tell nothing apart that may be there.
bool Pair::isInside(const Side& side, const Projection& slot, Type array) {
  if (view_.graph[side.access.place].storage != Storage::Shared)
    return true;
  const ValueId count = view_.nodes.constant(kUsize, static_cast<__int128>(array->count));
  return array->kind == TypeKind::Array &&
         view_.values.less(slot.index, count, pointOf(side.access.step)) == Truth::Yes;
}

/// Fields and slots on the way to the tensor. False: they lead to different ones, or cannot be followed.
bool Pair::addStorage(const Side& first, const Side& second, size_t& at, Type& type) {
  const Place &a = view_.graph[first.access.place], &b = view_.graph[second.access.place];
  for (; at < a.path.size() && at < b.path.size() && !type->isTensor(); ++at) {
    const Projection &x = a.path[at], &y = b.path[at];
    if (x.kind != y.kind)
      return false;
    if (x.kind == ProjectionKind::Field) {
      if (x.field != y.field) {
        areApart_ = true;
        return false;
      }
      type = stripRef(type->elems[x.field]);
    } else if (x.kind == ProjectionKind::Slot) {
      if (isInside(first, x, type) && isInside(second, y, type))
        coordinates_.push_back({clone(first_, x.index), clone(second_, y.index)});
      type = stripRef(type->elem);
    } else {
      return false;
    }
  }
  return type->isTensor();
}

/// Windows within windows and what is chosen of the last, outermost first; empty where there is one only, or one takes dimensions away.
static std::vector<const Projection*> nested(const Place& place) {
  std::vector<const Projection*> out;
  for (const Projection& each : place.path)
    if (each.kind == ProjectionKind::Window || each.kind == ProjectionKind::At)
      out.push_back(&each);
  const auto keepsDims = [&](const Projection* each) {
    return each == out.back() ||
           std::none_of(each->dims.begin(), each->dims.end(), [](const DimRange& dim) { return dim.isIndex(); });
  };
  const bool isNested = out.size() > 1 && std::all_of(out.begin(), out.end(), [&](const Projection* each) {
                          return each->dims.size() == place.dims.size() && keepsDims(each);
                        });
  return isNested ? out : std::vector<const Projection*>();
}

void Pair::addDims(const Place& place, Env& env, Type tensor, std::vector<ValueId>& out) {
  NodeTable& nodes = view_.nodes;
  const std::vector<const Projection*> windows = nested(place);
  const auto lengthOf = [&](const DimRange& range) {
    return nodes.op(Op::Sub, kUsize, clone(env, range.end), clone(env, range.begin));
  };
  for (size_t d = 0; d < place.dims.size(); ++d) {
    const DimRange& range = windows.empty() ? place.dims[d] : windows.back()->dims[d];
    ValueId at = clone(env, range.begin);
    if (!range.isIndex()) {
      const ValueId offset = fresh(kUsize, kNoValue);
      at = nodes.op(Op::Add, kUsize, at, offset);
      assume(nodes.op(Op::Lt, kBool, offset, lengthOf(range)));
    }
    for (size_t w = windows.size(); w-- > 1;) {  // what is outside a window is not reached through it
      const DimRange& around = windows[w - 1]->dims[d];
      assume(nodes.op(Op::Lt, kBool, at, lengthOf(around)));
      at = nodes.op(Op::Add, kUsize, clone(env, around.begin), at);
    }
    if (const ValueId extent =
            d < tensor->shape.size() ? dimensionValue(tensor->shape[d], *view_.graph.function, nodes) : kNoValue;
        extent != kNoValue)
      assume(nodes.op(Op::Lt, kBool, at, extent));
    out.push_back(at);
  }
}

/// Fields of elements, and slots of arrays in them.
void Pair::addElementPath(const Place& a, const Place& b) {
  const auto tail = [](const Place& place) {
    size_t at = place.path.size();
    while (at > 0 &&
           (place.path[at - 1].kind == ProjectionKind::Field || place.path[at - 1].kind == ProjectionKind::Slot))
      --at;
    return at == 0 ? place.path.size() : at;
  };
  size_t i = tail(a), j = tail(b);
  for (; i < a.path.size() && j < b.path.size(); ++i, ++j) {
    if (a.path[i].kind != b.path[j].kind)
      return;
    if (a.path[i].kind == ProjectionKind::Slot)
      coordinates_.push_back({clone(first_, a.path[i].index), clone(second_, b.path[j].index)});
    else if (a.path[i].field != b.path[j].field) {
      areApart_ = true;
      return;
    }
  }
}

/// x ^ m and y ^ m differ where x and y do, and so do other numbers made of their bits.
void Pair::addUnmasked(size_t written) {
  NodeTable& nodes = view_.nodes;
  std::vector<std::pair<ValueId, ValueId>> all;
  for (const Coordinate& each : std::span(coordinates_).first(written))
    all.emplace_back(each.first, each.second);
  BitBounds below;
  for (const Condition& condition : conditions_)
    if (const Node& node = nodes[condition.value];
        condition.holds && node.kind == NodeKind::Op && node.op == Op::Lt && nodes.isConstant(node.args[1]))
      below.try_emplace(nodes.operand(condition.value, 0), nodes[node.args[1]].constant());
  const auto add = [&](std::span<const std::pair<ValueId, ValueId>> equal) {
    for (const auto& [x, y] : equalByBits(nodes, equal, below))
      addCoordinate(x, y);
  };
  add(all);  // two subscripts may have the bits of one number between them
  for (size_t i = 0; i < coordinates_.size() && coordinates_.size() < 16; ++i) {
    const std::pair<ValueId, ValueId> one{coordinates_[i].first, coordinates_[i].second};
    add({&one, 1});
  }
}

/// Two numbers with equal quotients and equal remainders are equal: x / W and x % W together are x, and x / (V * W) and x / V % W are x / V.
void Pair::joinDigits() {
  NodeTable& nodes = view_.nodes;
  const auto is = [&](ValueId value, Op op) { return nodes[value].kind == NodeKind::Op && nodes[value].op == op; };
  const auto divided = [&](ValueId value) { return nodes.operand(value, 0); };
  const auto divisor = [&](ValueId value) { return nodes.operand(value, 1); };
  // As integers: a product that wraps is none.
  const auto isProduct = [&](ValueId product, ValueId a, ValueId b) {
    const auto number = [&](ValueId value) { return view_.values.integer(value, kNoPoint); };
    const auto both = Polynomial::product(number(a), number(b));
    return both && *both == number(product);
  };
  for (size_t i = 0; i < coordinates_.size() && coordinates_.size() < 16; ++i)
    for (size_t j = 0; j < coordinates_.size(); ++j) {
      for (const auto& [high, low] :
           {std::pair(coordinates_[i], coordinates_[j]), std::pair(coordinates_[j], coordinates_[i])}) {
        if (!is(high.first, Op::Div) || !is(high.second, Op::Div) || !is(low.first, Op::Rem) ||
            !is(low.second, Op::Rem) || divisor(high.first) != divisor(high.second) ||
            divisor(low.first) != divisor(low.second) || low.divisor != kNoValue)
          continue;
        const ValueId by = divisor(high.first), x = divided(low.first), y = divided(low.second);
        const bool isWhole = divided(high.first) == x && divided(high.second) == y && divisor(low.first) == by;
        const bool isPart = is(x, Op::Div) && is(y, Op::Div) && divisor(x) == divisor(y) &&
                            divided(x) == divided(high.first) && divided(y) == divided(high.second) &&
                            isProduct(by, divisor(x), divisor(low.first));
        // Where the largest divisor is not 0, neither are those that it is made of.
        const Coordinate joined{x, y, high.divisor == kNoValue ? by : high.divisor};
        const auto isKnown = [&](const Coordinate& each) { return each.first == x && each.second == y; };
        if ((isWhole || isPart) && std::none_of(coordinates_.begin(), coordinates_.end(), isKnown))
          coordinates_.push_back(joined);
      }
    }
}

void Pair::addCoordinates(const Side& first, const Side& second) {
  const Place &a = view_.graph[first.access.place], &b = view_.graph[second.access.place];
  // Subscripts of a part of one of several tensors are not those of the tensor.
  for (const Place* place : {&a, &b})
    if (place->root == kNoLocal || (place->isUnknown() && !place->isWhole))
      return;
  size_t at = 0;
  Type type = stripRef(view_.graph[a.root].type);
  if (!addStorage(first, second, at, type) || areApart_)
    return;
  std::vector<ValueId> x, y;
  addDims(a, first_, type, x);
  addDims(b, second_, type, y);
  for (size_t d = 0; d < x.size() && d < y.size(); ++d)
    coordinates_.push_back({x[d], y[d]});
  addElementPath(a, b);
}

}  // namespace vortex::lang::flow
