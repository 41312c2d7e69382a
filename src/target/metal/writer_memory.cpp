// Loads and stores by byte addresses.
#include "target/metal/kernel_writer.h"

#include "base/text.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::metal {

using base::concat;

namespace {

std::string spaceOf(mlir::Value base) {
  switch (mlir::cast<vxt::PtrType>(base.getType()).getSpace()) {
  case ir::Space::Shared: return "threadgroup";
  case ir::Space::Local: return "thread";
  default: return "device";
  }
}

/// Metal's type in memory: bool takes a byte.
std::string memoryName(llvm::Type* type) { return type->isIntegerTy(1) ? "uchar" : typeName(type); }

}  // namespace

std::string KernelWriter::address(mlir::Value base, mlir::Value index, mlir::Type element) {
  int64_t bytes = vxt::scalarBytes(element);
  llvm::Constant* known = constants_.lookup(index);
  if (known && known->isNullValue())
    return text(base);
  if (auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(known))
    return concat(text(base), " + ", int64_t(number->getSExtValue() * bytes));
  std::string offset = text(index);
  if (!index.getType().isIndex())
    offset = concat("ulong(", offset, ")");
  return concat(text(base), " + ", offset, bytes == 1 ? "" : concat(" * ", bytes));
}

void KernelWriter::guarded(const std::string& condition, llvm::function_ref<void()> body) {
  if (condition.empty())
    return body();
  line(concat("if (", condition, ") {"));
  nested(body);
  line("}");
}

/// Lanes of the widest access from `lane` on that alignment and Metal's vectors allow.
static unsigned pieceOf(unsigned lane, unsigned count, int64_t elementBytes, int64_t alignment) {
  for (unsigned piece : {4u, 2u})
    if (lane + piece <= count && alignment >= piece * elementBytes && lane % piece == 0)
      return piece;
  return 1;
}

void KernelWriter::writeLoad(vxt::LoadOp op) {
  mlir::Type type = op.getResult().getType(), element = mlir::getElementTypeOrSelf(type);
  if (element.isF64())
    return fail(op, "f64");
  unsigned count = gpu::lanesOf(type);
  int64_t bytes = vxt::scalarBytes(element), alignment = std::max<int64_t>(op.getAlignment(), bytes);
  bool isBool = element.isInteger(1);
  std::string space = spaceOf(op.getBase()), name = memoryName(llvmType(element)), own = typeOf(type);
  std::string place = address(op.getBase(), op.getIndex(), element);
  std::string guard = op.getMask() ? text(op.getMask()) : "";
  Texts names;
  for (unsigned i = 0; i < count; ++i)
    names.push_back(freshName());
  if (!guard.empty())
    for (const std::string& each : names)
      line(concat(own, " ", each, " = ", constantText(llvm::Constant::getNullValue(llvmType(element))), ";"));
  guarded(guard, [&] {
    for (unsigned i = 0; i < count;) {
      unsigned piece = isBool ? 1 : pieceOf(i, count, bytes, alignment);
      std::string shape = piece == 1 ? name : concat(name, piece);
      std::string at = i == 0 ? place : concat(place, " + ", i * bytes);
      std::string read = concat("*reinterpret_cast<", space, " ", shape, "*>(", at, ")");
      std::string target = guard.empty() ? own + " " : "";
      if (piece == 1) {
        line(concat(target, names[i], " = ", read, isBool ? " != 0;" : ";"));
      } else {
        std::string whole = declare(shape, read);
        for (unsigned lane = 0; lane < piece; ++lane)
          line(concat(target, names[i + lane], " = ", whole, ".", "xyzw"[lane], ";"));
      }
      i += piece;
    }
  });
  set(op, names);
}

void KernelWriter::writeStore(vxt::StoreOp op) {
  mlir::Type type = op.getValue().getType(), element = mlir::getElementTypeOrSelf(type);
  unsigned count = gpu::lanesOf(type);
  int64_t bytes = vxt::scalarBytes(element), alignment = std::max<int64_t>(op.getAlignment(), bytes);
  bool isBool = element.isInteger(1);
  std::string space = spaceOf(op.getBase()), name = memoryName(llvmType(element));
  std::string place = address(op.getBase(), op.getIndex(), element);
  guarded(op.getMask() ? text(op.getMask()) : "", [&] {
    for (unsigned i = 0; i < count;) {
      unsigned piece = isBool ? 1 : pieceOf(i, count, bytes, alignment);
      std::string shape = piece == 1 ? name : concat(name, piece), value = text(op.getValue(), i);
      for (unsigned lane = 1; lane < piece; ++lane)
        value += ", " + text(op.getValue(), i + lane);
      line(concat("*reinterpret_cast<", space, " ", shape, "*>(", i == 0 ? place : concat(place, " + ", i * bytes),
                  ") = ", piece == 1 && !isBool ? value : concat(shape, "(", value, ")"), ";"));
      i += piece;
    }
  });
}

bool KernelWriter::writeMemory(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, bool>(op)
      .Case([&](vxt::SharedOp shared) {
        usesShared_ = true;
        set(shared, declare("threadgroup uchar*", concat("vx_shared + ", shared.getOffset())));
        return true;
      })
      .Case([&](vxt::LocalOp local) {
        llvm::Type* element = llvmType(local.getElement());
        if (memoryName(element).empty()) {
          fail(op, "f64");
          return true;
        }
        std::string name = freshName();
        line(concat(
            "alignas(",
            std::max<int64_t>({static_cast<int64_t>(local.getAlignment()), vxt::scalarBytes(local.getElement()), 1}),
            ") ", memoryName(element), " ", name, "[", local.getCount(), "];"));
        set(local, declare("thread uchar*", concat("reinterpret_cast<thread uchar*>(", name, ")")));
        return true;
      })
      .Case([&](vxt::OffsetOp offset) {
        set(offset,
            declare(typeOf(offset.getType()), address(offset.getBase(), offset.getIndex(), offset.getElement())));
        return true;
      })
      .Case([&](vxt::AddressOp address) {
        std::string type = typeOf(address.getResult().getType());
        set(address, declare(type, concat(type, "(reinterpret_cast<ulong>(", text(address.getBase()), "))")));
        return true;
      })
      .Case([&](vxt::LoadOp load) {
        writeLoad(load);
        return true;
      })
      .Case([&](vxt::StoreOp store) {
        writeStore(store);
        return true;
      })
      .Default([](mlir::Operation*) { return false; });
}

}  // namespace vortex::target::metal
