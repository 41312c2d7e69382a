// Products of warpgroups. Their sums are registers that nobody may look at until a wait: a register of sums that are not there yet holds a tag in
// its upper half, which copies and loops carry along.
#include "base/text.h"
#include "interpreter/number.h"
#include "target/gpu/testing/async_units.h"
#include "target/gpu/testing/machine_state.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace vortex::target::gpu::testing {

namespace vxnv = ir::vxnv;
using base::concat;
using layout::Major;

namespace {

constexpr size_t kGroup = 128;
constexpr uint64_t kTag = 0xACC5;             ///< upper 16 bits of a cell
constexpr uint64_t kNotANumber = 0x7fbadbad;  ///< its lower 32 bits

uint64_t tagged(uint64_t sums) { return kTag << 48 | sums << 32 | kNotANumber; }
bool isTagged(uint64_t cell) { return cell >> 48 == kTag; }
uint64_t sumsOf(uint64_t cell) { return cell >> 32 & 0xffff; }

/// An element of an operand in shared memory, as the unit reads it.
double readElement(mlir::Type type, uint64_t bits) {
  if (type.isTF32())
    return std::bit_cast<float>(static_cast<uint32_t>(bits) & 0xffffe000);
  if (type.isSignedInteger())
    return static_cast<double>(interpreter::signExtend(bits, type.getIntOrFloatBitWidth()));
  if (type.isUnsignedInteger())
    return static_cast<double>(bits);
  return interpreter::decode(interpreter::elementOf(type)->format, bits);
}

/// What is left of a sum of 8-bit floats: as many bits as the unit is reported to keep.
float rounded(mlir::Type element, double sum) {
  constexpr int kBits = 14;
  if (interpreter::elementOf(element).value_or(interpreter::Element{}).bytes() != 1 || !std::isfinite(sum))
    return static_cast<float>(sum);
  int exponent = 0;
  return static_cast<float>(std::ldexp(std::trunc(std::ldexp(std::frexp(sum, &exponent), kBits)), exponent - kBits));
}

}  // namespace

std::optional<uint32_t> AsyncUnits::valueOf(uint64_t cell, size_t thread, size_t number) const {
  if (!isTagged(cell))
    return static_cast<uint32_t>(cell);
  const Sums& sums = sums_[sumsOf(cell)];
  if (!sums.isReady)
    return std::nullopt;
  return sums.values[thread * (sums.values.size() / kGroup) + number];
}

void AsyncUnits::checkOperands(Thread& t, const Instruction& instruction) {
  for (uint32_t word : instruction.words)
    if (isTagged(t.registers[word]))
      return machine_.fail(instruction.op, concat("thread ", t.number, " reads sums that nobody waited for"));
}

bool AsyncUnits::multiply(size_t first, mlir::Operation* op) {
  Warpgroup& group = groups_[first / kGroup];
  if (llvm::isa<vxnv::WgmmaFenceOp>(op))
    group.isFenced = true;
  else if (llvm::isa<vxnv::WgmmaCommitOp>(op))
    ++group.open;
  else if (auto product = llvm::dyn_cast<vxnv::WgmmaOp>(op))
    startProduct(first, product);
  else if (auto fromRegisters = llvm::dyn_cast<vxnv::WgmmaRegistersOp>(op))
    startProduct(first, fromRegisters);
  else
    return false;
  happenEarly();
  return true;
}

/// The word that all threads of the warpgroup have for an operand.
uint64_t AsyncUnits::descriptor(size_t first, mlir::Operation* op, mlir::Value operand) {
  const uint64_t word = machine_.cell(machine_.thread(first), operand);
  if (layout::MatrixDescriptor::decode(word).encode() != word)
    machine_.fail(op, "bits in a descriptor that mean nothing");
  for (size_t thread = first; thread < first + kGroup; ++thread)
    if (machine_.cell(machine_.thread(thread), operand) != word)
      machine_.fail(op, "the threads of a warpgroup disagree on the operands");
  return word;
}

template <typename Op> AsyncUnits::Product AsyncUnits::describe(size_t first, Op op) {
  Product product{.op = op, .element = op.getElement(), .isFirst = op.getFirst()};
  product.result = static_cast<uint32_t>(sums_.size());
  sums_.push_back({std::vector<uint32_t>(kGroup * op.getSums().size()), false});
  for (size_t thread = first; thread < first + kGroup; ++thread) {
    Thread& t = machine_.thread(thread);
    for (mlir::Value sum : op.getSums())
      product.initial.push_back(machine_.cell(t, sum));
    for (mlir::Value result : op.getResults())
      *machine_.cells(t, result) = tagged(product.result);
  }
  return product;
}

void AsyncUnits::startProduct(size_t first, vxnv::WgmmaOp op) {
  Product product = describe(first, op);
  const auto columns = static_cast<uint32_t>(op.getSums().size() * 2);
  collectReads(first, product, descriptor(first, op, op.getA()), op.getAAcross(), layout::kWarpgroupRows);
  collectReads(first, product, descriptor(first, op, op.getB()), op.getBAcross(), columns);
  start(first, std::move(product));
}

void AsyncUnits::startProduct(size_t first, vxnv::WgmmaRegistersOp op) {
  Product product = describe(first, op);
  const interpreter::Element element = *interpreter::elementOf(op.getElement());
  const mlir::Value words[] = {op.getA0(), op.getA1(), op.getA2(), op.getA3()};
  constexpr size_t kDepth = 16, kElements = 8;  // of a thread
  product.a.resize(layout::kWarpgroupRows * kDepth);
  for (size_t thread = 0; thread < kGroup; ++thread)
    for (size_t number = 0; number < kElements; ++number) {
      const auto [row, depth] = rows_[thread * kElements + number];
      const uint64_t word = machine_.cell(machine_.thread(first + thread), words[number / 2]);
      product.a[row * kDepth + depth] = interpreter::decode(element.format, word >> number % 2 * 16 & 0xffff);
    }
  collectReads(first, product, descriptor(first, op, op.getB()), op.getBAcross(),
               static_cast<uint32_t>(op.getSums().size() * 2));
  start(first, std::move(product));
}

void AsyncUnits::start(size_t first, Product product) {
  Warpgroup& group = groups_[first / kGroup];
  if (!group.isFenced)
    machine_.fail(product.op, "no wgmma_fence since the registers were used");
  product.group = group.open;
  group.pending.push_back(std::move(product));
}

/// Marks what the product reads of an operand, and looks whether it is there.
void AsyncUnits::collectReads(size_t first, Product& product, uint64_t descriptor, bool isAcross, uint32_t across) {
  const layout::MatrixDescriptor operand = layout::MatrixDescriptor::decode(descriptor);
  const auto bytes = static_cast<uint32_t>(ir::vxt::scalarBytes(product.element));
  for (uint32_t i = 0; i < across; ++i)
    for (uint32_t k = 0; k < layout::kMatrixDepthBytes / bytes; ++k) {
      const size_t place = addressRead(operand, isAcross ? Major::Across : Major::Depth, bytes, i, k);
      if (!isInside(product.op, place, bytes))
        return;
      for (size_t byte = place; byte < place + bytes; ++byte) {
        if (writes_[byte])
          machine_.fail(product.op, concat("byte ", byte, " of shared memory has not arrived"));
        if (unfenced_[byte])
          machine_.fail(product.op, concat("thread ", unfenced_[byte] - 1, " wrote byte ", byte, " without a fence"));
        ++reads_[byte];
      }
      machine_.checkOrder(product.op, static_cast<unsigned>(first), place, bytes, false);
      product.reads.push_back(place);
    }
}

void AsyncUnits::finish(Warpgroup& group) {
  Product product = std::move(group.pending.front());
  group.pending.pop_front();
  Sums& sums = sums_[product.result];
  const auto bytes = static_cast<size_t>(ir::vxt::scalarBytes(product.element));
  const size_t depth = layout::kMatrixDepthBytes / bytes, count = sums.values.size() / kGroup;
  std::vector<double> operands = std::move(product.a);
  for (size_t place : product.reads) {
    uint64_t bits = 0;
    std::memcpy(&bits, machine_.sharedBase() + place, bytes);
    operands.push_back(readElement(product.element, bits));
    for (size_t byte = place; byte < place + bytes; ++byte)
      --reads_[byte];
  }
  sums.isReady = true;
  if (machine_.hasFailed())
    return;
  for (size_t thread = 0; thread < kGroup; ++thread)
    for (size_t number = 0; number < count; ++number) {
      // Registers of eight columns follow one another.
      const auto [rowNumber, columnNumber] = accumulators_[thread * 4 + number % 4];
      const double* row = &operands[rowNumber * depth];
      const double* column = &operands[(layout::kWarpgroupRows + columnNumber + number / 4 * 8) * depth];
      const uint32_t before = product.isFirst ? 0 : *valueOf(product.initial[thread * count + number], thread, number);
      double sum = 0;
      for (size_t k = 0; k < depth; ++k)
        sum += row[k] * column[k];
      sums.values[thread * count + number] =
          product.element.isInteger()
              ? before + static_cast<uint32_t>(static_cast<int64_t>(sum))
              : std::bit_cast<uint32_t>(rounded(product.element, sum + std::bit_cast<float>(before)));
    }
}

void AsyncUnits::waitForProducts(Thread& t, vxnv::WgmmaWaitOp op) {
  Warpgroup& group = groups_[t.number / kGroup];
  const uint64_t open = group.open, pending = op.getPending();
  const auto isWaitedFor = [=](const Product& product) { return product.group + pending < open; };
  const auto takeSums = [this, &t, &group, op]() mutable {
    group.isFenced = false;
    for (size_t i = 0; i < op.getSums().size(); ++i) {
      const uint64_t cell = machine_.cell(t, op.getSums()[i]);
      const std::optional<uint32_t> value = valueOf(cell, t.number % kGroup, i);
      *machine_.cells(t, op.getResults()[i]) = value ? *value : cell;
    }
  };
  block(
      t, op, [&group, isWaitedFor] { return llvm::none_of(group.pending, isWaitedFor); },
      [&group, isWaitedFor] { return concat("for ", llvm::count_if(group.pending, isWaitedFor), " products"); },
      takeSums);
}

bool AsyncUnits::storeMatrix(size_t first, mlir::Operation* op) {
  auto store = llvm::dyn_cast<vxnv::StoreMatrixOp>(op);
  if (!store)
    return false;
  constexpr size_t kRows = 8, kRowBytes = 16;
  for (size_t matrix = 0; matrix < store.getWords().size(); ++matrix)
    for (size_t lane = 0; lane < 32; ++lane) {
      Thread& t = machine_.thread(first + lane);
      const size_t row = placeOf(machine_.thread(first + matrix * kRows + lane / 4), store.getBase());
      if (!isInside(op, row, kRowBytes))
        return true;
      if (row % kRowBytes != 0)
        machine_.fail(op, "misaligned row of a matrix");
      char* to = machine_.sharedBase() + row + lane % 4 * sizeof(uint32_t);
      checkAccess(t, op, to, sizeof(uint32_t), true);
      machine_.checkOrder(op, t.number, static_cast<size_t>(to - machine_.sharedBase()), sizeof(uint32_t), true);
      const auto word = static_cast<uint32_t>(machine_.cell(t, store.getWords()[static_cast<unsigned>(matrix)]));
      std::memcpy(to, &word, sizeof word);
    }
  return true;
}

}  // namespace vortex::target::gpu::testing
