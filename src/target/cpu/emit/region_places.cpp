// Loads whose lanes take a few elements of each of a few rows, `a[(lane / 4) * width + lane % 4]`, as the threads of matrix fragments do: one
// vector of each row, distributed in registers, where lane by lane is a scalar load or a step of a gather for each.
#include "target/cpu/emit/region_emitter.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/VectorUtils.h>

namespace vortex::target::cpu::emit {

using llvm::Value;

static constexpr int64_t kMostColumns = 16;  ///< of a row: two vectors of 8
static constexpr int64_t kMostRows = int64_t(1) << 20;
static constexpr int64_t kMostPitch = int64_t(1) << 31;

static int64_t element(llvm::Constant* lanes, unsigned lane) {
  return llvm::cast<llvm::ConstantInt>(lanes->getAggregateElement(lane))->getSExtValue();
}

static std::pair<int64_t, int64_t> range(llvm::Constant* lanes, unsigned width) {
  std::pair<int64_t, int64_t> result{element(lanes, 0), element(lanes, 0)};
  for (unsigned lane = 1; lane < width; ++lane) {
    result.first = std::min(result.first, element(lanes, lane));
    result.second = std::max(result.second, element(lanes, lane));
  }
  return result;
}

/// Nothing: the lanes' places are not known, or too far apart for that to be faster.
std::optional<llvm::SmallVector<RegionEmitter::RowPart>> RegionEmitter::rowParts(const Access& access) {
  const std::optional<Lane::Places>& places = access.offset.places;
  const bool hasMasks = e_.features.avx512 || (e_.features.avx2 && elementBytes(access.type) >= 4);
  if (!places || mask_ || access.mask.value || !hasMasks)
    return std::nullopt;
  llvm::SmallMapVector<int64_t, RowPart, 8> parts;
  for (unsigned lane = 0; lane < shape_.width; ++lane) {
    const int64_t row = places->pitch ? element(places->rows, lane) : 0, column = element(places->columns, lane);
    auto [at, isNew] = parts.insert({row, {row, column, column}});
    at->second.first = std::min(at->second.first, column);
    at->second.last = std::max(at->second.last, column);
  }
  llvm::SmallVector<RowPart> result;
  for (auto& [row, part] : parts) {
    if (part.last - part.first >= kMostColumns)
      return std::nullopt;
    result.push_back(part);
  }
  if (result.size() * 2 > shape_.width)
    return std::nullopt;
  return result;
}

/// `proof`: a scalar condition under which all lanes are inside of the bounds; null: they are. False: there is no cheap one.
bool RegionEmitter::provePlaces(const Access& access, Value*& proof) {
  auto demand = [&](Value* condition) { proof = conjunction(ir_, proof, condition); };
  for (const auto& [index, extent] : access.bounds) {
    if (!extent.isUniform())
      return false;
    if (index.isUniform()) {
      demand(ir_.CreateICmpULT(index.value, extent.value));
      continue;
    }
    if (Value* all = math_.provesAll(llvm::CmpInst::ICMP_ULT, index, extent)) {
      demand(all);
      continue;
    }
    if (!index.places)
      return false;
    const Lane::Places& places = *index.places;
    const auto [left, right] = range(places.columns, shape_.width);
    Value* last = ir_.CreateAdd(places.origin, ir_.getInt64(right));
    if (left < 0 || right > kMostPitch)
      return false;
    if (places.pitch) {
      const auto [top, bottom] = range(places.rows, shape_.width);
      if (top < 0 || bottom > kMostRows)
        return false;
      // Neither factor is large: the last lane's sum does not wrap, and no lane is behind it.
      demand(ir_.CreateICmpULE(places.pitch, ir_.getInt64(kMostPitch)));
      last = ir_.CreateAdd(last, ir_.CreateMul(places.pitch, ir_.getInt64(bottom)));
    }
    demand(ir_.CreateICmpSGE(places.origin, ir_.getInt64(0)));
    demand(ir_.CreateICmpULT(last, extent.value));
  }
  return true;
}

/// Elements in memory form.
Value* RegionEmitter::loadParts(const Access& access, llvm::ArrayRef<RowPart> parts) {
  const Lane::Places& places = *access.offset.places;
  int64_t columns = 1;
  for (const RowPart& part : parts)
    columns = std::max<int64_t>(columns, llvm::PowerOf2Ceil(part.last - part.first + 1));
  llvm::Type* scalar = memoryType(e_.context(), access.type);
  auto* rowType = llvm::FixedVectorType::get(scalar, columns);
  const llvm::Align align(elementBytes(access.type));
  llvm::SmallVector<int> picks(shape_.width);
  Values rows;
  for (auto [i, part] : llvm::enumerate(parts)) {
    llvm::SmallVector<llvm::Constant*> wanted(columns, ir_.getFalse());
    for (unsigned lane = 0; lane < shape_.width; ++lane) {
      if (places.pitch && element(places.rows, lane) != part.row)
        continue;
      const int64_t column = element(places.columns, lane) - part.first;
      wanted[column] = ir_.getTrue();
      picks[lane] = int(i * columns + column);
    }
    Value* at = ir_.CreateAdd(places.origin, ir_.getInt64(part.first));
    if (places.pitch)
      at = ir_.CreateAdd(at, ir_.CreateMul(places.pitch, ir_.getInt64(part.row)));
    Value* pointer = elementPointer(ir_, access.type, access.pointer, at);
    const bool isWhole = llvm::all_of(wanted, [](llvm::Constant* each) { return each->isOneValue(); });
    rows.push_back(isWhole ? static_cast<Value*>(ir_.CreateAlignedLoad(rowType, pointer, align))
                           : ir_.CreateMaskedLoad(rowType, pointer, align, llvm::ConstantVector::get(wanted),
                                                  llvm::Constant::getNullValue(rowType)));
  }
  return ir_.CreateShuffleVector(rows.size() == 1 ? rows[0] : llvm::concatenateVectors(ir_, rows), picks);
}

std::optional<Lane> RegionEmitter::loadPlaces(const Access& access) {
  const auto parts = rowParts(access);
  Value* proof = nullptr;
  if (!parts || !provePlaces(access, proof))
    return std::nullopt;
  auto inParts = [&] { return fromMemory(ir_, access.type, loadParts(access, *parts)); };
  if (!proof)
    return Lane::varying(inParts());
  Access apart = access;
  Values loaded = emit::emitIf(
      ir_, proof, [&] { return Values{inParts()}; },
      [&] {
        // The vectors of indices are made here, where alone they are needed.
        auto spelled = [&](Lane& lane) {
          if (lane.places)
            lane = Lane::varying(math_.vector(*lane.places));
        };
        spelled(apart.offset);
        for (auto& [index, extent] : apart.bounds)
          spelled(index);
        apart.isRare = true;
        return Values{math_.vector(load(apart))};
      });
  return Lane::varying(loaded[0]);
}

}  // namespace vortex::target::cpu::emit
