// Variables as SSA values, and loads and stores of places that are parts of variables.
#include "irgen/emitter.h"

namespace vortex::irgen {

using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

static bool isView(mlir::Type type) { return llvm::isa<ir::ViewType>(type); }

llvm::SmallVector<mlir::Type, 1> Emitter::leafTypes(const Variable* variable) const {
  llvm::SmallVector<mlir::Type> leaves;
  if (context_.tileResults.contains(variable))
    leaves.push_back(types_.tile(variable->type));
  else
    types_.flatten(variable->type, leaves);
  return llvm::SmallVector<mlir::Type, 1>(leaves.begin(), leaves.end());
}

void Emitter::declare(const Variable* variable) {
  Slot& slot = variables_[variable];
  slot = {};
  slot.leaves.resize(leafTypes(variable).size());
  slot.inRegion = inThreads_;
}

void Emitter::assign(Location loc, const Variable* variable, Flat value) {
  if (value.leaves.empty() && !value.ref)
    return;  // the value of a jump
  if (variable->type->kind == lang::TypeKind::Ref || namesMemory(variable)) {
    variables_[variable] = {value.leaves, value.ref, inThreads_ || value.inRegion};
    return;
  }
  llvm::SmallVector<mlir::Type, 1> types = leafTypes(variable);
  VORTEX_CHECK(types.size() == value.leaves.size(), "`%s` takes %zu values, not %zu", variable->name.c_str(),
               types.size(), value.leaves.size());
  for (auto [index, type] : llvm::enumerate(types))
    if (auto tile = llvm::dyn_cast<mlir::RankedTensorType>(type)) {
      Value& leaf = value.leaves[index];
      leaf = isView(leaf.getType()) ? adaptTile(loc, loadTile(loc, leaf, types_.tensorOf(variable->type, index)), tile)
                                    : adaptTile(loc, leaf, tile);
    }
  variables_[variable] = {value.leaves, value.ref, inThreads_ || value.inRegion};
}

Flat Emitter::read(Location loc, const Variable* variable) {
  auto found = variables_.find(variable);
  VORTEX_CHECK(found != variables_.end(), "`%s` is not declared here", variable->name.c_str());
  if (found->second.inRegion && !inThreads_) {
    closeRegion();
    found->second.inRegion = false;
  }
  Slot& slot = found->second;
  Flat result;
  result.ref = slot.ref;
  if (variable->type->kind == lang::TypeKind::Ref && slot.leaves.empty())
    return result;
  llvm::SmallVector<mlir::Type, 1> types = leafTypes(variable);
  for (auto [index, leaf] : llvm::enumerate(slot.leaves)) {
    mlir::Type expected = index < types.size() ? types[index] : leaf.getType();
    if (!leaf && llvm::isa<mlir::RankedTensorType>(expected)) {
      leaf = broadcastScalar(loc, math_.zero(loc, mlir::getElementTypeOrSelf(expected)),
                             types_.tensorOf(variable->type, index));
      if (context_.forChecks)
        leaf.getDefiningOp()->setAttr("vx.unwritten", b_.getUnitAttr());
    }
    VORTEX_CHECK(leaf || !isView(expected), "a window on memory is used after a barrier");
    // At block level a value that is the same for all threads is no tensor, though a region may have computed it beside others.
    const bool isForm = leaf && !inThreads_ && variable->uniformity == lang::Uniformity::PerThread;
    result.leaves.push_back(isForm ? leaf : coerceLeaf(loc, leaf, expected, inThreads_));
  }
  return result;
}

void Emitter::setFlag(Location loc, const Variable* flag, bool value) {
  if (!flag)
    return;
  if (atBlockLevel() && facts_.isDivergent(flag)) {
    VariableSet assigned;
    assigned.insert(flag);
    return inRegion(loc, assigned, [&] { setFlag(loc, flag, value); });
  }
  assign(loc, flag, math_.integer(loc, b_.getI1Type(), value));
}

//===-- merging at control flow -----------------------------------------------------------------------------------===//

llvm::SmallVector<const lang::Variable*> Emitter::merged(const VariableSet& assigned) const {
  VariableSet result;
  for (const Variable* variable : assigned) {
    auto found = variables_.find(variable);
    while (found != variables_.end() && found->second.ref && found->second.ref->variable) {
      variable = found->second.ref->variable;  // assigned through a reference
      found = variables_.find(variable);
    }
    if (found == variables_.end() || found->second.ref || namesMemory(variable))
      continue;
    result.insert(variable);
  }
  return llvm::SmallVector<const Variable*>(result.begin(), result.end());
}

llvm::SmallVector<mlir::Type> Emitter::mergedTypes(llvm::ArrayRef<const Variable*> variables) const {
  llvm::SmallVector<mlir::Type> result;
  for (const Variable* variable : variables)
    for (mlir::Type type : leafTypes(variable)) {
      if (isView(type))
        continue;
      bool perThread = !inThreads_ && context_.hasThreads && variable->uniformity == lang::Uniformity::PerThread;
      result.push_back(perThread && !llvm::isa<mlir::RankedTensorType>(type) ? types_.perThread(type) : type);
    }
  return result;
}

llvm::SmallVector<Value> Emitter::mergedValues(Location loc, llvm::ArrayRef<const Variable*> variables) {
  llvm::SmallVector<Value> result;
  for (const Variable* variable : variables) {
    bool perThread = variable->uniformity == lang::Uniformity::PerThread;
    Flat value = read(loc, variable);
    for (auto [leaf, type] : llvm::zip(value.leaves, leafTypes(variable)))
      if (!isView(type))
        result.push_back(coerceLeaf(loc, leaf, type, perThread));
  }
  return result;
}

void Emitter::setMerged(llvm::ArrayRef<const Variable*> variables, mlir::ValueRange values) {
  size_t next = 0;
  for (const Variable* variable : variables) {
    Slot& slot = variables_[variable];
    for (auto [leaf, type] : llvm::zip(slot.leaves, leafTypes(variable)))
      if (!isView(type))
        leaf = values[next++];
    slot.inRegion = inThreads_;
  }
}

//===-- places ----------------------------------------------------------------------------------------------------===//

void Emitter::forEachChoice(Location loc, const Place& place, uint32_t leaf,
                            llvm::function_ref<void(uint32_t, Value)> visit) {
  auto walk = [&](auto& self, size_t depth, uint32_t at, Value condition) -> void {
    if (depth == place.choices.size())
      return visit(at, condition);
    const Choice& choice = place.choices[depth];
    for (uint64_t i = 0; i < choice.count; ++i) {
      Value here = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, choice.index, math_.index(loc, i));
      self(self, depth + 1, at + i * choice.stride, both(loc, condition, here));
    }
  };
  walk(walk, 0, place.firstLeaf + leaf, {});
}

/// Run-time indices into values and planes: a chain of selects. Outside: 0.
Flat Emitter::load(Location loc, const Place& place) {
  bool inMemory = !place.views.empty();
  if (!inMemory && !place.variable)
    return place.value;
  Flat whole = inMemory ? Flat() : read(loc, place.variable), part;
  if (!inMemory && place.choices.empty() && place.leafCount == whole.leaves.size())
    return whole;
  for (uint32_t leaf = 0; leaf < place.leafCount; ++leaf) {
    Value value;
    forEachChoice(loc, place, leaf, [&](uint32_t from, Value chosen) {
      Value here = inMemory ? loadElement(loc, place, place.views[from], chosen) : whole.leaves[from];
      if (!chosen)
        value = here;
      else if (llvm::isa<ir::ViewType, mlir::RankedTensorType>(here.getType()) && !value)
        value = here;
      else
        value = b_.create<arith::SelectOp>(loc, chosen, here, value ? value : math_.zero(loc, here.getType()));
    });
    part.leaves.push_back(value);
  }
  return part;
}

void Emitter::store(Location loc, const Place& place, Flat value) {
  bool inMemory = !place.views.empty();
  VORTEX_CHECK(inMemory || place.variable, "store to a value without a place");
  Flat whole = inMemory ? Flat() : read(loc, place.variable);
  if (!inMemory && place.choices.empty() && place.leafCount == whole.leaves.size())
    return assign(loc, place.variable, std::move(value));
  for (uint32_t leaf = 0; leaf < place.leafCount; ++leaf)
    forEachChoice(loc, place, leaf, [&](uint32_t to, Value chosen) {
      Value stored = value.leaves[leaf];
      if (inMemory) {
        auto store =
            b_.create<ir::StoreOp>(loc, stored, place.views[to], indicesIn(loc, place.views[to], place.indices),
                                   both(loc, place.mask, chosen), place.guarded);
        noteUnchecked(store, place.unchecked);
        store.setRaceFree(place.isRaceFree && isReachedByOthers(place.views[to]));
        return noteWrite(place.views[to]);
      }
      Value& target = whole.leaves[to];
      target = chosen ? Value(b_.create<arith::SelectOp>(loc, chosen, stored, target)) : stored;
    });
  if (!inMemory)
    assign(loc, place.variable, std::move(whole));
}

}  // namespace vortex::irgen
