// Fragments are `simdgroup_matrix`. Nothing relies on which thread holds which element but that rounding keeps them where they are: matrices of
// all types deal their elements alike.
#include "target/metal/kernel_writer.h"

#include "base/text.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::metal {

using base::concat;

static mlir::Type elementOf(mlir::Value fragment) {
  return mlir::cast<vxt::FragmentType>(fragment.getType()).getElementType();
}

std::string KernelWriter::matrixPlace(mlir::Value base, mlir::Value index, mlir::Value fragment) {
  mlir::Type element = elementOf(fragment);
  return concat("reinterpret_cast<threadgroup ", typeOf(element), "*>(", address(base, index, element), ")");
}

bool KernelWriter::writeMatrices(mlir::Operation* op) {
  auto declared = [&](mlir::Value result) {
    std::string name = declareAll(result.getType())[0];
    set(result, name);
    return name;
  };
  return llvm::TypeSwitch<mlir::Operation*, bool>(op)
      .Case([&](vxt::FragmentFillOp fill) {
        set(fill, declare(typeOf(fill.getType()), concat("make_filled_simdgroup_matrix<", typeOf(elementOf(fill)),
                                                         ", 8, 8>(", text(fill.getValue()), ")")));
        return true;
      })
      .Case([&](vxt::FragmentLoadOp load) {
        std::string place = matrixPlace(load.getBase(), load.getIndex(), load), name = declared(load);
        line(concat("simdgroup_load(", name, ", ", place, ", ", load.getPitch(), "ul",
                    load.getTransposed() ? ", ulong2(0ul), true" : "", ");"));
        return true;
      })
      .Case([&](vxt::FragmentStoreOp store) {
        line(concat("simdgroup_store(", text(store.getValue()), ", ",
                    matrixPlace(store.getBase(), store.getIndex(), store.getValue()), ", ", store.getPitch(), "ul);"));
        return true;
      })
      .Case([&](vxt::FragmentMultiplyOp product) {
        std::string a = text(product.getA()), b = text(product.getB()), c = text(product.getC());
        line(concat("simdgroup_multiply_accumulate(", declared(product), ", ", a, ", ", b, ", ", c, ");"));
        return true;
      })
      .Case([&](vxt::FragmentRoundOp round) {
        std::string from = text(round.getValue()), to = declared(round), type = typeOf(elementOf(round));
        for (int i = 0; i < 2; ++i)
          line(concat(to, ".thread_elements()[", i, "] = ", type, "(", from, ".thread_elements()[", i, "]);"));
        return true;
      })
      .Default([](mlir::Operation*) { return false; });
}

}  // namespace vortex::target::metal
