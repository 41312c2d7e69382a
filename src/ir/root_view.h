// The memory that views are windows of.
#pragma once

#include "ir/vx.h"

namespace vortex::ir {

/// The view that `view` is a window of, through windows of windows: two views may share elements only where these are equal or not known to be apart.
inline mlir::Value rootView(mlir::Value view) {
  while (auto window = view.getDefiningOp<SubviewOp>())
    view = window.getSource();
  return view;
}

}  // namespace vortex::ir
