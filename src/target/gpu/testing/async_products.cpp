// Products of warpgroups. Their sums are registers that nobody may look at until a wait: a register of sums that are not there yet holds a tag in
// its upper half, which copies and loops carry along.
#include "base/text.h"
#include "interpreter/number.h"
#include "target/gpu/testing/async_units.h"
#include "target/gpu/testing/machine_state.h"

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

}  // namespace

std::optional<float> AsyncUnits::valueOf(uint64_t cell, size_t thread, size_t number) const {
  if (!isTagged(cell))
    return std::bit_cast<float>(static_cast<uint32_t>(cell));
  const Sums& sums = sums_[sumsOf(cell)];
  if (!sums.isReady)
    return std::nullopt;
  return sums.values[thread * (sums.values.size() / kGroup) + number];
}

void AsyncUnits::checkOperands(Thread& t, mlir::Operation* op) {
  if (!isUsed_)
    return;
  for (mlir::Value operand : op->getOperands())
    if (operand.getType().isF32() && isTagged(machine_.cell(t, operand)))
      return machine_.fail(op, concat("thread ", t.number, " reads sums that nobody waited for"));
}

bool AsyncUnits::multiply(size_t first, mlir::Operation* op) {
  Warpgroup& group = groups_[first / kGroup];
  if (llvm::isa<vxnv::WgmmaFenceOp>(op))
    group.isFenced = true;
  else if (llvm::isa<vxnv::WgmmaCommitOp>(op))
    ++group.open;
  else if (auto product = llvm::dyn_cast<vxnv::WgmmaOp>(op))
    return startProduct(first, product);
  else
    return false;
  return true;
}

bool AsyncUnits::startProduct(size_t first, vxnv::WgmmaOp op) {
  Warpgroup& group = groups_[first / kGroup];
  const uint64_t a = machine_.cell(machine_.thread(first), op.getA()),
                 b = machine_.cell(machine_.thread(first), op.getB());
  Product product{op, layout::MatrixDescriptor::decode(a), layout::MatrixDescriptor::decode(b),
                  {}, static_cast<uint32_t>(sums_.size()), group.open,
                  {}};
  if (!group.isFenced)
    machine_.fail(op, "no wgmma_fence since the registers were used");
  if (product.a.encode() != a || product.b.encode() != b)
    machine_.fail(op, "bits in a descriptor that mean nothing");
  const size_t count = op.getSums().size();
  sums_.push_back({std::vector<float>(kGroup * count), false});
  for (size_t thread = first; thread < first + kGroup; ++thread) {
    Thread& t = machine_.thread(thread);
    if (machine_.cell(t, op.getA()) != a || machine_.cell(t, op.getB()) != b)
      machine_.fail(op, "the threads of a warpgroup disagree on the operands");
    for (mlir::Value sum : op.getSums())
      product.initial.push_back(machine_.cell(t, sum));
    for (mlir::Value result : op.getResults())
      *machine_.cells(t, result) = tagged(product.result);
  }
  collectReads(product);
  group.pending.push_back(std::move(product));
  return true;
}

/// Marks what the product reads, and looks whether it is there.
void AsyncUnits::collectReads(Product& product) {
  const uint32_t bytes = static_cast<uint32_t>(ir::vxt::scalarBytes(product.op.getElement())),
                 depth = layout::kMatrixDepthBytes / bytes,
                 columns = static_cast<uint32_t>(product.op.getSums().size() * 2);
  const auto collect = [&](const layout::MatrixDescriptor& operand, bool isAcross, uint32_t across) {
    for (uint32_t i = 0; i < across; ++i)
      for (uint32_t k = 0; k < depth; ++k)
        product.reads.push_back(addressRead(operand, isAcross ? Major::Across : Major::Depth, bytes, i, k));
  };
  collect(product.a, product.op.getAAcross(), layout::kWarpgroupRows);
  collect(product.b, product.op.getBAcross(), columns);
  for (size_t place : product.reads) {
    if (!isInside(product.op, place, bytes))
      return product.reads.clear();
    for (size_t byte = place; byte < place + bytes; ++byte) {
      if (writes_[byte])
        machine_.fail(product.op, concat("byte ", byte, " of shared memory has not arrived"));
      if (unfenced_[byte])
        machine_.fail(product.op, concat("thread ", unfenced_[byte] - 1, " wrote byte ", byte, " without a fence"));
      ++reads_[byte];
    }
  }
}

void AsyncUnits::finish(Warpgroup& group) {
  Product product = std::move(group.pending.front());
  group.pending.pop_front();
  mlir::Type type = product.op.getElement();
  const interpreter::Element element = *interpreter::elementOf(type);
  const size_t bytes = element.bytes(), depth = layout::kMatrixDepthBytes / bytes, count = product.op.getSums().size();
  std::vector<double> operands;
  for (size_t place : product.reads) {
    uint64_t bits = 0;
    std::memcpy(&bits, machine_.sharedBase() + place, bytes);
    operands.push_back(interpreter::decode(element.format, bits));
    for (size_t byte = place; byte < place + bytes; ++byte)
      --reads_[byte];
  }
  Sums& sums = sums_[product.result];
  for (size_t thread = 0; thread < kGroup && !operands.empty(); ++thread)
    for (size_t number = 0; number < count; ++number) {
      // Registers of eight columns follow one another.
      const auto [rowNumber, columnNumber] = accumulators_[thread * 4 + number % 4];
      const double* row = &operands[rowNumber * depth];
      const double* column = &operands[(layout::kWarpgroupRows + columnNumber + number / 4 * 8) * depth];
      double sum = product.op.getFirst() ? 0 : *valueOf(product.initial[thread * count + number], thread, number);
      for (size_t k = 0; k < depth; ++k)
        sum += row[k] * column[k];
      sums.values[thread * count + number] = static_cast<float>(sum);
    }
  sums.isReady = true;
}

void AsyncUnits::waitForProducts(Thread& t, vxnv::WgmmaWaitOp op) {
  Warpgroup& group = groups_[t.number / kGroup];
  const uint64_t open = group.open, pending = op.getPending();
  const auto isWaitedFor = [=](const Product& product) { return product.group + pending < open; };
  block(
      t, op, [&group, isWaitedFor] { return llvm::none_of(group.pending, isWaitedFor); },
      [&group, isWaitedFor] { return concat("for ", llvm::count_if(group.pending, isWaitedFor), " products"); });
  group.isFenced = false;
  for (size_t i = 0; i < op.getSums().size(); ++i) {
    const uint64_t cell = machine_.cell(t, op.getSums()[i]);
    const std::optional<float> value = valueOf(cell, t.number % kGroup, i);
    *machine_.cells(t, op.getResults()[i]) = value ? std::bit_cast<uint32_t>(*value) : cell;
  }
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
      const auto word = static_cast<uint32_t>(machine_.cell(t, store.getWords()[static_cast<unsigned>(matrix)]));
      std::memcpy(to, &word, sizeof word);
    }
  return true;
}

}  // namespace vortex::target::gpu::testing
