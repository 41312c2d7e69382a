// Views and single-element accesses at block level: one access for the whole block.
#include "target/cpu/emit/atomics.h"
#include "target/cpu/emit/emitter.h"

#include "analysis/shared_lifetimes.h"
#include "ir/size_attr.h"
#include "target/interface/describe.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::cpu::emit {

using llvm::Value;

void Emitter::emitAlloc(mlir::Operation* op) {
  auto type = mlir::cast<ir::AllocOp>(op).getResult().getType();
  View view;
  view.elementType = type.getElementType();
  view.blockPrivate = true;
  view.perThread = type.getSpace() == ir::Space::Local;
  int64_t count = 1;
  view.strides.resize(type.getRank());
  // An XOR swizzle only matters for banks of shared memory; here the plain order serves every access alike.
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t dim = type.isColMajor() ? i : type.getRank() - 1 - i;
    view.strides[dim] = ir.getInt64(count);
    count *= type.getShape()[dim];
  }
  for (int64_t extent : type.getShape())
    view.extents.push_back(ir.getInt64(extent));
  size::Expr bytes = ir::sizeArena(op->getContext()).constant(count * elementBytes(view.elementType));
  if (view.perThread)
    for (unsigned axis = 0; axis < 3; ++axis)
      bytes = size::make(size::Op::Mul, bytes, blockSize(axis));
  if (view.perThread)
    view.pointer = scratch->allocate(bytes);
  else
    view.pointer = placeShared(op, static_cast<uint64_t>(count * elementBytes(view.elementType)));
  setView(op->getResult(0), std::move(view));
}

llvm::Value* Emitter::placeShared(mlir::Operation* op, uint64_t bytes) {
  auto alloc = mlir::cast<ir::AllocOp>(op);
  Scratch::Piece piece = scratch->reserve(bytes);
  const auto& lifetime = lifetimes_->of(alloc);
  artifact::SharedTensor tensor = describeSharedTensor(alloc);
  tensor.firstLine = lifetime.firstLine;
  tensor.lastLine = lifetime.lastLine;
  tensor.bytes = bytes;
  tensor.offset = piece.constant;
  tensor.phase = static_cast<uint32_t>(state.kernel.phases.size());
  if (unitStrides)  // the other version of the phase is laid out alike
    state.kernel.sharedTensors.push_back(std::move(tensor));
  sharedPieces_[alloc] = piece;
  return piece.pointer;
}

void Emitter::emitSubview(mlir::Operation* operation) {
  auto op = mlir::cast<ir::SubviewOp>(operation);
  const View source = view(op.getSource());
  View result = source;
  result.extents.clear();
  result.strides.clear();
  auto type = op.getResult().getType();
  auto sizes = op.getSizes().begin();
  unsigned resultDim = 0;
  Value* offset = i64(0);
  for (auto [dim, start] : llvm::enumerate(op.getOffsets())) {
    offset = ir.CreateAdd(offset, ir.CreateMul(scalar(start), source.strides[dim]));
    if (llvm::is_contained(op.getDropped(), int64_t(dim)))
      continue;
    int64_t extent = type.getShape()[resultDim++];
    result.extents.push_back(mlir::ShapedType::isDynamic(extent) ? scalar(*sizes++) : i64(extent));
    result.strides.push_back(source.strides[dim]);
  }
  if (source.perThread)  // each element is there once per thread
    offset = ir.CreateMul(offset, ir.CreateMul(ir.CreateMul(blockDim[0], blockDim[1]), blockDim[2]));
  result.pointer = elementPointer(ir, source.elementType, source.pointer, offset);
  setView(op.getResult(), std::move(result));
}

namespace {
struct Element {
  View view;
  Value* pointer = nullptr;
  Value* condition = nullptr;  ///< null: always accessed
};
}  // namespace

static Element elementOf(Emitter& e, mlir::Value viewValue, mlir::ValueRange indices, mlir::Value mask, bool guarded) {
  Element result{e.view(viewValue)};
  auto require = [&](Value* condition) {
    result.condition = result.condition ? e.ir.CreateAnd(result.condition, condition) : condition;
  };
  if (mask)
    require(e.scalar(mask));
  Value* offset = e.i64(0);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value* i = e.scalar(index);
    if (guarded)
      require(e.ir.CreateICmpULT(i, result.view.extents[dim]));
    offset = e.ir.CreateAdd(offset, e.ir.CreateMul(i, result.view.strides[dim]));
  }
  result.pointer = elementPointer(e.ir, result.view.elementType, result.view.pointer, offset);
  return result;
}

/// Value of `body` where the element is accessed, else zero.
static Value* whereAccessed(Emitter& e, const Element& element, llvm::function_ref<Value*()> body) {
  if (!element.condition)
    return body();
  return emitIf(
      e.ir, element.condition, [&] { return Values{body()}; },
      [&] { return Values{e.zero(element.view.elementType)}; })[0];
}

void Emitter::emitMemory(mlir::Operation* op) {
  tiles->flushReads(op);
  auto elementFor = [&](auto access) {
    Element element = elementOf(*this, access.getView(), access.getIndices(), access.getMask(), access.getGuarded());
    if (element.view.perThread)
      fail(op, "uniform access to per-thread memory");
    if (!mlir::isa<ir::LoadOp, ir::StoreOp>(op) && !supportsAtomics(element.view.elementType))
      fail(op, "an atomic on elements that are not 32 or 64 bits wide");
    return element;
  };
  auto supported = [&] { return state.error.empty(); };
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](ir::LoadOp load) {
        Element element = elementFor(load);
        Value* pointer = element.condition ? pointerOrZeros(element.condition, element.pointer) : element.pointer;
        setScalar(load, emitLoad(ir, features, element.view.elementType, pointer, 1));
      })
      .Case([&](ir::StoreOp store) {
        Element element = elementFor(store);
        emitStore(ir, features, element.view.elementType, scalar(store.getValue()), element.pointer, 1,
                  element.condition);
      })
      .Case([&](ir::AtomicRmwOp atomic) {
        Element element = elementFor(atomic);
        if (supported())
          setScalar(atomic, whereAccessed(*this, element, [&] {
                      return emitAtomicRmw(ir, atomic.getKind(), element.view.elementType, element.pointer,
                                           scalar(atomic.getValue()), atomic.getOrder(), element.view.blockPrivate);
                    }));
      })
      .Case([&](ir::AtomicCasOp atomic) {
        Element element = elementFor(atomic);
        if (supported())
          setScalar(atomic, whereAccessed(*this, element, [&] {
                      return emitAtomicCas(ir, element.view.elementType, element.pointer, scalar(atomic.getExpected()),
                                           scalar(atomic.getDesired()), atomic.getOrder(), element.view.blockPrivate);
                    }));
      })
      .Case([&](ir::AtomicLoadOp atomic) {
        Element element = elementFor(atomic);
        if (supported())
          setScalar(atomic, whereAccessed(*this, element, [&] {
                      return emitAtomicLoad(ir, element.view.elementType, element.pointer, atomic.getOrder(),
                                            element.view.blockPrivate);
                    }));
      })
      .Case([&](ir::AtomicStoreOp atomic) {
        Element element = elementFor(atomic);
        auto once = [&] {
          emitAtomicStore(ir, element.view.elementType, scalar(atomic.getValue()), element.pointer, atomic.getOrder(),
                          element.view.blockPrivate);
        };
        if (supported())
          element.condition ? emitIf(ir, element.condition, once) : once();
      });
}

}  // namespace vortex::target::cpu::emit
