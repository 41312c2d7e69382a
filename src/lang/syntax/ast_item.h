#pragma once

#include "lang/syntax/ast_node.h"

namespace vortex::lang::syntax {

enum class StmtKind : uint8_t { Let, Expr, Item };

struct Stmt : Node<StmtKind> {
  /// `@unchecked`, `@parallel`, … written before the statement.
  List<Attribute> attributes;
};

/// `let p: T = e`, `var x = e`; type and init may be nullptr.
struct LetStmt : Stmt {
  static constexpr StmtKind kKind = StmtKind::Let;
  bool isVar = false;
  Pattern* pattern = nullptr;
  Type* type = nullptr;
  Expr* init = nullptr;
};

/// An expression, assignment or control-flow statement.
struct ExprStmt : Stmt {
  static constexpr StmtKind kKind = StmtKind::Expr;
  Expr* expr = nullptr;
  bool hasSemicolon = false;
};

/// An item inside a block.
struct ItemStmt : Stmt {
  static constexpr StmtKind kKind = StmtKind::Item;
  Item* item = nullptr;
};

enum class ItemKind : uint8_t { Function, Struct, Enum, Trait, Impl, TypeAlias, Const, Import };

/// `range` covers the whole item with attributes; `name` is absent for impl and import.
struct Item : Node<ItemKind> {
  List<Attribute> attributes;
  /// The `///` lines before it, without the slashes and one leading space.
  List<std::string_view> docLines;
  bool isPublic = false;
  Name name;
};

/// `T`, `T: Numeric + Readable`, `const N: usize`, `T = f32`, `const N: usize = 4`.
struct GenericParam {
  Name name;
  bool isConst = false;
  /// Bounds are NamedTypes.
  List<Type*> bounds;
  Type* constType = nullptr;
  GenericArg defaultValue;
  SourceRange range;
};

/// `where N: PowerOfTwo`, `where T: A + B`.
struct WherePredicate {
  Type* subject = nullptr;
  List<Type*> bounds;
  SourceRange range;
};

struct Generics {
  List<GenericParam> params;
  List<WherePredicate> where;
};

enum class SelfKind : uint8_t { None, Value, Ref, MutRef };

struct Param {
  List<Attribute> attributes;
  Name name;
  /// nullptr only for self parameters.
  Type* type = nullptr;
  SelfKind self = SelfKind::None;
  SourceRange range;
};

/// `fn` and `kernel`. `body` is nullptr only for a trait's required function.
struct FunctionItem : Item {
  static constexpr ItemKind kKind = ItemKind::Function;
  bool isKernel = false;
  Generics generics;
  List<Param> params;
  /// nullptr: ().
  Type* resultType = nullptr;
  /// The operation in `-> T reduce(op)`: a NameExpr (`add`, `mul`, `min`, `max`, `and`, `or`, or a function); nullptr without one.
  Expr* reduceOp = nullptr;
  BlockExpr* body = nullptr;
};

struct Field {
  List<Attribute> attributes;
  List<std::string_view> docLines;
  Name name;
  Type* type = nullptr;
  SourceRange range;
};

/// `struct S { … }`, `type S = struct { … }`, `struct S : Trait {}` (an empty impl of each of `traits`).
struct StructItem : Item {
  static constexpr ItemKind kKind = ItemKind::Struct;
  Generics generics;
  List<Type*> traits;
  List<Field> fields;
};

struct EnumVariant {
  List<std::string_view> docLines;
  Name name;
  /// Explicit discriminant, or nullptr.
  Expr* value = nullptr;
  SourceRange range;
};
struct EnumItem : Item {
  static constexpr ItemKind kKind = ItemKind::Enum;
  List<EnumVariant> variants;
};

/// Members are FunctionItems, ConstItems and TypeAliasItems.
struct TraitItem : Item {
  static constexpr ItemKind kKind = ItemKind::Trait;
  Generics generics;
  List<Type*> supertraits;
  List<Item*> members;
};

/// `impl T { … }` (trait is nullptr), `impl Trait for T { … }`.
struct ImplItem : Item {
  static constexpr ItemKind kKind = ItemKind::Impl;
  Generics generics;
  Type* trait = nullptr;
  Type* selfType = nullptr;
  List<Item*> members;
};

/// `type X<T> = …`; `aliased` is nullptr only for a trait's associated type, which may have bounds.
struct TypeAliasItem : Item {
  static constexpr ItemKind kKind = ItemKind::TypeAlias;
  Generics generics;
  List<Type*> bounds;
  Type* aliased = nullptr;
};

/// `const N: usize = 4`; type may be nullptr (inferred); value is nullptr only in a trait.
struct ConstItem : Item {
  static constexpr ItemKind kKind = ItemKind::Const;
  Type* type = nullptr;
  Expr* value = nullptr;
};

struct ImportName {
  Name name;
  /// The name after `as`, or absent.
  Name alias;
};
/// `import a.b` (binds `b`), `import a.b as c`, `import a.b { X, Y as Z }`.
struct ImportItem : Item {
  static constexpr ItemKind kKind = ItemKind::Import;
  List<Name> path;
  Name alias;
  bool hasNames = false;
  List<ImportName> names;
};

/// Of items, fields, variants, parameters: what they are called.
template <class T> std::vector<std::string> namesOf(List<T> declared) {
  std::vector<std::string> names;
  for (const auto& each : declared)
    if constexpr (std::is_pointer_v<T>)
      names.emplace_back(each->name.text);
    else
      names.emplace_back(each.name.text);
  return names;
}

}  // namespace vortex::lang::syntax
