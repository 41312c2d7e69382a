// How a launch's tensors lie: what versions of a phase assume, and the condition that they may.
#pragma once

#include "artifact/artifact.h"
#include "ir/vx.h"

#include <set>

namespace vortex::target::gpu {

/// What a version of a phase may assume about the launch's tensors; the caller checks it before it picks the version.
struct Assumptions {
  bool unitStrides = false;  ///< innermost strides are innermostStride(): one, but for fields of structs
  bool alignedRows = false;  ///< data pointers and all other strides are multiples of 16 bytes; implies unitStrides
  std::set<unsigned> aligned = {};    ///< arguments of which both hold in any case
  std::set<unsigned> wholeRows = {};  ///< of these, too, and the last extent is a multiple of 16 bytes
  bool longRows =
      false;  ///< rows are too long for the registers of a block and for the shared memory of several: blocks have more threads

  bool alignsRows(unsigned argument) const {
    return alignedRows || aligned.contains(argument) || wholeRows.contains(argument);
  }
};

/// Temporaries with rows of whole 16 bytes, whatever the launch.
bool hasAlignedRows(ir::KernelOp phase, unsigned argument);

struct TensorRows {
  unsigned dim = 0;  ///< along which they lie: the last that has more than one element, as far as is known
  llvm::SmallVector<bool, 4> hasOne;  ///< per dimension: it has one in all launches, so that its stride does not matter
};
/// Of an argument: dimensions that all windows on it leave out as kUnitWindow says have one element.
TensorRows rowsOf(ir::KernelOp phase, unsigned argument);

/// Where the launch's tensors lie as `assumptions` says; null: always.
size::Expr conditionFor(ir::KernelOp phase, const artifact::Kernel& kernel, const Assumptions& assumptions);

}  // namespace vortex::target::gpu
