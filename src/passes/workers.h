// How many blocks, or clusters of blocks, a device runs at the same time, known at the launch: an index among the temporaries of an entry.
#pragma once

#include "ir/size_attr.h"
#include "ir/vx.h"

namespace vortex::passes {

/// What an entry says about that argument. `clusterBlocks`: blocks of a cluster; 1: blocks are counted.
mlir::DictionaryAttr workersFacts(mlir::MLIRContext* context, unsigned clusterBlocks = 1);

/// The argument of an entry that has one; else null.
ir::SizeAttr workersOf(ir::EntryOp entry, unsigned clusterBlocks = 1);

}  // namespace vortex::passes
