// Atomics, and the launch's report (artifact/device_report.h), which is written by atomics of 32 bits.
#include "target/metal/kernel_writer.h"

#include "artifact/device_report.h"
#include "base/text.h"
#include "target/gpu/end_threads.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::metal {

using artifact::DeviceReport;
using base::concat;

static const char* const kRelaxed = "memory_order_relaxed";

std::string KernelWriter::bitsOf(const std::string& text, mlir::Type type) {
  return type.isF32() ? concat("as_type<uint>(", text, ")") : text;
}
std::string KernelWriter::fromBits(const std::string& text, mlir::Type type) {
  return type.isF32() ? concat("as_type<float>(", text, ")") : text;
}

std::string KernelWriter::atomicPlace(mlir::Operation* op, mlir::Value base, mlir::Value index, mlir::Type type) {
  if (vxt::scalarBytes(type) != 4) {
    fail(op, concat("atomics on ", 8 * vxt::scalarBytes(type), "-bit elements"));
    return "";
  }
  bool isShared = mlir::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared;
  std::string pointer = isShared ? "threadgroup atomic_uint*" : "device atomic_uint*";
  return declare(pointer, concat("reinterpret_cast<", pointer, ">(", address(base, index, type), ")"));
}

static std::string functionOf(ir::Combine kind) {
  using C = ir::Combine;
  switch (kind) {
  case C::AddI: return "atomic_fetch_add_explicit";
  case C::And: return "atomic_fetch_and_explicit";
  case C::Or: return "atomic_fetch_or_explicit";
  case C::Xor: return "atomic_fetch_xor_explicit";
  case C::MaxU: return "atomic_fetch_max_explicit";
  case C::MinU: return "atomic_fetch_min_explicit";
  case C::Exchange: return "atomic_exchange_explicit";
  default: return "";
  }
}

/// What a compare-exchange loop writes for `old`, `x`.
static std::string combined(ir::Combine kind, const std::string& old, const std::string& x) {
  using C = ir::Combine;
  auto onFloats = [&](const std::string& text) { return concat("as_type<uint>(", text, ")"); };
  std::string a = concat("as_type<float>(", old, ")");
  switch (kind) {
  case C::AddF: return onFloats(concat(a, " + ", x));
  case C::MulF: return onFloats(concat(a, " * ", x));
  case C::MaxF: return onFloats(concat("fmax(", a, ", ", x, ")"));
  case C::MinF: return onFloats(concat("fmin(", a, ", ", x, ")"));
  case C::MaxS: return concat("uint(max(int(", old, "), int(", x, ")))");
  case C::MinS: return concat("uint(min(int(", old, "), int(", x, ")))");
  case C::MulI: return concat("(", old, " * ", x, ")");
  default: return "";
  }
}

void KernelWriter::writeRmw(vxt::AtomicRmwOp op) {
  mlir::Type type = op.getValue().getType();
  std::string place = atomicPlace(op, op.getBase(), op.getIndex(), type);
  if (place.empty())
    return;
  std::string value = text(op.getValue());
  if (std::string function = functionOf(op.getKind()); !function.empty())
    return set(op,
               declare(typeOf(type),
                       fromBits(concat(function, "(", place, ", ", bitsOf(value, type), ", ", kRelaxed, ")"), type)));
  std::string old = declare("uint", concat("atomic_load_explicit(", place, ", ", kRelaxed, ")"));
  line(concat("while (!atomic_compare_exchange_weak_explicit(", place, ", &", old, ", ",
              combined(op.getKind(), old, value), ", ", kRelaxed, ", ", kRelaxed, ")) {}"));
  set(op, declare(typeOf(type), fromBits(old, type)));
}

/// The weak form may fail without cause: only another value ends the loop early.
void KernelWriter::writeCas(vxt::AtomicCasOp op) {
  mlir::Type type = op.getExpected().getType();
  std::string place = atomicPlace(op, op.getBase(), op.getIndex(), type);
  if (place.empty())
    return;
  std::string wanted = declare("uint", bitsOf(text(op.getExpected()), type)), old = declare("uint", wanted);
  line(concat("while (!atomic_compare_exchange_weak_explicit(", place, ", &", old, ", ",
              bitsOf(text(op.getDesired()), type), ", ", kRelaxed, ", ", kRelaxed, ") && ", old, " == ", wanted,
              ") {}"));
  set(op, declare(typeOf(type), fromBits(old, type)));
}

static bool isOrdered(mlir::Operation* op) {
  auto order = op->getAttrOfType<ir::OrderAttr>("order");
  return order && order.getValue() != ir::Order::Relaxed;
}

bool KernelWriter::writeAtomic(mlir::Operation* op) {
  if (isOrdered(op)) {
    fail(op, "atomics with an order before version 3.2");
    return true;
  }
  return llvm::TypeSwitch<mlir::Operation*, bool>(op)
      .Case([&](vxt::AtomicRmwOp rmw) {
        writeRmw(rmw);
        return true;
      })
      .Case([&](vxt::AtomicCasOp cas) {
        writeCas(cas);
        return true;
      })
      .Case([&](vxt::AtomicLoadOp load) {
        mlir::Type type = load.getType();
        std::string place = atomicPlace(op, load.getBase(), load.getIndex(), type);
        if (!place.empty())
          set(load, declare(typeOf(type), fromBits(concat("atomic_load_explicit(", place, ", ", kRelaxed, ")"), type)));
        return true;
      })
      .Case([&](vxt::AtomicStoreOp store) {
        mlir::Type type = store.getValue().getType();
        std::string place = atomicPlace(op, store.getBase(), store.getIndex(), type);
        if (!place.empty())
          line(concat("atomic_store_explicit(", place, ", ", bitsOf(text(store.getValue()), type), ", ", kRelaxed,
                      ");"));
        return true;
      })
      .Case([&](vxt::FenceOp fence) {
        fail(fence, "fences before version 3.2");
        return true;
      })
      .Case([&](vxt::AssertOp check) {
        writeAssert(check);
        return true;
      })
      .Case([&](vxt::PrintOp print) {
        writePrint(print);
        return true;
      })
      .Default([](mlir::Operation*) { return false; });
}

//===-- report --------------------------------------------------------------------------------------------------===//

static std::string reportWord(uint64_t offset) {
  return concat("reinterpret_cast<device uint*>(vx_report + ", offset, ")");
}
static std::string reportAtomic(uint64_t offset) {
  return concat("reinterpret_cast<device atomic_uint*>(vx_report + ", offset, ")");
}

void KernelWriter::writeReport(const std::string& place, const std::string& value) {
  line(concat(place, "[0] = uint(", value, ");"));
  line(concat(place, "[1] = uint(", value, " >> 32);"));
}

void KernelWriter::writeAssert(vxt::AssertOp op) {
  usesReport_ = true;
  line(concat("if (!", text(op.getCondition()), ") {"));
  nested([&] {
    std::string claimed = declare("uint", "0u");
    std::string fault = concat(1 + op.getFault(), "u");
    line(concat("while (!atomic_compare_exchange_weak_explicit(", reportAtomic(offsetof(DeviceReport, fault)), ", &",
                claimed, ", ", fault, ", ", kRelaxed, ", ", kRelaxed, ") && ", claimed, " == 0u) {}"));
    line(concat("if (", claimed, " == 0u) {"));
    nested([&] {
      std::string words = declare("device uint*", reportWord(offsetof(DeviceReport, block)));
      const char* parts[] = {"vx_block.x", "vx_block.y", "vx_block.z", "vx_thread"};
      for (unsigned i = 0; i < 4; ++i)
        line(concat(words, "[", i, "] = ", parts[i], ";"));
      for (auto [i, each] : llvm::enumerate(op.getValues().take_front(artifact::kFaultValues)))
        writeReport(declare("device uint*", reportWord(offsetof(DeviceReport, values) + 8 * i)), text(each));
    });
    line("}");
    if (!gpu::goesOn(op))
      line("return;");
  });
  line("}");
}

void KernelWriter::writePrint(vxt::PrintOp op) {
  usesReport_ = true;
  uint64_t words = 1 + op.getValues().size();
  std::string start =
      declare("uint", concat("atomic_fetch_add_explicit(", reportAtomic(offsetof(DeviceReport, printWords)), ", ",
                             words, "u, ", kRelaxed, ")"));
  line(concat("if (", start, " + ", words, "u <= *", reportWord(offsetof(DeviceReport, printCapacity)), ") {"));
  nested([&] {
    auto place = [&](uint64_t word) {
      return declare("device uint*", concat("reinterpret_cast<device uint*>(vx_report + ", sizeof(DeviceReport),
                                            " + ulong(", start, ") * 8 + ", 8 * word, ")"));
    };
    writeReport(place(0), concat("ulong(", (1 + op.getFormat()) | (words - 1) << 32, "ul)"));
    for (auto [i, each] : llvm::enumerate(op.getValues()))
      writeReport(place(1 + i), text(each));
  });
  line("}");
}

}  // namespace vortex::target::metal
