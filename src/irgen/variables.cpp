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
  for (auto [leaf, type] : llvm::zip(value.leaves, types))
    if (auto tile = llvm::dyn_cast<mlir::RankedTensorType>(type))
      leaf = isView(leaf.getType()) ? adaptTile(loc, loadTile(loc, leaf, variable->type), tile)
                                    : adaptTile(loc, leaf, tile);
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
    if (!leaf && llvm::isa<mlir::RankedTensorType>(expected))
      leaf = broadcastScalar(loc, math_.zero(loc, mlir::getElementTypeOrSelf(expected)), variable->type);
    VORTEX_CHECK(leaf || !isView(expected), "a window on memory is used after a barrier");
    if (inThreads_)
      result.leaves.push_back(coerceLeaf(loc, leaf, expected, true));
    else
      result.leaves.push_back(leaf ? leaf : math_.zero(loc, expected));
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

Flat Emitter::load(Location loc, const Place& place) {
  if (place.view)
    return loadElement(loc, place);
  if (!place.variable)
    return place.value;
  if (place.arrayIndex)
    return loadArrayElement(loc, place);
  Flat whole = read(loc, place.variable);
  if (place.leafCount == whole.leaves.size())
    return whole;
  Flat part;
  auto leaves = llvm::ArrayRef(whole.leaves).slice(place.firstLeaf, place.leafCount);
  part.leaves.assign(leaves.begin(), leaves.end());
  return part;
}

/// A run-time index into an array held in SSA values: a chain of selects. Outside: 0.
Flat Emitter::loadArrayElement(Location loc, const Place& place) {
  Flat whole = read(loc, place.variable), result;
  for (uint32_t leaf = 0; leaf < place.leafCount; ++leaf) {
    mlir::Type type = whole.leaves[place.firstLeaf + leaf].getType();
    Value value = llvm::isa<ir::ViewType, mlir::RankedTensorType>(type) ? whole.leaves[place.firstLeaf + leaf]
                                                                        : math_.zero(loc, type);
    for (uint64_t i = 0; i < place.arrayCount; ++i) {
      Value here = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, place.arrayIndex, math_.index(loc, i));
      value = b_.create<arith::SelectOp>(loc, here, whole.leaves[place.firstLeaf + i * place.leafCount + leaf], value);
    }
    result.leaves.push_back(value);
  }
  return result;
}

void Emitter::store(Location loc, const Place& place, Flat value) {
  if (place.view) {
    auto stored = b_.create<ir::StoreOp>(loc, value.leaves[0], place.view, place.indices, place.mask, place.guarded);
    noteUnchecked(stored, place.unchecked);
    return noteWrite(place.view);
  }
  VORTEX_CHECK(place.variable, "store to a value without a place");
  Flat whole = read(loc, place.variable);
  if (!place.arrayIndex && place.leafCount == whole.leaves.size())
    return assign(loc, place.variable, std::move(value));
  uint64_t elements = place.arrayIndex ? place.arrayCount : 1;
  for (uint64_t i = 0; i < elements; ++i)
    for (uint32_t leaf = 0; leaf < place.leafCount; ++leaf) {
      Value& target = whole.leaves[place.firstLeaf + i * place.leafCount + leaf];
      Value stored = value.leaves[leaf];
      if (place.arrayIndex) {
        Value here = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, place.arrayIndex, math_.index(loc, i));
        stored = b_.create<arith::SelectOp>(loc, here, stored, target);
      }
      target = stored;
    }
  assign(loc, place.variable, std::move(whole));
}

}  // namespace vortex::irgen
