// The memory of the thread machine.
#include "lang/flow/testing/thread_machine.h"

#include <algorithm>

namespace vortex::lang::flow::testing {

Number ThreadMachine::read(const Region& region, const Key& key) {
  if (auto found = region.cells.find(key); found != region.cells.end())
    return found->second;
  for (size_t i = region.fills.size(); i-- > 0;) {
    const Key& prefix = region.fills[i].first;
    if (prefix.size() <= key.size() && std::equal(prefix.begin(), prefix.end(), key.begin()))
      return region.fills[i].second;
  }
  return std::nullopt;
}

Number ThreadMachine::element(LocalId tensor, const Key& index) const {
  auto found = regions_.find({tensor, 0});
  return found == regions_.end() ? std::nullopt : read(found->second, index);
}

std::optional<LocalId> ThreadMachine::result(uint32_t number) const {
  std::optional<LocalId> named;
  for (uint32_t i = 0; i < graph_.locals.size(); ++i) {
    const Local& local = graph_.locals[i];
    if (local.storage != Storage::Result)
      continue;
    if (!local.variable && local.index == number)
      return LocalId{i};
    if (local.variable)
      named = LocalId{i};
  }
  return named;
}

ThreadMachine::Region& ThreadMachine::region(const Thread& thread, const Place& place) {
  const int64_t blocks = launch_.grid[0] * launch_.grid[1] * launch_.grid[2];
  const int64_t number = block_[0] + launch_.grid[0] * (block_[1] + launch_.grid[1] * block_[2]);
  const int64_t threads = static_cast<int64_t>(threads_.size());
  switch (graph_[place.root].storage) {
  case Storage::Variable:
    if (place.storage != Storage::Variable)  // a tensor inside a parameter
      break;
    [[fallthrough]];
  case Storage::Local: return regions_[{place.root, 1 + blocks + number * threads + thread.linear}];
  case Storage::Shared:
  case Storage::Tile: return regions_[{place.root, 1 + number}];
  default: break;
  }
  return regions_[{place.root, 0}];
}

std::optional<int64_t> ThreadMachine::dimension(const DimExpr& expr) const {
  __int128 sum = 0;
  for (const auto& [monomial, coefficient] : expr.terms()) {
    __int128 product = coefficient;
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Opaque)
        return std::nullopt;
      if (atom.kind == DimAtom::Kind::Variable) {
        auto found = launch_.dims.find(atom.id);
        if (found == launch_.dims.end())
          return std::nullopt;
        product *= found->second;
        continue;
      }
      const auto a = dimension(atom.operands[0]), b = dimension(atom.operands[1]);
      if (!a || !b)
        return std::nullopt;
      const bool isMin = atom.kind == DimAtom::Kind::Min, isMax = atom.kind == DimAtom::Kind::Max;
      if (isMin || isMax)
        product *= isMin ? std::min(*a, *b) : std::max(*a, *b);
      else if (*b == 0)
        product = 0;
      else
        product *= atom.kind == DimAtom::Kind::Mod       ? *a % *b
                   : atom.kind == DimAtom::Kind::CeilDiv ? (*a + *b - 1) / *b
                                                         : *a / *b;
    }
    sum += product;
  }
  return static_cast<int64_t>(sum);
}

std::optional<std::vector<int64_t>> ThreadMachine::extents(Type tensor) const {
  std::vector<int64_t> out;
  for (const DimExpr& dim : tensor->shape) {
    const auto size = dimension(dim);
    if (!size)
      return std::nullopt;
    out.push_back(*size);
  }
  return out;
}

Type ThreadMachine::storageType(const Place& place) const {
  Type type = stripRef(graph_[place.root].type);
  for (uint32_t i = 0; i < place.storagePath; ++i) {
    const Projection& each = place.path[i];
    type = stripRef(each.kind == ProjectionKind::Slot ? type->elem : type->elems[each.field]);
  }
  return type;
}

/// The part of the tensor that a window leaves: it begins inside and ends with the tensor. False if a single index is outside.
bool ThreadMachine::clampWindow(Thread& thread, const Projection& window, std::vector<int64_t>& sizes) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < window.dims.size(); ++i) {
    const auto begin = value(thread, window.dims[i].begin);
    if (!begin)
      return false;
    if (window.dims[i].isIndex()) {
      if (*begin >= sizes[i])
        return false;
      continue;
    }
    const auto end = value(thread, window.dims[i].end);
    if (!end)
      return false;
    const __int128 from = std::min<__int128>(*begin, sizes[i]);
    const __int128 length = wrapped(kUsize, *end - *begin);
    out.push_back(static_cast<int64_t>(std::min<__int128>(length, sizes[i] - from)));
  }
  sizes = std::move(out);
  return true;
}

/// Nothing where the place is not known; a cell without a region where it lies outside.
/// A field of all elements of an array, as `[(0, x); n]` stores it.
bool ThreadMachine::isOfAllElements(const Place& place) const {
  Type type = stripRef(graph_[place.root].type);
  for (uint32_t i = 0; i < place.storagePath; ++i) {
    const Projection& each = place.path[i];
    if (each.kind == ProjectionKind::Field && type->kind == TypeKind::Array)
      return true;
    type = stripRef(each.kind == ProjectionKind::Slot ? type->elem : type->elems[each.field]);
  }
  return false;
}

std::optional<ThreadMachine::Cell> ThreadMachine::cell(Thread& thread, PlaceId id) {
  const Place& place = graph_[id];
  if (place.isUnknown() || isOfAllElements(place))
    return std::nullopt;
  Cell out{&region(thread, place), {}};
  std::vector<int64_t> sizes;
  if (const Type type = storageType(place); type->isTensor()) {
    const auto known = extents(type);
    if (!known)
      return std::nullopt;
    sizes = *known;
  }
  Key dims, fields;
  for (const DimRange& dim : place.dims) {
    const Number at = value(thread, dim.begin);
    if (!at)
      return std::nullopt;
    dims.push_back(static_cast<int64_t>(*at));
  }
  bool isInside = true;
  for (size_t i = 0; i < place.path.size(); ++i) {
    const Projection& each = place.path[i];
    Key& where = i < place.storagePath ? out.key : fields;
    if (each.kind == ProjectionKind::Field) {
      where.push_back(each.field);
    } else if (each.kind == ProjectionKind::Slot) {
      const Number at = value(thread, each.index);
      if (!at)
        return std::nullopt;
      where.push_back(static_cast<int64_t>(std::min<__int128>(*at, INT64_MAX)));
    } else if (each.kind == ProjectionKind::Window) {
      isInside = isInside && clampWindow(thread, each, sizes);
    } else {
      for (size_t dim = 0; isInside && dim < each.dims.size(); ++dim) {
        const Number at = value(thread, each.dims[dim].begin);
        if (!at)
          return std::nullopt;
        isInside = isInside && dim < sizes.size() && *at < sizes[dim];
      }
    }
  }
  out.key.insert(out.key.end(), dims.begin(), dims.end());
  out.key.insert(out.key.end(), fields.begin(), fields.end());
  if (!isInside)
    out.region = nullptr;
  return out;
}

}  // namespace vortex::lang::flow::testing
