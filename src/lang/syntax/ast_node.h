#pragma once

#include "base/check.h"
#include "source/source.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace vortex::lang::syntax {

using source::FileId;
using source::SourceRange;

struct Expr;
struct Type;
struct Pattern;
struct Stmt;
struct Item;
struct BlockExpr;

/// An arena-owned sequence; Lists of nodes hold pointers: `for (Expr *arg : call->args)`.
template <class T> using List = std::span<const T>;

/// An identifier as written. `text` lives as long as the SourceManager; an absent name has empty text.
struct Name {
  std::string_view text;
  SourceRange range;

  bool isPresent() const { return !text.empty(); }
};

/// Bump allocator. Nodes are trivially destructible, so destroying the arena frees everything at once, however deep the tree.
class Arena {
public:
  template <class T, class... Args> T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return ::new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }
  template <class T> List<T> copyList(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (values.empty())
      return {};
    T* data = static_cast<T*>(allocate(sizeof(T) * values.size(), alignof(T)));
    std::memcpy(static_cast<void*>(data), values.data(), sizeof(T) * values.size());
    return {data, values.size()};
  }
  std::string_view copyText(std::string_view text) {
    char* data = static_cast<char*>(allocate(text.size() + 1, 1));
    std::memcpy(data, text.data(), text.size());
    return {data, text.size()};
  }
  void* allocate(size_t bytes, size_t alignment);

private:
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

/// What Expr, Type, Pattern, Stmt and Item share. `Derived::kKind` names the kind of each concrete node:
///   switch (expr->kind) { case ExprKind::Call: { auto *call = expr->as<CallExpr>(); … } }
template <class KindT> struct Node {
  KindT kind;
  SourceRange range;

  template <class T> bool is() const { return kind == T::kKind; }
  /// The kind must match.
  template <class T> T* as() {
    VORTEX_CHECK(kind == T::kKind);
    return static_cast<T*>(this);
  }
  template <class T> const T* as() const {
    VORTEX_CHECK(kind == T::kKind);
    return static_cast<const T*>(this);
  }
  /// nullptr when the kind differs.
  template <class T> T* tryAs() { return kind == T::kKind ? static_cast<T*>(this) : nullptr; }
  template <class T> const T* tryAs() const { return kind == T::kKind ? static_cast<const T*>(this) : nullptr; }
};

/// `name = value` or `value`: an argument of a call, an attribute or a memory space.
/// In `@schedule`, `stages(a..b): x, y` is one Arg: `value` the call `stages(a..b)`, `strategies` the list [x, y].
struct Arg {
  Name name;
  Expr* value = nullptr;
  List<Expr*> strategies;
  SourceRange range;
};

/// `@name` or `@name(args)`. hasParens tells `@unchecked()` from `@unchecked`.
struct Attribute {
  Name name;
  bool hasParens = false;
  List<Arg> args;
  SourceRange range;
};

/// One entry of `<…>`: exactly one of `type` and `expr` is set. A lone name, `N`, is always a NamedType (it may turn out to name a
/// const or a dimension); a shape `[M, 3 * D]` is an ArrayExpr; `[T; N]` is an ArrayType; `N * 2`, `256`, `{e}` are expressions.
/// `name` is present in `Item = T`, which fixes an associated type in a bound.
struct GenericArg {
  Name name;
  Type* type = nullptr;
  Expr* expr = nullptr;
  SourceRange range;
};

}  // namespace vortex::lang::syntax
