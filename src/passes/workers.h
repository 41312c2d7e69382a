// How many blocks a device runs at the same time, known at the launch: an index among the temporaries of an entry.
#pragma once

#include "ir/size_attr.h"
#include "ir/vx.h"

namespace vortex::passes {

/// What an entry says about that argument.
mlir::DictionaryAttr workersFacts(mlir::MLIRContext* context);

/// The argument of an entry that has one; else null.
ir::SizeAttr workersOf(ir::EntryOp entry);

}  // namespace vortex::passes
