// Copies of operand blocks in the order the micro-kernels read them.
#pragma once

#include "target/cpu/gemm/control_flow.h"
#include "target/cpu/gemm/gemm.h"

namespace vortex::target::cpu::gemm {

/// What one packing writes: `width` neighbouring rows of A (or columns of B) per panel, each step of k contiguous:
/// panel[k][width]. `across(i, k)` order hides which operand it is.
struct PackSource {
  const Operand& operand;
  bool isA;  ///< panel index is A's row, else B's column
  llvm::Type* type;
  uint32_t lanes;

  llvm::Value* load(llvm::IRBuilderBase& b, llvm::Value* across, llvm::Value* k, uint32_t count,
                    llvm::Value* valid = nullptr) const {
    return isA ? operand.load(b, across, k, count, valid) : operand.load(b, k, across, count, valid);
  }
  bool contiguousAlongK() const { return operand.contiguous == (isA ? Contiguous::Column : Contiguous::Row); }
  bool contiguousAcross() const { return operand.contiguous == (isA ? Contiguous::Row : Contiguous::Column); }
};

/// panel[k − kBegin][width] for across in [first, first + width), k in [kBegin, kEnd). What lies past acrossEnd is
/// unspecified. `isRagged`: the caller has handled whole panels of an operand contiguous across.
void emitPackPanel(llvm::IRBuilderBase& b, const PackSource& source, uint32_t width, llvm::Value* memory,
                   llvm::Value* first, llvm::Value* acrossEnd, llvm::Value* kBegin, llvm::Value* kEnd,
                   bool isRagged = false);

/// One step of k of a panel whose columns (rows) all exist, for operands contiguous across.
void emitPackStep(llvm::IRBuilderBase& b, const PackSource& source, uint32_t width, llvm::Value* target,
                  llvm::Value* first, llvm::Value* k);

/// rows[across − first][stride] (k contiguous) for across in [first, acrossEnd), k in [kBegin, kEnd), zeros up to whole
/// vectors: for the direct path.
void emitPackRows(llvm::IRBuilderBase& b, const PackSource& source, llvm::Value* rows, uint64_t stride,
                  llvm::Value* first, llvm::Value* acrossEnd, llvm::Value* kBegin, llvm::Value* kEnd);

}  // namespace vortex::target::cpu::gemm
