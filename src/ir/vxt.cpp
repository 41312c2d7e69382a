#include "ir/vxt.h"

#include "ir/index_cast.h"
#include "ir/size_attr.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#include "ir/vxt_dialect.cpp.inc"
#include "ir/vxt_enums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/vxt_attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/vxt_types.cpp.inc"
#define GET_OP_CLASSES
#include "ir/vxt_ops.cpp.inc"
#pragma clang diagnostic pop

namespace vortex::ir::vxt {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Type;

void VxtDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/vxt_ops.cpp.inc"
      >();
  registerTypes();
}

void VxtDialect::registerTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/vxt_attrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/vxt_types.cpp.inc"
      >();
}

int64_t scalarBytes(Type type) {
  // tf32 lies in memory as f32.
  return type.isIndex() ? 8 : type.isTF32() ? 4 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

int64_t valueBytes(Type type) {
  auto vector = llvm::dyn_cast<mlir::VectorType>(type);
  return vector ? vector.getNumElements() * scalarBytes(vector.getElementType()) : scalarBytes(type);
}

//===-- kernel ------------------------------------------------------------------------------------------------===//

mlir::ParseResult KernelOp::parse(mlir::OpAsmParser& parser, mlir::OperationState& result) {
  auto buildType = [](mlir::Builder& builder, llvm::ArrayRef<Type> arguments, llvm::ArrayRef<Type> results,
                      mlir::function_interface_impl::VariadicFlag,
                      std::string&) { return builder.getFunctionType(arguments, results); };
  return mlir::function_interface_impl::parseFunctionOp(parser, result, false, getFunctionTypeAttrName(result.name),
                                                        buildType, getArgAttrsAttrName(result.name),
                                                        getResAttrsAttrName(result.name));
}

void KernelOp::print(mlir::OpAsmPrinter& printer) {
  mlir::function_interface_impl::printFunctionOp(printer, *this, false, getFunctionTypeAttrName(),
                                                 getArgAttrsAttrName(), getResAttrsAttrName());
}

std::optional<int64_t> KernelOp::constantThreads() { return constantSize(getThreads()); }

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError("has no results; it writes through its arguments");
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    auto pointer = llvm::dyn_cast<PtrType>(type);
    bool isSlot = pointer ? pointer.getSpace() == Space::Global || pointer.getSpace() == Space::Constant
                          : type.isIntOrIndexOrFloat() && scalarBytes(type) <= 8;
    if (!isSlot)
      return emitOpError("argument ") << i << " of type " << type << " is not a launch slot";
  }
  if (auto threads = constantThreads(); threads && (*threads < 1 || *threads > 1024))
    return emitOpError("has ") << *threads << " hardware threads per block, at most 1024 exist";
  if (static_cast<int64_t>(getSharedBytes()) < 0)
    return emitOpError("has ") << getSharedBytes() << " bytes of shared memory";
  return verifyIndexCasts(*this);
}

//===-- memory ------------------------------------------------------------------------------------------------===//

LogicalResult SharedOp::verify() {
  if (getResult().getType().getSpace() != Space::Shared)
    return emitOpError("gives an address of shared memory, not ") << getResult().getType();
  if (static_cast<int64_t>(getOffset()) < 0)
    return emitOpError("has the negative offset ") << getOffset();
  return success();
}

LogicalResult LocalOp::verify() {
  if (getResult().getType().getSpace() != Space::Local)
    return emitOpError("gives an address of local memory, not ") << getResult().getType();
  return success();
}

LogicalResult AddressOp::verify() {
  unsigned width = getBase().getType().getSpace() == Space::Shared ? 32 : 64;
  if (!getResult().getType().isInteger(width))
    return emitOpError("gives i") << width << " for " << getBase().getType();
  return success();
}

static LogicalResult verifyAccess(mlir::Operation* op, Type type, int64_t alignment) {
  if (auto vector = llvm::dyn_cast<mlir::VectorType>(type); vector && vector.getRank() != 1)
    return op->emitOpError("accesses scalars and rank-1 vectors, not ") << type;
  if (alignment < 0 || (alignment != 0 && !llvm::isPowerOf2_64(alignment)))
    return op->emitOpError("alignment ") << alignment << " is not a power of two";
  return success();
}

LogicalResult LoadOp::verify() { return verifyAccess(*this, getResult().getType(), getAlignment()); }

LogicalResult StoreOp::verify() {
  if (getCache() == Cache::ReadOnly || getCache() == Cache::ReadOnlyStreaming)
    return emitOpError("writes memory that is marked read-only");
  return verifyAccess(*this, getValue().getType(), getAlignment());
}

using Effects = llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>>;

void LoadOp::getEffects(Effects& effects) {
  // Read-only memory does not change during the launch: such loads move freely, but not above the guard of their mask.
  effects.emplace_back(mlir::MemoryEffects::Read::get(), &getBaseMutable());
}

void StoreOp::getEffects(Effects& effects) {
  effects.emplace_back(mlir::MemoryEffects::Write::get(), &getBaseMutable());
}

static LogicalResult verifyAtomic(mlir::Operation* op, PtrType pointer, Type type) {
  int64_t bytes = scalarBytes(type);
  if (bytes != 4 && bytes != 8)
    return op->emitOpError("works on 4 or 8 bytes, ") << type << " has " << bytes;
  if (pointer.getSpace() != Space::Global && pointer.getSpace() != Space::Shared)
    return op->emitOpError("works on global or shared memory, not ") << pointer;
  return success();
}

static LogicalResult verifyOrder(mlir::Operation* op, Order order) {
  return order == Order::SeqCst ? op->emitOpError("has order seq_cst, which only fences have") : success();
}

LogicalResult AtomicRmwOp::verify() {
  if (failed(verifyOrder(*this, getOrder())))
    return failure();
  if (getKind() == Combine::MulI || getKind() == Combine::MulF)
    return emitOpError("has no multiplication");
  if (getKind() != Combine::Exchange && isFloatCombine(getKind()) != llvm::isa<mlir::FloatType>(getValue().getType()))
    return emitOpError("kind does not fit ") << getValue().getType();
  return verifyAtomic(*this, getBase().getType(), getValue().getType());
}
LogicalResult AtomicCasOp::verify() {
  if (failed(verifyOrder(*this, getOrder())))
    return failure();
  return verifyAtomic(*this, getBase().getType(), getResult().getType());
}
LogicalResult AtomicLoadOp::verify() {
  if (getOrder() != Order::Relaxed && getOrder() != Order::Acquire)
    return emitOpError("is a load with order ") << stringifyOrder(getOrder());
  return verifyAtomic(*this, getBase().getType(), getResult().getType());
}
LogicalResult AtomicStoreOp::verify() {
  if (getOrder() != Order::Relaxed && getOrder() != Order::Release)
    return emitOpError("is a store with order ") << stringifyOrder(getOrder());
  return verifyAtomic(*this, getBase().getType(), getValue().getType());
}
LogicalResult FenceOp::verify() {
  return getOrder() == Order::Relaxed ? emitOpError("orders nothing with relaxed") : success();
}

LogicalResult AsyncCopyOp::verify() {
  int64_t bytes = getBytes();
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError("copies 4, 8 or 16 bytes, not ") << bytes;
  if (getDestination().getType().getSpace() != Space::Shared || getSource().getType().getSpace() != Space::Global)
    return emitOpError("copies from global to shared memory");
  return success();
}

//===-- warps and matrix units --------------------------------------------------------------------------------===//

LogicalResult VoteOp::verify() {
  unsigned width = getKind() == VoteKind::Ballot ? 32 : 1;
  if (!getResult().getType().isInteger(width))
    return emitOpError("gives i") << width << ", not " << getResult().getType();
  return success();
}

LogicalResult LoadMatrixOp::verify() {
  if (getCount() != 1 && getCount() != 2 && getCount() != 4)
    return emitOpError("loads 1, 2 or 4 matrices, not ") << getCount();
  if (getBase().getType().getSpace() != Space::Shared)
    return emitOpError("loads from shared memory");
  int64_t bytes = valueBytes(getResult().getType());
  if (bytes != static_cast<int64_t>(4 * getCount()))
    return emitOpError("gives ") << 4 * getCount() << " bytes per thread, " << getResult().getType() << " has "
                                 << bytes;
  return success();
}

LogicalResult MmaOp::verify() {
  if (getShape().size() != 3)
    return emitOpError("shape is [m, n, k]");
  int64_t m = getShape()[0], n = getShape()[1], k = getShape()[2];
  auto check = [&](const char* name, mlir::VectorType type, int64_t elements) -> LogicalResult {
    if (type.getNumElements() * kWarpThreads != elements)
      return emitOpError("fragment ") << name << " has " << elements / kWarpThreads << " elements per thread, not "
                                      << type.getNumElements();
    return success();
  };
  if (failed(check("a", getA().getType(), m * k)) || failed(check("b", getB().getType(), k * n)) ||
      failed(check("c", getC().getType(), m * n)))
    return failure();
  return success();
}

LogicalResult FragmentType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, Type elementType) {
  if (elementType.isF32() || elementType.isF16() || elementType.isBF16())
    return success();
  return emitError() << "fragments have elements of f32, f16 or bf16, not " << elementType;
}

static Type elementOf(mlir::Value fragment) { return llvm::cast<FragmentType>(fragment.getType()).getElementType(); }

static LogicalResult verifyShared(mlir::Operation* op, PtrType pointer, int64_t pitch) {
  if (pointer.getSpace() != Space::Shared)
    return op->emitOpError("accesses shared memory");
  if (pitch < 8)
    return op->emitOpError("rows of 8 elements do not fit a pitch of ") << pitch;
  return success();
}

LogicalResult FragmentFillOp::verify() {
  if (elementOf(getResult()) != getValue().getType())
    return emitOpError("fills ") << getResult().getType() << " with " << getValue().getType();
  return success();
}
LogicalResult FragmentLoadOp::verify() {
  return verifyShared(*this, getBase().getType(), static_cast<int64_t>(getPitch()));
}
LogicalResult FragmentStoreOp::verify() {
  return verifyShared(*this, getBase().getType(), static_cast<int64_t>(getPitch()));
}
LogicalResult FragmentMultiplyOp::verify() {
  if (elementOf(getA()) != elementOf(getB()))
    return emitOpError("multiplies ") << elementOf(getA()) << " by " << elementOf(getB());
  if (Type sum = elementOf(getC()); sum != elementOf(getA()) && !sum.isF32())
    return emitOpError("adds products of ") << elementOf(getA()) << " to " << sum;
  return success();
}
LogicalResult FragmentRoundOp::verify() {
  auto from = llvm::dyn_cast<mlir::FloatType>(elementOf(getValue())),
       to = llvm::dyn_cast<mlir::FloatType>(elementOf(getResult()));
  if (!from || !to || to.getWidth() >= from.getWidth())
    return emitOpError("rounds floats to shorter ones");
  return success();
}

}  // namespace vortex::ir::vxt
