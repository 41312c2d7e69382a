// Pointwise operations of arith, math and vx over arrays of cells: tiles elementwise, thread code lane by lane, scalars with one cell.
#pragma once

#include "interpreter/number.h"

namespace vortex::interpreter {

/// `out[k][i] = f(in[0][i * step[0]], …)` for i < count. A step is 0 (one value for all) or 1.
struct ElementCall {
  uint64_t* out[2] = {};
  const uint64_t* in[3] = {};
  size_t step[3] = {};
  size_t count = 0;
  Element from = {};   ///< of the first operand (the second of arith.select)
  Element to = {};     ///< of the first result
  int64_t detail = 0;  ///< predicate of a comparison, kind of vx.int, signedness of vx.float_to_int and vx.checked_add

  uint64_t operand(unsigned number, size_t i) const { return in[number][i * step[number]]; }
};

using ElementFunction = void (*)(const ElementCall&);

struct ElementKernel {
  ElementFunction function = nullptr;
  Element from = {}, to = {};
  int64_t detail = 0;
};

/// A null function for an operation that is not pointwise or not known.
ElementKernel findElementKernel(mlir::Operation* op);

// By subject; null when the operation is none of theirs.
ElementFunction findIntegerFunction(mlir::Operation* op);
ElementFunction findFloatFunction(mlir::Operation* op);
ElementFunction findConversion(mlir::Operation* op);

}  // namespace vortex::interpreter
