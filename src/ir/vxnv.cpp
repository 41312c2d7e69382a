#include "ir/vxnv.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

namespace vortex::ir::vxnv {

/// Operands and results have these types.
static mlir::ParseResult parseSameTypes(mlir::OpAsmParser& parser, llvm::SmallVectorImpl<mlir::Type>& operands,
                                        llvm::SmallVectorImpl<mlir::Type>& results) {
  if (parser.parseTypeList(results))
    return mlir::failure();
  operands.assign(results.begin(), results.end());
  return mlir::success();
}

static void printSameTypes(mlir::OpAsmPrinter& printer, mlir::Operation*, mlir::TypeRange, mlir::TypeRange results) {
  llvm::interleaveComma(results, printer);
}

}  // namespace vortex::ir::vxnv

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#include "ir/vxnv_dialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/vxnv_attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/vxnv_types.cpp.inc"
#define GET_OP_CLASSES
#include "ir/vxnv_ops.cpp.inc"
#pragma clang diagnostic pop

namespace vortex::ir::vxnv {

mlir::Type SumsType::elementType() const {
  return getInteger() ? getInteger() : mlir::Type(mlir::Float32Type::get(getContext()));
}

mlir::LogicalResult SumsType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> error, int64_t,
                                     mlir::Type integer) {
  return !integer || integer.isSignlessInteger(32) ? mlir::success()
                                                   : error() << "sums are f32 or i32, not " << integer;
}

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

void VxnvDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/vxnv_ops.cpp.inc"
      >();
  registerTypes();
}

void VxnvDialect::registerTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/vxnv_attrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/vxnv_types.cpp.inc"
      >();
}

int64_t MapAttr::boxBytes() const {
  int64_t bytes = vxt::scalarBytes(getElement());
  for (int64_t extent : getBox().asArrayRef())
    bytes *= extent;
  return bytes;
}

MapAttr findMap(mlir::Operation* op, int64_t number) {
  auto kernel = op->getParentOfType<vxt::KernelOp>();
  auto maps = kernel ? kernel->getAttrOfType<mlir::ArrayAttr>(kMaps) : nullptr;
  return maps && number >= 0 && number < static_cast<int64_t>(maps.size())
             ? llvm::dyn_cast<MapAttr>(maps[static_cast<unsigned>(number)])
             : nullptr;
}

//===-- verifiers ---------------------------------------------------------------------------------------------===//

LogicalResult RingOp::verify() {
  constexpr int64_t kSlotAlignment = 1024, kBarriers = 2, kBarrierBytes = 8;
  auto stages = static_cast<int64_t>(getStages()), bytes = static_cast<int64_t>(getBytes()),
       offset = static_cast<int64_t>(getOffset()), barriers = static_cast<int64_t>(getBarriers());
  if (stages < 1 || bytes < 1)
    return emitOpError("has ") << stages << " slots of " << bytes << " bytes";
  if (bytes % kSlotAlignment != 0 || offset % kSlotAlignment != 0)
    return emitOpError("has slots that do not start at multiples of ") << kSlotAlignment << " bytes";
  if (offset < 0 || barriers < 0 || barriers % kBarrierBytes != 0)
    return emitOpError("lies at ") << offset << " with barriers at " << barriers;
  int64_t barriersEnd = barriers + stages * kBarriers * kBarrierBytes, end = offset + stages * bytes;
  if (barriers < end && offset < barriersEnd)
    return emitOpError("has barriers at ") << barriers << " inside its slots, which end at " << end;
  auto kernel = (*this)->getParentOfType<vxt::KernelOp>();
  if (kernel && std::max(end, barriersEnd) > static_cast<int64_t>(kernel.getSharedBytes()))
    return emitOpError("ends at ") << std::max(end, barriersEnd) << ", the block has " << kernel.getSharedBytes()
                                   << " bytes of shared memory";
  return success();
}

static LogicalResult verifyRegisters(RolesOp roles) {
  constexpr int64_t kLeast = 24, kMost = 240, kStep = 8, kPerCore = 65536;
  llvm::ArrayRef<int64_t> registers = roles.getRegisters();
  if (registers.size() != 2)
    return roles.emitOpError("has registers for the producer and for a consumer, not ") << registers.size();
  for (int64_t count : registers)
    if (count < kLeast || count > kMost || count % kStep != 0)
      return roles.emitOpError("has ") << count << " registers per thread; multiples of 8 from 24 to 240 exist";
  int64_t all = kGroupThreads * (registers[0] + static_cast<int64_t>(roles.getConsumers()) * registers[1]);
  if (all > kPerCore)
    return roles.emitOpError("needs ") << all << " registers, a core has " << kPerCore;
  return success();
}

LogicalResult RolesOp::verify() {
  auto kernel = llvm::dyn_cast<vxt::KernelOp>((*this)->getParentOp());
  if (!kernel)
    return emitOpError("stands directly in a kernel");
  auto all = kernel.getBody().front().getOps<RolesOp>();
  if (std::distance(all.begin(), all.end()) != 1)
    return emitOpError("is not the only one of its kernel");
  int64_t threads = kGroupThreads * (1 + static_cast<int64_t>(getConsumers()));
  if (kernel.constantThreads() != threads)
    return emitOpError("needs blocks of ") << threads << " threads";
  if (getProducer().getNumArguments() != 0 || getConsumer().getNumArguments() != 1 ||
      !getConsumer().getArgument(0).getType().isIndex())
    return emitOpError("gives consumers their number (index), the producer nothing");
  auto ended = (*this)->walk([](mlir::Operation* op) {
    return llvm::isa<vxt::AssertOp, vxt::BarrierOp, vxt::GridBarrierOp>(op) ? mlir::WalkResult::interrupt()
                                                                            : mlir::WalkResult::advance();
  });
  if (ended.wasInterrupted())
    return emitOpError("holds an assert or a barrier of the block, for which the other roles would wait");
  if (failed(verifyRegisters(*this)))
    return failure();
  return verifyRings(*this);
}

LogicalResult TilesOp::verify() {
  if (getBody().getNumArguments() != 1 || !getBody().getArgument(0).getType().isIndex())
    return emitOpError("gives its body the tile's number (index)");
  return success();
}

static LogicalResult verifyBox(mlir::Operation* op, int64_t number, size_t coordinates) {
  MapAttr map = findMap(op, number);
  if (!map)
    return op->emitOpError("names map ") << number << ", which the kernel does not have";
  if (map.getBox().size() != static_cast<int64_t>(coordinates))
    return op->emitOpError("has ") << coordinates << " coordinates in a map of " << map.getBox().size();
  return success();
}

LogicalResult CopyOp::verify() {
  if (failed(verifyBox(*this, getMap(), getCoordinates().size())))
    return failure();
  auto acquire = getSlot().getDefiningOp<AcquireOp>();
  if (!acquire)
    return emitOpError("fills a slot that a producer has acquired");
  auto ring = acquire.getRing().getDefiningOp<RingOp>();
  int64_t end = getOffset() + findMap(*this, getMap()).boxBytes();
  if (ring && end > static_cast<int64_t>(ring.getBytes()))
    return emitOpError("ends at byte ") << end << " of a slot of " << ring.getBytes();
  return success();
}

LogicalResult StoreOp::verify() { return verifyBox(*this, getMap(), getCoordinates().size()); }

static bool isMultiplied(mlir::Type type) {
  return type.isF16() || type.isBF16() || type.isFloat8E4M3FN() || type.isFloat8E5M2() || type.isTF32() ||
         type.isSignedInteger(8) || type.isUnsignedInteger(8);
}

/// Of both kinds of starts.
template <typename Start> static LogicalResult verifyStart(Start start) {
  int64_t columns = start.getSums().getType().getColumns();
  if (columns < 8 || columns > 256 || columns % 8 != 0)
    return start.emitOpError("has ") << columns << " columns; multiples of 8 up to 256 exist";
  mlir::Type element = start.getElement();
  if (!isMultiplied(element))
    return start.emitOpError("multiplies no ") << element;
  const bool isInteger = element.isInteger();
  if (isInteger != start.getSums().getType().elementType().isInteger())
    return start.emitOpError("adds products of ")
           << element << " to sums of " << start.getSums().getType().elementType();
  if (isInteger && columns > 32 && columns % 16 != 0)
    return start.emitOpError("has ") << columns << " columns of integers; above 32 multiples of 16 exist";
  if (start.getBAcross() && vxt::scalarBytes(element) != 2)
    return start.emitOpError("reads ") << element << " across; only 16-bit elements can lie so";
  for (mlir::Operation* user : start.getResult().getUsers())
    if (!llvm::isa<DotStartOp, DotStartRegistersOp, DotWaitOp, mlir::scf::ForOp, mlir::scf::YieldOp>(user))
      return start.emitOpError("is still running where ") << user->getName() << " uses its sums";
  return success();
}

LogicalResult DotStartOp::verify() {
  if (getSteps() < 1)
    return emitOpError("has no steps");
  if (getAAcross() && vxt::scalarBytes(getElement()) != 2)
    return emitOpError("reads ") << getElement() << " across; only 16-bit elements can lie so";
  return verifyStart(*this);
}

LogicalResult DotStartRegistersOp::verify() {
  if (getWords().empty() || getWords().size() % kStepWords != 0)
    return emitOpError("has ") << getWords().size() << " words of A; a step takes " << kStepWords;
  if (vxt::scalarBytes(getElement()) != 2)
    return emitOpError("multiplies 16-bit elements in registers, not ") << getElement();
  return verifyStart(*this);
}

LogicalResult SumOp::verify() {
  if (!llvm::isa_and_nonnull<DotWaitOp, SumsOfOp>(getSums().getDefiningOp()))
    return emitOpError("reads sums that are not those of a `dot_wait`, nor values");
  if (static_cast<int64_t>(getNumber()) >= getSums().getType().perThread())
    return emitOpError("reads number ") << getNumber() << " of " << getSums().getType().perThread();
  return success();
}

LogicalResult SumsOfOp::verify() {
  int64_t held = getResult().getType().perThread();
  if (!getResult().getType().elementType().isF32())
    return emitOpError("makes sums of f32");
  if (static_cast<int64_t>(getValues().size()) != held)
    return emitOpError("has ") << getValues().size() << " values, a thread holds " << held;
  return success();
}

LogicalResult NamedBarrierOp::verify() {
  if (getThreads() < vxt::kWarpThreads || getThreads() % vxt::kWarpThreads != 0)
    return emitOpError("opens for ") << getThreads() << " threads, which are no whole warps";
  return success();
}

LogicalResult StoreMatrixOp::verify() {
  return getWords().size() == 4 ? success() : emitOpError("writes 4 words per thread");
}

template <typename Product> static LogicalResult verifyWgmma(Product product) {
  size_t count = product.getSums().size();
  if (count != product.getResults().size() || count == 0 || count % 4 != 0 || count > 128)
    return product.emitOpError("has ") << count << " sums and " << product.getResults().size() << " results";
  for (auto [sum, result] : llvm::zip(product.getSums(), product.getResults()))
    if (sum.getType() != result.getType() || sum.getType().isInteger() != product.getElement().isInteger())
      return product.emitOpError("adds products of ") << product.getElement() << " to " << sum.getType();
  return success();
}

LogicalResult WgmmaOp::verify() { return verifyWgmma(*this); }
LogicalResult WgmmaRegistersOp::verify() { return verifyWgmma(*this); }

LogicalResult WgmmaWaitOp::verify() {
  return llvm::equal(getSums().getTypes(), getResults().getTypes()) ? success() : emitOpError("passes its operands on");
}

}  // namespace vortex::ir::vxnv
