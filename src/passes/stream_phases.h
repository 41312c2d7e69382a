// The phases of what bulk_streams.h planned.
#pragma once

#include "ir/launch.h"
#include "passes/bulk_streams.h"

namespace vortex::passes {

/// Appends a choice to the launch: the whole kernel streamed, in one of its ways, or what `otherwise` appends. `createKernel`: a new phase of that name
/// and number of blocks, in the launch.
void emitStreams(const BulkStreams& streams, const TensorSchedule& schedule, ir::LaunchBuilder& launch,
                 const std::function<ir::KernelOp(llvm::StringRef, ir::SizeAttr)>& createKernel,
                 const std::function<void()>& otherwise);

}  // namespace vortex::passes
