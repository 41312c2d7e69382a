#pragma once

#include "lang/syntax/ast_node.h"

namespace vortex::lang::syntax {

enum class ExprKind : uint8_t {
  Error,
  Int,
  Float,
  Bool,
  String,
  Name,
  DotName,
  FullSlice,
  Array,
  Tuple,
  Struct,
  Unary,
  Binary,
  Assign,
  Range,
  Ref,
  Cast,
  Call,
  Index,
  Member,
  TupleMember,
  Block,
  If,
  Match,
  While,
  Loop,
  For,
  Break,
  Continue,
  Return,
  Closure,
};

/// `id` is dense per module (0 … Module::exprCount-1), for side tables. Parentheses leave no node but belong to `range`.
struct Expr : Node<ExprKind> {
  uint32_t id = 0;
  /// Longest path to a leaf, through operands, blocks and statements: at most Module::kMaxHeight, so recursion over a tree is safe.
  uint32_t height = 1;
};

/// Stands where the parser already reported an error; type it as "error" and stay silent.
struct ErrorExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Error;
};

/// `digits` holds the digits without prefix, `_` and suffix, in `base` (2, 10, 16), of any length.
struct IntExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Int;
  std::string_view digits;
  uint8_t base = 10;
  /// True when the value is below 2^128; then `value` holds it.
  bool fits128 = true;
  unsigned __int128 value = 0;
  /// `u8` in `200u8`, or `f32` in `1f32`; absent otherwise. Always one of the scalar type names.
  Name suffix;
};

/// `inf` is a FloatExpr with an infinite value. `value` is the double nearest to the digits; parse `digits` again for other widths.
struct FloatExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Float;
  /// Decimal digits with optional fraction and exponent, `_` removed; "inf" for `inf`.
  std::string_view digits;
  double value = 0;
  Name suffix;
};

struct BoolExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Bool;
  bool value = false;
};

/// `value` has its escapes resolved (UTF-8, may contain NUL from `\0`).
struct StringExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::String;
  std::string_view value;
};

/// `x`, or `k::<f32, 256>` with generic arguments. Paths `a.b` are MemberExprs.
struct NameExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Name;
  Name name;
  bool hasGenericArgs = false;
  List<GenericArg> genericArgs;
};

/// `.flash_attention`: an enum-like value whose type the context gives.
struct DotNameExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::DotName;
  Name name;
};

/// A lone `:` inside `[…]` of an IndexExpr.
struct FullSliceExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::FullSlice;
};

enum class ArrayForm : uint8_t {
  List,         ///< [a, b, c]
  Repeat,       ///< [value; count]: elems = {value}, count set
  Progression,  ///< [a, b, ..., z]: elems = {a, b, …}, last set (at least two elems)
};

/// `[…]`, or `vec![…]` with isVec.
struct ArrayExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Array;
  ArrayForm form = ArrayForm::List;
  bool isVec = false;
  List<Expr*> elems;
  Expr* count = nullptr;
  Expr* last = nullptr;
  /// Where `...` stands, for a progression.
  SourceRange ellipsis;
};

/// `()`, `(a,)`, `(a, b)`.
struct TupleExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Tuple;
  List<Expr*> elems;
};

struct FieldInit {
  Name name;
  /// For the shorthand `S { x }` a NameExpr of the same name.
  Expr* value = nullptr;
  SourceRange range;
};

/// `S { a: 1, b }`, `mod.S::<f32> { … }`. `type` is a NamedType.
struct StructExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Struct;
  Type* type = nullptr;
  List<FieldInit> fields;
};

enum class UnaryOp : uint8_t { Neg, Not, Deref };

/// `-x`, `!x` (logical on bool, bitwise on integers), `*x`.
struct UnaryExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Unary;
  UnaryOp op = UnaryOp::Neg;
  Expr* operand = nullptr;
};

/// Weakest to strongest: || && comparisons(do not chain) | ^ & (<< >>) (+ -) (* / % @) unary/as ** postfix.
/// `**` is right-associative and binds tighter than unary minus on its left: -x ** 2 is -(x ** 2).
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Pow,
  MatMul,
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
  Ge,
};
/// "+", "@", "&&"…
std::string_view spelling(BinaryOp op);
std::string_view spelling(UnaryOp op);

struct BinaryExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Binary;
  BinaryOp op = BinaryOp::Add;
  SourceRange opRange;
  Expr* lhs = nullptr;
  Expr* rhs = nullptr;
};

/// `target = value`, or `target op= value` with isCompound. Has type (). Only where a statement, match arm or closure body stands.
struct AssignExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Assign;
  bool isCompound = false;
  BinaryOp op = BinaryOp::Add;
  SourceRange opRange;
  Expr* target = nullptr;
  Expr* value = nullptr;
};

/// `a..b`; `a..+n` with endIsLength; either end may be nullptr inside an index (`a..`, `..b`, `..`).
struct RangeExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Range;
  Expr* begin = nullptr;
  Expr* end = nullptr;
  bool endIsLength = false;
};

/// `&x`, `&mut x`.
struct RefExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Ref;
  bool isMutable = false;
  Expr* operand = nullptr;
};

/// `x as T`. The type carries no memory space: `x as f32 @ y` multiplies.
struct CastExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Cast;
  Expr* operand = nullptr;
  Type* type = nullptr;
};

/// `f(a, n = b)`. Method calls have a MemberExpr callee; `k.launch(grid = g, block = b)(x)` is a call whose callee is the call of the
/// member `launch`.
struct CallExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Call;
  Expr* callee = nullptr;
  List<Arg> args;
};

/// `t[i, a..b, :]`.
struct IndexExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Index;
  Expr* base = nullptr;
  List<Expr*> indices;
};

/// `base.name`, `base.name::<T>`: field, method, module member, enum variant or associated function, as names resolve.
struct MemberExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Member;
  Expr* base = nullptr;
  Name name;
  bool hasGenericArgs = false;
  List<GenericArg> genericArgs;
};

/// `t.0`.
struct TupleMemberExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::TupleMember;
  Expr* base = nullptr;
  uint32_t index = 0;
  SourceRange indexRange;
};

/// `{ … }`.
struct BlockExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Block;
  List<Stmt*> stmts;
  /// The last statement's expression when no `;` follows it (the block's value if its type is not ()), else nullptr.
  Expr* tail = nullptr;
};

/// `else if` chains are flat: branches in order, then the optional final else.
struct IfBranch {
  Expr* condition = nullptr;
  BlockExpr* body = nullptr;
  SourceRange range;
};
struct IfExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::If;
  List<IfBranch> branches;
  BlockExpr* elseBody = nullptr;
};

struct MatchArm {
  Pattern* pattern = nullptr;
  Expr* guard = nullptr;
  Expr* body = nullptr;
  SourceRange range;
};
struct MatchExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Match;
  Expr* subject = nullptr;
  List<MatchArm> arms;
};

struct WhileExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::While;
  Expr* condition = nullptr;
  BlockExpr* body = nullptr;
};

struct LoopExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Loop;
  BlockExpr* body = nullptr;
};

/// Attributes (`@parallel for …`) are on the enclosing statement.
struct ForExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::For;
  Pattern* pattern = nullptr;
  Expr* iterable = nullptr;
  BlockExpr* body = nullptr;
};

struct BreakExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Break;
  Expr* value = nullptr;
};
struct ContinueExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Continue;
};
struct ReturnExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Return;
  Expr* value = nullptr;
};

struct ClosureParam {
  Pattern* pattern = nullptr;
  Type* type = nullptr;
};
/// `|x, y: f32| e`, `|x| -> T { … }`.
struct ClosureExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::Closure;
  List<ClosureParam> params;
  Type* resultType = nullptr;
  Expr* body = nullptr;
};

}  // namespace vortex::lang::syntax
