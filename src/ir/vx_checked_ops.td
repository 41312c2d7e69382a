// The vx dialect: what only programs under `--check` contain, for the interpreter.
#ifndef VORTEX_IR_VX_CHECKED_OPS
#define VORTEX_IR_VX_CHECKED_OPS
include "ir/vx_dialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Telling what wraps is an effect: nothing folds them, and they run though nothing uses what they compute.
class Vx_CheckedOp<string name> : Op<Vx_Dialect, name, [MemoryEffects<[MemWrite]>, SameOperandsAndResultType, Elementwise, Scalarizable,
                                                        Vectorizable, Tensorizable]> {
  let arguments = (ins SignlessIntegerLike:$lhs, SignlessIntegerLike:$rhs, UnitAttr:$isUnsigned);
  let results = (outs SignlessIntegerLike:$result);
  let assemblyFormat = "(`unsigned` $isUnsigned^)? $lhs `,` $rhs attr-dict `:` type($result)";
}

def Vx_CheckedAddOp : Vx_CheckedOp<"checked_add"> {
  let summary = "a sum that the user wrote; the run stops where it wraps";
  let description = "`%z = vx.checked_add unsigned %x, %y : tensor<?xi32>`";
}

def Vx_CheckedSubOp : Vx_CheckedOp<"checked_sub"> {
  let summary = "a difference that the user wrote; the run stops where it wraps";
  let description = "`%z = vx.checked_sub %x, %y : index`";
}

def Vx_CheckedMulOp : Vx_CheckedOp<"checked_mul"> {
  let summary = "a product that the user wrote; the run stops where it wraps";
  let description = "`%z = vx.checked_mul unsigned %x, %y : i8`";
}

def Vx_RoundOp : Op<Vx_Dialect, "round", [MemoryEffects<[MemWrite]>]> {
  let summary = "another round of the loop around it, which stays though nothing uses what it computes: it may never end";
  let assemblyFormat = "attr-dict";
}
#endif
