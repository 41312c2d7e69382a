// The table of what kernel code can raise.
#pragma once

#include "artifact/artifact.h"

#include <llvm/ADT/StringRef.h>
#include <mlir/IR/Operation.h>

#include <vector>

namespace vortex::target {

/// The number of the fault with this id, message and place of the operation; added where the table lacks it (versions of one body share theirs).
uint32_t addFault(std::vector<artifact::Fault>& faults, mlir::Operation* op, llvm::StringRef id,
                  llvm::StringRef message);

/// Of a vx.print, or of a vx.assert with values: the entry that describes them, see artifact::Fault.
uint32_t addValues(std::vector<artifact::Fault>& faults, mlir::Operation* op, llvm::StringRef text,
                   mlir::ValueRange values, llvm::ArrayRef<bool> isUnsigned);

}  // namespace vortex::target
