// The vx dialect in C++: everything generated from vx_dialect.td and vx_ops.td.
#pragma once

#include "base/check.h"
#include "size/expr.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#include "ir/vx_dialect.h.inc"
#include "ir/vx_enums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/vx_attrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/vx_types.h.inc"
#define GET_OP_CLASSES
#include "ir/vx_ops.h.inc"
#pragma clang diagnostic pop

namespace vortex::ir {

/// Registers vx and the upstream dialects its modules use: arith, math, scf, func, builtin.
void registerVxDialects(mlir::DialectRegistry& registry);

/// The `layout` of a ViewType: null for plain row-major.
mlir::Attribute viewLayout(mlir::MLIRContext* context, bool colMajor, SwizzleAttr swizzle = {});

/// A pointwise operation of arith, math or vx: its tensor operands and results all have the same extents.
bool isElementwise(mlir::Operation* op);

/// A function of floats that takes more than one instruction: math's, vx.sigmoid, vx.erfc.
bool isFloatFunction(mlir::Operation* op);

// What passes/narrow_math finds out about an operation, on it: significant bits that its result is rounded to (i64), and what math::Form says.
inline constexpr llvm::StringLiteral kNarrowAttr = "vx.narrow", kMayFlushAttr = "vx.may_flush",
                                     kNormalAttr = "vx.normal", kFarFromOneAttr = "vx.far_from_one";

/// Of a kernel: all its blocks run at the same time.
inline constexpr llvm::StringLiteral kCooperativeAttr = "vx.cooperative";
/// On an scf.for of a whole-tensor kernel: its iterations do not meet, as `kProven` by checks or `kClaimed` by the program.
inline constexpr llvm::StringLiteral kIndependentAttr = "vx.independent", kProven = "proven", kClaimed = "claimed";

/// True for the kinds whose operands are floats (`addf`, `mulf`, `maxf`, `minf`).
bool isFloatCombine(Combine kind);

/// The neutral element: x combined with it is x. Max and min of floats: ∓inf. `exchange` has none (null).
mlir::TypedAttr neutralElement(Combine kind, mlir::Type elementType);

/// The innermost vx.threads around `op`, or null at block level.
ThreadsOp enclosingThreads(mlir::Operation* op);

}  // namespace vortex::ir
