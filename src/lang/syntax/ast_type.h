#pragma once

#include "lang/syntax/ast_node.h"

namespace vortex::lang::syntax {

enum class TypeKind : uint8_t { Error, Named, Associated, Array, Tuple, Ref, Spaced, Function, Infer };

struct Type : Node<TypeKind> {};

/// Already reported; stay silent.
struct ErrorType : Type {
  static constexpr TypeKind kKind = TypeKind::Error;
};

/// `f32`, `Tensor<T, [M, N], Shared>`, `mod.Name<T>`, `Self`, `T.Item`.
struct NamedType : Type {
  static constexpr TypeKind kKind = TypeKind::Named;
  /// At least one; those before the last name modules or, in `T.Item`, types.
  List<Name> path;
  bool hasGenericArgs = false;
  List<GenericArg> genericArgs;
};

/// `Pair<A, B>.Item`: an associated type of a type with arguments (without them it is a NamedType).
struct AssociatedType : Type {
  static constexpr TypeKind kKind = TypeKind::Associated;
  Type* base = nullptr;
  Name name;
};

/// `[T; N]`.
struct ArrayType : Type {
  static constexpr TypeKind kKind = TypeKind::Array;
  Type* elem = nullptr;
  Expr* count = nullptr;
};

/// `(A, B)`; `()` is the unit type.
struct TupleType : Type {
  static constexpr TypeKind kKind = TypeKind::Tuple;
  List<Type*> elems;
};

/// `&T`, `&mut T`.
struct RefType : Type {
  static constexpr TypeKind kKind = TypeKind::Ref;
  bool isMutable = false;
  Type* inner = nullptr;
};

/// `T @shared`, `T @shared(layout = .bank_conflict_free)`.
struct SpacedType : Type {
  static constexpr TypeKind kKind = TypeKind::Spaced;
  Type* inner = nullptr;
  /// Name and arguments of the space; its range starts at `@`.
  Attribute space;
};

/// `fn(A, B) -> C`: the type of a closure parameter of a library function.
struct FunctionType : Type {
  static constexpr TypeKind kKind = TypeKind::Function;
  List<Type*> params;
  Type* result = nullptr;
};

/// `_`.
struct InferType : Type {
  static constexpr TypeKind kKind = TypeKind::Infer;
};

enum class PatternKind : uint8_t { Error, Wildcard, Name, Path, Literal, Range, Tuple, Struct, Or };

struct Pattern : Node<PatternKind> {};

struct ErrorPattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Error;
};

/// `_`.
struct WildcardPattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Wildcard;
};

/// `x`: binds, or names a const in scope (sema decides). `mut` is not written: use `var`.
struct NamePattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Name;
  Name name;
};

/// `Color.Red`, or `.Red` (then path has one element and isDot is set).
struct PathPattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Path;
  bool isDot = false;
  List<Name> path;
};

/// Int, Float, Bool, String, or the negation of a number.
struct LiteralPattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Literal;
  Expr* value = nullptr;
};

/// `a..b`, end exclusive; null where it is left out: `a..`, `..b`.
struct RangePattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Range;
  Expr* begin = nullptr;
  Expr* end = nullptr;
};

struct TuplePattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Tuple;
  List<Pattern*> elems;
};

struct FieldPattern {
  Name name;
  /// For the shorthand `S { x }` a NamePattern of the same name.
  Pattern* pattern = nullptr;
};
/// `S { x, y: p }`.
struct StructPattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Struct;
  List<Name> path;
  List<FieldPattern> fields;
};

/// `a | b`.
struct OrPattern : Pattern {
  static constexpr PatternKind kKind = PatternKind::Or;
  List<Pattern*> alternatives;
};

}  // namespace vortex::lang::syntax
