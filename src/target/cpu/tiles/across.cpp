// Stores whose last dimension is shorter than a vector: the dimension before it has the vectors (channels of pixels, real and imaginary parts).
//
// Of few elements that are known, all of them are computed for a vector of places, and stored between each other where they lie side by side.
#include "target/cpu/tiles/group.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

/// Elements of a last dimension that are computed before any is stored.
static constexpr uint64_t kTogether = 8;

static std::optional<uint64_t> knownOf(Value* value) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value))
    return constant->getZExtValue();
  return std::nullopt;
}

/// Of the inner dimensions, the last one before the last that is not known to have one element.
std::optional<unsigned> Group::dimAcross(const Pass& pass) {
  if (!e_.unitStrides || pass.inner.size() < 2 || !pass.kept.empty())
    return std::nullopt;
  for (unsigned dim = pass.inner.size() - 1; dim-- > 0;)
    if (knownOf(pass.inner[dim]) != 1)
      return dim;
  return std::nullopt;
}

/// Some load has its neighbours along that dimension.
bool Group::readsAlong(const Pass& pass, unsigned along) {
  bool found = false;
  Closure closure(v_);
  for (unsigned root : pass.roots)
    closure.walk(roots_[root].value, identityMap(pass.loops), [&](mlir::Value value, const DimMap& map) {
      const bool isLeaf = v_.place(value) || value.getDefiningOp<ir::TileLoadOp>();
      found |= isLeaf && !map.empty() && map.back().loop == static_cast<int>(indices_.size() + along);
      return !isLeaf;
    });
  return found;
}

/// i1: vectors along `along` are worth it. Null: they are not.
Value* Group::runsAcross(const Pass& pass, unsigned along, unsigned lanes) {
  llvm::IRBuilder<>& ir = e_.ir;
  auto last = knownOf(pass.inner.back()), others = knownOf(pass.inner[along]);
  if (last)
    return *last <= kTogether && 2 * *last <= lanes && (!others || *others > *last) ? ir.getTrue() : nullptr;
  if (!readsAlong(pass, along))
    return nullptr;
  Value* isShort = ir.CreateICmpULT(pass.inner.back(), e_.i64(lanes / 2));
  return ir.CreateAnd(isShort, ir.CreateICmpULT(pass.inner.back(), pass.inner[along]));
}

/// `count` elements of the last dimension, from the one of `at` on.
void Group::storeAcross(const Pass& pass, unsigned along, const At& at, uint64_t count) {
  llvm::IRBuilder<>& ir = e_.ir;
  Frame frame(v_);
  llvm::SmallVector<At> places(count, at);
  llvm::SmallVector<Values> values(pass.roots.size());
  for (auto [number, place] : llvm::enumerate(places)) {
    place.index.back() = Lane::uniform(e_.i64(number));
    for (auto [own, root] : llvm::zip_equal(values, pass.roots))
      own.push_back(v_.eval(roots_[root].value, place));
  }
  for (auto [own, number] : llvm::zip_equal(values, pass.roots)) {
    const Root& root = roots_[number];
    auto apart = [&] {
      for (auto [place, value] : llvm::zip_equal(places, own))
        storeElements(e_, root.sink, place, value, v_.inside);
      return Values{};
    };
    const size_t rows = indices_.size();
    Value* pitch = root.sink.view.strides[rows + along];
    const bool mayLieTogether = count > 1 && !at.mask && (!root.sink.guarded || v_.inside) &&
                                knownOf(root.sink.view.strides.back()) == 1 && knownOf(pitch).value_or(count) == count;
    if (!mayLieTogether) {
      apart();
      continue;
    }
    auto together = [&] {
      storeTogether(e_, root.sink, places[0], own);
      return Values{};
    };
    if (knownOf(pitch))
      together();
    else
      emit::emitIf(ir, ir.CreateICmpEQ(pitch, e_.i64(count)), together, apart);
  }
}

void Group::emitAcross(const Pass& pass, unsigned along, unsigned lanes) {
  const unsigned last = pass.inner.size() - 1;
  Values numbers(pass.inner.size(), e_.i64(0));
  const std::optional<uint64_t> count = knownOf(pass.inner.back());
  auto vectors = [&](Value* i, Value* mask, unsigned width, Values&) {
    At at = rowPosition();
    for (unsigned dim = 0; dim <= last; ++dim)
      at.index.push_back(dim == along ? laneIndex(e_, i, width) : Lane::uniform(numbers[dim]));
    at.lanes = width;
    at.mask = mask;
    if (count && *count <= kTogether)
      return storeAcross(pass, along, at, *count);
    emitCounted(e_, pass.inner.back(), {}, [&](Value* number, llvm::ArrayRef<Value*>) {
      Frame frame(v_);
      At here = at;
      here.index.back() = Lane::uniform(number);
      storeRoots(pass, here, 0);
      return Values{};
    });
  };
  auto loops = [&](auto& self, unsigned dim) -> void {
    if (dim == last)
      return void(emitVectorLoop(e_, pass.inner[along], {lanes, 1}, {}, vectors));
    if (dim == along)
      return self(self, dim + 1);
    emitCounted(e_, pass.inner[dim], {}, [&](Value* i, llvm::ArrayRef<Value*>) {
      Frame frame(v_);
      numbers[dim] = i;
      self(self, dim + 1);
      return Values{};
    });
  };
  loops(loops, 0);
}

}  // namespace vortex::target::cpu::tiles
