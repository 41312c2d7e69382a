// Expressions of the typed program. Statements are expressions of type unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lang/sema/builtins.h"
#include "lang/sema/types.h"

namespace vortex::lang {

struct Function;
struct Variable;

enum class ExprKind : uint8_t {
  // values
  Int,     ///< intValue, of integer, bool or enum type (two's complement, sign-extended to 128 bits)
  Float,   ///< floatValue, of float type
  String,  ///< text
  Unit,
  Var,       ///< variable; a place
  DimValue,  ///< dim: the value of a symbolic extent, usize
  Unary,     ///< unaryOp args[0]; scalar or tensor
  Binary,  ///< binaryOp args[0], args[1]: same type (comparisons: result bool or tensor of bool); And/Or on scalars short-circuit
  Cast,  ///< args[0] to `type`, elementwise on tensors
  Broadcast,  ///< args[0] (scalar or tensor) to tensor `type`; operand dim i becomes result dim ints[i]; operand extents of 1 stretch
  Dot,          ///< args[0] @ args[1], leading dims batched (already broadcast to equal rank)
  Builtin,      ///< builtin(args), ints, text
  Call,         ///< function (fn); args by position, complete. Host code only: in kernels calls are Inline
  Launch,       ///< function (kernel); args complete; launch: optional explicit grid/block
  CallClosure,  ///< args[0] is the closure
  Closure,      ///< variables = parameters, args[0] = body; captures by reference
  // places and aggregates
  Element,  ///< args[0][args[1..]]: all indices integers; base tensor, ref to tensor, Vec, Array. guard: see below. A place
  Slice,  ///< args[0] sliced: slices; a borrowed view (tensor of same space) or sub-Vec (ref). ints, if any: the field of the elements it shows
  Field,  ///< args[0].ints[0] of a struct or tuple; a place if the base is
  MakeTuple,
  MakeStruct,
  MakeArray,
  MakeVec,  ///< args
  RepeatArray,
  RepeatVec,  ///< args[0] repeated args[1] times
  Ref,        ///< &args[0] or &mut (type says)
  Deref,      ///< *args[0]; implicit ones are written out
  Range,      ///< args[0]..args[1] step args[2] (optional); half-open
  IntList,    ///< a constant list of integers (progression literal or [1, 2, 3] iterated): intList
  // control; type unit unless said
  Block,  ///< args in order; value of the last if type is not unit
  Let,  ///< variable = args[0]; no args: declared without value (shared/local tensors, `var out`). Host: hasOp if its type is
        ///< written, whose new dimension variables are ints
  Assign,  ///< args[0] (place) = args[1], or op= with `hasOp` and binaryOp (place evaluated once)
  If,      ///< args[0] condition, args[1] then, args[2] else (optional); may have a value
  While,   ///< args[0] condition, args[1] body
  Loop,    ///< args[0] body; value from Break when type is not unit
  For,     ///< variable in args[0] (Range, IntList, Array, Vec): args[1] body; `indexVariable` set for .enumerate()
  Break,   ///< args[0] optional value (Loop)
  Continue,
  Return,  ///< args[0] optional; leaves the nearest enclosing Inline, else the function
  Inline,  ///< an inlined call: args = [Let of each parameter…, body]; its value is the body's or the Return's
};

enum class UnaryOp : uint8_t { Neg, Not };  // Not: logical on bool, bitwise on integers
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Pow,
  Shl,
  Shr,
  BitAnd,
  BitOr,
  BitXor,
  And,
  Or,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge
};

/// Kernel analysis fills this; host expressions stay Uniform. A value every thread of the block agrees on, or not.
enum class Uniformity : uint8_t { Uniform, PerThread };

/// How a place is used where a value is wanted; filled by lang/flow/check/ownership.
enum class Transfer : uint8_t {
  Read,  ///< looked at; also every expression that is not a place
  Copy,  ///< the value is duplicated
  Move,  ///< the value leaves the place, which is empty afterwards
};

/// What is known about an Element or Slice access in a kernel.
enum class Guard : uint8_t {
  Guarded,         ///< not proven: loads outside give 0, stores outside are dropped
  Proven,          ///< inside for every launch
  ProvenForBlock,  ///< … that does not give another block than the kernel's own
  Unchecked,       ///< the user wrote @unchecked(bounds)
};

/// How far a For over a range counts. Machine loops compare signed integers of 64 bits.
enum class Reach : uint8_t {
  Far,      ///< bounds, iterations or what comes behind the last one may be 2^63 or more
  NearEnd,  ///< only the begin may: of unsigned numbers, beyond the end
  Near,
};

/// One dimension of a Slice.
struct SliceDim {
  enum class Kind : uint8_t { Index, Range, Full } kind = Kind::Full;
  struct Expr* begin = nullptr;  ///< Index: the index; Range: the start (null: 0)
  struct Expr* end = nullptr;    ///< Range: exclusive end, or the length with `endIsLength` (null: the extent)
  bool endIsLength = false;
};

struct LaunchSpec {
  std::vector<struct Expr*> grid;  ///< empty: inferred by the kernel; else 1..3 usize expressions
  std::vector<struct Expr*> block;
};

struct Expr {
  ExprKind kind = ExprKind::Unit;
  Type type = nullptr;
  source::SourceRange range;
  std::vector<Expr*> args;

  __int128 intValue = 0;
  double floatValue = 0;
  std::string text;
  Variable* variable = nullptr;
  Variable* indexVariable = nullptr;
  std::vector<Variable*> variables;
  DimExpr dim;
  UnaryOp unaryOp = UnaryOp::Neg;
  BinaryOp binaryOp = BinaryOp::Add;
  bool hasOp = false;
  Builtin builtin = Builtin::Exp;
  std::vector<int64_t> ints;
  std::vector<__int128> intList;
  std::vector<SliceDim> slices;
  Function* function = nullptr;
  LaunchSpec launch;
  Transfer transfer = Transfer::Read;
  bool mayWrap = false;            ///< `@unchecked(overflow)`: `--check` does not report integers that wrap here
  bool isClaimedParallel = false;  ///< For: marked `@parallel`
  bool isSequential = false;       ///< For: marked `@sequential`
  bool isUnrolled = false;         ///< For: marked `@unroll`
  uint8_t pipelineStages = 0;      ///< For: of `@pipeline`; 0: it has none
  bool isIndependent = false;      ///< For in a whole-tensor kernel: its iterations do not meet (lang/flow)
  Reach reach = Reach::Far;        ///< For in a kernel (lang/flow)

  // kernels, filled by kernel analysis (lang/sema/kernel)
  Uniformity uniformity = Uniformity::Uniform;
  Guard guard = Guard::Guarded;
  /// This expression or something inside it must run at block level: a barrier, a tile/whole-tensor operation, a shared allocation,
  /// a uniform store or atomic. Per-thread code without it may join a thread region whole.
  bool needsBlock = false;
  /// Something inside (or this) is per-thread: a value, a store, a warp operation.
  bool hasPerThread = false;
  /// The root of a statement marked `@verify_no_bank_conflicts`: where the attribute stands; invalid elsewhere.
  source::SourceRange verifyBanks;
  /// The root of a statement marked `@unchecked(coalescing)`.
  bool uncheckedCoalescing = false;
  /// The root of a statement marked `@unchecked(races)`.
  bool uncheckedRaces = false;
  /// Let of a shared tensor: the block meets before it, as the tensor takes bytes that threads may still be at.
  bool isAfterBarrier = false;
  /// Element, Slice: no access of another thread that is not ordered before or after this one can meet it in memory, if one of the two writes.
  bool isRaceFree = false;
};

}  // namespace vortex::lang
