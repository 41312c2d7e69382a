// The vx dialect: its types, attributes and enums.
#ifndef VORTEX_IR_VX_DIALECT
#define VORTEX_IR_VX_DIALECT
include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypes.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Vx_Dialect : Dialect {
  let name = "vx";
  let cppNamespace = "::vortex::ir";
  let summary = "What one block of a kernel does";
  let description = [{
    A module holds one `vx.entry` (the launch interface) and one or more `vx.kernel` (its phases, run in order of
    appearance, all with the argument list of the entry). A kernel body describes one block: uniform scalars, tiles
    (`tensor` values owned by the block), `vx.threads` regions of per-thread scalar code, and views of memory.
    Elementwise arithmetic is plain `arith`/`math` on scalars or tensors, control flow is `scf`.
    Integers are signless; the language's `usize` is `index`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerAttributesAndTypes();
    /// The expressions of all #vx.size.
    ::vortex::size::Arena& sizes() { return sizes_; }

  private:
    ::vortex::size::Arena sizes_;

  public:
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

class Vx_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::vortex::ir";
  let genSpecializedAttr = 0;
}
class Vx_EnumAttr<I32EnumAttr e, string mnemonic> : EnumAttr<Vx_Dialect, e, mnemonic> { let assemblyFormat = "$value"; }
// For enums that stand alone in dictionaries: `#vx.role<param>`.
class Vx_BracketEnumAttr<I32EnumAttr e, string mnemonic> : EnumAttr<Vx_Dialect, e, mnemonic> { let assemblyFormat = "`<` $value `>`"; }

def Vx_Space : Vx_Enum<"Space", "memory space", [
  I32EnumAttrCase<"Global", 0, "global">, I32EnumAttrCase<"Shared", 1, "shared">,
  I32EnumAttrCase<"Local", 2, "local">, I32EnumAttrCase<"Constant", 3, "constant">]>;

def Vx_Axis : Vx_Enum<"Axis", "grid or block axis", [
  I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">]>;
def Vx_AxisAttr : Vx_EnumAttr<Vx_Axis, "axis">;

// One list serves reductions, scans, warp reductions and atomics; verifiers say which a given op takes.
// Float max/min propagate NaN (IEEE maximum/minimum) except in atomics, which follow maxNum/minNum.
def Vx_Combine : Vx_Enum<"Combine", "associative combination", [
  I32EnumAttrCase<"AddI", 0, "addi">, I32EnumAttrCase<"AddF", 1, "addf">,
  I32EnumAttrCase<"MulI", 2, "muli">, I32EnumAttrCase<"MulF", 3, "mulf">,
  I32EnumAttrCase<"MaxS", 4, "maxs">, I32EnumAttrCase<"MaxU", 5, "maxu">, I32EnumAttrCase<"MaxF", 6, "maxf">,
  I32EnumAttrCase<"MinS", 7, "mins">, I32EnumAttrCase<"MinU", 8, "minu">, I32EnumAttrCase<"MinF", 9, "minf">,
  I32EnumAttrCase<"And", 10, "and">, I32EnumAttrCase<"Or", 11, "or">, I32EnumAttrCase<"Xor", 12, "xor">,
  I32EnumAttrCase<"Exchange", 13, "exchange">]>;
def Vx_CombineAttr : Vx_EnumAttr<Vx_Combine, "combine">;

// Total integer operations: x/0 = x%0 = 0, MIN/-1 wraps, shift counts are taken modulo the width.
def Vx_IntKind : Vx_Enum<"IntKind", "total integer operation", [
  I32EnumAttrCase<"DivS", 0, "divs">, I32EnumAttrCase<"DivU", 1, "divu">,
  I32EnumAttrCase<"RemS", 2, "rems">, I32EnumAttrCase<"RemU", 3, "remu">,
  I32EnumAttrCase<"Shl", 4, "shl">, I32EnumAttrCase<"ShrS", 5, "shrs">, I32EnumAttrCase<"ShrU", 6, "shru">,
  I32EnumAttrCase<"CeilDivU", 7, "ceildivu">]>;
def Vx_IntKindAttr : Vx_EnumAttr<Vx_IntKind, "int_kind">;

def Vx_ShuffleKind : Vx_Enum<"ShuffleKind", "warp shuffle", [
  I32EnumAttrCase<"Xor", 0, "xor">, I32EnumAttrCase<"Up", 1, "up">,
  I32EnumAttrCase<"Down", 2, "down">, I32EnumAttrCase<"Index", 3, "index">]>;
def Vx_ShuffleKindAttr : Vx_EnumAttr<Vx_ShuffleKind, "shuffle_kind">;

def Vx_VoteKind : Vx_Enum<"VoteKind", "warp vote", [
  I32EnumAttrCase<"Any", 0, "any">, I32EnumAttrCase<"All", 1, "all">, I32EnumAttrCase<"Ballot", 2, "ballot">]>;
def Vx_VoteKindAttr : Vx_EnumAttr<Vx_VoteKind, "vote_kind">;

def Vx_Order : Vx_Enum<"Order", "memory order of an atomic (never seq_cst) or a fence (never relaxed)", [
  I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
  I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">, I32EnumAttrCase<"SeqCst", 4, "seq_cst">]>;
def Vx_OrderAttr : Vx_EnumAttr<Vx_Order, "order">;

def Vx_Scope : Vx_Enum<"Scope", "who an atomic synchronises with", [
  I32EnumAttrCase<"Block", 0, "block">, I32EnumAttrCase<"Device", 1, "device">, I32EnumAttrCase<"System", 2, "system">]>;
def Vx_ScopeAttr : Vx_EnumAttr<Vx_Scope, "scope">;

def Vx_Role : Vx_Enum<"Role", "what an entry argument is", [
  I32EnumAttrCase<"Param", 0, "param">, I32EnumAttrCase<"Result", 1, "result">, I32EnumAttrCase<"Let", 2, "let">,
  I32EnumAttrCase<"Temp", 3, "temp">]>;
def Vx_RoleAttr : Vx_BracketEnumAttr<Vx_Role, "role">;
def Vx_AccessMode : Vx_Enum<"AccessMode", "how a kernel touches a tensor argument", [
  I32EnumAttrCase<"Read", 0, "read">, I32EnumAttrCase<"Write", 1, "write">, I32EnumAttrCase<"ReadWrite", 2, "readwrite">]>;
def Vx_AccessModeAttr : Vx_BracketEnumAttr<Vx_AccessMode, "access">;

class Vx_Attr<string name, string mnemonic_> : AttrDef<Vx_Dialect, name> { let mnemonic = mnemonic_; }

def Vx_SizeAttr : Vx_Attr<"Size", "size"> {
  let summary = "integer expression over the entry's arguments";
  let description = [{
    Of the context's arena of expressions (src/size), so equal ones are one attribute. The text is described in size/text.h:
    `#vx.size<"ceildiv(dim(0,0), 256) * (dim(1,1) + 1)">`.
  }];
  let parameters = (ins "::vortex::size::Expr":$expr);
  let hasCustomAssemblyFormat = 1;
}

def Vx_ConstraintAttr : Vx_Attr<"Constraint", "constraint"> {
  let summary = "condition a launch checks first; {0}, {1} in the message are the operands' values";
  let parameters = (ins "SizeAttr":$condition, "::mlir::StringAttr":$message, OptionalArrayRefParameter<"SizeAttr">:$operands);
  let assemblyFormat = "`<` $condition `,` $message (`,` $operands^)? `>`";
}

def Vx_SwizzleAttr : Vx_Attr<"Swizzle", "swizzle"> {
  let summary = "XOR term of a shared layout: offset ^= ((offset >> shift) & mask) << base, in elements of the contiguous layout";
  let parameters = (ins "int64_t":$shift, "int64_t":$mask, "int64_t":$base);
  let assemblyFormat = "`<` params `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t apply(int64_t offset) const { return offset ^ (((offset >> getShift()) & getMask()) << getBase()); }
  }];
}

class Vx_Type<string name, string mnemonic_> : TypeDef<Vx_Dialect, name> { let mnemonic = mnemonic_; }

def Vx_View : Vx_Type<"View", "view"> {
  let summary = "a typed rectangular window on memory: `!vx.view<?x32xf32, shared>`";
  let description = [{
    Extents are static or `?`. Global and constant views carry run-time strides (in elements) per dimension; shared and local
    views made by `vx.alloc` have static extents and are row-major, or column-major (`col_major`), plus an optional XOR swizzle.
    A view made by `vx.subview` keeps its source's strides. `layout` is null, the string "col_major", a #vx.swizzle, or the array of both
    (see `viewLayout`); it prints as `!vx.view<64x64xf16, shared, col_major, swizzle<3, 7, 3>>`.
    A local view allocated outside `vx.threads` is one instance per thread.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        EnumParameter<Vx_Space>:$space, OptionalParameter<"::mlir::Attribute">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
      CArg<"Space", "Space::Global">:$space, CArg<"::mlir::Attribute", "{}">:$layout), [{
    return $_get(elementType.getContext(), shape, elementType, space, layout);
  }]>];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    bool isDynamic(int64_t dim) const { return ::mlir::ShapedType::isDynamic(getShape()[dim]); }
    bool isColMajor() const;
    /// Null without a swizzle.
    SwizzleAttr getSwizzle() const;
    int64_t numElements() const;
    /// In memory: bool is one byte, index eight.
    int64_t elementBytes() const;
    bool hasStaticShape() const { return !::mlir::ShapedType::isDynamicShape(getShape()); }
  }];
}

// bool is i1 in values and one byte in memory.
def Vx_Scalar : AnyTypeOf<[AnySignlessInteger, AnyFloat, Index], "scalar">;
def Vx_Tile : Type<Or<[AnyRankedTensor.predicate]>, "tile", "::mlir::RankedTensorType">;
def Vx_Value : AnyTypeOf<[Vx_Scalar, AnyRankedTensor], "scalar or tile">;
def Vx_ThreadValues : Type<CPred<"::llvm::isa<::mlir::RankedTensorType>($_self) && "
  "::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 1">, "rank-1 tensor of block extent", "::mlir::RankedTensorType">;
#endif
